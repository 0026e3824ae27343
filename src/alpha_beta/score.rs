//! Scores of the search: centipawns, with distances to mate at both ends of the range.

use schemars::JsonSchema;
use serde::Serialize;

/// Longest line that is searched, in plies.
pub const MAX_PLY: usize = 128;

/// Greater than any score.
pub(super) const INFINITE: i32 = 32_000;
/// Score of a mate on the board; a mate in n plies scores n less.
pub(super) const MATE: i32 = 31_000;
/// Scores of at least this absolute value are mates. A stored mate of up to [`MAX_PLY`] plies counts from its position,
/// which is up to [`MAX_PLY`] plies from the root.
pub(super) const MATE_FOUND: i32 = MATE - 2 * MAX_PLY as i32;
/// Largest static evaluation.
pub(super) const LARGEST_EVAL: i32 = MATE_FOUND - 1;
/// Stands for a missing static evaluation (the side to move is in check).
pub(super) const NO_EVAL: i32 = -INFINITE;

/// A search's score, from the side to move's view.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Score {
    /// Centipawns.
    Cp(i32),
    /// Moves (not plies) to mate; negative if the side to move is mated.
    Mate(i32),
}

impl Score {
    /// Converts the search's internal number.
    #[must_use]
    pub(super) fn of(value: i32) -> Score {
        if value >= MATE_FOUND {
            Score::Mate((MATE - value + 1) / 2)
        } else if value <= -MATE_FOUND {
            Score::Mate(-(MATE + value + 1) / 2)
        } else {
            Score::Cp(value)
        }
    }
}

/// Converts a score for storage: a mate distance from the root becomes one from the stored position.
pub(super) fn to_table(value: i32, ply: usize) -> i32 {
    if value >= MATE_FOUND {
        value + ply as i32
    } else if value <= -MATE_FOUND {
        value - ply as i32
    } else {
        value
    }
}

/// The inverse of [`to_table`].
pub(super) fn from_table(value: i32, ply: usize) -> i32 {
    if value >= MATE_FOUND {
        value - ply as i32
    } else if value <= -MATE_FOUND {
        value + ply as i32
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_to_mate() {
        let check = |value, expected| assert_eq!(Score::of(value), expected, "{value}");
        check(MATE - 1, Score::Mate(1));
        check(MATE - 3, Score::Mate(2));
        check(-MATE, Score::Mate(0));
        check(-MATE + 2, Score::Mate(-1));
        check(-MATE + 4, Score::Mate(-2));
        check(31, Score::Cp(31));
    }

    #[test]
    fn stored_mate_scores_count_from_their_position() {
        for value in [0, 500, -500, MATE - 9, -MATE + 9] {
            assert_eq!(from_table(to_table(value, 7), 7), value);
        }
        // A mate five plies from the root, stored two plies from it, is three plies away.
        assert_eq!(to_table(MATE - 5, 2), MATE - 3);
    }
}
