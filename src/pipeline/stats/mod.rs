//! What a file of games or samples looks like: distributions over plies, pieces, scores, results, kings and moves,
//! repeated positions, and the results against the scores.

mod counts;
mod distinct_count;
mod histogram;
mod logistic;

use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::formats::{Format, SaidBy, SampleReader};
use crate::data::{DataError, Record, ScoreUnit};
use counts::SampleCounts;
use distinct_count::DistinctCounter;

pub use counts::{LegalMovesAtPly, RoleMobility};
pub use distinct_count::Duplicates;
pub use histogram::Histogram;
pub use logistic::{LogisticFit, ResultCounts, ScoreBin};

/// Everything there is to tell of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetStats {
    pub path: String,
    pub format: Format,
    pub samples: u64,
    pub games: u64,
    pub with_score: u64,
    pub with_result: u64,
    pub with_move: u64,
    /// The file's score unit; all scores below are in centipawns.
    pub score_unit: ScoreUnit,
    /// Who says so; none of older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_said_by: Option<SaidBy>,
    /// Wins, draws and losses of the side to move.
    pub results: ResultCounts,
    pub plies: Histogram,
    /// Pieces on the board, kings included.
    pub pieces: Histogram,
    /// Scores, side to move's view, cut at ±[`SCORE_CUT`] and rounded to tens; mates apart.
    pub scores: Histogram,
    /// Samples whose score is a mate: given, and received.
    pub mates: [u64; 2],
    /// How often each square (a1 = 0 … h8 = 63) holds a king, each seen from its own side: two a position.
    pub king_squares: Vec<u64>,
    /// Of each role, pawn to king.
    pub mobility: Vec<RoleMobility>,
    /// By ply.
    pub legal_moves: Vec<LegalMovesAtPly>,
    pub duplicates: Duplicates,
    /// None without scores and results.
    pub wdl: Option<LogisticFit>,
}

/// Scores beyond this many centipawns are counted with it.
pub const SCORE_CUT: i32 = 3000;

/// Samples worked on by one core at once.
const PIECE: usize = 4096;

/// Reads a file of any format. `progress` gets the samples so far, the bytes read and the length of the file.
///
/// # Errors
/// When the file cannot be read to its end, is damaged, or holds no sample.
pub fn dataset_stats(
    path: &Path,
    format: Option<Format>,
    unit: Option<ScoreUnit>,
    progress: &mut dyn FnMut(u64, u64, Option<u64>),
) -> Result<DatasetStats, DataError> {
    let mut reader = SampleReader::open(path, format, unit)?;
    let unit = reader.score_unit();
    let mut all = SampleCounts::default();
    let mut distinct = DistinctCounter::default();
    let mut read = 0;
    while let Some(block) = reader.next_block()? {
        let below = distinct.below();
        let piece = |(number, records): (usize, &[Record])| {
            let first = read + (number * PIECE) as u64;
            let mut gathered = SampleCounts::default();
            let mut keys = Vec::with_capacity(records.len());
            for (record, sample) in records.iter().zip(first..) {
                let broken = |problem| DataError::BrokenSample { path: path.into(), sample, problem };
                gathered.add(record, unit).map_err(broken)?;
                keys.extend(Some(record.key(false)).filter(|key| *key < below));
            }
            Ok((gathered, keys))
        };
        let pieces: Vec<_> = block.par_chunks(PIECE).enumerate().map(piece).collect::<Result<_, DataError>>()?;
        for (gathered, keys) in pieces {
            all.merge(&gathered);
            distinct.extend(keys);
        }
        read += block.len() as u64;
        progress(read, reader.bytes_read(), reader.length());
    }
    if read == 0 {
        return Err(DataError::Empty { path: path.into(), format: "statistics", why: String::new() });
    }
    Ok(all.finish(&reader, read, distinct.duplicates(read)))
}
