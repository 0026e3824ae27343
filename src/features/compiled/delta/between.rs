//! What tells two boards apart whose kings give a block the same rows: any two, not only a move's.

use crate::chess::{Board, BoardChange, Color, Perspective, Piece, PieceCode, Role};
use crate::features::compiled::tables::NONE;
use crate::features::compiled::{CompiledBlock, Walk};

use super::{Move, Rows, kings_of};

impl<'a> Move<'a> {
    /// From one board to another, as White sees it, whatever happened between them: only for [`CompiledBlock::between`].
    pub fn between(before: &'a Board, after: &'a Board) -> Move<'a> {
        let kings = kings_of(before).zip(kings_of(after)).map(<[_; 2]>::from);
        Move { before, after, change: &BoardChange::EMPTY, pov: Perspective::White, kings, kings_stay: false }
    }
}

impl CompiledBlock {
    /// Appends the rows of one board only and of the other only, shifted by `offset`. Both boards are of one context.
    pub fn between(&self, boards: &Move<'_>, offset: u32, rows: &mut Rows<'_>) {
        match (&self.walk, boards.kings) {
            (Some(walk), Some([_, kings])) => self.walked_between(walk, boards, kings, offset, rows),
            _ => self.anew(boards, offset, rows),
        }
    }

    /// Of blocks that are one table: the entries of the pieces that stand on one board only.
    fn walked_between(&self, walk: &Walk, boards: &Move<'_>, kings: [u32; 2], offset: u32, rows: &mut Rows<'_>) {
        let kings = self.kings(kings[0], kings[1], boards.pov);
        let base = self.base(&self.terms[0], &kings);
        if base == NONE {
            return;
        }
        let from = [rows.removed.len(), rows.added.len()];
        let (first, turn) = (base.wrapping_add(offset), boards.pov.index() << 9 | kings.mask as usize);
        for color in Color::ALL {
            for role in Role::ALL {
                let piece = Piece { color, role };
                let code = PieceCode::of(piece).index() << 6;
                let [before, after] = [boards.before, boards.after].map(|board| board.by_piece(piece));
                for (squares, out) in [(before & !after, &mut *rows.removed), (after & !before, &mut *rows.added)] {
                    let entries =
                        squares.into_iter().map(|square| walk.table[((code | usize::from(square)) ^ turn) & 1023]);
                    out.extend(entries.filter(|entry| *entry != NONE).map(|entry| first.wrapping_add(entry)));
                }
            }
        }
        if rows.removed[from[0]..].iter().any(|row| rows.added[from[1]..].contains(row)) {
            rows.settle(from);
        }
    }
}
