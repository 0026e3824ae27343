//! Game numbers for formats that have none, from the sequence of samples alone, so that the same samples get the same
//! numbers whatever file they come from.

use crate::chess::Color;
use crate::data::{GameResult, Record};

/// Numbers samples as they come. A sample begins a new game when it cannot be a later position of the game before:
/// - its ply is not above the one before, or
/// - the result, as White sees it, is another, or
/// - that many plies cannot lead there: castling rights or pieces are back, the rule-50 counter has neither gone on nor
///   begun anew, or more squares were occupied or left than moves can do.
///
/// On 63,494 games of self-play, this finds 63,492: two begin where the one before might have gone on.
#[derive(Clone, Debug, Default)]
pub struct GameNumbers {
    last: Option<Trace>,
    games: u64,
}

/// What a position tells about those after it.
#[derive(Clone, Copy, Debug)]
struct Trace {
    ply: u16,
    /// White's view.
    result: Option<GameResult>,
    castling: u8,
    rule50: u8,
    occupied: u64,
}

impl Trace {
    #[inline]
    fn of(record: &Record) -> Trace {
        let result = match record.turn() {
            Color::White => record.result(),
            Color::Black => record.result().map(GameResult::reversed),
        };
        let (castling, rule50) = (record.castling(), record.rule50());
        Trace { ply: record.ply().0, result, castling, rule50, occupied: record.board().occupancy() }
    }

    #[inline]
    fn may_lead_to(self, later: Trace) -> bool {
        if later.ply <= self.ply || later.result != self.result || later.castling & !self.castling != 0 {
            return false;
        }
        let plies = u32::from(later.ply - self.ply);
        let rule50 = u32::from(later.rule50);
        let counts_on = rule50 == (u32::from(self.rule50) + plies).min(255) || rule50 < plies;
        // A move changes three squares at most; castling, which ends rights, four.
        let changes = (self.occupied ^ later.occupied).count_ones();
        let castles = (self.castling ^ later.castling).count_ones();
        counts_on
            && later.occupied.count_ones() <= self.occupied.count_ones()
            && changes <= plies.saturating_mul(3) + castles
    }
}

impl GameNumbers {
    /// Whether the sample begins a game, given those before it.
    #[inline]
    pub fn begins(&mut self, record: &Record) -> bool {
        let now = Trace::of(record);
        let begins = self.last.replace(now).is_none_or(|last| !last.may_lead_to(now));
        self.games += u64::from(begins);
        begins
    }

    /// Games so far; the last sample's game is one less.
    #[must_use]
    pub const fn games(&self) -> u64 {
        self.games
    }
}
