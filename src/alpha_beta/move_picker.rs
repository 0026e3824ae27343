//! Move ordering: the table's move, captures that do not lose material, killers, the counter move, quiet moves by
//! history, losing captures.
//!
//! Moves are scored as late as possible: most nodes end by a cutoff after one or two of them.

use shakmaty::{Chess, Move, Position, Role};

use crate::chess::PackedMove;

use super::history::{Histories, PieceTo};
use super::see::{see_at_least, see_value};

const KILLER: i32 = 1 << 27;
const COUNTER: i32 = 1 << 26;
/// A capture that wins less is a losing one, in centipawns.
const LEAST_GAIN: i32 = -20;

#[derive(Copy, Clone)]
struct ScoredMove {
    mv: Move,
    score: i32,
}

/// The moves of the nodes from the root to the current one, each node's after its parent's.
#[derive(Default)]
pub(super) struct MoveStack(Vec<ScoredMove>);

/// Picks the moves of one node in order. They are on the stack until [`MovePicker::finish`].
pub(super) struct MovePicker {
    hints: OrderingHints,
    /// Whether losing captures come last.
    tests_exchanges: bool,
    stage: Stage,
    /// Where the node's moves begin on the stack. Losing captures are collected there, over moves already picked.
    start: usize,
    losing_end: usize,
    /// The next move to pick; then come the stage's other moves.
    next: usize,
    noisy_end: usize,
    end: usize,
}

#[derive(Copy, Clone)]
enum Stage {
    Table,
    ScoreNoisy,
    Noisy,
    ScoreQuiet,
    Quiet,
    Losing,
}

/// Knowledge by which a position's moves are ordered.
#[derive(Default)]
pub(super) struct OrderingHints {
    pub(super) table_move: PackedMove,
    pub(super) killers: [PackedMove; 2],
    /// The moves [`super::history::CONTINUATIONS`] plies before.
    pub(super) earlier: [Option<PieceTo>; 3],
}

/// A picked move.
pub(super) struct Picked {
    pub(super) mv: Move,
    /// Whether it is a losing capture.
    pub(super) is_losing: bool,
    /// The history score of a quiet move, if it was ordered by it.
    pub(super) history: Option<i32>,
}

impl MoveStack {
    /// Swaps the best move of a range, the first of equals, to its start.
    fn select(&mut self, start: usize, end: usize) -> ScoredMove {
        let moves = &mut self.0[start..end];
        // One comparison without a branch per move: which is best cannot be predicted.
        let rank = |at: usize, score: i32| i64::from(score) << 16 | (0xffff - at as i64);
        let best = moves.iter().enumerate().map(|(at, scored)| rank(at, scored.score)).max().unwrap_or(0xffff);
        moves.swap(0, 0xffff - (best & 0xffff) as usize);
        moves[0]
    }
}

impl MovePicker {
    /// Orders captures and quiet moves.
    pub(super) fn all_moves(stack: &mut MoveStack, moves: &[Move], hints: OrderingHints) -> MovePicker {
        MovePicker::new(stack, moves, hints, true)
    }

    /// Orders captures and promotions to a queen; which of them lose material is not tested.
    pub(super) fn captures(stack: &mut MoveStack, moves: &[Move], table_move: PackedMove) -> MovePicker {
        MovePicker::new(stack, moves, OrderingHints { table_move, ..OrderingHints::default() }, false)
    }

    fn new(stack: &mut MoveStack, moves: &[Move], hints: OrderingHints, tests_exchanges: bool) -> MovePicker {
        let start = stack.0.len();
        stack.0.extend(moves.iter().map(|mv| ScoredMove { mv: *mv, score: 0 }));
        let (stage, end) = (Stage::Table, stack.0.len());
        MovePicker { hints, tests_exchanges, stage, start, losing_end: start, next: start, noisy_end: start, end }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes the node's moves from the stack.
    pub(super) fn finish(&self, stack: &mut MoveStack) {
        stack.0.truncate(self.start);
    }

    /// The best remaining move. Once `skip_quiets` is true, it is for all later calls, and only noisy moves are picked.
    pub(super) fn next(
        &mut self,
        stack: &mut MoveStack,
        position: &Chess,
        histories: &Histories,
        skip_quiets: bool,
    ) -> Option<Picked> {
        loop {
            match self.stage {
                Stage::Table => {
                    self.stage = Stage::ScoreNoisy;
                    if let Some(mv) = self.table_move(stack) {
                        return Some(Picked { mv, is_losing: false, history: None });
                    }
                }
                Stage::ScoreNoisy => {
                    self.score_noisy(stack, position, histories);
                    self.stage = Stage::Noisy;
                }
                Stage::Noisy if self.next == self.noisy_end => self.stage = Stage::ScoreQuiet,
                Stage::Noisy => {
                    let mv = stack.select(self.next, self.noisy_end).mv;
                    self.next += 1;
                    if !self.tests_exchanges || see_at_least(position.board(), position.turn(), mv, LEAST_GAIN) {
                        return Some(Picked { mv, is_losing: false, history: None });
                    }
                    stack.0[self.losing_end].mv = mv;
                    self.losing_end += 1;
                }
                Stage::ScoreQuiet => {
                    if !skip_quiets {
                        self.score_quiet(stack, position, histories);
                    }
                    self.stage = Stage::Quiet;
                }
                Stage::Quiet if skip_quiets || self.next == self.end => {
                    self.stage = Stage::Losing;
                    self.next = self.start;
                }
                Stage::Quiet => {
                    let ScoredMove { mv, score } = stack.select(self.next, self.end);
                    self.next += 1;
                    return Some(Picked { mv, is_losing: false, history: (score < COUNTER).then_some(score) });
                }
                Stage::Losing => {
                    let mv = stack.0[self.next..self.losing_end].first()?.mv;
                    self.next += 1;
                    return Some(Picked { mv, is_losing: true, history: None });
                }
            }
        }
    }

    /// Picks the table's move, if it is one of the node's moves.
    fn table_move(&mut self, stack: &mut MoveStack) -> Option<Move> {
        if !self.hints.table_move.is_some() {
            return None;
        }
        let moves = &mut stack.0[self.start..self.end];
        let at = moves.iter().position(|scored| PackedMove::of(scored.mv) == self.hints.table_move)?;
        moves.swap(0, at);
        self.next += 1;
        Some(moves[0].mv)
    }

    /// Moves the noisy moves before the quiet ones and scores them.
    fn score_noisy(&mut self, stack: &mut MoveStack, position: &Chess, histories: &Histories) {
        let turn = position.turn();
        self.noisy_end = self.next;
        for at in self.next..self.end {
            let scored = &mut stack.0[at];
            if is_noisy(scored.mv) {
                // Most valuable victim first, then by capture history.
                let mv = scored.mv;
                let gained = mv.capture().map_or(0, see_value) + mv.promotion().map_or(0, see_value);
                scored.score = 16 * gained + histories.capture(mv, turn);
                stack.0.swap(self.noisy_end, at);
                self.noisy_end += 1;
            }
        }
    }

    fn score_quiet(&self, stack: &mut MoveStack, position: &Chess, histories: &Histories) {
        let turn = position.turn();
        let OrderingHints { killers, earlier, .. } = &self.hints;
        let counter = histories.counter(earlier[0]);
        for scored in &mut stack.0[self.next..self.end] {
            let packed = PackedMove::of(scored.mv);
            scored.score = if packed == killers[0] {
                KILLER + 1
            } else if packed == killers[1] {
                KILLER
            } else if packed == counter {
                COUNTER
            } else {
                histories.quiet(scored.mv, turn, earlier)
            };
        }
    }
}

/// Captures and promotions to a queen are noisy; all other moves are quiet.
pub(super) fn is_noisy(mv: Move) -> bool {
    mv.is_capture() || mv.promotion() == Some(Role::Queen)
}
