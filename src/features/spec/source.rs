//! Sources: the ranges of variables, as in `for P in pieces, N in next(P, east)`.
//!
//! `reference.rs` evaluates them plainly, `lower/sources.rs` on bitboards, and `analysis/sources.rs` on
//! partially known boards.

use crate::features::syntax::Direction;

/// The range of a variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// Pieces on their squares, kings included.
    Piece,
    /// Squares, whatever stands on them.
    Square,
}

/// A variable behind `for`, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinderSpec {
    pub slot: usize,
    /// The author's letter.
    pub letter: char,
    pub source: SourceSpec,
}

/// A source. The number is the slot of the piece that it starts from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SourceSpec {
    /// Every piece on the board, kings included.
    Pieces,
    /// `moves(P)`: squares that P could move to if it were its turn, whatever checks and pins there are.
    Moves(usize),
    /// `attacks(P)`: squares that P attacks, whatever stands there.
    Attacks(usize),
    /// `targets(P)`: pieces on the squares that P attacks.
    Targets(usize),
    /// `next(P, east)`: the first piece in a direction from P.
    Next(usize, Direction),
}

impl SourceSpec {
    /// Whether both sources yield the same from equal pieces: they differ at most in the slot they start from.
    pub fn same_kind_as(self, other: SourceSpec) -> bool {
        match (self, other) {
            (SourceSpec::Next(_, one), SourceSpec::Next(_, another)) => one == another,
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }

    /// Slot of the piece that the source starts from.
    pub const fn of(self) -> Option<usize> {
        match self {
            SourceSpec::Pieces => None,
            SourceSpec::Moves(of) | SourceSpec::Attacks(of) | SourceSpec::Targets(of) | SourceSpec::Next(of, _) => {
                Some(of)
            }
        }
    }
}
