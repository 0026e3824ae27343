//! A position's moves, one of which is drawn: for triplets, which want a random move besides the one played.

use super::cpu::{Cpu, Work, dispatch};
use super::moves::{choices, nth, numbers};
use super::position::Position;
use crate::chess::PackedBoard;
use crate::data::Record;
use crate::data::record::PackedMove;
use crate::units::Draws;

/// Draws before all moves are tried one by one: in a quiet position one is enough, in check few of those counted are legal.
const TRIES: u64 = 64;

/// What follows a position: after the move played, and after another one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Triplet {
    pub played: PackedBoard,
    pub other: PackedBoard,
}

/// Why a record makes no triplet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoTriplet {
    /// No move was played, or none that its position allows.
    Played,
    /// The move played is the only one.
    Other,
}

impl Triplet {
    /// Of a record whose position is known to be legal. Every legal move besides the one played comes with the same
    /// chance; the same for the same `draw`.
    ///
    /// # Errors
    /// When the record has no move that can be played, or no other one can be.
    pub fn draw(record: &Record, draws: Draws, draw: u64) -> Result<Triplet, NoTriplet> {
        dispatch(Drawing { record, draws, draw })
    }
}

/// Whether a record has a move and its position another legal one besides; the position is known to be legal.
pub fn has_triplet(record: &Record) -> bool {
    record.has_move() && dispatch(TwoMoves(record))
}

/// A call of [`has_triplet`].
struct TwoMoves<'a>(&'a Record);

impl Work for TwoMoves<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, cpu: impl Cpu) -> bool {
        let position = Position::of_record(self.0, cpu);
        let mut found = 0;
        for (mut left, pawns) in position.pawns_and_pieces().into_iter().zip([true, false]) {
            while left != 0 && found < 2 {
                let moves = position.moves_of(left.trailing_zeros(), pawns);
                left &= left - 1;
                let each = 0..choices(&moves, moves.targets.count_ones());
                found += each.filter(|choice| position.clone().play(nth(&moves, *choice, cpu))).take(2).count();
            }
        }
        found >= 2
    }
}

/// A call of [`Triplet::draw`].
struct Drawing<'a> {
    record: &'a Record,
    draws: Draws,
    draw: u64,
}

impl Work for Drawing<'_> {
    type Output = Result<Triplet, NoTriplet>;

    #[inline(always)]
    fn run(self, cpu: impl Cpu) -> Self::Output {
        let record = self.record;
        let position = Position::of_record(record, cpu);
        let played = record.packed_move().ok_or(NoTriplet::Played)?;
        let can = numbers(&position, played).is_some();
        let after = if can { position.board_after(played, cpu) } else { None };
        let after = after.ok_or(NoTriplet::Played)?;
        let other = position.board_after_another(played, self.draws, self.draw, cpu).ok_or(NoTriplet::Other)?;
        Ok(Triplet { played: after, other })
    }
}

/// How many moves the own pieces have, pawns first, kings that would be in check aside.
struct Choices {
    /// Moves up to and with each piece's.
    sums: [u16; 32],
    total: u32,
}

impl Position {
    #[inline(always)]
    fn of_record(record: &Record, cpu: impl Cpu) -> Position {
        Position::from_board(
            record.board(),
            record.turn(),
            record.castling(),
            record.ep_file(),
            record.rule50(),
            record.ply(),
            cpu,
        )
    }

    #[inline(always)]
    fn board_after_another(&self, played: PackedMove, draws: Draws, draw: u64, cpu: impl Cpu) -> Option<PackedBoard> {
        let choices = self.choices();
        let mut bits = draw;
        for _ in 0..TRIES {
            bits = draws.at(bits);
            let pick = (u128::from(bits) * u128::from(choices.total)) >> 64;
            let mv = self.choice(&choices, pick as u32, cpu).filter(|mv| *mv != played);
            if let Some(after) = mv.and_then(|mv| self.board_after(mv, cpu)) {
                return Some(after);
            }
        }
        self.one_of_all(&choices, played, draws.at(bits), cpu)
    }

    /// As [`Position::board_after_another`], when drawing among moves that are mostly illegal has not met a legal one.
    #[cold]
    #[inline(never)]
    fn one_of_all(&self, choices: &Choices, played: PackedMove, bits: u64, cpu: impl Cpu) -> Option<PackedBoard> {
        let others = (0..choices.total).filter_map(|pick| self.choice(choices, pick, cpu)).filter(|mv| *mv != played);
        let legal: Vec<PackedBoard> = others.filter_map(|mv| self.board_after(mv, cpu)).collect();
        let pick = (u128::from(bits) * legal.len() as u128) >> 64;
        legal.get(pick as usize).copied()
    }

    /// The board after a move that [`Position::moves`] tells of; none where it is illegal.
    #[inline(always)]
    fn board_after(&self, mv: PackedMove, cpu: impl Cpu) -> Option<PackedBoard> {
        let mut after = self.clone();
        after.play(mv).then(|| after.board(cpu))
    }

    #[inline(always)]
    fn choices(&self) -> Choices {
        let mut all = Choices { sums: [u16::MAX; 32], total: 0 };
        let mut sums = all.sums.iter_mut();
        for (mut left, pawns) in self.pawns_and_pieces().into_iter().zip([true, false]) {
            while left != 0 {
                let moves = self.moves_of(left.trailing_zeros(), pawns);
                left &= left - 1;
                all.total += choices(&moves, moves.targets.count_ones());
                let Some(sum) = sums.next() else { break };
                *sum = all.total as u16;
            }
        }
        all
    }

    /// Move number `pick` of those counted; none where there are not so many.
    #[inline(always)]
    fn choice(&self, choices: &Choices, pick: u32, cpu: impl Cpu) -> Option<PackedMove> {
        if pick >= choices.total {
            return None;
        }
        let before = choices.sums.iter().filter(|sum| u32::from(**sum) <= pick).count() as u32;
        let passed = before.checked_sub(1).map_or(0, |last| u32::from(choices.sums[last as usize & 31]));
        let [pawns, pieces] = self.pawns_and_pieces();
        let moves = match before.checked_sub(pawns.count_ones()) {
            None => self.moves_of(cpu.nth(pawns, before), true),
            Some(behind) => self.moves_of(cpu.nth(pieces, behind), false),
        };
        Some(nth(&moves, pick - passed, cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Chess, Move};
    use crate::units::{Ply, Seed};
    use shakmaty::fen::Fen;
    use shakmaty::{CastlingMode, Position as _};

    fn position(fen: &str) -> Chess {
        let fen: Fen = fen.parse().expect("a FEN");
        fen.into_position(CastlingMode::Standard).expect("a legal position")
    }

    fn record(position: &Chess) -> Record {
        Record::of(position, 0, Ply(0), None, None, None).expect("fits")
    }

    /// Whatever was played, every other legal move comes equally often, that one never.
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
            // Five standard deviations above the mean; the draws are fixed.
            assert!(chi_squared < freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0, "{fen} {mv}: χ² = {chi_squared}");
        }
    }

    #[test]
    fn another_move_is_uniform() {
        check("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
        // Castling both ways, en passant, promotions.
        check("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1");
        check("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1");
        check("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1");
        // In check: few of many are legal.
        check("4k3/8/8/8/1b6/8/2P1PPPP/RN1QKBNR w KQ - 0 1");
        check("4k3/4q3/8/8/8/8/3P1P2/QQ1BKBQ1 w - - 0 1");
    }

    #[test]
    fn the_only_move_has_no_other() {
        // The king on a1 can but take the rook.
        let before = position("8/8/8/8/8/1k6/8/Kr6 w - - 0 1");
        let moves = before.legal_moves();
        assert_eq!(moves.len(), 1);
        let with = |mv| Record::of(&before, 0, Ply(0), mv, None, None).expect("fits");
        let draw = |record: &Record| Triplet::draw(record, Seed(2).draws("test"), 1);
        assert_eq!(draw(&with(Some(moves[0]))), Err(NoTriplet::Other));
        assert_eq!(draw(&with(None)), Err(NoTriplet::Played));
        assert!(!has_triplet(&with(Some(moves[0]))));
        let impossible = Move::Normal {
            role: shakmaty::Role::Pawn,
            from: shakmaty::Square::E4,
            capture: None,
            to: shakmaty::Square::E5,
            promotion: None,
        };
        assert_eq!(draw(&with(Some(impossible))), Err(NoTriplet::Played));
    }
}
