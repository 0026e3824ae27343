//! Formats of other programs that are not read: they are recognised by their content, so that none is taken for another
//! format, and named with a way to go on.

use std::fmt;

use super::text;

/// A format of another program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    /// Lines `FEN | score | result`.
    BulletText,
    /// Lines `FEN [result] score`.
    BracketedResult,
    /// Stockfish's `.plain`.
    Plain,
    /// EPD with results in an operation.
    EpdResults,
    /// FENs or EPD without scores or results.
    Positions,
    /// c-chess-cli's `FEN,Eval,Result`.
    CChessCli,
}

impl ForeignFormat {
    const fn name(self) -> &'static str {
        match self {
            ForeignFormat::BulletText => "bullet's text, `FEN | score | result`",
            ForeignFormat::BracketedResult => "text of lines `FEN [result] score`",
            ForeignFormat::Plain => "Stockfish's .plain format",
            ForeignFormat::EpdResults => "EPD with results",
            ForeignFormat::Positions => "a list of positions without scores (FEN or EPD)",
            ForeignFormat::CChessCli => "c-chess-cli's `FEN,Eval,Result`",
        }
    }

    /// How its data can be used.
    const fn remedy(self) -> &'static str {
        match self {
            ForeignFormat::BulletText => "convert it to bulletformat with `bullet-utils convert`",
            ForeignFormat::Plain => "convert it to a .binpack with the `convert` of Stockfish's tools",
            ForeignFormat::Positions => {
                "write two commas behind every FEN to have its positions as samples without a score and a move"
            }
            ForeignFormat::BracketedResult | ForeignFormat::EpdResults | ForeignFormat::CChessCli => {
                "rewrite its lines as `FEN | score | result`, both from White's point of view, and convert that to \
                 bulletformat with `bullet-utils convert`"
            }
        }
    }
}

impl fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, which fsbench does not read; {}", self.name(), self.remedy())
    }
}

/// Lines that are inspected.
pub const LINES: usize = 32;

/// The foreign format of a text by its first lines, none of which is one of our samples.
pub fn of_text(beginning: &[u8]) -> Option<ForeignFormat> {
    let lines = || beginning.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES);
    if lines().any(text::is_sample) {
        return None;
    }
    lines().find_map(of_line)
}

/// The foreign format of a line.
pub fn of_line(line: &[u8]) -> Option<ForeignFormat> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let line = std::str::from_utf8(line).ok()?;
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    if let [fen, _, result] = columns[..]
        && fen.eq_ignore_ascii_case("fen")
        && result.eq_ignore_ascii_case("result")
    {
        return Some(ForeignFormat::CChessCli);
    }
    if line.strip_prefix("fen ").is_some_and(begins_with_board) {
        return Some(ForeignFormat::Plain);
    }
    if !begins_with_board(line) {
        return None;
    }
    if line.contains('|') {
        return Some(ForeignFormat::BulletText);
    }
    if let [_, score, result] = columns[..] {
        let is_result = ["0", "1", "2", "-1", "0.0", "0.5", "1.0"].contains(&result);
        return (is_result && score.parse::<f32>().is_ok()).then_some(ForeignFormat::CChessCli);
    }
    if line.contains('[') {
        return Some(ForeignFormat::BracketedResult);
    }
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if columns.len() > 1 && !line.contains('"') || !matches!(fields.get(1), Some(&("w" | "b"))) {
        return None;
    }
    let has_result = ["1-0", "0-1", "1/2-1/2"].iter().any(|result| line.contains(result));
    Some(if has_result { ForeignFormat::EpdResults } else { ForeignFormat::Positions })
}

/// Whether a line begins with the eight ranks of a FEN.
fn begins_with_board(line: &str) -> bool {
    let board = line.split([' ', '\t', '|', ',']).next().unwrap_or_default();
    board.matches('/').count() == 7 && board.bytes().all(|byte| b"pnbrqkPNBRQK12345678/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    #[test]
    fn texts_are_recognised_by_their_lines() {
        let check = |text: &str, expected: Option<ForeignFormat>| {
            assert_eq!(of_text(text.as_bytes()), expected, "{text}");
        };
        let lines = |rest: &str| format!("{START}{rest}\n{START}{rest}\n");
        check(&lines(" | 35 | 1.0"), Some(ForeignFormat::BulletText));
        check(&lines("|-35|0-1"), Some(ForeignFormat::BulletText));
        check(&format!("\u{feff}\r\n{START} | 35 | 0.5\r\n"), Some(ForeignFormat::BulletText));
        check(&lines(" [0.5] 12"), Some(ForeignFormat::BracketedResult));
        check(&lines(" [1.0]"), Some(ForeignFormat::BracketedResult));
        check(&lines(" c9 \"1-0\";"), Some(ForeignFormat::EpdResults));
        check(&lines("; c9 \"1/2-1/2\", note;"), Some(ForeignFormat::EpdResults));
        check(&lines(""), Some(ForeignFormat::Positions));
        check(&lines(" bm e4; id \"a, b\";"), Some(ForeignFormat::Positions));
        for result in ["0", "1", "2", " 1", "0.5"] {
            check(&lines(&format!(",35,{result}")), Some(ForeignFormat::CChessCli));
        }
        check(&format!("FEN,Eval,Result\n{START},35,1\n"), Some(ForeignFormat::CChessCli));
        check(&format!("fen {START}\nmove e2e4\nscore 54\nply 0\nresult 1\ne\n"), Some(ForeignFormat::Plain));
        // Our own, also where some lines are broken, and games.
        for ours in [",35,e2e4", ",,", ",35,", ",#-3,e7e8q", ",,0000"] {
            check(&lines(ours), None);
        }
        check(&format!("{START} | 3 | 1.0\n{START},35,e2e4\n"), None);
        for other in ["[Event \"a/b/c/d/e/f/g/h\"]\n", "1. e4 { a | b } e5 *\n", "a/b/c/d/e/f/g/h w - -", ""] {
            check(other, None);
        }
    }
}
