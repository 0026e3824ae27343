//! What a file of games or samples holds.

use std::path::Path;

use serde::Serialize;

use super::build::everything;
use super::input::{Kind, Origin, kind};
use super::{DataError, Fsd, Header, Manifest, Skipped};

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
    let (mut with_score, mut with_result) = (0, 0);
    let found = everything(&Origin::of(path), |records| {
        hasher.update(bytemuck::cast_slice(records));
        with_score += records.iter().filter(|record| record.score().is_some()).count() as u64;
        with_result += records.iter().filter(|record| record.result().is_some()).count() as u64;
        Ok(())
    })?;
    Ok(Info {
        format: "pgn",
        compression: found.compression,
        samples: found.positions,
        games: found.games,
        with_score,
        with_result,
        hash: hasher.finalize().to_hex().to_string(),
        skipped: Some(found.skipped),
        header: None,
        manifest: None,
    })
}
