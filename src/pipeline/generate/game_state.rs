//! A game under way: its moves, and whether the rules end it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use shakmaty::fen::Fen;
use shakmaty::zobrist::Zobrist64;
use shakmaty::{Chess, EnPassantMode, KnownOutcome, Move, Outcome, Position};

use crate::data::GameResult;
use crate::pipeline::uci::{Answer, uci_move};

/// A move of a game and the search of the position before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PlayedPly {
    /// None after the last search of a game that was adjudicated.
    pub mv: Option<Move>,
    pub search: Option<Answer>,
}

#[derive(Clone)]
pub struct GameState {
    pub start: Chess,
    /// As engines are told it.
    pub fen: String,
    pub position: Chess,
    pub plies: Vec<PlayedPly>,
    /// The moves as UCI writes them.
    pub uci: String,
    /// Hashes of all positions, the current one last.
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

    /// Goes on with so many random moves that do not end the game, or as many as there can be.
    pub fn play_at_random(&mut self, plies: u16, rng: &mut ChaCha8Rng) {
        for plies in (1..=plies).rev() {
            for _ in 0..TRIES {
                let mut line = self.clone();
                let goal = line.plies.len() + usize::from(plies);
                while line.plies.len() < goal
                    && let Some(mv) = any_move(&line.position, rng)
                {
                    line.play(mv, None);
                }
                if line.plies.len() == goal && line.ended_by_rule().is_none() {
                    *self = line;
                    return;
                }
            }
        }
    }

    /// White's view of a game that is over by mate, stalemate, material, the 50-move rule or repetition.
    pub fn ended_by_rule(&self) -> Option<GameResult> {
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

/// Openings of a number of random moves that are tried before one move less is asked for.
const TRIES: usize = 100;

pub fn any_move(position: &Chess, rng: &mut ChaCha8Rng) -> Option<Move> {
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
        let mut line = GameState::new(Chess::default());
        for uci in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8"] {
            assert_eq!(line.ended_by_rule(), None);
            let mv = uci.parse::<shakmaty::uci::UciMove>().unwrap().to_move(&line.position).unwrap();
            line.play(mv, None);
        }
        assert_eq!(line.ended_by_rule(), Some(GameResult::Draw));
        assert_eq!(line.uci, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
    }

    #[test]
    fn random_moves_stop_where_every_game_ends() {
        let fen: Fen = "7k/8/6K1/8/8/8/8/R7 b - - 98 80".parse().unwrap();
        let mut line = GameState::new(fen.into_position(CastlingMode::Standard).unwrap());
        line.play_at_random(5, &mut Seed(1).stream("test", 0));
        assert_eq!(line.plies.len(), 1);
    }
}
