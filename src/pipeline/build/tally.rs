//! Counts of what was kept, and of what was not and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why positions of good games are no samples.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dropped {
    /// Before `min_ply`.
    Early,
    /// After `max_ply`.
    Late,
    /// No score.
    NoScore,
    /// No result of the game.
    NoResult,
    /// Neither a score nor a result.
    NoLabel,
    /// No move.
    NoMove,
    /// A score beyond `max_score`.
    Decided,
    /// Fewer legal moves than `min_moves`, or than the quantile for the ply.
    FewMoves,
    /// The side to move is in check, or the move captures or promotes (filter `quiet`).
    NotQuiet,
    /// Drawn out because the game's result is unlikely for the score.
    Unlikely,
    /// Not among the `per_game` drawn.
    NotDrawn,
    /// The same as a sample before it.
    Duplicate,
    /// Thinned out towards the target distribution or the number of samples.
    Thinned,
    /// The engine gave no score.
    NotLabelled,
    /// More pieces than a record holds.
    TooManyPieces,
    /// In a game that is left out as a whole.
    GameLeftOut,
}

impl Dropped {
    const ALL: [Dropped; 16] = [
        Dropped::Early,
        Dropped::Late,
        Dropped::NoScore,
        Dropped::NoResult,
        Dropped::NoLabel,
        Dropped::NoMove,
        Dropped::Decided,
        Dropped::FewMoves,
        Dropped::NotQuiet,
        Dropped::Unlikely,
        Dropped::NotDrawn,
        Dropped::Duplicate,
        Dropped::Thinned,
        Dropped::NotLabelled,
        Dropped::TooManyPieces,
        Dropped::GameLeftOut,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dropped::Early => "before the first ply",
            Dropped::Late => "after the last ply",
            Dropped::NoScore => "no score",
            Dropped::NoResult => "no result",
            Dropped::NoLabel => "no score and no result",
            Dropped::NoMove => "no move",
            Dropped::Decided => "score beyond the cap",
            Dropped::FewMoves => "too few legal moves",
            Dropped::NotQuiet => "not quiet",
            Dropped::Unlikely => "result unlikely for the score",
            Dropped::NotDrawn => "not drawn",
            Dropped::Duplicate => "seen before",
            Dropped::Thinned => "thinned out",
            Dropped::NotLabelled => "no score from the engine",
            Dropped::TooManyPieces => "too many pieces",
            Dropped::GameLeftOut => "in a game left out",
        }
    }
}

/// Why good games give no samples at all.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GameDropped {
    /// A player's rating is unknown or too low.
    Rating,
    /// Its time control is unknown or not wanted.
    TimeControl,
    /// In the other part of the split.
    OtherPart,
    /// Drawn out by its source's weight.
    Weight,
}

impl GameDropped {
    const ALL: [GameDropped; 4] =
        [GameDropped::Rating, GameDropped::TimeControl, GameDropped::OtherPart, GameDropped::Weight];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            GameDropped::Rating => "rating too low or unknown",
            GameDropped::TimeControl => "other time control",
            GameDropped::OtherPart => "in the other part of the split",
            GameDropped::Weight => "drawn out by weight",
        }
    }
}

/// Counts of a selection.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub games: u64,
    /// Positions a move was played from.
    pub positions: u64,
    dropped: [u64; Dropped::ALL.len()],
    dropped_games: [u64; GameDropped::ALL.len()],
}

impl Tally {
    pub fn of_a_game() -> Tally {
        Tally { games: 1, ..Tally::default() }
    }

    pub fn drop(&mut self, why: Dropped, count: u64) {
        self.dropped[why as usize] += count;
    }

    pub fn drop_game(&mut self, why: GameDropped) {
        self.dropped_games[why as usize] += 1;
    }

    pub fn add(&mut self, other: &Tally) {
        self.games += other.games;
        self.positions += other.positions;
        self.dropped.iter_mut().zip(other.dropped).for_each(|(sum, count)| *sum += count);
        self.dropped_games.iter_mut().zip(other.dropped_games).for_each(|(sum, count)| *sum += count);
    }

    /// Reasons that occurred.
    pub fn dropped(&self) -> BTreeMap<Dropped, u64> {
        Dropped::ALL.into_iter().zip(self.dropped).filter(|(_, count)| *count > 0).collect()
    }

    /// Reasons that occurred.
    pub fn dropped_games(&self) -> BTreeMap<GameDropped, u64> {
        GameDropped::ALL.into_iter().zip(self.dropped_games).filter(|(_, count)| *count > 0).collect()
    }
}
