//! Axes as they are written: their names, and the names of their values. What an axis's value is on a board:
//! `spec/axis.rs`; as bit operations: `lower/values.rs`.

use super::{Span, Variable};

pub const FILES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
pub const ROLES: [&str; 6] = ["pawn", "knight", "bishop", "rook", "queen", "king"];
pub const COLORS: [&str; 2] = ["own", "their"];

/// The property that an axis reads. `B` is a bucket table: its name in the syntax, the table itself once it is resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AxisKind<B = String> {
    Square,
    File,
    Rank,
    Diagonal,
    Antidiagonal,
    Role,
    Color,
    Bucket(B),
}

/// `file(P, a..d)`; the domain holds plain values in the order listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    pub kind: AxisKind,
    pub variable: Variable,
    pub domain: Option<Vec<u32>>,
    pub span: Span,
}

impl<B> AxisKind<B> {
    /// All axes but buckets.
    pub const ALL: [AxisKind<B>; 7] = [
        AxisKind::Square,
        AxisKind::File,
        AxisKind::Rank,
        AxisKind::Diagonal,
        AxisKind::Antidiagonal,
        AxisKind::Role,
        AxisKind::Color,
    ];

    /// The axes whose values have names of their own, which conditions may use without the axis.
    pub const WITH_NAMED_VALUES: [AxisKind<B>; 4] = [AxisKind::Square, AxisKind::File, AxisKind::Role, AxisKind::Color];

    pub const fn name(&self) -> &'static str {
        match self {
            AxisKind::Square => "square",
            AxisKind::File => "file",
            AxisKind::Rank => "rank",
            AxisKind::Diagonal => "diagonal",
            AxisKind::Antidiagonal => "antidiagonal",
            AxisKind::Role => "role",
            AxisKind::Color => "color",
            AxisKind::Bucket(_) => "bucket",
        }
    }

    /// Whether a bare square has this axis.
    pub const fn of_square(&self) -> bool {
        !matches!(self, AxisKind::Role | AxisKind::Color)
    }

    /// The name of a plain value in a domain.
    pub fn value_name(&self, value: u32) -> String {
        let at = value as usize;
        match self {
            AxisKind::Square => format!("{}{}", FILES[at & 7], at / 8 + 1),
            AxisKind::File => FILES[at].to_owned(),
            AxisKind::Rank => (at + 1).to_string(),
            AxisKind::Role => ROLES[at].to_owned(),
            AxisKind::Color => COLORS[at].to_owned(),
            AxisKind::Diagonal | AxisKind::Antidiagonal | AxisKind::Bucket(_) => value.to_string(),
        }
    }

    /// The plain value that a word names.
    pub fn named_value(&self, word: &str) -> Option<u32> {
        let names: &[&str] = match self {
            AxisKind::Square => return word.parse::<shakmaty::Square>().ok().map(u32::from),
            AxisKind::File => &FILES,
            AxisKind::Role => &ROLES,
            AxisKind::Color => &COLORS,
            AxisKind::Rank | AxisKind::Diagonal | AxisKind::Antidiagonal | AxisKind::Bucket(_) => return None,
        };
        names.iter().position(|name| *name == word).map(|at| at as u32)
    }

    /// The plain value that a number stands for in a domain: ranks are 1 to 8 as on the board, diagonals 0 to 14.
    pub fn numbered_value(&self, number: u64) -> Option<u32> {
        match (self, number) {
            (AxisKind::Rank, 1..=8) => Some(number as u32 - 1),
            (AxisKind::Diagonal | AxisKind::Antidiagonal, 0..15) => Some(number as u32),
            _ => None,
        }
    }

    /// What the values are called, for error messages.
    pub const fn values_help(&self) -> &'static str {
        match self {
            AxisKind::Square => "squares are named a1 to h8",
            AxisKind::File => "files are named a to h",
            AxisKind::Rank => "ranks are named 1 to 8",
            AxisKind::Diagonal | AxisKind::Antidiagonal => "diagonals are numbered 0 to 14",
            AxisKind::Role => "roles are pawn, knight, bishop, rook, queen and king",
            AxisKind::Color => "colours are own and their",
            AxisKind::Bucket(_) => "a bucket has no domain",
        }
    }

    /// The same axis with its bucket table replaced.
    pub fn map_bucket<C, E>(&self, map: impl FnOnce(&B) -> Result<C, E>) -> Result<AxisKind<C>, E> {
        Ok(match self {
            AxisKind::Square => AxisKind::Square,
            AxisKind::File => AxisKind::File,
            AxisKind::Rank => AxisKind::Rank,
            AxisKind::Diagonal => AxisKind::Diagonal,
            AxisKind::Antidiagonal => AxisKind::Antidiagonal,
            AxisKind::Role => AxisKind::Role,
            AxisKind::Color => AxisKind::Color,
            AxisKind::Bucket(bucket) => AxisKind::Bucket(map(bucket)?),
        })
    }
}
