//! Counts the entries of a file that are not samples and keeps the first as examples.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::SkippedGames;
use crate::units::SortedMap;

/// An entry that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedSample {
    /// `line 3, column 7`, `position 12 (byte 384)`, `game at byte 99`.
    #[serde(rename = "place")]
    pub location: String,
    /// What is wrong with it.
    #[serde(rename = "why")]
    pub message: String,
}

impl fmt::Display for SkippedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

/// The entries skipped so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedSamples {
    /// Samples that were left out, by reason.
    pub by_reason: SortedMap<String, u64>,
    /// The first ten.
    pub examples: Vec<SkippedSample>,
}

impl SkippedSamples {
    const EXAMPLES: usize = 10;

    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_reason.is_empty()
    }

    /// For an error message: how many were skipped, and the first. Empty if there are none.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.examples.first() {
            Some(first) => format!(" (broken entries: {}; the first: {first})", self.by_reason_text()),
            None => String::new(),
        }
    }

    /// The counts: `broken chain: 2, cut-off chunk: 1`.
    #[must_use]
    pub fn by_reason_text(&self) -> String {
        let counts: Vec<String> = self.by_reason.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
        counts.join(", ")
    }

    /// Counts an entry; `sample` describes it if it is among the first.
    pub(super) fn add(&mut self, reason: &str, sample: impl FnOnce() -> SkippedSample) {
        match self.by_reason.get_mut(reason) {
            Some(count) => *count += 1,
            None => drop(self.by_reason.insert(reason.into(), 1)),
        }
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(sample());
        }
    }

    /// Adds the entries of a later part of the file.
    pub(super) fn extend(&mut self, later: SkippedSamples) {
        for (reason, count) in later.by_reason {
            *self.by_reason.get_or_default(reason) += count;
        }
        let room = Self::EXAMPLES - self.examples.len();
        self.examples.extend(later.examples.into_iter().take(room));
    }
}

impl From<&SkippedGames> for SkippedSamples {
    fn from(games: &SkippedGames) -> SkippedSamples {
        let example = |game: &crate::data::SkippedGame| SkippedSample {
            location: format!("game at byte {}", game.game_offset),
            message: format!("{} at byte {}", game.reason, game.offset),
        };
        SkippedSamples {
            by_reason: games.by_reason.iter().map(|(reason, count)| (reason.to_string(), *count)).collect(),
            examples: games.examples.iter().map(example).collect(),
        }
    }
}
