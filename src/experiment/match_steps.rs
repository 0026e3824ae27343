//! The steps that play matches: what their results depend on, and how they are played.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::ExperimentError;
use super::executor::{Executor, MatchMonitor, MatchRequest, MatchSetup};
use super::match_shards::PlannedShard;
use super::plan::{PlanStep, PlannedEqualSpeed, PlannedMatch};
use super::result_store::ResultKey;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, Stage};
use super::spec::Experiment;
use crate::play::MatchProgress;
use crate::record::{MatchKind, MatchRecord, MatchResult, read_checked_json};
use crate::train::TrainOutcome;
use crate::train::run_dir::OUTCOME;
use crate::units::Seed;

impl<'a> Runner<'a> {
    pub(super) fn match_key(&self, index: usize) -> ResultKey {
        ResultKey::of("match", &json!([self.game_determinants(index), self.match_length()]))
    }

    /// A match's identity before its networks are trained.
    pub(super) fn match_step_key(&self, index: usize) -> ResultKey {
        let run = |run: usize| json!(self.run_key(&self.plan.runs[run]));
        ResultKey::of("match step", &json!([self.determinants(index, run), self.match_length()]))
    }

    /// Its journal's identity before its networks are trained.
    pub(super) fn match_lock_key(&self, index: usize) -> ResultKey {
        let run = |run: usize| json!(self.run_key(&self.plan.runs[run]));
        ResultKey::of("match lock", &self.determinants(index, run))
    }

    /// The identity of its cost's measurement before its networks are trained.
    pub(super) fn match_cost_step_key(&self, index: usize) -> ResultKey {
        let run = |run: usize| json!(self.run_key(&self.plan.runs[run]));
        ResultKey::of("match cost step", &self.determinants(index, run))
    }

    /// A shard's identity before its networks are trained.
    pub(super) fn shard_step_key(&self, index: usize) -> ResultKey {
        let PlannedShard { of, pairs, .. } = &self.plan.shards[index];
        let run = |run: usize| json!(self.run_key(&self.plan.runs[run]));
        ResultKey::of("match shard step", &json!([self.determinants(*of, run), pairs.start, pairs.end]))
    }

    fn match_length(&self) -> Option<Value> {
        self.experiment.matches.as_ref().map(|measure| json!([measure.options.pairs(), measure.terms.half_width]))
    }

    /// The inputs that determine the games of a match. The number of games does not: a longer match continues a shorter
    /// one.
    pub(super) fn game_determinants(&self, index: usize) -> Value {
        self.determinants(index, |run| json!([self.run_key(&self.plan.runs[run]), self.network_hash(run)]))
    }

    fn determinants(&self, index: usize, network: impl Fn(usize) -> Value) -> Value {
        let planned = self.plan.matches[index];
        let PlannedMatch { run, reference, kind, own } = planned;
        let Some(measure) = &self.experiment.matches else { return Value::Null };
        let limit = match kind {
            MatchKind::EqualNodes => json!(measure.terms.nodes),
            MatchKind::EqualCost if planned.measures_cost() => {
                json!([measure.terms.equal_cost, self.timed_on(&[run, reference]), own])
            }
            MatchKind::EqualCost => json!([measure.terms.equal_cost, own]),
        };
        let setup = self.match_setup.as_ref().map(|setup| json!([setup.openings, setup.search]));
        let options = &measure.options;
        let rules = json!([options.adjudication, options.hash, options.opening_plies, self.match_seed(index)]);
        json!([kind, network(run), network(reference), limit, setup, rules])
    }

    /// Hash of a run's network, if it is trained.
    fn network_hash(&self, run: usize) -> Option<String> {
        self.played.network_hash(run, || {
            let bytes = std::fs::read(self.network(run).ok()?).ok()?;
            Some(blake3::hash(&bytes).to_hex().to_string())
        })
    }

    /// The quantised network of a finished run.
    pub(super) fn network(&self, run: usize) -> Result<PathBuf, ExperimentError> {
        let folder = self.run_folder(run);
        let outcome: TrainOutcome = read_checked_json(&folder.join(OUTCOME))?;
        Ok(folder.join(outcome.network))
    }

    /// Every training seed has the openings in another order, so that its games are independent of the others'.
    fn match_seed(&self, index: usize) -> Seed {
        let base = self.experiment.matches.as_ref().map_or(0, |measure| measure.options.seed.0);
        Seed(base.wrapping_add(self.plan.runs[self.plan.matches[index].run].key.seed.0))
    }

    /// The match's journal and games: in the run's folder, with which they are removed.
    fn match_folder(&self, index: usize) -> PathBuf {
        let games = ResultKey::of("games", &self.game_determinants(index));
        self.run_folder(self.plan.matches[index].run).join("matches").join(games.to_string())
    }

    /// Whether both networks of a match are trained, or `pending` trains them.
    pub(super) fn can_play(&self, index: usize, pending: &[PlanStep]) -> bool {
        let PlannedMatch { run, reference, .. } = self.plan.matches[index];
        self.will_have([run, reference], pending)
    }

    /// Whether both networks of a comparison of speeds are trained, or `pending` trains them.
    pub(super) fn can_race(&self, index: usize, pending: &[PlanStep]) -> bool {
        let PlannedEqualSpeed { run, reference, .. } = self.plan.equal_speeds[index];
        self.will_have([run, reference], pending)
    }

    fn will_have(&self, runs: [usize; 2], pending: &[PlanStep]) -> bool {
        let will_exist = |run: usize| pending.contains(&PlanStep::Train(run)) || self.network(run).is_ok();
        runs.into_iter().all(will_exist)
    }

    pub(super) fn match_request(&self, index: usize) -> Result<MatchRequest<'a>, ExperimentError> {
        let PlannedMatch { run, reference, kind, own } = self.plan.matches[index];
        let experiment: &'a Experiment = self.experiment;
        let settings = experiment.matches.as_ref().expect("a match is planned by [match] alone");
        Ok(MatchRequest {
            kind,
            networks: [self.network(run)?, self.network(reference)?],
            names: [run, reference].map(|run| self.plan.runs[run].key.set.clone()),
            settings,
            openings: self.openings.clone(),
            seed: self.match_seed(index),
            own,
            cost: self.match_cost(index),
            folder: self.match_folder(index),
        })
    }

    pub(super) fn play_match(
        &mut self,
        index: usize,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        let step = PlanStep::Match(index);
        let request = self.match_request(index)?;
        let key = self.key(step);
        let begun = Instant::now();
        monitor.resumable_begins();
        let record = self.executor.play(&request, &MatchMonitorAdapter(monitor));
        monitor.resumable_ended();
        let record = record.map_err(|source| ExperimentError::Step { step: self.plan.describe(step), source })?;
        let Some(record) = record else { return Err(ExperimentError::Interrupted) };
        self.keep("match", &key, begun.elapsed().as_secs_f64(), record)?;
        self.load_step(step)?;
        if let Some(result) = self.results.matches.last() {
            monitor.played(result);
        }
        Ok(())
    }

    /// Adds a match's record to the results if the match is finished, and returns whether it is.
    pub(super) fn load_match(&mut self, index: usize) -> bool {
        let key = self.match_key(index);
        let Some(stored) = self.store.get::<MatchRecord>("match", &key) else { return false };
        let PlannedMatch { run, reference, .. } = self.plan.matches[index];
        self.note_time(stored.recorded);
        self.note_seconds(&key, Stage::Matches, stored.seconds);
        let label = |run: usize| self.plan.runs[run].key.clone();
        let key = label(run);
        let reference = label(reference).set;
        self.results.matches.push(MatchResult { key, reference, record: stored.record });
        true
    }
}

/// Reports a match to the experiment's monitor.
pub(super) struct MatchMonitorAdapter<'a>(pub(super) &'a dyn ExperimentMonitor);

impl MatchMonitor for MatchMonitorAdapter<'_> {
    fn games(&self, progress: &MatchProgress) {
        self.0.games(progress);
    }

    fn stop_requested(&self) -> bool {
        self.0.stop_requested()
    }
}

/// The conditions of the experiment's matches; `None` without matches.
pub(super) fn match_setup(
    experiment: &Experiment,
    executor: &dyn Executor,
    openings: Option<&Path>,
) -> Result<Option<MatchSetup>, ExperimentError> {
    let Some(measure) = &experiment.matches else { return Ok(None) };
    let setup = executor.match_setup(openings, measure.options.opening_plies);
    let setup = setup.map_err(|error| match &experiment.openings {
        Some(written) => ExperimentError::Openings { at: experiment.location_of(written), message: error.to_string() },
        None => ExperimentError::Step { step: "the openings".into(), source: error },
    })?;
    if measure.terms.half_width.is_none() && measure.options.pairs() > setup.count {
        let message = format!(
            "[match] has {} pairs, but the book {} openings: an opening played again gives the same game again; ask \
             for fewer pairs, or make a larger book with `fsbench openings --count`",
            measure.options.pairs(),
            setup.count
        );
        return Err(match &experiment.openings {
            Some(written) => ExperimentError::Openings { at: experiment.location_of(written), message },
            None => ExperimentError::Step { step: "the openings".into(), source: message.into() },
        });
    }
    Ok(Some(setup))
}
