//! What is legal in a definition, and odd.

use shakmaty::Piece;

use crate::chess::{Board, Color, Perspective, Role, Square};

use super::analysis::{self, Analysis, Budget};
use super::set::FeatureSet;
use super::spec::BlockSpec;

impl FeatureSet {
    /// One line each.
    pub fn warnings(&self, analysis: &Analysis, budget: Budget) -> Vec<String> {
        let never = |at: &usize| {
            let tally = analysis.block_tally(*at);
            tally.live == 0 && tally.unresolved == 0
        };
        let blocks = (0..self.blocks().len()).filter(never).map(|at| {
            format!(
                "{}: the block can never be active; none of its features is in any legal position",
                self.blocks()[at].name
            )
        });
        blocks.chain(warnings(self, budget)).collect()
    }
}

/// What needs no analysis.
fn warnings(set: &FeatureSet, budget: Budget) -> Vec<String> {
    let mut found = set.remarks().to_vec();
    for block in set.blocks() {
        for letter in unused(block.spec()) {
            found.push(format!(
                "{}: the variable {letter} is bound and never read; a feature only asks that something can be bound to it",
                block.name
            ));
        }
    }
    let mut boards = analysis::affordable_encodings(set, budget);
    let mut unseen = Vec::new();
    for (color, role) in kinds() {
        match sees(set, color, role, &mut boards) {
            _ if budget.expired() => return found,
            None => return found,
            Some(true) => {}
            Some(false) => unseen.push(name((color, role))),
        }
    }
    if !unseen.is_empty() {
        found.push(format!("the set does not see {}", listed(&unseen)));
    }
    found
}

/// Variables of the block that no axis, condition, source or count reads.
fn unused(block: &BlockSpec) -> Vec<char> {
    let counts = block.product.counts();
    let used = |slot: usize| {
        block.product.reads(slot)
            || block.binders.iter().any(|binder| binder.source.of() == Some(slot))
            || block.condition.as_ref().is_some_and(|condition| condition.slots().contains(&slot))
            || block.guards.iter().any(|guard| guard.slots().contains(&slot))
            || counts.iter().any(|count| count.outer_slots().contains(&slot))
    };
    block.binders.iter().filter(|binder| !used(binder.slot)).map(|binder| binder.letter).collect()
}

fn kinds() -> impl Iterator<Item = (Color, Role)> {
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

/// Whether White's features change on some of the boards tried when such a piece is added (a king: moved). None when
/// `boards` are fewer than it takes to tell.
fn sees(set: &FeatureSet, color: Color, role: Role, boards: &mut u64) -> Option<bool> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut differ = |a: &Board, b: &Board| {
        set.encoder().encode(a, Perspective::White, &mut with);
        set.encoder().encode(b, Perspective::White, &mut without);
        with.sort_unstable();
        without.sort_unstable();
        with != without
    };
    for board in backgrounds() {
        let mut base = board.clone();
        if role == Role::King {
            base = without_king(&board, color);
        }
        for square in Square::ALL.into_iter().filter(|square| board.piece_at(*square).is_none()) {
            *boards = boards.checked_sub(2)?;
            if differ(&placed(&base, square, color, role), &board) {
                return Some(true);
            }
        }
    }
    Some(false)
}

fn placed(board: &Board, square: Square, color: Color, role: Role) -> Board {
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

/// Kings alone at several places, and with one piece of every kind.
fn backgrounds() -> Vec<Board> {
    const KINGS: [(Square, Square); 4] =
        [(Square::E1, Square::E8), (Square::B2, Square::G6), (Square::H4, Square::A5), (Square::D7, Square::C2)];
    let crowd = Square::ALL.into_iter().skip(17).step_by(5).zip(kinds().filter(|(_, role)| *role != Role::King));
    let crowd: Vec<_> = crowd.collect();
    let mut boards = Vec::new();
    for (own, enemy) in KINGS {
        let bare = placed(&placed(&Board::empty(), own, Color::White, Role::King), enemy, Color::Black, Role::King);
        let mut full = bare.clone();
        for (square, (color, role)) in &crowd {
            if full.piece_at(*square).is_none() {
                full = placed(&full, *square, *color, *role);
            }
        }
        boards.extend([bare, full]);
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
    fn nothing_is_odd_about_piece_and_its_kin() {
        check("piece", &[]);
        check("compact", &[]);
        check("half-ka-v2-hm", &[]);
        check("mobility-count", &[]);
        check("pairs-h", &[]);
    }

    #[test]
    fn unseen_pieces_are_named() {
        check("king-piece", &["the set does not see the enemy king"]);
        check(
            "square(P, a1) * color(P) for P in pieces if role(P) == king",
            &[
                "the set does not see own pawns, own knights, own bishops, own rooks, own queens, enemy pawns, enemy knights, \
             enemy bishops, enemy rooks and enemy queens",
            ],
        );
        check(
            "square(K) * square(P) * color(P) for P in pieces if color(P) == own",
            &[
                "the set does not see enemy pawns, enemy knights, enemy bishops, enemy rooks, enemy queens and the enemy king",
            ],
        );
    }

    #[test]
    fn blocks_that_are_never_active_are_named() {
        let request = "piece + square(P) for P in pieces if role(P) == pawn and rank(P) == 0";
        let set = FeatureSet::resolve(request).expect("a definition");
        let found = set.warnings(&Analysis::of(&set, |_, _| {}), Budget::STEPS);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("can never be active"), "{found:?}");
    }

    #[test]
    fn unused_variables_are_named() {
        check(
            "piece + square(A) * role(A) * color(A) for A in pieces, B in moves(A)",
            &[
                "piece + square(A) * role(A) * color(A) for A in pieces, B in moves(A): the variable B is bound and never \
             read; a feature only asks that something can be bound to it",
            ],
        );
    }
}
