//! Settings that are written once: a struct's fields are the options of a command (clap), the keys of a table in a TOML
//! file and what a record keeps (serde). A TOML file becomes one [`Document`]; [`crate::json::from_value`] and
//! [`TableParts`] deserialise from it, with errors that name the key, and the document knows where the key is written.

mod document;
mod table_parts;

pub use document::Document;
pub use table_parts::{TableParts, field_names, unknown_field};

use thiserror::Error;

/// A value that a setting cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SettingError {
    /// The setting's key in its table, with dots as in `recipe.warm_up`; empty for the table as a whole.
    pub key: String,
    pub message: String,
}

impl SettingError {
    #[must_use]
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> SettingError {
        SettingError { key: key.into(), message: message.into() }
    }
}

/// The first of some checks of a table that fails: each has its key, whether it holds, and the message if it does not.
///
/// # Errors
/// If one fails.
pub fn check_all(checks: &[(&str, bool, &str)]) -> Result<(), SettingError> {
    for (key, holds, message) in checks {
        if !holds {
            return Err(SettingError::new(*key, *message));
        }
    }
    Ok(())
}
