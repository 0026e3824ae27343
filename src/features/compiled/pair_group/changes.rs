//! The pairs that a move takes away and those that it brings: of the pieces that move, of those that see a changed square,
//! and, where any two pieces are a pair, of all others with a changed one.

use shakmaty::{Bitboard, Color, attacks};

use super::pairs::{Pairs, pair};
use super::{NEEDS, PairGroup, PairSource, SCRATCH, Scratch};
use crate::chess::{Board, BoardChange, Perspective, Square};
use crate::features::compiled::oriented_board::{LINES, Line, Placement, squares};

/// A board as the search for changed pairs reads it.
struct Side<'a> {
    board: &'a Board,
    occupied: u64,
    /// Pieces that may be first, and that may be second, in a pair.
    firsts: u64,
    seconds: u64,
}

impl PairGroup {
    /// Finds the pairs that a move takes away and those that it brings, for [`PairGroup::append_changes`] by the same
    /// thread. Returns whether both may hold the same pair for a perspective, as where its king's move mirrors the board.
    pub fn find_changes(&self, boards: [&Board; 2], change: &BoardChange, povs: &[Perspective]) -> bool {
        SCRATCH.with_borrow_mut(|Scratch { pairs, masks }| {
            // A moved piece may meet any other in both orders.
            let most = self.most_pairs(64);
            pairs.iter_mut().for_each(|pairs| pairs.clear(most));
            povs.iter().for_each(|pov| masks[*pov] = boards.map(|board| self.mask(board, *pov)));
            let is_local = povs.iter().all(|pov| masks[*pov][0].is_some() && masks[*pov][0] == masks[*pov][1]);
            match is_local {
                true => self.changed_pairs(boards, change, pairs),
                false => {
                    for (board, pairs) in boards.into_iter().zip(pairs) {
                        self.pairs_of(&Placement::of(board, NEEDS), pairs);
                    }
                }
            }
            let [removed, added] = change.states();
            let is_put_back = |state: &u16| *state != BoardChange::NO_PIECE && added.contains(state);
            !self.is_distinct || !is_local || removed.iter().any(is_put_back)
        })
    }

    /// Appends the features of the pairs found last, as a perspective sees them before and after the move.
    pub fn append_changes(&self, pov: Perspective, out: [&mut Vec<u32>; 2]) {
        SCRATCH.with_borrow(|Scratch { pairs, masks }| {
            for ((mask, pairs), out) in masks[pov].into_iter().zip(pairs).zip(out) {
                if let Some(mask) = mask {
                    self.push(pairs.as_slice(), pov, mask, out);
                }
            }
        });
    }

    fn changed_pairs(&self, boards: [&Board; 2], change: &BoardChange, out: &mut [Pairs; 2]) {
        let states = change.states();
        let is_piece = |state: &u16| *state != BoardChange::NO_PIECE;
        let changed = states.into_iter().flatten().filter(is_piece).fold(0u64, |all, state| all | 1 << (state & 63));
        let is_relevant = |codes: u16| move |state: &u16| is_piece(state) && codes >> (state >> 6 & 15) & 1 != 0;
        if self.source == PairSource::Pieces {
            let codes = self.codes[0] | self.codes[1];
            for ((board, states), out) in boards.into_iter().zip(states).zip(out) {
                for state in states.into_iter().filter(is_relevant(codes)) {
                    self.pairs_with(u32::from(state), board, changed, out);
                }
            }
            return;
        }
        let sides = boards.map(|board| Side {
            board,
            occupied: board.occupied().0,
            firsts: self.of_codes(board, self.codes[0]),
            seconds: self.of_codes(board, self.codes[1]),
        });
        for ((side, states), out) in sides.iter().zip(states).zip(out.iter_mut()) {
            for state in states.into_iter().filter(is_relevant(self.codes[0])) {
                let (state, square) = (u32::from(state), u32::from(state & 63));
                out.push(state, seen_from(state, square, side.occupied) & side.seconds, |to| state_at(side.board, to));
            }
        }
        for square in squares(changed) {
            pairs_of_leapers(&sides, square, changed, out);
            pairs_of_sliders(&sides, square, changed, out);
        }
    }

    /// The pairs of a changed state, as on `board`, with any others. Two changed pieces meet once in either order.
    fn pairs_with(&self, state: u32, board: &Board, changed: u64, out: &mut Pairs) {
        let square = state & 63;
        let others = self.of_codes(board, self.codes[0] | self.codes[1]);
        if self.is_unordered {
            let partners = others & self.partners[(state >> 6 & 15) as usize][square as usize];
            let met_later = changed & ((1 << square) - 1);
            out.push(state, partners & !met_later, |to| state_at(board, to));
            return;
        }
        out.push(state, others, |to| state_at(board, to));
        for other in squares(others & !changed) {
            out.push_one(pair(state_at(board, other), state));
        }
    }

    /// The squares of the pieces whose codes have a bit in `codes`.
    fn of_codes(&self, board: &Board, codes: u16) -> u64 {
        let roles = shakmaty::Role::ALL.into_iter().enumerate();
        // Codes of both colours are alike: see `add`.
        roles.filter(|(role, _)| codes >> role & 1 != 0).fold(0, |all, (_, role)| all | board.by_role(role).0)
    }
}

/// The pairs of unmoved pawns, knights and kings with what is on a changed square.
fn pairs_of_leapers(sides: &[Side<'_>; 2], square: u32, changed: u64, out: &mut [Pairs; 2]) {
    let (board, to) = (sides[0].board, Square::new(square));
    let pawns = |color: Color| attacks::pawn_attacks(color.other(), to) & board.by_color(color);
    let attackers = (attacks::knight_attacks(to) & board.knights())
        | (attacks::king_attacks(to) & board.kings())
        | ((pawns(Color::White) | pawns(Color::Black)) & board.pawns());
    for from in squares(attackers.0 & sides[0].firsts & !changed) {
        let state = state_at(board, from);
        for (side, out) in sides.iter().zip(out.iter_mut()) {
            if side.seconds >> square & 1 != 0 {
                out.push_one(pair(state, state_at(side.board, square)));
            }
        }
    }
}

/// The pairs of unmoved bishops, rooks and queens that change on the lines through a changed square. A slider's line is
/// looked at from the changed square that is nearest to it, from which it is then the first piece.
fn pairs_of_sliders(sides: &[Side<'_>; 2], square: u32, changed: u64, out: &mut [Pairs; 2]) {
    let Side { board, firsts, .. } = &sides[0];
    let [straight, diagonal] = [board.rooks_and_queens().0, board.bishops_and_queens().0];
    let unmoved = firsts & !changed;
    for line in LINES {
        let sliders = unmoved & if line.is_diagonal() { diagonal } else { straight };
        if line.whole(square) & sliders == 0 {
            continue;
        }
        let along = SlidersOfLine { line, square, sliders };
        along.pairs::<true>(sides, changed, out);
        along.pairs::<false>(sides, changed, out);
    }
}

/// Unmoved sliders, a line along which they attack, and a changed square.
struct SlidersOfLine {
    line: Line,
    square: u32,
    sliders: u64,
}

impl SlidersOfLine {
    /// The pairs of the slider that is seen from the square, looking upwards or downwards.
    #[inline(always)]
    fn pairs<const UPWARDS: bool>(&self, sides: &[Side<'_>; 2], changed: u64, out: &mut [Pairs; 2]) {
        let SlidersOfLine { line, square, sliders } = *self;
        let Side { board, occupied, .. } = &sides[0];
        let slider = line.first(square, UPWARDS, *occupied) & sliders;
        if slider == 0 || line.between(square, slider, UPWARDS) & changed != 0 {
            return;
        }
        let target = |side: &Side<'_>| match side.occupied >> square & 1 {
            0 => line.first(square, !UPWARDS, side.occupied),
            _ => 1 << square,
        };
        let targets = [target(&sides[0]), target(&sides[1])];
        // An unchanged piece that is seen before and after makes no difference.
        let same = targets[0] & targets[1] & !changed;
        let state = state_at(board, slider.trailing_zeros());
        for ((side, target), out) in sides.iter().zip(targets).zip(out.iter_mut()) {
            if target & side.seconds & !same != 0 {
                out.push_one(pair(state, state_at(side.board, target.trailing_zeros())));
            }
        }
    }
}

/// The first occupied squares that the piece of a state attacks.
fn seen_from(state: u32, square: u32, occupied: u64) -> u64 {
    let (from, code) = (Square::new(square), state >> 6 & 15);
    let (straight, diagonal) = LINES.split_at(2);
    let along = |lines: &[Line]| {
        lines.iter().fold(0, |all, line| all | line.first(square, true, occupied) | line.first(square, false, occupied))
    };
    match code & 7 {
        0 => attacks::pawn_attacks(Color::from_white(code < 8), from).0,
        1 => attacks::knight_attacks(from).0,
        2 => along(diagonal),
        3 => along(straight),
        4 => along(&LINES),
        _ => attacks::king_attacks(from).0,
    }
}

/// The state of the piece on an occupied square, as White sees it.
#[inline(always)]
fn state_at(board: &Board, square: u32) -> u32 {
    let has = |set: Bitboard| (set.0 >> square & 1) as u32;
    // The bits of the role's number.
    let low = has(board.knights()) | has(board.rooks()) | has(board.kings());
    let middle = has(board.bishops()) | has(board.rooks());
    let high = has(board.queens()) | has(board.kings());
    let code = has(board.black()) << 3 | high << 2 | middle << 1 | low;
    code << 6 | square
}
