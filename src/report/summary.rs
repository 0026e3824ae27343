//! Summary of an experiment's records: one row per feature set and method, with intervals over the seeds.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparisons::Comparisons;
use super::equal_speed::EqualSpeed;
use super::measured::MeasuredNumbers;
use super::own_figures;
use super::pareto;
use super::published::PublishedComparison;
use super::scaling::ScalingSummary;
use super::strength::{DoublingElo, EloTables, Strength, elo_of_doubling, match_conditions};
use super::training_data::{TrainingData, setting};
use super::verdict::verdict;
use crate::features::EncoderKind;
use crate::record::{
    Environment, ErrorRecord, LoopRecord, MatchResult, Method, NetResult, OwnFigures, PlannedRow, Results, RunRecord,
    SearchRecord, SpeedBeside, SpeedEntry, SpeedRecord, SpeedSetup, Study, TimeBreakdown,
};
use crate::statistics::{Estimate, differences_to_first};
use crate::units::{Seed, SortedMap};

/// All numbers of a report.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    pub study: Study,
    pub environment: Environment,
    pub methods: Vec<MethodSummary>,
    /// Conditions of the matches, and the meaning of the Elo intervals, in a few sentences.
    pub match_conditions: Option<String>,
    /// The tree of a search; absent in other experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// The course of a learning loop; absent in other experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_loop: Option<LoopRecord>,
}

/// The comparison of feature sets by one method, in a sweep with one value of each swept setting.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MethodSummary {
    pub method: Method,
    /// The swept settings, as in `l1 128`; absent without a sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The first set, with which the others are compared.
    pub reference: String,
    /// The set that the others play; `None` without matches.
    pub match_reference: Option<String>,
    /// The Elo of twice the nodes in its matches, by what sets lose by their cost, or gain by their speed.
    pub elo_of_doubling: Option<DoublingElo>,
    /// Its sets' Elo, of which each row has its own.
    #[serde(skip)]
    pub(super) elo: EloTables,
    /// In the experiment's order.
    pub rows: Vec<SummaryRow>,
    pub curves: Vec<Curve>,
    /// Pairs of sets, by validation game and training seed.
    pub comparisons: Comparisons,
    /// The comparison in words: the whole in a sentence, then every set against the first.
    pub verdict: Vec<String>,
    /// How the widths of a comparison at equal speed were found; absent in others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equal_speed: Option<EqualSpeed>,
    /// What more data would change; absent without trainings on shares of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingSummary>,
    /// Whether the experiment has such trainings, but no curves come of those that are done.
    #[serde(skip)]
    pub(super) lacks_curves: bool,
    /// The same sets' published results; absent where the experiment has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedComparison>,
}

/// Validation loss by epoch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Curve {
    /// The set's name within its comparison.
    pub set: String,
    pub points: Vec<CurvePoint>,
}

/// An epoch's mean over the seeds.
#[derive(Copy, Clone, Debug, Serialize, JsonSchema)]
pub struct CurvePoint {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Samples seen since the run began.
    pub samples: u64,
    pub validation_loss: Estimate,
}

/// One feature set trained by one method. Values that were not measured are `None`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryRow {
    /// The row's label.
    pub set: String,
    /// `set` without the swept settings, which are the comparison's.
    #[serde(skip)]
    pub name: String,
    /// Its set as written and its shape. An evaluation costs the same in rows that have both in common.
    #[serde(skip)]
    pub(super) network: String,
    /// Whether no other network of the method, at any swept setting, is both faster and of lower loss; `None` unless
    /// several have both measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_front: Option<bool>,
    /// Finished trainings.
    pub seeds_done: usize,
    /// Planned trainings.
    pub seeds_planned: usize,
    /// The facts of the set's definition.
    pub about: Option<String>,
    /// Width of the accumulator.
    pub l1: Option<u64>,
    /// `None` before the first training is done.
    pub training_data: Option<TrainingData>,
    /// Inputs per perspective.
    pub features: Option<u32>,
    /// Trainable weights and biases.
    pub parameters: Option<u64>,
    /// Active features per perspective.
    pub active_mean: Option<f64>,
    /// Most features active at once.
    pub active_max: Option<u64>,
    /// Share of features that are active.
    pub density: Option<f64>,
    /// Rows of the feature transformer per move, mean of both perspectives.
    pub rows_update: Option<f64>,
    /// Rows of a refresh.
    pub rows_refresh: Option<f64>,
    /// Rows per move with a refresh cache.
    pub rows_cache: Option<f64>,
    /// Share of moves with a refresh, mean of both perspectives.
    pub refreshes: Option<f64>,
    pub validation_loss: Option<Estimate>,
    pub baseline_loss: Option<Estimate>,
    /// Validation loss divided by the loss of the best constant.
    pub relative_loss: Option<Estimate>,
    /// Validation loss minus the reference set's, paired by seed; `None` for the reference itself. The intervals of all
    /// rows hold together.
    pub difference: Option<Estimate>,
    /// For pqr: share of validation samples in which the network prefers the move played.
    pub accuracy: Option<Estimate>,
    /// Numbers of its networks.
    #[serde(flatten)]
    pub measured: MeasuredNumbers,
    /// The difference of expected results up to which float and integer network count as agreeing.
    pub tolerance: Option<f64>,
    /// Evaluations per second of the networks as trained, on one thread, with the fastest strategy. Those of other rows
    /// than the first: the first's, times the ratio of both as timed by turns; the same holds for all other speeds.
    pub speed: Option<Estimate>,
    /// The fastest strategy and its back end.
    pub speed_way: Option<SpeedSetup>,
    /// Half-width of the 95% interval over its repetitions, as a share of the speed; the largest of the networks'.
    pub speed_spread: Option<f64>,
    /// Whether its repetitions differed too much to be reliable: by more than a tenth.
    pub speed_noisy: bool,
    /// Time per evaluation with the fastest strategy, in parts; mean over the networks.
    pub nanoseconds: Option<TimeBreakdown>,
    /// How its features were found in that time; `None` where that was not recorded.
    pub encoder: Option<EncoderKind>,
    /// The user's own figures of its cost.
    #[serde(skip_serializing_if = "OwnFigures::is_empty")]
    pub own: OwnFigures,
    /// Evaluations per second with the user's time of finding features; `None` without such a figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_by_figures: Option<f64>,
    /// Speed of the same networks with their neurons permuted for other positions.
    pub speed_arranged: Option<Estimate>,
    /// Speeds of the fastest strategy that updates accumulators, and of the strategy that recomputes them at every
    /// move.
    pub speed_incremental: Option<Estimate>,
    pub speed_refresh: Option<Estimate>,
    /// Back end of the fastest strategy.
    pub back_end: Option<String>,
    /// The seeds whose networks were timed.
    pub speed_seeds: Vec<Seed>,
    /// What each of these networks was timed beside.
    #[serde(skip)]
    pub(super) timed_beside: TimedBeside,
    /// `None` if the set played no match.
    pub strength: Option<Strength>,
}

/// What the networks of a row were timed beside.
#[derive(Clone, Debug, Default)]
pub(super) struct TimedBeside {
    /// Digests of the other networks; of the row's own networks if the others were timed beside these.
    digests: Vec<String>,
    is_base: bool,
}

/// Why an experiment with trainings on shares of the data has no curves.
const NO_CURVES: &str = "More data: no curves, since these results lack losses by game of trainings on shares of the data, \
    which are not done or not kept.";

impl MethodSummary {
    /// The meaning of the tables of pairs, one or two paragraphs per table.
    pub(super) fn notes(&self) -> Vec<String> {
        let pairs = self.comparisons.note.clone().filter(|_| !self.comparisons.pairs.is_empty());
        let published = self.published.as_ref().map(PublishedComparison::agreement);
        let equal_speed = self.equal_speed.as_ref().map(EqualSpeed::note);
        let own_figures = own_figures::note(&self.rows);
        let no_curves = self.lacks_curves.then(|| NO_CURVES.to_owned());
        let scaling = self.scaling.as_ref().map(ScalingSummary::note).or(no_curves);
        own_figures.into_iter().chain(equal_speed).chain(scaling).chain(pairs).chain(published).collect()
    }
}

impl Summary {
    /// Summarises the records, in the order of the experiment's plan.
    #[must_use]
    pub fn of(results: &Results) -> Summary {
        let mut methods: Vec<MethodSummary> = Vec::new();
        for planned in &results.study.rows {
            let method = planned.method;
            let is_same = |summary: &MethodSummary| (summary.method, &summary.group) == (method, &planned.group);
            let index = methods.iter().position(is_same).unwrap_or_else(|| {
                let reference = planned.set.clone();
                let match_reference = match_reference(results, planned);
                methods.push(MethodSummary {
                    method,
                    group: planned.group.clone(),
                    reference,
                    match_reference,
                    elo_of_doubling: elo_of_doubling(results, planned),
                    elo: EloTables::of(results, planned),
                    rows: Vec::new(),
                    curves: Vec::new(),
                    comparisons: Comparisons::of(results, planned),
                    verdict: Vec::new(),
                    equal_speed: EqualSpeed::of(results, planned),
                    scaling: ScalingSummary::of(results, planned),
                    lacks_curves: false,
                    published: None,
                });
                methods.len() - 1
            });
            let summary = &mut methods[index];
            summary.lacks_curves = results.study.scaling.is_some() && summary.scaling.is_none();
            summary.rows.push(summary_row(results, planned, &summary.elo));
            summary.curves.extend(curve(results, planned));
        }
        pareto::mark_fronts(&mut methods);
        for summary in &mut methods {
            set_differences(results, summary);
            let published = results.study.published.as_ref();
            let row_called = |name: &str| summary.rows.iter().find(|row| row.name == name);
            let training_loss = |name: &str| {
                let runs = runs_of(results, &row_called(name)?.set, summary.method);
                let losses: Option<Vec<f64>> = runs.iter().map(|run| Some(run.measured_epoch()?.train_loss)).collect();
                Some(Estimate::over(&losses?)?.mean)
            };
            let found = PublishedComparison::of(published, &summary.rows, &summary.comparisons, &training_loss);
            summary.published = found;
            summary.verdict = verdict(summary, &results.study.data);
        }
        let study = results.study.clone();
        let environment = results.environment.clone();
        let search = results.search.clone();
        let learning_loop = results.learning_loop.clone();
        let match_conditions = match_conditions(results);
        Summary { study, environment, methods, match_conditions, search, learning_loop }
    }

    /// Why methods have no pairs to compare; each reason once.
    pub(super) fn without_pairs(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> = Vec::new();
        for Comparisons { note, pairs, .. } in self.methods.iter().map(|method| &method.comparisons) {
            let reason = note.as_deref().filter(|note| pairs.is_empty() && !reasons.contains(note));
            reasons.extend(reason);
        }
        reasons
    }

    /// Whether a planned run is missing.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        let goes_on = self.learning_loop.as_ref().is_some_and(|found| found.stopped.is_none());
        goes_on || self.methods.iter().flat_map(|method| &method.rows).any(|row| row.seeds_done < row.seeds_planned)
    }
}

/// The set that the sets of a planned row's comparison play; `None` if none of them has played.
fn match_reference(results: &Results, planned: &PlannedRow) -> Option<String> {
    let is_compared = |result: &&MatchResult| {
        let is_of = |row: &PlannedRow| row.set == result.key.set && row.group == planned.group;
        result.key.method == planned.method && results.study.rows.iter().any(is_of)
    };
    Some(results.matches.iter().find(is_compared)?.reference.clone())
}

fn summary_row(results: &Results, planned: &PlannedRow, elo: &EloTables) -> SummaryRow {
    let runs = runs_of(results, &planned.set, planned.method);
    let over =
        |value: &dyn Fn(&RunRecord) -> f64| Estimate::over(&runs.iter().map(|run| value(run)).collect::<Vec<_>>());
    let updates = results.updates.iter().find(|result| result.set == planned.set).map(|result| &result.record);
    let errors = results.networks.of::<ErrorRecord>();
    let speeds: Vec<_> = nets_of(&results.speed, planned).map(|result| calibrated(results, &result.record)).collect();
    let speed_seeds = nets_of(&results.speed, planned).map(|result| result.key.seed).collect();
    let arranged: Vec<_> =
        speeds.iter().filter_map(|record| record.ft_permuted.as_ref().map(|arranged| &arranged.entries[..])).collect();
    let as_trained: Vec<_> = speeds.iter().map(|record| &record.entries[..]).collect();
    let fastest = FastestStrategy::of(&as_trained, |_| true);
    let nanoseconds = fastest.as_ref().and_then(|fastest| fastest.nanoseconds);
    let accuracy: Option<Vec<f64>> =
        runs.iter().map(|run| run.measured_epoch().and_then(|epoch| epoch.validation_accuracy)).collect();
    let written = planned.definition.as_deref().unwrap_or_else(|| planned.name());
    let shape = ["l1", "hidden", "design"].map(|key| setting(&results.study, planned, key));
    SummaryRow {
        set: planned.set.clone(),
        network: format!("{written} {shape:?}"),
        name: planned.name().to_owned(),
        on_front: None,
        seeds_done: runs.len(),
        seeds_planned: planned.seeds.len(),
        about: planned.about.clone(),
        l1: setting(&results.study, planned, "l1").and_then(serde_json::Value::as_u64),
        training_data: TrainingData::of(&results.study, planned, &runs),
        features: runs.first().map(|run| run.num_features).or(updates.map(|record| record.num_features)),
        parameters: runs.first().map(|run| run.parameters),
        active_mean: updates.map(|record| record.active_mean),
        active_max: updates.map(|record| record.active_max),
        density: updates.map(|record| record.density),
        rows_update: updates.map(|record| record.mean.rows_update),
        rows_refresh: updates.map(|record| record.mean.rows_refresh),
        rows_cache: updates.map(|record| record.mean.rows_cache),
        refreshes: updates.map(|record| record.mean.refreshes),
        validation_loss: over(&|run| run.validation_loss),
        baseline_loss: over(&|run| run.baseline_loss),
        relative_loss: over(&|run| run.validation_loss / run.baseline_loss),
        difference: None,
        accuracy: accuracy.and_then(|values| Estimate::over(&values)),
        measured: MeasuredNumbers::of(results, planned),
        tolerance: nets_of(&errors, planned).next().map(|error| error.record.tolerance),
        speed_spread: fastest.as_ref().map(|fastest| fastest.spread),
        speed_noisy: fastest.as_ref().is_some_and(|fastest| fastest.spread > SpeedEntry::NOISY_SHARE),
        nanoseconds,
        encoder: speeds.first().and_then(|record| record.encoder),
        own: planned.own,
        speed_by_figures: planned.own.features_ns.and_then(|own| Some(1e9 / nanoseconds?.total_with_features(own))),
        back_end: fastest.as_ref().map(|fastest| fastest.way.back_end.clone()),
        speed: fastest.as_ref().map(|fastest| fastest.speed),
        speed_way: fastest.map(|fastest| fastest.way),
        speed_arranged: FastestStrategy::of(&arranged, |_| true).map(|fastest| fastest.speed),
        speed_incremental: FastestStrategy::of(&as_trained, |strategy| strategy != REFRESH)
            .map(|fastest| fastest.speed),
        speed_refresh: FastestStrategy::of(&as_trained, |strategy| strategy == REFRESH).map(|fastest| fastest.speed),
        speed_seeds,
        timed_beside: TimedBeside::of(&speeds),
        strength: Strength::of(results, planned, elo),
    }
}

/// A record of speed in terms of the record of the network that it was timed beside.
fn calibrated(results: &Results, record: &SpeedRecord) -> SpeedRecord {
    let Some(SpeedBeside { digest, .. }) = &record.beside else { return record.clone() };
    match results.speed.iter().find(|base| base.record.digest == *digest) {
        Some(base) => record.calibrated(&base.record),
        None => record.clone(),
    }
}

impl TimedBeside {
    fn of(records: &[SpeedRecord]) -> TimedBeside {
        let digest =
            |record: &SpeedRecord| record.beside.as_ref().map_or(&record.digest, |beside| &beside.digest).clone();
        let is_base = records.iter().all(|record| record.beside.is_none());
        TimedBeside { digests: records.iter().map(digest).collect(), is_base }
    }
}

impl SummaryRow {
    /// Half-width of the interval of the row's speed against another's, by the timings of this row, as a share; 0 if the
    /// other was timed beside this one.
    pub(super) fn speed_spread_against(&self, other: &SummaryRow) -> f64 {
        let is_base = self.timed_beside.is_base && self.timed_beside.digests == other.timed_beside.digests;
        if is_base { 0.0 } else { self.speed_spread.unwrap_or_default() }
    }
}

fn runs_of<'a>(results: &'a Results, set: &str, method: Method) -> Vec<&'a RunRecord> {
    results.runs.iter().filter(|run| run.key.set == set && run.key.method == method).collect()
}

fn nets_of<'a, T>(all: &'a [NetResult<T>], planned: &'a PlannedRow) -> impl Iterator<Item = &'a NetResult<T>> {
    all.iter().filter(|result| result.key.set == planned.set && result.key.method == planned.method)
}

/// Sets every row's loss minus the first row's, paired by seed, where both have the same samples.
fn set_differences(results: &Results, summary: &mut MethodSummary) {
    let is_own = |row: &&PlannedRow| (row.method, &row.group) == (summary.method, &summary.group);
    let planned: Vec<&PlannedRow> = results.study.rows.iter().filter(is_own).collect();
    let Some(first) = planned.first() else { return };
    let compared: Vec<usize> = (0..planned.len()).filter(|row| planned[*row].has_loss_of(first)).collect();
    let losses = |row: &usize| -> SortedMap<u64, f64> {
        let runs = runs_of(results, &planned[*row].set, summary.method).into_iter();
        runs.map(|run| (run.key.seed.0, run.validation_loss)).collect()
    };
    let losses: Vec<SortedMap<u64, f64>> = compared.iter().map(losses).collect();
    for (row, difference) in compared.into_iter().zip(differences_to_first(&losses)) {
        summary.rows[row].difference = difference;
    }
}

/// The strategy that recomputes accumulators at every move; all others update them.
const REFRESH: &str = "refresh";

/// The strategy with the highest mean speed over the networks.
struct FastestStrategy {
    way: SpeedSetup,
    /// Mean and interval over the networks; for a single network, its own interval over repetitions.
    speed: Estimate,
    nanoseconds: Option<TimeBreakdown>,
    /// [`SummaryRow::speed_spread`]
    spread: f64,
}

impl FastestStrategy {
    /// Chooses among the strategies that are `allowed` and timed for every network. `networks`: each network's timings.
    fn of(networks: &[&[SpeedEntry]], allowed: fn(&str) -> bool) -> Option<FastestStrategy> {
        let candidates = networks.first()?.iter().filter(|entry| allowed(&entry.strategy));
        let means = candidates.filter_map(|candidate| {
            let is_same =
                |entry: &&SpeedEntry| (&entry.strategy, &entry.back_end) == (&candidate.strategy, &candidate.back_end);
            let entries = networks.iter().map(|entries| entries.iter().find(is_same)).collect::<Option<Vec<_>>>()?;
            FastestStrategy::mean(&entries)
        });
        means.max_by(|a, b| a.speed.mean.total_cmp(&b.speed.mean))
    }

    /// Summarises the timings of one strategy, one per network.
    fn mean(entries: &[&SpeedEntry]) -> Option<FastestStrategy> {
        let first = entries.first()?;
        let rates: Vec<f64> = entries.iter().map(|entry| entry.evaluations_per_second).collect();
        let speed = match entries {
            [entry] => Estimate { mean: entry.evaluations_per_second, interval: Some(entry.interval), count: 1 },
            _ => Estimate::over(&rates)?,
        };
        let times: Option<Vec<TimeBreakdown>> = entries.iter().map(|entry| entry.nanoseconds).collect();
        let mean = |value: fn(&TimeBreakdown) -> f64, all: &[TimeBreakdown]| {
            all.iter().map(value).sum::<f64>() / all.len() as f64
        };
        let nanoseconds = times.map(|all| TimeBreakdown {
            features: mean(|time| time.features, &all),
            bookkeeping: all
                .iter()
                .all(|time| time.bookkeeping.is_some())
                .then(|| mean(|time| time.bookkeeping.unwrap_or_default(), &all)),
            rows: mean(|time| time.rows, &all),
            forward: mean(|time| time.forward, &all),
        });
        let way = SpeedSetup { strategy: first.strategy.clone(), back_end: first.back_end.clone() };
        let spread = entries.iter().map(|entry| entry.spread()).fold(0.0, f64::max);
        Some(FastestStrategy { way, speed, nanoseconds, spread })
    }
}

fn curve(results: &Results, planned: &PlannedRow) -> Option<Curve> {
    let mut epochs: SortedMap<u32, (u64, Vec<f64>)> = SortedMap::new();
    for run in runs_of(results, &planned.set, planned.method) {
        for epoch in &run.epochs {
            let (samples, losses) = epochs.get_or_default(epoch.epoch);
            *samples = epoch.samples;
            losses.push(epoch.validation_loss);
        }
    }
    let points: Vec<CurvePoint> = epochs
        .into_iter()
        .filter_map(|(epoch, (samples, losses))| {
            Some(CurvePoint { epoch, samples, validation_loss: Estimate::over(&losses)? })
        })
        .collect();
    (!points.is_empty()).then(|| Curve { set: planned.name().to_owned(), points })
}
