//! The pairs that a move takes away and those that it brings: of the pieces that move, of those that see a changed
//! square, and, where any two pieces are a pair, of all others with a changed one.

use super::pairs::{PiecePairs, pair};
use super::sight::{Sight, direction_to, leaps, up_to};
use super::{NEEDS, PairGroup, PairScratch, PairSource, SCRATCH};
use crate::chess::{Board, BoardChange, Perspective};
use crate::features::compiled::oriented_board::{Placement, squares};

/// The role of a king in a piece code.
const KING: u16 = 5;

/// A board as the search for changed pairs reads it.
struct Side {
    occupied: u64,
    /// Pieces that may be first, and that may be second, in a pair.
    firsts: u64,
    seconds: u64,
    /// Squares by bit of the code of the piece on them.
    code_bits: [u64; 4],
}

impl Side {
    #[inline(always)]
    fn new(board: &Board, [firsts, seconds]: [u16; 2]) -> Side {
        let [knights, bishops, rooks] = [board.knights().0, board.bishops().0, board.rooks().0];
        let [queens, kings] = [board.queens().0, board.kings().0];
        let roles = [board.pawns().0, knights, bishops, rooks, queens, kings];
        // Codes of both colours are alike: see `add`.
        let of_codes = |codes: u16| {
            let all_if = |role: usize| u64::from(codes >> role & 1).wrapping_neg();
            roles.iter().enumerate().fold(0, |all, (role, pieces)| all | pieces & all_if(role))
        };
        Side {
            occupied: board.occupied().0,
            firsts: of_codes(firsts),
            seconds: of_codes(seconds),
            code_bits: [knights | rooks | kings, bishops | rooks, queens | kings, board.black().0],
        }
    }

    /// The state of the piece on an occupied square, as White sees it.
    #[inline(always)]
    fn state_at(&self, square: u32) -> u32 {
        let [low, middle, high, black] = self.code_bits.map(|squares| (squares >> (square & 63) & 1) as u32);
        (black << 3 | high << 2 | middle << 1 | low) << 6 | square
    }
}

impl PairGroup {
    /// Finds the pairs that a move takes away and those that it brings, for [`PairGroup::append_changes`] by the same
    /// thread. Returns whether both may hold the same pair for a perspective, as where its king's move mirrors the
    /// board.
    pub fn find_changes(&self, boards: [&Board; 2], change: &BoardChange, povs: &[Perspective]) -> bool {
        SCRATCH.with_borrow_mut(|PairScratch { pairs, masks }| {
            // A moved piece may meet any other in both orders.
            let most = self.most_pairs(64);
            pairs.iter_mut().for_each(|pairs| pairs.clear(most));
            // No piece has the role of `BoardChange::NO_PIECE`.
            let moves_king = change.states().into_iter().flatten().any(|state| state >> 6 & 7 == KING);
            for pov in povs {
                let before = self.mask(boards[0], *pov);
                masks[*pov] = [before, if moves_king { self.mask(boards[1], *pov) } else { before }];
            }
            let is_local = povs.iter().all(|pov| masks[*pov][0].is_some() && masks[*pov][0] == masks[*pov][1]);
            if is_local {
                self.changed_pairs(boards, change, pairs);
            } else {
                for (board, pairs) in boards.into_iter().zip(pairs) {
                    self.pairs_of(&Placement::of(board, NEEDS), pairs);
                }
            }
            let [removed, added] = change.states();
            let is_put_back = |state: &u16| *state != BoardChange::NO_PIECE && added.contains(state);
            !self.is_distinct || !is_local || removed.iter().any(is_put_back)
        })
    }

    /// Appends the features of the pairs found last, as a perspective sees them before and after the move.
    pub fn append_changes(&self, pov: Perspective, out: [&mut Vec<u32>; 2]) {
        SCRATCH.with_borrow(|PairScratch { pairs, masks }| {
            for ((mask, pairs), out) in masks[pov].into_iter().zip(pairs).zip(out) {
                if let Some(mask) = mask {
                    self.push(pairs.as_slice(), pov, mask, out);
                }
            }
        });
    }

    fn changed_pairs(&self, boards: [&Board; 2], change: &BoardChange, out: &mut [PiecePairs; 2]) {
        let states = change.states();
        let is_piece = |state: &u16| *state != BoardChange::NO_PIECE;
        let changed = states.into_iter().flatten().filter(is_piece).fold(0u64, |all, state| all | 1 << (state & 63));
        match self.source {
            PairSource::Targets => {
                // Not moved into an array: a vector loaded from memory just stored in parts makes the CPU wait.
                let [before, after] = [&Side::new(boards[0], self.codes), &Side::new(boards[1], self.codes)];
                squares(changed).for_each(|square| changed_targets([before, after], square, changed, out));
            }
            PairSource::Pieces => {
                let codes = self.codes[0] | self.codes[1];
                let is_relevant = |state: &u16| is_piece(state) && codes >> (state >> 6 & 15) & 1 != 0;
                for ((board, states), out) in boards.into_iter().zip(states).zip(out) {
                    for state in states.into_iter().filter(is_relevant) {
                        self.pairs_with(u32::from(state), &Side::new(board, [codes; 2]), changed, out);
                    }
                }
            }
        }
    }

    /// The pairs of a changed state, as on one side, with any others. Two changed pieces meet once in either order.
    fn pairs_with(&self, state: u32, side: &Side, changed: u64, out: &mut PiecePairs) {
        let square = state & 63;
        if self.is_unordered {
            let partners = side.firsts & self.partners[(state >> 6 & 15) as usize][square as usize];
            let met_later = changed & ((1 << square) - 1);
            out.push(state, partners & !met_later, |to| side.state_at(to));
            return;
        }
        out.push(state, side.firsts, |to| side.state_at(to));
        out.push_each(side.firsts & !changed, |other| pair(side.state_at(other), state));
    }
}

/// The pairs of targets that change with a changed square: of the piece on it, and of unmoved pieces that see it.
#[inline(always)]
fn changed_targets(sides: [&Side; 2], square: u32, changed: u64, out: &mut [PiecePairs; 2]) {
    let sights = [&Sight::from(square, sides[0].occupied), &Sight::from(square, sides[1].occupied)];
    let [before, _] = sides;
    // Unmoved pieces are the same on both sides.
    let unmoved = before.firsts & !changed;
    let [low, middle, high, black] = before.code_bits;
    let pawns = before.occupied & !(low | middle | high);
    let leapers = (leaps(1, square) & low & !(middle | high))
        | (leaps(5, square) & low & high)
        | (leaps(8, square) & pawns & !black)
        | (leaps(0, square) & pawns & black);
    for ((side, sight), out) in sides.into_iter().zip(sights).zip(out.iter_mut()) {
        let state = side.state_at(square);
        if side.firsts >> square & 1 != 0 {
            out.push(state, sight.attacks(state >> 6, square) & side.seconds, |to| side.state_at(to));
        }
        if side.seconds >> square & 1 != 0 {
            out.push_each(leapers & unmoved, |from| pair(before.state_at(from), state));
        }
    }
    let straight = sights[0].straight() & (middle & low | high & !low);
    let diagonal = sights[0].diagonal() & (middle & !low | high & !low);
    for slider in squares((straight | diagonal) & unmoved) {
        let direction = direction_to(square, slider);
        // A slider's line is looked at from the changed square that is nearest to it.
        let is_nearest = up_to(square, slider, direction) & changed == 0;
        let target = |n: usize| match sides[n].occupied >> square & 1 {
            0 => sights[n].opposite(direction),
            _ => 1 << square,
        };
        let targets = [target(0), target(1)];
        // An unchanged piece that is seen before and after makes no difference.
        let same = targets[0] & targets[1] & !changed;
        let state = before.state_at(slider);
        for ((side, target), out) in sides.into_iter().zip(targets).zip(out.iter_mut()) {
            let is_changed = is_nearest && target & side.seconds & !same != 0;
            out.push_if(is_changed, pair(state, side.state_at(target.trailing_zeros() & 63)));
        }
    }
}
