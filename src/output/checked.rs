//! Checksums of text files that fsbench alone reads. A JSON document stands in an envelope, which other programs read
//! as JSON: `{"checksum":"…","content":…}`, the content's BLAKE3 hash in hexadecimal before the content. A line of a
//! journal ends with its CRC-32.

use thiserror::Error;

/// A checksum is missing or does not match.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("its checksum does not match: it is damaged or was edited")]
pub struct Damaged;

const BEFORE_CHECKSUM: &str = "{\"checksum\":\"";
const BEFORE_CONTENT: &str = "\",\"content\":";

/// A JSON document in its envelope.
#[must_use]
pub fn in_envelope(content: &str) -> String {
    envelope(content, blake3::hash(content.as_bytes()))
}

/// The document in an envelope.
///
/// # Errors
/// When there is no envelope, or its checksum does not match.
pub fn content_of(envelope: &str) -> Result<&str, Damaged> {
    let (content, checksum) = open_envelope(envelope)?;
    if blake3::hash(content.as_bytes()).to_hex().as_str() == checksum { Ok(content) } else { Err(Damaged) }
}

/// A JSON document in an envelope with the checksum of more than the document.
#[must_use]
pub fn envelope(content: &str, checksum: blake3::Hash) -> String {
    format!("{BEFORE_CHECKSUM}{}{BEFORE_CONTENT}{content}}}", checksum.to_hex())
}

/// The document in an envelope, and its checksum, which is not compared.
///
/// # Errors
/// When there is no envelope.
pub fn open_envelope(envelope: &str) -> Result<(&str, &str), Damaged> {
    let inside = envelope.strip_prefix(BEFORE_CHECKSUM).and_then(|rest| rest.strip_suffix('}')).ok_or(Damaged)?;
    let (checksum, content) = inside.split_once(BEFORE_CONTENT).ok_or(Damaged)?;
    Ok((content, checksum))
}

/// Hexadecimal digits of a line's checksum.
const LINE_DIGITS: usize = 8;

/// A line as it is stored: with its CRC-32 as its last word.
#[must_use]
pub fn with_line_sum(line: &str) -> String {
    format!("{line} {:08x}", crc32fast::hash(line.as_bytes()))
}

/// The line before its checksum was added.
///
/// # Errors
/// When it has no checksum that matches.
pub fn without_line_sum(stored: &str) -> Result<&str, Damaged> {
    let end = stored.len().checked_sub(LINE_DIGITS).ok_or(Damaged)?;
    let (rest, sum) = stored.split_at_checked(end).ok_or(Damaged)?;
    let line = rest.strip_suffix(' ').ok_or(Damaged)?;
    if format!("{:08x}", crc32fast::hash(line.as_bytes())) == sum { Ok(line) } else { Err(Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text with one bit of `stored` flipped, as far as it is UTF-8.
    fn flipped(stored: &str) -> impl Iterator<Item = String> {
        (0..8 * stored.len()).filter_map(|bit| {
            let mut bytes = stored.as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            String::from_utf8(bytes).ok()
        })
    }

    #[test]
    fn a_document_with_a_flipped_bit_is_refused() {
        let json = serde_json::json!({ "seconds": 1.5, "record": [1, { "a": "b" }] });
        for content in [&*serde_json::to_string_pretty(&json).expect("JSON"), "[]", "\"\",\"content\":\""] {
            let stored = in_envelope(content);
            assert_eq!(content_of(&stored), Ok(content));
            assert!(flipped(&stored).all(|text| content_of(&text).is_err()), "{stored}");
            assert_eq!(content_of(content), Err(Damaged));
        }
        let read: serde_json::Value = serde_json::from_str(&in_envelope(&json.to_string())).expect("JSON");
        assert_eq!(read["content"], json);
    }

    #[test]
    fn a_line_with_a_flipped_bit_is_refused() {
        for line in ["{\"epoch\":1,\"loss\":0.5}", "7 -31 e2e4", ""] {
            let stored = with_line_sum(line);
            assert_eq!(without_line_sum(&stored), Ok(line));
            assert!(flipped(&stored).all(|text| without_line_sum(&text).is_err()), "{stored}");
            assert_eq!(without_line_sum(line), Err(Damaged));
        }
    }
}
