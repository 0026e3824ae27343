//! From an incumbent and the keys of `[search]` to the sets that a round tries.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SearchLimits;
use crate::features::{FeatureError, FeatureSet};
use crate::measure::{self, MeasureError};
use crate::record::ScreenRecord;

/// The keys of `[search]` that say what to try
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct CandidateKeys {
    /// Blocks to add, as expressions or names of sets, one at a time
    pub blocks: Vec<String>,
}

/// A change of the incumbent.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The definition, as the command line takes it.
    pub set: String,
    /// What was changed, in words.
    pub change: String,
    pub kind: ChangeKind,
}

/// A kind of change.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Add,
}

impl ChangeKind {
    /// The kind's short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ChangeKind::Add => "add",
        }
    }
}

impl CandidateKeys {
    /// Whether they name nothing to try.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

/// The changes of `incumbent`, a set as the command line takes it, in the order of the keys; sets equal to the incumbent
/// or to an earlier one are left out.
///
/// # Errors
/// When a definition has a mistake.
pub fn candidates(incumbent: &str, keys: &CandidateKeys) -> Result<Vec<Candidate>, FeatureError> {
    let mut known = vec![FeatureSet::resolve(incumbent)?.identity().clone()];
    let mut found = Vec::new();
    for block in &keys.blocks {
        let set = format!("{incumbent} + {block}");
        let identity = FeatureSet::resolve(&set)?.identity().clone();
        if !known.contains(&identity) {
            known.push(identity);
            found.push(Candidate { set, change: format!("plus {block}"), kind: ChangeKind::Add });
        }
    }
    Ok(found)
}

/// Games on which sets are looked at.
const GAMES: u64 = 50;

/// The size and cost of a set at a width, and the first limit that it exceeds.
///
/// # Errors
/// When the games cannot be read.
pub fn screen(set: &FeatureSet, data: &Path, limits: SearchLimits, l1: usize) -> Result<ScreenRecord, MeasureError> {
    let bytes = 2 * u64::from(set.num_features()) * l1 as u64;
    let mut record = ScreenRecord { features: set.num_features(), bytes, ..ScreenRecord::default() };
    record.refused = limits.exceeded(&record);
    if record.refused.is_none() {
        let updates = measure::updates(set, data, Some(GAMES), false)?.0;
        record.active = updates.active_mean;
        record.rows_a_move = updates.mean.rows_cache;
        record.refused = limits.exceeded(&record);
    }
    Ok(record)
}
