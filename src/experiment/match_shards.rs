//! Matches that several processes play: steps for shards of their pairs. The match itself takes the shards' games over
//! and counts them; the result equals a match played by one process.
//!
//! A match to a wanted interval is judged between batches of shards, each twice as large as the one before: a shard
//! that the pairs before it make superfluous counts as done.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

use serde_json::json;

use super::ExperimentError;
use super::match_settings::MatchMeasure;
use super::match_steps::MatchMonitorAdapter;
use super::plan::{Plan, PlanStep, PlannedMatch};
use super::result_store::ResultKey;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, Stage};
use crate::play::pairs_to_width;
use crate::record::{CostRatio, MatchRecord, ShardRecord};
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

impl Plan {
    /// Puts the shards of every match before it, if the settings ask for shards. `openings`: their number.
    pub(super) fn divide_matches(&mut self, measure: &MatchMeasure, openings: u64) {
        let Some(size) = measure.terms.shard_pairs else { return };
        let pairs = measure.options.pairs().min(openings);
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in std::mem::take(&mut self.steps) {
            if let PlanStep::Match(of) = step {
                if self.matches[of].measures_cost() {
                    steps.push(PlanStep::MatchCost(of));
                }
                for (first, number) in (0..pairs).step_by(size as usize).zip(1u32..) {
                    steps.push(PlanStep::MatchShard(self.shards.len()));
                    let batch = measure.terms.half_width.map_or(0, |_| number.ilog2());
                    self.shards.push(PlannedShard { of, pairs: first..pairs.min(first + size), batch });
                }
            }
            steps.push(step);
        }
        self.steps = steps;
    }

    /// The shards of a match, in the order of their pairs.
    pub(super) fn shards_of(&self, of: usize) -> impl Iterator<Item = (usize, &PlannedShard)> {
        self.shards.iter().enumerate().filter(move |(_, shard)| shard.of == of)
    }
}

/// The known facts about matches in shards.
#[derive(Default)]
pub(super) struct PlayedShards {
    /// Half points of each pair, by index into [`Plan::shards`].
    half_points: SortedMap<usize, Vec<u8>>,
    /// Matches that need no more shards: indices into [`Plan::matches`].
    settled: BTreeSet<usize>,
    /// Hashes of trained networks, by run.
    networks: RefCell<SortedMap<usize, String>>,
}

impl PlayedShards {
    /// The hash of a run's network, found once.
    pub(super) fn network_hash(&self, run: usize, find: impl FnOnce() -> Option<String>) -> Option<String> {
        if let Some(known) = self.networks.borrow().get(&run) {
            return Some(known.clone());
        }
        let found = find()?;
        self.networks.borrow_mut().insert(run, found.clone());
        Some(found)
    }

    /// After a training or a removal of networks.
    pub(super) fn forget_networks(&mut self) {
        *self = PlayedShards::default();
    }
}

impl Runner<'_> {
    pub(super) fn match_cost_key(&self, index: usize) -> ResultKey {
        ResultKey::of("match cost", &self.game_determinants(index))
    }

    /// The cost of a node that was measured before the match's shards.
    pub(super) fn match_cost(&self, index: usize) -> Option<CostRatio> {
        let is_measured = self.plan.matches[index].measures_cost() && !self.plan.shards.is_empty();
        is_measured.then(|| self.store.get("match cost", &self.match_cost_key(index)))?.map(|stored| stored.record)
    }

    pub(super) fn shard_key(&self, index: usize) -> ResultKey {
        let PlannedShard { of, pairs, .. } = &self.plan.shards[index];
        // The cost of a node decides on the player's nodes.
        let ratio = self.match_cost(*of).map(|cost| cost.ratio);
        ResultKey::of("match shard", &json!([self.game_determinants(*of), ratio, pairs.start, pairs.end]))
    }

    pub(super) fn load_match_cost(&mut self, index: usize) -> bool {
        let key = self.match_cost_key(index);
        match self.store.get::<CostRatio>("match cost", &key) {
            Some(stored) => {
                self.note_seconds(&key, Stage::Matches, stored.seconds);
                true
            }
            None => self.is_settled(index),
        }
    }

    /// Whether a shard is played, or its match needs it no more.
    pub(super) fn load_shard(&mut self, index: usize) -> bool {
        if self.played.half_points.contains_key(&index) {
            return true;
        }
        let key = self.shard_key(index);
        if let Some(stored) = self.store.get::<ShardRecord>("match shard", &key) {
            self.note_seconds(&key, Stage::Matches, stored.seconds);
            self.played.half_points.insert(index, stored.record.half_points);
            return true;
        }
        self.is_settled(self.plan.shards[index].of)
    }

    /// Whether a match needs no more shards: it is done, or the pairs that are played without a gap suffice.
    fn is_settled(&mut self, of: usize) -> bool {
        if self.played.settled.contains(&of) {
            return true;
        }
        let is_done = self.store.get::<MatchRecord>("match", &self.match_key(of)).is_some();
        let settled = is_done || self.is_wide_enough(of);
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

    /// The steps that a shard needs beside the trainings.
    pub(super) fn shard_needs(&self, index: usize) -> Vec<PlanStep> {
        let PlannedShard { of, batch, .. } = self.plan.shards[index];
        let before = self.plan.shards_of(of).filter(|(_, other)| other.batch + 1 == batch);
        let cost = self.plan.matches[of].measures_cost().then_some(PlanStep::MatchCost(of));
        cost.into_iter().chain(before.map(|(index, _)| PlanStep::MatchShard(index))).collect()
    }

    pub(super) fn measure_match_cost(
        &mut self,
        index: usize,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        let step = PlanStep::MatchCost(index);
        let request = self.match_request(index)?;
        let begun = Instant::now();
        let cost = self.executor.match_cost(&request, &MatchMonitorAdapter(monitor));
        let cost = cost.map_err(|source| ExperimentError::Step { step: self.plan.describe(step), source })?;
        let Some(cost) = cost else { return Err(ExperimentError::Interrupted) };
        self.keep("match cost", &self.match_cost_key(index), begun.elapsed().as_secs_f64(), cost)?;
        self.load_step(step)?;
        Ok(())
    }

    pub(super) fn play_shard(
        &mut self,
        index: usize,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        let step = PlanStep::MatchShard(index);
        let PlannedShard { of, pairs, .. } = self.plan.shards[index].clone();
        let request = self.match_request(of)?;
        let begun = Instant::now();
        monitor.resumable_begins();
        let record = self.executor.play_shard(&request, pairs, &MatchMonitorAdapter(monitor));
        monitor.resumable_ended();
        let record = record.map_err(|source| ExperimentError::Step { step: self.plan.describe(step), source })?;
        let Some(record) = record else { return Err(ExperimentError::Interrupted) };
        self.keep("match shard", &self.shard_key(index), begun.elapsed().as_secs_f64(), record)?;
        self.load_step(step)?;
        Ok(())
    }

    /// Both networks of a match, by their trainings.
    pub(super) fn match_trainings(&self, index: usize) -> [PlanStep; 2] {
        let PlannedMatch { run, reference, .. } = self.plan.matches[index];
        [run, reference].map(PlanStep::Train)
    }
}
