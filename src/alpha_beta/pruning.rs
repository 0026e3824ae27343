//! Pruning of whole nodes before their moves are searched: reverse futility, razoring and null move.

use shakmaty::Position;

use super::node::{AlphaBeta, Node, NodeFacts, has_pieces};
use super::score::MATE_FOUND;
use crate::chess::key_after_null;

impl AlphaBeta<'_, '_> {
    /// Decides a node without searching its moves if its evaluation is far outside the window. The inner option is
    /// `None` if the moves must be searched.
    pub(super) fn prune_node(&mut self, node: Node<'_>, depth: i32, facts: &NodeFacts) -> Option<Option<i32>> {
        let Node { alpha, beta, ply, .. } = node;
        let eval = facts.entry.map_or(facts.eval, |entry| entry.refine(facts.eval, ply));
        // Reverse futility: the evaluation is so far above beta that no reply brings it back.
        let margin = 75 * (depth - i32::from(facts.improving));
        if depth <= 8 && eval < MATE_FOUND && beta > -MATE_FOUND && eval - margin >= beta {
            return Some(Some(i32::midpoint(eval, beta)));
        }
        // Razoring: the evaluation is so far below alpha that only captures can help.
        if depth <= 3 && eval + 200 + 200 * depth * depth <= alpha {
            let value = self.quiescence(node)?;
            if value <= alpha {
                return Some(Some(value));
            }
        }
        // Null move, except after a null move and in pawn endings, where zugzwang is common.
        let follows_null = ply > 0 && self.stack[ply - 1].made.is_none();
        let allowed = facts.cut_node && !follows_null && has_pieces(node.position);
        let static_margin = facts.eval + 15 * depth - 100 >= beta;
        if depth >= 3 && allowed && eval >= beta && static_margin && beta > -MATE_FOUND {
            let reduction = 4 + depth / 3 + ((eval - beta) / 120).min(5);
            return self.try_null_move(node, depth - reduction);
        }
        Some(None)
    }

    /// Passes the turn and searches the reply to `depth`. The inner option is a value if passing already reaches beta.
    fn try_null_move(&mut self, node: Node<'_>, depth: i32) -> Option<Option<i32>> {
        let Node { position, beta, ply, .. } = node;
        let Ok(passed) = position.clone().swap_turn() else { return Some(None) };
        self.stack[ply].made = None;
        self.stack[ply].quiet = None;
        let key = key_after_null(node.key, position);
        self.table.prefetch(key);
        let repetition_start = std::mem::replace(&mut self.repetition_start, self.keys.len());
        self.keys.push(key);
        let child = Node { position: &passed, key, ply: ply + 1, alpha: -beta, beta: 1 - beta };
        let value = -self.search(child, depth, false)?;
        self.keys.pop();
        self.repetition_start = repetition_start;
        Some((value >= beta).then_some(if value >= MATE_FOUND { beta } else { value }))
    }
}
