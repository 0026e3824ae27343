//! What a file's scores are measured in, and scores from one unit to another.

use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Format, detect};
use crate::data::{DataError, Eval, Header, Record, ScoreUnit};

/// Who says what a file's scores are measured in.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SaidBy {
    /// The file itself: a `.fsd` file's header, PGN's evaluations in pawns.
    File,
    /// Whoever asked for the file to be read.
    Request,
    /// Nobody: what files of the format usually hold ([`Format::usual_unit`]).
    Nobody,
}

/// What a file's scores are measured in.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUnit {
    pub unit: ScoreUnit,
    pub said_by: SaidBy,
}

impl Format {
    /// What scores are measured in where neither the file nor anybody else says it: an engine's internal units in a
    /// binpack (Stockfish's training data), centipawns elsewhere.
    #[must_use]
    pub const fn usual_unit(self) -> ScoreUnit {
        match self {
            Format::Binpack => ScoreUnit::STOCKFISH,
            Format::Pgn | Format::Fsd | Format::Bullet | Format::Text => ScoreUnit::Centipawns,
        }
    }
}

/// The unit of a file's scores: what it says itself, else the one `given`, else the usual one of its format, which is
/// detected where none is named.
///
/// # Errors
/// When the file cannot be read, or says another unit than the one given.
pub fn score_unit(path: &Path, format: Option<Format>, given: Option<ScoreUnit>) -> Result<FileUnit, DataError> {
    let format = format.map_or_else(|| detect(path), Ok)?;
    let own = match format {
        Format::Fsd => Some(Header::load(path)?.score_unit),
        _ => None,
    };
    file_unit(path, format, own, given)
}

/// As [`score_unit`]; `header`: what a `.fsd` file says.
pub(crate) fn file_unit(
    path: &Path,
    format: Format,
    header: Option<ScoreUnit>,
    given: Option<ScoreUnit>,
) -> Result<FileUnit, DataError> {
    let own = if format == Format::Pgn { Some(ScoreUnit::Centipawns) } else { header };
    let (unit, said_by) = match (own, given) {
        (Some(found), Some(given)) if found.pawn() != given.pawn() => {
            return Err(DataError::Unit { path: path.into(), found, given });
        }
        (Some(own), _) => (own, SaidBy::File),
        (None, Some(given)) => (given, SaidBy::Request),
        (None, None) => (format.usual_unit(), SaidBy::Nobody),
    };
    Ok(FileUnit { unit, said_by })
}

/// Brings records' scores into another unit; how many had to be cut.
pub(crate) fn rescale(records: &mut [Record], units: Rescale) -> u64 {
    if units.is_none() {
        return 0;
    }
    let one = |record: &mut Record| {
        let Some(score) = record.score() else { return 0 };
        let (score, clamped) = convert_score(score, units);
        *record = record.with_score(Some(score));
        u64::from(clamped)
    };
    records.par_iter_mut().with_min_len(4096).map(one).sum()
}

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
    fn units_are_spelt_as_they_are_read() {
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
    fn a_file_goes_before_a_request_and_a_request_before_the_usual() {
        let check = |format, header, given, expected: Result<FileUnit, &str>| {
            let found = file_unit(Path::new("x"), format, header, given).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        let known = |unit, said_by| Ok(FileUnit { unit, said_by });
        let (cp, internal) = (ScoreUnit::Centipawns, ScoreUnit::Internal { pawn: 361 });
        check(Format::Binpack, None, None, known(ScoreUnit::STOCKFISH, SaidBy::Nobody));
        check(Format::Binpack, None, Some(cp), known(cp, SaidBy::Request));
        check(Format::Text, None, None, known(cp, SaidBy::Nobody));
        check(Format::Bullet, None, Some(internal), known(internal, SaidBy::Request));
        check(Format::Fsd, Some(internal), Some(internal), known(internal, SaidBy::File));
        check(Format::Pgn, None, None, known(cp, SaidBy::File));
        check(
            Format::Fsd,
            Some(internal),
            Some(cp),
            Err("x says itself that its scores have 361 units a pawn, not 100"),
        );
        check(Format::Pgn, None, Some(internal), Err("x says itself that its scores have 100 units a pawn, not 361"));
    }

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
