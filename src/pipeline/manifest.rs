//! The manifest: a JSON file beside a `.fsd` file that records the provenance of its samples, in an envelope with its
//! checksum ([`in_envelope`]).

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::build::{BuildOptions, DropReason, GameDropReason};
use super::convert::Conversion;
use super::generation::Generation;
use super::label::Labelling;
use super::uci::EngineFault;
use crate::data::formats::{FileUnit, Format, SkippedSamples};
use crate::data::{DataError, Fsd, PgnNotes, Purpose, ScoreUnit, SkippedGames};
use crate::json;
use crate::output::checked::{content_of, in_envelope};
use crate::output::{OutputFile, SealedFile};
use crate::text::grouped;
use crate::units::SortedMap;

/// A file from which the samples come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceFile {
    /// Its path when it was read.
    pub path: String,
    pub format: Format,
    /// Of a `.fsd` file, the formats of the files that it was made from, by its manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_from: Vec<Format>,
    /// Its size.
    pub bytes: u64,
    /// blake3 of the file as stored, in hexadecimal.
    pub blake3: String,
    /// Games that were read from it.
    pub games: u64,
    /// Broken games, of PGN.
    pub skipped: SkippedGames,
    /// Unreadable samples, of other formats.
    pub skipped_samples: SkippedSamples,
    /// The unusual features of the games of PGN.
    #[serde(default, skip_serializing_if = "PgnNotes::is_empty")]
    pub notes: PgnNotes,
    /// How often each game is taken.
    pub weight: f64,
    /// The assumed or recorded unit of its scores.
    pub score_unit: FileUnit,
    /// Scores cut to the range of another unit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scores_cut: u64,
}

impl SourceFile {
    /// Whether its samples have plies and games ([`Format::has_ply`]), in its own format and in those it was made from.
    #[must_use]
    pub fn has_ply(&self) -> bool {
        self.made_from.iter().chain([&self.format]).all(|format| format.has_ply())
    }
}

/// The formats of the files that the file at `path` was made from: those in the manifest of a `.fsd` file. There are
/// none without a manifest of this file, and for other formats.
///
/// # Errors
/// When a `.fsd` file cannot be opened.
pub(crate) fn original_formats(path: &Path, format: Format) -> Result<Vec<Format>, DataError> {
    let mut formats = Vec::new();
    if format != Format::Fsd {
        return Ok(formats);
    }
    let manifest = Manifest::of(&Fsd::open_unchecked(path)?).ok();
    for source in manifest.iter().flat_map(|manifest| &manifest.sources) {
        let own = std::slice::from_ref(&source.format);
        let originals = if source.made_from.is_empty() { own } else { &source.made_from[..] };
        for format in originals {
            if !formats.contains(format) {
                formats.push(*format);
            }
        }
    }
    Ok(formats)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The provenance of the samples of a `.fsd` file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Version of fsbench that wrote the file.
    pub fsbench: String,
    /// The command that made it.
    pub command: Vec<String>,
    pub method: Purpose,
    pub score_unit: ScoreUnit,
    /// The options of a build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<BuildOptions>,
    /// The facts about a conversion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
    /// The facts about games that engines played for the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Generation>,
    /// How an engine scored the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labelling: Option<Labelling>,
    /// The files that it was made from.
    pub sources: Vec<SourceFile>,
    /// Games that were read.
    pub games: u64,
    /// Games that engines were to play, and that one of them spoiled; beside `games`.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub spoiled_games: SortedMap<EngineFault, u32>,
    /// Positions from which a move was played.
    pub positions: u64,
    /// Samples that come once more because of a weight above 1; those left out later are among `dropped`, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u64,
    /// Samples that were kept.
    pub kept: u64,
    /// Positions that were left out, by reason.
    pub dropped: SortedMap<DropReason, u64>,
    /// Valid games that gave no samples.
    pub dropped_games: SortedMap<GameDropReason, u64>,
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
    /// Games read, without those that were left out.
    #[must_use]
    pub fn games_used(&self) -> u64 {
        self.games.saturating_sub(self.dropped_games.values().sum())
    }

    /// Positions of the games that were not left out.
    #[must_use]
    pub fn positions_used(&self) -> u64 {
        self.positions.saturating_sub(self.dropped.get(&DropReason::GameLeftOut).copied().unwrap_or(0))
    }

    /// The samples kept and, by reason, left out, in words: "348,391 of 424,721 positions of 5,000 games: 76,330 before
    /// ply 20". Repeats by weight come after the games: "… of 5,000 games and 424,721 repeats by weight: …".
    #[must_use]
    pub fn summary(&self) -> String {
        let counted = |count: u64| grouped(&count.to_string());
        let reason = |reason: DropReason| match (reason, &self.options) {
            (DropReason::Early, Some(options)) => format!("before ply {}", options.min_ply),
            (DropReason::Late, Some(BuildOptions { max_ply: Some(last), .. })) => format!("after ply {last}"),
            (reason, _) => reason.after_count().to_owned(),
        };
        let mut left_out: Vec<String> =
            self.dropped.iter().map(|(why, count)| format!("{} {}", counted(*count), reason(*why))).collect();
        let (games, samples) = self.sources.iter().fold((0, 0), |(games, samples), source| {
            (games + source.skipped.total(), samples + source.skipped_samples.total())
        });
        for (count, what) in [(games, "broken games"), (samples, "unreadable samples")] {
            if count > 0 {
                left_out.push(format!("{} {what}", counted(count)));
            }
        }
        let mut kept =
            format!("{} of {} positions of {} games", counted(self.kept), counted(self.positions), counted(self.games));
        if self.repeated > 0 {
            kept += &format!(" and {} repeats by weight", counted(self.repeated));
        }
        if left_out.is_empty() { kept } else { format!("{kept}: {}", left_out.join(", ")) }
    }

    /// Sources whose samples have neither ply nor game ([`SourceFile::has_ply`]).
    pub fn without_plies(&self) -> impl Iterator<Item = &SourceFile> {
        self.sources.iter().filter(|source| !source.has_ply())
    }

    /// Reads the manifest beside `fsd`.
    ///
    /// # Errors
    /// When it is missing, cannot be read, is damaged, or describes other samples.
    pub fn of(fsd: &Fsd) -> Result<Manifest, DataError> {
        let path = manifest_path(fsd.path());
        let hash = fsd.hash();
        let manifest = Manifest::load(&path)?;
        if manifest.samples_hash == hash {
            Ok(manifest)
        } else {
            let described = manifest.samples_hash;
            let reason = format!("it describes samples with the hash {described}, the file's hash is {hash}");
            Err(DataError::Manifest { path, reason })
        }
    }

    /// Reads a manifest, whatever samples it describes.
    ///
    /// # Errors
    /// When it is missing, cannot be read, or is damaged.
    pub fn load(path: &Path) -> Result<Manifest, DataError> {
        let text = std::fs::read_to_string(path).map_err(DataError::read(path))?;
        let invalid = |reason: String| DataError::Manifest { path: path.to_path_buf(), reason };
        let json = content_of(text.trim_end()).map_err(|damaged| invalid(damaged.to_string()))?;
        json::from_text(json).map_err(|error| invalid(error.to_string()))
    }

    /// Writes the manifest beside `fsd`; it appears under its name when the caller persists it.
    pub(crate) fn seal(&self, fsd: &Path) -> Result<SealedFile, DataError> {
        let path = manifest_path(fsd);
        let text = json::to_indented(self)
            .map_err(|error| DataError::Manifest { path: path.clone(), reason: error.to_string() })?;
        let mut file = OutputFile::create(&path)?;
        file.put((in_envelope(&text) + "\n").as_bytes())?;
        Ok(file.seal()?)
    }
}
