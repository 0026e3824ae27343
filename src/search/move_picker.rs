//! Move ordering: the table's move, captures that do not lose material, killers, the counter move, quiet moves by
//! history, losing captures.

use shakmaty::{Chess, Color, Move, MoveList, Position, Role};

use crate::chess::PackedMove;

use super::history::{Histories, PieceTo};
use super::see::{see_at_least, see_value};

const TABLE_MOVE: i32 = 1 << 30;
const GOOD_CAPTURE: i32 = 1 << 28;
const KILLER: i32 = 1 << 27;
const COUNTER: i32 = 1 << 26;
const LOSING_CAPTURE: i32 = -(1 << 28);

/// Moves with their scores, picked in descending order.
pub(super) struct MovePicker {
    moves: MoveList,
    scores: [i32; 256],
    next: usize,
}

/// Knowledge by which a position's moves are ordered.
pub(super) struct OrderingHints<'a> {
    pub(super) table_move: PackedMove,
    pub(super) killers: [PackedMove; 2],
    /// The moves [`super::history::CONTINUATIONS`] plies before.
    pub(super) earlier: [Option<PieceTo>; 3],
    pub(super) histories: &'a Histories,
}

impl MovePicker {
    /// Orders captures and quiet moves.
    pub(super) fn all_moves(moves: MoveList, position: &Chess, hints: &OrderingHints<'_>) -> MovePicker {
        let (board, turn) = (position.board(), position.turn());
        let counter = hints.histories.counter(hints.earlier[0]);
        MovePicker::by_score(moves, |mv| {
            let packed = PackedMove::of(mv);
            if packed == hints.table_move {
                TABLE_MOVE
            } else if is_noisy(mv) {
                let score = capture_score(mv, turn, hints.histories);
                if see_at_least(board, turn, mv, -20) { GOOD_CAPTURE + score } else { LOSING_CAPTURE + score }
            } else if packed == hints.killers[0] {
                KILLER + 1
            } else if packed == hints.killers[1] {
                KILLER
            } else if packed == counter {
                COUNTER
            } else {
                hints.histories.quiet(mv, turn, &hints.earlier)
            }
        })
    }

    /// Orders captures and promotions to a queen.
    pub(super) fn captures(moves: MoveList, turn: Color, table_move: PackedMove, histories: &Histories) -> MovePicker {
        MovePicker::by_score(moves, |mv| match PackedMove::of(mv) == table_move {
            true => TABLE_MOVE,
            false => capture_score(mv, turn, histories),
        })
    }

    fn by_score(moves: MoveList, score: impl Fn(Move) -> i32) -> MovePicker {
        let mut scores = [0; 256];
        scores.iter_mut().zip(&moves).for_each(|(slot, mv)| *slot = score(*mv));
        MovePicker { moves, scores, next: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// The best remaining move, and whether it is a losing capture.
    pub(super) fn next(&mut self) -> Option<(Move, bool)> {
        let count = self.moves.len();
        if self.next == count {
            return None;
        }
        let mut best = self.next;
        for at in self.next + 1..count {
            if self.scores[at] > self.scores[best] {
                best = at;
            }
        }
        self.moves.swap(self.next, best);
        self.scores.swap(self.next, best);
        let picked = (self.moves[self.next], self.scores[self.next] < LOSING_CAPTURE / 2);
        self.next += 1;
        Some(picked)
    }
}

/// Captures and promotions to a queen are noisy; all other moves are quiet.
pub(super) fn is_noisy(mv: Move) -> bool {
    mv.is_capture() || mv.promotion() == Some(Role::Queen)
}

/// Most valuable victim first, then by capture history.
fn capture_score(mv: Move, turn: Color, histories: &Histories) -> i32 {
    let gained = mv.capture().map_or(0, see_value) + mv.promotion().map_or(0, see_value);
    16 * gained + histories.capture(mv, turn)
}
