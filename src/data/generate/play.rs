//! One game of an engine against itself.

use std::fmt::Write;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use shakmaty::san::SanPlus;
use shakmaty::zobrist::Zobrist64;
use shakmaty::{Chess, Color, EnPassantMode, KnownOutcome, Move, Outcome, Position};

use super::{Adjudication, Played, Settings};
use crate::data::uci::{Engine, UciError, uci_move};
use crate::data::{Eval, GameResult};
use crate::units::Centipawn;

/// Plays game `number`; the same game every time.
pub fn game(engine: &mut Engine, settings: &Settings, number: u32) -> Result<Played, UciError> {
    let mut rng = settings.seed.stream("self-play", u64::from(number));
    engine.new_game()?;
    let mut game = opening(settings, &mut rng);
    let mut judge = Judge::new(settings.adjudication);
    let start = shakmaty::fen::Fen::default();
    let result = loop {
        if let Some(result) = game.ended_by_rule() {
            break result;
        }
        if game.moves.len() >= usize::from(settings.adjudication.max_plies) {
            break GameResult::Draw;
        }
        let answer = engine.search(&start.to_string(), &game.uci, &game.position, settings.limit)?;
        let eval = game.position.turn().fold_wb(answer.eval, answer.eval.reversed());
        if let Some(played) = game.moves.last_mut() {
            played.eval = Some(eval);
        }
        if let Some(result) = judge.look(eval, game.moves.len()) {
            break result;
        }
        let random = rng.random_bool(settings.random_move_rate);
        let mv = if random { any_move(&game.position, &mut rng) } else { None };
        game.play(mv.unwrap_or(answer.best));
    };
    Ok(Played { number, result, plies: game.moves.len() as u16, movetext: game.movetext() })
}

/// Random moves from the initial position that do not end the game.
fn opening(settings: &Settings, rng: &mut ChaCha8Rng) -> Line {
    let (fewest, most) = settings.random_plies;
    let plies = rng.random_range(fewest..=most);
    loop {
        let mut line = Line::new();
        for _ in 0..plies {
            if let Some(mv) = any_move(&line.position, rng) {
                line.play(mv);
            }
        }
        if line.moves.len() == usize::from(plies) && line.ended_by_rule().is_none() {
            return line;
        }
    }
}

fn any_move(position: &Chess, rng: &mut ChaCha8Rng) -> Option<Move> {
    let moves = position.legal_moves();
    (!moves.is_empty()).then(|| moves[rng.random_range(0..moves.len())])
}

struct Ply {
    san: SanPlus,
    /// White's view.
    eval: Option<Eval>,
}

/// A game under way.
struct Line {
    position: Chess,
    moves: Vec<Ply>,
    /// The moves as UCI writes them.
    uci: String,
    /// Hashes of all positions, the current one last.
    hashes: Vec<Zobrist64>,
}

impl Line {
    fn new() -> Line {
        let position = Chess::default();
        let hashes = vec![hash(&position)];
        Line { position, moves: Vec::new(), uci: String::new(), hashes }
    }

    fn play(&mut self, mv: Move) {
        if !self.uci.is_empty() {
            self.uci.push(' ');
        }
        self.uci.push_str(&uci_move(mv));
        let san = SanPlus::from_move_and_play_unchecked(&mut self.position, mv);
        self.moves.push(Ply { san, eval: None });
        self.hashes.push(hash(&self.position));
    }

    /// White's view of a game that is over by mate, stalemate, material, the 50-move rule or repetition.
    fn ended_by_rule(&self) -> Option<GameResult> {
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

    fn movetext(&self) -> String {
        let mut text = String::with_capacity(self.moves.len() * 24);
        let mut numbered = false;
        for (ply, played) in self.moves.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = match (ply % 2, numbered) {
                (0, _) => write!(text, "{}. ", ply / 2 + 1),
                (_, true) => Ok(()),
                (_, false) => write!(text, "{}... ", ply / 2 + 1),
            };
            let _ = write!(text, "{} ", played.san);
            let _ = match played.eval {
                Some(Eval::Score(Centipawn(score))) => write!(text, "{{ [%eval {:.2}] }} ", f64::from(score) / 100.0),
                Some(Eval::Mate(moves)) => write!(text, "{{ [%eval #{moves}] }} "),
                None => Ok(()),
            };
            numbered = played.eval.is_none();
        }
        text
    }
}

fn hash(position: &Chess) -> Zobrist64 {
    position.zobrist_hash(EnPassantMode::Legal)
}

/// Watches the scores for games that are decided.
struct Judge {
    rule: Adjudication,
    leader: Option<Color>,
    won: u16,
    drawn: u16,
}

impl Judge {
    fn new(rule: Adjudication) -> Judge {
        Judge { rule, leader: None, won: 0, drawn: 0 }
    }

    /// White's view of the result, once it is clear. `eval` is White's view too.
    fn look(&mut self, eval: Eval, plies: usize) -> Option<GameResult> {
        let score = i32::from(eval.centipawns());
        let size = score.unsigned_abs();
        let leader = (size >= u32::from(self.rule.win_score)).then(|| Color::from_white(score > 0));
        self.won = if leader.is_none() {
            0
        } else if leader == self.leader {
            self.won + 1
        } else {
            1
        };
        self.leader = leader;
        let level = size <= u32::from(self.rule.draw_score) && plies >= usize::from(self.rule.draw_from);
        self.drawn = if level { self.drawn + 1 } else { 0 };
        match leader {
            Some(winner) if self.won >= self.rule.win_plies => Some(winner.fold_wb(GameResult::Win, GameResult::Loss)),
            _ => (level && self.drawn >= self.rule.draw_plies).then_some(GameResult::Draw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decided_games_end() {
        let rule = Adjudication { win_plies: 3, draw_plies: 2, draw_from: 10, ..Adjudication::default() };
        let check = |scores: &[i32], plies: usize, expected: Option<GameResult>| {
            let mut judge = Judge::new(rule);
            let looks = scores.iter().map(|score| judge.look(Eval::Score(Centipawn(*score)), plies));
            assert_eq!(looks.last().flatten(), expected, "{scores:?}");
        };
        check(&[1000, 1200, 1000], 5, Some(GameResult::Win));
        check(&[-1000, -1200, -1000], 5, Some(GameResult::Loss));
        check(&[1000, 1200, 999], 5, None);
        check(&[1000, -1200, -1000], 5, None);
        check(&[0, 0], 10, Some(GameResult::Draw));
        check(&[0, 0], 9, None);
        check(&[0, 20, 0], 10, None);
    }

    #[test]
    fn repetition_ends_the_game() {
        let mut line = Line::new();
        for uci in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8"] {
            assert_eq!(line.ended_by_rule(), None);
            let mv = uci.parse::<shakmaty::uci::UciMove>().unwrap().to_move(&line.position).unwrap();
            line.play(mv);
        }
        assert_eq!(line.ended_by_rule(), Some(GameResult::Draw));
        assert_eq!(line.uci, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
    }
}
