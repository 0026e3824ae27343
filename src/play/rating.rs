//! Ratings of more than two players.
//!
//! Bradley–Terry model, a draw counting half a point: the expected score of i against j is 1/(1 + 10^((rⱼ − rᵢ)/400)).
//! The ratings maximise the likelihood (Hunter 2004, the minorisation–maximisation step); intervals come from a
//! bootstrap over game pairs, because the two games of an opening are correlated.

use rand::RngExt;
use serde::Serialize;

use super::pentanomial::{Interval, Pairs};
use crate::units::Seed;

/// Results of two players against each other, seen from `first`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PairingResult {
    pub first: usize,
    pub second: usize,
    pub pairs: Pairs,
}

/// A player's rating.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rating {
    pub player: usize,
    /// Elo above the first player, which has 0.
    pub elo: Interval,
}

const RESAMPLES: usize = 1000;
/// Points added to both sides of every pairing that was played, so that no rating is infinite.
const PRIOR_POINTS: f64 = 0.05;
const STEPS: usize = 2000;
const TOLERANCE: f64 = 1e-10;

/// Ratings of `players` players, in their order.
#[must_use]
pub fn ratings(players: usize, results: &[PairingResult], seed: Seed) -> Vec<Rating> {
    let elo = maximum_likelihood(players, results);
    let mut rng = seed.stream("rating bootstrap", 0);
    let mut resampled: Vec<Vec<f64>> = vec![Vec::with_capacity(RESAMPLES); players];
    for _ in 0..RESAMPLES {
        let drawn: Vec<PairingResult> = results.iter().map(|result| resample(result, &mut rng)).collect();
        for (player, elo) in maximum_likelihood(players, &drawn).into_iter().enumerate() {
            resampled[player].push(elo);
        }
    }
    let quantile = |sorted: &[f64], share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let rating = |(player, value): (usize, f64)| {
        let sorted = &mut resampled[player];
        sorted.sort_by(f64::total_cmp);
        Rating { player, elo: Interval { value, low: quantile(sorted, 0.025), high: quantile(sorted, 0.975) } }
    };
    elo.into_iter().enumerate().map(rating).collect()
}

/// Whether the games bound every rating difference: any two players are linked by others of whom each took points from
/// the next. Otherwise only the prior keeps some ratings finite.
#[must_use]
pub fn are_bounded(players: usize, results: &[PairingResult]) -> bool {
    let scored = |result: &PairingResult| {
        let [first_lost_all, .., second_lost_all] = result.pairs.counts();
        let total = result.pairs.total();
        let by_first = (first_lost_all < total).then_some((result.first, result.second));
        let by_second = (second_lost_all < total).then_some((result.second, result.first));
        [by_first, by_second]
    };
    let links: Vec<(usize, usize)> = results.iter().flat_map(scored).flatten().collect();
    let reaches_all = |link: fn(&(usize, usize)) -> (usize, usize)| {
        let mut reached = vec![false; players];
        reached[0] = true;
        for _ in 0..players {
            links.iter().map(link).for_each(|(from, to)| reached[to] |= reached[from]);
        }
        reached.into_iter().all(|reached| reached)
    };
    reaches_all(|&link| link) && reaches_all(|&(from, to)| (to, from))
}

/// Draws the same number of pairs with replacement.
fn resample(result: &PairingResult, rng: &mut impl RngExt) -> PairingResult {
    let counts = result.pairs.counts();
    let total = result.pairs.total();
    let mut drawn = [0; 5];
    for _ in 0..total {
        let mut place = rng.random_range(0..total);
        let outcome = counts.iter().position(|count| {
            let found = place < *count;
            place = place.saturating_sub(*count);
            found
        });
        drawn[outcome.unwrap_or(0)] += 1;
    }
    PairingResult { pairs: Pairs::from_counts(drawn), ..*result }
}

/// Elo of every player, the first at 0.
fn maximum_likelihood(players: usize, results: &[PairingResult]) -> Vec<f64> {
    // (first, second, points of the first, points of the second)
    let played = results.iter().filter(|result| result.pairs.total() > 0);
    let points: Vec<(usize, usize, f64, f64)> = played
        .map(|result| {
            let half_points: u64 = result.pairs.counts().iter().zip(0..).map(|(count, points)| count * points).sum();
            let (won, all) = (half_points as f64 / 2.0, result.pairs.total() as f64 * 2.0);
            (result.first, result.second, won + PRIOR_POINTS, all - won + PRIOR_POINTS)
        })
        .collect();
    let mut strength = vec![1.0f64; players];
    for _ in 0..STEPS {
        let (mut won, mut weight) = (vec![0.0; players], vec![0.0; players]);
        for &(first, second, points, others) in &points {
            let share = (points + others) / (strength[first] + strength[second]);
            won[first] += points;
            won[second] += others;
            weight[first] += share;
            weight[second] += share;
        }
        let mut largest: f64 = 0.0;
        for player in 0..players {
            if weight[player] > 0.0 {
                let next = won[player] / weight[player];
                largest = largest.max((next / strength[player] - 1.0).abs());
                strength[player] = next;
            }
        }
        let scale = strength[0];
        strength.iter_mut().for_each(|strength| *strength /= scale);
        if largest < TOLERANCE {
            break;
        }
    }
    strength.into_iter().map(|strength| 400.0 * strength.log10()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(first: usize, second: usize, counts: [u64; 5]) -> PairingResult {
        PairingResult { first, second, pairs: Pairs::from_counts(counts) }
    }

    #[test]
    fn two_players_have_the_elo_of_their_score() {
        // 75% of the points: 190.85 Elo.
        let found = ratings(2, &[result(1, 0, [0, 0, 5000, 0, 5000])], Seed(1));
        assert!(found[0].elo.value.abs() < 1e-9);
        let Interval { value, low, high } = found[1].elo;
        assert!((value - 190.85).abs() < 0.02, "{value}");
        assert!(low < value && value < high && high - low < 20.0, "{low} {high}");
    }

    #[test]
    fn ratings_are_bounded_where_points_link_all_players() {
        let (even, won) = ([1, 1, 1, 1, 1], [0, 0, 0, 0, 9]);
        let check = |results: &[PairingResult], expected| assert_eq!(are_bounded(3, results), expected, "{results:?}");
        check(&[result(0, 1, even), result(1, 2, even)], true);
        check(&[result(0, 1, even), result(1, 2, won)], false);
        // The third player has not played.
        check(&[result(0, 1, even), result(1, 2, [0; 5])], false);
        check(&[result(0, 1, won), result(1, 2, won)], false);
        // Each beat the next in a circle.
        check(&[result(0, 1, won), result(1, 2, won), result(2, 0, won)], true);
    }

    #[test]
    fn ratings_add_up_over_a_third_player() {
        let strong = [0, 0, 50, 0, 50];
        let found = ratings(3, &[result(1, 0, strong), result(2, 1, strong)], Seed(1));
        assert!((found[2].elo.value - 2.0 * found[1].elo.value).abs() < 0.1, "{found:?}");
        // Nobody ever scored against the last: a finite rating.
        let found = ratings(2, &[result(1, 0, [0, 0, 0, 0, 20])], Seed(1));
        assert!(found[1].elo.value.is_finite() && found[1].elo.value > 400.0, "{found:?}");
    }
}
