//! Iterative deepening with aspiration windows: the public interface of the search.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use shakmaty::{Move, Position};

use super::Game;
use super::eval_scale::EvalScale;
use super::history::Histories;
use super::limits::{Clock, Limits};
use super::node::{AlphaBeta, RootLine, StopConditions};
use super::score::{INFINITE, MATE, MATE_FOUND, MAX_PLY, Score};
use super::transposition::TranspositionTable;
use crate::engine::{BackEnd, EngineError, Evaluator, Model, Strategy};
use crate::features::FeatureSet;

/// Result of one iteration.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// 0 where not even the first iteration was finished.
    pub depth: u32,
    /// Deepest ply reached.
    pub seldepth: u32,
    pub score: Score,
    pub nodes: u64,
    /// Share of the transposition table filled by this search, in thousandths.
    pub hashfull: u32,
    /// The principal variation; the best move is first. Empty if the game is over.
    pub line: Vec<Move>,
}

/// Result of a search.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// `None` if the game is over.
    pub best: Option<Move>,
    /// The expected reply.
    pub ponder: Option<Move>,
    /// The best move's; the network's score of the position where no move has one yet.
    pub score: Score,
    /// Depth of the last finished iteration; 0 without one.
    pub depth: u32,
    /// Moves made.
    pub nodes: u64,
}

impl SearchResult {
    fn set_line(&mut self, line: &[Move], value: i32) {
        self.best = line.first().copied().or(self.best);
        self.ponder = line.get(1).copied();
        self.score = Score::of(value);
    }
}

/// Searches games with one network. Keeps its tables from move to move.
pub struct Searcher<'a> {
    evaluator: Evaluator<'a>,
    scale: EvalScale,
    table: TranspositionTable,
    histories: Histories,
    /// Nothing is passed on by it: its accesses are relaxed.
    stop: Arc<AtomicBool>,
}

impl<'a> Searcher<'a> {
    /// A searcher with empty tables. `megabytes`: size of the transposition table.
    ///
    /// # Errors
    /// When the network was made for another feature set.
    pub fn new(
        set: &'a FeatureSet,
        model: &'a Model,
        back_end: BackEnd,
        megabytes: usize,
    ) -> Result<Searcher<'a>, EngineError> {
        let mut evaluator = Evaluator::new(set, model, Strategy::LazyCached, back_end)?;
        let scale = EvalScale::of(&mut evaluator);
        let table = TranspositionTable::new(megabytes);
        Ok(Searcher { evaluator, scale, table, histories: Histories::new(), stop: Arc::default() })
    }

    /// The factor from the network's internal units to the search's centipawns.
    #[must_use]
    pub fn scale(&self) -> EvalScale {
        self.scale
    }

    /// The stop flag: while it is true, running and new searches end at once.
    #[must_use]
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Replaces the stop flag.
    pub fn set_stop_flag(&mut self, flag: Arc<AtomicBool>) {
        self.stop = flag;
    }

    /// Empties the transposition table and the histories.
    pub fn clear(&mut self) {
        self.table.clear();
        self.histories.clear();
    }

    /// Replaces the transposition table by an empty one of another size.
    pub fn resize(&mut self, megabytes: usize) {
        self.table = TranspositionTable::new(megabytes);
    }

    /// Moves whose features the network's evaluator has found so far ([`Evaluator::moves_followed`]).
    #[must_use]
    pub fn moves_followed(&self) -> f64 {
        self.evaluator.moves_followed()
    }

    /// The network's score of the game's position, in the search's centipawns, from the side to move's view.
    pub fn evaluate(&mut self, game: &Game) -> i32 {
        self.evaluator.set(game.position().board());
        self.scale.apply(self.evaluator.score(game.position().turn()))
    }

    /// Counts the lines of `depth` legal moves from the game's current position, with the moves of the search. `None`
    /// if the stop flag interrupts it.
    pub fn perft(&mut self, game: &Game, depth: u32) -> Option<u64> {
        self.evaluator.set(game.position().board());
        let conditions = StopConditions { nodes: u64::MAX, clock: None, stop: &self.stop };
        let evaluator = &mut self.evaluator;
        let table = &mut self.table;
        let histories = &mut self.histories;
        let mut search = AlphaBeta::new(game, &[], evaluator, self.scale, table, histories, conditions);
        search.perft(game.position(), game.keys().last().copied().unwrap_or_default(), depth)
    }

    /// Searches the game's current position. `observe` is called with every finished iteration; without one, at the end
    /// with depth 0, so that there is always a score.
    pub fn search(&mut self, game: &Game, limits: &Limits, mut observe: impl FnMut(&Iteration)) -> SearchResult {
        self.table.advance_age();
        self.evaluator.set(game.position().board());
        let root_moves = root_moves(game, limits);
        let Some(first) = root_moves.first().copied() else {
            let score = if game.position().is_check() { Score::Mate(0) } else { Score::Cp(0) };
            observe(&Iteration { depth: 0, seldepth: 0, score, nodes: 0, hashfull: 0, line: Vec::new() });
            return SearchResult { best: None, ponder: None, score, depth: 0, nodes: 0 };
        };
        let nodes = limits.nodes.unwrap_or(u64::MAX);
        let conditions = StopConditions { nodes, clock: limits.clock, stop: &self.stop };
        let evaluator = &mut self.evaluator;
        let table = &mut self.table;
        let histories = &mut self.histories;
        let mut search = AlphaBeta::new(game, &root_moves, evaluator, self.scale, table, histories, conditions);
        let mut result = SearchResult { best: Some(first), ponder: None, score: Score::Cp(0), depth: 0, nodes: 0 };
        let mut has_score = false;
        let deepest = limits.depth.unwrap_or(MAX_PLY as u32 - 1).clamp(1, MAX_PLY as u32 - 1);
        let mut value = 0;
        for depth in 1..=deepest {
            search.begin_iteration(depth as i32);
            let Some(new_value) = search_iteration(&mut search, depth as i32, value) else {
                // An interrupted iteration may have found a better move already.
                if let Some(RootLine { line, value }) = search.take_raised_alpha() {
                    result.set_line(&line, value);
                    has_score = true;
                }
                break;
            };
            value = new_value;
            has_score = true;
            let line = search.principal_variation().to_vec();
            result.set_line(&line, value);
            result.depth = depth;
            let nodes = search.nodes();
            let hashfull = search.hashfull();
            let seldepth = search.seldepth();
            observe(&Iteration { depth, seldepth, score: result.score, nodes, hashfull, line });
            if is_limit_reached(limits, value, nodes) {
                break;
            }
        }
        result.nodes = search.nodes();
        let seldepth = search.seldepth();
        let hashfull = search.hashfull();
        if !has_score {
            result.score = Score::Cp(self.evaluate(game));
        }
        if result.depth == 0 {
            let line = result.best.into_iter().chain(result.ponder).collect();
            let SearchResult { score, nodes, .. } = result;
            observe(&Iteration { depth: 0, seldepth, score, nodes, hashfull, line });
        }
        result
    }
}

/// The legal moves, restricted to the limits' search moves if there are any.
fn root_moves(game: &Game, limits: &Limits) -> Vec<Move> {
    let wanted = |mv: &Move| limits.search_moves.is_empty() || limits.search_moves.contains(mv);
    game.position().legal_moves().into_iter().filter(wanted).collect()
}

/// One iteration with an aspiration window around the previous value, widened while the value falls outside. `None`
/// when interrupted.
fn search_iteration(search: &mut AlphaBeta<'_, '_>, depth: i32, previous: i32) -> Option<i32> {
    const FIRST_WIDTH: i32 = 20;
    const LARGEST_WIDTH: i32 = 800;
    const FIRST_DEPTH: i32 = 5;
    let mut width = FIRST_WIDTH;
    let mut alpha = -INFINITE;
    let mut beta = INFINITE;
    if depth >= FIRST_DEPTH {
        alpha = (previous - width).max(-INFINITE);
        beta = (previous + width).min(INFINITE);
    }
    loop {
        let value = search.search_root(alpha, beta)?;
        if value <= alpha && alpha > -INFINITE {
            beta = i32::midpoint(alpha, beta);
            alpha = (value - width).max(-INFINITE);
        } else if value >= beta && beta < INFINITE {
            beta = (value + width).min(INFINITE);
        } else {
            return Some(value);
        }
        width *= 2;
        if width > LARGEST_WIDTH {
            alpha = -INFINITE;
            beta = INFINITE;
        }
    }
}

/// Whether a limit forbids another iteration.
fn is_limit_reached(limits: &Limits, value: i32, nodes: u64) -> bool {
    let mate_found =
        limits.mate.is_some_and(|moves| value >= MATE_FOUND && i64::from(MATE - value) < 2 * i64::from(moves));
    let soft_limit_passed = |clock: &Clock| Instant::now().duration_since(clock.start) >= clock.soft;
    mate_found
        || limits.soft_nodes.is_some_and(|most| nodes >= most)
        || limits.nodes.is_some_and(|most| nodes >= most)
        || limits.clock.as_ref().is_some_and(soft_limit_passed)
}
