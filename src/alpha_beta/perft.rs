//! Perft: the number of lines of legal moves, counted with the search's own moves, to test them against published
//! counts.

use shakmaty::{Chess, Position};

use super::node::AlphaBeta;

impl AlphaBeta<'_, '_> {
    /// Lines of `depth` moves from a position with this key. `None` when interrupted.
    pub(super) fn perft(&mut self, position: &Chess, key: u64, depth: u32) -> Option<u64> {
        let moves = position.legal_moves();
        match depth {
            0 => return Some(1),
            1 => return Some(moves.len() as u64),
            _ => {}
        }
        let mut lines = 0;
        for mv in moves {
            let (after, key) = self.make(position, key, mv)?;
            lines += self.perft(&after, key, depth - 1)?;
            self.unmake();
        }
        Some(lines)
    }
}
