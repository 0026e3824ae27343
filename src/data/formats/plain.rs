//! Stockfish's `.plain`: a sample is some lines, each a key and a value, and a line `e`:
//!
//! ```text
//! fen rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1
//! move e2e4
//! score 35
//! ply 0
//! result 1
//! e
//! ```
//!
//! Score and result (1, 0 or −1) are from the side to move's point of view, the score in internal units and 32002 for
//! none, as in a binpack, which Stockfish's tools make of such text. There are no game numbers.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use shakmaty::uci::UciMove;

use super::ScoreUnit;
use super::binpack::{NO_SCORE, clamp_no_score};
use super::block_queue::BlockSender;
use super::format_table::{FormatTable, GameRule};
use super::lines::{self, TextEncoder, TextError, derived_ply, excerpt, parse_board, parse_score, record_of, trimmed};
use super::omissions::{OmissionCounter, OmittedSample};
use super::text_kind::{TextKind, of_text};
use crate::chess::{fen_of, uci_move};
use crate::data::{DataError, GameResult, Record, RecordError, Sample};
use crate::units::Ply;

pub const FORMAT: FormatTable = FormatTable {
    name: "plain",
    endings: &["plain"],
    recognises: |beginning| of_text(beginning) == Some(TextKind::Plain),
    is_text: true,
    default_unit: ScoreUnit::STOCKFISH,
    games: GameRule::Inferred,
    needs_result: true,
    read: Some(read),
    adapt,
    encoder: Some(|| TextEncoder::boxed(append_entry)),
};

/// Lines that an entry may have; whatever is longer is malformed.
const MOST_LINES: usize = 64;

/// Sends the samples of a file; malformed ones are skipped and counted.
fn read(reader: Box<dyn Read + Send>, path: &Path, sender: &mut BlockSender) -> Result<(), DataError> {
    // The lines behind the last whole entry of the batches so far, and the number of the first of them.
    let mut rest: (u64, Vec<u8>) = (1, Vec::new());
    lines::for_each_batch(reader, path, sender, &mut |first, batch, sender| {
        let (begin, mut text) = std::mem::take(&mut rest);
        let begin = if text.is_empty() { first } else { begin };
        text.extend_from_slice(&batch);
        let entries = split_entries(&text, begin);
        let goes_on = lines::send_parsed(&entries.whole, parse_entry, sender)?;
        rest = (entries.next_line, entries.rest.to_vec());
        Ok(goes_on)
    })?;
    let (begin, text) = rest;
    if !text.trim_ascii().is_empty() {
        lines::send_parsed(&[(begin, &text)], parse_entry, sender)?;
    }
    Ok(())
}

/// The entries of a text.
struct Entries<'a> {
    /// Each with the number of its first line.
    whole: Vec<(u64, &'a [u8])>,
    /// What stands behind the last of them, and the number of its first line.
    rest: &'a [u8],
    next_line: u64,
}

/// Splits a text, whose first line has the given number, behind every line `e`, and where an entry is too long.
fn split_entries(text: &[u8], first: u64) -> Entries<'_> {
    let mut entries = Entries { whole: Vec::new(), rest: text, next_line: first };
    let mut begin = 0;
    let mut line_begin = 0;
    let mut number = first;
    for end in memchr::memchr_iter(b'\n', text) {
        number += 1;
        let is_end = text[line_begin..end].trim_ascii() == b"e";
        line_begin = end + 1;
        if is_end || number - entries.next_line >= MOST_LINES as u64 {
            entries.whole.push((entries.next_line, &text[begin..line_begin]));
            begin = line_begin;
            entries.next_line = number;
        }
    }
    entries.rest = &text[begin..];
    entries
}

/// The fields of an entry, each with its line and its offset there.
#[derive(Default)]
struct Fields<'a> {
    fen: Option<(usize, &'a [u8])>,
    mv: Option<(usize, &'a [u8])>,
    score: Option<(usize, &'a [u8])>,
    ply: Option<(usize, &'a [u8])>,
    result: Option<(usize, &'a [u8])>,
    has_end: bool,
}

fn fields(entry: &[u8]) -> Result<Fields<'_>, TextError> {
    let mut fields = Fields::default();
    for (number, line) in entry.split(|byte| *byte == b'\n').enumerate() {
        let line = trimmed(line).trim_ascii();
        let split = memchr::memchr(b' ', line).unwrap_or(line.len());
        let value = Some((number, line[split..].trim_ascii()));
        let field = match &line[..split] {
            b"fen" => &mut fields.fen,
            b"move" => &mut fields.mv,
            b"score" => &mut fields.score,
            b"ply" => &mut fields.ply,
            b"result" => &mut fields.result,
            b"e" => {
                fields.has_end = true;
                continue;
            }
            b"" => continue,
            _ => {
                let message = format!("`{}` is none of fen, move, score, ply, result and e", excerpt(line));
                return Err(TextError { line: number, ..TextError::at(0, "malformed", message) });
            }
        };
        if field.is_some() {
            let message = format!("a second `{}` before the sample's end", excerpt(&line[..split]));
            return Err(TextError { line: number, ..TextError::at(0, "malformed", message) });
        }
        *field = value;
    }
    Ok(fields)
}

/// Parses an entry; `None` for empty lines.
fn parse_entry(entry: &[u8]) -> Result<Option<Record>, TextError> {
    if entry.trim_ascii().is_empty() {
        return Ok(None);
    }
    let fields = fields(entry)?;
    let Some((fen_line, fen)) = fields.fen else {
        return Err(TextError::at(0, "malformed", "the sample has no line `fen`".into()));
    };
    if !fields.has_end {
        return Err(TextError::at(0, "malformed", "the sample has no line `e` at its end".into()));
    }
    let failure =
        |line: usize, reason: &'static str, message: String| TextError { line, ..TextError::at(0, reason, message) };
    let on_fen_line = |error| TextError { line: fen_line, ..error };
    let position = parse_board(fen, 0).map_err(on_fen_line)?;
    // The FEN's move number may be beyond any ply: a line `ply` says more.
    let ply = match fields.ply {
        None => derived_ply(&position, 0).map_err(on_fen_line)?,
        Some((line, ply)) => {
            let number = std::str::from_utf8(ply).ok().and_then(|ply| ply.parse().ok());
            Ply(number.ok_or_else(|| failure(line, "ply", format!("`{}` is not a ply", excerpt(ply))))?)
        }
    };
    let mut mv = None;
    if let Some((line, uci)) = fields.mv.filter(|(_, uci)| *uci != b"(none)" && *uci != b"0000") {
        let parsed = UciMove::from_ascii(uci).ok().and_then(|mv| mv.to_move(&position).ok());
        let message = || format!("the move {} is illegal in the position", excerpt(uci));
        mv = Some(parsed.ok_or_else(|| failure(line, "move", message()))?);
    }
    let mut score = None;
    if let Some((line, text)) = fields.score {
        let parsed = parse_score(text).map_err(|message| failure(line, "score", message))?;
        score = Some(parsed).filter(|score| *score != NO_SCORE);
    }
    let result = match fields.result {
        None => None,
        Some((_, b"1")) => Some(GameResult::Win),
        Some((_, b"0")) => Some(GameResult::Draw),
        Some((_, b"-1")) => Some(GameResult::Loss),
        Some((line, other)) => {
            let message = format!("`{}` is not a result: 1, 0 or -1", excerpt(other));
            return Err(failure(line, "result", message));
        }
    };
    let sample = Sample { position, game: 0, ply, mv, score, result };
    record_of(&sample, 0).map_err(on_fen_line)
}

fn adapt(record: Record, counter: &mut OmissionCounter) -> Option<Record> {
    if record.score().is_none() {
        return counter.omit_sample(OmittedSample::NoScore);
    }
    if !record.has_move() {
        return counter.omit_sample(OmittedSample::NoMove);
    }
    Some(clamp_no_score(record, counter))
}

/// Appends a sample's entry to `out`.
fn append_entry(record: &Record, out: &mut String) -> Result<(), RecordError> {
    let sample = record.unpack()?;
    let (Some(mv), Some(score), Some(result)) = (sample.mv, sample.score, sample.result) else { return Ok(()) };
    let fen = fen_of(&sample.position);
    let mv = uci_move(mv);
    let result = result as i8 - 1;
    // Writing to a string cannot fail.
    let _ = writeln!(out, "fen {fen}\nmove {mv}\nscore {score}\nply {}\nresult {result}\ne", sample.ply.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::formats::lines::tests::check_malformed;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    fn entry(rest: &str) -> String {
        format!("fen {START}\n{rest}e\n")
    }

    #[test]
    fn entries_round_trip() {
        for rest in ["move e2e4\nscore 54\nply 0\nresult 1\n", "move g1f3\nscore -32001\nply 0\nresult -1\n"] {
            let text = entry(rest);
            let record = parse_entry(text.as_bytes()).expect("a sample").expect("not empty");
            assert_eq!(record.check(), Ok(()));
            let mut written = String::new();
            append_entry(&record, &mut written).expect("legal");
            assert_eq!(written, text);
        }
        let bare = parse_entry(entry("move 0000\r\n").as_bytes()).expect("a sample").expect("not empty");
        assert!(!bare.has_move() && bare.score().is_none() && bare.result().is_none());
        assert!(parse_entry(b"\n\n").expect("empty").is_none());
    }

    #[test]
    fn stockfishs_value_for_no_score_is_none() {
        let text = entry("move e2e4\nscore 32002\nply 0\nresult 1\n");
        let record = parse_entry(text.as_bytes()).expect("a sample").expect("not empty");
        assert_eq!(record.score(), None);
        let mut counter = OmissionCounter::default();
        let adapted = adapt(record.with_score(Some(NO_SCORE)), &mut counter).expect("a whole sample");
        assert_eq!((adapted.score(), counter.omissions().clamped), (Some(NO_SCORE - 1), 1));
    }

    #[test]
    fn a_given_ply_counts_whatever_the_move_number_is() {
        let text = |rest: &str| entry(rest).replace(" 0 1\n", " 0 70000\n");
        let record = parse_entry(text("ply 12\n").as_bytes()).expect("a sample").expect("not empty");
        assert_eq!((record.ply(), record.check()), (Ply(12), Ok(())));
        check_malformed(parse_entry, &text(""), [1, 1], "move number 70000");
    }

    #[test]
    fn malformed_entries_name_their_line() {
        let check = |text: &str, line: usize, message: &str| {
            check_malformed(parse_entry, text, [line + 1, 1], message);
        };
        check(&entry("move e2e5\n"), 1, "illegal");
        check(&entry("score 1\nscore 2\n"), 2, "a second `score`");
        check(&entry("score x\n"), 1, "not a score");
        check(&entry("ply -1\n"), 1, "not a ply");
        check(&entry("result 2\n"), 1, "not a result");
        check(&entry("nonsense\n"), 1, "none of fen");
        check("move e2e4\ne\n", 0, "no line `fen`");
        check(&format!("fen {START}\nmove e2e4\n"), 0, "no line `e`");
        check("fen x\ne\n", 0, "not a FEN");
    }

    #[test]
    fn texts_are_split_behind_their_entries() {
        let text = format!("{}\r\n{}rest", entry("ply 0\n"), entry("ply 1\n"));
        let entries = split_entries(text.as_bytes(), 10);
        let lines: Vec<u64> = entries.whole.iter().map(|(line, _)| *line).collect();
        assert_eq!((lines, entries.rest, entries.next_line), (vec![10, 13], &b"rest"[..], 17));
        let endless = "ply 1\n".repeat(3 * MOST_LINES);
        assert_eq!(split_entries(endless.as_bytes(), 1).whole.len(), 3);
    }
}
