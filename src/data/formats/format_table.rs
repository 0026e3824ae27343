//! What sets one format of samples apart. Each format's file has such a table; with a variant of
//! [`Format`](super::Format) and a rule of detection, that is all that a new format needs.

use std::io::Read;
use std::path::Path;

use super::ScoreUnit;
use super::binpack::InvalidSample;
use super::block_queue::BlockSender;
use super::omissions::OmissionCounter;
use crate::data::{DataError, Record};

/// The properties of a format, and what reads and writes it.
pub struct FormatTable {
    /// The name of `--from` and `--to`.
    pub name: &'static str,
    /// Endings of file names. Files are written under the first.
    pub endings: &'static [&'static str],
    /// Whether a file's decompressed beginning shows the format.
    pub recognises: fn(&[u8]) -> bool,
    /// Whether it is text.
    pub is_text: bool,
    /// The unit of scores where neither the file nor the caller gives one.
    pub default_unit: ScoreUnit,
    pub games: GameRule,
    /// Whether every sample has a result.
    pub needs_result: bool,
    /// `None` for PGN and `.fsd`, which are not read as streams.
    pub read: Option<ReadStream>,
    /// Adapts a sample to what the format can hold, and counts what it cannot hold; `None` if it cannot hold the sample.
    pub adapt: fn(Record, &mut OmissionCounter) -> Option<Record>,
    /// Begins a file; `None` for formats that are not written, and for `.fsd`, which has a writer of its own.
    pub encoder: Option<fn() -> Box<dyn SampleEncoder>>,
}

/// Sends the samples of a stream, given its name for messages.
pub type ReadStream = fn(Box<dyn Read + Send>, &Path, &mut BlockSender) -> Result<(), DataError>;

/// How the games of a file are told apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum GameRule {
    /// The file says where games begin.
    Recorded,
    /// By the sequence of samples ([`GameNumbers`](super::GameNumbers)).
    Inferred,
    /// The same, and samples have no results.
    InferredWithoutResults,
    /// Samples have no plies, so each counts as a game.
    Unknown,
}

/// Writes a format sample by sample.
pub trait SampleEncoder: Send {
    /// Appends the bytes of adapted samples. Some may be held back until the samples after them are known.
    ///
    /// # Errors
    /// When a sample's position or move is illegal: the first such sample.
    fn push(&mut self, records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample>;

    /// Appends what is still missing at the file's end.
    ///
    /// # Errors
    /// As [`push`](SampleEncoder::push).
    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        Ok(())
    }

    /// Samples so far that continue a game, but had to begin one in the file.
    fn split_games(&self) -> u64 {
        0
    }
}

/// Leaves samples as they are: the format can hold all of them.
pub const fn holds_all(record: Record, _: &mut OmissionCounter) -> Option<Record> {
    Some(record)
}
