//! What scores are measured in, in words.

use std::path::Path;

use crate::data::ScoreUnit;
use crate::data::formats::{FileUnit, SaidBy};

/// A unit, and whether it was only assumed.
pub fn describe(unit: ScoreUnit, said_by: SaidBy) -> String {
    let assumed = if said_by == SaidBy::Nobody { " (assumed: the file does not say; --from-unit)" } else { "" };
    format!("{}{assumed}", unit.describe())
}

/// Says on stderr when scores are taken for something else than centipawns without anybody having said so.
pub fn note_assumed(path: &Path, known: FileUnit) {
    let FileUnit { unit, said_by } = known;
    if said_by == SaidBy::Nobody && unit != ScoreUnit::Centipawns {
        note!(
            "note: the scores of {} are taken as {}, as Stockfish's training data have them; --from-unit cp takes them as \
             centipawns, --from-unit internal:PAWN as another engine's units",
            path.display(),
            unit.describe()
        );
    }
}
