//! A game in play between engines or networks: its moves in the forms that they are needed in.

use shakmaty::{Chess, KnownOutcome, Move, Outcome, Position};

use crate::chess::Game;
use crate::data::GameResult;
use crate::pipeline::uci::UciGame;

/// A game in play. `P` is what is kept for each ply: the move and the search that chose it.
#[derive(Clone, Debug)]
pub struct GameLine<P> {
    pub start: Chess,
    /// The current position and its repetitions.
    pub game: Game,
    pub plies: Vec<P>,
    /// The game as UCI engines are told it.
    pub uci: UciGame,
}

impl<P> GameLine<P> {
    /// A game without moves.
    #[must_use]
    pub fn new(start: Chess) -> GameLine<P> {
        GameLine { game: Game::new(start.clone()), uci: UciGame::new(&start), start, plies: Vec::new() }
    }

    /// Plays a legal move.
    pub fn play(&mut self, mv: Move, ply: P) {
        self.uci.push(mv);
        self.game.play(mv);
        self.plies.push(ply);
    }

    #[must_use]
    pub fn position(&self) -> &Chess {
        self.game.position()
    }

    /// White's result when the game is over by mate, stalemate, insufficient material, the fifty-move rule or threefold
    /// repetition.
    #[must_use]
    pub fn result_by_rule(&self) -> Option<GameResult> {
        if let Outcome::Known(KnownOutcome::Decisive { winner }) = self.position().outcome() {
            return Some(winner.fold_wb(GameResult::Win, GameResult::Loss));
        }
        self.game.is_draw().then_some(GameResult::Draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::legal_move;

    #[test]
    fn repetition_ends_the_game() {
        let mut line = GameLine::new(Chess::default());
        for uci in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8"] {
            assert_eq!(line.result_by_rule(), None);
            line.play(legal_move(uci, line.position()).unwrap(), ());
        }
        assert_eq!(line.result_by_rule(), Some(GameResult::Draw));
        assert_eq!(line.uci.moves, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
    }
}
