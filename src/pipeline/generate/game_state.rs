//! A game in progress: its moves, and whether the rules end it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use shakmaty::fen::Fen;
use shakmaty::zobrist::Zobrist64;
use shakmaty::{Chess, EnPassantMode, KnownOutcome, Move, Outcome, Position};

use crate::data::GameResult;
use crate::pipeline::uci::{Answer, uci_move};

/// A move and the search of the position before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PlayedPly {
    /// `None` for the last search of an adjudicated game.
    pub mv: Option<Move>,
    pub search: Option<Answer>,
}

#[derive(Clone)]
pub struct GameState {
    pub start: Chess,
    /// FEN of the start position.
    pub fen: String,
    pub position: Chess,
    pub plies: Vec<PlayedPly>,
    /// The moves in UCI notation, separated by blanks.
    pub uci: String,
    /// Hashes of all positions; the current position's is last.
    hashes: Vec<Zobrist64>,
}

impl GameState {
    pub fn new(start: Chess) -> GameState {
        let fen = Fen::from_position(&start, EnPassantMode::Legal).to_string();
        let hashes = vec![hash(&start)];
        GameState { position: start.clone(), start, fen, plies: Vec::new(), uci: String::new(), hashes }
    }

    pub fn play(&mut self, mv: Move, search: Option<Answer>) {
        if !self.uci.is_empty() {
            self.uci.push(' ');
        }
        self.uci.push_str(&uci_move(mv));
        self.position.play_unchecked(mv);
        self.plies.push(PlayedPly { mv: Some(mv), search });
        self.hashes.push(hash(&self.position));
    }

    /// Plays `plies` random moves that do not end the game, or fewer where that is impossible.
    pub fn play_random_moves(&mut self, plies: u16, rng: &mut ChaCha8Rng) {
        for plies in (1..=plies).rev() {
            for _ in 0..ATTEMPTS {
                let mut attempt = self.clone();
                let goal = attempt.plies.len() + usize::from(plies);
                while attempt.plies.len() < goal
                    && let Some(mv) = random_move(&attempt.position, rng)
                {
                    attempt.play(mv, None);
                }
                if attempt.plies.len() == goal && attempt.result_by_rule().is_none() {
                    *self = attempt;
                    return;
                }
            }
        }
    }

    /// White's result when the game is over by mate, stalemate, insufficient material, the 50-move rule or repetition.
    pub fn result_by_rule(&self) -> Option<GameResult> {
        match self.position.outcome() {
            Outcome::Known(KnownOutcome::Decisive { winner }) => {
                return Some(winner.fold_wb(GameResult::Win, GameResult::Loss));
            }
            Outcome::Known(KnownOutcome::Draw) => return Some(GameResult::Draw),
            Outcome::Unknown => {}
        }
        let reversible = self.position.halfmoves() as usize + 1;
        let current = self.hashes.last();
        let repeated = self.hashes.iter().rev().take(reversible).filter(|hash| Some(*hash) == current).count();
        (self.position.halfmoves() >= 100 || repeated >= 3).then_some(GameResult::Draw)
    }
}

/// Attempts at a number of random moves before one move fewer is tried.
const ATTEMPTS: usize = 100;

pub fn random_move(position: &Chess, rng: &mut ChaCha8Rng) -> Option<Move> {
    let moves = position.legal_moves();
    (!moves.is_empty()).then(|| moves[rng.random_range(0..moves.len())])
}

pub fn hash(position: &Chess) -> Zobrist64 {
    position.zobrist_hash(EnPassantMode::Legal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use shakmaty::CastlingMode;

    #[test]
    fn repetition_ends_the_game() {
        let mut game = GameState::new(Chess::default());
        for uci in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8"] {
            assert_eq!(game.result_by_rule(), None);
            let mv = uci.parse::<shakmaty::uci::UciMove>().unwrap().to_move(&game.position).unwrap();
            game.play(mv, None);
        }
        assert_eq!(game.result_by_rule(), Some(GameResult::Draw));
        assert_eq!(game.uci, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
    }

    #[test]
    fn random_moves_stop_before_the_game_ends() {
        let fen: Fen = "7k/8/6K1/8/8/8/8/R7 b - - 98 80".parse().unwrap();
        let mut game = GameState::new(fen.into_position(CastlingMode::Standard).unwrap());
        game.play_random_moves(5, &mut Seed(1).stream("test", 0));
        assert_eq!(game.plies.len(), 1);
    }
}
