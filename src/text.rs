//! Formatting of numbers, times, names, paragraphs and bytes from files for messages and tables.

use std::time::SystemTime;

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

/// A time to the second, in UTC.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_709_210_096);
/// assert_eq!(fsbench::text::utc(time), "2024-02-29 12:34:56 UTC");
/// ```
#[must_use]
pub fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let hour = seconds / 3600 % 24;
    let minute = seconds / 60 % 60;
    let second = seconds % 60;
    // Years that begin in March end with the leap day (Hinnant, "chrono-compatible low-level date algorithms").
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Names one after the other; in quotation marks if a comma in one of them would be taken for their end.
///
/// ```
/// assert_eq!(fsbench::text::listed(&["a", "b"]), "a, b");
/// assert_eq!(fsbench::text::listed(&["a", "b, c"]), r#""a", "b, c""#);
/// ```
#[must_use]
pub fn listed(names: &[&str]) -> String {
    if names.iter().any(|name| name.contains(',')) {
        names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    } else {
        names.join(", ")
    }
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
