//! Deltas of blocks of one piece variable with counts: the rows of the pieces whose counts a move may change.

use crate::features::compiled::CompiledBlock;
use crate::features::compiled::binding_plan::{CountDependency, CountPlan};
use crate::features::compiled::encode::{Bindings, Kings};
use crate::features::compiled::oriented_board::{Binding, OrientedBoard, squares};
use crate::features::compiled::tables::NONE;
use crate::features::spec::{SourceSpec, VariableKind};

use super::{OrientedPair, RowChanges};

impl CompiledBlock {
    /// The rows before and after the move of every piece that moves or whose counts may change.
    pub(super) fn counted_delta(&self, boards: &OrientedPair, kings: &Kings, rows: &mut RowChanges<'_>) {
        let from = rows.lengths();
        let binder = &self.binders[0];
        let mut bindings = self.bindings(kings);
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let mask = &term.masks[binder.slot];
            let affected = boards.changed | self.affected_by_counts(&term.counts, boards, &mut bindings);
            for (board, out) in [(&boards.before, &mut *rows.removed), (&boards.after, &mut *rows.added)] {
                let mut buffer = None;
                for (code, bits) in binder.candidates(board, &bindings, mask, &mut buffer) {
                    for square in squares(bits & affected) {
                        bindings[binder.slot] = Binding { code, square };
                        if binder.residual_holds(&bindings) {
                            let entry = term.tables[binder.slot][code << 6 | square as usize];
                            out.push(base + rows.offset + entry + term.count_sum(board, &mut bindings));
                        }
                    }
                }
            }
        }
        rows.cancel(from);
    }

    /// Squares of the pieces that stay and for which one of the counts may change.
    fn affected_by_counts(&self, counts: &[CountPlan], boards: &OrientedPair, bindings: &mut Bindings) -> u64 {
        let outer = self.binders[0].slot;
        let mut affected = 0;
        let mut known: Option<(&CountPlan, SourceSpec, u64)> = None;
        for count in counts {
            // Squares where a binding of the count's last variable may appear or vanish.
            let ends = match count.dependency(outer) {
                None => return !0,
                Some(CountDependency::OwnReach(source)) => {
                    affected |= boards.affected(source);
                    0
                }
                Some(CountDependency::Pieces) => boards.changed,
                Some(CountDependency::AllReaches(source)) => match known {
                    Some((other, of, ends)) if of.same_kind_as(source) && count.binds_like(other) => ends,
                    _ => {
                        let ends = self.changed_ends(count, source, boards);
                        known = Some((count, source, ends));
                        ends
                    }
                },
            };
            if ends == 0 {
                continue;
            }
            for (code, board) in (0..16).map(|code| (code, boards.before.by_code(code))) {
                for square in squares(board & !boards.changed & !affected) {
                    bindings[outer] = Binding { code, square };
                    affected |= u64::from(count.allows_any(bindings, ends)) << square;
                }
            }
        }
        affected
    }

    /// Squares that a staying piece reaches on only one of the boards or that a moving piece reaches; for a last
    /// variable of pieces, the changed squares as well.
    fn changed_ends(&self, count: &CountPlan, source: SourceSpec, boards: &OrientedPair) -> u64 {
        let ends_on_pieces = count.binders().last().is_some_and(|last| last.kind == VariableKind::Piece);
        let mut ends = if ends_on_pieces { boards.changed } else { 0 };
        for (code, allowed) in count.first_mask() {
            let [before, after] = [&boards.before, &boards.after].map(|board| board.by_code(*code) & allowed);
            let reach = |board: &OrientedBoard, square: u32| board.reach(source, Binding { code: *code, square });
            for square in squares(before & boards.affected(source) & !boards.changed) {
                ends |= reach(&boards.before, square) ^ reach(&boards.after, square);
            }
            for square in squares(before & boards.changed) {
                ends |= reach(&boards.before, square);
            }
            for square in squares(after & boards.changed) {
                ends |= reach(&boards.after, square);
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::uci::UciMove;
    use shakmaty::{CastlingMode, Position, fen::Fen};

    use super::super::Transition;
    use super::*;
    use crate::chess::{BoardChange, Chess, Perspective};
    use crate::features::compiled::BindingForm;
    use crate::features::definition;

    /// Squares of the staying pieces whose counts a move may change, for White.
    fn check(features: &str, fen: &str, mv: &str, expected: &str) {
        let spec = definition::parse(&format!("features = \"{features}\"")).expect("a definition").blocks.remove(0);
        let block = CompiledBlock::new(&spec).expect("one term");
        assert!(block.form == BindingForm::Counted && !block.shares_rows());
        let fen: Fen = fen.parse().expect("a FEN");
        let position: Chess = fen.into_position(CastlingMode::Standard).expect("a position");
        let mv = mv.parse::<UciMove>().expect("a move").to_move(&position).expect("a legal move");
        let change = BoardChange::of(mv, position.turn());
        let before = position.board();
        let after = change.applied_to(position.board());
        let transition = Transition::new(before, &change, &after).seen_by(Perspective::White);
        let mut boards = None;
        let boards = transition.oriented(0, &mut boards);
        let mut bindings = block.bindings(&Kings { own: 4, enemy: 60, mask: 0 });
        let affected = block.affected_by_counts(&block.terms[0].counts, boards, &mut bindings);
        let affected = affected & boards.before.occupied() & !boards.changed;
        let squares: Vec<String> = squares(affected).map(|square| shakmaty::Square::new(square).to_string()).collect();
        assert_eq!(squares.join(" "), expected, "{features}");
    }

    #[test]
    fn a_move_affects_the_counts_of_few_pieces() {
        let opening = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";
        let attackers =
            "square(P) * count(3 for A in pieces, M in attacks(A) if square(M) == square(P)) for P in pieces";
        // From f3 the knight will protect e1, d2 and h2 and attack e5; the rook on h1 will protect f1. The squares that
        // the knight and the queen no longer reach are empty.
        check(attackers, opening, "g1f3", "e1 f1 d2 h2 e5");
        // The pieces that reached g1, f3 or a square behind f3.
        let mobility = "square(P) * count(9 for M in moves(P)) for P in pieces";
        check(mobility, opening, "g1f3", "d1 h1 f2 g2");
        // Pawns are counted by file.
        let files = "square(P) * count(7 for Q in pieces if role(Q) == pawn and file(Q) == file(P)) for P in pieces";
        check(files, "4k3/p6p/8/8/8/8/P6P/R3K2R w - - 0 1", "a2a4", "a1 a7");
    }
}
