//! Witnesses: legal positions that activate a feature, built from a binding.
//!
//! Missing kings are placed, squares that must be occupied are filled, impossible checks are blocked, and hill climbing
//! brings counts to the values that the index requires.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use shakmaty::{CastlingMode, Setup};

use crate::chess::{Board, Chess, Color, Perspective, Square, fen_of, too_close};
use crate::features::reference;
use crate::features::spec::Entity;

use super::bindings::BindingSearch;
use super::budget::AnalysisSteps;
use super::decode::Constraints;
use super::domain::Squares;
use super::legal::{self, END_RANKS};
use super::partial_board::{KING, PartialBoard};
use super::positions::pick;
use super::sources::between;

/// Pieces placed to block checks before an attempt is given up.
const MAX_BLOCKERS: usize = 6;
/// Changes tried while hill climbing.
const CLIMBING_STEPS: usize = 1_500;
/// Steps of building and validating a board, without encoding it.
const BOARD_STEPS: AnalysisSteps = 50;

/// A legal position: a board and a side to move that pass shakmaty's strict validation. Castling rights and en passant
/// would only add conditions, so witnesses have neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    board: Board,
    turn: Color,
}

impl Witness {
    /// The board with a side to move that makes it legal, preferably White.
    pub fn of(board: Board) -> Option<Witness> {
        let is_legal = |turn: &Color| setup(&board, *turn).position::<Chess>(CastlingMode::Standard).is_ok();
        let turn = Color::ALL.into_iter().find(is_legal)?;
        Some(Witness { board, turn })
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    #[must_use]
    pub fn fen(&self) -> String {
        let position = setup(&self.board, self.turn).position::<Chess>(CastlingMode::Standard);
        fen_of(&position.expect("`of` checked it"))
    }
}

fn setup(board: &Board, turn: Color) -> Setup {
    Setup { board: board.clone(), turn, ..Setup::empty() }
}

/// A witness and the block's active elements in it, ascending.
pub struct EncodedWitness {
    pub witness: Witness,
    pub active: Vec<u32>,
}

/// Attempts to build a legal position that agrees with `partial` and activates `index`. Later attempts add more pieces.
pub fn attempt(
    search: &BindingSearch<'_>,
    constraints: &Constraints<'_>,
    index: u32,
    partial: &PartialBoard,
    attempt: u32,
    rng: &mut ChaCha8Rng,
    budget: &mut AnalysisSteps,
) -> Option<EncodedWitness> {
    *budget = budget.checked_sub(BOARD_STEPS)?;
    let board = completed(search, partial, attempt, rng)?;
    let witness = Witness::of(board)?;
    let active = encode(search, &witness, budget)?;
    if active.binary_search(&index).is_ok() {
        return Some(EncodedWitness { witness, active });
    }
    if constraints.counts.is_empty() { None } else { climb(search, constraints, index, partial, witness, rng, budget) }
}

/// The block's active elements; `None` when the budget is spent.
fn encode(search: &BindingSearch<'_>, witness: &Witness, budget: &mut AnalysisSteps) -> Option<Vec<u32>> {
    let pieces = witness.board().occupied().count() as AnalysisSteps;
    *budget = budget.checked_sub(search.encoding_steps_with(pieces))?;
    Some(reference::active(search.block, witness.board(), Perspective::White))
}

/// A board with the pieces of `partial`, both kings, and further pieces.
fn completed(search: &BindingSearch<'_>, partial: &PartialBoard, attempt: u32, rng: &mut ChaCha8Rng) -> Option<Board> {
    let mut board = Board::empty();
    let put = |board: &mut Board, entity: Entity| {
        board.set_piece_at(Square::new(entity.square), legal::piece(entity));
    };
    partial.pieces().for_each(|entity| put(&mut board, entity));
    for color in 0..2 {
        for square in Squares(partial.unknown_role(color)) {
            let role = if attempt % 8 == 7 && partial.king(color).is_none() { KING } else { random_role(square, rng) };
            let has_king = role == KING && board.king_of(legal::color(color)).is_some();
            put(&mut board, Entity { square, role: if has_king { 1 } else { role }, color });
        }
    }
    for color in [0u32, 1] {
        let [own, other] = [color, 1 - color].map(|color| board.king_of(legal::color(color)));
        if own.is_none() {
            let apart = |square: &u32| other.is_none_or(|other| !too_close(*square, other.into()));
            let free = |square: &u32| {
                board.piece_at(Square::new(*square)).is_none() && partial.may_be_occupied_by(color, *square)
            };
            let squares = Squares(search.pieces.king_squares(color)).filter(apart).filter(free);
            let square = pick(squares.fold(0, |all, square| all | 1 << square), rng)?;
            put(&mut board, Entity { square, role: KING, color });
        }
    }
    for _ in 0..attempt / 6 {
        let free = !partial.empty() & !board.occupied().0;
        if let Some(square) = pick(free, rng) {
            add(&mut board, partial, square, rng);
        }
    }
    block_checks(&mut board, partial, rng);
    Some(board)
}

/// Puts a random piece other than a king on the square, of a colour that `partial` allows there.
fn add(board: &mut Board, partial: &PartialBoard, square: u32, rng: &mut ChaCha8Rng) {
    let first = rng.random_range(0..2u32);
    if let Some(color) = [first, 1 - first].into_iter().find(|color| partial.may_be_occupied_by(*color, square)) {
        let entity = Entity { square, role: random_role(square, rng), color };
        board.set_piece_at(Square::new(square), legal::piece(entity));
    }
}

/// A random role without the king, most often a pawn.
fn random_role(square: u32, rng: &mut ChaCha8Rng) -> u32 {
    let role: u32 = rng.random_range(0..7u32).saturating_sub(2);
    if role == 0 && END_RANKS >> square & 1 != 0 { 1 } else { role }
}

/// Blocks sliders that give check until the position is legal.
fn block_checks(board: &mut Board, partial: &PartialBoard, rng: &mut ChaCha8Rng) {
    for _ in 0..MAX_BLOCKERS {
        if Witness::of(board.clone()).is_some() {
            return;
        }
        let paths =
            Color::ALL.into_iter().filter_map(|color| Some((color, board.king_of(color)?))).map(|(color, king)| {
                let attackers = board.attacks_to(king, color.other(), board.occupied());
                attackers.into_iter().fold(0, |all, from| all | between(from.into(), king.into()))
            });
        let free = paths.fold(0, |all, path| all | path) & !partial.empty() & !board.occupied().0;
        let Some(square) = pick(free, rng) else { return };
        add(board, partial, square, rng);
    }
}

/// Hill climbing on the counts: changes pieces that the binding does not need and keeps changes that do not increase
/// the distance.
fn climb(
    search: &BindingSearch<'_>,
    constraints: &Constraints<'_>,
    index: u32,
    partial: &PartialBoard,
    start: Witness,
    rng: &mut ChaCha8Rng,
    budget: &mut AnalysisSteps,
) -> Option<EncodedWitness> {
    let mut current = start;
    let mut active = reference::active(search.block, current.board(), Perspective::White);
    let mut best = distance(search, constraints, &active)?;
    for _ in 0..CLIMBING_STEPS {
        // `distance` decodes the active features.
        let decoding = active.len() as AnalysisSteps * search.decoding_steps();
        *budget = budget.checked_sub(BOARD_STEPS + decoding)?;
        let mut board = current.board().clone();
        for _ in 0..rng.random_range(1..=2) {
            change(search, &mut board, partial, rng);
        }
        let Some(witness) = Witness::of(board) else { continue };
        active = encode(search, &witness, budget)?;
        if active.binary_search(&index).is_ok() {
            return Some(EncodedWitness { witness, active });
        }
        match distance(search, constraints, &active) {
            Some(now) if now <= best => (current, best) = (witness, now),
            _ => {}
        }
    }
    None
}

/// Changes one square that the binding leaves open.
fn change(search: &BindingSearch<'_>, board: &mut Board, partial: &PartialBoard, rng: &mut ChaCha8Rng) {
    let Some(square) = pick(!partial.empty(), rng) else { return };
    let at = Square::new(square);
    match board.piece_at(at).map(|piece| legal::entity(at, piece)) {
        None => add(board, partial, square, rng),
        Some(piece) if partial.piece_at(square).is_some() || !partial.may_be_empty(square) => {
            if partial.piece_at(square).is_none() && piece.role != KING {
                add(board, partial, square, rng);
            }
        }
        Some(king) if king.role == KING => {
            let free = search.pieces.king_squares(king.color) & !board.occupied().0;
            let squares = Squares(free).filter(|square| partial.may_be_occupied_by(king.color, *square));
            if let Some(to) = pick(squares.fold(0, |all, square| all | 1 << square), rng) {
                board.discard_piece_at(at);
                board.set_piece_at(Square::new(to), legal::piece(king));
            }
        }
        Some(_) if rng.random_bool(0.5) => board.discard_piece_at(at),
        Some(_) => add(board, partial, square, rng),
    }
}

/// Distance of the counts to the required ones, for the nearest active index that differs in its counts only.
fn distance(search: &BindingSearch<'_>, constraints: &Constraints<'_>, active: &[u32]) -> Option<u32> {
    let distance_of = |index: &u32| {
        let other = search.constraints(*index)?;
        let differences =
            |of: &Constraints<'_>| of.differences.iter().map(|difference| difference.is).collect::<Vec<_>>();
        let differs_in_counts_only = other.domains == constraints.domains
            && differences(&other) == differences(constraints)
            && other.counts.len() == constraints.counts.len()
            && other.counts.iter().zip(&constraints.counts).all(|((a, _), (b, _))| std::ptr::eq(*a, *b));
        let distance = || other.counts.iter().zip(&constraints.counts).map(|((_, a), (_, b))| a.abs_diff(*b)).sum();
        differs_in_counts_only.then(distance)
    };
    active.iter().filter_map(distance_of).min()
}
