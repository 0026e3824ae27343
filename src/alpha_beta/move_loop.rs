//! Search of a node's moves: pruning, extensions, late move reductions and the update of tables after a cutoff.

use std::sync::LazyLock;

use shakmaty::{Color, Move, MoveList, Position};

use crate::chess::PackedMove;

use super::history::{PieceTo, bonus};
use super::move_picker::{MovePicker, OrderingHints, Picked, is_noisy};
use super::node::{AlphaBeta, Node, NodeFacts, RootLine, has_pieces};
use super::score::{INFINITE, MATE, MATE_FOUND, to_table};
use super::see::see_at_least;
use super::transposition::{ScoreBound, TableEntry};

/// A move about to be searched.
struct Candidate {
    mv: Move,
    is_noisy: bool,
    /// Whether it was ordered as a losing capture.
    is_losing: bool,
    /// History score of a quiet move; 0 for a noisy one.
    history: i32,
    /// Moves of the node searched before it.
    searched: i32,
    /// Late move reduction before adjustments.
    reduction: i32,
}

/// Decision about a candidate without searching it.
#[derive(Copy, Clone, PartialEq, Eq)]
enum MovePruning {
    Search,
    SkipMove,
    SkipAllQuiets,
}

/// Result of a singular search.
enum Singularity {
    /// Search the move deeper by this many plies.
    Extend(i32),
    /// Another move reaches beta too: the node's value.
    MultiCut(i32),
}

/// Moves of a node that were searched and did not raise alpha.
#[derive(Default)]
struct FailedMoves {
    quiet: MoveList,
    noisy: MoveList,
}

impl FailedMoves {
    fn push(&mut self, candidate: &Candidate) {
        let moves = if candidate.is_noisy { &mut self.noisy } else { &mut self.quiet };
        moves.push(candidate.mv);
    }
}

impl AlphaBeta<'_, '_> {
    /// Searches the moves of a node in order until one gives a beta cutoff.
    pub(super) fn search_moves(
        &mut self,
        mut node: Node<'_>,
        depth: i32,
        facts: &NodeFacts,
        picker: &mut MovePicker,
    ) -> Option<i32> {
        let Node { position, ply, beta, .. } = node;
        let is_root = ply == 0;
        let turn = position.turn();
        let is_singular_search = self.stack[ply].excluded.is_some();
        let earlier = self.earlier_moves(ply);
        if picker.is_empty() {
            return Some(if facts.in_check { -MATE + ply as i32 } else { 0 });
        }
        let mut value = -INFINITE;
        let mut best = None;
        let mut bound = ScoreBound::Upper;
        let mut searched = 0;
        let mut failed = FailedMoves::default();
        let mut skip_quiets = false;
        let has_pieces = has_pieces(position);
        while let Some(picked) = picker.next(&mut self.move_stack, position, self.histories, skip_quiets) {
            let Picked { mv, is_losing, history } = picked;
            let packed = PackedMove::of(mv);
            let is_noisy = is_noisy(mv);
            if packed == self.stack[ply].excluded {
                continue;
            }
            self.prefetch_after(node, mv);
            let quiet_history = || self.histories.quiet(mv, turn, &earlier);
            let history = if is_noisy { 0 } else { history.unwrap_or_else(quiet_history) };
            let reduction = reduction(depth, searched);
            let candidate = Candidate { mv, is_noisy, is_losing, history, searched, reduction };
            if !is_root && value > -MATE_FOUND && has_pieces {
                let pruning = prune_move(node, depth, facts, &candidate);
                skip_quiets |= pruning == MovePruning::SkipAllQuiets;
                if pruning != MovePruning::Search {
                    continue;
                }
            }
            let extension = match self.singularity(node, depth, facts, packed)? {
                Singularity::Extend(plies) => plies,
                Singularity::MultiCut(value) => return Some(value),
            };
            self.stack[ply].double_extensions = self.double_extensions(ply) + i32::from(extension == 2);
            let move_value = self.search_move(node, depth - 1 + extension, facts, &candidate)?;
            searched += 1;
            value = value.max(move_value);
            if move_value <= node.alpha {
                failed.push(&candidate);
                continue;
            }
            node.alpha = move_value;
            best = Some(mv);
            bound = ScoreBound::Exact;
            self.extend_line(ply, mv);
            if is_root {
                self.raised_alpha = Some(RootLine { line: self.principal_variation().to_vec(), value });
            }
            if node.alpha >= beta {
                bound = ScoreBound::Lower;
                self.stack[ply].cutoffs += 1;
                // More where the evaluation did not expect it.
                let is_surprise = !facts.in_check && facts.eval <= move_value;
                self.reward_cutoff(node, mv, depth + i32::from(is_surprise), searched, &failed);
                break;
            }
        }
        if value == -INFINITE {
            // The excluded move was the only one.
            return Some(node.alpha);
        }
        if best.is_none() && !is_singular_search && !is_root && (depth >= 4 || facts.is_pv) {
            self.reward_refutation(node, depth);
        }
        if !is_singular_search {
            self.store(node, depth, facts, value, best, bound);
        }
        Some(value)
    }

    /// Stores a node's value in the transposition table, and the error of its static evaluation.
    fn store(
        &mut self,
        node: Node<'_>,
        depth: i32,
        facts: &NodeFacts,
        value: i32,
        best: Option<Move>,
        bound: ScoreBound,
    ) {
        let mv = best.map_or(PackedMove::NONE, PackedMove::of);
        let score = to_table(value, node.ply);
        let entry = TableEntry { mv, score, eval: facts.raw_eval, depth, bound, was_pv: facts.was_pv };
        self.table.store(node.key, &entry);
        if !best.is_some_and(is_noisy) {
            self.learn_correction(value, bound, depth, facts);
        }
    }

    /// Corrects the static evaluation of similar positions by a node's value, if its bound says that they differ.
    fn learn_correction(&mut self, value: i32, bound: ScoreBound, depth: i32, facts: &NodeFacts) {
        let Some(keys) = &facts.correction_keys else { return };
        let is_informative = match bound {
            ScoreBound::Upper => value < facts.eval,
            ScoreBound::Lower => value > facts.eval,
            ScoreBound::Exact => true,
        };
        if is_informative && value.abs() < MATE_FOUND {
            self.histories.corrections.update(keys, value - facts.eval, depth);
        }
    }

    pub(super) fn move_picker(&mut self, node: Node<'_>, facts: &NodeFacts) -> MovePicker {
        let Node { position, ply, .. } = node;
        let hints = OrderingHints {
            table_move: facts.entry.map_or(PackedMove::NONE, |entry| entry.mv),
            killers: self.stack[ply].killers,
            earlier: self.earlier_moves(ply),
        };
        match ply {
            0 => MovePicker::all_moves(&mut self.move_stack, self.root_moves, hints),
            _ => MovePicker::all_moves(&mut self.move_stack, &position.legal_moves(), hints),
        }
    }

    /// Tests the table move by a shallow search without it. If every other move stays clearly below its score, the move
    /// is singular and is extended.
    fn singularity(
        &mut self,
        node: Node<'_>,
        depth: i32,
        facts: &NodeFacts,
        packed: PackedMove,
    ) -> Option<Singularity> {
        let Node { ply, beta, .. } = node;
        let Some(entry) = facts.entry.filter(|entry| {
            let is_reliable = entry.depth >= depth - 3 && entry.bound.is_lower() && entry.score.abs() < MATE_FOUND;
            packed == entry.mv && is_reliable
        }) else {
            return Some(Singularity::Extend(0));
        };
        if ply == 0 || depth < 6 || !self.may_extend(ply) {
            return Some(Singularity::Extend(0));
        }
        let target = entry.score - 2 * depth;
        self.stack[ply].excluded = packed;
        let value = self.search(Node { alpha: target - 1, beta: target, ..node }, (depth - 1) / 2, facts.cut_node);
        self.stack[ply].excluded = PackedMove::NONE;
        let value = value?;
        if value >= target && target >= beta {
            return Some(Singularity::MultiCut(target));
        }
        // The shallow search has written to this ply's line.
        self.clear_line(ply);
        if value < target {
            let is_clear = !facts.is_pv && value < target - 20 && self.double_extensions(ply) < 6;
            return Some(Singularity::Extend(1 + i32::from(is_clear)));
        }
        Some(Singularity::Extend(if entry.score >= beta {
            -2
        } else if facts.cut_node {
            -1
        } else {
            0
        }))
    }

    /// Makes a move, searches it and unmakes it: the first move with the full window, later ones with a null window and
    /// a reduced depth, again deeper and wider if they raise alpha.
    fn search_move(&mut self, node: Node<'_>, depth: i32, facts: &NodeFacts, candidate: &Candidate) -> Option<i32> {
        let Node { position, ply, alpha, beta, .. } = node;
        let &NodeFacts { is_pv, cut_node, .. } = facts;
        self.stack[ply].made = Some(PieceTo::of(candidate.mv, position.turn()));
        self.stack[ply].quiet = (!candidate.is_noisy).then_some(candidate.mv);
        self.stack[ply].searched = candidate.searched;
        let (after, key) = self.make(position, node.key, candidate.mv)?;
        let child = |alpha: i32, beta: i32| Node { position: &after, key, ply: ply + 1, alpha: -beta, beta: -alpha };
        let mut value;
        if candidate.searched == 0 {
            value = -self.search(child(alpha, beta), depth, !(is_pv || cut_node))?;
        } else {
            let reduction = self.late_move_reduction(depth, node, facts, candidate);
            let reduced = depth - reduction;
            value = -self.search(child(alpha, alpha + 1), reduced, reduction > 0 || !cut_node)?;
            if value > alpha && reduction > 0 {
                // A clear success is searched deeper.
                let deeper = i32::from(reduction >= 2 && value > alpha + 50);
                value = -self.search(child(alpha, alpha + 1), depth + deeper, !cut_node)?;
            }
            if value > alpha && is_pv {
                value = -self.search(child(alpha, beta), depth, false)?;
            }
        }
        self.unmake();
        Some(value)
    }

    /// Rewards the move that gave a beta cutoff and penalises the moves that did not raise alpha.
    fn reward_cutoff(&mut self, node: Node<'_>, mv: Move, depth: i32, searched: i32, failed: &FailedMoves) {
        let turn = node.position.turn();
        let ply = node.ply;
        let earlier = self.earlier_moves(ply);
        let bonus = bonus(depth);
        if is_noisy(mv) {
            self.histories.update_capture(mv, turn, bonus);
        } else {
            let killers = &mut self.stack[ply].killers;
            let packed = PackedMove::of(mv);
            if killers[0] != packed {
                *killers = [packed, killers[0]];
            }
            self.histories.set_counter(earlier[0], mv);
            if searched > 1 || depth > 3 {
                self.histories.update_quiet(mv, turn, &earlier, bonus);
            }
            for other in &failed.quiet {
                self.histories.update_quiet(*other, turn, &earlier, -bonus);
            }
        }
        for other in &failed.noisy {
            self.histories.update_capture(*other, turn, -bonus);
        }
        self.penalise_early_quiet(ply, turn.other(), bonus);
    }

    /// A quiet move searched early by the opponent has been refuted.
    fn penalise_early_quiet(&mut self, ply: usize, turn: Color, bonus: i32) {
        if ply == 0 {
            return;
        }
        let before = self.stack[ply - 1];
        if before.searched <= 1
            && let Some(mv) = before.quiet
        {
            let earlier = self.earlier_moves(ply - 1);
            self.histories.update_continuation(mv, turn, &earlier, -bonus);
        }
    }

    /// No move of the node reaches alpha: the quiet move before it was good.
    fn reward_refutation(&mut self, node: Node<'_>, depth: i32) {
        let ply = node.ply - 1;
        if let Some(mv) = self.stack[ply].quiet {
            let earlier = self.earlier_moves(ply);
            self.histories.update_quiet(mv, node.position.turn().other(), &earlier, bonus(depth));
        }
    }

    /// The table's move gives a cutoff without a search.
    pub(super) fn reward_table_move(&mut self, node: Node<'_>, depth: i32, entry: &TableEntry) {
        let turn = node.position.turn();
        let Some(mv) = entry.mv.quiet_move(node.position) else { return };
        let earlier = self.earlier_moves(node.ply);
        self.histories.update_quiet(mv, turn, &earlier, bonus(depth));
        self.penalise_early_quiet(node.ply, turn.other(), bonus(depth));
    }

    /// Plies by which a move after the first is searched less deeply than `depth`.
    fn late_move_reduction(&self, depth: i32, node: Node<'_>, facts: &NodeFacts, candidate: &Candidate) -> i32 {
        let &Candidate { mv, is_noisy, history, searched, reduction, .. } = candidate;
        let ply = node.ply;
        if depth < 2 || searched <= i32::from(ply == 0) {
            return 0;
        }
        let mut r = if is_noisy { reduction / 2 } else { reduction - history / 10 };
        r += 1024 * i32::from(facts.cut_node);
        r += 1024 * i32::from(!facts.improving && !is_noisy);
        r -= 1024 * i32::from(facts.is_pv);
        r -= 700 * i32::from(facts.was_pv);
        r += 512 * i32::from(self.stack[ply + 1].cutoffs > 3);
        r -= 700 * i32::from(self.stack[ply].killers.contains(&PackedMove::of(mv)));
        r += 512 * i32::from(facts.table_move_is_noisy);
        (r >> 10).clamp(0, depth - 1)
    }
}

/// Decides whether a move can be skipped, once the node has a move that does not lose to a mate.
fn prune_move(node: Node<'_>, depth: i32, facts: &NodeFacts, candidate: &Candidate) -> MovePruning {
    let &Candidate { mv, is_noisy, is_losing, history, searched, reduction, .. } = candidate;
    let reduced_depth = (depth - reduction / 1024).max(0);
    if !is_noisy {
        // Late move pruning.
        if searched >= (4 + depth * depth) / if facts.improving { 1 } else { 2 } {
            return MovePruning::SkipAllQuiets;
        }
        // Futility pruning.
        let margin = 90 + 80 * reduced_depth;
        if !facts.in_check && reduced_depth <= 8 && facts.eval + margin <= node.alpha {
            return MovePruning::SkipAllQuiets;
        }
        // History pruning.
        if reduced_depth <= 4 && history < -4_000 * reduced_depth - 2_000 {
            return MovePruning::SkipMove;
        }
    }
    // SEE pruning.
    let threshold = if is_noisy { -90 * depth } else { -20 * reduced_depth * reduced_depth - 20 };
    let may_lose = depth <= 8 && (is_losing || !is_noisy);
    if may_lose && !see_at_least(node.position.board(), node.position.turn(), mv, threshold) {
        return MovePruning::SkipMove;
    }
    MovePruning::Search
}

/// Late move reduction by depth and number of moves searched before, in 1/1024 ply.
fn reduction(depth: i32, searched: i32) -> i32 {
    static REDUCTIONS: LazyLock<Vec<[i32; 64]>> = LazyLock::new(|| {
        let logarithm = |n: usize| libm::log(n.max(1) as f64);
        let at_depth =
            |depth| std::array::from_fn(|searched| (768.0 + logarithm(depth) * logarithm(searched) * 455.0) as i32);
        (0..64).map(at_depth).collect()
    });
    REDUCTIONS[depth.clamp(0, 63) as usize][searched.clamp(0, 63) as usize]
}
