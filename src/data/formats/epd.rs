//! EPD or FENs with the game's result from White's point of view, as sets for tuning have it: in an operation such as
//! `c9 "1-0";`, or in brackets, `[0.5]`. There are no scores, no moves and no games.

use shakmaty::Position as _;

use super::ScoreUnit;
use super::format_table::{FormatTable, GameRule, holds_all};
use super::lines::{self, TextError, parse_position, record_of, trimmed, white_result};
use super::packed_position::result_for;
use super::text_kind::{TextKind, of_text};
use crate::data::{GameResult, Record, Sample};

pub const FORMAT: FormatTable = FormatTable {
    name: "epd",
    endings: &["epd"],
    recognises: |beginning| of_text(beginning) == Some(TextKind::Epd),
    is_text: true,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::Unknown,
    needs_result: false,
    read: Some(|reader, path, sender| lines::read(reader, path, sender, parse_line)),
    adapt: holds_all,
    encoder: None,
};

/// Splits the FEN, of four fields or six, from what stands behind it.
fn split_fen(line: &str) -> (&str, &str) {
    let mut end = 0;
    for field in 0..6 {
        let rest = &line[end..];
        let begins = end + rest.len() - rest.trim_start().len();
        let length =
            line[begins..].find(|byte: char| byte.is_whitespace() || byte == ';').unwrap_or(line.len() - begins);
        let is_counter = line[begins..begins + length].bytes().all(|byte| byte.is_ascii_digit()) && length > 0;
        if field >= 4 && !is_counter {
            break;
        }
        end = begins + length;
    }
    line.split_at(end)
}

/// The result among the operations of a line, if it is unambiguous.
fn result_in(operations: &str) -> Result<GameResult, String> {
    let mut found = Vec::new();
    if let Some((_, rest)) = operations.split_once('[')
        && let Some((inside, _)) = rest.split_once(']')
    {
        found.extend(white_result(inside.trim()));
    } else {
        let words = operations.split(|character: char| character.is_whitespace() || "\";,".contains(character));
        found.extend(words.filter(|word| word.contains('-')).filter_map(white_result));
    }
    found.dedup();
    match found[..] {
        [result] => Ok(result),
        [] => Err("there is no result, such as c9 \"1-0\"; or [0.5]".into()),
        _ => Err("there are several results".into()),
    }
}

/// Parses a line's sample; `None` for an empty line.
fn parse_line(line: &[u8]) -> Result<Option<Record>, TextError> {
    let line = trimmed(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(line)
        .map_err(|error| TextError::at(error.valid_up_to(), "malformed", "this is no text in UTF-8".into()))?;
    let (fen, operations) = split_fen(text);
    let (position, ply) = parse_position(fen.as_bytes(), 0)?;
    let white = result_in(operations).map_err(|message| TextError::at(fen.len(), "result", message))?;
    let result = Some(result_for(position.turn(), white));
    let sample = Sample { position, game: 0, ply, mv: None, score: None, result };
    record_of(&sample, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLACK: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";

    #[test]
    fn results_are_whites() {
        for rest in [
            " c9 \"1-0\";",
            " 0 1 c9 \"1-0\";",
            " bm e5; c9 \"1-0\"; id \"a, b\";",
            " [1.0]",
            " 0 1 [1-0]",
            "; c9 \"1-0\"",
        ] {
            let record = parse_line(format!("{BLACK}{rest}\r").as_bytes()).expect("a sample").expect("not empty");
            assert_eq!((record.score(), record.result()), (None, Some(GameResult::Loss)), "{rest}");
        }
        let drawn = parse_line(format!("{BLACK} c9 \"1/2-1/2\";").as_bytes()).expect("a sample").expect("not empty");
        assert_eq!(drawn.result(), Some(GameResult::Draw));
    }

    #[test]
    fn lines_without_one_result_are_malformed() {
        for (rest, message) in [("", "no result"), (" bm e5;", "no result"), (" c9 \"1-0\"; c8 \"0-1\";", "several")] {
            let error = parse_line(format!("{BLACK}{rest}").as_bytes()).expect_err("malformed");
            assert!(error.message.contains(message), "{error:?}");
        }
        assert!(parse_line(b"x y z").is_err());
        assert!(parse_line(b"8/8/8/8/8/8/8/8 w - - c9 \"1-0\";").is_err());
    }
}
