//! From a binding to a legal position: missing kings placed, squares that must be held filled, impossible checks
//! blocked, counts brought to what the index asks.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::chess::{Board, Color, Perspective, Square, too_close};
use crate::features::reference;
use crate::features::spec::Entity;

use super::bindings::BindingSearch;
use super::budget::Steps;
use super::decode::Constraints;
use super::domain::Squares;
use super::legal::{self, END_RANKS, Witness};
use super::partial_board::{KING, PartialBoard};
use super::positions::pick;
use super::sources::between;

/// Blocks put between a checker and a king before a try is given up.
const BLOCKS: usize = 6;
/// Changes tried to bring counts to their values.
const CLIMB: usize = 1_500;
/// What building and checking a board takes beside encoding it.
const BOARD_STEPS: Steps = 50;

/// A legal position and the block's features in it, ascending.
pub struct Found {
    pub witness: Witness,
    pub active: Vec<u32>,
}

/// A try at a legal position with all that `partial` says in which `index` is active. Later tries add more pieces.
pub fn attempt(
    frame: &BindingSearch<'_>,
    goal: &Constraints<'_>,
    index: u32,
    partial: &PartialBoard,
    number: u32,
    rng: &mut ChaCha8Rng,
    budget: &mut Steps,
) -> Option<Found> {
    *budget = budget.checked_sub(BOARD_STEPS)?;
    let board = completed(frame, partial, number, rng)?;
    let witness = Witness::of(board)?;
    spend(frame, witness.board(), budget)?;
    let active = reference::active(frame.block, witness.board(), Perspective::White);
    if active.binary_search(&index).is_ok() {
        return Some(Found { witness, active });
    }
    if goal.counts.is_empty() { None } else { climb(frame, goal, index, partial, witness, rng, budget) }
}

/// Takes a board's encoding off the budget, none when that is spent.
fn spend(frame: &BindingSearch<'_>, board: &Board, budget: &mut Steps) -> Option<()> {
    *budget = budget.checked_sub(frame.encoding_steps_of(board.occupied().count() as Steps))?;
    Some(())
}

fn completed(frame: &BindingSearch<'_>, partial: &PartialBoard, number: u32, rng: &mut ChaCha8Rng) -> Option<Board> {
    let mut board = Board::empty();
    let put = |board: &mut Board, entity: Entity| {
        board.set_piece_at(Square::new(entity.square), legal::piece(entity));
    };
    partial.pieces().for_each(|entity| put(&mut board, entity));
    for color in 0..2 {
        for square in Squares(partial.unnamed(color)) {
            let role = if number % 8 == 7 && partial.king(color).is_none() { KING } else { random_role(square, rng) };
            let taken = role == KING && board.king_of(if color == 0 { Color::White } else { Color::Black }).is_some();
            put(&mut board, Entity { square, role: if taken { 1 } else { role }, color });
        }
    }
    for color in [0u32, 1] {
        let [own, other] =
            [color, 1 - color].map(|color| board.king_of(if color == 0 { Color::White } else { Color::Black }));
        if own.is_none() {
            let apart = |square: &u32| other.is_none_or(|other| !too_close(*square, other.into()));
            let free =
                |square: &u32| board.piece_at(Square::new(*square)).is_none() && partial.may_be_held(color, *square);
            let squares = Squares(frame.pieces.king_squares(color)).filter(apart).filter(free);
            let square = pick(squares.fold(0, |all, square| all | 1 << square), rng)?;
            put(&mut board, Entity { square, role: KING, color });
        }
    }
    for _ in 0..number / 6 {
        let free = !partial.empty() & !board.occupied().0;
        if let Some(square) = pick(free, rng) {
            add(&mut board, partial, square, rng);
        }
    }
    block_checks(&mut board, partial, rng);
    Some(board)
}

/// Some piece other than a king, where the side may have one.
fn add(board: &mut Board, partial: &PartialBoard, square: u32, rng: &mut ChaCha8Rng) {
    let first = rng.random_range(0..2u32);
    if let Some(color) = [first, 1 - first].into_iter().find(|color| partial.may_be_held(*color, square)) {
        let entity = Entity { square, role: random_role(square, rng), color };
        board.set_piece_at(Square::new(square), legal::piece(entity));
    }
}

/// Pawns more often than others; no king.
fn random_role(square: u32, rng: &mut ChaCha8Rng) -> u32 {
    let role: u32 = rng.random_range(0..7u32).saturating_sub(2);
    if role == 0 && END_RANKS >> square & 1 != 0 { 1 } else { role }
}

/// Puts pieces in the way of sliders that attack a king, while that is more than a legal position allows.
fn block_checks(board: &mut Board, partial: &PartialBoard, rng: &mut ChaCha8Rng) {
    for _ in 0..BLOCKS {
        if Witness::of(board.clone()).is_some() {
            return;
        }
        let ways =
            Color::ALL.into_iter().filter_map(|color| Some((color, board.king_of(color)?))).map(|(color, king)| {
                let attackers = board.attacks_to(king, color.other(), board.occupied());
                attackers.into_iter().fold(0, |all, from| all | between(from.into(), king.into()))
            });
        let free = ways.fold(0, |all, way| all | way) & !partial.empty() & !board.occupied().0;
        let Some(square) = pick(free, rng) else { return };
        add(board, partial, square, rng);
    }
}

/// Adds, removes and exchanges pieces the binding does not need, keeping what brings the counts no further away.
fn climb(
    frame: &BindingSearch<'_>,
    goal: &Constraints<'_>,
    index: u32,
    partial: &PartialBoard,
    start: Witness,
    rng: &mut ChaCha8Rng,
    budget: &mut Steps,
) -> Option<Found> {
    let mut current = start;
    let mut active = reference::active(frame.block, current.board(), Perspective::White);
    let mut best = distance(frame, goal, &active)?;
    for _ in 0..CLIMB {
        // The features of the boards are read backwards, too.
        let reading = active.len() as Steps * frame.goal_steps();
        *budget = budget.checked_sub(BOARD_STEPS + reading)?;
        let mut board = current.board().clone();
        for _ in 0..rng.random_range(1..=2) {
            change(frame, &mut board, partial, rng);
        }
        let Some(witness) = Witness::of(board) else { continue };
        spend(frame, witness.board(), budget)?;
        active = reference::active(frame.block, witness.board(), Perspective::White);
        if active.binary_search(&index).is_ok() {
            return Some(Found { witness, active });
        }
        match distance(frame, goal, &active) {
            Some(now) if now <= best => (current, best) = (witness, now),
            _ => {}
        }
    }
    None
}

fn change(frame: &BindingSearch<'_>, board: &mut Board, partial: &PartialBoard, rng: &mut ChaCha8Rng) {
    let Some(square) = pick(!partial.empty(), rng) else { return };
    let at = Square::new(square);
    match board.piece_at(at).map(|piece| legal::entity(at, piece)) {
        None => add(board, partial, square, rng),
        Some(held) if partial.at(square).is_some() || !partial.may_be_empty(square) => {
            if partial.at(square).is_none() && held.role != KING {
                add(board, partial, square, rng);
            }
        }
        Some(king) if king.role == KING => {
            let free = frame.pieces.king_squares(king.color) & !board.occupied().0;
            let squares = Squares(free).filter(|square| partial.may_be_held(king.color, *square));
            if let Some(to) = pick(squares.fold(0, |all, square| all | 1 << square), rng) {
                board.discard_piece_at(at);
                board.set_piece_at(Square::new(to), legal::piece(king));
            }
        }
        Some(_) if rng.random_bool(0.5) => board.discard_piece_at(at),
        Some(_) => add(board, partial, square, rng),
    }
}

/// How far the counts of the nearest active index are from those asked, among indices that agree in all else.
fn distance(frame: &BindingSearch<'_>, goal: &Constraints<'_>, active: &[u32]) -> Option<u32> {
    let off = |index: &u32| {
        let other = frame.goal(*index)?;
        let differences =
            |goal: &Constraints<'_>| goal.differences.iter().map(|difference| difference.is).collect::<Vec<_>>();
        let alike = other.domains == goal.domains
            && differences(&other) == differences(goal)
            && other.counts.len() == goal.counts.len()
            && other.counts.iter().zip(&goal.counts).all(|((a, _), (b, _))| std::ptr::eq(*a, *b));
        let apart = || other.counts.iter().zip(&goal.counts).map(|((_, a), (_, b))| a.abs_diff(*b)).sum();
        alike.then(apart)
    };
    active.iter().filter_map(off).min()
}
