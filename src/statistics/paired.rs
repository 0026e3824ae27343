//! Differences between feature sets, paired by training seed and by game: variance components of both, intervals that
//! hold both, and the number of seeds or games that would tell two sets apart.

use super::distributions::t_quantile;
use super::outlook::{NoiseSource, Outlook, least_above};
use super::seed_noise::{BySeed, PairNoise, SeedNoise};
use super::{Estimate, Level};
use crate::units::SortedMap;

/// How means are compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By their ratio: the difference of their logarithms. For losses, whose noise grows with their size.
    Logarithmic,
    /// By their difference. For shares.
    Linear,
}

/// A feature set's networks on the same games: by training seed, a sum over the samples of each game.
pub type SeedSums = SortedMap<u64, Vec<f64>>;

/// Several feature sets, trained with several seeds and measured on the same games.
///
/// With nᵍ samples and the sum Lˢᵍ of game g under seed s, of G games and N samples, a seed's mean is mˢ = Σᵍ Lˢᵍ / N
/// and its value yˢ = ln mˢ (or mˢ). A game's influence on it is uˢᵍ = G (Lˢᵍ − nᵍ mˢ) / N · dy/dm, the linearisation
/// of the ratio of sums (Cochran, Sampling Techniques, 6.3), whose mean over the games is 0. The difference of two sets
/// A and B is the difference of their values, xˢᵍ = (yˢ + uˢᵍ of A) − (yˢ + uˢᵍ of B): a layout of S seeds × G games
/// with one value in each cell, of which both factors are random (Searle, Casella and McCulloch, Variance Components,
/// chapter 4).
pub struct PairedSets {
    games: usize,
    /// By set and seed.
    sets: Vec<SortedMap<u64, Trained>>,
    noise: Option<SeedNoise>,
}

/// A network's mean, and how much each game moves it.
struct Trained {
    value: f64,
    influence: Vec<f64>,
}

/// The difference of two sets with its variance components. `games` are those on which every seed's networks are
/// compared, or, of an Elo, the pairs that a seed's networks play.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PairedDifference {
    /// First minus second, on the scale of the comparison.
    pub value: f64,
    /// Seeds that trained both.
    pub seeds: usize,
    pub games: usize,
    /// Degrees of freedom of the games' variance.
    pub(super) degrees: f64,
    /// The noise of one seed's difference; `None` with one seed.
    pub(super) between_seeds: Option<PairNoise>,
    /// The part of `between_seeds` that more games would reduce: MS(seeds × games) / G.
    pub(super) by_games: f64,
    /// σ²(games) / G
    pub(super) between_games: f64,
}

impl PairedSets {
    /// `samples`: the number of samples of each game. Games without samples are left out.
    ///
    /// `None` with fewer than two games, if a sum is missing, or if a mean has no value on the scale (the logarithm of
    /// 0).
    #[must_use]
    pub fn new(samples: &[f64], sets: &[SeedSums], scale: Scale) -> Option<PairedSets> {
        let played: Vec<usize> = (0..samples.len()).filter(|game| samples[*game] > 0.0).collect();
        let games = played.len();
        let total: f64 = samples.iter().sum();
        let trained = |sums: &Vec<f64>| {
            let mean = sums.iter().sum::<f64>() / total;
            let (value, slope) = match scale {
                Scale::Logarithmic => (mean.ln(), 1.0 / mean),
                Scale::Linear => (mean, 1.0),
            };
            let influence = |game: &usize| slope * games as f64 * (sums[*game] - samples[*game] * mean) / total;
            let fits = sums.len() == samples.len() && value.is_finite();
            fits.then(|| Trained { value, influence: played.iter().map(influence).collect() })
        };
        let of_set = |sums: &SeedSums| sums.iter().map(|(seed, sums)| Some((*seed, trained(sums)?))).collect();
        let sets = sets.iter().map(of_set).collect::<Option<Vec<SortedMap<u64, Trained>>>>()?;
        let by_seed = |set: &SortedMap<u64, Trained>| set.iter().map(|(seed, net)| (*seed, net.value)).collect();
        let noise = SeedNoise::of(&sets.iter().map(by_seed).collect::<Vec<BySeed>>());
        (games > 1).then_some(PairedSets { games, sets, noise })
    }

    /// The difference of two sets, given by their numbers; `None` if no seed trained both.
    ///
    /// With x̄ˢ the seeds' means, MS(games) = S Σᵍ (x̄ᵍ − x̄)² / (G−1) and MS(rest) = Σ (xˢᵍ − x̄ˢ − x̄ᵍ + x̄)² /
    /// ((S−1)(G−1)), the expectation of x̄ has the variance V(seeds)/S + V(games) with V(seeds) = Σ (x̄ˢ − x̄)² / (S−1)
    /// and V(games) = max(0, MS(games) − MS(rest)) / (S G). Where three or more sets share their seeds, V(seeds) is
    /// taken from all of them together and from each of the two (see `seed_noise.rs`).
    #[must_use]
    pub fn difference(&self, first: usize, second: usize) -> Option<PairedDifference> {
        let of_first = self.sets.get(first)?;
        let of_second = self.sets.get(second)?;
        let both: Vec<(&Trained, &Trained)> =
            of_first.iter().filter_map(|(seed, first)| Some((first, of_second.get(seed)?))).collect();
        let seeds = both.len();
        let games = self.games;
        let values: Vec<f64> = both.iter().map(|(first, second)| first.value - second.value).collect();
        let value = mean(&values)?;
        // Sums over seeds of the cells' squares around the seed's mean, and of the games' means.
        let mut squares = 0.0;
        let mut squares_of_means = 0.0;
        for game in 0..games {
            let cells = || both.iter().map(|(first, second)| first.influence[game] - second.influence[game]);
            squares += cells().map(|cell| cell * cell).sum::<f64>();
            squares_of_means += (cells().sum::<f64>() / seeds as f64).powi(2);
        }
        let s = seeds as f64;
        let g = games as f64;
        let of_games = s * squares_of_means / (g - 1.0);
        let rest = match seeds {
            1 => 0.0,
            _ => (squares - s * squares_of_means).max(0.0) / ((s - 1.0) * (g - 1.0)),
        };
        let between_games = (of_games - rest).max(0.0) / (s * g);
        let own = PairNoise::of_differences(&values);
        let of_table = self.noise.as_ref().map(|noise| noise.of_pair(first, second, seeds));
        let between_seeds = own.map(|own| of_table.unwrap_or(own));
        let degrees = g - 1.0;
        Some(PairedDifference { value, seeds, games, degrees, between_seeds, by_games: rest / g, between_games })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl PairedDifference {
    /// Half the width of the interval. With one seed it lacks the variance between seeds.
    #[must_use]
    pub fn half_width(&self, level: Level) -> f64 {
        self.half_width_with(level, self.seeds as u64, self.games as u64)
    }

    /// The difference with its interval.
    #[must_use]
    pub fn estimate(&self, level: Level) -> Estimate {
        Estimate { mean: self.value, interval: Some(self.half_width(level)), count: self.seeds }
    }

    /// Whether the interval excludes 0.
    #[must_use]
    pub fn is_distinguished(&self, level: Level) -> bool {
        self.value.abs() > self.half_width(level)
    }

    /// The standard error by its parts: from the seeds (`None` with one), from the games.
    #[must_use]
    pub fn standard_errors(&self) -> (Option<f64>, f64) {
        let seeds = self.between_seeds.map(|seeds| (seeds.variance() / self.seeds as f64).sqrt());
        (seeds, self.between_games.sqrt())
    }

    /// Which noise is in the way, and how many further seeds or games, on which the networks would be compared, make
    /// the interval exclude 0.
    #[must_use]
    pub fn outlook(&self, level: Level) -> Outlook {
        let seeds = self.seeds as u64;
        let games = self.games as u64;
        let excludes = |seeds, games| self.value.abs() > self.half_width_with(level, seeds, games);
        let least_seeds = || least_above(seeds, seeds + Outlook::MOST_SEEDS, |seeds| excludes(seeds, games));
        Outlook {
            dominant: self.dominant(level),
            more_seeds: self.between_seeds.and_then(|_| least_seeds()).map(|least| least - seeds),
            more_games: least_above(games, Outlook::MOST_GROWTH * games, |games| excludes(seeds, games))
                .map(|least| least - games),
        }
    }

    /// The source of the larger part of the interval; `None` with one seed.
    fn dominant(&self, level: Level) -> Option<NoiseSource> {
        let [by_seeds, by_games] = self.squared_half_widths(level, self.seeds as u64, self.games as u64);
        let reduced_by_games = by_seeds * self.share_of_games(self.between_seeds?.variance());
        Some(if by_seeds - reduced_by_games > by_games + reduced_by_games {
            NoiseSource::Seeds
        } else {
            NoiseSource::Games
        })
    }

    /// The share of the seeds' variance that more games would reduce.
    fn share_of_games(&self, variance: f64) -> f64 {
        if variance > 0.0 { (self.by_games / variance).min(1.0) } else { 0.0 }
    }

    /// The half-width with other numbers of seeds and games: both parts have quantiles of their own (Howe 1974), which
    /// is exact where one part is alone and too wide in between.
    fn half_width_with(&self, level: Level, seeds: u64, games: u64) -> f64 {
        self.squared_half_widths(level, seeds, games).iter().sum::<f64>().sqrt()
    }

    /// By the noise of the seeds and by the noise of the games.
    fn squared_half_widths(&self, level: Level, seeds: u64, games: u64) -> [f64; 2] {
        let growth = games as f64 / self.games as f64;
        let degrees = self.degrees * growth;
        let by_games = t_quantile(level.each(), degrees).powi(2) * self.between_games / growth;
        let by_seeds = self.between_seeds.map_or(0.0, |noise| {
            let share = self.share_of_games(noise.variance());
            let found = noise.squared_half_width(level, seeds as usize) * (1.0 - share + share / growth);
            // However close the seeds happen to lie, the games' part remains.
            let seeds = seeds as f64;
            found.max(t_quantile(level.each(), degrees * seeds).powi(2) * self.by_games / growth / seeds)
        });
        [by_seeds, by_games]
    }
}

#[cfg(test)]
mod tests;
