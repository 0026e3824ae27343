//! Triplets: a position, the position after the move played, and the position after a random other legal move.

use super::bmi2::{BitInstructions, BitTask, dispatch};
use super::move_code::{count_moves, encode_move, nth_move};
use super::position::Position;
use crate::chess::{PackedBoard, PackedMove};
use crate::data::Record;
use crate::units::Draws;

/// Draws of a pseudo-legal move before all legal moves are listed. Usually one draw is enough; in check few moves are
/// legal.
const TRIES: u64 = 64;

/// The boards after the move played and after another legal move.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Triplet {
    pub played: PackedBoard,
    pub other: PackedBoard,
}

/// Why a record has no triplet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TripletError {
    /// It has no move, or a move that is impossible in its position.
    NoPlayedMove,
    /// The move played is the only legal one.
    NoOtherMove,
}

impl Triplet {
    /// Draws the triplet of a record whose position is known to be legal. Every legal move other than the one played is
    /// equally likely. The same `draw` gives the same triplet.
    ///
    /// # Errors
    /// When the record has no possible move, or no other legal one.
    pub fn draw(record: &Record, draws: Draws, draw: u64) -> Result<Triplet, TripletError> {
        dispatch(DrawTriplet { record, draws, draw })
    }
}

/// Whether a record has a move and its position, known to be legal, another legal one.
pub fn has_triplet(record: &Record) -> bool {
    record.has_move() && dispatch(HasTwoMoves(record))
}

/// A call of [`has_triplet`].
struct HasTwoMoves<'a>(&'a Record);

impl BitTask for HasTwoMoves<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, bits: impl BitInstructions) -> bool {
        let position = Position::from_record(self.0, bits);
        let mut legal = 0;
        for (mut pieces, pawns) in position.pawns_and_pieces().into_iter().zip([true, false]) {
            while pieces != 0 && legal < 2 {
                let moves = position.moves_from(pieces.trailing_zeros(), pawns);
                pieces &= pieces - 1;
                let choices = 0..count_moves(&moves, moves.targets.count_ones());
                legal += choices
                    .filter(|choice| position.clone().play(nth_move(&position, &moves, *choice, bits)))
                    .take(2)
                    .count();
            }
        }
        legal >= 2
    }
}

/// A call of [`Triplet::draw`].
struct DrawTriplet<'a> {
    record: &'a Record,
    draws: Draws,
    draw: u64,
}

impl BitTask for DrawTriplet<'_> {
    type Output = Result<Triplet, TripletError>;

    #[inline(always)]
    fn run(self, bits: impl BitInstructions) -> Self::Output {
        let record = self.record;
        let position = Position::from_record(record, bits);
        let played = record.packed_move().ok_or(TripletError::NoPlayedMove)?;
        let possible = encode_move(&position, played).is_some();
        let after = if possible { position.board_after(played, bits) } else { None };
        let after = after.ok_or(TripletError::NoPlayedMove)?;
        let other =
            position.board_after_other_move(played, self.draws, self.draw, bits).ok_or(TripletError::NoOtherMove)?;
        Ok(Triplet { played: after, other })
    }
}

/// The numbers of pseudo-legal moves of the own pieces, pawns first.
struct PieceMoveCounts {
    /// Number of moves of the pieces up to and including each.
    sums: [u16; 32],
    total: u32,
}

impl Position {
    #[inline(always)]
    fn board_after_other_move(
        &self,
        played: PackedMove,
        draws: Draws,
        draw: u64,
        bits: impl BitInstructions,
    ) -> Option<PackedBoard> {
        let counts = self.move_counts();
        let mut random = draw;
        for _ in 0..TRIES {
            random = draws.at(random);
            let pick = (u128::from(random) * u128::from(counts.total)) >> 64;
            let mv = self.nth_counted(&counts, pick as u32, bits).filter(|mv| *mv != played);
            if let Some(after) = mv.and_then(|mv| self.board_after(mv, bits)) {
                return Some(after);
            }
        }
        self.board_after_listed_move(&counts, played, draws.at(random), bits)
    }

    /// As [`Position::board_after_other_move`], by listing all legal moves, when drawing has not hit a legal one.
    #[cold]
    #[inline(never)]
    fn board_after_listed_move(
        &self,
        counts: &PieceMoveCounts,
        played: PackedMove,
        random: u64,
        bits: impl BitInstructions,
    ) -> Option<PackedBoard> {
        let others =
            (0..counts.total).filter_map(|pick| self.nth_counted(counts, pick, bits)).filter(|mv| *mv != played);
        let legal: Vec<PackedBoard> = others.filter_map(|mv| self.board_after(mv, bits)).collect();
        let pick = (u128::from(random) * legal.len() as u128) >> 64;
        legal.get(pick as usize).copied()
    }

    /// The board after a pseudo-legal move; `None` if it is illegal.
    #[inline(always)]
    fn board_after(&self, mv: PackedMove, bits: impl BitInstructions) -> Option<PackedBoard> {
        let mut after = self.clone();
        if after.play(mv) { Some(after.board(bits)) } else { None }
    }

    #[inline(always)]
    fn move_counts(&self) -> PieceMoveCounts {
        let mut all = PieceMoveCounts { sums: [u16::MAX; 32], total: 0 };
        let mut sums = all.sums.iter_mut();
        for (mut pieces, pawns) in self.pawns_and_pieces().into_iter().zip([true, false]) {
            while pieces != 0 {
                let moves = self.moves_from(pieces.trailing_zeros(), pawns);
                pieces &= pieces - 1;
                all.total += count_moves(&moves, moves.targets.count_ones());
                let Some(sum) = sums.next() else { break };
                *sum = all.total as u16;
            }
        }
        all
    }

    /// Move number `pick` of those counted; `None` if there are fewer.
    #[inline(always)]
    fn nth_counted(&self, counts: &PieceMoveCounts, pick: u32, bits: impl BitInstructions) -> Option<PackedMove> {
        if pick >= counts.total {
            return None;
        }
        let before = counts.sums.iter().filter(|sum| u32::from(**sum) <= pick).count() as u32;
        let skipped = before.checked_sub(1).map_or(0, |last| u32::from(counts.sums[last as usize & 31]));
        let [pawns, pieces] = self.pawns_and_pieces();
        let moves = match before.checked_sub(pawns.count_ones()) {
            None => self.moves_from(bits.nth(pawns, before), true),
            Some(after_pawns) => self.moves_from(bits.nth(pieces, after_pawns), false),
        };
        Some(nth_move(self, &moves, pick - skipped, bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Chess, Move, parse_fen};
    use crate::units::{Ply, Seed};
    use shakmaty::Position as _;

    fn position(fen: &str) -> Chess {
        parse_fen(fen).expect("a legal position")
    }

    fn record(position: &Chess) -> Record {
        Record::of(position, 0, Ply(0), None, None, None).expect("fits")
    }

    /// For each move played, the other legal moves are drawn equally often, and that move never.
    fn check(fen: &str) {
        let before = position(fen);
        let moves = before.legal_moves();
        assert!(moves.len() > 1, "{fen}");
        let after = |mv: &Move| {
            let mut after = before.clone();
            after.play_unchecked(*mv);
            *record(&after).board()
        };
        let boards: Vec<_> = moves.iter().map(after).collect();
        assert!(has_triplet(&Record::of(&before, 0, Ply(0), Some(moves[0]), None, None).expect("fits")), "{fen}");
        assert!(!has_triplet(&record(&before)), "{fen}");
        let draws = Seed(1).draws("test");
        for (played, mv) in moves.iter().enumerate() {
            let record = Record::of(&before, 0, Ply(0), Some(*mv), None, None).expect("fits");
            let mut counts = vec![0u32; moves.len()];
            let each = 400;
            for draw in 0..each * (moves.len() as u64 - 1) {
                let drawn = Triplet::draw(&record, draws, draw << 32 | 7).expect("there are others");
                assert_eq!(drawn.played, boards[played], "{fen} {mv}");
                counts[boards.iter().position(|known| *known == drawn.other).expect("after a legal move")] += 1;
            }
            assert_eq!(counts.remove(played), 0);
            let freedom = counts.len() as f64 - 1.0;
            let expected = each as f64;
            let chi_squared: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            // Five standard deviations above the mean; the draws are deterministic.
            assert!(chi_squared < freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0, "{fen} {mv}: χ² = {chi_squared}");
        }
    }

    #[test]
    fn another_move_is_uniform() {
        check("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
        // Castling both ways, en passant, promotions.
        check("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1");
        // In Chess960: both ways, next to steps of the king to the same squares.
        check("1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1");
        check("2rk3r/pppppppp/8/8/8/8/PPPPPPPP/2RK3R b HChc - 0 1");
        check("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1");
        check("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1");
        // In check: few pseudo-legal moves are legal.
        check("4k3/8/8/8/1b6/8/2P1PPPP/RN1QKBNR w KQ - 0 1");
        check("4k3/4q3/8/8/8/8/3P1P2/QQ1BKBQ1 w - - 0 1");
    }

    #[test]
    fn the_only_move_has_no_other() {
        // The king on a1 can only capture the rook.
        let before = position("8/8/8/8/8/1k6/8/Kr6 w - - 0 1");
        let moves = before.legal_moves();
        assert_eq!(moves.len(), 1);
        let with = |mv| Record::of(&before, 0, Ply(0), mv, None, None).expect("fits");
        let draw = |record: &Record| Triplet::draw(record, Seed(2).draws("test"), 1);
        assert_eq!(draw(&with(Some(moves[0]))), Err(TripletError::NoOtherMove));
        assert_eq!(draw(&with(None)), Err(TripletError::NoPlayedMove));
        assert!(!has_triplet(&with(Some(moves[0]))));
        let impossible = Move::Normal {
            role: shakmaty::Role::Pawn,
            from: shakmaty::Square::E4,
            capture: None,
            to: shakmaty::Square::E5,
            promotion: None,
        };
        assert_eq!(draw(&with(Some(impossible))), Err(TripletError::NoPlayedMove));
    }
}
