//! The tree of a search over feature sets: what each round tried, what it brought and cost, and why it stopped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScreenRecord;
use crate::statistics::pentanomial::Interval;

/// A search over feature sets, which may be unfinished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRecord {
    /// The label of the set that the winner is compared with in the end: the experiment's first row.
    pub first: String,
    /// Round 0 compares the experiment's own rows, if there are several; the others try changes of the incumbent.
    pub rounds: Vec<SearchRound>,
    /// How Elo is predicted, by the matches so far.
    pub prediction: SearchPrediction,
    /// The best set so far, if it is not the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<SearchWinner>,
    /// Of all steps so far.
    pub seconds: f64,
    /// Why the search ended, in words; `None` while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// A round: changes of one incumbent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRound {
    /// From 1; 0 compares the experiment's own rows.
    pub number: u32,
    /// The label of the incumbent.
    pub incumbent: String,
    /// The incumbent's size and cost; `None` in round 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenRecord>,
    /// In the order in which they are tried.
    pub candidates: Vec<SearchCandidate>,
    /// Time of the round's steps.
    pub seconds: f64,
}

/// A set that a round tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchCandidate {
    /// Its name: the incumbent's with the change.
    pub label: String,
    /// The definition, as the command line takes it.
    pub set: String,
    /// What was changed, in words.
    pub change: String,
    /// The kind of change: `add`, `mirror`, `king-buckets`, `drop`, `select`; `given` for a row of the experiment.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenRecord>,
    /// Short trainings from the incumbent's network, each longer than the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub liftings: Vec<LiftedCandidate>,
    /// The training from scratch with all seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<TrainedCandidate>,
    /// Games against the incumbent at equal cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<PlayedCandidate>,
    pub stage: CandidateStage,
    /// Why it went no further, in words; empty while it may.
    pub why: String,
}

impl SearchCandidate {
    /// One of which nothing is known yet.
    #[must_use]
    pub fn new(label: String, set: String, change: String, kind: &str) -> SearchCandidate {
        SearchCandidate {
            label,
            set,
            change,
            kind: kind.to_owned(),
            screen: None,
            liftings: Vec::new(),
            full: None,
            played: None,
            stage: CandidateStage::Screened,
            why: String::new(),
        }
    }
}

/// How far a candidate came.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CandidateStage {
    /// Known by its size and cost only.
    #[default]
    Screened,
    /// Trained for a short time from the incumbent's network.
    Lifted,
    /// Trained from scratch.
    Finalist,
    /// Played the last race.
    LastRace,
    /// Became the incumbent.
    Winner,
}

impl CandidateStage {
    pub const ALL: [CandidateStage; 5] = [
        CandidateStage::Screened,
        CandidateStage::Lifted,
        CandidateStage::Finalist,
        CandidateStage::LastRace,
        CandidateStage::Winner,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CandidateStage::Screened => "screened",
            CandidateStage::Lifted => "lifted",
            CandidateStage::Finalist => "finalist",
            CandidateStage::LastRace => "last race",
            CandidateStage::Winner => "winner",
        }
    }
}

/// The logarithm of the loss minus the incumbent's, paired by validation game, with half of its 95% interval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossDifference {
    /// The difference; below 0 the candidate is better.
    pub value: f64,
    /// Half of the interval.
    pub half_width: f64,
}

/// A short training from the incumbent's network, beside one of the incumbent's own set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiftedCandidate {
    /// That it learned from.
    pub samples: u64,
    pub loss: LossDifference,
    /// The logarithm to base 2 of its speed divided by the incumbent's, estimated by its size and cost.
    pub log2_speed: f64,
    /// Elo at equal cost that follows from both.
    pub predicted: Interval,
    /// Time of its training.
    pub seconds: f64,
}

/// A training from scratch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainedCandidate {
    /// Width of the accumulator.
    pub l1: usize,
    /// Seeds that trained both sets.
    pub seeds: usize,
    pub loss: LossDifference,
    /// Time of its trainings.
    pub seconds: f64,
}

/// Games at equal cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlayedCandidate {
    /// Games of all seeds.
    pub games: u64,
    /// The mean over the seeds.
    pub elo: Interval,
    /// The logarithm to base 2 of its speed divided by the incumbent's, by the cost of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log2_speed: Option<f64>,
}

/// Predicted Elo at equal cost: `loss` · Δ ln loss + `speed` · Δ log2 speed.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPrediction {
    /// Elo of one unit of the loss's logarithm.
    pub loss: f64,
    /// Its standard error.
    pub loss_error: f64,
    /// Elo of twice the evaluations a second.
    pub speed: f64,
    /// Its standard error.
    pub speed_error: f64,
    /// Correlation of both errors.
    pub correlation: f64,
    /// Matches of the search that both are fitted to.
    pub matches: usize,
}

impl Default for SearchPrediction {
    fn default() -> SearchPrediction {
        SearchPrediction::before_matches(1.0)
    }
}

impl SearchPrediction {
    /// What is assumed before any match, by the experiments in `results` of a thousand nodes a move: four king buckets
    /// had 5 to 8% less loss than one and played +38 Elo at equal nodes; twice the evaluations a second were worth 80 to
    /// 250 Elo at equal cost, where cost weighs 1. The errors are wide, so that some matches replace them.
    #[must_use]
    pub fn before_matches(cost_weight: f64) -> SearchPrediction {
        SearchPrediction {
            loss: -550.0,
            loss_error: 250.0,
            speed: 120.0 * cost_weight,
            speed_error: 60.0 * cost_weight,
            correlation: 0.0,
            matches: 0,
        }
    }
}

/// The best set of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchWinner {
    /// The label of its row.
    pub label: String,
    /// Its self-contained definition, as TOML.
    pub definition: String,
    /// The comparison with the first set on games and openings that no choice saw; `None` until the search has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastComparison>,
}

/// The winner against the first set, on games and openings that were kept for this comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastComparison {
    /// On the validation games that were kept; `None` if there are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossDifference>,
    /// Validation games that were kept.
    pub games: usize,
    /// In matches at equal cost on the openings that were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<PlayedCandidate>,
}
