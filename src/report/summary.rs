//! Records brought together: one row a feature set and method, every trained figure with its interval over the seeds.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{
    Environment, LayerActivity, Method, Nanoseconds, NetResult, PlannedRow, Results, RunRecord, SpeedEntry, Study, Way,
};
use crate::statistics::Estimate;
use crate::units::Seed;

/// A whole report's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub study: Study,
    pub environment: Environment,
    pub methods: Vec<MethodSummary>,
}

/// The comparison by one method.
#[derive(Clone, Debug, Serialize)]
pub struct MethodSummary {
    pub method: Method,
    /// The set others are compared with: the first.
    pub reference: String,
    /// In the experiment's order.
    pub rows: Vec<SummaryRow>,
    pub curves: Vec<Curve>,
}

/// Validation loss by epoch.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    pub set: String,
    pub points: Vec<CurvePoint>,
}

/// One epoch over the seeds.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct CurvePoint {
    pub epoch: u32,
    /// Samples seen since the run began.
    pub samples: u64,
    pub validation_loss: Estimate,
}

/// One feature set by one method. Whatever was not measured (yet) is none.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryRow {
    pub set: String,
    pub seeds_done: usize,
    pub seeds_planned: usize,
    pub features: Option<u32>,
    pub parameters: Option<u64>,
    /// Active features a position and perspective.
    pub active_mean: Option<f64>,
    pub active_max: Option<u64>,
    pub density: Option<f64>,
    /// Rows a move, mean of both perspectives.
    pub rows_update: Option<f64>,
    pub rows_refresh: Option<f64>,
    pub rows_cache: Option<f64>,
    /// Share of moves with a refresh, mean of both perspectives.
    pub refreshes: Option<f64>,
    pub validation_loss: Option<Estimate>,
    pub baseline_loss: Option<Estimate>,
    /// Validation loss over the loss of the best constant, by seed.
    pub relative_loss: Option<Estimate>,
    /// Validation loss minus the reference set's, paired by seed; none for the reference itself.
    pub difference: Option<Estimate>,
    /// pqr: share of validation samples whose chosen move is preferred.
    pub accuracy: Option<Estimate>,
    /// Share of accumulator outputs above zero, and at the activation's bound.
    pub l1_active: Option<Estimate>,
    pub l1_saturated: Option<Estimate>,
    /// Accumulator neurons that are never active.
    pub l1_never: Option<Estimate>,
    /// Share of positions whose WDL differs by at most `tolerance` between float and integer network.
    pub within_tolerance: Option<Estimate>,
    pub tolerance: Option<f64>,
    pub error_mean: Option<Estimate>,
    /// Evaluations per second of the networks as trained, one thread, by the fastest way.
    pub speed: Option<Estimate>,
    /// The fastest way.
    pub speed_way: Option<Way>,
    /// Whether some repetitions of it were too far apart to be relied on.
    pub speed_noisy: bool,
    /// Where the time goes, by the fastest way; mean over the networks.
    pub nanoseconds: Option<Nanoseconds>,
    /// The same networks with their neurons arranged by other positions.
    pub speed_arranged: Option<Estimate>,
    /// The fastest of the ways that follow the moves, and of those that recompute everything.
    pub speed_incremental: Option<Estimate>,
    pub speed_refresh: Option<Estimate>,
    /// The back end of the speed.
    pub back_end: Option<String>,
    /// The seeds whose networks were timed.
    pub speed_seeds: Vec<Seed>,
}

impl Summary {
    #[must_use]
    pub fn of(results: &Results) -> Summary {
        let mut methods: Vec<MethodSummary> = Vec::new();
        for planned in &results.study.rows {
            let method = planned.method;
            let index = methods.iter().position(|summary| summary.method == method).unwrap_or_else(|| {
                let reference = planned.set.clone();
                methods.push(MethodSummary { method, reference, rows: Vec::new(), curves: Vec::new() });
                methods.len() - 1
            });
            let summary = &mut methods[index];
            summary.rows.push(row(results, planned, &summary.reference));
            summary.curves.extend(curve(results, planned));
        }
        Summary { study: results.study.clone(), environment: results.environment.clone(), methods }
    }

    /// Whether some planned run is missing.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.methods.iter().flat_map(|method| &method.rows).any(|row| row.seeds_done < row.seeds_planned)
    }
}

fn row(results: &Results, planned: &PlannedRow, reference: &str) -> SummaryRow {
    let runs = runs_of(results, &planned.set, planned.method);
    let over =
        |value: &dyn Fn(&RunRecord) -> f64| Estimate::over(&runs.iter().map(|run| value(run)).collect::<Vec<_>>());
    let updates = results.updates.iter().find(|result| result.set == planned.set).map(|result| &result.record);
    let layers: Vec<&LayerActivity> =
        nets_of(&results.activity, planned).filter_map(|result| result.record.layers.first()).collect();
    let over_layers = |value: &dyn Fn(&LayerActivity) -> f64| {
        Estimate::over(&layers.iter().map(|layer| value(layer)).collect::<Vec<_>>())
    };
    let errors: Vec<_> = nets_of(&results.error, planned).map(|result| &result.record).collect();
    let speeds: Vec<_> = nets_of(&results.speed, planned).map(|result| &result.record).collect();
    let speed_seeds = nets_of(&results.speed, planned).map(|result| result.key.seed).collect();
    let arranged: Vec<_> =
        speeds.iter().filter_map(|record| record.arranged.as_ref().map(|one| &one.entries[..])).collect();
    let given: Vec<_> = speeds.iter().map(|record| &record.entries[..]).collect();
    let fastest = Fastest::of(&given, |_| true);
    let accuracy: Option<Vec<f64>> =
        runs.iter().map(|run| run.best().and_then(|epoch| epoch.validation_accuracy)).collect();
    SummaryRow {
        set: planned.set.clone(),
        seeds_done: runs.len(),
        seeds_planned: planned.seeds.len(),
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
        difference: difference(results, &runs, planned, reference),
        accuracy: accuracy.and_then(|values| Estimate::over(&values)),
        l1_active: over_layers(&|layer| layer.active),
        l1_saturated: over_layers(&|layer| layer.saturated),
        l1_never: over_layers(&|layer| layer.never_active as f64),
        within_tolerance: Estimate::over(&errors.iter().map(|error| error.within_tolerance).collect::<Vec<_>>()),
        tolerance: errors.first().map(|error| error.tolerance),
        error_mean: Estimate::over(&errors.iter().map(|error| error.mean).collect::<Vec<_>>()),
        speed_noisy: fastest.as_ref().is_some_and(|fastest| fastest.noisy),
        nanoseconds: fastest.as_ref().and_then(|fastest| fastest.nanoseconds),
        back_end: fastest.as_ref().map(|fastest| fastest.way.back_end.clone()),
        speed: fastest.as_ref().map(|fastest| fastest.speed),
        speed_way: fastest.map(|fastest| fastest.way),
        speed_arranged: Fastest::of(&arranged, |_| true).map(|fastest| fastest.speed),
        speed_incremental: Fastest::of(&given, |strategy| strategy != REFRESH).map(|fastest| fastest.speed),
        speed_refresh: Fastest::of(&given, |strategy| strategy == REFRESH).map(|fastest| fastest.speed),
        speed_seeds,
    }
}

fn runs_of<'a>(results: &'a Results, set: &str, method: Method) -> Vec<&'a RunRecord> {
    results.runs.iter().filter(|run| run.key.set == set && run.key.method == method).collect()
}

fn nets_of<'a, T>(all: &'a [NetResult<T>], planned: &'a PlannedRow) -> impl Iterator<Item = &'a NetResult<T>> {
    all.iter().filter(|result| result.key.set == planned.set && result.key.method == planned.method)
}

/// Loss minus the reference's loss of the same seed, over the seeds both have.
fn difference(results: &Results, runs: &[&RunRecord], planned: &PlannedRow, reference: &str) -> Option<Estimate> {
    if planned.set == reference {
        return None;
    }
    let others = runs_of(results, reference, planned.method);
    let pairs = runs.iter().filter_map(|run| {
        let other = others.iter().find(|other| other.key.seed == run.key.seed)?;
        Some(run.validation_loss - other.validation_loss)
    });
    Estimate::over(&pairs.collect::<Vec<_>>())
}

/// The strategy that recomputes everything at every move; all others follow the moves.
const REFRESH: &str = "refresh";

/// The way that was fastest, on the mean over the networks.
struct Fastest {
    way: Way,
    /// Over networks when several were timed, else the one network's own interval over its repetitions.
    speed: Estimate,
    nanoseconds: Option<Nanoseconds>,
    noisy: bool,
}

impl Fastest {
    /// Among the `wanted` strategies that every network (one list of entries each) was timed by.
    fn of(networks: &[&[SpeedEntry]], wanted: fn(&str) -> bool) -> Option<Fastest> {
        let ways = networks.first()?.iter().filter(|entry| wanted(&entry.strategy));
        let timed = ways.filter_map(|way| {
            let same = |entry: &&SpeedEntry| (&entry.strategy, &entry.back_end) == (&way.strategy, &way.back_end);
            let entries = networks.iter().map(|entries| entries.iter().find(same)).collect::<Option<Vec<_>>>()?;
            Fastest::timed(&entries)
        });
        timed.max_by(|a, b| a.speed.mean.total_cmp(&b.speed.mean))
    }

    /// One way, an entry per network.
    fn timed(entries: &[&SpeedEntry]) -> Option<Fastest> {
        let first = entries.first()?;
        let rates: Vec<f64> = entries.iter().map(|entry| entry.evaluations_per_second).collect();
        let speed = match entries {
            [entry] => Estimate { mean: entry.evaluations_per_second, interval: Some(entry.interval), count: 1 },
            _ => Estimate::over(&rates)?,
        };
        let parts: Option<Vec<Nanoseconds>> = entries.iter().map(|entry| entry.nanoseconds).collect();
        let mean =
            |part: fn(&Nanoseconds) -> f64, all: &[Nanoseconds]| all.iter().map(part).sum::<f64>() / all.len() as f64;
        let nanoseconds = parts.map(|all| Nanoseconds {
            features: mean(|one| one.features, &all),
            rows: mean(|one| one.rows, &all),
            forward: mean(|one| one.forward, &all),
        });
        let way = Way { strategy: first.strategy.clone(), back_end: first.back_end.clone() };
        Some(Fastest { way, speed, nanoseconds, noisy: entries.iter().any(|entry| entry.is_noisy()) })
    }
}

fn curve(results: &Results, planned: &PlannedRow) -> Option<Curve> {
    let mut epochs: BTreeMap<u32, (u64, Vec<f64>)> = BTreeMap::new();
    for run in runs_of(results, &planned.set, planned.method) {
        for epoch in &run.epochs {
            let (samples, losses) = epochs.entry(epoch.epoch).or_default();
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
    (!points.is_empty()).then(|| Curve { set: planned.set.clone(), points })
}
