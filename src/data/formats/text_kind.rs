//! What a text holds, by its lines: samples in one of several forms, or positions alone.

use std::fmt;

use shakmaty::uci::UciMove;

/// A form of text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Lines `FEN,score,move`.
    Samples,
    /// Lines `FEN | score | result` or `FEN [result] score`.
    BulletText,
    /// Stockfish's `.plain`.
    Plain,
    /// EPD or FENs with results.
    Epd,
    /// Lines `FEN,score,result` of c-chess-cli.
    CChessCli,
    /// FENs or EPD without scores or results.
    Positions,
}

impl fmt::Display for TextKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TextKind::Samples => "lines FEN,score,move (text)",
            TextKind::BulletText => "bullet's text, lines `FEN | score | result` (bullet-text)",
            TextKind::Plain => "Stockfish's .plain (plain)",
            TextKind::Epd => "EPD with results (epd)",
            TextKind::CChessCli => "c-chess-cli's lines FEN,score,result (c-chess-cli)",
            TextKind::Positions => "a list of positions without scores (FEN or EPD)",
        })
    }
}

/// Lines that are inspected.
const LINES: usize = 32;

/// The form of a text, by its first lines. One of our own samples decides.
pub fn of_text(beginning: &[u8]) -> Option<TextKind> {
    let mut found = None;
    for line in beginning.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES) {
        match of_line(line) {
            Some(TextKind::Samples) => return Some(TextKind::Samples),
            kind => found = found.or(kind),
        }
    }
    let mut lines = beginning.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    found.or_else(|| lines.next().is_some_and(begins_as_sample).then_some(TextKind::Samples))
}

/// The form of a line.
pub fn of_line(line: &[u8]) -> Option<TextKind> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let line = std::str::from_utf8(line).ok()?;
    if is_header(line) {
        return Some(TextKind::CChessCli);
    }
    if line.strip_prefix("fen ").is_some_and(begins_with_board) {
        return Some(TextKind::Plain);
    }
    if !begins_with_board(line) {
        return None;
    }
    if line.contains('|') {
        return Some(TextKind::BulletText);
    }
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    if let [_, score, last] = columns[..] {
        if last.is_empty() || UciMove::from_ascii(last.as_bytes()).is_ok() {
            return Some(TextKind::Samples);
        }
        let is_result = ["0", "1", "2", "-1", "0.0", "0.5", "1.0"].contains(&last);
        return (is_result && score.parse::<f32>().is_ok()).then_some(TextKind::CChessCli);
    }
    if let Some((_, rest)) = line.split_once(']').filter(|_| line.contains('[')) {
        return Some(if rest.trim().is_empty() { TextKind::Epd } else { TextKind::BulletText });
    }
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if columns.len() > 1 && !line.contains('"') || !matches!(fields.get(1), Some(&("w" | "b"))) {
        return None;
    }
    let has_result = ["1-0", "0-1", "1/2-1/2"].iter().any(|result| line.contains(result));
    Some(if has_result { TextKind::Epd } else { TextKind::Positions })
}

/// What a line is instead of the form that was asked for, whose lines `form` shows; else `otherwise`.
pub fn other_form(line: &[u8], (expected, form): (TextKind, &str), otherwise: String) -> String {
    match of_line(line) {
        Some(kind) if kind != expected => format!("not {form}: this is {kind}"),
        _ => otherwise,
    }
}

/// Whether a line is the header of columns that begin with the FEN.
pub fn begins_as_header(line: &[u8]) -> bool {
    memchr::memchr(b',', line).is_some_and(|comma| line[..comma].trim_ascii().eq_ignore_ascii_case(b"fen"))
}

/// Whether a line is the header that c-chess-cli writes.
fn is_header(line: &str) -> bool {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let [fen, _, result] = columns[..] else { return false };
    fen.eq_ignore_ascii_case("fen") && result.eq_ignore_ascii_case("result")
}

/// Whether a line begins with the eight ranks of a FEN.
fn begins_with_board(line: &str) -> bool {
    let board = line.split([' ', '\t', '|', ',']).next().unwrap_or_default();
    board.matches('/').count() == 7 && board.bytes().all(|byte| b"pnbrqkPNBRQK12345678/".contains(&byte))
}

/// Whether a line begins as `FEN,score,move` does, with eight ranks before a comma.
fn begins_as_sample(line: &[u8]) -> bool {
    let Some(comma) = memchr::memchr(b',', line) else { return false };
    let ranks = line[..comma].trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    memchr::memchr_iter(b'/', ranks).count() == 7
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    #[test]
    fn texts_are_recognised_by_their_lines() {
        let check = |text: &str, expected: Option<TextKind>| {
            assert_eq!(of_text(text.as_bytes()), expected, "{text}");
        };
        let lines = |rest: &str| format!("{START}{rest}\n{START}{rest}\n");
        check(&lines(" | 35 | 1.0"), Some(TextKind::BulletText));
        check(&lines("|-35|0-1"), Some(TextKind::BulletText));
        check(&format!("\u{feff}\r\n{START} | 35 | 0.5\r\n"), Some(TextKind::BulletText));
        check(&lines(" [0.5] 12"), Some(TextKind::BulletText));
        check(&lines(" [1.0]"), Some(TextKind::Epd));
        check(&lines(" c9 \"1-0\";"), Some(TextKind::Epd));
        check(&lines("; c9 \"1/2-1/2\", note;"), Some(TextKind::Epd));
        check(&lines(""), Some(TextKind::Positions));
        check(&lines(" bm e4; id \"a, b\";"), Some(TextKind::Positions));
        for result in ["0", "1", "2", " 1", "0.5"] {
            check(&lines(&format!(",35,{result}")), Some(TextKind::CChessCli));
        }
        check(&format!("FEN,Eval,Result\n{START},35,1\n"), Some(TextKind::CChessCli));
        check(&format!("fen,score,move\n{START},35,e2e4\n"), Some(TextKind::Samples));
        check(&format!("fen {START}\nmove e2e4\nscore 54\nply 0\nresult 1\ne\n"), Some(TextKind::Plain));
        // Our own, also where some lines are broken, and games.
        for ours in [",35,e2e4", ",,", ",35,", ",#-3,e7e8q", ",,0000"] {
            check(&lines(ours), Some(TextKind::Samples));
        }
        check(&format!("{START} | 3 | 1.0\n{START},35,e2e4\n"), Some(TextKind::Samples));
        check(&format!("{START},1,knight\n"), Some(TextKind::Samples));
        for other in ["[Event \"a/b/c/d/e/f/g/h\"]\n", "1. e4 { a | b } e5 *\n", "a/b/c/d/e/f/g/h w - -", ""] {
            check(other, None);
        }
    }
}
