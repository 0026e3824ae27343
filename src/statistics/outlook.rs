//! What would tell more: further seeds or further games; and what so many seeds can tell before any is trained.

use schemars::JsonSchema;
use serde::Serialize;

use super::distributions::t_quantile;
use super::{Level, together};

/// A source of the noise that an interval holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoiseSource {
    /// Trainings with different seeds.
    Seeds,
    /// Games: validation games on which losses are compared, or a match's games.
    Games,
}

/// What would distinguish two sets, or an Elo from 0, if difference and variances stay as estimated.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outlook {
    /// The source of the larger part of the interval; `None` with one seed, which does not show the seeds' part.
    pub dominant: Option<NoiseSource>,
    /// Further seeds that alone would do; `None` if it is distinguished already, or if more than
    /// [`Outlook::MOST_SEEDS`] would be needed.
    pub more_seeds: Option<u64>,
    /// Further games that alone would do; `None` likewise, beyond [`Outlook::MOST_GROWTH`] times those there are.
    pub more_games: Option<u64>,
}

impl Outlook {
    /// Nobody trains more seeds than these for one answer.
    pub const MOST_SEEDS: u64 = 50;
    /// Nor plays, or looks at, so many times the games.
    pub const MOST_GROWTH: u64 = 100;
}

/// The least number above `now`, at most `most`, from which on `holds` is true; `None` if it is true of `now` already
/// or false of `most`.
pub(super) fn least_above(now: u64, most: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if most <= now || holds(now) || !holds(most) {
        return None;
    }
    let mut fails = now;
    let mut succeeds = most;
    while succeeds - fails > 1 {
        let middle = u64::midpoint(fails, succeeds);
        if holds(middle) { succeeds = middle } else { fails = middle }
    }
    Some(succeeds)
}

/// The precision that a number of seeds can give.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct SeedPlan {
    pub seeds: usize,
    /// The smallest difference of two sets that the table of pairs can show, where all sets are equally noisy and games
    /// do not limit it, in standard deviations between two trainings of one set. Infinite with one seed.
    pub detectable: f64,
    /// The least number of seeds that decide.
    pub advised: usize,
}

impl SeedPlan {
    /// Seeds decide if they can show a difference of so many standard deviations.
    pub const DECISIVE: f64 = 5.0;

    /// Whether so many seeds can decide between sets at all. Two cannot: Student's t at one degree of freedom is 12.7.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.detectable <= Self::DECISIVE
    }
}

/// What so many seeds can tell about so many sets, all of which are compared with each other.
///
/// ```
/// use fsbench::statistics::seed_plan;
///
/// let two = seed_plan(4, 2);
/// assert!(!two.decides() && two.advised == 3);
/// assert!(seed_plan(4, 3).decides());
/// ```
#[must_use]
pub fn seed_plan(sets: usize, seeds: usize) -> SeedPlan {
    let advised = (2..).find(|seeds| detectable(sets, *seeds) <= SeedPlan::DECISIVE).unwrap_or(seeds);
    SeedPlan { seeds, detectable: detectable(sets, seeds), advised }
}

/// Half the width of the interval of a difference, in standard deviations of one training.
fn detectable(sets: usize, seeds: usize) -> f64 {
    if seeds < 2 {
        return f64::INFINITY;
    }
    let statements = sets * sets.saturating_sub(1) / 2;
    let own = seeds as f64 - 1.0;
    let sets = sets as f64;
    let seeds = seeds as f64;
    let quantile = match statements {
        0 | 1 => t_quantile(together(1), own),
        _ => {
            let level = Level::together(statements, 1);
            t_quantile(level.each(), own * (sets - 1.0)).max(t_quantile(level.of_own_noise(seeds), own))
        }
    };
    quantile * (2.0 / seeds).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seeds_decide_nothing() {
        for sets in 2..=16 {
            let plan = |seeds| seed_plan(sets, seeds);
            assert!(!plan(1).decides() && !plan(2).decides() && plan(3).decides(), "{sets} sets");
            assert_eq!(plan(1).advised, 3);
            assert!(plan(2).detectable > 12.0 && plan(5).detectable < plan(3).detectable, "{sets} sets");
        }
        // t at 1 degree of freedom, times √(2 / 2).
        assert!((seed_plan(2, 2).detectable - 12.7062).abs() < 1e-3);
        assert_eq!(seed_plan(2, 1).detectable, f64::INFINITY);
    }

    #[test]
    fn least_numbers() {
        assert_eq!(least_above(3, 100, |number| number >= 7), Some(7));
        assert_eq!(least_above(7, 100, |number| number >= 7), None, "it holds already");
        assert_eq!(least_above(3, 6, |number| number >= 7), None);
    }
}
