//! The search of captures below the depth limit, until the position is quiet.

use shakmaty::{Chess, Move, MoveList, Position, Role};

use super::code::MoveCode;
use super::exchange::exchange_at_least;
use super::history::PieceTo;
use super::order::{Hints, Ordered};
use super::score::{INFINITE, MATE, MAX_PLY, NO_EVAL, to_table};
use super::table::{Bound, Entry};
use super::tree::{Tree, Window, decides, refined};

impl Tree<'_, '_> {
    /// The value of a position when only captures, promotions and replies to checks are played. None when interrupted.
    pub(super) fn quiescence(&mut self, position: &Chess, key: u64, window: Window) -> Option<i32> {
        let Window { mut alpha, beta, ply } = window;
        self.clear_line(ply);
        self.reached(ply);
        if ply > 0 && self.is_draw(position) {
            return Some(0);
        }
        let in_check = position.is_check();
        if ply >= MAX_PLY - 1 {
            return Some(if in_check { 0 } else { self.evaluate(position.turn()) });
        }
        let known = self.table.probe(key);
        if let Some(entry) = known
            && !window.is_open()
            && let Some(value) = decides(&entry, window)
        {
            return Some(value);
        }
        let eval = match known {
            _ if in_check => NO_EVAL,
            Some(entry) if entry.eval != NO_EVAL => entry.eval,
            _ => self.evaluate(position.turn()),
        };
        // Not capturing at all is always possible, but in check.
        let mut best = if in_check { -INFINITE } else { known.map_or(eval, |entry| refined(eval, &entry, ply)) };
        if best >= beta {
            return Some(best);
        }
        alpha = alpha.max(best);
        let table_move = known.map_or(MoveCode::NONE, |entry| entry.mv);
        let mut ordered = if in_check {
            let hints = Hints {
                table: table_move,
                killers: [MoveCode::NONE; 2],
                earlier: self.earlier(ply),
                histories: self.histories,
            };
            Ordered::all(position.legal_moves(), position.board(), position.turn(), &hints)
        } else {
            Ordered::captures(noisy_moves(position), position.turn(), table_move, self.histories)
        };
        if in_check && ordered.is_empty() {
            return Some(-MATE + ply as i32);
        }
        let futile = eval + 150;
        let (mut best_move, mut bound) = (MoveCode::NONE, Bound::Upper);
        while let Some((mv, _)) = ordered.next() {
            if !in_check {
                // A capture that loses material, or that even without loss leaves alpha out of reach, does not help.
                if !exchange_at_least(position.board(), position.turn(), mv, 0) {
                    continue;
                }
                if futile <= alpha && !exchange_at_least(position.board(), position.turn(), mv, 1) {
                    best = best.max(futile);
                    continue;
                }
            }
            self.set_made(ply, PieceTo::of(mv, position.turn()));
            let (after, after_key) = self.make(position, key, mv)?;
            let value = -self.quiescence(&after, after_key, window.child(alpha, beta))?;
            self.unmake();
            if value > best {
                best = value;
                if value > alpha {
                    alpha = value;
                    best_move = MoveCode::of(mv);
                    self.take_line(ply, mv);
                }
            }
            if alpha >= beta {
                bound = Bound::Lower;
                break;
            }
        }
        self.table.store(key, &Entry { mv: best_move, score: to_table(best, ply), eval, depth: 0, bound });
        Some(best)
    }
}

/// Captures, and promotions to a queen.
fn noisy_moves(position: &Chess) -> MoveList {
    let mut moves = position.capture_moves();
    moves.retain(|mv| mv.promotion().is_none_or(|role| role == Role::Queen));
    let seventh = position.turn().fold_wb(shakmaty::Rank::Seventh, shakmaty::Rank::Second);
    if (position.our(Role::Pawn) & shakmaty::Bitboard::from_rank(seventh)).any() {
        let promotes = |mv: &Move| mv.promotion() == Some(Role::Queen) && !mv.is_capture();
        moves.extend(position.promotion_moves().into_iter().filter(promotes));
    }
    moves
}
