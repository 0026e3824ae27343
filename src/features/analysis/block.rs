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

use super::construct::{self, Found};
use super::count;
use super::legal::Witness;
use super::positions::{random_game, stream, strewn};
use super::search::{Ended, Frame};
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
/// Steps of the search for one index, and for a whole block.
const INDEX_BUDGET: u64 = 1 << 21;
const BLOCK_BUDGET: u64 = 1 << 31;
/// What a try at a witness costs in steps.
const ATTEMPT_STEPS: u64 = 1 << 8;
/// Tries for one index, and for one of its bindings.
const ATTEMPTS: u32 = 512;
const ATTEMPTS_A_BINDING: u32 = 24;

const NO_WITNESS: u32 = u32::MAX;

/// The statuses of a block's indices, with a witness for each live one.
#[derive(Debug)]
pub struct Settled {
    pub statuses: Vec<Status>,
    /// By index, into `witnesses`.
    witness_of: Vec<u32>,
    witnesses: Vec<Witness>,
}

impl Settled {
    pub fn witness(&self, index: u32) -> Option<&Witness> {
        self.witnesses.get(*self.witness_of.get(index as usize)? as usize)
    }

    fn new(size: u32) -> Settled {
        let size = size as usize;
        Settled { statuses: vec![Status::Unresolved; size], witness_of: vec![NO_WITNESS; size], witnesses: Vec::new() }
    }

    /// Marks what is active in a position; the number of features not seen before.
    fn note(&mut self, witness: &Witness, active: &[u32]) -> usize {
        let number = self.witnesses.len() as u32;
        let mut new = 0;
        for index in active {
            let status = &mut self.statuses[*index as usize];
            if *status != Status::Live {
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

    fn pending(&self) -> Vec<u32> {
        let open = self.statuses.iter().zip(0..).filter(|(status, _)| **status == Status::Unresolved);
        open.map(|(_, index)| index).collect()
    }
}

/// Settles every index of a block; `screen` gives a board's active features quickly, and is never trusted alone.
/// `progress` is told how many indices are left.
pub fn settle(
    block: &BlockSpec,
    purpose: Purpose,
    screen: &(dyn Fn(&Witness, &mut Vec<u32>) + Sync),
    progress: &mut dyn FnMut(usize),
) -> Settled {
    let frame = Frame::new(block);
    let mut settled = Settled::new(block.product.size);
    draw(&frame, screen, &mut settled);
    let pending = settled.pending();
    let mut left = pending.len();
    let mut steps = BLOCK_BUDGET;
    for chunk in pending.chunks(CHUNK) {
        progress(left);
        left -= chunk.len();
        if steps == 0 {
            break;
        }
        let open: Vec<u32> =
            chunk.iter().copied().filter(|index| settled.statuses[*index as usize] == Status::Unresolved).collect();
        let outcomes: Vec<(Outcome, u64)> = open.par_iter().map(|index| examine(&frame, *index, purpose)).collect();
        for (index, (outcome, cost)) in open.into_iter().zip(outcomes) {
            steps = steps.saturating_sub(cost);
            match outcome {
                Outcome::Dead => settled.statuses[index as usize] = Status::Dead,
                Outcome::Live(found) if settled.statuses[index as usize] != Status::Live => {
                    settled.note(&found.witness, &found.active);
                }
                Outcome::Live(_) | Outcome::Unresolved => {}
            }
        }
    }
    settled
}

/// Random positions, batch by batch while they bring enough.
fn draw(frame: &Frame<'_>, screen: &(dyn Fn(&Witness, &mut Vec<u32>) + Sync), settled: &mut Settled) {
    let mut left = settled.statuses.len();
    for batch in 0..MAX_BATCHES {
        let seen = |witness: Witness| {
            let mut active = Vec::new();
            screen(&witness, &mut active);
            (witness, active)
        };
        let positions: Vec<(Witness, Vec<u32>)> = if batch % GAME_EVERY == GAME_EVERY - 1 {
            let boards: Vec<_> =
                random_game(batch).iter().map(|position| shakmaty::Position::board(position).clone()).collect();
            boards.into_par_iter().filter_map(Witness::of).map(seen).collect()
        } else {
            let strew = |number: u64| strewn(&frame.pieces, &mut stream("strewn", batch * BATCH + number));
            (0..BATCH).into_par_iter().filter_map(strew).map(seen).collect()
        };
        let (drawn, mut new) = (positions.len(), 0);
        for (witness, active) in positions {
            if active.iter().any(|index| settled.statuses[*index as usize] != Status::Live) {
                // Only the reference encoder's word counts.
                let active = reference::active(frame.block, witness.board(), Perspective::White);
                new += settled.note(&witness, &active);
            }
        }
        left -= new;
        if left == 0 || (new as f64) < WORTH * drawn as f64 {
            return;
        }
    }
}

enum Outcome {
    Dead,
    Live(Found),
    Unresolved,
}

/// One index: dead when no binding could yield it, live when a witness can be built. Gives the steps taken, too.
fn examine(frame: &Frame<'_>, index: u32, purpose: Purpose) -> (Outcome, u64) {
    let Some(goal) = frame.goal(index) else { return (Outcome::Dead, 1) };
    let mut rng = None;
    let mut attempts = 0;
    let mut reachable = false;
    let mut found = None;
    let mut budget = INDEX_BUDGET;
    let ended = frame.bindings(&goal, &mut budget, &mut |partial, entities| {
        let admitted = goal
            .counts
            .iter()
            .all(|(spec, value)| count::admits(&count::possible(frame, spec, partial, entities), *value));
        if !admitted {
            return ControlFlow::Continue(());
        }
        reachable = true;
        if purpose == Purpose::DeadOnly {
            return ControlFlow::Break(());
        }
        let rng = rng.get_or_insert_with(|| stream("witness", index.into()));
        for number in 0..ATTEMPTS_A_BINDING {
            attempts += 1;
            if let Some(success) = construct::attempt(frame, &goal, index, partial, number, rng) {
                found = Some(success);
                return ControlFlow::Break(());
            }
            if attempts >= ATTEMPTS {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    let cost = INDEX_BUDGET - budget + u64::from(attempts) * ATTEMPT_STEPS;
    let outcome = match (found, ended) {
        (Some(found), _) => Outcome::Live(found),
        (None, Ended::Exhausted) if !reachable => Outcome::Dead,
        (None, _) => Outcome::Unresolved,
    };
    (outcome, cost)
}
