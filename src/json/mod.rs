//! JSON, read by one deserialiser and written by one serialiser, so that the code of each type is compiled once. The
//! deserialiser also reads the values of TOML files.

mod reader;
mod unique;
mod writer;

pub use reader::{ReadError, from_value};
pub use writer::{to_bytes, to_indented, to_text, to_value};

use serde::de::DeserializeOwned;
use thiserror::Error;

use unique::UniqueKeys;

/// Why a text could not be read.
#[derive(Debug, Error)]
#[error(transparent)]
pub enum JsonError {
    /// It is no JSON document, or has a key twice; the message ends with line and column.
    Syntax(#[from] serde_json::Error),
    /// It is not the document that was asked for.
    Value(#[from] ReadError),
}

/// Reads a JSON document.
///
/// # Errors
/// If the text is no JSON, or not that of a `T`.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let UniqueKeys(value) = serde_json::from_str(text)?;
    Ok(from_value(&value, "")?)
}

/// As [`from_text`], of UTF-8.
///
/// # Errors
/// As [`from_text`].
pub fn from_bytes<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let UniqueKeys(value) = serde_json::from_slice(text)?;
    Ok(from_value(&value, "")?)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::from_text;

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        let text = r#"{"a": [1, -2, 0.5, null, true, "b"], "c": {"d": 1}}"#;
        let value: Value = from_text(text).expect("JSON");
        assert_eq!(value.to_string(), text.replace(", ", ",").replace(": ", ":"));
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"a": {"b": 1, "c": 2, "b": 3}}]"#] {
            let error = from_text::<Value>(text).expect_err("a key twice");
            assert!(error.to_string().contains("stands there twice"), "{error}");
        }
    }
}
