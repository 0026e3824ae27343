//! Formatting of numbers, names, paragraphs and bytes from files for messages and tables.

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

/// The names, numbered from 1 where several are equal.
///
/// ```
/// assert_eq!(fsbench::text::distinct_names(&["a", "b", "a"]), ["a #1", "b", "a #2"]);
/// ```
#[must_use]
pub fn distinct_names(names: &[&str]) -> Vec<String> {
    let equal = |others: &[&str], name: &str| others.iter().filter(|other| **other == name).count();
    let numbered = |(index, name): (usize, &&str)| match equal(names, name) {
        1 => (*name).to_owned(),
        _ => format!("{name} #{}", equal(&names[..index], name) + 1),
    };
    names.iter().enumerate().map(numbered).collect()
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

/// Wraps a text at `width` characters; longer words get a line of their own. The first line is indented by `first`
/// spaces, all others by `rest`.
///
/// ```
/// assert_eq!(fsbench::text::wrapped("one two three", 0, 2, 8), ["one two", "  three"]);
/// ```
#[must_use]
pub fn wrapped(text: &str, first: usize, rest: usize, width: usize) -> Vec<String> {
    let mut lines = vec![" ".repeat(first)];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let has_words = !lines[last].trim_start().is_empty();
        if has_words && lines[last].chars().count() + 1 + word.chars().count() > width {
            lines.push(" ".repeat(rest) + word);
            continue;
        }
        if has_words {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}
