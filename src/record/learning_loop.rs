//! The course of a learning loop: what each iteration played and learned, and whether its network was accepted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GameCounts, StageSeconds};
use crate::statistics::pentanomial::Interval;
use crate::units::SortedMap;

/// A learning loop, which may be unfinished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopRecord {
    /// The network that plays the first games, in words; it counts as iteration 0.
    pub start: String,
    /// Hash of the settings that the networks depend on: a folder holds one loop.
    pub settings: String,
    pub iterations: Vec<LoopIteration>,
    /// The last accepted network against the first accepted one, by games of their own; `None` before the end, and with
    /// fewer than two accepted networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LoopMatch>,
    /// Time of all steps so far.
    pub seconds: StageSeconds,
    /// Why the loop ended, in words; `None` while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// An iteration, as far as it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopIteration {
    /// From 1.
    pub number: u32,
    /// The iteration whose network was accepted last: it plays the games, and the new network plays it. 0: the start.
    pub player: u32,
    /// The games that it adds to the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub games: Option<GeneratedGames>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<LoopTraining>,
    /// The new network against the one that was accepted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<LoopMatch>,
    /// Time of its steps.
    pub seconds: f64,
}

impl LoopRecord {
    /// Results so far: games, trainings and gates of the iterations, and the last match.
    #[must_use]
    pub fn steps(&self) -> usize {
        let of_iteration = |one: &LoopIteration| {
            [one.games.is_some(), one.training.is_some(), one.gate.is_some()].into_iter().filter(|done| *done).count()
        };
        self.iterations.iter().map(of_iteration).sum::<usize>() + usize::from(self.last.is_some())
    }
}

impl LoopIteration {
    /// Whether its network was accepted.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.verdict == Some(GateVerdict::Accepted))
    }
}

/// Games that a network has played against itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratedGames {
    /// Finished games.
    pub games: u64,
    /// Searched positions.
    pub positions: u64,
    /// Moves played.
    pub plies: u64,
    /// Games by result, White's view.
    pub results: SortedMap<String, u32>,
    /// Hash of the file's contents.
    pub hash: String,
    /// Time of the games.
    #[serde(default)]
    pub seconds: f64,
}

/// The training of an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopTraining {
    /// It learned from the games of this iteration and all that follow it.
    pub first: u32,
    /// Searched positions of these games.
    pub positions: u64,
    /// Samples of the training split.
    pub samples: u64,
    /// Loss on the training split, in the best epoch.
    pub train_loss: f64,
    /// On games of the same iterations that it did not learn from.
    pub validation_loss: f64,
    /// Validation loss of the best constant output.
    pub baseline_loss: f64,
    /// Time of the training.
    pub seconds: f64,
}

/// A match between two networks of a loop, at equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopMatch {
    /// The iteration of the network in question.
    pub player: u32,
    /// The iteration of the network that it plays; 0: the start.
    pub opponent: u32,
    /// Games by outcome, seen from the player.
    pub games: GameCounts,
    /// Elo of the player; after a sequential test it is biased, away from 0 on average.
    pub elo: Interval,
    /// `None`: the match decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GateVerdict>,
    /// Time of the match.
    pub seconds: f64,
}

/// What a gate has decided.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// The test has accepted elo1.
    Accepted,
    /// The test has accepted elo0.
    Rejected,
    /// All games were played, and the test is not decided: the network is not taken.
    Undecided,
}

impl GateVerdict {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            GateVerdict::Accepted => "accepted",
            GateVerdict::Rejected => "rejected",
            GateVerdict::Undecided => "undecided",
        }
    }
}
