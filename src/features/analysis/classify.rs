//! One block's features, each dead, live or unresolved.
//!
//! Random positions settle most of a block at once; the rest is taken index by index: every binding that could yield
//! it is followed, and where there is one, a witness is built from it. The answer depends on the block alone, not on
//! the number of threads.

use std::ops::ControlFlow;

use rayon::prelude::*;

use crate::chess::Perspective;
use crate::features::reference;
use crate::features::spec::BlockSpec;

use super::bindings::{BindingSearch, SearchEnd};
use super::budget::{Budget, Steps};
use super::counts::{self, CountEnumerator};
use super::legal::Witness;
use super::positions::{random_game, stream, strewn};
use super::witness::{self, Found};
use super::{Purpose, Status};

/// Random positions drawn together.
const BATCH: u64 = 256;
const MAX_BATCHES: u64 = 400;
/// Every so many batches is a random game.
const GAME_EVERY: u64 = 8;
/// New features a position below which drawing more is not worth it.
const WORTH: f64 = 0.25;
/// Indices examined together.
const CHUNK: usize = 1024;
/// What one index may take, to be searched and to be shown: little at first, so that hard ones do not spend what the
/// others need.
const INDEX_BUDGETS: [Steps; 2] = [1 << 14, 1 << 21];
/// The same without limit: each further pass takes longer, until nothing is left.
const THOROUGH_BUDGETS: [Steps; 5] = [1 << 14, 1 << 21, 1 << 26, 1 << 31, 1 << 40];
/// Tries at a witness for one index, and for one of its bindings.
const ATTEMPTS: u32 = 512;
const ATTEMPTS_A_BINDING: u32 = 24;

const NO_WITNESS: u32 = u32::MAX;

/// The statuses of the elements of a block's product, with a witness for each live one. What a selection leaves out
/// stays unresolved.
#[derive(Debug)]
pub struct BlockStatuses {
    pub statuses: Vec<Status>,
    /// By index, into `witnesses`.
    witness_of: Vec<u32>,
    witnesses: Vec<Witness>,
}

impl BlockStatuses {
    pub fn witness(&self, index: u32) -> Option<&Witness> {
        self.witnesses.get(*self.witness_of.get(index as usize)? as usize)
    }

    fn new(size: u32) -> BlockStatuses {
        let size = size as usize;
        BlockStatuses {
            statuses: vec![Status::Unresolved; size],
            witness_of: vec![NO_WITNESS; size],
            witnesses: Vec::new(),
        }
    }

    /// Marks what is active in a position; the number of the block's features not seen before.
    fn note(&mut self, block: &BlockSpec, witness: &Witness, active: &[u32]) -> usize {
        let number = self.witnesses.len() as u32;
        let mut new = 0;
        for index in active {
            let status = &mut self.statuses[*index as usize];
            if *status != Status::Live && block.index_of(*index).is_some() {
                *status = Status::Live;
                self.witness_of[*index as usize] = number;
                new += 1;
            }
        }
        if new > 0 {
            self.witnesses.push(witness.clone());
        }
        new
    }

    fn pending(&self, block: &BlockSpec) -> Vec<u32> {
        let open = self.statuses.iter().zip(0..).filter(|(status, _)| **status == Status::Unresolved);
        open.map(|(_, index)| index).filter(|index| block.index_of(*index).is_some()).collect()
    }
}

/// Settles every index of a block within so many steps and the budget's time; `screen` gives a board's active elements
/// quickly, and is never trusted alone. What is open at the end stays unresolved. `progress` is told how many indices
/// are left. Gives the steps taken, too.
pub fn settle(
    block: &BlockSpec,
    purpose: Purpose,
    (budget, limit): (Budget, Steps),
    screen: &(dyn Fn(&Witness, &mut Vec<u32>) + Sync),
    progress: &mut dyn FnMut(usize),
) -> (BlockStatuses, Steps) {
    let frame = BindingSearch::new(block, budget);
    let mut settled = BlockStatuses::new(block.product.size);
    let mut steps = limit - draw(&frame, limit / 4, screen, &mut settled);
    let passes = if budget.limited() { &INDEX_BUDGETS[..] } else { &THOROUGH_BUDGETS };
    for index_budget in passes.iter().copied() {
        let pending = settled.pending(block);
        let mut open = &pending[..];
        while !open.is_empty() && !frame.expired() {
            progress(open.len());
            // So few that not even the hardest together take more than there is.
            let together = steps / (2 * index_budget + frame.goal_steps());
            let (chunk, others) = open.split_at(open.len().min(CHUNK).min(together as usize));
            open = others;
            if chunk.is_empty() {
                break;
            }
            let unresolved = |index: &u32| settled.statuses[*index as usize] == Status::Unresolved;
            let open: Vec<u32> = chunk.iter().copied().filter(unresolved).collect();
            let examined = open.par_iter().map(|index| examine(&frame, *index, purpose, index_budget));
            let looked = frame.outlook_steps();
            let outcomes: Vec<(Outcome, Steps)> = examined.collect();
            steps = steps.saturating_sub(frame.outlook_steps() - looked);
            for (index, (outcome, cost)) in open.into_iter().zip(outcomes) {
                steps = steps.saturating_sub(cost);
                match outcome {
                    Outcome::Dead => settled.statuses[index as usize] = Status::Dead,
                    Outcome::Live(found) if settled.statuses[index as usize] != Status::Live => {
                        settled.note(block, &found.witness, &found.active);
                    }
                    Outcome::Live(_) | Outcome::Unresolved => {}
                }
            }
        }
    }
    (settled, limit - steps)
}

/// Random positions, batch by batch while they bring enough. Gives the steps taken.
fn draw(
    frame: &BindingSearch<'_>,
    budget: Steps,
    screen: &(dyn Fn(&Witness, &mut Vec<u32>) + Sync),
    settled: &mut BlockStatuses,
) -> Steps {
    let mut steps = 0;
    let mut left = frame.block.size() as usize;
    for batch in 0..MAX_BATCHES {
        let affordable = (budget - steps) / frame.encoding_steps();
        if affordable == 0 || frame.expired() {
            break;
        }
        let seen = |witness: Witness| {
            let mut active = Vec::new();
            screen(&witness, &mut active);
            (witness, active)
        };
        let positions: Vec<(Witness, Vec<u32>)> = if batch % GAME_EVERY == GAME_EVERY - 1 {
            let boards: Vec<_> =
                random_game(batch).iter().map(|position| shakmaty::Position::board(position).clone()).collect();
            let boards: Vec<_> = boards.into_iter().take(affordable as usize).collect();
            boards.into_par_iter().filter(|_| !frame.expired()).filter_map(Witness::of).map(seen).collect()
        } else {
            let strew = |number: u64| strewn(&frame.pieces, &mut stream("strewn", batch * BATCH + number));
            let numbers = (0..BATCH.min(affordable)).into_par_iter().filter(|_| !frame.expired());
            numbers.filter_map(strew).map(seen).collect()
        };
        let (drawn, mut new) = (positions.len(), 0);
        for (witness, active) in positions {
            if active.iter().any(|index| settled.statuses[*index as usize] != Status::Live) {
                // Only the reference encoder's word counts.
                let active = reference::active(frame.block, witness.board(), Perspective::White);
                new += settled.note(frame.block, &witness, &active);
            }
        }
        left -= new;
        steps += BATCH.min(affordable) * frame.encoding_steps();
        if left == 0 || (new as f64) < WORTH * drawn as f64 {
            break;
        }
    }
    steps
}

enum Outcome {
    Dead,
    Live(Found),
    Unresolved,
}

/// One index: dead when no binding could yield it, live when a witness can be built. Gives the steps taken, too.
fn examine(frame: &BindingSearch<'_>, index: u32, purpose: Purpose, budget: Steps) -> (Outcome, Steps) {
    if frame.expired() {
        return (Outcome::Unresolved, 0);
    }
    let (goal, reading) = frame.weighed_goal(index);
    let Some(goal) = goal else { return (Outcome::Dead, reading) };
    let mut rng = None;
    let mut attempts = 0;
    let mut reachable = false;
    let mut found = None;
    let (mut searching, mut showing) = (budget, budget);
    let ended = frame.bindings(&goal, &mut searching, &mut |partial, entities| {
        let mut values = |spec| CountEnumerator::possible(spec, &frame.pieces, partial, entities, &mut showing);
        let counted = goal.counts.iter().all(|(spec, value)| counts::admits(&values(spec), *value));
        let mut guarded = |guard| counts::may_hold(guard, &frame.pieces, partial, entities, &mut showing);
        if !(counted && frame.block.guards.iter().all(&mut guarded)) {
            return if showing > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        }
        reachable = true;
        if showing == 0 {
            return ControlFlow::Break(());
        }
        if purpose == Purpose::DeadOnly {
            return ControlFlow::Break(());
        }
        let rng = rng.get_or_insert_with(|| stream("witness", index.into()));
        for number in 0..ATTEMPTS_A_BINDING {
            if attempts >= ATTEMPTS || showing == 0 {
                return ControlFlow::Break(());
            }
            attempts += 1;
            found = witness::attempt(frame, &goal, index, partial, number, rng, &mut showing);
            if found.is_some() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    let outcome = match (found, ended) {
        (Some(found), _) => Outcome::Live(found),
        (None, SearchEnd::Exhausted) if !reachable => Outcome::Dead,
        (None, _) => Outcome::Unresolved,
    };
    (outcome, 2 * budget - searching - showing + reading)
}
