//! `[scaling]`: trainings on shares of the training games, and their names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Seed;

/// Every row also learns from shares of its training games: what would more data change?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// Shares of the training games, at least three, ascending to 1, which is the row's own training; a game of a share
    /// is in every larger one, and all have the same validation games
    #[serde(default = "Scaling::default_shares")]
    pub shares: Vec<f64>,
    /// steps: as many steps with every share, which passes over it as often as that takes; epochs: as many passes
    #[serde(default)]
    pub by: ScalingBy,
    /// Only trainings with these seeds learn from shares [default: all]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Vec<Seed>>,
}

/// What trainings on shares have in common with the row's own.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScalingBy {
    /// The number of steps.
    #[default]
    Steps,
    /// The number of passes over the data.
    Epochs,
}

impl Scaling {
    fn default_shares() -> Vec<f64> {
        vec![0.031, 0.0625, 0.125, 0.25, 0.5, 1.0]
    }

    /// The label in run keys of a row's trainings on a share; its own label on the whole.
    #[must_use]
    pub fn label(row: &str, share: f64) -> String {
        if share < 1.0 { format!("{row}, share {share}") } else { row.to_owned() }
    }

    /// The labels in run keys of a row's trainings on all shares.
    #[must_use]
    pub fn labels(&self, row: &str) -> Vec<String> {
        self.shares.iter().map(|share| Scaling::label(row, *share)).collect()
    }
}

impl Default for Scaling {
    fn default() -> Scaling {
        Scaling { shares: Scaling::default_shares(), by: ScalingBy::default(), seeds: None }
    }
}
