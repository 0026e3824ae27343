//! What a format cannot hold of a sample, counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Format;
use super::binpack::{MAX_PLY, NO_SCORE};
use super::numbers::GameNumbers;
use crate::data::{GameResult, Record};

/// Why a sample is left out: the format could hold it only as something it is not.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// The format has scores for all samples.
    NoScore,
    /// The format has results for all samples.
    UnknownResult,
    /// Beyond 16,383.
    Ply,
}

impl LeftOut {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LeftOut::NoScore => "without a score",
            LeftOut::UnknownResult => "without a result",
            LeftOut::Ply => "beyond ply 16,383",
        }
    }
}

/// What the format does not keep of samples that it holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// Black to move: the position is told with White to move.
    SideToMove,
    CastlingRights,
    EnPassant,
    Rule50,
    Ply,
    Move,
    Result,
    /// Samples whose game is another one than the sample's before them and will not be, or the other way round.
    GameNumber,
}

impl Lost {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Lost::SideToMove => "the colour to move (Black)",
            Lost::CastlingRights => "castling rights",
            Lost::EnPassant => "en passant",
            Lost::Rule50 => "the rule-50 counter",
            Lost::Ply => "the ply",
            Lost::Move => "the move",
            Lost::Result => "the result",
            Lost::GameNumber => "the game it belongs to",
        }
    }
}

/// What became of samples on their way into a format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Samples not written.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Samples written without something.
    pub lost: BTreeMap<Lost, u64>,
    /// Scores cut to what the format or the unit can hold.
    pub clamped: u64,
    /// Unknown results written as draws.
    pub assumed_draws: u64,
}

impl Account {
    fn lose(&mut self, what: Lost, lost: bool) {
        if lost {
            *self.lost.entry(what).or_default() += 1;
        }
    }

    fn leave_out(&mut self, why: LeftOut) -> Option<Record> {
        *self.left_out.entry(why).or_default() += 1;
        None
    }
}

/// The sample as `format` will hold it; none where it cannot. Game numbers aside.
pub fn fit(record: &Record, format: Format, unknown_is_draw: bool, account: &mut Account) -> Option<Record> {
    let mut record = *record;
    let needs_result = matches!(format, Format::Binpack | Format::Bullet);
    if needs_result && record.result().is_none() {
        if !unknown_is_draw {
            return account.leave_out(LeftOut::UnknownResult);
        }
        record = record.with_result(Some(GameResult::Draw));
        account.assumed_draws += 1;
    }
    match format {
        Format::Fsd | Format::Pgn => {}
        Format::Binpack => {
            if record.ply().0 > MAX_PLY {
                return account.leave_out(LeftOut::Ply);
            }
            if record.score() == Some(NO_SCORE) {
                // Stands for none there.
                record = record.with_score(Some(NO_SCORE - 1));
                account.clamped += 1;
            }
        }
        Format::Bullet => {
            if record.score().is_none() {
                return account.leave_out(LeftOut::NoScore);
            }
            account.lose(Lost::SideToMove, record.turn().is_black());
            account.lose(Lost::CastlingRights, record.castling() != 0);
            account.lose(Lost::EnPassant, record.ep_file().is_some());
            account.lose(Lost::Rule50, record.rule50() != 0);
            account.lose(Lost::Ply, record.ply().0 != 0);
            account.lose(Lost::Move, record.has_move());
        }
        Format::Text => {
            account.lose(Lost::Result, record.result().is_some());
            // A FEN's counters have the side to move in them.
            account.lose(Lost::Ply, record.ply().0 % 2 != u16::from(record.turn().is_black()));
        }
    }
    Some(record)
}

/// Compares the games samples belong to with those that their sequence will tell once they were read back.
#[derive(Debug, Default)]
pub struct Boundaries {
    numbers: GameNumbers,
    last: Option<u32>,
}

impl Boundaries {
    pub fn add(&mut self, record: &Record, format: Format, account: &mut Account) {
        let told = match format {
            Format::Fsd | Format::Pgn => return,
            Format::Binpack => self.numbers.begins(record),
            Format::Text => self.numbers.begins(&record.with_result(None)),
            // Without plies, every sample is a game of its own.
            Format::Bullet => true,
        };
        let begins = self.last.replace(record.game()) != Some(record.game());
        account.lose(Lost::GameNumber, told != begins);
    }
}
