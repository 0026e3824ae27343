//! Numbers of active features, measured over random play.

use rayon::prelude::*;
use shakmaty::Position;

use crate::chess::Perspective;
use crate::features::FeatureSet;

use super::budget::{AnalysisSteps, Budget, encoding_steps};
use super::positions::random_game;

const GAMES: u64 = 24;
/// Limits the work for sets that are slow to encode: their positions are sampled at intervals.
const BUDGET: AnalysisSteps = 1 << 26;
/// Approximate number of positions in all games.
const POSITIONS: u64 = 4_000;

/// Numbers of active features per perspective.
#[derive(Copy, Clone, Debug, PartialEq, serde::Serialize)]
pub struct ActiveCounts {
    /// Positions measured, each from both perspectives.
    pub positions: usize,
    pub mean: f64,
    pub max: usize,
}

impl ActiveCounts {
    /// Measures positions of a few seeded random games. The result is reproducible unless the time runs out. `None`
    /// when the budget does not suffice for one position.
    pub fn of(set: &FeatureSet, budget: Budget) -> Option<ActiveCounts> {
        let limit = budget.steps(BUDGET);
        let steps = encoding_steps(set);
        let interval = POSITIONS.saturating_mul(steps).div_ceil(limit) as usize;
        let games = GAMES.min(limit / steps);
        let measure = |game: u64| {
            let mut active = Vec::new();
            let mut positions = 0;
            let mut sum = 0;
            let mut max = 0;
            for position in random_game(game).into_iter().step_by(interval) {
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
        let games = (0..games).into_par_iter().map(measure);
        let (positions, sum, max) =
            games.reduce(|| (0, 0, 0), |a: (usize, usize, usize), b| (a.0 + b.0, a.1 + b.1, a.2.max(b.2)));
        (positions > 0).then(|| ActiveCounts { positions, mean: sum as f64 / (2 * positions) as f64, max })
    }
}
