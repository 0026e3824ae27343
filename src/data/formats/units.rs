//! Scores from one unit to another.

use serde::{Deserialize, Serialize};

use crate::data::{Eval, ScoreUnit};

/// From one unit to another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescale {
    pub from: ScoreUnit,
    pub to: ScoreUnit,
}

impl Rescale {
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.from.pawn() == self.to.pawn()
    }
}

/// A score in another unit, halves rounded away from zero, and whether it had to be cut to [`Eval::LARGEST`]. Mates,
/// which lie beyond that, stay as they are.
#[must_use]
pub fn convert_score(score: i16, rescale: Rescale) -> (i16, bool) {
    if rescale.is_none() || i32::from(score).abs() > Eval::LARGEST {
        return (score, false);
    }
    let (from, to) = (i64::from(rescale.from.pawn()), i64::from(rescale.to.pawn()));
    let magnitude = (2 * i64::from(score).abs() * to + from) / (2 * from);
    let largest = i64::from(Eval::LARGEST);
    let value = magnitude.min(largest) * i64::from(score).signum();
    (value as i16, magnitude > largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero_and_mates_stay() {
        let internal = |pawn| ScoreUnit::Internal { pawn };
        let check = |score, from, to, expected| assert_eq!(convert_score(score, Rescale { from, to }), expected);
        check(208, internal(208), ScoreUnit::Centipawns, (100, false));
        check(1, internal(200), ScoreUnit::Centipawns, (1, false));
        check(-1, internal(200), ScoreUnit::Centipawns, (-1, false));
        check(-3, internal(200), ScoreUnit::Centipawns, (-2, false));
        check(1, internal(201), ScoreUnit::Centipawns, (0, false));
        check(100, ScoreUnit::Centipawns, internal(361), (361, false));
        check(-20_000, ScoreUnit::Centipawns, internal(361), (-30_000, true));
        check(31_998, ScoreUnit::Centipawns, internal(361), (31_998, false));
        check(30_000, ScoreUnit::Centipawns, internal(100), (30_000, false));
    }
}
