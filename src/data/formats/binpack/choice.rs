//! A position's moves, one of which is drawn: for triplets, which want a random move besides the one played.

use super::bits::Counted;
use super::moves::{choices, nth};
use super::position::{Moves, Position};
use crate::data::Record;
use crate::data::record::PackedMove;
use crate::units::Draws;

/// Draws before all moves are tried one by one: in a quiet position one is enough, in check few of those counted are legal.
const TRIES: u64 = 64;

/// What each piece can do, kings that would be in check aside.
struct Choices {
    pieces: [Moves; 32],
    /// Moves up to and with each piece's.
    sums: [u32; 32],
    count: usize,
}

impl Position {
    /// The position of a record that is known to be legal; of another one a position of no use, but no panic.
    #[must_use]
    pub fn of_record(record: &Record) -> Position {
        Position::from_board(
            record.board(),
            record.turn(),
            record.castling(),
            record.ep_file(),
            record.rule50(),
            record.ply(),
        )
    }

    /// Whether the own piece that `mv` names can go that way; its king may then be in check.
    #[must_use]
    pub fn can(&self, mv: PackedMove) -> bool {
        self.own() >> (mv.from() as u32) & 1 != 0 && super::moves::numbers(self, mv).is_some()
    }

    /// The position after a legal move besides `played`, each with the same chance; none where there is no other. The
    /// same for the same `draw`.
    #[must_use]
    pub fn after_another(&self, played: PackedMove, draws: Draws, draw: u64) -> Option<Position> {
        let choices = self.choices();
        let mut bits = draw;
        for _ in 0..TRIES {
            bits = draws.at(bits);
            let pick = (u128::from(bits) * u128::from(choices.total())) >> 64;
            if let Some(after) = choices.get(pick as u32).and_then(|mv| self.after(mv, played)) {
                return Some(after);
            }
        }
        let legal: Vec<Position> =
            (0..choices.total()).filter_map(|pick| self.after(choices.get(pick)?, played)).collect();
        legal.get(draws.below(bits, legal.len() as u32) as usize).cloned()
    }

    fn after(&self, mv: PackedMove, played: PackedMove) -> Option<Position> {
        let mut after = self.clone();
        (mv != played && after.play(mv)).then_some(after)
    }

    fn choices(&self) -> Choices {
        let none = Moves { from: 0, targets: 0, promotes: false, castles: [false; 2] };
        let mut all = Choices { pieces: [none; 32], sums: [0; 32], count: 0 };
        let (mut left, mut sum) = (self.own(), 0);
        while left != 0 && all.count < 32 {
            let moves = self.moves(left.trailing_zeros());
            left &= left - 1;
            sum += choices(&moves, Counted::new(moves.targets).count());
            all.pieces[all.count] = moves;
            all.sums[all.count] = sum;
            all.count += 1;
        }
        all
    }
}

impl Choices {
    fn total(&self) -> u32 {
        self.count.checked_sub(1).map_or(0, |last| self.sums[last])
    }

    /// Move number `pick`.
    fn get(&self, pick: u32) -> Option<PackedMove> {
        let piece = self.sums[..self.count].iter().position(|sum| *sum > pick)?;
        let before = piece.checked_sub(1).map_or(0, |before| self.sums[before]);
        Some(nth(&self.pieces[piece], pick - before))
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
        let (moves, quick) = (before.legal_moves(), Position::of_record(&record(&before)));
        assert!(moves.len() > 1, "{fen}");
        let after = |mv: &Move| {
            let mut after = before.clone();
            after.play_unchecked(*mv);
            *record(&after).board()
        };
        let boards: Vec<_> = moves.iter().map(after).collect();
        let draws = Seed(1).draws("test");
        for (played, mv) in moves.iter().enumerate() {
            let mv = PackedMove::of(*mv);
            assert!(quick.can(mv), "{fen} {mv}");
            let mut counts = vec![0u32; moves.len()];
            let each = 400;
            for draw in 0..each * (moves.len() as u64 - 1) {
                let other = quick.after_another(mv, draws, draw << 32 | 7).expect("there are others");
                let board = other.board();
                counts[boards.iter().position(|known| *known == board).expect("after a legal move")] += 1;
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
        let quick = Position::of_record(&record(&before));
        assert!(quick.after_another(PackedMove::of(moves[0]), Seed(2).draws("test"), 1).is_none());
        assert!(!quick.can(PackedMove::new(shakmaty::Square::E4, shakmaty::Square::E5, None)));
    }
}
