//! The order in which moves are searched: the table's move, captures that win material, killers, quiet moves by history,
//! captures that lose material.

use shakmaty::{Board, Color, Move, MoveList, Role};

use super::code::MoveCode;
use super::exchange::{exchange_at_least, value};
use super::history::{Histories, PieceTo};

const TABLE_MOVE: i32 = 1 << 30;
const GOOD_CAPTURE: i32 = 1 << 28;
const KILLER: i32 = 1 << 27;
const COUNTER: i32 = 1 << 26;
const BAD_CAPTURE: i32 = -(1 << 28);

/// Moves with their scores; the best remaining one comes next.
pub(super) struct Ordered {
    moves: MoveList,
    scores: [i32; 256],
    next: usize,
}

/// What a position's moves are ordered by.
pub(super) struct Hints<'a> {
    pub(super) table: MoveCode,
    pub(super) killers: [MoveCode; 2],
    pub(super) earlier: [Option<PieceTo>; 3],
    pub(super) histories: &'a Histories,
}

impl Ordered {
    /// All moves of a node.
    pub(super) fn all(moves: MoveList, board: &Board, turn: Color, hints: &Hints<'_>) -> Ordered {
        let counter = hints.histories.counter(hints.earlier[0]);
        Ordered::by(moves, |mv| {
            let code = MoveCode::of(mv);
            if code == hints.table {
                TABLE_MOVE
            } else if is_noisy(mv) {
                let worth = capture_worth(mv, turn, hints.histories);
                if exchange_at_least(board, turn, mv, -20) { GOOD_CAPTURE + worth } else { BAD_CAPTURE + worth }
            } else if code == hints.killers[0] {
                KILLER + 1
            } else if code == hints.killers[1] {
                KILLER
            } else if code == counter {
                COUNTER
            } else {
                hints.histories.quiet(mv, turn, &hints.earlier)
            }
        })
    }

    /// Captures and promotions to a queen, by what they take.
    pub(super) fn captures(moves: MoveList, turn: Color, table: MoveCode, histories: &Histories) -> Ordered {
        Ordered::by(moves, |mv| if MoveCode::of(mv) == table { TABLE_MOVE } else { capture_worth(mv, turn, histories) })
    }

    fn by(moves: MoveList, score: impl Fn(Move) -> i32) -> Ordered {
        let mut scores = [0; 256];
        scores.iter_mut().zip(&moves).for_each(|(slot, mv)| *slot = score(*mv));
        Ordered { moves, scores, next: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// The best of the remaining moves, and whether it is one of the losing captures at the end.
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
        let found = (self.moves[self.next], self.scores[self.next] < BAD_CAPTURE / 2);
        self.next += 1;
        Some(found)
    }
}

/// Captures and promotions to a queen; the rest are quiet.
pub(super) fn is_noisy(mv: Move) -> bool {
    mv.is_capture() || mv.promotion() == Some(Role::Queen)
}

/// Most valuable victim first, then by what such captures did before.
fn capture_worth(mv: Move, turn: Color, histories: &Histories) -> i32 {
    let gained = mv.capture().map_or(0, value) + mv.promotion().map_or(0, value);
    16 * gained + histories.capture(mv, turn)
}
