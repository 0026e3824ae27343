//! Principal variation search with a transposition table: one iteration, and the steps of a node before its moves.
//!
//! [`super::move_loop`] searches the moves of a node, [`super::quiescence`] the captures below the depth limit. Margins
//! are in centipawns of [`super::EvalScale`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use shakmaty::{Bitboard, Chess, Color, Move, Position};

use super::Game;
use super::correction::CorrectionKeys;
use super::eval_scale::EvalScale;
use super::history::{CONTINUATIONS, Histories, PieceTo};
use super::limits::{Clock, NODES_PER_TIME_CHECK};
use super::move_picker::MoveStack;
use super::score::{MATE, MAX_PLY, NO_EVAL};
use super::transposition::{TableEntry, TranspositionTable};

use crate::chess::{BoardChange, PackedMove, key_after, key_after_pieces};
use crate::engine::Evaluator;

/// Halfmove clock from which stored values no longer cut: the table does not know the clock.
pub(super) const NEAR_FIFTY_MOVES: u32 = 90;

/// A position to search, with its alpha-beta window.
#[derive(Copy, Clone)]
pub(super) struct Node<'p> {
    pub(super) position: &'p Chess,
    /// Zobrist key of the position.
    pub(super) key: u64,
    /// Plies from the root.
    pub(super) ply: usize,
    pub(super) alpha: i32,
    pub(super) beta: i32,
}

impl Node<'_> {
    /// Whether the node is on a principal variation: its window is open.
    pub(super) fn is_pv(self) -> bool {
        self.beta - self.alpha > 1
    }
}

/// Facts about a node that are known before its moves are searched.
pub(super) struct NodeFacts {
    pub(super) is_pv: bool,
    /// Whether a beta cutoff is expected.
    pub(super) cut_node: bool,
    pub(super) in_check: bool,
    /// Whether the static evaluation is better than two plies ago.
    pub(super) improving: bool,
    /// Whether the node is or was on a principal variation.
    pub(super) was_pv: bool,
    /// The network's score; [`NO_EVAL`] in check.
    pub(super) raw_eval: i32,
    /// Corrected static evaluation; [`NO_EVAL`] in check.
    pub(super) eval: i32,
    /// Where the corrections of the evaluation are kept; `None` in check.
    pub(super) correction_keys: Option<CorrectionKeys>,
    /// Whether the table's move is a capture or promotion.
    pub(super) table_move_is_noisy: bool,
    /// The position's entry in the transposition table.
    pub(super) entry: Option<TableEntry>,
}

/// One ply of the search stack.
#[derive(Copy, Clone)]
pub(super) struct StackEntry {
    /// Static evaluation; [`NO_EVAL`] in check.
    pub(super) eval: i32,
    /// The move made at this ply; `None` for a null move.
    pub(super) made: Option<PieceTo>,
    /// The move made at this ply, if it is quiet.
    pub(super) quiet: Option<Move>,
    /// Number of moves searched before it.
    pub(super) searched: i32,
    /// Beta cutoffs at this ply since the node two plies before it began.
    pub(super) cutoffs: i32,
    /// Double extensions on the line to this ply.
    pub(super) double_extensions: i32,
    pub(super) killers: [PackedMove; 2],
    /// The move that a singular search leaves out.
    pub(super) excluded: PackedMove,
}

impl StackEntry {
    const EMPTY: StackEntry = StackEntry {
        eval: NO_EVAL,
        made: None,
        quiet: None,
        searched: 0,
        cutoffs: 0,
        double_extensions: 0,
        killers: [PackedMove::NONE; 2],
        excluded: PackedMove::NONE,
    };
}

/// Conditions that interrupt a search.
pub(super) struct StopConditions<'s> {
    pub(super) nodes: u64,
    pub(super) clock: Option<Clock>,
    pub(super) stop: &'s AtomicBool,
}

/// The state of a search from one root position. A method that returns `None` was interrupted.
pub(super) struct AlphaBeta<'s, 'n> {
    root: Chess,
    pub(super) root_moves: &'s [Move],
    pub(super) evaluator: &'s mut Evaluator<'n>,
    scale: EvalScale,
    pub(super) table: &'s mut TranspositionTable,
    pub(super) histories: &'s mut Histories,
    conditions: StopConditions<'s>,
    nodes: u64,
    seldepth: usize,
    /// Keys of the game's positions, then of the current line; the current position's is last.
    pub(super) keys: Vec<u64>,
    /// How many of the keys are the game's.
    game_keys: usize,
    /// Index of the first key after the last null move: repetitions do not reach across it.
    pub(super) repetition_start: usize,
    pub(super) stack: [StackEntry; MAX_PLY + 2],
    pub(super) move_stack: MoveStack,
    /// The best line from each ply.
    lines: Vec<Vec<Move>>,
    /// Depth of the iteration.
    root_depth: usize,
    /// The last root move of this iteration that raised alpha.
    pub(super) raised_alpha: Option<RootLine>,
}

/// A root move's line and value.
pub(super) struct RootLine {
    pub(super) line: Vec<Move>,
    pub(super) value: i32,
}

impl<'s, 'n> AlphaBeta<'s, 'n> {
    pub(super) fn new(
        game: &Game,
        root_moves: &'s [Move],
        evaluator: &'s mut Evaluator<'n>,
        scale: EvalScale,
        table: &'s mut TranspositionTable,
        histories: &'s mut Histories,
        conditions: StopConditions<'s>,
    ) -> AlphaBeta<'s, 'n> {
        AlphaBeta {
            root: game.position().clone(),
            root_moves,
            evaluator,
            scale,
            table,
            histories,
            conditions,
            nodes: 0,
            seldepth: 0,
            keys: game.keys().to_vec(),
            game_keys: game.keys().len(),
            repetition_start: 0,
            stack: [StackEntry::EMPTY; MAX_PLY + 2],
            move_stack: MoveStack::default(),
            lines: vec![Vec::new(); MAX_PLY + 1],
            root_depth: 0,
            raised_alpha: None,
        }
    }

    pub(super) fn nodes(&self) -> u64 {
        self.nodes
    }

    pub(super) fn seldepth(&self) -> u32 {
        self.seldepth as u32
    }

    pub(super) fn hashfull(&self) -> u32 {
        self.table.hashfull()
    }

    /// The best line of the last finished iteration.
    pub(super) fn principal_variation(&self) -> &[Move] {
        &self.lines[0]
    }

    /// The best root move of an unfinished iteration, if a move has raised alpha.
    pub(super) fn take_raised_alpha(&mut self) -> Option<RootLine> {
        self.raised_alpha.take()
    }

    /// Begins the iteration of this depth.
    pub(super) fn begin_iteration(&mut self, depth: i32) {
        self.root_depth = depth as usize;
        self.raised_alpha = None;
    }

    /// Searches the root to the iteration's depth within a window.
    pub(super) fn search_root(&mut self, alpha: i32, beta: i32) -> Option<i32> {
        self.seldepth = 0;
        self.stack[..2].iter_mut().for_each(|entry| entry.cutoffs = 0);
        let root = self.root.clone();
        let key = self.keys.last().copied().unwrap_or_default();
        self.search(Node { position: &root, key, ply: 0, alpha, beta }, self.root_depth as i32, false)
    }

    /// Double extensions on the line to this ply.
    pub(super) fn double_extensions(&self, ply: usize) -> i32 {
        if ply == 0 { 0 } else { self.stack[ply - 1].double_extensions }
    }

    /// Whether a line may be extended: extensions at most double its depth.
    pub(super) fn may_extend(&self, ply: usize) -> bool {
        ply < 2 * self.root_depth
    }

    /// The value of a node: exact within the window, a bound outside. `cut_node`: a beta cutoff is expected.
    pub(super) fn search(&mut self, mut node: Node<'_>, depth: i32, cut_node: bool) -> Option<i32> {
        let Node { position, key, ply, .. } = node;
        let is_root = ply == 0;
        let is_pv = node.is_pv();
        self.clear_line(ply);
        let in_check = position.is_check();
        // Check extension.
        let mut depth = depth + i32::from(in_check && !is_root && self.may_extend(ply));
        if depth <= 0 {
            return self.quiescence(node);
        }
        self.update_seldepth(ply);
        if !is_root {
            if self.is_draw(position) {
                return Some(0);
            }
            if ply >= MAX_PLY - 1 {
                return Some(if in_check { 0 } else { self.evaluate(position.turn()) });
            }
            // Mate distance pruning: a shorter mate is already known.
            node.alpha = node.alpha.max(-MATE + ply as i32);
            node.beta = node.beta.min(MATE - ply as i32 - 1);
            if node.alpha >= node.beta {
                return Some(node.alpha);
            }
        }
        let is_singular_search = self.stack[ply].excluded.is_some();
        let entry = if is_singular_search { None } else { self.table.probe(key) };
        if let Some(entry) = entry
            && !is_pv
            && entry.depth >= depth
            && position.halfmoves() < NEAR_FIFTY_MOVES
            && let Some(value) = entry.cutoff(node)
        {
            if value >= node.beta {
                self.reward_table_move(node, depth, &entry);
            }
            return Some(value);
        }
        let facts = self.facts(node, cut_node, in_check, entry);
        self.stack[ply + 1].killers = [PackedMove::NONE; 2];
        self.stack[ply + 2].cutoffs = 0;
        self.stack[ply].double_extensions = self.double_extensions(ply);
        if !is_pv
            && !in_check
            && !is_singular_search
            && let Some(value) = self.prune_node(node, depth, &facts)?
        {
            return Some(value);
        }
        // Internal iterative reduction: without a table move, a shallower search comes first.
        let has_table_move = entry.is_some_and(|entry| entry.mv.is_some());
        if depth >= 4 && !is_singular_search && !has_table_move && (is_pv || cut_node) {
            depth -= 1;
        }
        let mut picker = self.move_picker(node, &facts);
        let value = self.search_moves(node, depth, &facts, &mut picker);
        picker.finish(&mut self.move_stack);
        value
    }

    /// Evaluates the position, unless the table knows the evaluation, and collects the other facts.
    fn facts(&mut self, node: Node<'_>, cut_node: bool, in_check: bool, entry: Option<TableEntry>) -> NodeFacts {
        let Node { position, ply, .. } = node;
        let is_singular_search = self.stack[ply].excluded.is_some();
        let raw_eval = match entry {
            _ if in_check || is_singular_search => NO_EVAL,
            Some(entry) if entry.eval != NO_EVAL => entry.eval,
            _ => self.evaluate(position.turn()),
        };
        let correction_keys = (!in_check && !is_singular_search).then(|| self.correction_keys(node));
        let eval = match &correction_keys {
            Some(keys) => self.histories.corrections.apply(raw_eval, keys),
            None if in_check => NO_EVAL,
            // Evaluated before this search of the same position.
            None => self.stack[ply].eval,
        };
        self.stack[ply].eval = eval;
        let is_noisy = |entry: TableEntry| entry.mv.is_some() && entry.mv.quiet_move(position).is_none();
        NodeFacts {
            is_pv: node.is_pv(),
            was_pv: node.is_pv() || entry.is_some_and(|entry| entry.was_pv),
            cut_node,
            in_check,
            improving: !in_check && self.is_improving(ply, eval),
            raw_eval,
            eval,
            correction_keys,
            entry,
            table_move_is_noisy: entry.is_some_and(is_noisy),
        }
    }

    pub(super) fn correction_keys(&self, node: Node<'_>) -> CorrectionKeys {
        let [last, before, _] = self.earlier_moves(node.ply);
        CorrectionKeys::of(node.position, [last, before])
    }

    fn is_improving(&self, ply: usize, eval: i32) -> bool {
        let eval_before =
            |plies: usize| ply.checked_sub(plies).map(|at| self.stack[at].eval).filter(|eval| *eval != NO_EVAL);
        eval_before(2).or_else(|| eval_before(4)).is_none_or(|before| eval > before)
    }

    /// Prefetches the table's entries of the position after a move. Memory takes longer than making the move, so that
    /// this comes before it is decided whether the move is searched, and the key ignores castling and en passant.
    pub(super) fn prefetch_after(&self, node: Node<'_>, mv: Move) {
        self.table.prefetch(key_after_pieces(node.key, &BoardChange::of(mv, node.position.turn())));
    }

    /// Counts a move, makes it and returns the position after it with its key.
    pub(super) fn make(&mut self, before: &Chess, key: u64, mv: Move) -> Option<(Chess, u64)> {
        if self.nodes >= self.conditions.nodes {
            return None;
        }
        // The first moves are searched in any case, so that there is a move to play.
        if self.nodes > 0 && self.nodes.is_multiple_of(NODES_PER_TIME_CHECK) && self.is_stopped() {
            return None;
        }
        self.nodes += 1;
        let change = BoardChange::of(mv, before.turn());
        let mut after = before.clone();
        after.play_unchecked(mv);
        let key = key_after(key, before, &change, &after);
        self.evaluator.play(&change);
        self.keys.push(key);
        Some((after, key))
    }

    pub(super) fn unmake(&mut self) {
        self.keys.pop();
        self.evaluator.undo();
    }

    fn is_stopped(&self) -> bool {
        let StopConditions { stop, clock, .. } = &self.conditions;
        stop.load(Ordering::Relaxed)
            || clock.is_some_and(|clock| Instant::now().duration_since(clock.start) >= clock.hard)
    }

    /// The network's score from the side to move's view.
    pub(super) fn evaluate(&mut self, turn: Color) -> i32 {
        self.scale.apply(self.evaluator.score(turn))
    }

    /// Whether the position is a draw by the fifty-move rule, by insufficient material or by repetition. One repetition
    /// of a position within the search is enough; a position of the game must come back twice.
    pub(super) fn is_draw(&self, position: &Chess) -> bool {
        let reversible = position.halfmoves() as usize;
        if reversible >= 100 {
            return !position.is_checkmate();
        }
        if position.board().occupied().count() <= 4 && position.is_insufficient_material() {
            return true;
        }
        let Some((current, earlier)) = self.keys.split_last() else { return false };
        let first = (earlier.len().saturating_sub(reversible)).max(self.repetition_start);
        let mut repetitions = 0;
        // The same side is to move every other ply; the closest repetition is four plies away.
        for at in (first..(earlier.len() + 1).saturating_sub(4)).rev().step_by(2) {
            if earlier[at] == *current {
                repetitions += 1;
                if at >= self.game_keys || repetitions == 2 {
                    return true;
                }
            }
        }
        false
    }

    pub(super) fn update_seldepth(&mut self, ply: usize) {
        self.seldepth = self.seldepth.max(ply);
    }

    /// The moves made [`CONTINUATIONS`] plies before.
    pub(super) fn earlier_moves(&self, ply: usize) -> [Option<PieceTo>; 3] {
        CONTINUATIONS.map(|back| ply.checked_sub(back).and_then(|at| self.stack[at].made))
    }

    /// Sets this ply's line to `mv` and the next ply's line.
    pub(super) fn extend_line(&mut self, ply: usize, mv: Move) {
        let (up_to_ply, below) = self.lines.split_at_mut(ply + 1);
        let line = &mut up_to_ply[ply];
        line.clear();
        line.push(mv);
        line.extend_from_slice(&below[0]);
    }

    pub(super) fn clear_line(&mut self, ply: usize) {
        self.lines[ply].clear();
    }
}

/// Whether the side to move has more than pawns and the king.
pub(super) fn has_pieces(position: &Chess) -> bool {
    let board = position.board();
    let own: Bitboard = board.by_color(position.turn());
    (own & !(board.pawns() | board.kings())).any()
}
