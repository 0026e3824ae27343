//! Random search for two legal positions with different pieces and equal features for both perspectives.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::chess::{Board, Perspective, Piece, Role, Square};
use crate::features::FeatureSet;
use crate::features::spec::{ENEMY_KING, VariableKind};

use super::budget::{AnalysisSteps, Budget, encoding_steps};
use super::domain::{Domain, Squares};
use super::positions::{pick, random_placement_of, stream};
use super::witness::Witness;

/// Random positions, from bare kings to full boards.
const POSITIONS: u64 = 600;
/// Changes tried per position.
const CHANGES: usize = 160;
/// Limits the work for sets that are slow to encode.
const BUDGET: AnalysisSteps = 1 << 26;

/// Shifts of whole positions, in files and ranks.
const SHIFTS: [(i32, i32); 8] = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// The board with all pieces shifted; `None` when one would leave the board.
fn shifted(board: &Board, (files, ranks): (i32, i32)) -> Option<Board> {
    let mut result = Board::empty();
    for (square, piece) in board.clone() {
        let to = square.offset(files + 8 * ranks).filter(|to| offset(square, *to) == (files, ranks))?;
        result.set_piece_at(to, piece);
    }
    Some(result)
}

/// Files and ranks from a square to another.
fn offset(from: Square, to: Square) -> (i32, i32) {
    (i32::from(to.file()) - i32::from(from.file()), i32::from(to.rank()) - i32::from(from.rank()))
}

/// Searches for two positions with equal reference features for both perspectives.
pub fn find(set: &FeatureSet, budget: Budget) -> Option<[Witness; 2]> {
    let limit = budget.steps(BUDGET);
    let steps = encoding_steps(set);
    if steps > limit {
        return None;
    }
    let mut spent = 0;
    // `None` when the budget is spent.
    let mut encode = |board: &Board| {
        let features = Perspective::ALL.map(|pov| {
            let mut active = Vec::new();
            set.encoder().encode(board, pov, &mut active);
            active.sort_unstable();
            active
        });
        // The compiled encoder takes at most an eighth of `steps` per perspective.
        spent += steps / 4;
        (spent <= limit && !budget.expired()).then_some(features)
    };
    let anywhere = Domain::of_slot(ENEMY_KING + 1, VariableKind::Piece, !0);
    for number in 0..POSITIONS {
        let mut rng = stream("collide", number);
        let max_pieces = (number / 12).min(15) as u32;
        let extras = [rng.random_range(0..=max_pieces), rng.random_range(0..=max_pieces)];
        let Some(position) = random_placement_of(&anywhere, extras, &mut rng) else { continue };
        let features = encode(position.board())?;
        for change in 0..CHANGES {
            let mut board = position.board().clone();
            match change.checked_sub(1).map(|at| SHIFTS.get(at)) {
                None => board.flip_horizontal(),
                Some(Some(shift)) => match shifted(&board, *shift) {
                    Some(shifted) => board = shifted,
                    None => continue,
                },
                Some(None) => change_randomly(&mut board, &mut rng),
            }
            if board == *position.board() {
                continue;
            }
            let Some(other) = Witness::of(board) else { continue };
            if features == encode(other.board())? && have_equal_features(set, &position, &other) {
                return Some([position, other]);
            }
        }
    }
    None
}

/// Whether the reference encoder gives both positions the same features.
fn have_equal_features(set: &FeatureSet, a: &Witness, b: &Witness) -> bool {
    Perspective::ALL.into_iter().all(|pov| set.reference(a.board(), pov) == set.reference(b.board(), pov))
}

/// Removes, moves, replaces or swaps a piece; or moves two equal pieces to the other corners of their rectangle, which
/// keeps the numbers of pieces per file and rank.
fn change_randomly(board: &mut Board, rng: &mut ChaCha8Rng) {
    let occupied = board.occupied().0;
    let without_kings = occupied & !board.kings().0;
    let piece_on = |board: &Board, square: Option<u32>| {
        let square = Square::new(square?);
        board.piece_at(square).map(|piece| (square, piece))
    };
    let kind = rng.random_range(0..5);
    let from = if kind == 1 || kind == 3 { pick(occupied, rng) } else { pick(without_kings, rng) };
    let Some((from, piece)) = piece_on(board, from) else { return };
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
            if let Some((to, other)) = piece_on(board, pick(occupied, rng)) {
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
