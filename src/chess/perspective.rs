//! Perspectives, and how the board is oriented for them.

use std::ops::{Index, IndexMut};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Color, File, Square};

/// The colour whose view of a position is encoded. It is not the side to move: each position is encoded for both
/// colours.
///
/// ```
/// use fsbench::chess::{Orientation, Perspective, Square};
///
/// let black = Perspective::Black;
/// assert_eq!((black.own(), black.other()), (shakmaty::Color::Black, Perspective::White));
/// // Black's own king on e8 has the index of e1.
/// assert_eq!(60 ^ Orientation::default().mask(Square::E8, black), 4);
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Perspective {
    White,
    Black,
}

impl Perspective {
    pub const ALL: [Perspective; 2] = [Perspective::White, Perspective::Black];

    /// The perspective of the player of `color`.
    #[must_use]
    pub const fn of(color: Color) -> Perspective {
        match color {
            Color::White => Perspective::White,
            Color::Black => Perspective::Black,
        }
    }

    /// The colour called *own* in this perspective.
    #[must_use]
    pub const fn own(self) -> Color {
        match self {
            Perspective::White => Color::White,
            Perspective::Black => Color::Black,
        }
    }

    #[must_use]
    pub const fn other(self) -> Perspective {
        match self {
            Perspective::White => Perspective::Black,
            Perspective::Black => Perspective::White,
        }
    }

    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// One value per perspective.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByPerspective<T> {
    pub white: T,
    pub black: T,
}

impl<T> ByPerspective<T> {
    pub fn new_with(mut init: impl FnMut(Perspective) -> T) -> Self {
        ByPerspective { white: init(Perspective::White), black: init(Perspective::Black) }
    }
}

impl<T> Index<Perspective> for ByPerspective<T> {
    type Output = T;

    fn index(&self, pov: Perspective) -> &T {
        match pov {
            Perspective::White => &self.white,
            Perspective::Black => &self.black,
        }
    }
}

impl<T> IndexMut<Perspective> for ByPerspective<T> {
    fn index_mut(&mut self, pov: Perspective) -> &mut T {
        match pov {
            Perspective::White => &mut self.white,
            Perspective::Black => &mut self.black,
        }
    }
}

/// How the board is turned for Black, so that Black plays upwards too.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlackOrientation {
    /// Exchanges ranks and keeps files: `square ^ 56`.
    #[default]
    Flip,
    /// Rotates the board by 180 degrees: `square ^ 63` (as in Stockfish 12's half-kp).
    Rotate,
}

/// Whether the board is mirrored left to right so that the own king stands on one half of it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mirror {
    /// It is not mirrored.
    #[default]
    None,
    /// The own king always stands on the files a to d.
    KingLeft,
    /// The own king always stands on the files e to h.
    KingRight,
}

/// How boards are oriented for a perspective.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Orientation {
    pub black: BlackOrientation,
    pub mirror: Mirror,
}

impl Orientation {
    /// The mask whose exclusive or with a square's index gives its index on the oriented board.
    #[must_use]
    pub const fn mask(self, own_king: Square, pov: Perspective) -> u32 {
        let turned = match (pov, self.black) {
            (Perspective::White, _) => 0,
            (Perspective::Black, BlackOrientation::Flip) => 56,
            (Perspective::Black, BlackOrientation::Rotate) => 63,
        };
        let king_file = (own_king as u32 ^ turned) & 7;
        let mirrored = match self.mirror {
            Mirror::None => false,
            Mirror::KingLeft => king_file > File::D as u32,
            Mirror::KingRight => king_file < File::E as u32,
        };
        turned ^ if mirrored { 7 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        let check = |black, mirror, king, pov, expected| {
            assert_eq!(Orientation { black, mirror }.mask(king, pov), expected, "{black:?} {mirror:?} {king} {pov:?}");
        };
        use {BlackOrientation::*, Mirror::*, Perspective::*};
        check(Flip, None, Square::E1, White, 0);
        check(Flip, None, Square::E8, Black, 56);
        check(Rotate, None, Square::E8, Black, 63);
        check(Flip, KingLeft, Square::E1, White, 7);
        check(Flip, KingLeft, Square::D1, White, 0);
        check(Flip, KingRight, Square::D8, Black, 63);
        check(Rotate, KingRight, Square::D8, Black, 63);
        check(Rotate, KingRight, Square::E8, Black, 56);
    }
}
