//! Reading the games of a file: cut into texts in order, parsed by all cores, handed out in file order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::DataError;
use super::input::Input;
use super::pgn::{self, Game, SkipReason, SkippedGame};
use super::splitter::{GameText, Splitter};

/// Opens a file of games: PGN, plain or compressed with zstd, gzip or bzip2.
///
/// # Errors
/// When the file cannot be read or is no file of games.
pub fn games(path: &Path) -> Result<Games, DataError> {
    Ok(Games {
        path: path.to_path_buf(),
        splitter: Splitter::new(Input::open(path)?),
        ready: VecDeque::new(),
        failure: None,
        read: 0,
        skipped: Skipped::default(),
    })
}

/// The games of a file, in file order. Broken games are passed over and counted. When the file itself breaks off, the
/// games before that come first, then one error, then nothing.
pub struct Games {
    path: PathBuf,
    splitter: Splitter,
    ready: VecDeque<Result<Game, SkippedGame>>,
    failure: Option<DataError>,
    /// Games handed out.
    read: u64,
    skipped: Skipped,
}

/// What was passed over so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub by_reason: BTreeMap<SkipReason, u64>,
    /// The first few.
    pub examples: Vec<SkippedGame>,
}

impl Skipped {
    const EXAMPLES: usize = 10;

    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    fn add(&mut self, game: SkippedGame) {
        *self.by_reason.entry(game.reason).or_default() += 1;
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(game);
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SkipReason::Variant => "variant",
            SkipReason::StartPosition => "start position not legal",
            SkipReason::MalformedTag => "malformed tag",
            SkipReason::Garbage => "garbage",
            SkipReason::IllegalMove => "illegal move",
            SkipReason::MalformedEval => "malformed eval",
            SkipReason::Unfinished => "text ends before the result",
        })
    }
}

impl fmt::Display for SkippedGame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "game at byte {}: {} at byte {}", self.game_offset, self.reason, self.offset)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " ({:?})", self.text) }
    }
}

/// Text parsed at once, a compromise between memory and keeping the cores busy.
const BATCH_BYTES: usize = 1 << 20;

impl Games {
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Bytes of the decompressed text read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.splitter.bytes_read()
    }

    #[must_use]
    pub fn compression(&self) -> &'static str {
        self.splitter.compression()
    }

    fn fill(&mut self) {
        let mut texts: Vec<GameText> = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            match self.splitter.next() {
                Ok(Some(text)) => {
                    bytes += text.bytes.len();
                    texts.push(text);
                }
                Ok(None) => break,
                Err(cause) => {
                    self.failure = Some(if self.compression() == "plain" {
                        DataError::Read { path: self.path.clone(), cause }
                    } else {
                        let (compression, at) = (self.compression(), self.bytes_read());
                        DataError::Broken { path: self.path.clone(), compression, at, games: 0, cause }
                    });
                    break;
                }
            }
        }
        let parsed: Vec<Vec<_>> = texts
            .par_iter()
            .map(|text| {
                let mut games = Vec::with_capacity(1);
                pgn::parse(&text.bytes, text.offset, &mut games);
                games
            })
            .collect();
        self.ready.extend(parsed.into_iter().flatten());
    }
}

impl Iterator for Games {
    type Item = Result<Game, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.ready.pop_front() {
                Some(Ok(game)) => {
                    self.read += 1;
                    return Some(Ok(game));
                }
                Some(Err(skipped)) => self.skipped.add(skipped),
                None => {
                    if let Some(mut failure) = self.failure.take() {
                        if let DataError::Broken { games, .. } = &mut failure {
                            *games = self.read;
                        }
                        return Some(Err(failure));
                    }
                    self.fill();
                    if self.ready.is_empty() && self.failure.is_none() {
                        return None;
                    }
                }
            }
        }
    }
}
