//! bullet's text: lines `FEN | score | result`, the score in centipawns, both from White's point of view; the result is
//! 1.0, 0.5 or 0.0, or as in PGN. Lines `FEN [result] score` of other tools are read, too. The ply comes from the FEN's
//! counters. There are no moves and no game numbers.

use std::fmt::Write as _;

use shakmaty::Position as _;

use super::ScoreUnit;
use super::format_table::{FormatTable, GameRule};
use super::lines::{
    self, TextEncoder, TextError, excerpt, parse_position, parse_score, record_of, trimmed, white_result,
};
use super::omissions::{OmissionCounter, OmittedField, OmittedSample};
use super::packed_position::{result_for, score_for};
use super::text_kind::{TextKind, of_text, other_form};
use crate::chess::fen_of;
use crate::data::{GameResult, Record, RecordError, Sample};

pub const FORMAT: FormatTable = FormatTable {
    name: "bullet-text",
    endings: &[],
    recognises: |beginning| of_text(beginning) == Some(TextKind::BulletText),
    is_text: true,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::Inferred,
    needs_result: true,
    read: Some(|reader, path, sender| lines::read(reader, path, sender, parse_line)),
    adapt,
    encoder: Some(|| TextEncoder::boxed(append_line)),
};

/// A line's FEN, score and result, each with its offset.
fn fields(line: &str) -> Option<[(usize, &str); 3]> {
    let offset = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize;
    let (fen, score, result) = match line.split_once('|') {
        Some((fen, rest)) => {
            let (score, result) = rest.split_once('|')?;
            (fen, score, result)
        }
        None => {
            let (fen, rest) = line.split_once('[')?;
            let (result, score) = rest.split_once(']')?;
            (fen, score, result)
        }
    };
    Some([fen, score, result].map(|part| (offset(part), part)))
}

/// Parses a line's sample; `None` for an empty line.
fn parse_line(line: &[u8]) -> Result<Option<Record>, TextError> {
    let line = trimmed(line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let fields = std::str::from_utf8(line).ok().and_then(fields);
    let Some([(fen_at, fen), (score_at, score), (result_at, result)]) = fields else {
        let otherwise = "not FEN | score | result: three fields separated by |".into();
        let form = (TextKind::BulletText, "FEN | score | result");
        return Err(TextError::at(0, "not three fields", other_form(line, form, otherwise)));
    };
    let (position, ply) = parse_position(fen.as_bytes(), fen_at)?;
    let score = parse_score(score.as_bytes()).map_err(|message| TextError::at(score_at, "score", message))?;
    let white = white_result(result.trim()).ok_or_else(|| {
        let message = format!("`{}` is not a result: give 1.0, 0.5 or 0.0", excerpt(result.as_bytes()));
        TextError::at(result_at, "result", message)
    })?;
    let turn = position.turn();
    let score = Some(score_for(turn, score));
    let result = Some(result_for(turn, white));
    let sample = Sample { position, game: 0, ply, mv: None, score, result };
    record_of(&sample, fen_at)
}

fn adapt(record: Record, counter: &mut OmissionCounter) -> Option<Record> {
    if record.score().is_none() {
        return counter.omit_sample(OmittedSample::NoScore);
    }
    counter.omit_field(OmittedField::Move, record.has_move());
    // A FEN derives the ply's parity from the side to move.
    counter.omit_field(OmittedField::Ply, record.ply().0 % 2 != u16::from(record.turn().is_black()));
    Some(record)
}

/// Appends a sample's line to `out`.
fn append_line(record: &Record, out: &mut String) -> Result<(), RecordError> {
    let sample = record.unpack()?;
    let (Some(score), Some(result)) = (sample.score, sample.result) else { return Ok(()) };
    let turn = sample.position.turn();
    let fen = fen_of(&sample.position);
    let score = score_for(turn, score);
    let result = match result_for(turn, result) {
        GameResult::Win => "1.0",
        GameResult::Draw => "0.5",
        GameResult::Loss => "0.0",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{fen} | {score} | {result}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::formats::lines::tests::check_malformed;

    const BLACK: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";

    #[test]
    fn lines_are_from_whites_point_of_view() {
        let check = |line: &str, written: &str| {
            let record = parse_line(line.as_bytes()).expect("a sample").expect("not empty");
            assert_eq!(record.check(), Ok(()));
            // Black is to move.
            assert_eq!((record.score(), record.result()), (Some(-35), Some(GameResult::Loss)), "{line}");
            assert_eq!(record.ply().0, 1);
            let mut out = String::new();
            append_line(&record, &mut out).expect("legal");
            assert_eq!(out, format!("{written}\n"));
        };
        let written = format!("{BLACK} | 35 | 1.0");
        for line in [" | 35 | 1.0", "|35|1-0", " [1.0] 35", " [1-0] 35\r", " | 35 | 1"] {
            check(&format!("{BLACK}{line}"), &written);
        }
        assert!(parse_line(b" \r").expect("empty").is_none());
    }

    #[test]
    fn malformed_lines_have_a_column_and_a_message() {
        let check = |line: &str, column: usize, message: &str| {
            check_malformed(parse_line, line, [1, column], message);
        };
        check("x", 1, "three fields");
        check(&format!("{BLACK} | 35"), 1, "three fields");
        check(&format!("{BLACK},35,e7e5"), 1, "this is lines FEN,score,move");
        check("x | 1 | 1.0", 1, "not a FEN");
        check(&format!("{BLACK} | 3.5 | 1.0"), BLACK.len() + 3, "not a score");
        check(&format!("{BLACK} | | 1.0"), BLACK.len() + 3, "not a score");
        check(&format!("{BLACK} | 35 | 0.3"), BLACK.len() + 8, "not a result");
        check(&format!("{BLACK} [2] 35"), BLACK.len() + 3, "not a result");
    }
}
