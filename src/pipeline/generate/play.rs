//! One game between engines.

use rand::RngExt;
use shakmaty::{Chess, Color, Position};

use super::book::Book;
use super::finished_game::FinishedGame;
use super::game_state::{GameState, PlayedPly, any_move};
use super::{Adjudication, GenerateError, GenerateSettings, Pairing};
use crate::data::{Eval, GameResult};
use crate::pipeline::uci::{Engine, EngineSpec, UciError};

/// The running engines of one worker, by number; each is started when it first plays.
pub struct Players<'a> {
    pub specs: &'a [EngineSpec],
    pub answer_timeout: std::time::Duration,
    pub engines: Vec<Option<Engine>>,
}

impl Players<'_> {
    fn get(&mut self, number: usize) -> Result<&mut Engine, UciError> {
        let place = &mut self.engines[number];
        match place {
            Some(engine) => Ok(engine),
            None => Ok(place.insert(Engine::start(&self.specs[number], self.answer_timeout)?)),
        }
    }

    /// Ends all engines.
    pub fn dismiss(&mut self) {
        self.engines.iter_mut().for_each(|engine| *engine = None);
    }
}

/// Why a game came to no end.
pub enum Failure {
    /// It may do better the next time.
    Engine(UciError),
    Other(GenerateError),
}

impl From<UciError> for Failure {
    fn from(error: UciError) -> Failure {
        Failure::Engine(error)
    }
}

/// Plays game `number`; the same game every time.
pub fn game(
    players: &mut Players,
    settings: &GenerateSettings,
    book: Option<&Book>,
    number: u32,
) -> Result<FinishedGame, Failure> {
    let Pairing { white, black, encounter } = Pairing::of(number, players.specs.len());
    let mut rng = settings.seed.stream("self-play", encounter);
    let (start, moves) = match (book, &settings.book) {
        (Some(book), Some(spec)) => book.opening(encounter, spec.order, settings.seed).map_err(Failure::Other)?,
        _ => (Chess::default(), Vec::new()),
    };
    let mut line = GameState::new(start);
    moves.into_iter().for_each(|mv| line.play(mv, None));
    let (fewest, most) = settings.random_plies;
    let random_plies = rng.random_range(fewest..=most);
    line.play_at_random(random_plies, &mut rng);
    players.get(white)?.new_game()?;
    if black != white {
        players.get(black)?.new_game()?;
    }
    let mut judge = Judge::new(settings.adjudication);
    let result = loop {
        if let Some(result) = line.ended_by_rule() {
            break result;
        }
        let plies = line.plies.len();
        if plies >= usize::from(settings.adjudication.max_plies) {
            break GameResult::Draw;
        }
        let turn = line.position.turn();
        let engine = players.get(turn.fold_wb(white, black))?;
        let answer = engine.search(&line.fen, &line.uci, &line.position, settings.limit)?;
        if let Some(result) = judge.look(turn.fold_wb(answer.eval, answer.eval.reversed()), plies) {
            line.plies.push(PlayedPly { mv: None, search: Some(answer) });
            break result;
        }
        let may_be_random = settings.random_move_until.is_none_or(|until| plies < usize::from(until));
        let random = may_be_random && rng.random_bool(settings.random_move_rate);
        let mv = if random { any_move(&line.position, &mut rng) } else { None };
        line.play(mv.unwrap_or(answer.best), Some(answer));
    };
    let GameState { start, plies, .. } = line;
    Ok(FinishedGame { number, white, black, start, plies, result })
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
    use crate::units::Centipawn;

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
}
