//! Statistics of a file of games or samples: distributions of plies, pieces, scores, results, king squares and moves;
//! repeated positions; and the results by score.

mod counts;
mod distinct_count;
mod histogram;
mod logistic;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::map_tasks;
use crate::data::formats::{Format, SampleReader, SkippedSamples, UnitOrigin};
use crate::data::{DataError, EvalOptions, InputPath, PgnNotes, ScoreUnit};
use crate::pipeline::build::DropReason;
use crate::pipeline::{BuildError, BuildOptions, Manifest, WeightedInput, open_or_build_all};
use crate::units::SortedMap;
use counts::SampleCounts;
use distinct_count::DistinctCounter;

pub use counts::{LegalMovesAtPly, RoleMobility};
pub use distinct_count::Duplicates;
pub use histogram::Histogram;
pub use logistic::{LogisticFit, ResultCounts, SCORE_CUT, ScoreBin};
pub(super) use logistic::{ResultsByScore, clamped_centipawns};

/// The statistics of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatasetStats {
    /// The file.
    pub path: String,
    pub format: Format,
    /// Its samples.
    pub samples: u64,
    /// Games that they come from.
    pub games: u64,
    /// Samples that have a score.
    pub with_score: u64,
    /// Samples that have their game's result.
    pub with_result: u64,
    /// Samples that have the move played.
    pub with_move: u64,
    /// Samples with castling rights of Chess960.
    pub chess960: u64,
    /// Broken entries of the file.
    #[serde(default, skip_serializing_if = "SkippedSamples::is_empty")]
    pub skipped: SkippedSamples,
    /// Positions that options of reading left out, by reason.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub left_out: SortedMap<DropReason, u64>,
    /// The file's score unit; all scores below are in centipawns.
    pub score_unit: ScoreUnit,
    /// Where the unit comes from.
    pub unit_said_by: UnitOrigin,
    /// The unusual features of the games of PGN.
    #[serde(default, skip_serializing_if = "PgnNotes::is_empty")]
    pub notes: PgnNotes,
    /// Wins, draws and losses of the side to move.
    pub results: ResultCounts,
    pub plies: Histogram,
    /// Pieces on the board, kings included.
    pub pieces: Histogram,
    /// Mean score, side to move's view, not clamped, without mate scores; null without scores.
    pub mean_score: Option<f64>,
    /// Scores, side to move's view, clamped to ±3000 and rounded to tens, without mate scores.
    pub scores: Histogram,
    /// Samples with a mate score: the side to move mates, and is mated.
    pub mates: [u64; 2],
    /// How often each square (a1 = 0 … h8 = 63) holds a king, each king seen from its own side: two per position.
    pub king_squares: Vec<u64>,
    /// By role, pawn to king.
    pub mobility: Vec<RoleMobility>,
    /// By ply.
    pub legal_moves: Vec<LegalMovesAtPly>,
    pub duplicates: Duplicates,
    /// The expected result by score; `None` without scores and results.
    pub wdl: Option<LogisticFit>,
}

/// Samples per task.
const TASK_SAMPLES: usize = 4096;

/// Reads a file of any format. `progress` receives the samples so far, the bytes read and the length of the file.
///
/// # Errors
/// When the file cannot be read to its end, or holds no sound sample.
pub fn dataset_stats(
    path: &Path,
    format: Option<Format>,
    unit: Option<ScoreUnit>,
    evals: EvalOptions,
    progress: &mut dyn FnMut(u64, u64, Option<u64>),
) -> Result<DatasetStats, DataError> {
    let mut reader = SampleReader::open_with(path, format, unit, evals)?;
    let unit = reader.score_unit();
    let mut counts = SampleCounts::default();
    let mut distinct = DistinctCounter::default();
    let mut read = 0;
    while let Some(block) = reader.next_block()? {
        let threshold = distinct.threshold();
        let count = |number: usize| -> Result<(SampleCounts, Vec<_>), DataError> {
            let records = &block[number * TASK_SAMPLES..block.len().min((number + 1) * TASK_SAMPLES)];
            let first = read + (number * TASK_SAMPLES) as u64;
            let mut counts = SampleCounts::default();
            let mut keys = Vec::with_capacity(records.len());
            for (record, sample) in records.iter().zip(first..) {
                let broken = |problem| DataError::BrokenSample { path: path.into(), sample, problem };
                counts.add(record, unit).map_err(broken)?;
                keys.extend(Some(record.key(false)).filter(|key| *key < threshold));
            }
            Ok((counts, keys))
        };
        for task in map_tasks(block.len().div_ceil(TASK_SAMPLES), &count) {
            let (task_counts, keys) = task?;
            counts.merge(&task_counts);
            distinct.extend(keys);
        }
        read += block.len() as u64;
        progress(read, reader.bytes_read(), reader.length());
    }
    if read == 0 {
        return Err(DataError::Empty { path: path.into(), format: "statistics", why: reader.skipped().describe() });
    }
    Ok(counts.finish(&reader, read, distinct.duplicates(read)))
}

/// The statistics of what a training reads of a file: of the samples that a build with these options keeps, which is
/// made in the cache unless it is there.
///
/// # Errors
/// As [`dataset_stats`] and [`open_or_build_all`].
pub fn stats_as_read(
    input: &WeightedInput,
    options: &BuildOptions,
    progress: &mut dyn FnMut(u64, u64, Option<u64>),
) -> Result<DatasetStats, BuildError> {
    let built = open_or_build_all(std::slice::from_ref(input), options, None)?;
    let mut stats = dataset_stats(built.path(), Some(Format::Fsd), None, EvalOptions::default(), progress)?;
    let source = match &input.origin {
        InputPath::File(path) => path.clone(),
        InputPath::Stdin => "-".into(),
    };
    if source != built.path() {
        stats.left_out = Manifest::of(&built)?.dropped;
        stats.path = source.display().to_string();
    }
    Ok(stats)
}
