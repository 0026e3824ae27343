//! c-chess-cli's samples: lines `FEN,score,result` from the side to move's point of view, the score in centipawns, the
//! result 0 for lost, 1 for drawn, 2 for won. Another number for a result shows another coding: the file is refused.
//! The first line may be a header. The ply comes from the FEN's counters. There are no moves and no game numbers.

use super::ScoreUnit;
use super::format_table::{FormatTable, GameRule, holds_all};
use super::lines::{self, TextError, excerpt, parse_position, parse_score, record_of, trimmed};
use super::text_kind::{TextKind, begins_as_header, of_text, other_form};
use crate::data::{GameResult, Record, Sample};

pub const FORMAT: FormatTable = FormatTable {
    name: "c-chess-cli",
    endings: &[],
    recognises: |beginning| of_text(beginning) == Some(TextKind::CChessCli),
    is_text: true,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::Inferred,
    needs_result: true,
    read: Some(|reader, path, sender| lines::read(reader, path, sender, parse_line)),
    adapt: holds_all,
    encoder: None,
};

/// How error messages show a line.
const FORM: (TextKind, &str) = (TextKind::CChessCli, "FEN,score,result");

/// Parses a line's sample; `None` for an empty line and the header.
fn parse_line(line: &[u8]) -> Result<Option<Record>, TextError> {
    let line = trimmed(line);
    if line.trim_ascii().is_empty() || begins_as_header(line) {
        return Ok(None);
    }
    let mut commas = memchr::memchr_iter(b',', line);
    let (Some(first), Some(second), None) = (commas.next(), commas.next(), commas.next()) else {
        let otherwise = "not FEN,score,result: three fields separated by commas".into();
        return Err(TextError::at(0, "not three fields", other_form(line, FORM, otherwise)));
    };
    let (position, ply) = parse_position(&line[..first], 0)?;
    let score = parse_score(&line[first + 1..second]).map_err(|message| TextError::at(first + 1, "score", message))?;
    let result = match line[second + 1..].trim_ascii() {
        b"0" => GameResult::Loss,
        b"1" => GameResult::Draw,
        b"2" => GameResult::Win,
        other if std::str::from_utf8(other).is_ok_and(|other| other.parse::<f32>().is_ok()) => {
            let message = format!(
                "the result `{}` is in another coding than c-chess-cli's, which is 0 (lost), 1 (drawn) or 2 (won) by \
                 the side to move, so all results may mean something else; write them in that coding",
                excerpt(other)
            );
            return Err(TextError { is_of_whole_file: true, ..TextError::at(second + 1, "result", message) });
        }
        other => {
            let otherwise = format!("`{}` is not a result: 0 (lost), 1 (drawn) or 2 (won)", excerpt(other));
            return Err(TextError::at(second + 1, "result", other_form(line, FORM, otherwise)));
        }
    };
    let sample = Sample { position, game: 0, ply, mv: None, score: Some(score), result: Some(result) };
    record_of(&sample, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::formats::lines::tests::check_malformed;

    const BLACK: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";

    #[test]
    fn lines_are_from_the_movers_point_of_view() {
        for (result, expected) in [("0", GameResult::Loss), ("1", GameResult::Draw), (" 2\r", GameResult::Win)] {
            let record = parse_line(format!("{BLACK},-35,{result}").as_bytes()).expect("a sample").expect("not empty");
            assert_eq!((record.score(), record.result()), (Some(-35), Some(expected)));
            assert_eq!(record.ply().0, 1);
        }
        assert!(parse_line(b"FEN,Eval,Result").expect("a header").is_none());
        assert!(parse_line(b"fen,score,wdl\r").expect("a header").is_none());
    }

    #[test]
    fn another_number_for_a_result_condemns_the_file() {
        for result in ["-1", "0.5", "1.0", "3"] {
            let error = parse_line(format!("{BLACK},35,{result}").as_bytes()).expect_err("another coding");
            assert!(error.is_of_whole_file && error.message.contains("0 (lost), 1 (drawn) or 2 (won)"), "{error:?}");
        }
        let error = parse_line(format!("{BLACK},35,x").as_bytes()).expect_err("malformed");
        assert!(!error.is_of_whole_file, "{error:?}");
    }

    #[test]
    fn malformed_lines_have_a_column_and_a_message() {
        let check = |line: &str, column: usize, message: &str| {
            check_malformed(parse_line, line, [1, column], message);
        };
        check("x", 1, "three fields");
        check(&format!("{BLACK} | 35 | 1.0"), 1, "this is bullet's text");
        check(&format!("{BLACK},35,e7e5"), BLACK.len() + 5, "this is lines FEN,score,move");
        check(&format!("{BLACK},3.5,1"), BLACK.len() + 2, "not a score");
        check(&format!("{BLACK},35,0.5"), BLACK.len() + 5, "another coding");
        check(&format!("{BLACK},35,won"), BLACK.len() + 5, "not a result");
    }
}
