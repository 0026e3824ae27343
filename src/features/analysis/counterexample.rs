//! The search for two legal positions that differ in where the pieces stand and look the same to both perspectives.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::chess::{Board, Perspective, Piece, Role, Square};
use crate::features::FeatureSet;
use crate::features::spec::{ENEMY_KING, VariableKind};

use super::bindings::encoding_steps;
use super::budget::{Budget, Steps};
use super::domain::{Domain, Squares};
use super::legal::Witness;
use super::positions::{pick, scattered, stream};

/// Random positions changed in search of a pair, from kings alone to full boards, and changes tried on each.
const POSITIONS: u64 = 600;
const CHANGES: usize = 160;
/// Bounds the work on sets that are slow to encode.
const BUDGET: Steps = 1 << 26;

/// Files and ranks that whole positions are moved by.
const STEPS: [(i32, i32); 8] = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// The position with every piece moved by so many files and ranks; none when one would leave the board.
fn shifted(board: &Board, (files, ranks): (i32, i32)) -> Option<Board> {
    let mut moved = Board::empty();
    for (square, piece) in board.clone() {
        moved.set_piece_at(square.offset(files + 8 * ranks).filter(|to| apart(square, *to) == (files, ranks))?, piece);
    }
    Some(moved)
}

fn apart(from: Square, to: Square) -> (i32, i32) {
    (i32::from(to.file()) - i32::from(from.file()), i32::from(to.rank()) - i32::from(from.rank()))
}

/// A pair whose reference features are equal in both perspectives.
pub fn pair(set: &FeatureSet, budget: Budget) -> Option<[Witness; 2]> {
    let mut spent = 0;
    let limit = budget.steps(BUDGET);
    let steps = encoding_steps(set);
    if steps > limit {
        return None;
    }
    let mut encode = |board: &Board| {
        let seen = Perspective::ALL.map(|pov| {
            let mut active = Vec::new();
            set.encoder().encode(board, pov, &mut active);
            active.sort_unstable();
            active
        });
        // Both perspectives, by the compiled encoder.
        spent += steps / 4;
        (seen, spent > limit || budget.expired())
    };
    let anywhere = Domain::of_slot(ENEMY_KING + 1, VariableKind::Piece, !0);
    for number in 0..POSITIONS {
        let mut rng = stream("collide", number);
        let most = (number / 12).min(15) as u32;
        let Some(position) = scattered(&anywhere, [rng.random_range(0..=most), rng.random_range(0..=most)], &mut rng)
        else {
            continue;
        };
        let (features, spent) = encode(position.board());
        if spent {
            return None;
        }
        for change in 0..CHANGES {
            let mut board = position.board().clone();
            match change.checked_sub(1).map(|at| STEPS.get(at)) {
                None => board.flip_horizontal(),
                Some(Some(step)) => match shifted(&board, *step) {
                    Some(moved) => board = moved,
                    None => continue,
                },
                Some(None) => changed(&mut board, &mut rng),
            }
            if board == *position.board() {
                continue;
            }
            let Some(other) = Witness::of(board) else { continue };
            let (others, spent) = encode(other.board());
            if spent {
                return None;
            }
            if features == others && equal(set, &position, &other) {
                return Some([position, other]);
            }
        }
    }
    None
}

/// Whether the reference encoder, too, sees no difference.
pub fn equal(set: &FeatureSet, a: &Witness, b: &Witness) -> bool {
    Perspective::ALL.into_iter().all(|pov| set.reference(a.board(), pov) == set.reference(b.board(), pov))
}

/// A piece removed, moved, turned into another, or exchanged with another; or two alike moved to the other corners
/// of their rectangle, which keeps files and ranks.
fn changed(board: &mut Board, rng: &mut ChaCha8Rng) {
    let occupied = board.occupied().0;
    let others = occupied & !board.kings().0;
    let man = |board: &Board, square: Option<u32>| {
        let square = Square::new(square?);
        board.piece_at(square).map(|piece| (square, piece))
    };
    let kind = rng.random_range(0..5);
    let from = if kind == 1 || kind == 3 { pick(occupied, rng) } else { pick(others, rng) };
    let Some((from, piece)) = man(board, from) else { return };
    match kind {
        0 => board.discard_piece_at(from),
        1 => {
            if let Some(to) = pick(!occupied, rng) {
                board.discard_piece_at(from);
                board.set_piece_at(Square::new(to), piece);
            }
        }
        2 => {
            let color = if rng.random_bool(0.5) { piece.color } else { piece.color.other() };
            board.set_piece_at(from, Piece { color, role: Role::ALL[rng.random_range(0..5)] });
        }
        3 => {
            if let Some((to, other)) = man(board, pick(occupied, rng)) {
                board.set_piece_at(from, other);
                board.set_piece_at(to, piece);
            }
        }
        _ => {
            let alike = board.by_piece(piece).0 & !(1 << u32::from(from));
            let corners = |other: u32| {
                let other = Square::new(other);
                [Square::from_coords(from.file(), other.rank()), Square::from_coords(other.file(), from.rank())]
            };
            let empty = |other: &u32| corners(*other).iter().all(|corner| board.piece_at(*corner).is_none());
            let partners = Squares(alike).filter(empty).fold(0, |all, square| all | 1 << square);
            if let Some(other) = pick(partners, rng) {
                board.discard_piece_at(from);
                board.discard_piece_at(Square::new(other));
                corners(other).into_iter().for_each(|corner| board.set_piece_at(corner, piece));
            }
        }
    }
}
