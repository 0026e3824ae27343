//! Iterative deepening: what a caller searches with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use shakmaty::{Move, Position};

use super::Game;
use super::history::Histories;
use super::limits::{Clock, Limits};
use super::scale::EvalScale;
use super::score::{INFINITE, MATE, MATE_FOUND, MAX_PLY, Score};
use super::table::TranspositionTable;
use super::tree::{Tree, TreeLimits};
use crate::engine::{BackEnd, EngineError, Evaluator, Model, Strategy};
use crate::features::FeatureSet;

/// What one more iteration found.
#[derive(Clone, Debug)]
pub struct Iteration {
    pub depth: u32,
    /// Deepest ply reached.
    pub seldepth: u32,
    pub score: Score,
    pub nodes: u64,
    /// Share of the table that this search filled, in thousandths.
    pub hashfull: u32,
    /// The line expected, the best move first.
    pub line: Vec<Move>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// None where the game is over.
    pub best: Option<Move>,
    /// The move expected in reply.
    pub ponder: Option<Move>,
    pub score: Score,
    /// Deepest iteration that was finished.
    pub depth: u32,
    /// Moves made.
    pub nodes: u64,
}

/// Searches games with one network; keeps its tables from move to move.
pub struct Searcher<'a> {
    evaluator: Evaluator<'a>,
    scale: EvalScale,
    table: TranspositionTable,
    histories: Histories,
    stop: Arc<AtomicBool>,
}

impl<'a> Searcher<'a> {
    /// A searcher with empty tables and a transposition table of so many megabytes.
    ///
    /// # Errors
    /// When the network was not made for the set.
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

    /// The factor between the network's units and the search's centipawns.
    #[must_use]
    pub fn scale(&self) -> EvalScale {
        self.scale
    }

    /// Set to true, it ends the search that runs and those that begin while it stays so.
    #[must_use]
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Lets the caller's own flag end searches.
    pub fn stop_with(&mut self, flag: Arc<AtomicBool>) {
        self.stop = flag;
    }

    /// Forgets what earlier searches found.
    pub fn clear(&mut self) {
        self.table.clear();
        self.histories.clear();
    }

    /// An empty transposition table of another size.
    pub fn resize(&mut self, megabytes: usize) {
        self.table = TranspositionTable::new(megabytes);
    }

    /// The network's score of a position, in the search's centipawns and side to move's view.
    pub fn evaluate(&mut self, game: &Game) -> i32 {
        self.evaluator.set(game.position().board());
        self.scale.apply(self.evaluator.score(game.position().turn()))
    }

    /// Searches the present position; `observe` sees every iteration that was finished.
    pub fn search(&mut self, game: &Game, limits: &Limits, mut observe: impl FnMut(&Iteration)) -> SearchResult {
        self.table.advance();
        self.evaluator.set(game.position().board());
        let root_moves = root_moves(game, limits);
        let Some(first) = root_moves.first().copied() else {
            let score = if game.position().is_check() { Score::Mate(0) } else { Score::Cp(0) };
            return SearchResult { best: None, ponder: None, score, depth: 0, nodes: 0 };
        };
        let tree_limits = TreeLimits { nodes: limits.nodes.unwrap_or(u64::MAX), clock: limits.clock, stop: &self.stop };
        let evaluator = &mut self.evaluator;
        let mut tree =
            Tree::new(game, &root_moves, evaluator, self.scale, &mut self.table, &mut self.histories, tree_limits);
        let mut result = SearchResult { best: Some(first), ponder: None, score: Score::Cp(0), depth: 0, nodes: 0 };
        let deepest = limits.depth.unwrap_or(MAX_PLY as u32 - 1).clamp(1, MAX_PLY as u32 - 1);
        let mut value = 0;
        for depth in 1..=deepest {
            let Some(found) = aspirate(&mut tree, depth as i32, value) else { break };
            value = found;
            let line = tree.line().to_vec();
            result.best = line.first().copied().or(result.best);
            result.ponder = line.get(1).copied();
            (result.score, result.depth) = (Score::of(value), depth);
            let (nodes, hashfull, seldepth) = (tree.nodes(), tree.fullness(), tree.seldepth());
            observe(&Iteration { depth, seldepth, score: result.score, nodes, hashfull, line });
            if is_enough(limits, value, nodes) {
                break;
            }
        }
        // An iteration that was cut off may have found a better move already.
        if let Some(best) = tree.interrupted_best() {
            result.best = Some(best);
            result.ponder = None;
        }
        result.nodes = tree.nodes();
        result
    }
}

/// The legal moves to choose from.
fn root_moves(game: &Game, limits: &Limits) -> Vec<Move> {
    let wanted = |mv: &Move| limits.search_moves.is_empty() || limits.search_moves.contains(mv);
    game.position().legal_moves().into_iter().filter(wanted).collect()
}

/// One iteration: a narrow window around the last value, widened where the value falls outside. None when interrupted.
fn aspirate(tree: &mut Tree<'_, '_>, depth: i32, last: i32) -> Option<i32> {
    const FIRST_WIDTH: i32 = 20;
    const LEAST_DEPTH: i32 = 5;
    let mut width = FIRST_WIDTH;
    let (mut alpha, mut beta) = (-INFINITE, INFINITE);
    if depth >= LEAST_DEPTH {
        (alpha, beta) = ((last - width).max(-INFINITE), (last + width).min(INFINITE));
    }
    loop {
        let value = tree.root(depth, alpha, beta)?;
        if value <= alpha && alpha > -INFINITE {
            beta = i32::midpoint(alpha, beta);
            alpha = (value - width).max(-INFINITE);
        } else if value >= beta && beta < INFINITE {
            beta = (value + width).min(INFINITE);
        } else {
            return Some(value);
        }
        width *= 2;
        if width > 800 {
            (alpha, beta) = (-INFINITE, INFINITE);
        }
    }
}

/// Whether no further iteration is wanted.
fn is_enough(limits: &Limits, value: i32, nodes: u64) -> bool {
    let mated = limits.mate.is_some_and(|moves| value >= MATE_FOUND && MATE - value < 2 * moves as i32);
    let late = |clock: &Clock| Instant::now().duration_since(clock.start) >= clock.soft;
    mated
        || limits.soft_nodes.is_some_and(|most| nodes >= most)
        || limits.nodes.is_some_and(|most| nodes >= most)
        || limits.clock.as_ref().is_some_and(late)
}
