//! Warnings about definitions that are legal but unlikely to be meant.

use shakmaty::Piece;

use crate::chess::{Board, Color, Perspective, Role, Square};

use super::analysis::{self, Analysis, Budget};
use super::set::FeatureSet;
use super::spec::BlockSpec;

impl FeatureSet {
    /// Warnings about the set, one line each.
    pub fn warnings(&self, analysis: &Analysis, budget: Budget) -> Vec<String> {
        let is_dead = |number: &usize| {
            let tally = analysis.block_tally(*number);
            tally.live == 0 && tally.unresolved == 0
        };
        let dead_blocks = (0..self.blocks().len()).filter(is_dead).map(|number| {
            let name = &self.blocks()[number].name;
            format!("{name}: the block can never be active: no legal position has any of its features")
        });
        dead_blocks.chain(warnings(self, budget)).collect()
    }
}

/// The warnings that need no analysis.
fn warnings(set: &FeatureSet, budget: Budget) -> Vec<String> {
    let mut warnings = set.remarks().to_vec();
    for block in set.blocks() {
        for letter in unused_variables(block.spec()) {
            warnings.push(format!(
                "{}: nothing reads the variable {letter}; it only requires that its source yields something",
                block.name
            ));
        }
    }
    let mut boards = analysis::affordable_encodings(set, budget);
    let mut unseen = Vec::new();
    for (color, role) in piece_kinds() {
        match sees(set, color, role, &mut boards) {
            _ if budget.expired() => return warnings,
            None => return warnings,
            Some(true) => {}
            Some(false) => unseen.push(name((color, role))),
        }
    }
    if !unseen.is_empty() {
        warnings.push(format!("the set does not see {}", listed(&unseen)));
    }
    warnings
}

/// Variables that no axis, condition, source or count reads.
fn unused_variables(block: &BlockSpec) -> Vec<char> {
    let counts = block.product.counts();
    let is_read = |slot: usize| {
        block.product.reads(slot)
            || block.binders.iter().any(|binder| binder.source.of() == Some(slot))
            || block.condition.as_ref().is_some_and(|condition| condition.slots().contains(&slot))
            || block.guards.iter().any(|guard| guard.slots().contains(&slot))
            || counts.iter().any(|count| count.outer_slots().contains(&slot))
    };
    block.binders.iter().filter(|binder| !is_read(binder.slot)).map(|binder| binder.letter).collect()
}

fn piece_kinds() -> impl Iterator<Item = (Color, Role)> {
    [Color::White, Color::Black].into_iter().flat_map(|color| Role::ALL.map(move |role| (color, role)))
}

fn name((color, role): (Color, Role)) -> String {
    let role = format!("{role:?}").to_lowercase();
    match (color, role.as_str()) {
        (Color::White, "king") => "the own king".into(),
        (Color::Black, "king") => "the enemy king".into(),
        (Color::White, role) => format!("own {role}s"),
        (Color::Black, role) => format!("enemy {role}s"),
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Whether adding such a piece (or moving such a king) changes White's features on one of some boards. `None` when
/// `boards`, the number of encodings left, does not suffice.
fn sees(set: &FeatureSet, color: Color, role: Role, boards: &mut u64) -> Option<bool> {
    let mut first = Vec::new();
    let mut second = Vec::new();
    let mut differ = |a: &Board, b: &Board| {
        set.encoder().encode(a, Perspective::White, &mut first);
        set.encoder().encode(b, Perspective::White, &mut second);
        first.sort_unstable();
        second.sort_unstable();
        first != second
    };
    for board in backgrounds() {
        let mut base = board.clone();
        if role == Role::King {
            base = without_king(&board, color);
        }
        for square in Square::ALL.into_iter().filter(|square| board.piece_at(*square).is_none()) {
            *boards = boards.checked_sub(2)?;
            if differ(&with_piece(&base, square, color, role), &board) {
                return Some(true);
            }
        }
    }
    Some(false)
}

fn with_piece(board: &Board, square: Square, color: Color, role: Role) -> Board {
    let mut board = board.clone();
    board.set_piece_at(square, Piece { color, role });
    board
}

fn without_king(board: &Board, color: Color) -> Board {
    let mut board = board.clone();
    if let Some(square) = board.king_of(color) {
        board.discard_piece_at(square);
    }
    board
}

/// Boards with the kings on several squares, bare and with some or one of every kind of piece.
fn backgrounds() -> Vec<Board> {
    const KINGS: [(Square, Square); 4] =
        [(Square::E1, Square::E8), (Square::B2, Square::G6), (Square::H4, Square::A5), (Square::D7, Square::C2)];
    let others = piece_kinds().filter(|(_, role)| *role != Role::King);
    let others: Vec<_> = Square::ALL.into_iter().skip(17).step_by(5).zip(others).collect();
    let mut boards = Vec::new();
    for (own, enemy) in KINGS {
        let bare =
            with_piece(&with_piece(&Board::empty(), own, Color::White, Role::King), enemy, Color::Black, Role::King);
        let with = |count: usize| {
            let mut board = bare.clone();
            for (square, (color, role)) in &others[..count] {
                if board.piece_at(*square).is_none() {
                    board = with_piece(&board, *square, *color, *role);
                }
            }
            board
        };
        boards.extend([0, 3, 6, others.len()].map(with));
    }
    boards
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &str, expected: &[&str]) {
        let set = FeatureSet::resolve(request).expect(request);
        assert_eq!(warnings(&set, Budget::STEPS), expected, "{request}");
    }

    #[test]
    fn common_sets_have_no_warnings() {
        check("piece", &[]);
        check("compact", &[]);
        check("half-ka-v2-hm", &[]);
        check("mobility-count", &[]);
        check("pairs-h", &[]);
        let few = "square(P) * role(P) * color(P) for P in pieces if count(32 for Q in pieces) >= 4 and count(32 for Q in \
                   pieces) <= 10";
        check(few, &[]);
    }

    #[test]
    fn unseen_pieces_are_named() {
        check("king-piece", &["the set does not see the enemy king"]);
        check(
            "square(P, a1) * color(P) for P in pieces if role(P) == king",
            &["the set does not see own pawns, own knights, own bishops, own rooks, own queens, enemy pawns, enemy \
             knights, enemy bishops, enemy rooks and enemy queens"],
        );
        check(
            "square(K) * square(P) * color(P) for P in pieces if color(P) == own",
            &["the set does not see enemy pawns, enemy knights, enemy bishops, enemy rooks, enemy queens and the \
                 enemy king"],
        );
    }

    #[test]
    fn blocks_that_are_never_active_are_named() {
        let request = "piece + square(P) for P in pieces if role(P) == pawn and rank(P) == 0";
        let set = FeatureSet::resolve(request).expect("a definition");
        let warnings = set.warnings(&Analysis::of(&set, |_, _| {}), Budget::STEPS);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("can never be active"), "{warnings:?}");
    }

    #[test]
    fn unused_variables_are_named() {
        check(
            "piece + square(A) * role(A) * color(A) for A in pieces, B in moves(A)",
            &["piece + square(A) * role(A) * color(A) for A in pieces, B in moves(A): nothing reads the variable B; \
             it only requires that its source yields something"],
        );
    }
}
