//! Matches: what their games depend on, and how they are played, whole or in shards.

use std::path::Path;

use serde_json::{Value, json};

use super::{MatchShard, PlanStep, Step, StepKind, StepWork, Train};
use crate::experiment::ExperimentError;
use crate::experiment::estimate::Rates;
use crate::experiment::executor::{Executor, MatchRequest, MatchSetup, StepError};
use crate::experiment::plan::{Plan, PlannedMatch};
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::{ExperimentMonitor, FinishedWhen, Stage};
use crate::experiment::spec::Experiment;
use crate::experiment::store::ResultKey;
use crate::record::{CostRatio, MatchKind, MatchRecord, MatchResult};
use crate::units::Seed;

/// The index is into [`Plan::matches`].
#[derive(Clone, Copy, Debug)]
pub struct Match(pub usize);

/// The cost of a node, before a match at equal cost that is played in shards. The index is into [`Plan::matches`].
#[derive(Clone, Copy, Debug)]
pub struct MatchCost(pub usize);

impl Step for Match {
    fn kind(&self) -> StepKind {
        StepKind { name: "match", version: 1, stage: Stage::Matches, is_resumable: true }
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        let PlannedMatch { run, reference, kind, .. } = plan.matches[self.0];
        let run = &plan.runs[run].key;
        let reference = &plan.runs[reference].key.set;
        format!("match of {run} against {reference} at {}", kind.name())
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let measure = runner.experiment.matches.as_ref();
        let length = measure.map(|measure| json!([measure.options.pairs(), measure.terms.half_width]));
        json!([self.of_games(runner), length])
    }

    fn needs(&self, plan: &Plan) -> Vec<PlanStep> {
        let PlannedMatch { run, reference, .. } = plan.matches[self.0];
        vec![Train(run).step(), Train(reference).step()]
    }

    /// The result is the same however the match is divided.
    fn after(&self, plan: &Plan) -> Vec<PlanStep> {
        plan.shards_of(self.0).map(|(shard, _)| MatchShard(shard).step()).collect()
    }

    fn run_of(&self, plan: &Plan) -> usize {
        plan.matches[self.0].run
    }

    /// In shards, its cost is measured before.
    fn runs_alone(&self, plan: &Plan) -> bool {
        plan.matches[self.0].measures_cost() && plan.shards_of(self.0).next().is_none()
    }

    fn estimate(&self, plan: &Plan, rates: &Rates) -> f64 {
        // Its shards play it.
        if plan.shards_of(self.0).next().is_some() { 0.0 } else { rates.game }
    }

    /// A longer match continues the journal of a shorter one, so that one process at a time plays either.
    fn lock_key(&self, runner: &Runner<'_>) -> Option<ResultKey> {
        Some(self.games_key(runner))
    }

    fn tell(
        &self,
        runner: &Runner<'_>,
        when: FinishedWhen,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        if let (FinishedWhen::Now, Some(result)) = (when, runner.results.matches.last()) {
            monitor.played(result);
        }
        Ok(())
    }
}

impl StepWork for Match {
    type Record = MatchRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<MatchRecord>, StepError> {
        let request = self.request(runner)?;
        runner.executor.play(&request, &*monitor)
    }

    fn show(self, record: MatchRecord, runner: &mut Runner<'_>) {
        let PlannedMatch { run, reference, .. } = runner.plan.matches[self.0];
        let key = runner.plan.runs[run].key.clone();
        let reference = runner.plan.runs[reference].key.set.clone();
        runner.results.matches.push(MatchResult { key, reference, record });
    }
}

impl Step for MatchCost {
    fn kind(&self) -> StepKind {
        StepKind { name: "match cost", version: 1, stage: Stage::Matches, is_resumable: false }
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("cost of a node for the {}", Match(self.0).name(plan))
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        Match(self.0).of_games(runner)
    }

    fn needs(&self, plan: &Plan) -> Vec<PlanStep> {
        Match(self.0).needs(plan)
    }

    fn run_of(&self, plan: &Plan) -> usize {
        plan.matches[self.0].run
    }

    fn runs_alone(&self, _plan: &Plan) -> bool {
        true
    }

    fn threads(&self, _plan: &Plan) -> usize {
        1
    }

    fn is_superfluous(&self, runner: &mut Runner<'_>) -> bool {
        runner.is_settled(self.0)
    }
}

impl StepWork for MatchCost {
    type Record = CostRatio;

    fn run(self, runner: &mut Runner<'_>, monitor: &mut dyn ExperimentMonitor) -> Result<Option<CostRatio>, StepError> {
        let request = Match(self.0).request(runner)?;
        runner.executor.match_cost(&request, &*monitor)
    }

    fn show(self, record: CostRatio, runner: &mut Runner<'_>) {
        runner.played.costs.insert(self.0, record);
    }

    /// The cost decides on the player's nodes.
    fn made(self, record: &CostRatio, _runner: &Runner<'_>) -> Option<String> {
        Some(record.ratio.to_string())
    }
}

impl Match {
    /// What the games depend on. Their number is left out: a longer match continues a shorter one.
    pub(super) fn of_games(self, runner: &Runner<'_>) -> Value {
        let planned = runner.plan.matches[self.0];
        let PlannedMatch { run, reference, kind, own } = planned;
        let Some(measure) = &runner.experiment.matches else { return Value::Null };
        let terms = &measure.terms;
        let cost = terms.cost_weight.map_or(json!(terms.equal_cost), |weight| json!([terms.equal_cost, weight]));
        let limit = match kind {
            MatchKind::EqualNodes => json!(terms.nodes),
            MatchKind::EqualCost if planned.measures_cost() => {
                json!([cost, runner.timed_on(&[run, reference]), own])
            }
            MatchKind::EqualCost => json!([cost, own]),
        };
        let setup = runner.match_setup.as_ref().map(|setup| json!([setup.openings, setup.search]));
        let options = &measure.options;
        let rules = json!([options.adjudication, options.hash, options.opening_plies, self.seed(runner)]);
        json!([kind, limit, setup, rules])
    }

    /// Game pairs: of the openings that a search keeps, its last comparison plays as many as there are.
    fn pairs(self, runner: &Runner<'_>) -> u64 {
        let pairs = runner.experiment.matches.as_ref().map_or(0, |measure| measure.options.pairs());
        let kept = runner.match_setup.as_ref().filter(|_| runner.experiment.book_part.is_some_and(|part| part.is_kept));
        kept.map_or(pairs, |setup| pairs.min(setup.count))
    }

    /// Names the folder of the games, and its lock.
    fn games_key(self, runner: &Runner<'_>) -> ResultKey {
        let trainings = self.needs(&runner.plan);
        let keys: Vec<ResultKey> = trainings.iter().map(|training| runner.key(training)).collect();
        ResultKey::of(&json!(["games", self.kind().version, self.of_games(runner), keys, runner.made_by(&trainings)]))
    }

    /// Every training seed has the openings in another order, so that its games are independent of the others'.
    fn seed(self, runner: &Runner<'_>) -> Seed {
        let base = runner.experiment.matches.as_ref().map_or(0, |measure| measure.options.seed.0);
        Seed(base.wrapping_add(runner.plan.runs[runner.plan.matches[self.0].run].key.seed.0))
    }

    pub(super) fn request<'a>(self, runner: &Runner<'a>) -> Result<MatchRequest<'a>, ExperimentError> {
        let PlannedMatch { run, reference, kind, own } = runner.plan.matches[self.0];
        let experiment: &'a Experiment = runner.experiment;
        Ok(MatchRequest {
            kind,
            networks: [runner.network(run)?, runner.network(reference)?],
            names: [run, reference].map(|run| runner.plan.runs[run].key.set.clone()),
            settings: experiment.matches.as_ref().expect("a match is planned by [match] alone"),
            openings: runner.openings.clone(),
            pairs: self.pairs(runner),
            book_part: experiment.book_part,
            sprt: None,
            seed: self.seed(runner),
            own,
            cost: runner.played.costs.get(&self.0).cloned(),
            // The journal and the games stand in the run's folder, with which they are removed.
            folder: runner.run_folder(run).join("matches").join(self.games_key(runner).to_string()),
        })
    }
}

/// The conditions of the experiment's matches; `None` without matches.
pub fn match_setup(
    experiment: &Experiment,
    executor: &dyn Executor,
    openings: Option<&Path>,
) -> Result<Option<MatchSetup>, ExperimentError> {
    let Some(measure) = &experiment.matches else { return Ok(None) };
    let part = experiment.book_part;
    let setup = executor.match_setup(openings, measure.options.opening_plies, part);
    let setup = setup.map_err(|error| match &experiment.openings {
        Some(written) => ExperimentError::Openings { at: experiment.location_of(written), message: error.to_string() },
        None => ExperimentError::Step { step: "the openings".into(), source: error },
    })?;
    // Of the openings that a search keeps, its last comparison plays as many as there are.
    let takes_all = measure.terms.half_width.is_some() || part.is_some_and(|part| part.is_kept);
    if !takes_all && measure.options.pairs() > setup.count {
        let others = if part.is_some() { " that [search] final does not keep" } else { "" };
        let message = format!(
            "[match] has {} pairs, but the book {} openings{others}: an opening played again gives the same game again; ask \
             for fewer pairs, or make a larger book with `fsbench openings --count`",
            measure.options.pairs(),
            setup.count
        );
        return Err(match &experiment.openings {
            Some(written) => ExperimentError::Openings { at: experiment.location_of(written), message },
            None => ExperimentError::Spec { at: experiment.location_of_key("match.pairs"), message },
        });
    }
    Ok(Some(setup))
}
