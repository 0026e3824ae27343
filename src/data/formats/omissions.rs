//! Counts of information that a format cannot hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Format;
use super::format_table::GameRule;
use super::game_numbers::GameNumbers;
use crate::data::{GameResult, Record};
use crate::units::SortedMap;

/// Why a format cannot hold a sample at all.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OmittedSample {
    /// The format needs a score.
    NoScore,
    /// The format needs a result.
    UnknownResult,
    /// The format needs a move.
    NoMove,
    /// The ply is larger than 16,383.
    Ply,
    /// The move castles in Chess960.
    Chess960Castling,
}

impl OmittedSample {
    pub const ALL: [OmittedSample; 5] = [
        OmittedSample::NoScore,
        OmittedSample::UnknownResult,
        OmittedSample::NoMove,
        OmittedSample::Ply,
        OmittedSample::Chess960Castling,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OmittedSample::NoScore => "without a score",
            OmittedSample::UnknownResult => "without a result",
            OmittedSample::NoMove => "without a move",
            OmittedSample::Ply => "beyond ply 16,383",
            OmittedSample::Chess960Castling => "that castle in Chess960",
        }
    }
}

/// A field of a sample that a format cannot hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OmittedField {
    /// Black is to move, and the format stores every position with White to move.
    SideToMove,
    CastlingRights,
    EnPassant,
    Rule50,
    Ply,
    Move,
    Result,
    /// The sample begins or continues a game, but when read back it does the opposite.
    GameNumber,
}

impl OmittedField {
    pub const ALL: [OmittedField; 8] = [
        OmittedField::SideToMove,
        OmittedField::CastlingRights,
        OmittedField::EnPassant,
        OmittedField::Rule50,
        OmittedField::Ply,
        OmittedField::Move,
        OmittedField::Result,
        OmittedField::GameNumber,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OmittedField::SideToMove => "the colour to move (Black)",
            OmittedField::CastlingRights => "castling rights",
            OmittedField::EnPassant => "en passant",
            OmittedField::Rule50 => "the rule-50 counter",
            OmittedField::Ply => "the ply",
            OmittedField::Move => "the move",
            OmittedField::Result => "the result",
            OmittedField::GameNumber => "the game it belongs to",
        }
    }
}

/// Information of the written samples that the format could not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Omissions {
    /// Samples not written, by reason.
    #[serde(rename = "left_out")]
    pub samples: SortedMap<OmittedSample, u64>,
    /// Samples written without a field, by field.
    #[serde(rename = "lost")]
    pub fields: SortedMap<OmittedField, u64>,
    /// Scores clamped to the range of the format or the unit.
    pub clamped: u64,
    /// Unknown results written as draws.
    pub assumed_draws: u64,
}

/// Counts [`Omissions`], indexed by reason and field.
#[derive(Clone, Debug, Default)]
pub struct OmissionCounter {
    samples: [u64; OmittedSample::ALL.len()],
    fields: [u64; OmittedField::ALL.len()],
    clamped: u64,
    assumed_draws: u64,
}

impl OmissionCounter {
    pub fn omissions(&self) -> Omissions {
        Omissions {
            samples: OmittedSample::ALL.into_iter().zip(self.samples).filter(|(_, count)| *count > 0).collect(),
            fields: OmittedField::ALL.into_iter().zip(self.fields).filter(|(_, count)| *count > 0).collect(),
            clamped: self.clamped,
            assumed_draws: self.assumed_draws,
        }
    }

    pub fn add(&mut self, other: &OmissionCounter) {
        self.samples.iter_mut().zip(other.samples).for_each(|(sum, count)| *sum += count);
        self.fields.iter_mut().zip(other.fields).for_each(|(sum, count)| *sum += count);
        self.clamped += other.clamped;
        self.assumed_draws += other.assumed_draws;
    }

    pub fn omit_field(&mut self, field: OmittedField, omitted: bool) {
        self.fields[field as usize] += u64::from(omitted);
    }

    pub fn omit_sample(&mut self, reason: OmittedSample) -> Option<Record> {
        self.samples[reason as usize] += 1;
        None
    }

    pub fn clamp_score(&mut self) {
        self.clamped += 1;
    }

    /// Samples that continue a game, but begin one when they are read back.
    pub fn split_games(&mut self, count: u64) {
        self.fields[OmittedField::GameNumber as usize] += count;
    }
}

/// Adapts a sample to what `format` can hold; `None` if it cannot hold the sample. Leaves the game number alone.
pub fn adapt(record: &Record, format: Format, unknown_is_draw: bool, counter: &mut OmissionCounter) -> Option<Record> {
    let mut record = *record;
    if format.table().needs_result && record.result().is_none() {
        if !unknown_is_draw {
            return counter.omit_sample(OmittedSample::UnknownResult);
        }
        record = record.with_result(Some(GameResult::Draw));
        counter.assumed_draws += 1;
    }
    (format.table().adapt)(record, counter)
}

/// Compares the games of samples with those that [`GameNumbers`] will find when they are read back.
#[derive(Debug, Default)]
pub struct GameBoundaries {
    numbers: GameNumbers,
    last: Option<u32>,
}

impl GameBoundaries {
    pub fn add(&mut self, record: &Record, format: Format, counter: &mut OmissionCounter) {
        let begins_when_read = match format.table().games {
            GameRule::Recorded => return,
            GameRule::Inferred => self.numbers.begins_game(record),
            GameRule::InferredWithoutResults => self.numbers.begins_game(&record.with_result(None)),
            GameRule::Unknown => true,
        };
        let begins = self.last.replace(record.game()) != Some(record.game());
        counter.omit_field(OmittedField::GameNumber, begins_when_read != begins);
    }
}
