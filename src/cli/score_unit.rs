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

/// Notes on stderr that scores are assumed to be in a unit other than centipawns. Options say it otherwise.
pub fn note_assumed(path: &Path, unit: FileUnit) {
    note_assumed_unless(path, unit, ["give --from-unit cp", "give --from-unit internal:PAWN"]);
}

/// As [`note_assumed`], where the key of an experiment says it otherwise.
pub fn note_assumed_in_experiment(path: &Path, unit: FileUnit) {
    let keys = ["write from_unit = \"cp\" above all tables of the experiment", "write from_unit = \"internal:PAWN\""];
    note_assumed_unless(path, unit, keys);
}

fn note_assumed_unless(path: &Path, unit: FileUnit, [centipawns, internal]: [&str; 2]) {
    let FileUnit { unit, origin } = unit;
    if origin == UnitOrigin::FormatDefault && unit != ScoreUnit::Centipawns {
        note!(
            "note: the scores of {} are assumed to be {}, as in Stockfish's training data; if they are centipawns, \
             {centipawns}; if they are another engine's units, {internal}",
            path.display(),
            unit.describe()
        );
    }
}
