//! One scale for all networks.
//!
//! The search's margins are in centipawns, but the typical size of a network's scores drifts with its loss, data and
//! features. Before a network plays, one factor brings the mean size of its scores to the reference's.

use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Position};

use super::score::LARGEST_EVAL;
use crate::engine::Evaluator;

/// Factor from a network's internal score units to the search's centipawns, in 1/65,536.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvalScale(i32);

impl EvalScale {
    const ONE: f64 = 65_536.0;

    /// Mean |score| that a network's scores are brought to over the positions of [`EvalScale::of`], in centipawns of the
    /// search's margins. A convention: a round number, not measured from a reference network.
    pub const REFERENCE_MEAN: f64 = 150.0;

    /// Internal units as they are.
    pub const UNIT: EvalScale = EvalScale(65_536);

    /// The factor itself.
    #[must_use]
    pub fn factor(self) -> f64 {
        f64::from(self.0) / Self::ONE
    }

    /// The factor for a network, from its scores of fixed positions: those one legal move away from the bench positions.
    #[must_use]
    pub fn of(evaluator: &mut Evaluator<'_>) -> EvalScale {
        let (mut sum, mut count) = (0i64, 0i64);
        for fen in super::BENCH_FENS {
            let Some(position) = super::bench::position(fen) else { continue };
            for mv in position.legal_moves() {
                let mut after: Chess = position.clone();
                after.play_unchecked(mv);
                evaluator.set(after.board());
                sum += i64::from(evaluator.score(after.turn()).abs());
                count += 1;
            }
        }
        let mean = sum as f64 / count.max(1) as f64;
        let factor = if mean > 0.0 { Self::REFERENCE_MEAN / mean } else { 1.0 };
        EvalScale((factor * Self::ONE).round().clamp(1.0, f64::from(i32::MAX)) as i32)
    }

    /// A score in the search's centipawns, within the range of evaluations.
    pub(super) fn apply(self, internal: i32) -> i32 {
        let scaled = (i64::from(internal) * i64::from(self.0)) >> 16;
        scaled.clamp(-i64::from(LARGEST_EVAL), i64::from(LARGEST_EVAL)) as i32
    }
}
