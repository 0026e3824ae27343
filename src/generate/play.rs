//! Plays one game between engines.

use rand::RngExt;
use shakmaty::{Chess, Color, Position};

use super::GenerateError;
use super::finished_game::{FinishedGame, PlayedPly};
use super::random_moves::play_random_moves;
use crate::chess::random_move;
use crate::data::{Eval, GameResult};
use crate::pipeline::generation::{GenerateAdjudication, GenerateSettings};
use crate::pipeline::uci::{Engine, EngineSpec, UciError};
use crate::play::{Book, GameLine, Pairing};

/// The engines of one worker, by number; each is started before its first game.
pub struct Players<'a> {
    pub specs: &'a [EngineSpec],
    pub answer_timeout: std::time::Duration,
    pub engines: Vec<Option<Engine>>,
}

impl Players<'_> {
    fn engine(&mut self, number: usize) -> Result<&mut Engine, PlayError> {
        let running = &mut self.engines[number];
        match running {
            Some(engine) => Ok(engine),
            None => {
                let engine = Engine::start(&self.specs[number], self.answer_timeout).map_err(PlayError::Start)?;
                Ok(running.insert(engine))
            }
        }
    }

    fn new_game(&mut self, number: usize) -> Result<(), PlayError> {
        self.engine(number)?.new_game().map_err(|error| PlayError::Fault { engine: number, error })
    }

    pub fn stop_engines(&mut self) {
        self.engines.iter_mut().for_each(|engine| *engine = None);
    }
}

/// Why a game was not finished.
pub enum PlayError {
    /// The engine of this number failed.
    Fault {
        engine: usize,
        error: UciError,
    },
    /// An engine could not be started.
    Start(UciError),
    Other(GenerateError),
}

/// Plays game `number`, which has the same moves every time.
pub fn play_game(
    players: &mut Players,
    settings: &GenerateSettings,
    book: Option<&Book>,
    number: u32,
) -> Result<FinishedGame, PlayError> {
    let Pairing { white, black, encounter } = Pairing::of(number, players.specs.len());
    let mut rng = settings.seed.stream("self-play", encounter);
    let (start, moves) = match (book, &settings.book) {
        (Some(book), Some(spec)) => {
            book.opening(encounter, spec.order, settings.seed).map_err(|error| PlayError::Other(error.into()))?
        }
        _ => (Chess::default(), Vec::new()),
    };
    let mut game = GameLine::new(start);
    moves.into_iter().for_each(|mv| game.play(mv, PlayedPly { mv: Some(mv), search: None }));
    let (min_plies, max_plies) = settings.random_plies;
    let random_plies = rng.random_range(min_plies..=max_plies);
    play_random_moves(&mut game, random_plies, &mut rng);
    players.new_game(white)?;
    if black != white {
        players.new_game(black)?;
    }
    let mut adjudicator = Adjudicator::new(settings.adjudication);
    let result = loop {
        if let Some(result) = game.result_by_rule() {
            break result;
        }
        let plies = game.plies.len();
        if plies >= usize::from(settings.adjudication.max_plies) {
            break GameResult::Draw;
        }
        let turn = game.position().turn();
        let engine = turn.fold_wb(white, black);
        let answer = players.engine(engine)?.search(&game.uci, game.position(), settings.limit);
        let answer = answer.map_err(|error| PlayError::Fault { engine, error })?;
        if let Some(result) = adjudicator.add_score(turn.fold_wb(answer.eval, answer.eval.reversed()), plies) {
            game.plies.push(PlayedPly { mv: None, search: Some(answer) });
            break result;
        }
        let may_be_random = settings.random_move_until.is_none_or(|until| plies < usize::from(until));
        let is_random = may_be_random && rng.random_bool(settings.random_move_rate);
        let random = if is_random { random_move(game.position(), &mut rng) } else { None };
        let mv = random.unwrap_or(answer.best);
        game.play(mv, PlayedPly { mv: Some(mv), search: Some(answer) });
    };
    let GameLine { start, plies, .. } = game;
    Ok(FinishedGame { number, white, black, start, plies, result })
}

/// Ends games that the scores show to be decided.
struct Adjudicator {
    rules: GenerateAdjudication,
    leader: Option<Color>,
    /// Consecutive scores that count as won for `leader`, and as drawn.
    won_plies: u16,
    drawn_plies: u16,
}

impl Adjudicator {
    fn new(rules: GenerateAdjudication) -> Adjudicator {
        Adjudicator { rules, leader: None, won_plies: 0, drawn_plies: 0 }
    }

    /// Adds the score after `plies`, White's view; returns White's result once the game is decided.
    fn add_score(&mut self, eval: Eval, plies: usize) -> Option<GameResult> {
        let score = i32::from(eval.centipawns());
        let magnitude = score.unsigned_abs();
        let leader = (magnitude >= u32::from(self.rules.win_score)).then(|| Color::from_white(score > 0));
        self.won_plies = if leader.is_none() {
            0
        } else if leader == self.leader {
            self.won_plies + 1
        } else {
            1
        };
        self.leader = leader;
        let is_drawn = magnitude <= u32::from(self.rules.draw_score) && plies >= usize::from(self.rules.draw_from);
        self.drawn_plies = if is_drawn { self.drawn_plies + 1 } else { 0 };
        match leader {
            Some(winner) if self.won_plies >= self.rules.win_plies => {
                Some(winner.fold_wb(GameResult::Win, GameResult::Loss))
            }
            _ => (is_drawn && self.drawn_plies >= self.rules.draw_plies).then_some(GameResult::Draw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Centipawn;

    #[test]
    fn decided_games_end() {
        let rules =
            GenerateAdjudication { win_plies: 3, draw_plies: 2, draw_from: 10, ..GenerateAdjudication::default() };
        let check = |scores: &[i32], plies: usize, expected: Option<GameResult>| {
            let mut adjudicator = Adjudicator::new(rules);
            let results = scores.iter().map(|score| adjudicator.add_score(Eval::Score(Centipawn(*score)), plies));
            assert_eq!(results.last().flatten(), expected, "{scores:?}");
        };
        check(&[1000, 1200, 1000], 5, Some(GameResult::Win));
        check(&[-1000, -1200, -1000], 5, Some(GameResult::Loss));
        check(&[1000, 1200, 999], 5, None);
        check(&[1000, -1200, -1000], 5, None);
        check(&[0, 0], 10, Some(GameResult::Draw));
        check(&[0, 0], 9, None);
        check(&[0, 20, 0], 10, None);
    }
}
