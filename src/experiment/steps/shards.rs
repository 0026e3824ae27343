//! Matches that several processes play: steps for shards of their pairs. The match itself takes the shards' games over
//! and counts them; the result equals a match played by one process.
//!
//! A match to a wanted interval is judged between batches of shards, each twice as large as the one before: a shard
//! that the pairs before it make superfluous counts as done.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Value, json};

use super::{KeptStep, Match, MatchCost, PlanStep, Step, StepKind, StepWork};
use crate::experiment::estimate::Rates;
use crate::experiment::executor::StepError;
use crate::experiment::match_settings::MatchMeasure;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::{ExperimentMonitor, Stage};
use crate::play::pairs_to_width;
use crate::record::{CostRatio, ShardRecord};
use crate::units::SortedMap;

/// Some pairs of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedShard {
    /// Index into [`Plan::matches`].
    pub of: usize,
    /// Numbers of its pairs, from 0.
    pub pairs: Range<u64>,
    /// Shards of a batch begin once the shards of the batch before are done.
    pub batch: u32,
}

/// The known facts about matches in shards.
#[derive(Default)]
pub struct PlayedShards {
    /// Half points of each pair, by index into [`Plan::shards`].
    half_points: SortedMap<usize, Vec<u8>>,
    /// Costs of a node that steps have measured, by index into [`Plan::matches`].
    pub(super) costs: SortedMap<usize, CostRatio>,
    /// Matches that need no more shards: indices into [`Plan::matches`].
    settled: BTreeSet<usize>,
}

/// The index is into [`Plan::shards`].
#[derive(Clone, Copy, Debug)]
pub struct MatchShard(pub usize);

impl Step for MatchShard {
    fn kind(&self) -> StepKind {
        StepKind { name: "match shard", version: 1, stage: Stage::Matches, is_resumable: true }
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        let PlannedShard { of, pairs, .. } = &plan.shards[self.0];
        format!("pairs {} to {} of the {}", pairs.start + 1, pairs.end, Match(*of).name(plan))
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let PlannedShard { of, pairs, .. } = &runner.plan.shards[self.0];
        json!([Match(*of).of_games(runner), pairs.start, pairs.end])
    }

    fn needs(&self, plan: &Plan) -> Vec<PlanStep> {
        let of = plan.shards[self.0].of;
        let mut needs = Match(of).needs(plan);
        if plan.matches[of].measures_cost() {
            needs.push(MatchCost(of).step());
        }
        needs
    }

    fn after(&self, plan: &Plan) -> Vec<PlanStep> {
        let PlannedShard { of, batch, .. } = plan.shards[self.0];
        let before = plan.shards_of(of).filter(|(_, other)| other.batch + 1 == batch);
        before.map(|(shard, _)| MatchShard(shard).step()).collect()
    }

    fn run_of(&self, plan: &Plan) -> usize {
        plan.matches[plan.shards[self.0].of].run
    }

    fn estimate(&self, plan: &Plan, rates: &Rates) -> f64 {
        let PlannedShard { of, pairs, .. } = &plan.shards[self.0];
        let planned = plan.shards_of(*of).map(|(_, shard)| shard.pairs.end).max().unwrap_or(1);
        rates.game * (pairs.end - pairs.start) as f64 / planned as f64
    }

    fn is_superfluous(&self, runner: &mut Runner<'_>) -> bool {
        runner.is_settled(runner.plan.shards[self.0].of)
    }
}

impl StepWork for MatchShard {
    type Record = ShardRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<ShardRecord>, StepError> {
        let PlannedShard { of, pairs, .. } = runner.plan.shards[self.0].clone();
        let request = Match(of).request(runner)?;
        runner.executor.play_shard(&request, pairs, &*monitor)
    }

    fn show(self, record: ShardRecord, runner: &mut Runner<'_>) {
        runner.played.half_points.insert(self.0, record.half_points);
    }
}

impl Plan {
    /// Puts the shards of every match before it, if the settings ask for shards. `openings`: their number.
    pub(in crate::experiment) fn divide_matches(&mut self, measure: &MatchMeasure, openings: u64) {
        let Some(size) = measure.terms.shard_pairs else { return };
        let pairs = measure.options.pairs().min(openings);
        let mut steps: Vec<PlanStep> = Vec::with_capacity(self.steps.len());
        for step in std::mem::take(&mut self.steps) {
            let (kind, of) = step.id();
            if kind == "match" {
                if self.matches[of].measures_cost() {
                    steps.push(MatchCost(of).step());
                }
                for (first, number) in (0..pairs).step_by(size as usize).zip(1u32..) {
                    steps.push(MatchShard(self.shards.len()).step());
                    let batch = measure.terms.half_width.map_or(0, |_| number.ilog2());
                    self.shards.push(PlannedShard { of, pairs: first..pairs.min(first + size), batch });
                }
            }
            steps.push(step);
        }
        self.steps = steps;
    }

    /// The shards of a match, in the order of their pairs.
    pub(in crate::experiment) fn shards_of(&self, of: usize) -> impl Iterator<Item = (usize, &PlannedShard)> {
        self.shards.iter().enumerate().filter(move |(_, shard)| shard.of == of)
    }
}

impl Runner<'_> {
    /// Whether a match needs no more shards: it is done, or the pairs that are played without a gap suffice.
    pub(super) fn is_settled(&mut self, of: usize) -> bool {
        if self.played.settled.contains(&of) {
            return true;
        }
        let settled = Match(of).is_stored(self) || self.is_wide_enough(of);
        if settled {
            self.played.settled.insert(of);
        }
        settled
    }

    fn is_wide_enough(&self, of: usize) -> bool {
        let Some(measure) = &self.experiment.matches else { return false };
        let Some(half_width) = measure.terms.half_width else { return false };
        let mut played = Vec::new();
        let mut most = 0;
        let mut has_gap = false;
        for (index, shard) in self.plan.shards_of(of) {
            most = shard.pairs.end;
            match self.played.half_points.get(&index) {
                Some(points) if !has_gap => played.extend_from_slice(points),
                _ => has_gap = true,
            }
        }
        pairs_to_width(&played, half_width, most).is_some()
    }
}
