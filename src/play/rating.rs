//! Ratings of more than two players.
//!
//! Each pairing gives an Elo with an error (`statistics/pentanomial.rs`). The ratings are the weighted least-squares
//! solution of these differences, weighted by the information of Bradley and Terry's model, n μ (1 − μ) of n pairs with
//! the mean score μ. A rating is then a weighted sum of the pairings' Elo, and so is its error, with Student's t at as
//! many degrees of freedom as the least played of these pairings has pairs: one-sided results of few pairs understate
//! differences. Of simulated ratings of 3 to 10 players, 94% or more of the intervals hold the truth from one pair each
//! on; with the degrees of Satterthwaite, 27 to 95% (`scripts/coverage.sh`).

use schemars::JsonSchema;
use serde::Serialize;

use super::pentanomial::{Interval, Pairs};
use crate::statistics::{CONFIDENCE, Effect};

/// Results of two players against each other, seen from `first`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PairingResult {
    pub first: usize,
    pub second: usize,
    pub pairs: Pairs,
}

/// A player's rating.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rating {
    /// Number of the player, from 0.
    pub player: usize,
    /// Elo above the first player, which has 0 by definition, without an error.
    pub elo: Interval,
}

/// Ratings of `players` players, in their order. A player whom no chain of pairings links to the first has an interval
/// without bounds.
#[must_use]
pub fn ratings(players: usize, results: &[PairingResult]) -> Vec<Rating> {
    let played: Vec<&PairingResult> = results.iter().filter(|result| result.pairs.total() > 0).collect();
    let linked = linked_to_first(players, &played);
    // Rows and columns of the equations: linked players but the first.
    let row_of =
        |player: usize| linked.iter().position(|linked| *linked == player).and_then(|index| index.checked_sub(1));
    let links: Vec<Link> = played
        .iter()
        .filter(|result| linked.contains(&result.first))
        .map(|result| Link::of(result, [row_of(result.first), row_of(result.second)]))
        .collect();
    let inverse = inverted(&information(linked.len().saturating_sub(1), &links));
    let rating = |player: usize| {
        let elo = match row_of(player) {
            Some(row) => rating(&inverse[row], &links).interval(CONFIDENCE),
            None if player == 0 => Interval { value: 0.0, low: 0.0, high: 0.0 },
            None => Interval { value: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY },
        };
        Rating { player, elo }
    };
    (0..players).map(rating).collect()
}

/// A pairing in the equations.
struct Link {
    /// Rows of its players; `None` for the first player of all.
    rows: [Option<usize>; 2],
    weight: f64,
    elo: Effect,
}

impl Link {
    fn of(result: &PairingResult, rows: [Option<usize>; 2]) -> Link {
        let elo = result.pairs.elo_effect();
        let score = 1.0 / (1.0 + 10f64.powf(-elo.value / 400.0));
        Link { rows, weight: elo.degrees * score * (1.0 - score), elo }
    }

    /// The sum of a row's entries, with the pairing's signs.
    fn signed(&self, row: &[f64]) -> f64 {
        let [first, second] = self.rows.map(|place| place.map_or(0.0, |place| row[place]));
        first - second
    }
}

/// A player's rating from its row of the inverse.
fn rating(row: &[f64], links: &[Link]) -> Effect {
    let mut sum = Effect { value: 0.0, variance: 0.0, degrees: f64::INFINITY };
    for link in links {
        let share = link.weight * link.signed(row);
        sum.value += share * link.elo.value;
        sum.variance += share.powi(2) * link.elo.variance;
        if share.abs() > 1e-9 {
            sum.degrees = sum.degrees.min(link.elo.degrees);
        }
    }
    sum
}

/// The players whom played pairings link to the first, itself included.
fn linked_to_first(players: usize, played: &[&PairingResult]) -> Vec<usize> {
    let mut is_linked = vec![false; players];
    is_linked.iter_mut().take(1).for_each(|first| *first = true);
    for _ in 0..players {
        for PairingResult { first, second, .. } in played {
            let either = is_linked[*first] || is_linked[*second];
            is_linked[*first] = either;
            is_linked[*second] = either;
        }
    }
    (0..players).filter(|player| is_linked[*player]).collect()
}

/// The matrix of the normal equations.
fn information(rows: usize, links: &[Link]) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; rows]; rows];
    for Link { rows, weight, .. } in links {
        for (place, sign) in rows.iter().zip([1.0, -1.0]) {
            for (other, other_sign) in rows.iter().zip([1.0, -1.0]) {
                if let (Some(place), Some(other)) = (place, other) {
                    matrix[*place][*other] += sign * other_sign * weight;
                }
            }
        }
    }
    matrix
}

/// The inverse of a positive definite matrix (Gauss and Jordan; no pivoting is needed).
fn inverted(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let size = matrix.len();
    let mut rows: Vec<Vec<f64>> = matrix.to_vec();
    for (number, row) in rows.iter_mut().enumerate() {
        row.extend((0..size).map(|column| if column == number { 1.0 } else { 0.0 }));
    }
    for pivot in 0..size {
        let divisor = rows[pivot][pivot];
        rows[pivot].iter_mut().for_each(|entry| *entry /= divisor);
        let of_pivot = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(number, _)| *number != pivot) {
            let factor = row[pivot];
            row.iter_mut().zip(&of_pivot).for_each(|(entry, of_pivot)| *entry -= factor * of_pivot);
        }
    }
    rows.into_iter().map(|row| row[size..].to_vec()).collect()
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

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::units::Seed;

    fn result(first: usize, second: usize, counts: [u64; 5]) -> PairingResult {
        PairingResult { first, second, pairs: Pairs::from_counts(counts) }
    }

    #[test]
    fn two_players_have_the_elo_of_their_score() {
        // 75% of the points: 190.85 Elo. It is the match's own estimate.
        let found = ratings(2, &[result(1, 0, [0, 0, 5000, 0, 5000])]);
        assert!(found[0].elo.value.abs() < 1e-9);
        let Interval { value, low, high } = found[1].elo;
        assert!((value - 190.85).abs() < 0.02, "{value}");
        assert!(low < value && value < high && high - low < 20.0, "{low} {high}");
        let few = Pairs::from_counts([0, 1, 0, 2, 0]);
        let [_, second] = &ratings(2, &[PairingResult { first: 1, second: 0, pairs: few }])[..] else { panic!("two") };
        let own = few.estimate().elo;
        assert!(
            (second.elo.low - own.low).abs() < 1e-6 && (second.elo.high - own.high).abs() < 1e-6,
            "{second:?} {own:?}"
        );
    }

    #[test]
    fn ratings_are_bounded_where_points_link_all_players() {
        let even = [1, 1, 1, 1, 1];
        let won = [0, 0, 0, 0, 9];
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
        let found = ratings(3, &[result(1, 0, strong), result(2, 1, strong)]);
        assert!((found[2].elo.value - 2.0 * found[1].elo.value).abs() < 0.1, "{found:?}");
        // Nobody ever scored against the last: a finite rating.
        let found = ratings(2, &[result(1, 0, [0, 0, 0, 0, 20])]);
        assert!(found[1].elo.value.is_finite() && found[1].elo.value > 400.0, "{found:?}");
        // The last has not played against any of the others.
        let found = ratings(4, &[result(1, 0, strong), result(3, 2, strong)]);
        assert!(found[1].elo.low > 0.0 && found[3].elo.low == f64::NEG_INFINITY, "{found:?}");
    }

    /// One pair each leaves wide intervals for all three players.
    #[test]
    fn ratings_of_one_pair_each_are_uncertain() {
        let one = [0, 0, 0, 1, 0];
        let found = ratings(3, &[result(0, 1, one), result(0, 2, one), result(1, 2, one)]);
        for Rating { elo: Interval { low, high, .. }, .. } in &found[1..] {
            assert!(high - low > 1_000.0, "{found:?}");
        }
    }

    /// The least share of simulated tournaments in which a player's interval holds its Elo. Players are `spread` Elo
    /// apart from first to last.
    fn covered(players: usize, pairs: u64, spread: f64, draws: f64, tournaments: u32) -> f64 {
        let mut rng = Seed(pairs).stream("tournaments", players as u64);
        let truth: Vec<f64> = (0..players).map(|player| spread * player as f64 / (players as f64 - 1.0)).collect();
        let mut holds = vec![0; players];
        for _ in 0..tournaments {
            let mut results = Vec::new();
            for first in 0..players {
                for second in first + 1..players {
                    let score = 1.0 / (1.0 + 10f64.powf((truth[second] - truth[first]) / 400.0));
                    let drawn = draws.min(2.0 * score.min(1.0 - score));
                    let mut game = || match rng.random::<f64>() {
                        roll if roll < score - drawn / 2.0 => 2,
                        roll if roll < score + drawn / 2.0 => 1,
                        _ => 0,
                    };
                    let mut played = Pairs::default();
                    (0..pairs).for_each(|_| played.add(game() + game()).expect("half points"));
                    results.push(PairingResult { first, second, pairs: played });
                }
            }
            for (Rating { player, elo }, truth) in ratings(players, &results).iter().zip(&truth) {
                holds[*player] += u32::from((elo.low..=elo.high).contains(truth));
            }
        }
        holds.iter().map(|holds| f64::from(*holds) / f64::from(tournaments)).fold(1.0, f64::min)
    }

    #[test]
    fn ratings_are_covered() {
        for (players, pairs, spread, draws) in [(3, 1, 0.0, 0.3), (3, 10, 0.0, 0.05), (6, 2, 600.0, 0.05)] {
            let covered = covered(players, pairs, spread, draws, 1_000);
            assert!(covered >= 0.925, "{players} players, {pairs} pairs, {spread} Elo, {draws} draws: {covered}");
        }
    }

    #[test]
    #[ignore = "minutes: scripts/coverage.sh"]
    fn ratings_are_covered_everywhere() {
        for players in [3, 4, 6, 10] {
            for pairs in [1, 2, 3, 5, 10, 30] {
                let cases = [0.0, 100.0, 300.0, 600.0, 700.0].into_iter();
                let all = cases.flat_map(|spread| [0.05, 0.3, 0.6, 0.95].map(|draws| (spread, draws)));
                let covered = all.map(|(spread, draws)| covered(players, pairs, spread, draws, 10_000));
                let least = covered.fold(1.0, f64::min);
                println!("{players} players, {pairs} pairs each: {least:.4}");
                assert!(least >= 0.932, "{least}");
            }
        }
    }
}
