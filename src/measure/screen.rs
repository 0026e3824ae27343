//! Screens of definitions before any training: their size, and the rows that moves change.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MeasureError, updates};
use crate::features::FeatureSet;
use crate::record::ScreenRecord;
use crate::settings::{SettingError, check_all};
use crate::text::grouped;

/// Bounds of the sets that a search tries
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScreenOptions {
    /// Most features [default: no bound]
    pub max_features: Option<u64>,
    /// Most rows added or subtracted per move and perspective, with a refresh cache [default: no bound]
    pub max_rows: Option<f64>,
    /// Most bytes of a network's feature transformer [default: no bound]
    pub max_bytes: Option<u64>,
}

impl ScreenOptions {
    /// # Errors
    /// If a bound excludes every set.
    pub fn check(&self) -> Result<(), SettingError> {
        check_all(&[
            ("max_features", self.max_features != Some(0), "max_features must be at least 1"),
            ("max_rows", self.max_rows.is_none_or(|rows| rows > 0.0), "max_rows must be above 0"),
            ("max_bytes", self.max_bytes != Some(0), "max_bytes must be at least 1"),
        ])
    }

    /// The bound that a set exceeds, in words.
    fn exceeded(&self, record: &ScreenRecord) -> Option<String> {
        let whole = |number: u64| grouped(&number.to_string());
        let ScreenRecord { features, bytes, .. } = *record;
        if let Some(most) = self.max_features.filter(|most| features > *most) {
            return Some(format!("{} features, more than max_features = {}", whole(features), whole(most)));
        }
        if let Some(most) = self.max_bytes.filter(|most| bytes > *most) {
            return Some(format!("{} bytes, more than max_bytes = {}", whole(bytes), whole(most)));
        }
        let rows = record.rows_a_move?;
        let most = self.max_rows.filter(|most| rows > *most)?;
        Some(format!("{rows:.2} rows per move, more than max_rows = {most}"))
    }
}

/// Bytes of a weight of a quantised feature transformer.
const WEIGHT_BYTES: u64 = 2;

/// The games on which sets are screened.
pub struct ScreenGames {
    data: PathBuf,
    games: u64,
}

/// About so many positions has a game.
const POSITIONS: u64 = 80;

impl ScreenGames {
    /// Some thousands of positions suffice.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn read(data: &Path, positions: u64) -> Result<ScreenGames, MeasureError> {
        Ok(ScreenGames { data: data.to_path_buf(), games: positions.div_ceil(POSITIONS) })
    }
}

/// The cheap screens of a set, as the command line takes it, with networks of `l1` neurons per perspective.
///
/// # Errors
/// When the set is no definition, or the games cannot be read.
pub fn screen(
    set: &str,
    games: &ScreenGames,
    l1: usize,
    options: &ScreenOptions,
) -> Result<ScreenRecord, Box<dyn std::error::Error + Send + Sync>> {
    let set = FeatureSet::resolve(set)?;
    let features = u64::from(set.num_features());
    let mut record = ScreenRecord {
        identity: Some(set.identity().clone()),
        features,
        bytes: features * l1 as u64 * WEIGHT_BYTES,
        active: None,
        rows_a_move: None,
        split: None,
        ns_a_move: None,
        dead_share: None,
        lossless: None,
        refused: None,
    };
    record.refused = options.exceeded(&record);
    if record.refused.is_none() {
        let found = updates(&set, &games.data, Some(games.games), false)?.0;
        record.active = Some(found.active_mean);
        record.rows_a_move = Some(found.mean.rows_cache);
        record.refused = options.exceeded(&record);
    }
    Ok(record)
}
