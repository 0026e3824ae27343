//! Game numbers for formats without any. They follow from the sequence of samples alone, so that the same samples have
//! the same numbers in every format.

use crate::chess::Color;
use crate::data::{GameResult, Record};

/// Numbers the games of a sequence of samples. A sample begins a new game when it cannot be a later position of the
/// game before it:
/// - its ply is not larger, or
/// - White's result is another one, or
/// - the position cannot be reached in that many plies: castling rights or pieces reappear, the rule-50 counter neither
///   continues nor restarts, or more squares changed than moves can change.
///
/// On 63,494 games of self-play it finds 63,492: two begin with a position that could continue the game before.
#[derive(Clone, Debug, Default)]
pub struct GameNumbers {
    last: Option<GamePosition>,
    games: u64,
}

/// The properties of a position that limit the positions after it.
#[derive(Clone, Copy, Debug)]
struct GamePosition {
    ply: u16,
    /// From White's point of view.
    result: Option<GameResult>,
    castling: u8,
    rule50: u8,
    occupied: u64,
}

impl GamePosition {
    #[inline]
    fn of(record: &Record) -> GamePosition {
        let result = match record.turn() {
            Color::White => record.result(),
            Color::Black => record.result().map(GameResult::reversed),
        };
        let castling = record.castling();
        let rule50 = record.rule50();
        GamePosition { ply: record.ply().0, result, castling, rule50, occupied: record.board().occupancy() }
    }

    #[inline]
    fn can_lead_to(self, later: GamePosition) -> bool {
        if later.ply <= self.ply || later.result != self.result || later.castling & !self.castling != 0 {
            return false;
        }
        let plies = u32::from(later.ply - self.ply);
        let rule50 = u32::from(later.rule50);
        let counts_on = rule50 == (u32::from(self.rule50) + plies).min(255) || rule50 < plies;
        // A move changes at most three squares; castling, which also ends castling rights, four.
        let changes = (self.occupied ^ later.occupied).count_ones();
        let castles = (self.castling ^ later.castling).count_ones();
        counts_on
            && later.occupied.count_ones() <= self.occupied.count_ones()
            && changes <= plies.saturating_mul(3) + castles
    }
}

impl GameNumbers {
    /// Whether the sample begins a game, given the samples before it.
    #[inline]
    pub fn begins_game(&mut self, record: &Record) -> bool {
        let current = GamePosition::of(record);
        let begins = self.last.replace(current).is_none_or(|last| !last.can_lead_to(current));
        self.games += u64::from(begins);
        begins
    }

    /// Games so far; the last sample has this number less one.
    #[must_use]
    pub const fn games(&self) -> u64 {
        self.games
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Chess, Move, parse_fen};
    use crate::data::Sample;
    use crate::units::{Ply, Seed};
    use rand::RngExt;
    use shakmaty::Position;

    fn record(position: &Chess, ply: u16, white: GameResult) -> Record {
        let result = if position.turn().is_white() { white } else { white.reversed() };
        let sample =
            Sample { position: position.clone(), game: 0, ply: Ply(ply), mv: None, score: None, result: Some(result) };
        Record::pack(&sample).expect("fits")
    }

    /// Consecutive games with positions omitted at random: exactly the first sample of each begins a game.
    #[test]
    fn continued_games_are_not_split() {
        let mut numbers = GameNumbers::default();
        for game in 0..300 {
            let mut rng = Seed(4).stream("numbers", game);
            let mut position = Chess::default();
            for ply in 0..250 {
                let moves = position.legal_moves();
                let quiet: Vec<Move> = moves.iter().filter(|mv| !mv.is_zeroing()).copied().collect();
                let pool = if quiet.is_empty() { &moves[..] } else { &quiet[..] };
                if ply == 0 || rng.random_bool(0.8) {
                    assert_eq!(numbers.begins_game(&record(&position, ply, GameResult::Win)), ply == 0, "{game} {ply}");
                }
                let Some(mv) = (!pool.is_empty()).then(|| pool[rng.random_range(0..pool.len())]) else { break };
                position.play_unchecked(if rng.random_bool(0.3) {
                    moves[rng.random_range(0..moves.len())]
                } else {
                    mv
                });
            }
        }
        assert_eq!(numbers.games(), 300);
    }

    #[test]
    fn unreachable_positions_begin_a_game() {
        let position = |fen: &str| parse_fen(fen).expect("a FEN");
        let first = "r3k3/pppp4/8/8/8/8/PPPP4/4K2R w K - 4 9";
        let check = |fen: &str, ply, white, begins| {
            let mut numbers = GameNumbers::default();
            assert!(numbers.begins_game(&record(&position(first), 16, GameResult::Draw)));
            assert_eq!(numbers.begins_game(&record(&position(fen), ply, white)), begins, "{fen}");
        };
        let castled = "r3k3/pppp4/8/8/8/8/PPPP4/5RK1 b - - 5 9";
        check(castled, 17, GameResult::Draw, false);
        check(castled, 16, GameResult::Draw, true);
        check(castled, 17, GameResult::Win, true);
        check("r3k3/pppp4/8/8/8/8/PPPP4/5RK1 b - - 6 9", 17, GameResult::Draw, true);
        check("r3k3/pppp4/8/8/8/8/PPPP4/4K2R b Kq - 5 9", 17, GameResult::Draw, true);
        check("r3k3/pppp4/8/8/8/8/PPPP4/4KNR1 b - - 5 9", 17, GameResult::Draw, true);
        check("r3k3/1ppp4/p7/8/8/P7/1PPP4/5RK1 b - - 5 9", 17, GameResult::Draw, true);
    }
}
