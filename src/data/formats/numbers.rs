//! Game numbers for formats that have none, from the sequence of samples alone, so that the same samples get the same
//! numbers whatever file they come from.

use crate::chess::Color;
use crate::data::{GameResult, Record};

/// Numbers samples as they come. A sample begins a new game when
/// - its ply is not above the one before,
/// - the result, as White sees it, is another.
#[derive(Clone, Debug, Default)]
pub struct GameNumbers {
    last: Option<Last>,
    games: u64,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    ply: u16,
    /// White's view.
    result: Option<GameResult>,
}

impl GameNumbers {
    /// Whether the sample begins a game, given those before it.
    #[inline]
    pub fn begins(&mut self, record: &Record) -> bool {
        let result = match record.turn() {
            Color::White => record.result(),
            Color::Black => record.result().map(GameResult::reversed),
        };
        let now = Last { ply: record.ply().0, result };
        let begins = self.last.is_none_or(|last| now.ply <= last.ply || now.result != last.result);
        self.last = Some(now);
        self.games += u64::from(begins);
        begins
    }

    /// Games so far; the last sample's game is one less.
    #[must_use]
    pub const fn games(&self) -> u64 {
        self.games
    }
}
