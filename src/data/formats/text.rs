//! Text: lines `FEN,score,move`. The score is in centipawns from the side to move's point of view, `#n` and `#-n` are
//! mates, empty is no score. The move is in UCI notation, castling as e1g1 or king takes rook (in Chess960 only the
//! latter, and the FEN's castling rights are the rooks' files); empty is no move. The ply comes from the FEN's counters.
//! There are no results and no game numbers.

use std::fmt::Write as _;
use std::io::{BufRead, Read};
use std::path::Path;

use rayon::prelude::*;
use shakmaty::Position as _;
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;

use super::binpack::InvalidSample;
use super::block_queue::{self, BLOCK_SAMPLES, BlockSender};
use super::foreign;
use super::format_table::{FormatTable, GameRule, SampleEncoder};
use super::omissions::{OmissionCounter, OmittedField};
use super::skipped::SkippedSample;
use super::{ScoreUnit, writer::TASK_SAMPLES};
use crate::chess::{Chess, fen_of, fen_position, uci_move};
use crate::data::input::check_text;
use crate::data::{DataError, Eval, Record, RecordError, Sample};
use crate::units::Ply;

/// Text parsed at once; also the longest line.
const BATCH_BYTES: usize = 4 << 20;

pub const FORMAT: FormatTable = FormatTable {
    name: "text",
    endings: &["txt", "csv", "text"],
    recognises: begins_with_sample,
    is_text: true,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::InferredWithoutResults,
    needs_result: false,
    read: Some(read),
    adapt,
    encoder: Some(|| Box::new(SampleLines { samples: 0 })),
};

/// Sends the samples of a file; malformed lines are skipped and counted.
fn read(reader: Box<dyn Read + Send>, path: &Path, sender: &mut BlockSender) -> Result<(), DataError> {
    let unpacked = block_queue::unpacked(reader, &sender.state).map_err(DataError::read(path))?;
    check_text(&unpacked.beginning, path)?;
    let mut text = unpacked.reader;
    let compression = unpacked.compression.name();
    let mut lines = LineBatches { pending: Vec::new(), first: 1, in_long_line: false, read: 0 };
    loop {
        match lines.next_batch(&mut text) {
            Ok(Some((first, batch))) => {
                if !parse_batch(&batch, first, sender)? {
                    return Ok(());
                }
            }
            Ok(None) => return Ok(()),
            Err(cause) if compression == "plain" => return Err(DataError::Read { path: path.into(), cause }),
            Err(cause) => {
                let at = lines.read;
                let games = sender.games;
                return Err(DataError::BrokenStream { path: path.into(), compression, at, games, cause });
            }
        }
    }
}

/// Splits text into batches of complete lines.
struct LineBatches {
    pending: Vec<u8>,
    /// Number of the first line of `pending`, from 1.
    first: u64,
    /// Whether `pending` begins inside a line longer than a batch.
    in_long_line: bool,
    /// Bytes read so far.
    read: u64,
}

impl LineBatches {
    /// The next batch and the number of its first line; `None` at the end.
    fn next_batch(&mut self, text: &mut dyn BufRead) -> std::io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            let wanted = BATCH_BYTES - self.pending.len();
            let read = text.take(wanted as u64).read_to_end(&mut self.pending)?;
            self.read += read as u64;
            let ended = read < wanted;
            if self.in_long_line {
                let rest = memchr::memchr(b'\n', &self.pending).map(|end| self.pending.split_off(end));
                self.in_long_line = rest.is_none() && !ended;
                self.pending = rest.unwrap_or_default();
                if self.pending.is_empty() && !ended {
                    continue;
                }
            }
            if self.pending.is_empty() {
                return Ok(None);
            }
            let end = match memchr::memrchr(b'\n', &self.pending) {
                _ if ended => self.pending.len(),
                Some(end) => end + 1,
                None => {
                    // The beginning of the line is reported as malformed; the rest is dropped.
                    self.in_long_line = true;
                    self.pending.len()
                }
            };
            let rest = self.pending.split_off(end);
            let batch = std::mem::replace(&mut self.pending, rest);
            let first = self.first;
            self.first += memchr::memchr_iter(b'\n', &batch).count() as u64;
            return Ok(Some((first, batch)));
        }
    }
}

fn parse_batch(batch: &[u8], first: u64, sender: &mut BlockSender) -> Result<bool, DataError> {
    let mut lines: Vec<&[u8]> = batch.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let parse = || lines.par_iter().map(|line| parse_line(line)).collect();
    let parsed: Vec<Result<Option<Record>, LineError>> = sender.decoders.install(parse);
    let mut records = Vec::with_capacity(BLOCK_SAMPLES);
    for (line, number) in parsed.into_iter().zip(first..) {
        match line {
            Ok(Some(record)) => records.push(record),
            Ok(None) => {}
            Err(LineError { column, reason, message }) => {
                let location = format!("line {number}, column {column}");
                sender.skip(reason, SkippedSample { location, message });
            }
        }
        if records.len() == BLOCK_SAMPLES && !sender.send(std::mem::take(&mut records))? {
            return Ok(false);
        }
    }
    sender.send(records)
}

/// Why a line is not a sample.
#[derive(Debug)]
struct LineError {
    /// From 1, in bytes.
    column: usize,
    reason: &'static str,
    message: String,
}

/// Parses a line's sample; `None` for an empty line.
fn parse_line(line: &[u8]) -> Result<Option<Record>, LineError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let failure = |column: usize, reason, message: String| LineError { column: column + 1, reason, message };
    let mut commas = memchr::memchr_iter(b',', line);
    let (Some(first), Some(second), None) = (commas.next(), commas.next(), commas.next()) else {
        let message = match foreign::of_line(line) {
            Some(format) => format!("not FEN,score,move: this is {format}"),
            None => "not FEN,score,move: three fields separated by commas".into(),
        };
        return Err(failure(0, "not three fields", message));
    };

    let position = parse_position(&line[..first]).map_err(|message| failure(0, "position", message))?;
    let plies =
        (position.fullmoves().get() - 1).saturating_mul(2).saturating_add(u32::from(position.turn().is_black()));
    let ply =
        u16::try_from(plies).map_err(|_| failure(0, "position", format!("move number {}", position.fullmoves())))?;
    let score = parse_score(&line[first + 1..second]).map_err(|message| failure(first + 1, "score", message))?;
    let uci = line[second + 1..].trim_ascii();
    let mv = match uci {
        b"" => None,
        _ => match UciMove::from_ascii(uci) {
            Ok(UciMove::Null) => None,
            Ok(mv) => Some(mv.to_move(&position).map_err(|_| {
                failure(second + 1, "move", format!("the move {} is illegal in the position", excerpt(uci)))
            })?),
            Err(_) => {
                let message = match foreign::of_line(line) {
                    Some(format) => format!("not FEN,score,move: this is {format}"),
                    None => format!("`{}` is not a move in UCI notation (such as e2e4 or e7e8q)", excerpt(uci)),
                };
                return Err(failure(second + 1, "move", message));
            }
        },
    };
    let sample = Sample { position, game: 0, ply: Ply(ply), mv, score, result: None };
    Record::pack(&sample).map(Some).map_err(|error| failure(0, "position", error.to_string()))
}

fn parse_position(fen: &[u8]) -> Result<Chess, String> {
    let parsed =
        Fen::from_ascii(fen.trim_ascii()).map_err(|error| format!("`{}` is not a FEN: {error}", excerpt(fen)))?;
    fen_position(&parsed).map_err(|error| error.to_string())
}

fn parse_score(text: &[u8]) -> Result<Option<i16>, String> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || format!("`{}` is not a score: give centipawns from −32767 to 32767, #n or #-n", excerpt(text));
    let text = std::str::from_utf8(text).map_err(|_| wrong())?;
    if let Some(mate) = text.strip_prefix('#') {
        let moves: i32 = mate.parse().map_err(|_| wrong())?;
        return if moves == 0 { Err(wrong()) } else { Ok(Some(Eval::Mate(moves).centipawns())) };
    }
    text.parse().ok().filter(|score| *score != i16::MIN).map(Some).ok_or_else(wrong)
}

/// The part of a line that an error quotes.
fn excerpt(text: &[u8]) -> String {
    crate::text::excerpt(text, 90)
}

fn adapt(record: Record, counter: &mut OmissionCounter) -> Option<Record> {
    counter.omit_field(OmittedField::Result, record.result().is_some());
    // A FEN derives the ply's parity from the side to move.
    counter.omit_field(OmittedField::Ply, record.ply().0 % 2 != u16::from(record.turn().is_black()));
    Some(record)
}

/// Writes a line per sample.
struct SampleLines {
    samples: u64,
}

impl SampleEncoder for SampleLines {
    fn push(&mut self, records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        let first = self.samples;
        let lines: Vec<Result<String, InvalidSample>> = records
            .par_chunks(TASK_SAMPLES)
            .enumerate()
            .map(|(task, records)| format_lines(records, first + (task * TASK_SAMPLES) as u64))
            .collect();
        for lines in lines {
            out.extend_from_slice(lines?.as_bytes());
        }
        self.samples += records.len() as u64;
        Ok(())
    }
}

fn format_lines(records: &[Record], first: u64) -> Result<String, InvalidSample> {
    let mut lines = String::with_capacity(80 * records.len());
    for (record, sample) in records.iter().zip(first..) {
        append_line(record, &mut lines).map_err(|problem| InvalidSample { sample, problem })?;
    }
    Ok(lines)
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

/// Whether one of the first lines is a sample, or the first looks like one and like no other format.
fn begins_with_sample(beginning: &[u8]) -> bool {
    let lines = || beginning.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines().take(foreign::LINES).any(is_sample)
        || lines().next().is_some_and(looks_like_sample) && foreign::of_text(beginning).is_none()
}

/// Whether a line has a sample's three fields, of which the last may be a move.
pub fn is_sample(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.trim_ascii().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    match fields[..] {
        [_, _, mv] => looks_like_sample(line) && (mv.is_empty() || UciMove::from_ascii(mv).is_ok()),
        _ => false,
    }
}

/// Whether a line looks like a sample: eight ranks of a FEN before a comma.
fn looks_like_sample(line: &[u8]) -> bool {
    let Some(comma) = memchr::memchr(b',', line) else { return false };
    let ranks = line[..comma].trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    memchr::memchr_iter(b'/', ranks).count() == 7
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn malformed_lines_have_a_column_and_a_message() {
        let check = |line: &str, column: usize, message: &str| {
            let error = parse_line(line.as_bytes()).expect_err("malformed");
            assert!(error.column == column && error.message.contains(message), "{error:?}");
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

    #[test]
    fn samples_differ_from_games() {
        assert!(looks_like_sample(format!("{START},1,e2e4").as_bytes()));
        assert!(!looks_like_sample(b"[Event \"a, b\"]"));
        assert!(!looks_like_sample(b"1. e4 { well, well } e5"));
    }

    #[test]
    fn long_lines_do_not_fill_the_memory() {
        let text = [&b"first\n"[..], &b"x".repeat(3 * BATCH_BYTES), b"\nlast"].concat();
        let mut reader = text.as_slice();
        let mut lines = LineBatches { pending: Vec::new(), first: 1, in_long_line: false, read: 0 };
        let mut batches = Vec::new();
        while let Some((first, batch)) = lines.next_batch(&mut reader).expect("reads") {
            assert!(batch.len() <= BATCH_BYTES);
            batches.push((first, batch));
        }
        assert_eq!(batches.first().map(|(first, batch)| (*first, batch.as_slice())), Some((1, &b"first\n"[..])));
        assert_eq!(batches.last().map(|(_, batch)| batch.as_slice()), Some(&b"\nlast"[..]));
        assert_eq!(batches.last().map(|(first, _)| *first), Some(2));
        assert_eq!(batches.len(), 3);
    }
}
