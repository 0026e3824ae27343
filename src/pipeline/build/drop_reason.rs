//! Why positions and games give no samples, and how many of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shard_file::take_u64;
use crate::units::SortedMap;

/// Why a position of a valid game is not a sample.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
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
    /// Dropped at random because the game's result is unlikely for the score.
    Unlikely,
    /// Not among the `per_game` positions drawn from the game.
    NotDrawn,
    /// Equal to an earlier sample.
    Duplicate,
    /// Dropped to reach the target distribution or the number of samples.
    Thinned,
    /// The engine gave no score.
    NotLabelled,
    /// More pieces than a record can hold.
    TooManyPieces,
    /// All positions of its game are left out.
    GameLeftOut,
}

impl DropReason {
    const ALL: [DropReason; 16] = [
        DropReason::Early,
        DropReason::Late,
        DropReason::NoScore,
        DropReason::NoResult,
        DropReason::NoLabel,
        DropReason::NoMove,
        DropReason::Decided,
        DropReason::FewMoves,
        DropReason::NotQuiet,
        DropReason::Unlikely,
        DropReason::NotDrawn,
        DropReason::Duplicate,
        DropReason::Thinned,
        DropReason::NotLabelled,
        DropReason::TooManyPieces,
        DropReason::GameLeftOut,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Early => "before the first ply",
            DropReason::Late => "after the last ply",
            DropReason::NoScore => "no score",
            DropReason::NoResult => "no result",
            DropReason::NoLabel => "no score and no result",
            DropReason::NoMove => "no move",
            DropReason::Decided => "score beyond the cap",
            DropReason::FewMoves => "too few legal moves",
            DropReason::NotQuiet => "not quiet",
            DropReason::Unlikely => "result unlikely for the score",
            DropReason::NotDrawn => "not drawn",
            DropReason::Duplicate => "seen before",
            DropReason::Thinned => "thinned out",
            DropReason::NotLabelled => "no score from the engine",
            DropReason::TooManyPieces => "too many pieces",
            DropReason::GameLeftOut => "in a game left out",
        }
    }
}

impl DropReason {
    /// The reason as it follows a number of positions.
    #[must_use]
    pub(in crate::pipeline) const fn after_count(self) -> &'static str {
        match self {
            DropReason::NoScore => "without a score",
            DropReason::NoResult => "without a result",
            DropReason::NoLabel => "without a score or a result",
            DropReason::NoMove => "without a move",
            DropReason::Decided => "with a score beyond the cap",
            DropReason::FewMoves => "with too few legal moves",
            DropReason::Unlikely => "with a result unlikely for the score",
            DropReason::NotLabelled => "without a score from the engine",
            DropReason::TooManyPieces => "with too many pieces",
            other => other.name(),
        }
    }
}

/// Why a valid game gives no samples at all.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GameDropReason {
    /// A player's rating is unknown or too low.
    Rating,
    /// The time control is unknown or not among those asked for.
    TimeControl,
    /// On the other side of the split.
    OtherPart,
    /// Dropped at random according to the weight of its source.
    Weight,
    /// Of generated games: the opening's score lies beyond the bound.
    Opening,
}

impl GameDropReason {
    const ALL: [GameDropReason; 5] = [
        GameDropReason::Rating,
        GameDropReason::TimeControl,
        GameDropReason::OtherPart,
        GameDropReason::Weight,
        GameDropReason::Opening,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            GameDropReason::Rating => "rating too low or unknown",
            GameDropReason::TimeControl => "other time control",
            GameDropReason::OtherPart => "in the other part of the split",
            GameDropReason::Weight => "drawn out by weight",
            GameDropReason::Opening => "opening beyond the bound",
        }
    }
}

/// Counts of games and positions read, of those dropped, and of samples repeated.
#[derive(Clone, Debug, Default)]
pub struct BuildCounts {
    pub games: u64,
    /// Positions a move was played from.
    pub positions: u64,
    /// Samples written once more because of a weight above 1. A shard has none: weights count when shards are merged.
    pub repeated: u64,
    dropped: [u64; DropReason::ALL.len()],
    dropped_games: [u64; GameDropReason::ALL.len()],
}

impl BuildCounts {
    pub fn of_one_game() -> BuildCounts {
        BuildCounts { games: 1, ..BuildCounts::default() }
    }

    pub fn drop(&mut self, reason: DropReason, count: u64) {
        self.dropped[reason as usize] += count;
    }

    pub fn drop_game(&mut self, reason: GameDropReason) {
        self.dropped_games[reason as usize] += 1;
    }

    /// The counts of this game if it is left out as a whole: no other reason counts for it or its positions.
    pub fn of_game_left_out(&self, reason: GameDropReason) -> BuildCounts {
        let mut counts = BuildCounts { games: self.games, positions: self.positions, ..BuildCounts::default() };
        counts.drop_game(reason);
        counts.drop(DropReason::GameLeftOut, self.positions);
        counts
    }

    pub fn add(&mut self, other: &BuildCounts) {
        self.games += other.games;
        self.positions += other.positions;
        self.repeated += other.repeated;
        self.dropped.iter_mut().zip(other.dropped).for_each(|(sum, count)| *sum += count);
        self.dropped_games.iter_mut().zip(other.dropped_games).for_each(|(sum, count)| *sum += count);
    }

    /// Appends the counts to `bytes`: first the count without a reason, then the number of reasons, each with its
    /// count.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.games.to_le_bytes());
        bytes.extend(self.positions.to_le_bytes());
        for counts in [&self.dropped[..], &self.dropped_games[..]] {
            bytes.push(counts.iter().filter(|count| **count > 0).count() as u8);
            for (reason, count) in (0u8..).zip(counts).filter(|(_, count)| **count > 0) {
                bytes.push(reason);
                bytes.extend(count.to_le_bytes());
            }
        }
    }

    /// Removes counts that [`write`](BuildCounts::write) wrote from the front; `None` where there are none.
    pub fn read(bytes: &mut &[u8]) -> Option<BuildCounts> {
        let mut counts = BuildCounts { games: take_u64(bytes)?, positions: take_u64(bytes)?, ..BuildCounts::default() };
        for counts in [&mut counts.dropped[..], &mut counts.dropped_games[..]] {
            for _ in 0..*bytes.split_off_first()? {
                let reason = usize::from(*bytes.split_off_first()?);
                *counts.get_mut(reason)? = take_u64(bytes)?;
            }
        }
        Some(counts)
    }

    /// Dropped positions by reason, without the reasons that did not occur.
    pub fn dropped(&self) -> SortedMap<DropReason, u64> {
        DropReason::ALL.into_iter().zip(self.dropped).filter(|(_, count)| *count > 0).collect()
    }

    /// Dropped games by reason, without the reasons that did not occur.
    pub fn dropped_games(&self) -> SortedMap<GameDropReason, u64> {
        GameDropReason::ALL.into_iter().zip(self.dropped_games).filter(|(_, count)| *count > 0).collect()
    }
}
