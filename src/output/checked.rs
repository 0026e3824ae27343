//! Checksums in text files: of a JSON document as its last key, of a line as its last word. Files of earlier versions have
//! none and stay readable.

use std::borrow::Cow;

use thiserror::Error;

/// A checksum does not match: the file was changed after fsbench wrote it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("its checksum does not match: it is damaged or was edited")]
pub struct Damaged;

/// What precedes the checksum in an indented document.
const DOCUMENT_KEY: &str = ",\n  \"checksum\": \"";
const DOCUMENT_DIGITS: usize = 64;

/// An indented JSON document as it is stored: an object gets the key `checksum`, blake3 of the document without it. Any
/// other document gets none.
#[must_use]
pub fn with_checksum(json: &str) -> String {
    match json.strip_suffix("\n}") {
        Some(object) => format!("{object}{DOCUMENT_KEY}{}\"\n}}\n", blake3::hash(json.as_bytes()).to_hex()),
        None => format!("{json}\n"),
    }
}

/// The document before its checksum was added; as stored if it has none.
///
/// # Errors
/// When the checksum does not match.
pub fn without_checksum(stored: &str) -> Result<Cow<'_, str>, Damaged> {
    let split = |rest: &str| -> Option<(String, String)> {
        let (object, sum) = rest.split_at_checked(rest.len().checked_sub(DOCUMENT_DIGITS)?)?;
        Some((format!("{}\n}}", object.strip_suffix(DOCUMENT_KEY)?), sum.to_owned()))
    };
    let Some((json, sum)) = stored.strip_suffix("\"\n}\n").and_then(split) else { return Ok(stored.into()) };
    let is_whole = blake3::hash(json.as_bytes()).to_hex().as_str() == sum;
    if is_whole { Ok(json.into()) } else { Err(Damaged) }
}

/// What precedes the checksum in a line that is a JSON object.
const LINE_KEY: &str = ",\"crc32\":\"";
const LINE_DIGITS: usize = 8;

/// A line as it is stored: a JSON object gets the key `crc32`, another line one more word.
#[must_use]
pub fn with_line_sum(line: &str) -> String {
    let sum = crc32fast::hash(line.as_bytes());
    match line.strip_suffix('}') {
        Some(object) => format!("{object}{LINE_KEY}{sum:08x}\"}}"),
        None => format!("{line} {sum:08x}"),
    }
}

/// The line before its checksum was added; `None` where there is none that matches.
#[must_use]
pub fn without_line_sum(stored: &str) -> Option<String> {
    let (rest, object) = stored.strip_suffix("\"}").map_or((stored, false), |rest| (rest, true));
    let (rest, sum) = rest.split_at_checked(rest.len().checked_sub(LINE_DIGITS)?)?;
    let line = match object {
        true => format!("{}}}", rest.strip_suffix(LINE_KEY)?),
        false => rest.strip_suffix(' ')?.to_owned(),
    };
    (format!("{:08x}", crc32fast::hash(line.as_bytes())) == sum).then_some(line)
}

/// A line that is a JSON object, before its checksum was added; as stored if it has none.
///
/// # Errors
/// When the checksum does not match.
pub fn object_without_sum(stored: &str) -> Result<Cow<'_, str>, Damaged> {
    match without_line_sum(stored) {
        Some(line) => Ok(line.into()),
        None if stored.contains(LINE_KEY) => Err(Damaged),
        None => Ok(stored.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_with_a_flipped_bit_is_refused_or_equal() {
        let json = serde_json::to_string_pretty(&serde_json::json!({ "seconds": 1.5, "record": [1, { "a": "b" }] }));
        let json = json.expect("JSON");
        let stored = with_checksum(&json);
        assert_eq!(without_checksum(&stored).as_deref(), Ok(&json[..]));
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        for bit in 0..8 * stored.len() {
            let mut bytes = stored.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let Ok(found) = without_checksum(&text) else { continue };
            let Ok(mut found) = serde_json::from_str::<serde_json::Value>(&found) else { continue };
            // A damaged key of the checksum is one key more, which readers ignore or refuse.
            if let Some(object) = found.as_object_mut() {
                object.retain(|key, _| value.get(key).is_some());
            }
            assert_eq!(found, value, "bit {bit}");
        }
    }

    #[test]
    fn an_object_with_a_flipped_bit_is_refused_or_equal() {
        let line = "{\"epoch\":1,\"loss\":0.5}";
        let stored = with_line_sum(line);
        assert_eq!(object_without_sum(&stored).as_deref(), Ok(line));
        assert_eq!(object_without_sum(line).as_deref(), Ok(line));
        for bit in 0..8 * stored.len() {
            let mut bytes = stored.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let Ok(found) = object_without_sum(&text) else { continue };
            let Ok(found) = serde_json::from_str::<serde_json::Value>(&found) else { continue };
            assert_eq!((&found["epoch"], &found["loss"]), (&1.into(), &0.5.into()), "bit {bit}");
        }
    }

    #[test]
    fn documents_without_a_checksum_are_read() {
        for text in ["{}\n", "[\n  1\n]\n", "{\n  \"a\": 1\n}\n", ""] {
            assert_eq!(without_checksum(text).as_deref(), Ok(text));
        }
        assert_eq!(with_checksum("[]"), "[]\n");
    }
}
