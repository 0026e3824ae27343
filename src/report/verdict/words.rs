//! The phrases of a verdict: a difference in loss, a speed, Elo, and the data of a set's trainings.

use super::EQUAL;
use crate::record::{MatchKind, RunRecord, SpeedEntry};
use crate::report::comparisons::{Difference, Statement};
use crate::report::numbers;
use crate::report::summary::SummaryRow;
use crate::report::training_data::TrainingData;
use crate::statistics::{CONFIDENCE, Estimate, NoiseSource, Outlook, student_t_quantile};
use crate::text::{grouped, listed};

/// Evaluations per second divided by the reference's.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct RelativeSpeed {
    pub(super) ratio: f64,
    /// The ratio's range by the repetitions of both timings; the ratio itself if neither is noisy.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Share of the set's time in which fsbench finds the features.
    pub(super) finding_features: Option<f64>,
    /// Whether it goes by the user's own figures of either set.
    pub(super) is_by_figures: bool,
}

impl RelativeSpeed {
    /// `None` if one of the sets was not timed.
    pub(super) fn of(row: &SummaryRow, reference: &SummaryRow) -> Option<RelativeSpeed> {
        // A node's cost replaces all; a time of finding features makes another speed of the measured times.
        if let Some(cost) = row.own.node_cost {
            let ratio = reference.own.node_cost.unwrap_or(1.0) / cost;
            return Some(RelativeSpeed { is_by_figures: true, ..RelativeSpeed::exact(ratio) });
        }
        let speed = |row: &SummaryRow| row.speed_by_figures.or(row.speed.map(|speed| speed.mean));
        let ratio = speed(row)? / speed(reference)?;
        let is_by_figures = row.speed_by_figures.or(reference.speed_by_figures).is_some();
        let [own, other] = [row.speed_spread_against(reference), reference.speed_spread_against(row)];
        let error = if own.max(other) > SpeedEntry::NOISY_SHARE { own.hypot(other).exp() } else { 1.0 };
        let own_time = row.nanoseconds.filter(|_| row.own.features_ns.is_none());
        let finding_features = own_time.map(|time| time.features_share());
        Some(RelativeSpeed { ratio, low: ratio / error, high: ratio * error, finding_features, is_by_figures })
    }

    pub(super) fn exact(ratio: f64) -> RelativeSpeed {
        RelativeSpeed { ratio, low: ratio, high: ratio, finding_features: None, is_by_figures: false }
    }

    pub(super) fn is_noisy(self) -> bool {
        self.low < self.high
    }

    /// Whether a slow set's time of finding features is named.
    fn names_own_code(self) -> bool {
        self.ratio <= 1.0 - EQUAL && self.finding_features.is_some()
    }

    /// `as fast`, `60% slower (noisy: 21% to 70%)`
    pub(super) fn words(self) -> String {
        let noise = self.is_noisy().then(|| match (self.high < 1.0, self.low > 1.0) {
            (true, _) => format!("noisy: {} to {}", percent(1.0 - self.high), percent(1.0 - self.low)),
            (_, true) if self.high < 2.0 => {
                format!("noisy: {} to {}", percent(self.low - 1.0), percent(self.high - 1.0))
            }
            _ => format!("noisy: {} to {}", speed_words(self.low), speed_words(self.high)),
        });
        let own_code = self.finding_features.filter(|_| self.names_own_code());
        let own_code = own_code.map(|share| format!("{} of its time finding features", percent(share)));
        let by_figures = self.is_by_figures.then(|| "by your figures".to_owned());
        let notes: Vec<String> = by_figures.into_iter().chain(noise).chain(own_code).collect();
        let words = speed_words(self.ratio);
        if notes.is_empty() { words } else { format!("{words} ({})", notes.join("; ")) }
    }
}

fn percent(share: f64) -> String {
    format!("{}%", numbers::number(100.0 * share, 0, false))
}

fn speed_words(speed: f64) -> String {
    match speed {
        speed if (speed - 1.0).abs() < EQUAL => "as fast".into(),
        speed if speed >= 2.0 => format!("{} times as fast", numbers::number(speed, 1, false)),
        speed if speed > 1.0 => format!("{} faster", percent(speed - 1.0)),
        speed => format!("{} slower", percent(1.0 - speed)),
    }
}

pub(super) fn loss_words(loss: &Difference, reference: &str) -> String {
    let half = (loss.high - loss.low) / 2.0;
    let mut decimals =
        numbers::decimals(&[Estimate { mean: loss.difference, interval: Some(half), count: loss.seeds }]);
    // An interval that excludes 0 must not seem to end there.
    let is_zero = |value: f64, decimals: usize| value.abs() < 0.5 * 10f64.powi(-(decimals as i32));
    let is_shown = loss.statement != Statement::NotDistinguished;
    while is_shown && decimals < 4 && [loss.low, loss.high].into_iter().any(|bound| is_zero(bound, decimals)) {
        decimals += 1;
    }
    let number = |value: f64, signed: bool| numbers::number(value, decimals, signed);
    let bounds = format!("{}% to {}%", number(loss.low, true), number(loss.high, true));
    match loss.statement {
        Statement::NotDistinguished => format!("not distinguished from {reference} in loss ({bounds})"),
        statement => {
            format!(
                "{}% {} than {reference} in loss ({bounds})",
                number(loss.difference.abs(), false),
                statement.name()
            )
        }
    }
}

/// Whether an estimate is above 0; `None` if its interval holds 0 or it has none.
pub(super) fn sign(estimate: Estimate) -> Option<bool> {
    let Estimate { mean, interval, .. } = estimate;
    (mean.abs() > interval?).then_some(mean > 0.0)
}

pub(super) fn elo_words(elo: Estimate, conditions: &str) -> String {
    let interval = elo.interval.map(|half| format!(" ± {}", numbers::number(half, 0, false))).unwrap_or_default();
    match sign(elo) {
        Some(is_stronger) => {
            let word = if is_stronger { "stronger" } else { "weaker" };
            format!("{}{interval} Elo {word} at {conditions}", numbers::number(elo.mean.abs(), 0, false))
        }
        None => format!("not distinguished in Elo at {conditions} ({}{interval})", numbers::number(elo.mean, 0, true)),
    }
}

/// `undecided; if the difference stays, 3 more seeds or 1,200 more games would tell`: first what reduces the main source of
/// the interval.
pub(super) fn undecided(outlook: Outlook, games: &str) -> String {
    let more = |number: Option<u64>, of: &str| {
        let of = if number? == 1 { of.trim_end_matches('s') } else { of };
        Some(format!("{} more {of}", grouped(&number?.to_string())))
    };
    let [of_seeds, of_games] = [more(outlook.more_seeds, "seeds"), more(outlook.more_games, games)];
    let ways = match outlook.dominant {
        Some(NoiseSource::Games) => [of_games, of_seeds],
        Some(NoiseSource::Seeds) | None => [of_seeds, of_games],
    };
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    match (&ways[..], outlook.dominant) {
        ([], None) => "undecided, more seeds would tell".into(),
        ([], Some(_)) => format!("undecided, and no practical number of seeds or {games} alone would tell"),
        _ => format!("undecided; if the difference stays, {} would tell", ways.join(" or ")),
    }
}

/// `equal cost`, with whose figures it goes by, how much it weighs and what noise in its measurement leaves open.
pub(super) fn equal_cost_words(noise: Option<[f64; 2]>, is_by_figures: bool, weight: Option<f64>) -> String {
    let by_figures = is_by_figures.then(|| "by your figures".to_owned());
    let noise = noise
        .map(|[low, high]| format!("noisy: {} to {} of the nodes that were searched", percent(low), percent(high)));
    let weight = weight.map(|weight| format!("cost weighs {weight}"));
    let notes: Vec<String> = by_figures.into_iter().chain(weight).chain(noise).collect();
    if notes.is_empty() { "equal cost".into() } else { format!("equal cost ({})", notes.join("; ")) }
}

/// What all rows have in common, which a sentence on all of them says: samples and L1.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct CommonFacts {
    samples: Option<u64>,
    l1: Option<u64>,
}

impl CommonFacts {
    pub(super) fn of(rows: &[SummaryRow]) -> CommonFacts {
        let samples = |row: &SummaryRow| row.training_data.as_ref().map(|data| data.samples);
        CommonFacts { samples: common(rows, samples), l1: common(rows, |row| row.l1) }
    }

    /// ` (Every piece on its square; l1 64, 28 samples a parameter, best at epoch 3 of 3)`, without the facts common to
    /// all sets; empty if nothing is known. Without `data`, only the facts of the set.
    pub(super) fn others_of(self, row: &SummaryRow, data: Option<&TrainingData>) -> String {
        let l1 = row.l1.filter(|_| self.l1.is_none()).map(|l1| format!("l1 {l1}"));
        let samples = data.filter(|_| self.samples.is_none()).map(|data| format!("{} samples", data.samples_text()));
        let per_parameter = data.map(|data| format!("{} samples a parameter", data.samples_per_parameter_text()));
        let best = data.map(|data| format!("best at epoch {}", data.best_epoch_text()));
        let facts: Vec<String> = [l1, samples, per_parameter, best].into_iter().flatten().collect();
        let facts = Some(facts.join(", ")).filter(|facts| !facts.is_empty());
        // A search's candidates are named by what they are.
        let about = row.about.as_ref().filter(|about| !row.name.contains(about.as_str()));
        let parts: Vec<&str> = [about, facts.as_ref()].into_iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
    }
}

/// The value that all rows have of which it is known.
fn common(rows: &[SummaryRow], value: impl Fn(&SummaryRow) -> Option<u64>) -> Option<u64> {
    let mut known = rows.iter().filter_map(value);
    let first = known.next()?;
    known.all(|other| other == first).then_some(first)
}

/// The data, settings and seeds of all trainings, the facts of the reference, and the limits of the verdict.
pub(super) fn trainings(rows: &[SummaryRow], data_files: &str) -> Option<String> {
    let reference = rows.first()?;
    let common = CommonFacts::of(rows);
    let data = reference.training_data.as_ref()?;
    let samples = common.samples.map(|_| format!("{} training samples of ", data.samples_text())).unwrap_or_default();
    let l1 = common.l1.map(|l1| format!(", l1 {l1}")).unwrap_or_default();
    let mut text = format!(
        "This is about {samples}{data_files}{l1}. The first set is {}{}.",
        reference.name,
        common.others_of(reference, Some(data))
    );
    let trained = rows.iter().map(|row| row.seeds_done);
    let [fewest, seeds] = [trained.clone().min(), trained.max()].map(Option::unwrap_or_default);
    text += &match (fewest, seeds) {
        (_, 1) => " One seed: nothing is known of the variation between trainings.".to_owned(),
        (1, _) => format!(
            " Of the {seeds} seeds only one is trained of {}: nothing is known of the variation between its trainings.",
            listed(&rows.iter().filter(|row| row.seeds_done == 1).map(|row| row.name.as_str()).collect::<Vec<_>>())
        ),
        _ => String::new(),
    };
    let played = rows
        .iter()
        .filter_map(|row| row.strength.as_ref())
        .flat_map(|strength| MatchKind::ALL.into_iter().filter_map(|kind| strength.elo(kind)).map(|elo| elo.count));
    if seeds > 1 && played.min() == Some(1) {
        text += &format!(
            " Of the {seeds} seeds one has played: Elo is that of its networks, and nothing is known of the variation \
             between trainings."
        );
    }
    if seeds == 2 {
        let t = |degrees| numbers::number(student_t_quantile(CONFIDENCE, degrees), 1, false);
        text += &format!(
            " Two seeds show only large differences: Student's t with one degree of freedom is {}, with a third seed {}.",
            t(1),
            t(2)
        );
    }
    if rows.iter().any(|row| row.training_data.as_ref().is_some_and(TrainingData::is_limited)) {
        text += &format!(
            " A network with fewer than {} samples a parameter can learn its samples by heart, and one that was best \
             in the first half of its epochs has begun to; sets with more parameters do so first, so that more data \
             may change the order.",
            RunRecord::SAMPLES_PER_PARAMETER
        );
    }
    let is_slower = |row: &SummaryRow| RelativeSpeed::of(row, reference).is_some_and(RelativeSpeed::names_own_code);
    if rows.iter().any(is_slower) {
        text += " Finding features is fsbench's own code, which serves any set: an engine's may be faster.";
    }
    Some(text)
}

/// Why more data may change the verdict on a set, as `it was best at epoch 2 of 8 and has 0.2 samples a parameter`;
/// `None` if they may not.
pub(super) fn limits(subject: &str, data: Option<&TrainingData>) -> Option<String> {
    let data = data.filter(|data| data.is_limited())?;
    let best = data.best_epoch_text();
    let samples = data.samples_per_parameter_text();
    Some(format!("{subject} was best at epoch {best} and has {samples} samples a parameter"))
}
