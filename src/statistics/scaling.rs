//! How losses fall with the amount of data: a power law per feature set, the amounts at which two sets cross, and a
//! check of the law against the largest amount.

mod power_law;

use rand::RngExt;

use super::SeedSums;
use super::pentanomial::Interval;
use crate::units::{Seed, sort_by};
use power_law::{FitPoint, FittedCurves, PRIOR_DEVIATION, PRIOR_MEDIAN, PowerLaw, fit};

/// The losses of a feature set's networks that learned from one share of the data.
#[derive(Clone, Debug)]
pub struct ShareLosses {
    /// The share's number, the same for all sets; larger shares have larger numbers.
    pub share: usize,
    /// Different samples of the share.
    pub samples: u64,
    pub losses: SeedSums,
}

/// Curves L(n) = E + A n^(−α) of several sets over the number n of training samples, with a common α.
///
/// The estimate minimises the squares of the relative residuals of each set's mean loss over its seeds, divided by
/// their variance, and those of ln α from its prior ([`PRIOR_MEDIAN`]); E and A are at least 0. The variance of a
/// training is the larger of two: that of the seeds of a share, pooled over sets and shares, and that of the residuals
/// (so that a law that does not fit has wide intervals; Birge 1932).
///
/// Intervals are percentiles of [`ScalingCurves::RESAMPLES`] fits. Each draws the validation games with replacement,
/// the same for all sets and shares (Efron 1979); the noise of the seeds, as a sum of the residuals of the share's seeds
/// with normal weights, the same for all sets, so that differences of sets keep their own noise (the wild bootstrap, Wu
/// 1986; three seeds drawn with replacement would vary too little), widened by Student's t for the few seeds from which
/// they come; and the centre of the prior, without which a prior narrows intervals but does not stand for the
/// knowledge that it claims (Bardsley et al. 2014). `scaling/tests.rs` says how often they hold.
#[derive(Clone, Debug)]
pub struct ScalingCurves {
    /// Samples of the largest share of all sets.
    largest: f64,
    /// ln(smallest share / largest share)
    log_smallest: f64,
    fitted: FittedCurves,
    resampled: Vec<FittedCurves>,
    check: Option<LawCheck>,
}

/// The amount of data from which on a set has the lower loss.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Crossing {
    /// Number of the set that is ahead beyond it.
    pub ahead: usize,
    /// Training samples.
    pub samples: Interval,
}

/// The law, fitted without the largest share, against the losses found there.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LawCheck {
    /// Sets whose loss lies in the interval of its prediction.
    pub held: usize,
    pub sets: usize,
}

/// The trainings of one set on one share.
struct Trainings {
    set: usize,
    share: usize,
    log_samples: f64,
    /// Mean loss over the seeds.
    loss: f64,
    /// Sum of the losses of each game, mean over the seeds.
    by_game: Vec<f64>,
    /// By seed, the relative deviation from the mean.
    deviations: Vec<(u64, f64)>,
}

/// Everything that is resampled.
struct TrainingTable {
    trainings: Vec<Trainings>,
    /// Samples of each validation game.
    game_samples: Vec<f64>,
    sets: usize,
    /// Relative variance of one training.
    variance: f64,
    /// Factor of the seeds' deviations, by which they have that variance.
    widening: f64,
    /// Degrees of freedom of the variance.
    degrees: usize,
    /// Which training of a seed on a share has which normal weight.
    weights: Vec<(usize, u64)>,
}

impl ScalingCurves {
    pub const RESAMPLES: u64 = 1_000;
    /// More games are drawn in as many groups: if games are independent, so are groups (random groups; Wolter,
    /// Introduction to Variance Estimation, chapter 2).
    const MOST_GAMES: usize = 1_000;
    /// A set needs as many shares.
    pub const LEAST_SHARES: usize = 3;
    /// Nothing is said beyond so many times the largest share.
    pub const LIMIT: f64 = 30.0;
    /// A crossing is stated if this share of the fits has it.
    const SURE: f64 = 0.95;

    /// `samples`: those of each validation game; games without samples are left out.
    ///
    /// `None` with fewer than two games, if a set has fewer than [`ScalingCurves::LEAST_SHARES`] shares or a loss is not
    /// above 0, or if nothing tells the noise: one set with three shares and one seed.
    #[must_use]
    pub fn new(samples: &[f64], sets: &[Vec<ShareLosses>], seed: Seed) -> Option<ScalingCurves> {
        let table = TrainingTable::new(samples, sets)?;
        let all: Vec<f64> = table.trainings.iter().map(|trainings| trainings.loss).collect();
        let whole = |_: &Trainings| true;
        let fitted = fit(&table.curves(&all, &whole), PRIOR_MEDIAN.ln());
        let last = table.trainings.iter().map(|trainings| trainings.share).max()?;
        let is_earlier = |trainings: &Trainings| trainings.share < last;
        let mut check = CheckDraws::new(&table, last, &table.curves(&all, &is_earlier));
        let mut resampled = Vec::new();
        for number in 0..ScalingCurves::RESAMPLES {
            let mut rng = seed.stream("scaling", number);
            let centre = PRIOR_DEVIATION.mul_add(normal(&mut rng), PRIOR_MEDIAN.ln());
            let losses = table.resampled(&mut rng);
            resampled.push(fit(&table.curves(&losses, &whole), centre));
            if let Some(check) = &mut check {
                check.add(&fit(&table.curves(&losses, &is_earlier), centre), &losses);
            }
        }
        let most = |most: u64, set: &Vec<ShareLosses>| set.iter().map(|share| share.samples).fold(most, u64::max);
        Some(ScalingCurves {
            largest: sets.iter().fold(0, most) as f64,
            log_smallest: table.trainings.iter().map(|trainings| trainings.log_samples).fold(0.0, f64::min),
            fitted,
            resampled,
            check: check.map(|check| check.judge()),
        })
    }

    /// α
    #[must_use]
    pub fn exponent(&self) -> Interval {
        self.interval(|fitted| fitted.exponent)
    }

    /// E: the loss that no amount of data lowers.
    #[must_use]
    pub fn floor(&self, set: usize) -> Interval {
        self.interval(|fitted| fitted.curves[set].floor)
    }

    /// A n^(−α): the part of the loss at `samples` that more data reduce.
    #[must_use]
    pub fn reducible(&self, set: usize, samples: f64) -> Interval {
        let log_samples = (samples / self.largest).ln();
        self.interval(|fitted| fitted.curves[set].loss(fitted.exponent, log_samples) - fitted.curves[set].floor)
    }

    /// The loss expected after learning from `samples` samples; `None` beyond [`ScalingCurves::LIMIT`].
    #[must_use]
    pub fn loss(&self, set: usize, samples: f64) -> Option<Interval> {
        let is_within = samples <= ScalingCurves::LIMIT * self.largest * (1.0 + 1e-9);
        let log_samples = (samples / self.largest).ln();
        is_within.then(|| self.interval(|fitted| fitted.curves[set].loss(fitted.exponent, log_samples)))
    }

    /// Where two sets cross, between the smallest share and [`ScalingCurves::LIMIT`] times the largest; `None` unless
    /// 95% of the fits have such a crossing. Fits without count as crossing at the end of the range where the sets are
    /// in their order, so that the interval holds them.
    #[must_use]
    pub fn crossing(&self, first: usize, second: usize) -> Option<Crossing> {
        let is_first_ahead = self.fitted.curves[first].floor < self.fitted.curves[second].floor;
        let [ahead, behind] = if is_first_ahead { [first, second] } else { [second, first] };
        let range = [self.log_smallest, ScalingCurves::LIMIT.ln()];
        let place = |fitted: &FittedCurves| place_of_crossing(fitted, ahead, behind, range);
        let value = place(&self.fitted).ok()?;
        let places: Vec<Result<f64, f64>> = self.resampled.iter().map(place).collect();
        let found = places.iter().filter(|place| place.is_ok()).count();
        let is_sure = found as f64 >= ScalingCurves::SURE * places.len() as f64;
        let [low, high] = percentiles(places.into_iter().map(|place| place.unwrap_or_else(|end| end)).collect());
        let samples = |log_samples: f64| self.largest * log_samples.exp();
        let samples = Interval { value: samples(value), low: samples(low), high: samples(high) };
        is_sure.then_some(Crossing { ahead, samples })
    }

    /// The set that has the lowest loss after learning from `samples` samples; `None` unless 95% of the fits agree.
    #[must_use]
    pub fn lowest(&self, samples: f64) -> Option<usize> {
        let log_samples = (samples / self.largest).ln();
        let lowest = |fitted: &FittedCurves| {
            let loss = |set: &usize| fitted.curves[*set].loss(fitted.exponent, log_samples);
            (0..fitted.curves.len()).min_by(|a, b| loss(a).total_cmp(&loss(b)))
        };
        let found = lowest(&self.fitted);
        let agreeing = self.resampled.iter().filter(|fitted| lowest(fitted) == found).count();
        found.filter(|_| agreeing as f64 >= ScalingCurves::SURE * self.resampled.len() as f64)
    }

    /// `None` if too few shares are left without the largest.
    #[must_use]
    pub const fn check(&self) -> Option<LawCheck> {
        self.check
    }

    fn interval(&self, of: impl Fn(&FittedCurves) -> f64) -> Interval {
        let [low, high] = percentiles(self.resampled.iter().map(&of).collect());
        Interval { value: of(&self.fitted), low, high }
    }
}

/// ln(n / largest) from which on `ahead` has the lower loss; the end of the range at which the sets would cross if they
/// cross outside.
fn place_of_crossing(fitted: &FittedCurves, ahead: usize, behind: usize, [low, high]: [f64; 2]) -> Result<f64, f64> {
    let [ahead, behind] = [ahead, behind].map(|set| fitted.curves[set]);
    let is_ahead_at = |at: f64| ahead.loss(fitted.exponent, at) < behind.loss(fitted.exponent, at);
    match [low, high].map(is_ahead_at) {
        [_, false] => Err(high),
        [true, true] => Err(low),
        // E + a q = F + b q with q = (n / largest)^(−α).
        [false, true] => {
            let q = (behind.floor - ahead.floor) / (ahead.reducible - behind.reducible);
            Ok((-q.ln() / fitted.exponent).clamp(low, high))
        }
    }
}

/// Sums over groups of games.
fn in_groups(by_game: &[f64]) -> Vec<f64> {
    let mut groups = vec![0.0; by_game.len().min(ScalingCurves::MOST_GAMES)];
    let count = groups.len();
    by_game.iter().enumerate().for_each(|(game, value)| groups[game % count] += value);
    groups
}

/// The bounds of 95% of the values.
fn percentiles(mut values: Vec<f64>) -> [f64; 2] {
    sort_by(&mut values, &|a, b| a.total_cmp(b));
    let last = values.len().saturating_sub(1) as f64;
    let at = |share: f64| {
        let place = share * last;
        let [below, above] = [place.floor(), place.ceil()].map(|place| values[place as usize]);
        (above - below).mul_add(place.fract(), below)
    };
    [at(0.025), at(0.975)]
}

/// A normally distributed number (Box and Muller 1958).
fn normal(rng: &mut impl RngExt) -> f64 {
    let u: f64 = 1.0 - rng.random::<f64>();
    let v: f64 = rng.random();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

impl TrainingTable {
    fn new(samples: &[f64], sets: &[Vec<ShareLosses>]) -> Option<TrainingTable> {
        let played: Vec<usize> = (0..samples.len()).filter(|game| samples[*game] > 0.0).collect();
        let game_samples: Vec<f64> = played.iter().map(|game| samples[*game]).collect();
        let largest = sets.iter().flatten().map(|share| share.samples).max()? as f64;
        if played.len() < 2 || sets.iter().any(|shares| shares.len() < ScalingCurves::LEAST_SHARES) {
            return None;
        }
        let mut trainings = Vec::new();
        for (set, shares) in sets.iter().enumerate() {
            for share in shares {
                trainings.push(Trainings::new(set, share, &played, &game_samples, largest)?);
            }
        }
        trainings.iter_mut().for_each(|trainings| trainings.by_game = in_groups(&trainings.by_game));
        let game_samples = in_groups(&game_samples);
        let mut weights: Vec<(usize, u64)> = Vec::new();
        for Trainings { share, deviations, .. } in &trainings {
            let new = deviations.iter().map(|(seed, _)| (*share, *seed)).filter(|weight| !weights.contains(weight));
            let new: Vec<(usize, u64)> = new.collect();
            weights.extend(new);
        }
        let table = TrainingTable {
            trainings,
            game_samples,
            sets: sets.len(),
            variance: 0.0,
            widening: 1.0,
            degrees: 0,
            weights,
        };
        table.with_noise()
    }

    /// The table with the variance of a training.
    fn with_noise(self) -> Option<TrainingTable> {
        /// Of losses that are known exactly.
        const LEAST: f64 = 1e-14;
        let mut degrees = 0;
        let mut squares = 0.0;
        for Trainings { deviations, .. } in &self.trainings {
            degrees += deviations.len() - 1;
            squares += deviations.iter().map(|(_, deviation)| deviation.powi(2)).sum::<f64>();
        }
        let of_seeds = (degrees > 0).then(|| (squares / degrees as f64).max(LEAST));
        let residual_degrees = self.trainings.len().saturating_sub(2 * self.sets + 1);
        // The prior is to weigh little where it is not known how exact the losses are.
        let first = TrainingTable { variance: of_seeds.unwrap_or(1e-6), ..self };
        let losses: Vec<f64> = first.trainings.iter().map(|trainings| trainings.loss).collect();
        let fitted = fit(&first.curves(&losses, &|_| true), PRIOR_MEDIAN.ln());
        let of_residuals = first.variance * fitted.squares / residual_degrees as f64;
        let of_residuals = (residual_degrees > 0).then_some(of_residuals.max(LEAST));
        let variance = match (of_seeds, of_residuals) {
            (Some(seeds), residuals) => residuals.map_or(seeds, |residuals| residuals.max(seeds)),
            (None, residuals) => residuals?,
        };
        let degrees = if of_seeds.is_some_and(|seeds| seeds >= variance) { degrees } else { residual_degrees };
        Some(TrainingTable { variance, widening: (variance / of_seeds.unwrap_or(variance)).sqrt(), degrees, ..first })
    }

    /// Each set's curve with these losses, of the trainings that are `chosen`.
    fn curves(&self, losses: &[f64], chosen: &dyn Fn(&Trainings) -> bool) -> Vec<Vec<FitPoint>> {
        let mut curves = vec![Vec::new(); self.sets];
        for (trainings, loss) in self.trainings.iter().zip(losses).filter(|(trainings, _)| chosen(trainings)) {
            let weight = trainings.deviations.len() as f64 / (self.variance * trainings.loss.powi(2));
            curves[trainings.set].push(FitPoint { log_samples: trainings.log_samples, loss: *loss, weight });
        }
        curves
    }

    /// The losses with other games and other seeds.
    fn resampled(&self, rng: &mut impl RngExt) -> Vec<f64> {
        let games = self.game_samples.len();
        let mut counts = vec![0.0; games];
        (0..games).for_each(|_| counts[rng.random_range(0..games)] += 1.0);
        let total: f64 = counts.iter().zip(&self.game_samples).map(|(count, samples)| count * samples).sum();
        let normals: Vec<f64> = self.weights.iter().map(|_| normal(rng)).collect();
        let own: Vec<f64> = self.trainings.iter().map(|_| normal(rng)).collect();
        let degrees = self.degrees.max(1);
        let chi_squared: f64 = (0..degrees).map(|_| normal(rng).powi(2)).sum();
        let widening = self.widening * (degrees as f64 / chi_squared).sqrt();
        let loss = |(trainings, own): (&Trainings, &f64)| {
            let sum: f64 = counts.iter().zip(&trainings.by_game).map(|(count, sum)| count * sum).sum();
            let noise = match trainings.deviations.len() {
                // A lone training says nothing of the noise that it shares with another set's.
                1 => own * self.variance.sqrt() / self.widening,
                _ => self.noise(trainings, &normals),
            };
            sum / total * (1.0 + widening * noise)
        };
        self.trainings.iter().zip(&own).map(loss).collect()
    }

    /// A deviation of the mean over several seeds, with the variance of that mean.
    fn noise(&self, trainings: &Trainings, normals: &[f64]) -> f64 {
        let seeds = trainings.deviations.len() as f64;
        let weight = |seed: u64| {
            let place = self.weights.iter().position(|weight| *weight == (trainings.share, seed));
            place.map_or(0.0, |place| normals[place])
        };
        let sum: f64 = trainings.deviations.iter().map(|(seed, deviation)| deviation * weight(*seed)).sum();
        sum / (seeds * (seeds - 1.0)).sqrt()
    }
}

impl Trainings {
    fn new(
        set: usize,
        ShareLosses { share, samples, losses }: &ShareLosses,
        played: &[usize],
        game_samples: &[f64],
        largest: f64,
    ) -> Option<Trainings> {
        let total: f64 = game_samples.iter().sum();
        let seeds = losses.len() as f64;
        let mut by_game = vec![0.0; played.len()];
        let mut means = Vec::new();
        for (seed, sums) in losses {
            let of_games: Vec<f64> = played.iter().filter_map(|game| sums.get(*game).copied()).collect();
            if of_games.len() != played.len() {
                return None;
            }
            means.push((*seed, of_games.iter().sum::<f64>() / total));
            by_game.iter_mut().zip(&of_games).for_each(|(mean, sum)| *mean += sum / seeds);
        }
        let loss = means.iter().map(|(_, mean)| mean).sum::<f64>() / seeds;
        let is_sound = loss.is_finite() && loss > 0.0 && *samples > 0;
        let deviations = means.iter().map(|(seed, mean)| (*seed, mean / loss - 1.0)).collect();
        let log_samples = (*samples as f64 / largest).ln();
        is_sound.then_some(Trainings { set, share: *share, log_samples, loss, by_game, deviations })
    }
}

/// Predictions of the losses at the largest share from the others, less the losses found there.
struct CheckDraws {
    /// Of each set that is checked: its number, the place of its last trainings, their ln(n / largest).
    sets: Vec<(usize, usize, f64)>,
    resampled: Vec<Vec<f64>>,
}

impl CheckDraws {
    /// `earlier`: the curves without the largest share, number `last`.
    fn new(table: &TrainingTable, last: usize, earlier: &[Vec<FitPoint>]) -> Option<CheckDraws> {
        // Two points of a curve and the prior of α determine it.
        if earlier.iter().any(|points| points.len() < 2) {
            return None;
        }
        let last = table.trainings.iter().enumerate().filter(|(_, trainings)| trainings.share == last);
        let sets = last.map(|(place, trainings)| (trainings.set, place, trainings.log_samples)).collect();
        Some(CheckDraws { sets, resampled: Vec::new() })
    }

    fn add(&mut self, fitted: &FittedCurves, losses: &[f64]) {
        self.resampled.push(self.errors(fitted, losses));
    }

    fn errors(&self, FittedCurves { exponent, curves, .. }: &FittedCurves, losses: &[f64]) -> Vec<f64> {
        let error =
            |&(set, place, at): &(usize, usize, f64)| PowerLaw::loss(&curves[set], *exponent, at) - losses[place];
        self.sets.iter().map(error).collect()
    }

    /// Counts the intervals of the errors that hold 0.
    fn judge(&self) -> LawCheck {
        let holds = |set: &usize| {
            let [low, high] = percentiles(self.resampled.iter().map(|errors| errors[*set]).collect());
            (low..=high).contains(&0.0)
        };
        LawCheck { held: (0..self.sets.len()).filter(holds).count(), sets: self.sets.len() }
    }
}

#[cfg(test)]
mod tests;
