//! Deltas of piece tables: the entries of the pieces that move, or that stand on one of two boards only.

use crate::chess::{Board, BoardChange, Color, Perspective, Piece, PieceCode, Role};
use crate::features::compiled::CompiledBlock;
use crate::features::compiled::encode::Kings;
use crate::features::compiled::oriented_board::{Placement, PlacementNeeds, squares};
use crate::features::compiled::piece_table::{PieceTable, orientation_xor};
use crate::features::compiled::tables::NONE;

use super::{RowChanges, Transition, kings_of};

/// The entries of two states, ascending, so that missing ones ([`NONE`]) come last.
#[inline(always)]
fn sorted_entries(states: [u16; 2], table: &[u32; 1024], xor: u16) -> [u32; 2] {
    // No table has an entry for NO_PIECE, however it is oriented.
    let [a, b] = states.map(|state| table[usize::from(state ^ xor) & 1023]);
    [a.min(b), a.max(b)]
}

impl<'a> Transition<'a> {
    /// Between any two boards, as White sees them; only for [`CompiledBlock::diff_boards`].
    pub fn between(before: &'a Board, after: &'a Board) -> Transition<'a> {
        let kings = kings_of(before).zip(kings_of(after)).map(<[_; 2]>::from);
        Transition { before, after, change: &BoardChange::EMPTY, pov: Perspective::White, kings, kings_stay: false }
    }
}

impl CompiledBlock {
    /// Appends the difference between two boards of one context.
    pub fn diff_boards(&self, boards: &Transition<'_>, rows: &mut RowChanges<'_>) {
        match (&self.piece_table, boards.kings) {
            (Some(table), Some([_, kings])) => self.diff_pieces(table, boards, kings, rows),
            _ => self.reencode(boards, rows),
        }
    }

    /// The entries of the pieces that stand on one board only.
    fn diff_pieces(&self, table: &PieceTable, boards: &Transition<'_>, kings: [u32; 2], rows: &mut RowChanges<'_>) {
        let kings = self.kings(kings[0], kings[1], boards.pov);
        let base = self.base(&self.terms[0], &kings);
        if base == NONE {
            return;
        }
        let from = rows.lengths();
        let first = base.wrapping_add(rows.offset);
        let xor = boards.pov.index() << 9 | kings.mask as usize;
        for color in Color::ALL {
            for role in Role::ALL {
                let piece = Piece { color, role };
                let code = PieceCode::of(piece).index() << 6;
                let [before, after] = [boards.before, boards.after].map(|board| board.by_piece(piece));
                for (squares, out) in [(before & !after, &mut *rows.removed), (after & !before, &mut *rows.added)] {
                    let entries =
                        squares.into_iter().map(|square| table.entries[((code | usize::from(square)) ^ xor) & 1023]);
                    out.extend(entries.filter(|entry| *entry != NONE).map(|entry| first.wrapping_add(entry)));
                }
            }
        }
        if rows.removed[from[0]..].iter().any(|row| rows.added[from[1]..].contains(row)) {
            rows.cancel(from);
        }
    }

    /// For a piece table: the entries of the pieces that move, while both kings stay. `kings`: squares of the own and
    /// the enemy king on the board as it stands.
    #[inline(always)]
    pub fn piece_table_delta(
        &self,
        change: &BoardChange,
        pov: Perspective,
        [own, enemy]: [u32; 2],
        rows: &mut RowChanges<'_>,
    ) {
        let Some(table) = &self.piece_table else { return };
        let Some((base, number)) = self.base_and_table(own, enemy, pov) else { return };
        let first = base.wrapping_add(rows.offset);
        let from = rows.lengths();
        let [old, new] = change.states().map(|states| sorted_entries(states, &table.entries, orientation_xor(number)));
        for (entries, out) in [(old, &mut *rows.removed), (new, &mut *rows.added)] {
            let count = entries.iter().filter(|entry| **entry != NONE).count();
            // Appending both and truncating the missing ones needs no branch.
            let end = out.len() + count;
            out.extend_from_slice(&entries.map(|entry| first.wrapping_add(entry)));
            out.truncate(end);
        }
        let in_both = |entry: u32| entry != NONE && new.contains(&entry);
        if in_both(old[0]) | in_both(old[1]) {
            rows.cancel(from);
        }
    }

    /// [`CompiledBlock::reencode`] for a small table: bitsets sort the entries, and usually the bases differ by so much
    /// that the two sides have no row in common.
    pub(super) fn reencode_small_table(&self, mv: &Transition<'_>, kings: [Kings; 2], rows: &mut RowChanges<'_>) {
        let Some(table) = &self.piece_table else { return };
        let from = rows.lengths();
        let term = &self.terms[0];
        let bases = kings.map(|kings| self.base(term, &kings));
        let sides = [(mv.before, &mut *rows.removed), (mv.after, &mut *rows.added)];
        for ((board, out), (kings, base)) in sides.into_iter().zip(kings.into_iter().zip(bases)) {
            if base == NONE {
                continue;
            }
            let xor = (mv.pov.index() << 9) as u16 | kings.mask as u16;
            let mut present = [0u64; 16];
            for state in Placement::of(board, PlacementNeeds::default()).pieces() {
                let entry = table.entries[usize::from(state ^ xor) & 1023];
                if entry != NONE {
                    present[(entry / 64) as usize & 15] |= 1 << (entry & 63);
                }
            }
            for (word, bits) in (0u32..).zip(present) {
                out.extend(squares(bits).map(|bit| base + rows.offset + word * 64 + bit));
            }
        }
        let disjoint = bases[0].abs_diff(bases[1]) >= 1024;
        if !disjoint {
            rows.cancel(from);
        }
    }
}
