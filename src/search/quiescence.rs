//! Quiescence search: captures below the depth limit, until the position is quiet.

use shakmaty::{Chess, Move, MoveList, Position, Role};

use super::alpha_beta::{AlphaBeta, Node};
use super::history::PieceTo;
use super::move_picker::{MovePicker, OrderingHints};
use super::packed_move::PackedMove;
use super::score::{INFINITE, MATE, MAX_PLY, NO_EVAL, to_table};
use super::see::see_at_least;
use super::transposition::{Bound, TableEntry};

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
            && let Some(value) = entry.cutoff(node)
        {
            return Some(value);
        }
        let eval = match entry {
            _ if in_check => NO_EVAL,
            Some(entry) if entry.eval != NO_EVAL => entry.eval,
            _ => self.evaluate(turn),
        };
        // Stand pat: outside of check the side to move may decline all captures.
        let mut best = if in_check { -INFINITE } else { entry.map_or(eval, |entry| entry.refine(eval, ply)) };
        if best >= beta {
            return Some(best);
        }
        node.alpha = node.alpha.max(best);
        let table_move = entry.map_or(PackedMove::NONE, |entry| entry.mv);
        let mut picker = if in_check {
            let (killers, earlier) = ([PackedMove::NONE; 2], self.earlier_moves(ply));
            let hints = OrderingHints { table_move, killers, earlier, histories: self.histories };
            MovePicker::all_moves(position.legal_moves(), position, &hints)
        } else {
            MovePicker::captures(noisy_moves(position), turn, table_move, self.histories)
        };
        if in_check && picker.is_empty() {
            return Some(-MATE + ply as i32);
        }
        let futility = eval + 150;
        let (mut best_move, mut bound) = (PackedMove::NONE, Bound::Upper);
        while let Some((mv, _)) = picker.next() {
            if !in_check {
                // SEE pruning: the capture loses material.
                if !see_at_least(position.board(), turn, mv, 0) {
                    continue;
                }
                // Futility pruning: the capture wins nothing, and the evaluation is too far below alpha.
                if futility <= node.alpha && !see_at_least(position.board(), turn, mv, 1) {
                    best = best.max(futility);
                    continue;
                }
            }
            self.stack[ply].made = Some(PieceTo::of(mv, turn));
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
                bound = Bound::Lower;
                break;
            }
        }
        self.table.store(key, &TableEntry { mv: best_move, score: to_table(best, ply), eval, depth: 0, bound });
        Some(best)
    }
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
