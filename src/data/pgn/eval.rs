//! The evaluation of a position: a score or moves to mate.

use crate::units::Centipawn;

/// An evaluation, from one side's point of view.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Eval {
    Score(Centipawn),
    /// Moves to mate; negative when getting mated.
    Mate(i32),
}

impl Eval {
    /// The largest score that is not a mate; larger ones are clamped to it.
    pub const LARGEST: i32 = 30_000;
    /// The score of a mate in n moves is ±(`MATE` − 2·n), n at most 999.
    pub const MATE: i32 = 32_000;

    /// The same evaluation from the other side's point of view.
    #[must_use]
    pub const fn reversed(self) -> Eval {
        match self {
            Eval::Score(Centipawn(score)) => Eval::Score(Centipawn(score.saturating_neg())),
            Eval::Mate(moves) => Eval::Mate(moves.saturating_neg()),
        }
    }

    /// A score that fits a record; mates lie beyond all other scores.
    #[must_use]
    pub fn centipawns(self) -> i16 {
        match self {
            Eval::Score(Centipawn(score)) => score.clamp(-Self::LARGEST, Self::LARGEST) as i16,
            Eval::Mate(moves) => (moves.signum() * (Self::MATE - 2 * moves.saturating_abs().min(999))) as i16,
        }
    }

    /// As a word of a journal: centipawns, or `#` and moves to mate.
    #[must_use]
    pub(crate) fn to_word(self) -> String {
        match self {
            Eval::Score(Centipawn(score)) => score.to_string(),
            Eval::Mate(moves) => format!("#{moves}"),
        }
    }

    /// Parses a word of a journal.
    #[must_use]
    pub(crate) fn from_word(word: &str) -> Option<Eval> {
        match word.strip_prefix('#') {
            Some(moves) => moves.parse().ok().map(Eval::Mate),
            None => word.parse().ok().map(|score| Eval::Score(Centipawn(score))),
        }
    }
}
