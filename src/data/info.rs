//! What a file of games or samples holds.

use std::path::Path;

use serde::Serialize;

use super::build::{Options, Selection};
use super::games::Skipped;
use super::input::{Kind, kind};
use super::{DataError, Fsd, Header, Manifest};

/// Counts of a file of games or samples.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    pub format: &'static str,
    pub compression: &'static str,
    /// Of games: the positions a move was played from.
    pub samples: u64,
    pub games: u64,
    pub with_score: u64,
    pub with_result: u64,
    /// blake3 of the samples as records.
    pub hash: String,
    /// Broken games, of a file of games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    #[serde(skip)]
    pub header: Option<Header>,
    /// Of a `.fsd` file that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
}

/// # Errors
/// When the file cannot be read to its end or is damaged.
pub fn info(path: &Path) -> Result<Info, DataError> {
    if kind(path)? == Kind::Fsd { of_samples(path) } else { of_games(path) }
}

fn of_samples(path: &Path) -> Result<Info, DataError> {
    let fsd = Fsd::open(path)?;
    let count = |known: fn(&super::Record) -> bool| fsd.records().iter().filter(|record| known(record)).count() as u64;
    let manifest = match fsd.manifest() {
        Ok(manifest) => Some(manifest),
        Err(DataError::Read { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(Info {
        format: "fsd",
        compression: "plain",
        samples: fsd.header().samples,
        games: u64::from(fsd.header().games),
        with_score: count(|record| record.score().is_some()),
        with_result: count(|record| record.result().is_some()),
        hash: fsd.hash(),
        skipped: None,
        header: Some(*fsd.header()),
        manifest,
    })
}

fn of_games(path: &Path) -> Result<Info, DataError> {
    let mut hasher = blake3::Hasher::new();
    let mut selection = Selection::start(path, Options::everything())?;
    let mut keep = |record: &super::Record| {
        hasher.update(bytemuck::bytes_of(record));
        Ok(())
    };
    selection.run(&mut keep, &mut |_| {})?;
    Ok(Info {
        format: "pgn",
        compression: selection.games.compression(),
        samples: selection.tally.kept,
        games: selection.tally.games,
        with_score: selection.tally.with_score,
        with_result: selection.tally.with_result,
        hash: hasher.finalize().to_hex().to_string(),
        skipped: Some(selection.games.skipped().clone()),
        header: None,
        manifest: None,
    })
}
