//! Where the sources lead on a board of which only part is known, and what taking a step implies.

use shakmaty::attacks;

use crate::chess::{Bitboard, Square};
use crate::features::spec::{Entity, SourceSpec};
use crate::features::syntax::Direction;

use super::domain::Squares;
use super::legal;
use super::partial_board::PartialBoard;

const PAWN: u32 = 0;

/// What must hold where a step ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    Any,
    Empty,
    NotHeldBy(u32),
    HeldBy(u32),
}

/// A square a source may lead to.
#[derive(Clone, Copy)]
pub struct Step {
    pub square: u32,
    /// Squares that must be empty on the way.
    pub way: u64,
    pub landing: Landing,
}

impl Step {
    /// Adds what the step implies; false on a contradiction.
    #[must_use]
    pub fn apply(&self, partial: &mut PartialBoard) -> bool {
        partial.clear(self.way)
            && match self.landing {
                Landing::Any => true,
                Landing::Empty => partial.clear(1 << self.square),
                Landing::NotHeldBy(color) => partial.forbid(color, self.square),
                Landing::HeldBy(color) => partial.hold(color, self.square),
            }
    }
}

/// Every step of a source other than `pieces` from an entity: one a square.
pub fn steps(source: SourceSpec, from: Entity) -> impl Iterator<Item = Step> {
    let pushes = matches!(source, SourceSpec::Moves(_)) && from.role == PAWN;
    let (squares, landing) = match source {
        SourceSpec::Pieces => (0, Landing::Any),
        SourceSpec::Moves(_) if pushes => (attacked(from), Landing::HeldBy(1 - from.color)),
        SourceSpec::Moves(_) => (attacked(from), Landing::NotHeldBy(from.color)),
        SourceSpec::Attacks(_) | SourceSpec::Targets(_) => (attacked(from), Landing::Any),
        SourceSpec::Next(_, direction) => (ray(from.square, direction), Landing::Any),
    };
    let step = move |square| Step { square, way: between(from.square, square), landing };
    let pushed = if pushes { push_squares(from) } else { 0 };
    let push = move |square| Step { square, way: between(from.square, square), landing: Landing::Empty };
    Squares(squares).map(step).chain(Squares(pushed).map(push))
}

/// Attacked squares on a board that is otherwise empty.
pub fn attacked(from: Entity) -> u64 {
    attacks::attacks(Square::new(from.square), legal::piece(from), Bitboard::EMPTY).0
}

/// The squares a piece looks along in each direction, nearest first; a stepper's rays have one square each.
pub fn rays(from: Entity) -> impl Iterator<Item = Vec<u32>> {
    let all = attacked(from);
    let nearest = Squares(all).filter(move |square| between(from.square, *square) & all == 0);
    nearest.map(move |first| {
        let beyond = |square: &u32| *square != first && between(from.square, *square) >> first & 1 != 0;
        let mut ray: Vec<u32> = std::iter::once(first).chain(Squares(all).filter(beyond)).collect();
        ray.sort_by_key(|square| between(from.square, *square).count_ones());
        ray
    })
}

/// A pawn's pushes, two ranks from its start.
pub fn push_squares(pawn: Entity) -> u64 {
    let (up, start) = if pawn.color == 0 { (8i32, 1) } else { (-8, 6) };
    let square = |steps: i32| pawn.square as i32 + up * steps;
    let reach = if pawn.square >> 3 == start { 2 } else { 1 };
    (1..=reach).map(square).filter(|square| (0..64).contains(square)).fold(0, |all, square| all | 1 << square)
}

/// Squares in a direction.
pub fn ray(from: u32, direction: Direction) -> u64 {
    let (files, ranks) = direction.step();
    let at = |steps: i32| (from as i32 % 8 + files * steps, from as i32 / 8 + ranks * steps);
    let on_board = |(file, rank): &(i32, i32)| (0..8).contains(file) && (0..8).contains(rank);
    (1..8).map(at).take_while(on_board).fold(0, |all, (file, rank)| all | 1 << (file + 8 * rank))
}

/// Squares between two squares of a line, none where they share none.
pub fn between(a: u32, b: u32) -> u64 {
    attacks::between(Square::new(a), Square::new(b)).0
}
