//! A game in play between engines or networks: its moves in the forms that they are needed in.

use shakmaty::{Chess, KnownOutcome, Move, Outcome, Position};

use super::game::GameMove;
use crate::chess::Game;
use crate::data::GameResult;
use crate::pipeline::uci::UciGame;

/// A game in play.
#[derive(Clone, Debug)]
pub struct GameLine {
    pub start: Chess,
    /// The current position and its repetitions.
    pub game: Game,
    pub moves: Vec<GameMove>,
    /// The game as UCI engines are told it.
    pub uci: UciGame,
}

impl GameLine {
    /// A game without moves.
    #[must_use]
    pub fn new(start: Chess) -> GameLine {
        GameLine { game: Game::new(start.clone()), uci: UciGame::new(&start), start, moves: Vec::new() }
    }

    /// A game that begins with an opening's moves.
    #[must_use]
    pub fn of_opening((start, moves): (Chess, Vec<Move>)) -> GameLine {
        let mut line = GameLine::new(start);
        for mv in moves {
            line.play(GameMove { mv, search: None });
        }
        line
    }

    /// Plays a legal move.
    pub fn play(&mut self, played: GameMove) {
        self.uci.push(played.mv);
        self.game.play(played.mv);
        self.moves.push(played);
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
            let mv = legal_move(uci, line.position()).unwrap();
            line.play(GameMove { mv, search: None });
        }
        assert_eq!(line.result_by_rule(), Some(GameResult::Draw));
        assert_eq!(line.uci.moves, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
    }
}
