//! Formatting of numbers and of bytes from files for messages.

/// Separates the digits of an integer into groups of three.
///
/// ```
/// assert_eq!(fsbench::text::grouped("1234567"), "1,234,567");
/// ```
#[must_use]
pub fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The first `limit` bytes as text for a message. Control characters and invalid UTF-8 are replaced.
///
/// ```
/// assert_eq!(fsbench::text::excerpt(b"a\tbc", 3), "a\u{fffd}b");
/// ```
#[must_use]
pub fn excerpt(bytes: &[u8], limit: usize) -> String {
    let bytes = &bytes[..bytes.len().min(limit)];
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
