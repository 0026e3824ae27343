//! What more data would change: the loss expected of each set with more positions, and where sets pass each other.

use schemars::JsonSchema;
use serde::Serialize;

use super::numbers::{self, MILLION, amount};
use crate::record::{Method, NetResult, PlannedRow, Results, RunKey, RunRecord, Scaling, ScalingBy, ValidationRecord};
use crate::statistics::pentanomial::Interval;
use crate::statistics::{Crossing, Estimate, LawCheck, ScalingCurves, SeedSums, ShareLosses};
use crate::units::{Seed, sort_by};

/// The curves of the sets that learned from shares of the training games.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScalingSummary {
    /// What trainings on shares have in common.
    pub by: ScalingBy,
    /// Training samples of the whole.
    pub samples: u64,
    /// α of all sets.
    pub exponent: Interval,
    /// The sets with enough trainings.
    pub sets: Vec<SetScaling>,
    /// The pairs of sets that cross, as far as 95% of the resamples say.
    pub crossings: Vec<SetCrossing>,
    /// The set with the lowest loss at ten times the data, as far as 95% of the resamples say.
    pub lowest: Option<String>,
    /// Sets whose loss with all data lies in the interval that the smaller shares predict, and all sets with such a loss;
    /// `None` with too few shares.
    pub predicted: Option<[usize; 2]>,
}

/// A set's curve L(n) = E + A n^(−α) over the number n of training samples.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SetScaling {
    /// The set.
    pub set: String,
    /// E: the loss that no amount of data lowers.
    pub floor: Interval,
    /// A n^(−α) at n = 1,000,000.
    pub reducible: Interval,
    /// The loss expected with ten times the data.
    pub tenfold: Interval,
    /// The losses found, by share.
    pub found: Vec<ShareLoss>,
    /// The curve from the smallest share to 30 times the data, for the figure.
    #[serde(skip)]
    pub curve: Vec<(f64, Interval)>,
}

/// A set's loss on a share.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShareLoss {
    /// Of the training games.
    pub share: f64,
    /// Different training samples.
    pub samples: u64,
    /// Over the seeds.
    pub loss: Estimate,
}

/// The number of training samples from which on a set has a lower loss than another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SetCrossing {
    /// The set that is ahead beyond it.
    pub set: String,
    /// The set that it passes.
    pub against: String,
    /// Training samples.
    pub samples: Interval,
    /// Whether the interval ends where nothing is said any more: at 30 times the data.
    pub is_open: bool,
}

/// Points of a curve in the figure.
const POINTS: u32 = 32;

impl ScalingSummary {
    /// Of the sets of a planned row's comparison; `None` without trainings on shares, or with too few of them.
    pub(super) fn of(results: &Results, planned: &PlannedRow) -> Option<ScalingSummary> {
        let Scaling { shares, by, .. } = results.study.scaling.as_ref()?;
        let is_compared = |row: &&PlannedRow| (row.method, &row.group) == (planned.method, &planned.group);
        let mut standard = None;
        let mut sets: Vec<(&PlannedRow, Vec<ShareLosses>)> = Vec::new();
        for row in results.study.rows.iter().filter(is_compared) {
            let losses = losses_of(results, row, shares, &mut standard);
            if losses.len() >= ScalingCurves::LEAST_SHARES {
                sets.push((row, losses));
            }
        }
        let games: Vec<f64> = standard?.losses.games.iter().map(|game| f64::from(game.samples)).collect();
        let losses: Vec<Vec<ShareLosses>> = sets.iter().map(|(_, losses)| losses.clone()).collect();
        let curves = ScalingCurves::new(&games, &losses, Seed::default())?;
        let all = losses.iter().flatten();
        let samples = all.clone().map(|share| share.samples).max()?;
        let smallest = all.map(|share| share.samples).min()? as f64;
        let total: f64 = games.iter().sum();
        let of_set = |(number, (row, losses)): (usize, &(&PlannedRow, Vec<ShareLosses>))| {
            let step = (ScalingCurves::LIMIT * samples as f64 / smallest).ln() / f64::from(POINTS);
            let point = |at: u32| {
                let samples = smallest * (step * f64::from(at)).exp();
                Some((samples, curves.loss(number, samples)?))
            };
            Some(SetScaling {
                set: row.name().to_owned(),
                floor: curves.floor(number),
                reducible: curves.reducible(number, MILLION),
                tenfold: curves.loss(number, 10.0 * samples as f64)?,
                found: losses.iter().filter_map(|losses| share_loss(losses, shares[losses.share], total)).collect(),
                curve: (0..=POINTS).filter_map(point).collect(),
            })
        };
        let named: Vec<&str> = sets.iter().map(|(row, _)| row.name()).collect();
        let summarised = sets.iter().enumerate().map(of_set).collect::<Option<Vec<SetScaling>>>()?;
        Some(ScalingSummary {
            by: *by,
            samples,
            exponent: curves.exponent(),
            crossings: crossings(&curves, &named, samples as f64),
            lowest: curves.lowest(10.0 * samples as f64).map(|set| named[set].to_owned()),
            predicted: curves.check().map(|LawCheck { held, sets }| [held, sets]),
            sets: summarised,
        })
    }

    /// What the curves say, in sentences: which sets pass the first one, which will pass the best one of today, and what
    /// ten times the data would bring.
    pub(super) fn sentences(&self, method: Method) -> Vec<String> {
        let mut sentences: Vec<String> = self.doubt(method).into_iter().collect();
        let mut passed: Vec<(&str, Vec<&SetCrossing>)> = Vec::new();
        for crossing in self.crossings.iter().filter(|crossing| self.concerns_choice(crossing)) {
            match passed.iter_mut().find(|(against, _)| *against == crossing.against) {
                Some((_, by)) => by.push(crossing),
                None => passed.push((&crossing.against, vec![crossing])),
            }
        }
        for (against, by) in &mut passed {
            sort_by(by, &|a, b| a.samples.value.total_cmp(&b.samples.value));
            sentences.push(self.passed_sentence(against, by, method));
        }
        let shown: usize = passed.iter().map(|(_, by)| by.len()).sum();
        if shown < self.crossings.len() {
            let others = self.crossings.len() - shown;
            sentences.push(format!("Crossings of other pairs: {others}, in the table of more data."));
        }
        if self.sets.len() > 1 {
            sentences.push(self.tenfold_sentence(method));
        }
        if self.crossings.is_empty() && self.sets.len() > 1 {
            sentences.push(format!(
                "No two sets are shown to pass each other up to {} {}, 30 times the data.",
                amount(ScalingCurves::LIMIT * self.samples as f64),
                unit(method)
            ));
        }
        sentences
    }

    /// Which set has the lowest loss with ten times the data, and the losses of the best three.
    fn tenfold_sentence(&self, method: Method) -> String {
        let decimals = self.decimals();
        let expected = |set: &SetScaling| format!("{} {}", set.set, between(set.tenfold, decimals));
        let mut sets: Vec<&SetScaling> = self.sets.iter().collect();
        sort_by(&mut sets, &|a, b| a.tenfold.value.total_cmp(&b.tenfold.value));
        let order: Vec<String> = sets.iter().take(3).map(|set| expected(set)).collect();
        let order = order.join(", ");
        let data = format!("With ten times the data, {} {}", amount(10.0 * self.samples as f64), unit(method));
        match &self.lowest {
            Some(set) => format!("{data}, {set} has the lowest loss: {order}."),
            None => format!("{data}, it is open which set has the lowest loss: {order}."),
        }
    }

    /// Whether a crossing is with the first set, or will be with the set of the lowest loss today.
    fn concerns_choice(&self, crossing: &SetCrossing) -> bool {
        let first = self.sets.first().map(|set| &set.set);
        let lowest = self.sets.iter().filter_map(|set| Some((&set.set, set.found.last()?.loss.mean)));
        let lowest = lowest.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(set, _)| set);
        let is_to_come = crossing.samples.value > self.samples as f64;
        [&crossing.set, &crossing.against].into_iter().any(|set| Some(set) == first)
            || (is_to_come && Some(&crossing.against) == lowest)
    }

    /// "a is passed in loss by b at 21 M positions (14 M to 40 M), c at 30 M (20 M to 60 M); you have 6.7 M."
    fn passed_sentence(&self, against: &str, by: &[&SetCrossing], method: Method) -> String {
        let mut listed = Vec::new();
        for (number, crossing) in by.iter().enumerate() {
            let unit = if number == 0 { format!(" {}", unit(method)) } else { String::new() };
            listed.push(format!(
                "{} at {}{unit} ({})",
                crossing.set,
                amount(crossing.samples.value),
                crossing.bounds()
            ));
        }
        format!("{against} is passed in loss by {}; you have {}.", listed.join(", "), amount(self.samples as f64))
    }

    /// What the check against the largest share says where it fails for more than a quarter of the sets.
    fn doubt(&self, method: Method) -> Option<String> {
        let [held, sets] = self.predicted.filter(|[held, sets]| 4 * held < 3 * sets)?;
        let has = amount(self.samples as f64);
        let unit = unit(method);
        Some(format!(
            "Curves of the smaller shares foretell {held} of {sets} losses with all data: what follows about more than \
             {has} {unit} is a guess."
        ))
    }

    /// How the curves are made, and what they are worth here.
    pub(super) fn note(&self) -> String {
        let as_many = match self.by {
            ScalingBy::Steps => "as many steps",
            ScalingBy::Epochs => "as many passes",
        };
        let check = match self.predicted {
            None => "There are too few shares to check the curves against the largest.".to_owned(),
            Some([held, sets]) => format!(
                "Fitted without the largest share, the curves hold {held} of {sets} sets' losses there in their 95% \
                 intervals."
            ),
        };
        format!(
            "More data: every set learned from nested shares of the training games with {as_many}; L(n) = E + A n^(−α) \
             with one α for all sets, {}; A is given at a million. Intervals (95%) are of fits to resampled validation \
             games and seeds, the same for all sets. A crossing is stated if 95% of the fits have it; nothing is said \
             beyond 30 times the data. {check}",
            between(self.exponent, 2)
        )
    }

    /// Decimals of losses.
    pub(super) fn decimals(&self) -> usize {
        let half = |set: &SetScaling| Estimate {
            mean: set.tenfold.value,
            interval: Some((set.tenfold.high - set.tenfold.low) / 2.0),
            count: 1,
        };
        numbers::decimals(&self.sets.iter().map(half).collect::<Vec<_>>())
    }
}

impl SetCrossing {
    /// `14 M to 40 M`
    pub(super) fn bounds(&self) -> String {
        let high =
            if self.is_open { format!("more than {}", amount(self.samples.high)) } else { amount(self.samples.high) };
        format!("{} to {high}", amount(self.samples.low))
    }
}

/// The losses of a row by share, of the seeds whose validation has the standard's games and loss, which the first sets.
fn losses_of<'a>(
    results: &'a Results,
    row: &PlannedRow,
    shares: &[f64],
    standard: &mut Option<&'a ValidationRecord>,
) -> Vec<ShareLosses> {
    let mut of_row = Vec::new();
    for (number, share) in shares.iter().enumerate() {
        let label = Scaling::label(&row.set, *share);
        let is_own = |key: &RunKey| (&key.set, key.method) == (&label, row.method);
        let runs: Vec<&RunRecord> = results.runs.iter().filter(|run| is_own(&run.key)).collect();
        let distinct = |run: &RunRecord| run.distinct_samples.unwrap_or(run.training_samples);
        let Some(samples) = runs.iter().map(|run| distinct(run)).min() else { continue };
        let mut losses = SeedSums::new();
        for NetResult { key, record } in results.validation.iter().filter(|result| is_own(&result.key)) {
            let standard = standard.get_or_insert(record);
            let games = |record: &ValidationRecord| -> Vec<(u32, u32)> {
                record.losses.games.iter().map(|game| (game.game, game.samples)).collect()
            };
            if record.function == standard.function && games(record) == games(standard) {
                losses.insert(key.seed.0, record.losses.games.iter().map(|game| f64::from(game.loss)).collect());
            }
        }
        if !losses.is_empty() {
            of_row.push(ShareLosses { share: number, samples, losses });
        }
    }
    of_row
}

fn share_loss(losses: &ShareLosses, share: f64, total: f64) -> Option<ShareLoss> {
    let means: Vec<f64> = losses.losses.values().map(|sums| sums.iter().sum::<f64>() / total).collect();
    Some(ShareLoss { share, samples: losses.samples, loss: Estimate::over(&means)? })
}

fn crossings(curves: &ScalingCurves, names: &[&str], samples: f64) -> Vec<SetCrossing> {
    let mut found = Vec::new();
    for first in 0..names.len() {
        for second in first + 1..names.len() {
            let Some(Crossing { ahead, samples: at }) = curves.crossing(first, second) else { continue };
            let behind = if ahead == first { second } else { first };
            found.push(SetCrossing {
                set: names[ahead].into(),
                against: names[behind].into(),
                samples: at,
                is_open: at.high >= ScalingCurves::LIMIT * samples * (1.0 - 1e-9),
            });
        }
    }
    found
}

pub(super) const fn unit(method: Method) -> &'static str {
    match method {
        Method::Eval => "positions",
        Method::Pqr => "samples",
    }
}

/// `0.00111 (0.00107 to 0.00116)`
pub(super) fn between(interval: Interval, decimals: usize) -> String {
    let [value, low, high] =
        [interval.value, interval.low, interval.high].map(|value| numbers::number(value, decimals, false));
    format!("{value} ({low} to {high})")
}

#[cfg(test)]
mod tests;
