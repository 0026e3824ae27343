//! The loop that plays one game.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use shakmaty::{Move, Position};

use super::PlayError;
use super::adjudication::{AdjudicationRules, Adjudicator};
use super::game::{Forfeit, GameMove, PlayedGame, Termination};
use super::game_line::GameLine;
use super::limit::{GameClock, MoveLimit};
use super::seats::Seats;
use crate::chess::random_move;
use crate::data::GameResult;
use crate::pipeline::uci::UciError;

/// How games are played.
#[derive(Copy, Clone, Debug)]
pub struct GameRules {
    pub limit: MoveLimit,
    pub adjudication: AdjudicationRules,
    /// Whether an answer without a score is an engine's fault.
    pub needs_score: bool,
    /// The game ends with its first search where the opening's score lies beyond ± this, in centipawns.
    pub opening_bound: Option<u16>,
}

/// A game before its first search.
pub struct GameStart {
    /// The players' numbers.
    pub white: usize,
    pub black: usize,
    /// The start position and the moves of the opening.
    pub line: GameLine,
    pub random_moves: Option<RandomMoves>,
}

/// Random moves now and then in place of the players' own.
pub struct RandomMoves {
    pub rng: ChaCha8Rng,
    /// Probability of a random move.
    pub rate: f64,
    /// No move is random from this ply on, counted from the game's start position.
    pub until: Option<u16>,
}

impl RandomMoves {
    /// The random move to play in the position that `line` has reached, if its move is to be one.
    fn draw(&mut self, line: &GameLine) -> Option<Move> {
        let is_early = self.until.is_none_or(|until| line.moves.len() < usize::from(until));
        if is_early && self.rng.random_bool(self.rate) { random_move(line.position(), &mut self.rng) } else { None }
    }
}

/// A game that was played to its end, or to a forfeit.
pub(super) struct Played {
    pub(super) game: PlayedGame,
    /// The engine's error that the loser forfeits it by.
    pub(super) fault: Option<UciError>,
}

/// Plays game `number` between players that are ready.
pub(super) fn play_game(
    number: u64,
    start: GameStart,
    rules: &GameRules,
    seats: &mut Seats<'_>,
) -> Result<Played, PlayError> {
    let GameStart { white, black, mut line, mut random_moves } = start;
    let mut clock = GameClock::new(rules.limit);
    let mut adjudicator = Adjudicator::new(rules.adjudication);
    let mut fault = None;
    let mut opening_bound = rules.opening_bound;
    let (result, termination) = loop {
        if let Some(result) = line.result_by_rule() {
            break (result, Termination::Rules);
        }
        if adjudicator.is_too_long(line.moves.len()) {
            break (GameResult::Draw, Termination::Adjudication);
        }
        let turn = line.position().turn();
        let player = turn.fold_wb(white, black);
        let lost = turn.fold_wb(GameResult::Loss, GameResult::Win);
        let limit = clock.search_limit(seats.nodes(player));
        let search = match seats.search(player, &line, limit, rules.needs_score) {
            Ok(search) => search,
            Err(PlayError::Engine { error, .. }) if error.fault().is_some() => {
                seats.clear(player);
                fault = Some(*error);
                break (lost, Termination::Forfeit);
            }
            Err(error) => return Err(error),
        };
        if clock.is_exceeded(turn.fold_wb(0, 1), search.time) {
            break (lost, Termination::Time);
        }
        if let (Some(bound), Some(eval)) = (opening_bound.take(), search.eval)
            && eval.centipawns().unsigned_abs() > bound
        {
            break (GameResult::Draw, Termination::Opening);
        }
        let adjudicated = adjudicator.observe(&line, search.eval, search.best.is_zeroing());
        // An adjudicated game ends with the best move.
        let random = match &mut random_moves {
            Some(random_moves) if adjudicated.is_none() => random_moves.draw(&line),
            _ => None,
        };
        line.play(GameMove { mv: random.unwrap_or(search.best), search: Some(search) });
        // Mate and stalemate on the board count before the players' scores.
        if let Some(result) = adjudicated
            && line.result_by_rule().is_none()
        {
            break (result, Termination::Adjudication);
        }
    };
    let GameLine { start, moves, .. } = line;
    let forfeit = fault.as_ref().and_then(Forfeit::of);
    Ok(Played { game: PlayedGame { number, white, black, start, moves, result, termination, forfeit }, fault })
}
