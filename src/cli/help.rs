//! `fsbench help language` prints the reference of the feature-set language. clap prints the help of the commands.

use std::ffi::OsString;

use super::{Failure, print_text};
use crate::features::LANGUAGE_REFERENCE;

/// The line about topics that ends the list of commands.
pub const TOPICS: &str = "`fsbench help language` prints the reference of the feature-set language";

/// Whether the arguments ask for the language reference.
pub fn asks_for_language(arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.eq(["help", "language"])
}

pub fn print_language() -> Result<(), Failure> {
    Ok(print_text(LANGUAGE_REFERENCE)?)
}
