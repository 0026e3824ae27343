//! The summary of a generation.

use schemars::JsonSchema;
use serde::Serialize;

use super::{GenerateSpeed, PhaseCounts};
use crate::data::formats::Omissions;
use crate::data::{GameResult, ScoreUnit};
use crate::pipeline::generation::BookFacts;
use crate::pipeline::uci::EngineFault;
use crate::play::{GameLength, PlayedGame};
use crate::units::SortedMap;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A summary of a finished generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GenerateSummary {
    /// The engines' names.
    pub engine: String,
    /// Finished games.
    pub games: u32,
    /// Games that were dropped, as an engine failed in them twice.
    pub dropped_games: SortedMap<EngineFault, u32>,
    /// Games that were dropped, as the score of their opening lies beyond the bound.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_openings: u32,
    /// Games taken from the journal of an interrupted run.
    pub resumed: u32,
    /// Games played again because an engine failed in them.
    #[serde(rename = "again")]
    pub replayed: u32,
    /// Games of the journal beyond the requested number; they stay in the journal.
    #[serde(skip_serializing_if = "is_zero")]
    pub unused: u32,
    /// Moves played.
    pub plies: u64,
    /// Positions that were searched.
    pub positions: u64,
    /// These positions by phase.
    pub phases: PhaseCounts,
    /// Samples written; `None` for PGN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Unit of the samples' scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_unit: Option<ScoreUnit>,
    /// Information of the samples that the format could not hold.
    #[serde(rename = "account", skip_serializing_if = "Option::is_none")]
    pub omissions: Option<Omissions>,
    /// Games by result, White's view.
    pub results: SortedMap<String, u32>,
    /// Each engine's score; empty for a single engine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<EngineScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<BookFacts>,
    /// The work of this run; `None` where all games came from an interrupted one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<GenerateSpeed>,
}

impl GenerateSummary {
    /// Counts a game that was not dropped.
    pub(super) fn add(&mut self, game: &PlayedGame) {
        let GameLength { plies, positions } = game.summary().counts;
        self.games += 1;
        self.plies += u64::from(plies);
        self.positions += u64::from(positions);
        self.phases.add(game);
        *self.results.get_or_default(game.result.pgn().to_owned()) += 1;
        if !self.scores.is_empty() {
            self.scores[game.white].add(game.result);
            self.scores[game.black].add(game.result.reversed());
        }
    }
}

/// An engine's score against all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EngineScore {
    /// The engine's name.
    pub engine: String,
    /// Games that it won.
    pub wins: u32,
    /// Games without a winner.
    pub draws: u32,
    /// Games that it lost.
    pub losses: u32,
}

impl EngineScore {
    fn add(&mut self, result: GameResult) {
        match result {
            GameResult::Win => self.wins += 1,
            GameResult::Draw => self.draws += 1,
            GameResult::Loss => self.losses += 1,
        }
    }
}
