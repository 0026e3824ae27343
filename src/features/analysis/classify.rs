//! Classifies the features of one block as dead, live or unresolved.
//!
//! Random positions show most live features at once. The others are examined one by one. The result does not depend on
//! the number of threads.

use rayon::prelude::*;
use shakmaty::Position;

use crate::chess::{Board, Perspective};
use crate::features::reference;
use crate::features::spec::BlockSpec;

use super::bindings::BindingSearch;
use super::budget::{AnalysisSteps, Budget};
use super::dead::{Verdict, examine};
use super::positions::{random_game, random_placement, stream};
use super::witness::Witness;
use super::{AnalysisGoal, Status};

/// Random positions per batch.
const BATCH: u64 = 256;
const MAX_BATCHES: u64 = 400;
/// One batch in this many is a random game.
const GAME_INTERVAL: u64 = 8;
/// Drawing stops when a batch shows fewer new features per position than this.
const MIN_YIELD: f64 = 0.25;
/// Indices examined in parallel.
const CHUNK: usize = 1024;
/// Steps per index in each pass: few at first, so that hard indices do not use up the steps of the others.
const INDEX_BUDGETS: [AnalysisSteps; 2] = [1 << 14, 1 << 21];
/// The same for an analysis without limit.
const THOROUGH_BUDGETS: [AnalysisSteps; 5] = [1 << 14, 1 << 21, 1 << 26, 1 << 31, 1 << 40];

const NO_WITNESS: u32 = u32::MAX;

/// The status of every element of a block's product, with a witness for each live one. Elements that a selection drops
/// stay unresolved.
#[derive(Debug)]
pub struct BlockStatuses {
    pub statuses: Vec<Status>,
    /// By element: position in `witnesses`.
    witness_of: Vec<u32>,
    witnesses: Vec<Witness>,
}

impl BlockStatuses {
    pub fn witness(&self, element: u32) -> Option<&Witness> {
        self.witnesses.get(*self.witness_of.get(element as usize)? as usize)
    }

    fn new(size: u32) -> BlockStatuses {
        let size = size as usize;
        BlockStatuses {
            statuses: vec![Status::Unresolved; size],
            witness_of: vec![NO_WITNESS; size],
            witnesses: Vec::new(),
        }
    }

    /// Marks the features that are active in a position as live; returns how many were not live before.
    fn record(&mut self, block: &BlockSpec, witness: &Witness, active: &[u32]) -> usize {
        let position = self.witnesses.len() as u32;
        let mut new = 0;
        for element in active {
            let status = &mut self.statuses[*element as usize];
            if *status != Status::Live && block.index_of(*element).is_some() {
                *status = Status::Live;
                self.witness_of[*element as usize] = position;
                new += 1;
            }
        }
        if new > 0 {
            self.witnesses.push(witness.clone());
        }
        new
    }

    fn unresolved(&self, block: &BlockSpec) -> Vec<u32> {
        let mut unresolved = Vec::new();
        for (element, status) in (0..).zip(&self.statuses) {
            if *status == Status::Unresolved && block.index_of(element).is_some() {
                unresolved.push(element);
            }
        }
        unresolved
    }
}

/// Classifies every element within `limit` steps and the budget's time; returns the steps taken, too. `encode` writes a
/// board's active elements; they only decide which boards the reference encoder encodes. `progress` gets the number of
/// open elements.
pub fn classify(
    block: &BlockSpec,
    goal: AnalysisGoal,
    (budget, limit): (Budget, AnalysisSteps),
    encode: &(dyn Fn(&Witness, &mut Vec<u32>) + Sync),
    progress: &mut dyn FnMut(usize),
) -> (BlockStatuses, AnalysisSteps) {
    let search = BindingSearch::new(block, budget);
    let mut result = BlockStatuses::new(block.product.size);
    let mut steps = limit - try_random_positions(&search, limit / 4, encode, &mut result);
    let passes = if budget.limited() { &INDEX_BUDGETS[..] } else { &THOROUGH_BUDGETS };
    for index_budget in passes.iter().copied() {
        let unresolved = result.unresolved(block);
        let mut rest = &unresolved[..];
        while !rest.is_empty() && !search.expired() {
            progress(rest.len());
            // Even if every index of the chunk takes its full budget, the steps suffice.
            let affordable = steps / (2 * index_budget + search.decoding_steps());
            let (chunk, after) = rest.split_at(rest.len().min(CHUNK).min(affordable as usize));
            rest = after;
            if chunk.is_empty() {
                break;
            }
            let is_unresolved = |element: &u32| result.statuses[*element as usize] == Status::Unresolved;
            let chunk: Vec<u32> = chunk.iter().copied().filter(is_unresolved).collect();
            let count_bound_steps = search.count_bound_steps();
            let examined = chunk.par_iter().map(|element| examine(&search, *element, goal, index_budget));
            let verdicts: Vec<(Verdict, AnalysisSteps)> = examined.collect();
            steps = steps.saturating_sub(search.count_bound_steps() - count_bound_steps);
            for (element, (verdict, cost)) in chunk.into_iter().zip(verdicts) {
                steps = steps.saturating_sub(cost);
                match verdict {
                    Verdict::Dead => result.statuses[element as usize] = Status::Dead,
                    Verdict::Live(found) if result.statuses[element as usize] != Status::Live => {
                        result.record(block, &found.witness, &found.active);
                    }
                    Verdict::Live(_) | Verdict::Unresolved => {}
                }
            }
        }
    }
    (result, limit - steps)
}

/// Records the features of random positions while the batches show enough new ones. Returns the steps taken.
fn try_random_positions(
    search: &BindingSearch<'_>,
    limit: AnalysisSteps,
    encode: &(dyn Fn(&Witness, &mut Vec<u32>) + Sync),
    result: &mut BlockStatuses,
) -> AnalysisSteps {
    let mut steps = 0;
    let mut not_live = search.block.size() as usize;
    for batch in 0..MAX_BATCHES {
        let affordable = (limit - steps) / search.encoding_steps();
        if affordable == 0 || search.expired() {
            break;
        }
        let encoded = |witness: Witness| {
            let mut active = Vec::new();
            encode(&witness, &mut active);
            (witness, active)
        };
        let positions: Vec<(Witness, Vec<u32>)> = if batch % GAME_INTERVAL == GAME_INTERVAL - 1 {
            let boards: Vec<Board> =
                random_game(batch).iter().map(|position| position.board().clone()).take(affordable as usize).collect();
            boards.into_par_iter().filter(|_| !search.expired()).filter_map(Witness::of).map(encoded).collect()
        } else {
            let place = |number| random_placement(&search.pieces, &mut stream("strewn", batch * BATCH + number));
            let numbers = (0..BATCH.min(affordable)).into_par_iter().filter(|_| !search.expired());
            numbers.filter_map(place).map(encoded).collect()
        };
        let drawn = positions.len();
        let mut new = 0;
        for (witness, active) in positions {
            if active.iter().any(|element| result.statuses[*element as usize] != Status::Live) {
                let active = reference::active(search.block, witness.board(), Perspective::White);
                new += result.record(search.block, &witness, &active);
            }
        }
        not_live -= new;
        steps += BATCH.min(affordable) * search.encoding_steps();
        if not_live == 0 || (new as f64) < MIN_YIELD * drawn as f64 {
            break;
        }
    }
    steps
}
