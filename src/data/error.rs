//! Errors of the store. A message names the problem, its location and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::formats::binpack::ChunkError;
use super::formats::{ForeignFormat, Format};
use super::{Method, Purpose, RecordError, ScoreUnit};
use crate::output::OutputError;
use crate::system;

/// Why data could not be read or written. Each message includes its cause, so causes are not chained.
#[derive(Debug, Error)]
pub enum DataError {
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("cannot write {}: {cause}; nothing was left behind", path.display())]
    Write { path: PathBuf, cause: io::Error },
    #[error(
        "{} is cut off or damaged within its {compression} stream, after byte {at} of the decompressed text \
         ({games} games were read before it): {cause}; fetch or compress the file again",
        path.display()
    )]
    BrokenStream { path: PathBuf, compression: &'static str, at: u64, games: u64, cause: io::Error },
    #[error(
        "{} is {what}, which is not supported here; `fsbench help data` lists the formats{}",
        path.display(),
        if path.as_os_str() == "-" { "; give the format of standard input by --from" } else { "" }
    )]
    Unsupported { path: PathBuf, what: &'static str },
    #[error("{} is {format}", path.display())]
    Foreign { path: PathBuf, format: ForeignFormat },
    #[error("the input `{input}` cannot be used: {reason}")]
    Input { input: String, reason: String },
    #[error("{} holds no game or sample that can be used{skipped}", path.display())]
    NoGames { path: PathBuf, skipped: String },
    #[error("{} yields no sample for --method {}{dropped}", path.display(), method.name())]
    NoSamples { path: PathBuf, method: Method, dropped: String },
    #[error("{} is not a .fsd file: {reason}", path.display())]
    NotFsd { path: PathBuf, reason: String },
    #[error(
        "{} is a .fsd file of version {found}; this fsbench reads version {expected}: build it again from its source",
        path.display()
    )]
    Version { path: PathBuf, found: u32, expected: u32 },
    #[error(
        "{} is {found} bytes long, but {expected} by its header: it was cut off or extended; build it again",
        path.display()
    )]
    Length { path: PathBuf, found: u64, expected: u64 },
    #[error(
        "{} is damaged: the checksum of bytes {first} to {last} ({part}) does not match; build it again",
        path.display()
    )]
    Checksum { path: PathBuf, part: String, first: u64, last: u64 },
    #[error(
        "{} was built for --method {}, not {}; build one for {} from its source",
        path.display(), found.name(), wanted.name(), wanted.name()
    )]
    Method { path: PathBuf, found: Purpose, wanted: Method },
    #[error("{}, chunk at byte {chunk}: {problem}", path.display())]
    Chunk { path: PathBuf, chunk: u64, problem: ChunkError },
    #[error(
        "{} is {bytes} bytes long, not a multiple of the {each} bytes of a position: it was cut off, or is not \
         {format}",
        path.display()
    )]
    PartialEntry { path: PathBuf, format: &'static str, bytes: u64, each: u64 },
    #[error(
        "none of the first {entries} entries of 32 bytes in {} is a position of {format}; if it has another format, \
         convert it by `fsbench dataset convert --from FORMAT`",
        path.display()
    )]
    NoEntries { path: PathBuf, format: &'static str, entries: usize },
    #[error(
        "{} holds no game of {format}; if it has another format, convert it by `fsbench dataset convert --from FORMAT`",
        path.display()
    )]
    NotGames { path: PathBuf, format: &'static str },
    #[error(
        "{} is compressed with {compression}, but its name does not say so, and {format} is decompressed by its name \
         only: rename it to end in {ending}, as games{ending}, or decompress it first",
        path.display()
    )]
    CompressedName { path: PathBuf, format: &'static str, compression: &'static str, ending: String },
    #[error(
        "cannot write {}: its sample {sample} (from 0) is invalid: {problem}; find it in the source with `fsbench \
         dataset verify`; nothing was left behind",
        path.display()
    )]
    InvalidSample { path: PathBuf, sample: u64, problem: RecordError },
    #[error("sample {sample} (from 0) of {} is invalid: {problem}", path.display())]
    BrokenSample { path: PathBuf, sample: u64, problem: RecordError },
    #[error("{} holds no sample that {format} can hold{why}", path.display())]
    Empty { path: PathBuf, format: &'static str, why: String },
    #[error(
        "cannot write {}: {why}; name the file by one of {}, or give its format",
        path.display(), Format::written_endings()
    )]
    OutputFormat { path: PathBuf, why: &'static str },
    #[error(
        "{} cannot be read as {format} from a stream; give a file, or one of {}",
        path.display(), Format::streamed_names()
    )]
    NoStream { path: PathBuf, format: &'static str },
    #[error("{} records {} units per pawn for its scores, not {}", path.display(), found.pawn(), given.pawn())]
    UnitMismatch { path: PathBuf, found: ScoreUnit, given: ScoreUnit },
    #[error("{} holds more than {} games, the most that game numbers can count", path.display(), u32::MAX)]
    TooManyGames { path: PathBuf },
    #[error("the manifest {} cannot be used: {reason}", path.display())]
    Manifest { path: PathBuf, reason: String },
    #[error("{} exists already; give --force to replace it", path.display())]
    Exists { path: PathBuf },
    #[error("there is no folder for cached data: set FSBENCH_CACHE, XDG_CACHE_HOME or {}", system::HOME)]
    NoCache,
}

impl From<OutputError> for DataError {
    fn from(OutputError { path, cause }: OutputError) -> DataError {
        DataError::Write { path, cause }
    }
}

impl DataError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> DataError + '_ {
        move |cause| DataError::Read { path: path.to_path_buf(), cause }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> DataError + '_ {
        move |cause| DataError::Write { path: path.to_path_buf(), cause }
    }

    /// Whether the request was wrong, such as a missing or unsuitable file, rather than a failure during the work.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        !matches!(self, DataError::Write { .. } | DataError::BrokenStream { .. })
    }
}
