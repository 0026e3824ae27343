//! Blocks of one piece with counts: the rows of the pieces whose counts a move may change.

use crate::features::spec::{SourceSpec, VariableKind};

use super::super::levels::{CountPlan, Trace};
use super::super::tables::NONE;
use super::super::view::{Man, View, squares};
use super::super::{CompiledBlock, encode::Kings, encode::Men};
use super::{Boards, Rows};

impl CompiledBlock {
    /// Every piece that moved or whose counts may differ: its row before and its row after.
    pub(super) fn recounted(&self, boards: &Boards, kings: &Kings, offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        let level = &self.levels[0];
        let mut men = self.men(kings);
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let mask = &term.masks[level.slot];
            let concerned = boards.changed | self.concerned(&term.counts, boards, &mut men);
            for (view, out) in [(&boards.before, &mut *rows.removed), (&boards.after, &mut *rows.added)] {
                let mut room = None;
                for (code, bits) in level.candidates(view, &men, mask, &mut room) {
                    for square in squares(bits & concerned) {
                        men[level.slot] = Man { code, square };
                        if level.admits(&men) {
                            let entry = term.tables[level.slot][code << 6 | square as usize];
                            out.push(base + offset + entry + term.counted(view, &mut men));
                        }
                    }
                }
            }
        }
        rows.settle(from);
    }

    /// Squares of the pieces that stay and for which one of the counts may differ.
    fn concerned(&self, counts: &[CountPlan], boards: &Boards, men: &mut Men) -> u64 {
        let outer = self.levels[0].slot;
        let mut all = 0;
        let mut known: Option<(&CountPlan, SourceSpec, u64)> = None;
        for count in counts {
            // Where the last variable may come or go.
            let ends = match count.trace(outer) {
                None => return !0,
                Some(Trace::Own(source)) => {
                    all |= boards.touched(source);
                    0
                }
                Some(Trace::Pieces) => boards.changed,
                Some(Trace::Reached(source)) => match known {
                    Some((other, of, ends)) if of.same_kind_as(source) && count.reaches_as(other) => ends,
                    _ => {
                        let ends = self.ends(count, source, boards);
                        known = Some((count, source, ends));
                        ends
                    }
                },
            };
            if ends == 0 {
                continue;
            }
            for (code, board) in (0..16).map(|code| (code, boards.before.by_code(code))) {
                for square in squares(board & !boards.changed & !all) {
                    men[outer] = Man { code, square };
                    all |= u64::from(count.concerns(men, ends)) << square;
                }
            }
        }
        all
    }

    /// Squares that some piece reaches on one board and not on the other, or that one which moved reaches; with those on
    /// which a reached piece is another.
    fn ends(&self, count: &CountPlan, source: SourceSpec, boards: &Boards) -> u64 {
        let pieces = count.levels().last().is_some_and(|last| last.kind == VariableKind::Piece);
        let mut ends = if pieces { boards.changed } else { 0 };
        for (code, allowed) in count.first_mask() {
            let [before, after] = [&boards.before, &boards.after].map(|view| view.by_code(*code) & allowed);
            let reach = |view: &View, square: u32| view.reach(source, Man { code: *code, square });
            for square in squares(before & boards.touched(source) & !boards.changed) {
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

    use super::super::Move;
    use super::*;
    use crate::chess::{BoardChange, Chess, Perspective};
    use crate::features::compiled::Shape;
    use crate::features::definition;

    /// Squares of the pieces that a move concerns besides those that move, for White.
    fn check(features: &str, fen: &str, mv: &str, expected: &str) {
        let spec = definition::parse(&format!("features = \"{features}\"")).expect("a definition").blocks.remove(0);
        let block = CompiledBlock::new(&spec).expect("one term");
        assert!(block.shape == Shape::Counted && !block.shares_rows());
        let fen: Fen = fen.parse().expect("a FEN");
        let position: Chess = fen.into_position(CastlingMode::Standard).expect("a position");
        let mv = mv.parse::<UciMove>().expect("a move").to_move(&position).expect("a legal move");
        let change = BoardChange::of(mv, position.turn());
        let (before, after) = (position.board(), change.applied_to(position.board()));
        let mv = Move::new(before, &change, &after).seen_by(Perspective::White);
        let mut boards = None;
        let boards = mv.boards(0, &mut boards);
        let mut men = block.men(&Kings { own: 4, enemy: 60, mask: 0 });
        let concerned = block.concerned(&block.terms[0].counts, boards, &mut men) & boards.before.occupied();
        let squares: Vec<String> =
            squares(concerned & !boards.changed).map(|square| shakmaty::Square::new(square).to_string()).collect();
        assert_eq!(squares.join(" "), expected, "{features}");
    }

    #[test]
    fn a_move_concerns_few_pieces() {
        let opening = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";
        let attackers =
            "square(P) * count(3 for A in pieces, M in attacks(A) if square(M) == square(P)) for P in pieces";
        // The knight will protect e1, d2 and h2 and attack e5; the rook on h1 protects f1 then. What the knight leaves
        // and what the queen does not reach any more are empty squares.
        check(attackers, opening, "g1f3", "e1 f1 d2 h2 e5");
        // Whoever reached g1, f3 or what lies behind.
        let mobility = "square(P) * count(9 for M in moves(P)) for P in pieces";
        check(mobility, opening, "g1f3", "d1 h1 f2 g2");
        // Pawns are counted by file.
        let files = "square(P) * count(7 for Q in pieces if role(Q) == pawn and file(Q) == file(P)) for P in pieces";
        check(files, "4k3/p6p/8/8/8/8/P6P/R3K2R w - - 0 1", "a2a4", "a1 a7");
    }
}
