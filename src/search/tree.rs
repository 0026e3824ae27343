//! The alpha-beta search of one iteration.
//!
//! Principal variation search with a transposition table; reverse futility, null move, late moves and captures that lose
//! material are pruned, late moves are searched less deeply, a move that alone keeps the score is searched more deeply.
//! Margins are in centipawns of [`super::EvalScale`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use shakmaty::{Bitboard, Chess, Color, Move, MoveList, Position};

use super::Game;
use super::code::MoveCode;
use super::exchange::exchange_at_least;
use super::game::{key_after, key_after_null};
use super::history::{CONTINUATIONS, Histories, PieceTo, bonus};
use super::limits::{Clock, NODES_PER_TIME_CHECK};
use super::order::{Hints, Ordered, is_noisy};
use super::scale::EvalScale;
use super::score::{INFINITE, LARGEST_EVAL, MATE, MATE_FOUND, MAX_PLY, NO_EVAL, from_table, to_table};
use super::table::{Bound, Entry, TranspositionTable};
use crate::chess::BoardChange;
use crate::engine::Evaluator;

/// What ends a tree's search before it is done.
pub(super) struct TreeLimits<'s> {
    pub(super) nodes: u64,
    pub(super) clock: Option<Clock>,
    pub(super) stop: &'s AtomicBool,
}

/// What a ply of the present line remembers.
#[derive(Copy, Clone)]
struct Frame {
    /// Static evaluation; [`NO_EVAL`] in check.
    eval: i32,
    /// The move made here; none for a null move.
    made: Option<PieceTo>,
    killers: [MoveCode; 2],
    /// The move that a singular search leaves out.
    excluded: MoveCode,
}

const EMPTY: Frame = Frame { eval: NO_EVAL, made: None, killers: [MoveCode::NONE; 2], excluded: MoveCode::NONE };

/// A node's window and place.
#[derive(Copy, Clone)]
pub(super) struct Window {
    pub(super) alpha: i32,
    pub(super) beta: i32,
    /// Plies from the root.
    pub(super) ply: usize,
}

impl Window {
    /// Whether the node is on a principal variation: its window is open.
    pub(super) fn is_open(self) -> bool {
        self.beta - self.alpha > 1
    }

    /// The window of a child, seen from its side.
    pub(super) fn child(self, alpha: i32, beta: i32) -> Window {
        Window { alpha: -beta, beta: -alpha, ply: self.ply + 1 }
    }
}

/// One search from a root position.
pub(super) struct Tree<'s, 'n> {
    root: Chess,
    root_moves: &'s [Move],
    pub(super) evaluator: &'s mut Evaluator<'n>,
    scale: EvalScale,
    pub(super) table: &'s mut TranspositionTable,
    pub(super) histories: &'s mut Histories,
    limits: TreeLimits<'s>,
    nodes: u64,
    seldepth: usize,
    /// Keys of the game and of the present line, the present position's last.
    keys: Vec<u64>,
    /// How many of them stood before the search.
    played: usize,
    /// First key that can be repeated: null moves are no moves.
    after_null: usize,
    frames: [Frame; MAX_PLY + 1],
    /// The best line from every ply.
    lines: Vec<Vec<Move>>,
    /// A root move of the present iteration that raised alpha.
    raised: Option<Move>,
    reductions: Vec<[i32; 64]>,
}

impl<'s, 'n> Tree<'s, 'n> {
    pub(super) fn new(
        game: &Game,
        root_moves: &'s [Move],
        evaluator: &'s mut Evaluator<'n>,
        scale: EvalScale,
        table: &'s mut TranspositionTable,
        histories: &'s mut Histories,
        limits: TreeLimits<'s>,
    ) -> Tree<'s, 'n> {
        Tree {
            root: game.position().clone(),
            root_moves,
            evaluator,
            scale,
            table,
            histories,
            limits,
            nodes: 0,
            seldepth: 0,
            keys: game.keys().to_vec(),
            played: game.keys().len(),
            after_null: 0,
            frames: [EMPTY; MAX_PLY + 1],
            lines: vec![Vec::new(); MAX_PLY + 1],
            raised: None,
            reductions: reductions(),
        }
    }

    pub(super) fn nodes(&self) -> u64 {
        self.nodes
    }

    pub(super) fn seldepth(&self) -> u32 {
        self.seldepth as u32
    }

    pub(super) fn fullness(&self) -> u32 {
        self.table.fullness()
    }

    /// The best line of the last iteration that was finished.
    pub(super) fn line(&self) -> &[Move] {
        &self.lines[0]
    }

    /// The best move of an iteration that was interrupted, where one had raised alpha.
    pub(super) fn interrupted_best(&self) -> Option<Move> {
        self.raised
    }

    /// One iteration at the root; none when interrupted.
    pub(super) fn root(&mut self, depth: i32, alpha: i32, beta: i32) -> Option<i32> {
        self.raised = None;
        self.seldepth = 0;
        let (root, key) = (self.root.clone(), self.keys.last().copied().unwrap_or_default());
        let value = self.node(&root, key, depth, Window { alpha, beta, ply: 0 }, false)?;
        self.raised = None;
        Some(value)
    }

    /// Counts a move, makes it and gives the position after it with its key; none when the search is to end.
    pub(super) fn make(&mut self, before: &Chess, key: u64, mv: Move) -> Option<(Chess, u64)> {
        if self.nodes >= self.limits.nodes {
            return None;
        }
        if self.nodes.is_multiple_of(NODES_PER_TIME_CHECK) && self.is_stopped() {
            return None;
        }
        self.nodes += 1;
        let change = BoardChange::of(mv, before.turn());
        let mut after = before.clone();
        after.play_unchecked(mv);
        self.evaluator.play(before.board(), &change, after.board());
        let key = key_after(key, before, &change, &after);
        self.keys.push(key);
        Some((after, key))
    }

    pub(super) fn unmake(&mut self) {
        self.keys.pop();
        self.evaluator.undo();
    }

    fn is_stopped(&self) -> bool {
        self.limits.stop.load(Ordering::Relaxed)
            || self.limits.clock.is_some_and(|clock| Instant::now().duration_since(clock.start) >= clock.hard)
    }

    /// The network's score, side to move's view.
    pub(super) fn evaluate(&mut self, turn: Color) -> i32 {
        self.scale.apply(self.evaluator.score(turn))
    }

    /// A draw by the rules, or by a position that comes back once within the search.
    pub(super) fn is_draw(&self, position: &Chess) -> bool {
        let reversible = position.halfmoves() as usize;
        if reversible >= 100 {
            return !position.is_checkmate();
        }
        if position.board().occupied().count() <= 4 && position.is_insufficient_material() {
            return true;
        }
        let Some((last, earlier)) = self.keys.split_last() else { return false };
        let first = (earlier.len().saturating_sub(reversible)).max(self.after_null);
        let mut seen = 0;
        // The same side is to move every other ply; the closest repetition is four plies away.
        for at in (first..(earlier.len() + 1).saturating_sub(4)).rev().step_by(2) {
            if earlier[at] == *last {
                seen += 1;
                if at >= self.played || seen == 2 {
                    return true;
                }
            }
        }
        false
    }

    pub(super) fn reached(&mut self, ply: usize) {
        self.seldepth = self.seldepth.max(ply);
    }

    /// The value of a position: exact within the window, a bound outside. `cut`: a cutoff is expected. None when
    /// interrupted.
    fn node(&mut self, position: &Chess, key: u64, depth: i32, window: Window, cut: bool) -> Option<i32> {
        let Window { mut alpha, mut beta, ply } = window;
        let (root, open) = (ply == 0, window.is_open());
        self.lines[ply].clear();
        let in_check = position.is_check();
        let mut depth = depth + i32::from(in_check && !root);
        if depth <= 0 {
            return self.quiescence(position, key, window);
        }
        self.reached(ply);
        if !root {
            if self.is_draw(position) {
                return Some(0);
            }
            if ply >= MAX_PLY - 1 {
                return Some(if in_check { 0 } else { self.evaluate(position.turn()) });
            }
            // A shorter mate is already known.
            alpha = alpha.max(-MATE + ply as i32);
            beta = beta.min(MATE - ply as i32 - 1);
            if alpha >= beta {
                return Some(alpha);
            }
        }
        let excluded = self.frames[ply].excluded;
        let known = if excluded.is_some() { None } else { self.table.probe(key) };
        if let Some(entry) = known
            && !open
            && entry.depth >= depth
            && position.halfmoves() < 90
            && let Some(value) = decides(&entry, Window { alpha, beta, ply })
        {
            return Some(value);
        }
        let eval = match known {
            _ if in_check => NO_EVAL,
            Some(entry) if entry.eval != NO_EVAL => entry.eval,
            _ if excluded.is_some() => self.frames[ply].eval,
            _ => self.evaluate(position.turn()),
        };
        self.frames[ply].eval = eval;
        self.frames[ply + 1].killers = [MoveCode::NONE; 2];
        let improving = !in_check && self.is_improving(ply, eval);
        if !open && !in_check && !excluded.is_some() {
            let window = Window { alpha, beta, ply };
            let better = known.map_or(eval, |entry| refined(eval, &entry, ply));
            if let Some(value) = self.prune_node(position, key, depth, window, better, improving, cut)? {
                return Some(value);
            }
        }
        // Without a move to begin with, a shallower search finds one.
        if depth >= 4 && !excluded.is_some() && known.is_none_or(|entry| !entry.mv.is_some()) && (open || cut) {
            depth -= 1;
        }
        self.moves(
            position,
            key,
            depth,
            Window { alpha, beta, ply },
            &Node { open, cut, in_check, improving, eval, known },
        )
    }

    fn is_improving(&self, ply: usize, eval: i32) -> bool {
        let earlier =
            |back: usize| ply.checked_sub(back).map(|at| self.frames[at].eval).filter(|eval| *eval != NO_EVAL);
        earlier(2).or_else(|| earlier(4)).is_none_or(|before| eval > before)
    }

    /// Decides a node without searching its moves, where its evaluation lies far outside the window. The outer option is
    /// none when interrupted.
    #[allow(clippy::too_many_arguments, reason = "what a node knows, named one by one")]
    fn prune_node(
        &mut self,
        position: &Chess,
        key: u64,
        depth: i32,
        window: Window,
        eval: i32,
        improving: bool,
        cut: bool,
    ) -> Option<Option<i32>> {
        let Window { alpha, beta, ply } = window;
        // Reverse futility: so far above beta that no reply brings it back.
        if depth <= 8 && eval < MATE_FOUND && beta > -MATE_FOUND && eval - 75 * (depth - i32::from(improving)) >= beta {
            return Some(Some(i32::midpoint(eval, beta)));
        }
        // Razoring: so far below alpha that only captures can help.
        if depth <= 3 && eval + 200 + 200 * depth * depth <= alpha {
            let value = self.quiescence(position, key, window)?;
            if value <= alpha {
                return Some(Some(value));
            }
        }
        // Null move: passing already reaches beta. Not with pawns alone, where passing may be the best move.
        let after_null = ply > 0 && self.frames[ply - 1].made.is_none();
        if depth >= 3 && cut && eval >= beta && !after_null && beta > -MATE_FOUND && has_pieces(position) {
            let reduction = 3 + depth / 3 + ((eval - beta) / 200).min(3);
            let Ok(passed) = position.clone().swap_turn() else { return Some(None) };
            self.frames[ply].made = None;
            let key = key_after_null(key, position);
            let before = std::mem::replace(&mut self.after_null, self.keys.len());
            self.keys.push(key);
            let value = -self.node(&passed, key, depth - reduction, window.child(beta - 1, beta), !cut)?;
            self.keys.pop();
            self.after_null = before;
            if value >= beta {
                return Some(Some(if value >= MATE_FOUND { beta } else { value }));
            }
        }
        Some(None)
    }

    /// Searches the moves of a node in order.
    fn moves(&mut self, position: &Chess, key: u64, depth: i32, window: Window, node: &Node) -> Option<i32> {
        let Window { mut alpha, beta, ply } = window;
        let (root, turn, board) = (ply == 0, position.turn(), position.board());
        let excluded = self.frames[ply].excluded;
        let legal = if root { self.root_moves.iter().copied().collect() } else { position.legal_moves() };
        let earlier = self.earlier(ply);
        let table_move = node.known.map_or(MoveCode::NONE, |entry| entry.mv);
        let hints = Hints { table: table_move, killers: self.frames[ply].killers, earlier, histories: self.histories };
        let mut ordered = Ordered::all(legal, board, turn, &hints);
        if ordered.is_empty() {
            return Some(if node.in_check { -MATE + ply as i32 } else { 0 });
        }
        let (mut best, mut best_move, mut bound) = (-INFINITE, MoveCode::NONE, Bound::Upper);
        let (mut tried, mut tried_quiet, mut tried_noisy) = (0, MoveList::new(), MoveList::new());
        let mut skip_quiet = false;
        while let Some((mv, losing)) = ordered.next() {
            let code = MoveCode::of(mv);
            if code == excluded {
                continue;
            }
            let noisy = is_noisy(mv);
            if skip_quiet && !noisy {
                continue;
            }
            let quiet_history = if noisy { 0 } else { self.histories.quiet(mv, turn, &earlier) };
            let reduction = self.reduction(depth, tried);
            if !root && best > -MATE_FOUND && has_pieces(position) {
                let shallow = (depth - reduction).max(0);
                if !noisy {
                    if tried >= (4 + depth * depth) / if node.improving { 1 } else { 2 } {
                        skip_quiet = true;
                        continue;
                    }
                    if !node.in_check && shallow <= 8 && node.eval + 100 + 90 * shallow <= alpha {
                        skip_quiet = true;
                        continue;
                    }
                    if shallow <= 4 && quiet_history < -4_000 * shallow - 2_000 {
                        continue;
                    }
                }
                let threshold = if noisy { -90 * depth } else { -25 * shallow * shallow - 20 };
                if depth <= 8 && (losing || !noisy) && !exchange_at_least(board, turn, mv, threshold) {
                    continue;
                }
            }
            let mut extension = 0;
            if let Some(entry) = node.known
                && code == table_move
                && !root
                && !excluded.is_some()
                && depth >= 7
                && entry.depth >= depth - 3
                && entry.bound.is_lower()
                && entry.score.abs() < MATE_FOUND
                && ply < 2 * MAX_PLY / 3
            {
                let target = entry.score - 2 * depth;
                self.frames[ply].excluded = code;
                let value = self.node(
                    position,
                    key,
                    (depth - 1) / 2,
                    Window { alpha: target - 1, beta: target, ply },
                    node.cut,
                );
                self.frames[ply].excluded = MoveCode::NONE;
                let value = value?;
                if value < target {
                    extension = 1;
                } else if target >= beta {
                    // Another move reaches beta too.
                    return Some(target);
                } else if entry.score >= beta {
                    extension = -1;
                }
                // The search of the same position has used this ply's line and killers' successors.
                self.lines[ply].clear();
            }
            self.frames[ply].made = Some(PieceTo::of(mv, turn));
            let (after, after_key) = self.make(position, key, mv)?;
            tried += 1;
            let next = depth - 1 + extension;
            let value = if tried == 1 {
                -self.node(&after, after_key, next, window.child(alpha, beta), !(node.open || node.cut))?
            } else {
                let mut reduced = 0;
                if depth >= 3 && tried > 1 + i32::from(root) {
                    reduced = if noisy { reduction / 2 } else { reduction - quiet_history / 8_192 };
                    reduced += i32::from(node.cut) + i32::from(!node.improving && !noisy) - i32::from(node.open);
                    reduced = reduced.clamp(0, (next - 1).max(0));
                }
                let mut value = -self.node(&after, after_key, next - reduced, window.child(alpha, alpha + 1), true)?;
                if value > alpha && reduced > 0 {
                    value = -self.node(&after, after_key, next, window.child(alpha, alpha + 1), !node.cut)?;
                }
                if value > alpha && node.open {
                    value = -self.node(&after, after_key, next, window.child(alpha, beta), false)?;
                }
                value
            };
            self.unmake();
            if value > best {
                best = value;
                if value > alpha {
                    alpha = value;
                    best_move = code;
                    bound = Bound::Exact;
                    self.take_line(ply, mv);
                    if root {
                        self.raised = Some(mv);
                    }
                }
            }
            if alpha >= beta {
                bound = Bound::Lower;
                self.reward(mv, turn, depth, ply, &earlier, &tried_quiet, &tried_noisy);
                break;
            }
            if noisy { tried_noisy.push(mv) } else { tried_quiet.push(mv) }
        }
        if best == -INFINITE {
            // Every move was left out: the excluded one was the only one.
            return Some(alpha);
        }
        if !excluded.is_some() {
            let entry = Entry { mv: best_move, score: to_table(best, ply), eval: node.eval, depth, bound };
            self.table.store(key, &entry);
        }
        Some(best)
    }

    /// The moves made [`CONTINUATIONS`] plies before.
    pub(super) fn earlier(&self, ply: usize) -> [Option<PieceTo>; 3] {
        CONTINUATIONS.map(|back| ply.checked_sub(back).and_then(|at| self.frames[at].made))
    }

    pub(super) fn set_made(&mut self, ply: usize, made: PieceTo) {
        self.frames[ply].made = Some(made);
    }

    /// This ply's line becomes `mv` and the next ply's.
    pub(super) fn take_line(&mut self, ply: usize, mv: Move) {
        let (here, below) = self.lines.split_at_mut(ply + 1);
        let line = &mut here[ply];
        line.clear();
        line.push(mv);
        line.extend_from_slice(&below[0]);
    }

    pub(super) fn clear_line(&mut self, ply: usize) {
        self.lines[ply].clear();
    }

    /// Histories after a cutoff: the move that gave it gains, those tried before it lose.
    #[allow(clippy::too_many_arguments, reason = "what a cutoff knows, named one by one")]
    fn reward(
        &mut self,
        mv: Move,
        turn: Color,
        depth: i32,
        ply: usize,
        earlier: &[Option<PieceTo>; 3],
        tried_quiet: &MoveList,
        tried_noisy: &MoveList,
    ) {
        let gain = bonus(depth);
        if is_noisy(mv) {
            self.histories.update_capture(mv, turn, gain);
        } else {
            let (killers, code) = (&mut self.frames[ply].killers, MoveCode::of(mv));
            if killers[0] != code {
                *killers = [code, killers[0]];
            }
            self.histories.set_counter(earlier[0], mv);
            self.histories.update_quiet(mv, turn, earlier, gain);
            for other in tried_quiet {
                self.histories.update_quiet(*other, turn, earlier, -gain);
            }
        }
        for other in tried_noisy {
            self.histories.update_capture(*other, turn, -gain);
        }
    }

    fn reduction(&self, depth: i32, tried: i32) -> i32 {
        self.reductions[depth.clamp(0, 63) as usize][tried.clamp(0, 63) as usize]
    }
}

/// What the search of a node's moves needs to know of it.
struct Node {
    open: bool,
    cut: bool,
    in_check: bool,
    improving: bool,
    eval: i32,
    known: Option<Entry>,
}

/// Whether the side to move has more than pawns and the king.
fn has_pieces(position: &Chess) -> bool {
    let board = position.board();
    let own: Bitboard = board.by_color(position.turn());
    (own & !(board.pawns() | board.kings())).any()
}

/// The value of a table entry where its bound lies outside the window.
pub(super) fn decides(entry: &Entry, window: Window) -> Option<i32> {
    let value = from_table(entry.score, window.ply);
    let outside = match entry.bound {
        Bound::Exact => true,
        Bound::Lower => value >= window.beta,
        Bound::Upper => value <= window.alpha,
    };
    outside.then_some(value)
}

/// The evaluation, or the table's score where it says more.
pub(super) fn refined(eval: i32, entry: &Entry, ply: usize) -> i32 {
    let value = from_table(entry.score, ply);
    let tells = if value > eval { entry.bound.is_lower() } else { entry.bound.is_upper() };
    if tells && value.abs() <= LARGEST_EVAL { value } else { eval }
}

/// Plies by which late moves are searched less deeply: ¾ + ln depth · ln number / 2¼.
fn reductions() -> Vec<[i32; 64]> {
    let logarithm = |n: usize| libm::log(n.max(1) as f64);
    (0..64)
        .map(|depth| std::array::from_fn(|tried| (0.75 + logarithm(depth) * logarithm(tried) / 2.25) as i32))
        .collect()
}
