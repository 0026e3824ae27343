//! Text with a sample a line: read in batches of whole lines, which all cores parse.

use std::io::{BufRead, Read};
use std::path::Path;

use rayon::prelude::*;
use shakmaty::Position as _;
use shakmaty::fen::Fen;

use super::binpack::InvalidSample;
use super::block_queue::{self, BLOCK_SAMPLES, BlockSender};
use super::format_table::SampleEncoder;
use super::skipped::SkippedSample;
use super::writer::TASK_SAMPLES;
use crate::chess::{Chess, fen_position};
use crate::data::input::check_text;
use crate::data::{DataError, GameResult, Record, RecordError, Sample};
use crate::units::Ply;

/// Text parsed at once; also the longest line.
const BATCH_BYTES: usize = 4 << 20;

/// Why a text is not a sample.
#[derive(Debug)]
pub struct TextError {
    /// Lines before it in the sample's text.
    pub line: usize,
    /// From 1, in bytes.
    pub column: usize,
    pub reason: &'static str,
    pub message: String,
    /// Whether it shows that the samples of the whole file mean something else than they were taken for.
    pub is_of_whole_file: bool,
}

impl TextError {
    /// `offset`: bytes before it in the line.
    pub const fn at(offset: usize, reason: &'static str, message: String) -> TextError {
        TextError { line: 0, column: offset + 1, reason, message, is_of_whole_file: false }
    }
}

/// Parses the text of a sample; `None` for text without one.
pub type ParseText = fn(&[u8]) -> Result<Option<Record>, TextError>;

/// Sends the samples of a file with one a line; malformed lines are skipped and counted.
///
/// # Errors
/// When the file cannot be read, or as [`send_parsed`].
pub fn read(
    reader: Box<dyn Read + Send>,
    path: &Path,
    sender: &mut BlockSender,
    parse: ParseText,
) -> Result<(), DataError> {
    for_each_batch(reader, path, sender, &mut |first, batch, sender| {
        let batch = batch.strip_suffix(b"\n").unwrap_or(&batch);
        let samples: Vec<(u64, &[u8])> = (first..).zip(batch.split(|byte| *byte == b'\n')).collect();
        send_parsed(&samples, parse, sender)
    })
}

/// What is done with the number of the first line of a batch and its text; false when the reader was dropped.
type UseBatch<'a> = &'a mut dyn FnMut(u64, Vec<u8>, &mut BlockSender) -> Result<bool, DataError>;

/// Calls `of_batch` with batches of whole lines.
///
/// # Errors
/// When the file cannot be read, or as `of_batch`.
pub fn for_each_batch(
    reader: Box<dyn Read + Send>,
    path: &Path,
    sender: &mut BlockSender,
    of_batch: UseBatch<'_>,
) -> Result<(), DataError> {
    let unpacked = block_queue::unpacked(reader, &sender.state).map_err(DataError::read(path))?;
    check_text(&unpacked.beginning, path)?;
    let mut text = unpacked.reader;
    let compression = unpacked.compression.name();
    let mut lines = LineBatches { pending: Vec::new(), first: 1, in_long_line: false, read: 0 };
    loop {
        match lines.next_batch(&mut text) {
            Ok(Some((first, batch))) => {
                if !of_batch(first, batch, sender)? {
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

/// Parses samples, each given with the number of its first line, and sends them; false when the reader was dropped.
///
/// # Errors
/// When there are more games than numbers, or a text shows that the whole file cannot be used.
pub fn send_parsed(samples: &[(u64, &[u8])], parse: ParseText, sender: &mut BlockSender) -> Result<bool, DataError> {
    let parse_all = || samples.par_iter().map(|(_, text)| parse(text)).collect();
    let parsed: Vec<Result<Option<Record>, TextError>> = sender.decoders.install(parse_all);
    let mut records = Vec::with_capacity(BLOCK_SAMPLES);
    for (found, (first, _)) in parsed.into_iter().zip(samples) {
        match found {
            Ok(Some(record)) => records.push(record),
            Ok(None) => {}
            Err(TextError { line, column, reason, message, is_of_whole_file }) => {
                let location = format!("line {}, column {column}", first + line as u64);
                if is_of_whole_file {
                    let input = sender.path.display().to_string();
                    return Err(DataError::Input { input, reason: format!("{location}: {message}") });
                }
                sender.skip(reason, SkippedSample { location, message });
            }
        }
        if records.len() == BLOCK_SAMPLES && !sender.send(std::mem::take(&mut records))? {
            return Ok(false);
        }
    }
    sender.send(records)
}

/// A line without its end and without a byte order mark.
pub fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

/// The position of a FEN that stands at `offset` in its line.
///
/// # Errors
/// When the FEN is none, or its position is illegal.
pub fn parse_board(fen: &[u8], offset: usize) -> Result<Chess, TextError> {
    let failure = |message: String| TextError::at(offset, "position", message);
    let parsed = Fen::from_ascii(fen.trim_ascii())
        .map_err(|error| failure(format!("`{}` is not a FEN: {error}", excerpt(fen))))?;
    fen_position(&parsed).map_err(|error| failure(error.to_string()))
}

/// The ply that follows from the move number of a position whose FEN stands at `offset` in its line.
///
/// # Errors
/// When the ply is too large.
pub fn derived_ply(position: &Chess, offset: usize) -> Result<Ply, TextError> {
    let moves = position.fullmoves().get();
    let plies = (moves - 1).saturating_mul(2).saturating_add(u32::from(position.turn().is_black()));
    u16::try_from(plies).map(Ply).map_err(|_| TextError::at(offset, "position", format!("move number {moves}")))
}

/// Both of these.
///
/// # Errors
/// As theirs.
pub fn parse_position(fen: &[u8], offset: usize) -> Result<(Chess, Ply), TextError> {
    let position = parse_board(fen, offset)?;
    let ply = derived_ply(&position, offset)?;
    Ok((position, ply))
}

/// The record of a sample whose FEN stands at `offset` in its line.
///
/// # Errors
/// When a record cannot hold the position.
pub fn record_of(sample: &Sample, offset: usize) -> Result<Option<Record>, TextError> {
    Record::pack(sample).map(Some).map_err(|error| TextError::at(offset, "position", error.to_string()))
}

/// A whole number of centipawns.
///
/// # Errors
/// When it is none, or beyond what samples hold.
pub fn parse_score(text: &[u8]) -> Result<i16, String> {
    let text = text.trim_ascii();
    let score = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    score
        .filter(|score| *score != i16::MIN)
        .ok_or_else(|| format!("`{}` is not a score: give centipawns from −32767 to 32767", excerpt(text)))
}

/// White's result: `1-0`, `1.0`, `1` and so on.
pub fn white_result(text: &str) -> Option<GameResult> {
    match text {
        "1-0" | "1.0" | "1" => Some(GameResult::Win),
        "1/2-1/2" | "0.5" => Some(GameResult::Draw),
        "0-1" | "0.0" | "0" => Some(GameResult::Loss),
        _ => None,
    }
}

/// The part of a line that an error quotes.
pub fn excerpt(text: &[u8]) -> String {
    crate::text::excerpt(text, 90)
}

/// Appends the text of a sample.
pub type AppendText = fn(&Record, &mut String) -> Result<(), RecordError>;

/// Writes a text per sample.
pub struct TextEncoder {
    samples: u64,
    append: AppendText,
}

impl TextEncoder {
    pub fn boxed(append: AppendText) -> Box<dyn SampleEncoder> {
        Box::new(TextEncoder { samples: 0, append })
    }

    fn text_of(&self, records: &[Record], first: u64) -> Result<String, InvalidSample> {
        let mut text = String::with_capacity(80 * records.len());
        for (record, sample) in records.iter().zip(first..) {
            (self.append)(record, &mut text).map_err(|problem| InvalidSample { sample, problem })?;
        }
        Ok(text)
    }
}

impl SampleEncoder for TextEncoder {
    fn push(&mut self, records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        let first = self.samples;
        let texts: Vec<Result<String, InvalidSample>> = records
            .par_chunks(TASK_SAMPLES)
            .enumerate()
            .map(|(task, records)| self.text_of(records, first + (task * TASK_SAMPLES) as u64))
            .collect();
        for text in texts {
            out.extend_from_slice(text?.as_bytes());
        }
        self.samples += records.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The text is malformed there, counted from 1, for a reason that the message contains.
    pub fn check_malformed(parse: ParseText, text: &str, [line, column]: [usize; 2], message: &str) {
        let error = parse(text.as_bytes()).expect_err("malformed");
        assert_eq!([error.line + 1, error.column], [line, column], "{error:?}");
        assert!(error.message.contains(message), "{error:?}");
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
