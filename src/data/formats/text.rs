//! Text: lines `FEN,score,move`. The score is in centipawns from the side to move's point of view, `#n` and `#-n` are
//! mates, empty is no score. The move is in UCI notation, castling as e1g1 or king takes rook (in Chess960 only the
//! latter, and the FEN's castling rights are the rooks' files); empty is no move. The ply comes from the FEN's counters.
//! There are no results and no game numbers. The first line may be a header.

use std::fmt::Write as _;

use shakmaty::uci::UciMove;

use super::ScoreUnit;
use super::format_table::{FormatTable, GameRule};
use super::lines::{self, TextEncoder, TextError, excerpt, parse_position, record_of, trimmed};
use super::omissions::{OmissionCounter, OmittedField};
use super::text_kind::{TextKind, begins_as_header, of_text, other_form};
use crate::chess::{fen_of, uci_move};
use crate::data::{Eval, Record, RecordError, Sample};

pub const FORMAT: FormatTable = FormatTable {
    name: "text",
    endings: &["txt", "csv", "text"],
    recognises: |beginning| of_text(beginning) == Some(TextKind::Samples),
    is_text: true,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::InferredWithoutResults,
    needs_result: false,
    read: Some(|reader, path, sender| lines::read(reader, path, sender, parse_line)),
    adapt,
    encoder: Some(|| TextEncoder::boxed(append_line)),
};

/// How error messages show a line.
const FORM: (TextKind, &str) = (TextKind::Samples, "FEN,score,move");

/// Parses a line's sample; `None` for an empty line and a header.
fn parse_line(line: &[u8]) -> Result<Option<Record>, TextError> {
    let line = trimmed(line);
    if line.trim_ascii().is_empty() || begins_as_header(line) {
        return Ok(None);
    }
    let mut commas = memchr::memchr_iter(b',', line);
    let (Some(first), Some(second), None) = (commas.next(), commas.next(), commas.next()) else {
        let otherwise = "not FEN,score,move: three fields separated by commas".into();
        return Err(TextError::at(0, "not three fields", other_form(line, FORM, otherwise)));
    };

    let (position, ply) = parse_position(&line[..first], 0)?;
    let score = parse_score(&line[first + 1..second]).map_err(|message| TextError::at(first + 1, "score", message))?;
    let uci = line[second + 1..].trim_ascii();
    let mv = match uci {
        b"" => None,
        _ => match UciMove::from_ascii(uci) {
            Ok(UciMove::Null) => None,
            Ok(mv) => Some(mv.to_move(&position).map_err(|_| {
                let message = format!("the move {} is illegal in the position", excerpt(uci));
                TextError::at(second + 1, "move", message)
            })?),
            Err(_) => {
                let otherwise = format!("`{}` is not a move in UCI notation (such as e2e4 or e7e8q)", excerpt(uci));
                return Err(TextError::at(second + 1, "move", other_form(line, FORM, otherwise)));
            }
        },
    };
    let sample = Sample { position, game: 0, ply, mv, score, result: None };
    record_of(&sample, 0)
}

/// A score or a mate; `None` if empty.
fn parse_score(text: &[u8]) -> Result<Option<i16>, String> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let Some(mate) = text.strip_prefix(b"#") else {
        return lines::parse_score(text).map(Some).map_err(|message| format!("{message}, #n or #-n"));
    };
    match std::str::from_utf8(mate).ok().and_then(|mate| mate.parse::<i32>().ok()) {
        Some(moves) if moves != 0 => Ok(Some(Eval::Mate(moves).centipawns())),
        _ => Err(format!("`{}` is not a score: a mate is #n or #-n", excerpt(text))),
    }
}

fn adapt(record: Record, counter: &mut OmissionCounter) -> Option<Record> {
    counter.omit_field(OmittedField::Result, record.result().is_some());
    // A FEN derives the ply's parity from the side to move.
    counter.omit_field(OmittedField::Ply, record.ply().0 % 2 != u16::from(record.turn().is_black()));
    Some(record)
}

/// Appends a sample's line to `out`.
///
/// # Errors
/// When the record's position or move is illegal.
fn append_line(record: &Record, out: &mut String) -> Result<(), RecordError> {
    let sample = record.unpack()?;
    out.push_str(&fen_of(&sample.position));
    out.push(',');
    // Writing to a string cannot fail.
    if let Some(score) = sample.score {
        let _ = match mate_in(score) {
            Some(moves) => write!(out, "#{moves}"),
            None => write!(out, "{score}"),
        };
    }
    out.push(',');
    if let Some(mv) = sample.mv {
        out.push_str(&uci_move(mv));
    }
    out.push('\n');
    Ok(())
}

/// The moves to mate that a score stands for, negative when getting mated; `None` for other scores.
fn mate_in(score: i16) -> Option<i32> {
    let score = i32::from(score);
    let moves = (Eval::MATE - score.abs()) / 2 * score.signum();
    (score.abs() > Eval::LARGEST && moves != 0 && i32::from(Eval::Mate(moves).centipawns()) == score).then_some(moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::formats::lines::tests::check_malformed;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    fn check(line: &str, expected: &str) {
        let record = parse_line(line.as_bytes()).expect("a sample").expect("not empty");
        assert_eq!(record.check(), Ok(()));
        let mut written = String::new();
        append_line(&record, &mut written).expect("legal");
        assert_eq!(written, format!("{expected}\n"));
    }

    #[test]
    fn lines_round_trip() {
        for rest in [",35,e2e4", ",-12,", ",,e2e4", ",,", ",#3,g1f3", ",#-999,g1f3", ",32767,e2e4"] {
            check(&format!("{START}{rest}"), &format!("{START}{rest}"));
        }
        check(&format!("{START}, 7 ,e2e4\r"), &format!("{START},7,e2e4"));
        check(&format!("{START},31998,0000"), &format!("{START},#1,"));
        let castling = "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 17";
        check(&format!("{castling},0,e8h8"), &format!("{castling},0,e8g8"));
        check(&format!("{castling},0,e8c8"), &format!("{castling},0,e8c8"));
        let chess960 = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 b GBgb - 3 17";
        check(&format!("{chess960},0,f8g8"), &format!("{chess960},0,f8g8"));
        check(&format!("{},0,f8e8", chess960.replace("GBgb", "KQkq")), &format!("{chess960},0,f8e8"));
        let pawn = "8/4P3/8/8/8/8/k7/2K5 w - - 0 40";
        check(&format!("{pawn},900,e7e8q"), &format!("{pawn},900,e7e8q"));
        let ep = "4k3/8/8/8/4Pp2/8/8/4K3 b - e3 0 9";
        check(&format!("{ep},1,f4e3"), &format!("{ep},1,f4e3"));
        assert!(parse_line(b" \r").expect("empty").is_none());
        assert!(parse_line(b"fen,score,move\r").expect("a header").is_none());
    }

    #[test]
    fn malformed_lines_have_a_column_and_a_message() {
        let check = |line: &str, column: usize, message: &str| {
            check_malformed(parse_line, line, [1, column], message);
        };
        check("x", 1, "three fields");
        check(&format!("{START},1,e2e4,5"), 1, "three fields");
        check("x,1,e2e4", 1, "not a FEN");
        check("8/8/8/8/8/8/8/8 w - - 0 1,1,e2e4", 1, "empty board");
        check(&format!("{START},1.5,e2e4"), 58, "not a score");
        check(&format!("{START},-32768,e2e4"), 58, "not a score");
        check(&format!("{START},#0,e2e4"), 58, "not a score");
        check(&format!("{START},1,e2e5"), 60, "illegal");
        check(&format!("{START},1,knight"), 60, "not a move");
        check(&START.replace("0 1", "0 99999,,"), 1, "move number");
    }
}
