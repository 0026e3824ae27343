//! Units of scores: the unit of a file's scores, and conversion between units.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Format, detect};
use crate::data::{DataError, Eval, FsdHeader, Record};

/// The unit of scores.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScoreUnit {
    Centipawns,
    /// An engine's internal units, with the value of a pawn.
    Internal {
        /// Units per pawn.
        pawn: u16,
    },
}

impl ScoreUnit {
    /// Stockfish's internal units up to version 15 (its PawnValueEg), used in its training data.
    pub const STOCKFISH: ScoreUnit = ScoreUnit::Internal { pawn: 208 };

    /// The value of a pawn.
    #[must_use]
    pub const fn pawn(self) -> u16 {
        match self {
            ScoreUnit::Centipawns => 100,
            ScoreUnit::Internal { pawn } => pawn,
        }
    }

    /// Centipawns per unit.
    #[must_use]
    pub fn centipawns(self) -> f32 {
        100.0 / f32::from(self.pawn())
    }

    /// Converts a score to centipawns. Mates, which lie beyond [`Eval::LARGEST`], are the same in every unit.
    #[inline]
    #[must_use]
    pub fn in_centipawns(self, score: i16) -> f32 {
        let factor = if i32::from(score).abs() > Eval::LARGEST { 1.0 } else { self.centipawns() };
        f32::from(score) * factor
    }

    /// A description of the unit.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            ScoreUnit::Centipawns => "centipawns".into(),
            ScoreUnit::Internal { pawn } => format!("internal units, {pawn} per pawn"),
        }
    }
}

/// As the command line spells it: `cp`, `internal:208`.
impl fmt::Display for ScoreUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScoreUnit::Centipawns => f.write_str("cp"),
            ScoreUnit::Internal { pawn } => write!(f, "internal:{pawn}"),
        }
    }
}

impl FromStr for ScoreUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<ScoreUnit, String> {
        let pawn = text.strip_prefix("internal:").and_then(|pawn| pawn.parse().ok()).filter(|pawn| *pawn > 0);
        match (text, pawn) {
            ("cp", _) => Ok(ScoreUnit::Centipawns),
            (_, Some(pawn)) => Ok(ScoreUnit::Internal { pawn }),
            _ => Err("give `cp`, or `internal:PAWN` with the value of a pawn, 1 to 65535".into()),
        }
    }
}

/// Where the unit of a file's scores comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnitOrigin {
    /// The file: a `.fsd` file's header, PGN's evaluations in pawns.
    File,
    /// The caller.
    Request,
    /// Neither: the usual unit of the format.
    #[serde(rename = "nobody")]
    FormatDefault,
}

/// The unit of a file's scores and its origin.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileUnit {
    pub unit: ScoreUnit,
    pub origin: UnitOrigin,
}

impl Format {
    /// The unit where neither the file nor the caller gives one: an engine's internal units for binpacks and `.plain`
    /// (Stockfish's training data), centipawns for the others.
    #[must_use]
    pub const fn default_unit(self) -> ScoreUnit {
        self.table().default_unit
    }
}

/// The unit of a file's scores: the file's own, else the `given` one, else the default of its format. The format is
/// detected if none is given.
///
/// # Errors
/// When the file cannot be read, or its unit differs from the given one.
pub fn score_unit(path: &Path, format: Option<Format>, given: Option<ScoreUnit>) -> Result<FileUnit, DataError> {
    let format = format.map_or_else(|| detect(path), Ok)?;
    let own = match format {
        Format::Fsd => Some(FsdHeader::load(path)?.score_unit),
        _ => None,
    };
    resolve_unit(path, format, own, given)
}

/// As [`score_unit`], given the unit in a `.fsd` file's header.
pub(crate) fn resolve_unit(
    path: &Path,
    format: Format,
    header: Option<ScoreUnit>,
    given: Option<ScoreUnit>,
) -> Result<FileUnit, DataError> {
    let own = if format == Format::Pgn { Some(ScoreUnit::Centipawns) } else { header };
    let (unit, origin) = match (own, given) {
        (Some(found), Some(given)) if found.pawn() != given.pawn() => {
            return Err(DataError::UnitMismatch { path: path.into(), found, given });
        }
        (Some(own), _) => (own, UnitOrigin::File),
        (None, Some(given)) => (given, UnitOrigin::Request),
        (None, None) => (format.default_unit(), UnitOrigin::FormatDefault),
    };
    Ok(FileUnit { unit, origin })
}

/// Converts the scores of records; returns how many were clamped.
pub(crate) fn rescale_scores(records: &mut [Record], conversion: UnitConversion) -> u64 {
    if conversion.is_identity() {
        return 0;
    }
    let one = |record: &mut Record| {
        let Some(score) = record.score() else { return 0 };
        let (score, clamped) = convert_score(score, conversion);
        *record = record.with_score(Some(score));
        u64::from(clamped)
    };
    records.par_iter_mut().with_min_len(4096).map(one).sum()
}

/// A conversion from one unit to another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitConversion {
    pub from: ScoreUnit,
    pub to: ScoreUnit,
}

impl UnitConversion {
    #[must_use]
    pub const fn is_identity(self) -> bool {
        self.from.pawn() == self.to.pawn()
    }
}

/// Converts a score, halves rounded away from zero. Also returns whether it was clamped to [`Eval::LARGEST`]. Mates,
/// which lie beyond that, stay as they are.
#[must_use]
pub fn convert_score(score: i16, conversion: UnitConversion) -> (i16, bool) {
    if conversion.is_identity() || i32::from(score).abs() > Eval::LARGEST {
        return (score, false);
    }
    let from = i64::from(conversion.from.pawn());
    let to = i64::from(conversion.to.pawn());
    let magnitude = (2 * i64::from(score).abs() * to + from) / (2 * from);
    let largest = i64::from(Eval::LARGEST);
    let value = magnitude.min(largest) * i64::from(score).signum();
    (value as i16, magnitude > largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_round_trip_as_text() {
        for unit in [ScoreUnit::Centipawns, ScoreUnit::STOCKFISH, ScoreUnit::Internal { pawn: 65_535 }] {
            assert_eq!(unit.to_string().parse(), Ok(unit));
        }
        for text in ["", "centipawns", "internal", "internal:0", "internal:-3", "internal:65536", "internal: 5"] {
            assert!(text.parse::<ScoreUnit>().is_err(), "{text}");
        }
        let scores = [104, -1, 30_000, 31_998, -31_990].map(|score| ScoreUnit::STOCKFISH.in_centipawns(score));
        assert_eq!([scores[0], scores[3], scores[4]], [50.0, 31_998.0, -31_990.0]);
        assert!((scores[2] - 30_000.0 * 100.0 / 208.0).abs() < 0.01);
    }

    #[test]
    fn the_file_has_priority_over_the_caller_and_the_caller_over_the_default() {
        let check = |format, header, given, expected: Result<FileUnit, &str>| {
            let found = resolve_unit(Path::new("x"), format, header, given).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        let known = |unit, origin| Ok(FileUnit { unit, origin });
        let cp = ScoreUnit::Centipawns;
        let internal = ScoreUnit::Internal { pawn: 361 };
        check(Format::Binpack, None, None, known(ScoreUnit::STOCKFISH, UnitOrigin::FormatDefault));
        check(Format::Binpack, None, Some(cp), known(cp, UnitOrigin::Request));
        check(Format::Text, None, None, known(cp, UnitOrigin::FormatDefault));
        check(Format::Bullet, None, Some(internal), known(internal, UnitOrigin::Request));
        check(Format::Fsd, Some(internal), Some(internal), known(internal, UnitOrigin::File));
        check(Format::Pgn, None, None, known(cp, UnitOrigin::File));
        check(Format::Fsd, Some(internal), Some(cp), Err("x records 361 units per pawn for its scores, not 100"));
        check(Format::Pgn, None, Some(internal), Err("x records 100 units per pawn for its scores, not 361"));
    }

    #[test]
    fn halves_are_rounded_away_from_zero_and_mates_stay() {
        let internal = |pawn| ScoreUnit::Internal { pawn };
        let check = |score, from, to, expected| assert_eq!(convert_score(score, UnitConversion { from, to }), expected);
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
