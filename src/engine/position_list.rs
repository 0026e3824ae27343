//! Positions in a row, as a file of samples holds them: where few pieces differ from one to the next, accumulators follow.

use super::line::{LinePosition, LineStep};
use crate::chess::{BoardChange, Color, PackedBoard, PieceBoard};

/// Positions to evaluate by lines. Consecutive ones are often a move apart.
#[derive(Debug, Default)]
pub struct PositionList {
    boards: Vec<PieceBoard>,
    turns: Vec<Color>,
    /// The change from the board before, if few pieces differ.
    changes: Vec<Option<BoardChange>>,
}

impl PositionList {
    /// Appends a packed board; codes that belong to no piece are left out.
    pub fn push(&mut self, board: &PackedBoard, turn: Color) {
        self.boards.push(PieceBoard::unpacked(board));
        let change = match &self.boards[..] {
            [.., before, board] => BoardChange::between(before, board),
            _ => None,
        };
        self.changes.push(change);
        self.turns.push(turn);
    }

    pub fn clear(&mut self) {
        self.boards.clear();
        self.turns.clear();
        self.changes.clear();
    }

    #[must_use]
    pub fn boards(&self) -> &[PieceBoard] {
        &self.boards
    }

    #[must_use]
    pub fn turns(&self) -> &[Color] {
        &self.turns
    }

    /// The positions for a [`LineEvaluator`](super::LineEvaluator).
    pub fn line(&self) -> impl Iterator<Item = LinePosition<'_>> {
        (0..self.boards.len()).map(|at| {
            let step = self.changes[at].as_ref().map_or(LineStep::Start(&self.boards[at]), LineStep::Move);
            LinePosition { turn: self.turns[at], step }
        })
    }
}
