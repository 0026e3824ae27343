//! The JSON file beside a `.fsd` file that tells how its samples came about.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::build::{BuildOptions, DropReason, GameDropReason};
use super::convert::Conversion;
use super::generate::Generation;
use super::label::Labelling;
use crate::data::formats::{FileUnit, Format, SkippedSamples};
use crate::data::{DataError, Fsd, Purpose, ScoreUnit, Skipped};
use crate::output::{OutputFile, SealedFile};

/// A file the samples came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceFile {
    pub path: String,
    /// None in manifests of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    pub bytes: u64,
    /// blake3 of the file as it is stored, in hexadecimal.
    pub blake3: String,
    pub games: u64,
    /// Broken games.
    pub skipped: Skipped,
    /// Broken samples of the formats beside PGN.
    #[serde(default)]
    pub skipped_samples: SkippedSamples,
    /// How often each game was taken.
    #[serde(default = "once")]
    pub weight: f64,
    /// What its scores were taken to be measured in; none of older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_unit: Option<FileUnit>,
    /// Scores that had to be cut to fit another unit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scores_cut: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

const fn once() -> f64 {
    1.0
}

/// How the samples of a `.fsd` file came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub fsbench: String,
    pub command: Vec<String>,
    pub method: Purpose,
    pub score_unit: ScoreUnit,
    /// Of a build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<BuildOptions>,
    /// Of a conversion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// Of games played for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Generation>,
    /// How an engine scored the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labelling: Option<Labelling>,
    pub sources: Vec<SourceFile>,
    pub games: u64,
    /// Positions a move was played from.
    pub positions: u64,
    pub kept: u64,
    pub dropped: BTreeMap<DropReason, u64>,
    /// Good games that gave no samples.
    #[serde(default)]
    pub dropped_games: BTreeMap<GameDropReason, u64>,
    /// blake3 of the samples, in hexadecimal.
    pub samples_hash: String,
}

/// `X.fsd.json` for `X.fsd`.
#[must_use]
pub fn manifest_path(fsd: &Path) -> PathBuf {
    let mut name = fsd.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

impl Manifest {
    /// Games read that were not left out as a whole.
    #[must_use]
    pub fn games_used(&self) -> u64 {
        self.games.saturating_sub(self.dropped_games.values().sum())
    }

    /// Positions of these games.
    #[must_use]
    pub fn positions_used(&self) -> u64 {
        self.positions.saturating_sub(self.dropped.get(&DropReason::GameLeftOut).copied().unwrap_or(0))
    }

    /// Sources whose samples tell neither ply nor game ([`Format::has_ply`]).
    pub fn without_plies(&self) -> impl Iterator<Item = &SourceFile> {
        self.sources.iter().filter(|source| source.format.is_some_and(|format| !format.has_ply()))
    }

    /// Reads the manifest that stands beside `fsd`.
    ///
    /// # Errors
    /// When there is none, it cannot be read, or it tells of other samples.
    pub fn of(fsd: &Fsd) -> Result<Manifest, DataError> {
        let (path, hash) = (manifest_path(fsd.path()), fsd.hash());
        let file = File::open(&path).map_err(DataError::read(&path))?;
        let bad = |reason: String| DataError::Manifest { path: path.clone(), reason };
        let manifest: Manifest =
            serde_json::from_reader(std::io::BufReader::new(file)).map_err(|error| bad(error.to_string()))?;
        if manifest.samples_hash == hash {
            Ok(manifest)
        } else {
            Err(bad(format!("it tells of samples {}, the file holds {hash}", manifest.samples_hash)))
        }
    }

    /// Writes the manifest to stand beside `fsd`; it still needs its name.
    pub(super) fn seal(&self, fsd: &Path) -> Result<SealedFile, DataError> {
        let path = manifest_path(fsd);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| DataError::Manifest { path: path.clone(), reason: error.to_string() })?;
        let mut file = OutputFile::create(&path)?;
        file.put(text.as_bytes())?;
        file.put(b"\n")?;
        Ok(file.seal()?)
    }
}
