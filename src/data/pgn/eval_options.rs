//! How the scores of a file are read: their unit and point of view. A number with a point is in pawns. A whole number
//! is in pawns too where any other score of the file has a point, else in centipawns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const HEADING: &str = "Scores in PGN comments";

/// The user's options for the scores in PGN comments.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default)]
pub struct EvalOptions {
    /// Unit of all scores in PGN comments [default: pawns; centipawns in a file whose scores are all whole numbers]
    #[arg(long, value_enum, value_name = "UNIT", help_heading = HEADING)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_unit: Option<EvalUnit>,
    /// Whose view the scores in `[%eval …]` are [default: white; the mover's for `[%eval 0.16/16]` with a depth after a
    /// slash]; scores such as `+0.31/14 0.25s` are always the mover's
    #[arg(long, value_enum, value_name = "VIEW", help_heading = HEADING)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_view: Option<EvalView>,
}

/// A unit of scores in PGN comments.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvalUnit {
    /// Centipawns.
    Cp,
    Pawns,
}

/// The side for which a positive `[%eval …]` is good.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvalView {
    White,
    /// The side that made the move before the comment.
    Mover,
}

/// How a number without a point is read.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WholeNumbers {
    /// `25` is 25 pawns, and `0,17` is no pawns at depth 17.
    Pawns,
    /// `0,17` is 0.17 pawns.
    DecimalComma,
    /// `25` and `25,17` are 25 centipawns.
    Centipawns,
}

/// The rules by which comments are read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EvalRules {
    pub whole_numbers: WholeNumbers,
    /// Whether numbers with a point are centipawns too.
    pub all_centipawns: bool,
    pub view: Option<EvalView>,
}

impl EvalOptions {
    /// Whether the user said nothing.
    pub(crate) fn is_default(&self) -> bool {
        *self == EvalOptions::default()
    }

    /// How numbers without a point are read, if the options decide it.
    pub(super) fn whole_numbers(self) -> Option<WholeNumbers> {
        self.eval_unit.map(|unit| match unit {
            EvalUnit::Cp => WholeNumbers::Centipawns,
            EvalUnit::Pawns => WholeNumbers::DecimalComma,
        })
    }

    pub(super) fn rules(self, whole_numbers: WholeNumbers) -> EvalRules {
        EvalRules { whole_numbers, all_centipawns: self.eval_unit == Some(EvalUnit::Cp), view: self.eval_view }
    }
}
