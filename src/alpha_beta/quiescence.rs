//! Quiescence search: captures below the depth limit, until the position is quiet.

use shakmaty::{Chess, Move, MoveList, Position, Role};

use crate::chess::PackedMove;

use super::history::PieceTo;
use super::move_picker::{MovePicker, OrderingHints, Picked, is_noisy};
use super::node::{AlphaBeta, NEAR_FIFTY_MOVES, Node};
use super::score::{INFINITE, MATE, MATE_FOUND, MAX_PLY, NO_EVAL, to_table};
use super::see::{see_at_least, see_value};
use super::transposition::{ScoreBound, TableEntry};

impl AlphaBeta<'_, '_> {
    /// The value of a position when only captures, promotions to a queen and, in check, all evasions are played. `None`
    /// when interrupted.
    pub(super) fn quiescence(&mut self, mut node: Node<'_>) -> Option<i32> {
        let Node { position, key, ply, beta, .. } = node;
        let turn = position.turn();
        self.clear_line(ply);
        self.update_seldepth(ply);
        if ply > 0 && self.is_draw(position) {
            return Some(0);
        }
        let in_check = position.is_check();
        if ply >= MAX_PLY - 1 {
            return Some(if in_check { 0 } else { self.evaluate(turn) });
        }
        let entry = self.table.probe(key);
        if let Some(entry) = entry
            && !node.is_pv()
            && position.halfmoves() < NEAR_FIFTY_MOVES
            && let Some(value) = entry.cutoff(node)
        {
            return Some(value);
        }
        let raw_eval = match entry {
            _ if in_check => NO_EVAL,
            Some(entry) if entry.eval != NO_EVAL => entry.eval,
            _ => self.evaluate(turn),
        };
        let eval =
            if in_check { NO_EVAL } else { self.histories.corrections.apply(raw_eval, &self.correction_keys(node)) };
        let was_pv = node.is_pv() || entry.is_some_and(|entry| entry.was_pv);
        // Stand pat: outside of check the side to move may decline all captures.
        let mut best = if in_check { -INFINITE } else { entry.map_or(eval, |entry| entry.refine(eval, ply)) };
        if best >= beta {
            if entry.is_none() {
                let mv = PackedMove::NONE;
                let score = to_table(best, ply);
                self.table
                    .store(key, &TableEntry { mv, score, eval: raw_eval, depth: 0, bound: ScoreBound::Lower, was_pv });
            }
            return Some(towards_beta(best, beta));
        }
        node.alpha = node.alpha.max(best);
        let table_move = entry.map_or(PackedMove::NONE, |entry| entry.mv);
        let mut picker = self.quiescence_moves(node, table_move, in_check);
        if in_check && picker.is_empty() {
            return Some(-MATE + ply as i32);
        }
        let mut evasions = 0;
        let mut best_move = PackedMove::NONE;
        let mut bound = ScoreBound::Upper;
        loop {
            // In check, one quiet evasion is enough, and a losing one is not searched, once a move avoids the mate.
            let avoids_mate = best > -MATE_FOUND;
            let skip_quiets = avoids_mate && evasions >= 1;
            let picked = picker.next(&mut self.move_stack, position, self.histories, skip_quiets);
            let Some(Picked { mv, is_losing, .. }) = picked else { break };
            self.prefetch_after(node, mv);
            if in_check {
                if avoids_mate && is_losing {
                    continue;
                }
            } else if let Some(most) = prune_capture(node, mv, eval) {
                best = best.max(most);
                continue;
            }
            evasions += i32::from(!is_noisy(mv));
            self.stack[ply].made = Some(PieceTo::of(mv, turn));
            self.stack[ply].quiet = None;
            let (after, key) = self.make(position, key, mv)?;
            let child = Node { position: &after, key, ply: ply + 1, alpha: -beta, beta: -node.alpha };
            let value = -self.quiescence(child)?;
            self.unmake();
            if value > best {
                best = value;
                if value > node.alpha {
                    node.alpha = value;
                    best_move = PackedMove::of(mv);
                    self.extend_line(ply, mv);
                }
            }
            if node.alpha >= beta {
                bound = ScoreBound::Lower;
                break;
            }
        }
        if bound == ScoreBound::Lower {
            best = towards_beta(best, beta);
        }
        picker.finish(&mut self.move_stack);
        let score = to_table(best, ply);
        self.table.store(key, &TableEntry { mv: best_move, score, eval: raw_eval, depth: 0, bound, was_pv });
        Some(best)
    }

    /// Captures and promotions to a queen; in check, all evasions.
    fn quiescence_moves(&mut self, node: Node<'_>, table_move: PackedMove, in_check: bool) -> MovePicker {
        let position = node.position;
        if in_check {
            let hints = OrderingHints { table_move, earlier: self.earlier_moves(node.ply), ..OrderingHints::default() };
            MovePicker::all_moves(&mut self.move_stack, &position.legal_moves(), hints)
        } else {
            MovePicker::captures(&mut self.move_stack, &noisy_moves(position), table_move)
        }
    }
}

/// Decides whether a capture is searched: `None` if it is, else a bound on the value that it can reach.
#[inline]
fn prune_capture(node: Node<'_>, mv: Move, eval: i32) -> Option<i32> {
    let board = node.position.board();
    let turn = node.position.turn();
    // SEE pruning: the capture loses material.
    if !see_at_least(board, turn, mv, 0) {
        return Some(-INFINITE);
    }
    let futility = eval + 150;
    // Futility pruning: the capture wins nothing, and the evaluation is too far below alpha.
    if futility <= node.alpha && !see_at_least(board, turn, mv, 1) {
        return Some(futility);
    }
    // The same, for the most that the capture can win.
    let most = futility + mv.capture().map_or(0, see_value) + mv.promotion().map_or(0, see_value);
    (most <= node.alpha).then_some(most)
}

/// A value above beta halfway to beta, as a shallow search is uncertain; a mate as it is.
fn towards_beta(value: i32, beta: i32) -> i32 {
    let is_mate = value.abs() >= MATE_FOUND || beta.abs() >= MATE_FOUND;
    if is_mate { value } else { i32::midpoint(value, beta) }
}

/// Captures, and promotions to a queen.
fn noisy_moves(position: &Chess) -> MoveList {
    let mut moves = position.capture_moves();
    moves.retain(|mv| mv.promotion().is_none_or(|role| role == Role::Queen));
    let seventh = position.turn().fold_wb(shakmaty::Rank::Seventh, shakmaty::Rank::Second);
    if (position.our(Role::Pawn) & shakmaty::Bitboard::from_rank(seventh)).any() {
        let quiet_queening = |mv: &Move| mv.promotion() == Some(Role::Queen) && !mv.is_capture();
        moves.extend(position.promotion_moves().into_iter().filter(quiet_queening));
    }
    moves
}
