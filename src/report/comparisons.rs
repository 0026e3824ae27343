//! Pairs of feature sets, compared by validation game and by training seed, over all samples and over classes of them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::record::{
    ClassLosses, LossSums, Method, NetResult, PlannedRow, Results, ValidationLosses, ValidationRecord,
};
use crate::statistics::{Level, NoiseSource, Outlook, PairedDifference, PairedSets, Scale, SeedSums};
use crate::text::{grouped, listed};

/// The comparisons between the sets of one method and, in a sweep, one value of each swept setting. Lists are empty if
/// there is nothing to compare.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Comparisons {
    /// How the comparisons are made; without pairs, why there are none. `None` for a method with one set.
    pub note: Option<String>,
    /// Every pair of sets, or every set against the first if there are more than 16.
    pub pairs: Vec<PairComparison>,
    /// Every set against the first, over each class of samples; empty for more than 16 sets.
    pub parts: Vec<PartComparison>,
}

/// The measure compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparedMeasure {
    /// The validation loss; differences are in percent of the second set's.
    Loss,
    /// pqr: the share of samples in which the network prefers the move played; differences are in percentage points.
    Accuracy,
}

/// The first set against the second.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    Better,
    Worse,
    /// The interval holds 0.
    NotDistinguished,
}

/// A difference and the bounds of its interval, corrected for the number of comparisons shown.
#[derive(Copy, Clone, Debug, Serialize, JsonSchema)]
pub struct Difference {
    pub measure: ComparedMeasure,
    /// The estimate.
    pub difference: f64,
    /// Lower bound of its interval.
    pub low: f64,
    /// Upper bound of its interval.
    pub high: f64,
    pub statement: Statement,
    /// Training seeds that both sets have. With one, the interval lacks the variation between trainings.
    pub seeds: usize,
}

/// Two sets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PairComparison {
    /// The set.
    pub set: String,
    /// The set that it is compared with.
    pub against: String,
    #[serde(flatten)]
    pub difference: Difference,
    /// Validation games.
    pub games: usize,
    /// The main source of the interval; `None` with one seed.
    pub dominant: Option<NoiseSource>,
    /// Further seeds, or further validation games, that would distinguish the pair if difference and variances stay as
    /// estimated; `None` if it is distinguished, or if they alone would not.
    pub more_seeds: Option<u64>,
    /// Further validation games that would distinguish the pair.
    pub more_games: Option<u64>,
}

/// Two sets on the samples of a class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PartComparison {
    /// `pieces left`, `ply`, …
    pub by: String,
    /// The class of positions.
    pub part: String,
    /// Its samples.
    pub samples: u64,
    /// The set.
    pub set: String,
    /// The set that it is compared with.
    pub against: String,
    #[serde(flatten)]
    pub difference: Difference,
}

/// A set with its validations, by seed.
struct ValidatedSet<'a> {
    name: &'a str,
    runs: Vec<&'a NetResult<ValidationRecord>>,
}

impl Comparisons {
    /// Largest number of sets of which every pair is compared.
    pub const ALL_PAIRS: usize = 16;
    /// Smallest number of groups of games in a class that is compared.
    const GROUPS: usize = 10;

    /// Compares the sets of a planned row's comparison: sets with the same method and the same swept settings.
    #[must_use]
    pub(super) fn of(results: &Results, planned: &PlannedRow) -> Comparisons {
        let method = planned.method;
        let is_compared = |row: &&PlannedRow| row.method == method && row.group == planned.group;
        let rows: Vec<&PlannedRow> = results.study.rows.iter().filter(is_compared).collect();
        if rows.len() < 2 {
            return Comparisons::default();
        }
        let mut sets: Vec<ValidatedSet<'_>> = rows.iter().map(|row| ValidatedSet::of(results, row)).collect();
        sets.retain(|set| !set.runs.is_empty());
        let Some(standard) = sets.first().map(|set| &set.runs[0].record) else {
            return Comparisons { note: Some(NO_LOSSES.into()), ..Comparisons::default() };
        };
        let (sets, others): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| set.fits(standard));
        let measures = match method {
            Method::Eval => &[ComparedMeasure::Loss][..],
            Method::Pqr => &[ComparedMeasure::Loss, ComparedMeasure::Accuracy],
        };
        let pairs = pairs(&sets, standard, measures);
        let parts = if sets.len() > Self::ALL_PAIRS { Vec::new() } else { parts(&sets, standard, measures) };
        let others: Vec<&str> = others.iter().map(|set| set.name).collect();
        let note = note(standard, &sets, &pairs, &parts, &others);
        Comparisons { note: Some(note), pairs, parts }
    }
}

impl<'a> ValidatedSet<'a> {
    fn of(results: &'a Results, row: &'a PlannedRow) -> ValidatedSet<'a> {
        let is_own =
            |result: &&NetResult<ValidationRecord>| (&result.key.set, result.key.method) == (&row.set, row.method);
        ValidatedSet { name: row.name(), runs: results.validation.iter().filter(is_own).collect() }
    }

    /// Whether every run computed the same loss on the same samples.
    fn fits(&self, standard: &ValidationRecord) -> bool {
        let is_same = |run: &&NetResult<ValidationRecord>| {
            run.record.function == standard.function && samples_by_game(&run.record).eq(samples_by_game(standard))
        };
        self.runs.iter().all(is_same)
    }

    /// The sums of a measure by seed, from some of each run's rows.
    fn sums(&self, measure: ComparedMeasure, rows: impl Fn(&ValidationLosses) -> Option<&[LossSums]>) -> SeedSums {
        let value = |sums: &LossSums| match measure {
            ComparedMeasure::Loss => f64::from(sums.loss),
            ComparedMeasure::Accuracy => f64::from(sums.preferred),
        };
        let of_run = |run: &&NetResult<ValidationRecord>| {
            let rows = rows(&run.record.losses).unwrap_or_default();
            (run.key.seed.0, rows.iter().map(value).collect())
        };
        self.runs.iter().map(of_run).collect()
    }
}

impl Statement {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Statement::Better => "better",
            Statement::Worse => "worse",
            Statement::NotDistinguished => "not distinguished",
        }
    }
}

impl ComparedMeasure {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ComparedMeasure::Loss => "loss",
            ComparedMeasure::Accuracy => "accuracy",
        }
    }

    const fn scale(self) -> Scale {
        match self {
            ComparedMeasure::Loss => Scale::Logarithmic,
            ComparedMeasure::Accuracy => Scale::Linear,
        }
    }

    /// A value on the scale in percent: of the second set's loss, or percentage points.
    fn percent(self, value: f64) -> f64 {
        match self {
            ComparedMeasure::Loss => value.exp_m1() * 100.0,
            ComparedMeasure::Accuracy => value * 100.0,
        }
    }
}

impl Difference {
    fn new(measure: ComparedMeasure, found: &PairedDifference, level: Level) -> Difference {
        let half = found.half_width(level);
        let is_lower_better = measure == ComparedMeasure::Loss;
        Difference {
            measure,
            difference: measure.percent(found.value),
            low: measure.percent(found.value - half),
            high: measure.percent(found.value + half),
            statement: if !found.is_distinguished(level) {
                Statement::NotDistinguished
            } else if (found.value < 0.0) == is_lower_better {
                Statement::Better
            } else {
                Statement::Worse
            },
            seeds: found.seeds,
        }
    }
}

/// Each game's number and its number of samples.
fn samples_by_game(record: &ValidationRecord) -> impl Iterator<Item = (u32, u32)> {
    record.losses.games.iter().map(|game| (game.game, game.samples))
}

fn sample_counts(rows: &[LossSums]) -> Vec<f64> {
    rows.iter().map(|sums| f64::from(sums.samples)).collect()
}

fn pairs(sets: &[ValidatedSet<'_>], standard: &ValidationRecord, measures: &[ComparedMeasure]) -> Vec<PairComparison> {
    let firsts = if sets.len() > Comparisons::ALL_PAIRS { 1 } else { sets.len() };
    let mut numbers: Vec<(usize, usize)> = Vec::new();
    for against in 0..firsts {
        for set in against + 1..sets.len() {
            numbers.push((set, against));
        }
    }
    let samples = sample_counts(&standard.losses.games);
    let mut found = Vec::new();
    for measure in measures {
        let sums: Vec<SeedSums> = sets.iter().map(|set| set.sums(*measure, |losses| Some(&losses.games))).collect();
        let Some(paired) = PairedSets::new(&samples, &sums, measure.scale()) else { continue };
        for &(set, against) in &numbers {
            if let Some(difference) = paired.difference(set, against) {
                found.push((*measure, set, against, difference));
            }
        }
    }
    let level = Level::together(found.len(), measures.len());
    let comparison = |(measure, set, against, found): &(ComparedMeasure, usize, usize, PairedDifference)| {
        let Outlook { dominant, more_seeds, more_games } = found.outlook(level);
        PairComparison {
            set: sets[*set].name.into(),
            against: sets[*against].name.into(),
            difference: Difference::new(*measure, found, level),
            games: found.games,
            dominant,
            more_seeds,
            more_games,
        }
    };
    found.iter().map(comparison).collect()
}

/// Each set against the first, class by class.
fn parts(sets: &[ValidatedSet<'_>], standard: &ValidationRecord, measures: &[ComparedMeasure]) -> Vec<PartComparison> {
    let mut found = Vec::new();
    for class in standard.losses.classes.iter().filter(|class| class.groups.len() >= Comparisons::GROUPS) {
        let samples = sample_counts(&class.groups);
        for measure in measures {
            let sums: Vec<SeedSums> =
                sets.iter().map(|set| set.sums(*measure, |losses| groups(losses, class))).collect();
            let Some(paired) = PairedSets::new(&samples, &sums, measure.scale()) else { continue };
            let differences =
                (1..sets.len()).filter_map(|set| Some((class, *measure, set, paired.difference(set, 0)?)));
            found.extend(differences.collect::<Vec<_>>());
        }
    }
    // Each class and measure has a table of its own.
    let level = Level::together(found.len(), found.len() / sets.len().saturating_sub(1).max(1));
    let comparison = |(class, measure, set, found): &(&ClassLosses, _, usize, PairedDifference)| PartComparison {
        by: class.by.clone(),
        part: class.part.clone(),
        samples: class.groups.iter().map(|group| u64::from(group.samples)).sum(),
        set: sets[*set].name.into(),
        against: sets[0].name.into(),
        difference: Difference::new(*measure, found, level),
    };
    found.iter().map(comparison).collect()
}

/// The groups of the same class in another network's losses.
fn groups<'a>(losses: &'a ValidationLosses, class: &ClassLosses) -> Option<&'a [LossSums]> {
    let is_same = |other: &&ClassLosses| (&other.by, &other.part) == (&class.by, &class.part);
    losses.classes.iter().find(is_same).map(|class| &class.groups[..])
}

/// Why results without losses by game have no comparisons.
const NO_LOSSES: &str = "Pairs of sets are not compared: these results have no validation losses by game. `fsbench \
    run` with the same experiment adds them without training again, where the networks are still there.";

/// How the comparisons are made, and their limits.
fn note(
    standard: &ValidationRecord,
    sets: &[ValidatedSet<'_>],
    pairs: &[PairComparison],
    parts: &[PartComparison],
    others: &[&str],
) -> String {
    let number = |number: u64| grouped(&number.to_string());
    let mut text = if pairs.is_empty() {
        "Pairs of sets are not compared: fewer than two sets have validation losses by game.".to_owned()
    } else {
        format!(
            "Pairs are compared on {} samples of {} validation games by the float networks of the best epochs. {} The \
             intervals are corrected for the {} of the table (all of them hold with 95% confidence, \
             whether or not some sets are noisier than others); better and worse mean that the interval excludes 0. \
             +seeds, +games: how many further training seeds, or validation games, would narrow the interval to the \
             present difference, if the variances stay as estimated; – if those alone would not.",
            number(standard.samples),
            number(standard.games),
            sources(sets, pairs),
            if pairs.len() == 1 { "comparison".to_owned() } else { format!("{} comparisons", pairs.len()) },
        )
    };
    if !parts.is_empty() {
        text += &format!(
            " The {} comparisons by class of position are corrected together, in the same way; * marks intervals that \
             exclude 0. Classes with positions of few games are left out.",
            number(parts.len() as u64)
        );
    }
    if sets.len() > Comparisons::ALL_PAIRS {
        text += &format!(" As there are more than {} sets, each is compared with the first.", Comparisons::ALL_PAIRS);
    }
    if !others.is_empty() {
        text += &format!(" Not compared, because of another loss or other samples: {}.", listed(others));
    }
    text
}

/// The sources of variation that the intervals hold.
fn sources(sets: &[ValidatedSet<'_>], pairs: &[PairComparison]) -> String {
    let seeds: BTreeSet<usize> = pairs.iter().map(|pair| pair.difference.seeds).collect();
    let pooled = match sets.len() {
        0..=2 => "",
        _ => ", the latter by the noise that is common to the sets, or by a set's own where that is larger",
    };
    let both = "The intervals hold the variation between games and between training seeds";
    match (seeds.first(), seeds.last()) {
        (Some(1), Some(1)) => {
            "One seed was trained: the intervals hold the variation between games, but not that between \
            trainings, so that another seed may turn a result round."
                .into()
        }
        (Some(1), _) => {
            format!("{both}{pooled}; those of pairs with one common seed lack the variation between trainings.")
        }
        _ => format!("{both}{pooled}."),
    }
}

#[cfg(test)]
mod tests;
