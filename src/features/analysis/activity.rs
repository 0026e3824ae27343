//! How many features are active, measured on random play.

use rayon::prelude::*;
use shakmaty::Position;

use crate::chess::Perspective;
use crate::features::FeatureSet;

use super::positions::random_game;
use super::search::{Steps, encoding_steps};

const GAMES: u64 = 24;
/// Bounds the work on sets that are slow to encode: of their positions only every so many-th is looked at.
const BUDGET: Steps = 1 << 28;
/// Positions of all games together, about.
const POSITIONS: u64 = 4_000;

/// Active features a perspective.
#[derive(Copy, Clone, Debug, PartialEq, serde::Serialize)]
pub struct Activity {
    /// Positions looked at, each from both perspectives.
    pub positions: usize,
    pub mean: f64,
    pub max: usize,
}

impl Activity {
    /// Over the positions of a few seeded random games; the same numbers every time.
    pub fn of(set: &FeatureSet) -> Activity {
        let every = (POSITIONS * encoding_steps(set)).div_ceil(BUDGET) as usize;
        let count = |game: u64| {
            let mut active = Vec::new();
            let (mut positions, mut sum, mut max) = (0, 0, 0);
            for position in random_game(game).into_iter().step_by(every) {
                for pov in Perspective::ALL {
                    set.active(position.board(), pov, &mut active);
                    sum += active.len();
                    max = max.max(active.len());
                }
                positions += 1;
            }
            (positions, sum, max)
        };
        let games = (0..GAMES).into_par_iter().map(count);
        let (positions, sum, max) =
            games.reduce(|| (0, 0, 0), |a: (usize, usize, usize), b| (a.0 + b.0, a.1 + b.1, a.2.max(b.2)));
        Activity { positions, mean: sum as f64 / (2 * positions) as f64, max }
    }
}
