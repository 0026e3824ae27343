//! The one place that prints: results to stdout, everything else to stderr.
//!
//! A reader that closes the pipe (`| head -1`) ends the command quietly, with status 0; any other failure to write to
//! stdout, such as a full device, is failed work. What cannot be written to stderr is lost.

use std::fmt::{self, Arguments};
use std::io::{self, Write};

use serde::Serialize;
use thiserror::Error;

use super::Failure;

/// Why a result could not be printed.
#[derive(Debug, Error)]
#[error("cannot write to standard output: {0}")]
pub struct StdoutError(#[from] pub io::Error);

impl StdoutError {
    /// Whether the reader of stdout has closed it: it has seen enough.
    pub fn is_closed_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl From<StdoutError> for Failure {
    fn from(error: StdoutError) -> Failure {
        Failure::work(error)
    }
}

/// Text to stdout, as it is.
pub fn put(text: &str) -> Result<(), StdoutError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// A line to stdout; [`outln!`] calls it.
pub fn line(text: Arguments<'_>) -> Result<(), StdoutError> {
    put(&fmt::format(format_args!("{text}\n")))
}

/// One pretty JSON document on stdout.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::work)?;
    Ok(put(&format!("{text}\n"))?)
}

/// One JSON document on one line of stdout.
pub fn print_json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(value)?;
    Ok(put(&format!("{text}\n"))?)
}

/// A line to stderr; [`note!`] calls it.
pub fn stderr_line(text: Arguments<'_>) {
    // Nothing is left to complain to.
    let _ = io::stderr().lock().write_all(fmt::format(format_args!("{text}\n")).as_bytes());
}

/// Prints a line to stdout, formatted as by `println!`; an error goes to the caller.
macro_rules! outln {
    ($($text:tt)*) => { $crate::cli::print::line(format_args!($($text)*)) };
}

/// Prints a line to stderr, formatted as by `eprintln!`.
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::print::stderr_line(format_args!($($text)*)) };
}
