//! Entries of a file that are no samples: counted, the first few told.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::Skipped;

/// An entry that was passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedSample {
    /// `line 3, column 7`, `position 12 (byte 384)`, `game at byte 99`.
    pub place: String,
    pub why: String,
}

impl fmt::Display for SkippedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

/// What was passed over so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedSamples {
    pub by_reason: BTreeMap<String, u64>,
    /// The first few.
    pub examples: Vec<SkippedSample>,
}

impl SkippedSamples {
    const EXAMPLES: usize = 10;

    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    pub(super) fn add(&mut self, reason: &str, sample: SkippedSample) {
        match self.by_reason.get_mut(reason) {
            Some(count) => *count += 1,
            None => drop(self.by_reason.insert(reason.into(), 1)),
        }
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(sample);
        }
    }
}

impl From<&Skipped> for SkippedSamples {
    fn from(games: &Skipped) -> SkippedSamples {
        let example = |game: &crate::data::SkippedGame| SkippedSample {
            place: format!("game at byte {}", game.game_offset),
            why: format!("{} at byte {}", game.reason, game.offset),
        };
        SkippedSamples {
            by_reason: games.by_reason.iter().map(|(reason, count)| (reason.to_string(), *count)).collect(),
            examples: games.examples.iter().map(example).collect(),
        }
    }
}
