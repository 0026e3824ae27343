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
    pub const ALL: [LeftOut; 3] = [LeftOut::NoScore, LeftOut::UnknownResult, LeftOut::Ply];

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
    pub const ALL: [Lost; 8] = [
        Lost::SideToMove,
        Lost::CastlingRights,
        Lost::EnPassant,
        Lost::Rule50,
        Lost::Ply,
        Lost::Move,
        Lost::Result,
        Lost::GameNumber,
    ];

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

/// An [`Account`] that is still open: counters in the order of their kinds.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    left_out: [u64; LeftOut::ALL.len()],
    lost: [u64; Lost::ALL.len()],
    clamped: u64,
    assumed_draws: u64,
}

impl Ledger {
    pub fn account(&self) -> Account {
        Account {
            left_out: LeftOut::ALL.into_iter().zip(self.left_out).filter(|(_, count)| *count > 0).collect(),
            lost: Lost::ALL.into_iter().zip(self.lost).filter(|(_, count)| *count > 0).collect(),
            clamped: self.clamped,
            assumed_draws: self.assumed_draws,
        }
    }

    pub fn add(&mut self, other: &Ledger) {
        self.left_out.iter_mut().zip(other.left_out).for_each(|(sum, count)| *sum += count);
        self.lost.iter_mut().zip(other.lost).for_each(|(sum, count)| *sum += count);
        self.clamped += other.clamped;
        self.assumed_draws += other.assumed_draws;
    }

    fn lose(&mut self, what: Lost, lost: bool) {
        self.lost[what as usize] += u64::from(lost);
    }

    fn leave_out(&mut self, why: LeftOut) -> Option<Record> {
        self.left_out[why as usize] += 1;
        None
    }
}

/// The sample as `format` will hold it; none where it cannot. Game numbers aside.
pub fn fit(record: &Record, format: Format, unknown_is_draw: bool, ledger: &mut Ledger) -> Option<Record> {
    let mut record = *record;
    let needs_result = matches!(format, Format::Binpack | Format::Bullet);
    if needs_result && record.result().is_none() {
        if !unknown_is_draw {
            return ledger.leave_out(LeftOut::UnknownResult);
        }
        record = record.with_result(Some(GameResult::Draw));
        ledger.assumed_draws += 1;
    }
    match format {
        Format::Fsd | Format::Pgn => {}
        Format::Binpack => {
            if record.ply().0 > MAX_PLY {
                return ledger.leave_out(LeftOut::Ply);
            }
            if record.score() == Some(NO_SCORE) {
                // Stands for none there.
                record = record.with_score(Some(NO_SCORE - 1));
                ledger.clamped += 1;
            }
        }
        Format::Bullet => {
            if record.score().is_none() {
                return ledger.leave_out(LeftOut::NoScore);
            }
            ledger.lose(Lost::SideToMove, record.turn().is_black());
            ledger.lose(Lost::CastlingRights, record.castling() != 0);
            ledger.lose(Lost::EnPassant, record.ep_file().is_some());
            ledger.lose(Lost::Rule50, record.rule50() != 0);
            ledger.lose(Lost::Ply, record.ply().0 != 0);
            ledger.lose(Lost::Move, record.has_move());
        }
        Format::Text => {
            ledger.lose(Lost::Result, record.result().is_some());
            // A FEN's counters have the side to move in them.
            ledger.lose(Lost::Ply, record.ply().0 % 2 != u16::from(record.turn().is_black()));
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
    pub fn add(&mut self, record: &Record, format: Format, ledger: &mut Ledger) {
        let told = match format {
            Format::Fsd | Format::Pgn => return,
            Format::Binpack => self.numbers.begins(record),
            Format::Text => self.numbers.begins(&record.with_result(None)),
            // Without plies, every sample is a game of its own.
            Format::Bullet => true,
        };
        let begins = self.last.replace(record.game()) != Some(record.game());
        ledger.lose(Lost::GameNumber, told != begins);
    }
}
