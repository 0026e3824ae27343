//! The squares that a source may yield on a partially known board, and the consequences of each for the board.

use shakmaty::attacks;

use crate::chess::{Bitboard, Square};
use crate::features::source::Direction;
use crate::features::spec::{Entity, SourceSpec};

use super::domain::Squares;
use super::legal;
use super::partial_board::PartialBoard;

const PAWN: u32 = 0;

/// What must hold on a square for a source to yield it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Occupancy {
    Any,
    Empty,
    NotOf(u32),
    Of(u32),
}

/// A square that a source may yield.
#[derive(Clone, Copy)]
pub struct SourceSquare {
    pub square: u32,
    /// Squares on the way, which must be empty.
    pub path: u64,
    pub occupancy: Occupancy,
}

impl SourceSquare {
    /// Adds the implications to the board; false on a contradiction.
    #[must_use]
    pub fn apply(&self, partial: &mut PartialBoard) -> bool {
        partial.clear(self.path)
            && match self.occupancy {
                Occupancy::Any => true,
                Occupancy::Empty => partial.clear(1 << self.square),
                Occupancy::NotOf(color) => partial.exclude(color, self.square),
                Occupancy::Of(color) => partial.occupy(color, self.square),
            }
    }
}

/// The squares that a source other than `pieces` may yield from an entity.
pub fn source_squares(source: SourceSpec, from: Entity) -> impl Iterator<Item = SourceSquare> {
    let is_pawn_move = matches!(source, SourceSpec::Moves(_)) && from.role == PAWN;
    let (squares, occupancy) = match source {
        SourceSpec::Pieces => (0, Occupancy::Any),
        SourceSpec::Moves(_) if is_pawn_move => (attacked(from), Occupancy::Of(1 - from.color)),
        SourceSpec::Moves(_) => (attacked(from), Occupancy::NotOf(from.color)),
        SourceSpec::Attacks(_) | SourceSpec::Targets(_) => (attacked(from), Occupancy::Any),
        SourceSpec::Next(_, direction) => (ray(from.square, direction), Occupancy::Any),
    };
    let pushes = if is_pawn_move { push_squares(from) } else { 0 };
    let to = move |square, occupancy| SourceSquare { square, path: between(from.square, square), occupancy };
    Squares(squares)
        .map(move |square| to(square, occupancy))
        .chain(Squares(pushes).map(move |square| to(square, Occupancy::Empty)))
}

/// How a source's values depend on what stands on the board.
pub enum Walk {
    /// All pieces.
    Pieces,
    /// The first piece of each line of squares.
    FirstPieces(Vec<Vec<u32>>),
    /// The squares of each line up to the first piece, with that piece's square.
    Attacks,
    /// The squares to which the piece could move.
    Moves,
}

/// The values of a source from an entity; all pieces without one.
pub fn walk(source: SourceSpec, from: Option<Entity>) -> Walk {
    match (source, from) {
        (SourceSpec::Moves(_), Some(_)) => Walk::Moves,
        (SourceSpec::Attacks(_), Some(_)) => Walk::Attacks,
        (SourceSpec::Targets(_), Some(from)) => Walk::FirstPieces(rays(from).collect()),
        (SourceSpec::Next(_, direction), Some(from)) => {
            Walk::FirstPieces(vec![Squares(ray(from.square, direction)).collect()])
        }
        (SourceSpec::Pieces, _) | (_, None) => Walk::Pieces,
    }
}

/// Attacked squares on an otherwise empty board.
pub fn attacked(from: Entity) -> u64 {
    attacks::attacks(Square::new(from.square), legal::piece(from), Bitboard::EMPTY).0
}

/// Attacked squares by direction, nearest first; the rays of pawns, knights and kings have one square each.
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

/// The squares of a pawn's single and double push.
pub fn push_squares(pawn: Entity) -> u64 {
    let (up, start) = if pawn.color == 0 { (8i32, 1) } else { (-8, 6) };
    let square = |steps: i32| pawn.square as i32 + up * steps;
    let reach = if pawn.square >> 3 == start { 2 } else { 1 };
    (1..=reach).map(square).filter(|square| (0..64).contains(square)).fold(0, |all, square| all | 1 << square)
}

/// The squares in a direction up to the edge.
pub fn ray(from: u32, direction: Direction) -> u64 {
    let (files, ranks) = direction.step();
    let at = |steps: i32| (from as i32 % 8 + files * steps, from as i32 / 8 + ranks * steps);
    let on_board = |(file, rank): &(i32, i32)| (0..8).contains(file) && (0..8).contains(rank);
    (1..8).map(at).take_while(on_board).fold(0, |all, (file, rank)| all | 1 << (file + 8 * rank))
}

/// The squares between two squares of a line; empty when no line joins them.
pub fn between(a: u32, b: u32) -> u64 {
    attacks::between(Square::new(a), Square::new(b)).0
}
