//! JSON, read by one deserialiser and written by one serialiser, so that the code of each type is compiled once. The
//! deserialiser also reads the values of TOML files.

mod reader;
mod writer;

pub use reader::{ReadError, from_value};
pub use writer::{to_bytes, to_indented, to_text, to_value};

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// Why a text could not be read.
#[derive(Debug, Error)]
#[error(transparent)]
pub enum JsonError {
    /// It is no JSON document; the message ends with line and column.
    Syntax(#[from] serde_json::Error),
    /// It is not the document that was asked for.
    Value(#[from] ReadError),
}

/// Reads a JSON document.
///
/// # Errors
/// If the text is no JSON, or not that of a `T`.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let value: Value = serde_json::from_str(text)?;
    Ok(from_value(&value, "")?)
}

/// As [`from_text`], of UTF-8.
///
/// # Errors
/// As [`from_text`].
pub fn from_bytes<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let value: Value = serde_json::from_slice(text)?;
    Ok(from_value(&value, "")?)
}
