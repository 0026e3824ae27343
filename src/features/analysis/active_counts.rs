//! How many features are active, measured on random play.

use rayon::prelude::*;
use shakmaty::Position;

use crate::chess::Perspective;
use crate::features::FeatureSet;

use super::bindings::encoding_steps;
use super::budget::{Budget, Steps};
use super::positions::random_game;

const GAMES: u64 = 24;
/// Bounds the work on sets that are slow to encode: of their positions only every so many-th is looked at.
const BUDGET: Steps = 1 << 26;
/// Positions of all games together, about.
const POSITIONS: u64 = 4_000;

/// Active features a perspective.
#[derive(Copy, Clone, Debug, PartialEq, serde::Serialize)]
pub struct ActiveCounts {
    /// Positions looked at, each from both perspectives.
    pub positions: usize,
    pub mean: f64,
    pub max: usize,
}

impl ActiveCounts {
    /// Over the positions of a few seeded random games; the same numbers every time, but where the time is over. None
    /// when not a single position can be encoded within the budget.
    pub fn of(set: &FeatureSet, budget: Budget) -> Option<ActiveCounts> {
        let limit = budget.steps(BUDGET);
        let each = encoding_steps(set);
        let every = POSITIONS.saturating_mul(each).div_ceil(limit) as usize;
        let games = GAMES.min(limit / each);
        let count = |game: u64| {
            let mut active = Vec::new();
            let (mut positions, mut sum, mut max) = (0, 0, 0);
            for position in random_game(game).into_iter().step_by(every) {
                if budget.expired() {
                    break;
                }
                for pov in Perspective::ALL {
                    set.encoder().encode(position.board(), pov, &mut active);
                    sum += active.len();
                    max = max.max(active.len());
                }
                positions += 1;
            }
            (positions, sum, max)
        };
        let games = (0..games).into_par_iter().map(count);
        let (positions, sum, max) =
            games.reduce(|| (0, 0, 0), |a: (usize, usize, usize), b| (a.0 + b.0, a.1 + b.1, a.2.max(b.2)));
        (positions > 0).then(|| ActiveCounts { positions, mean: sum as f64 / (2 * positions) as f64, max })
    }
}
