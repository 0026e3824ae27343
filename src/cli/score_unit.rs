//! The unit of a file's scores, described for the user.

use std::path::Path;

use crate::data::ScoreUnit;
use crate::data::formats::{FileUnit, UnitOrigin};

/// Describes a unit and whether it is an assumption.
pub fn describe(unit: ScoreUnit, origin: UnitOrigin) -> String {
    let assumed = if origin == UnitOrigin::FormatDefault {
        " (assumed, because the file does not say; see --from-unit)"
    } else {
        ""
    };
    format!("{}{assumed}", unit.describe())
}

/// Notes on stderr that scores are assumed to be in a unit other than centipawns.
pub fn note_assumed(path: &Path, unit: FileUnit) {
    let FileUnit { unit, origin } = unit;
    if origin == UnitOrigin::FormatDefault && unit != ScoreUnit::Centipawns {
        note!(
            "note: the scores of {} are assumed to be {}, as in Stockfish's training data; if they are centipawns, give \
             --from-unit cp; if they are another engine's units, give --from-unit internal:PAWN",
            path.display(),
            unit.describe()
        );
    }
}
