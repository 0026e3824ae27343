//! `bullet.rs`: an input type for the trainer bullet, on top of `feature_set.rs`.

use shakmaty::Position;

use super::ExportError;
use crate::chess::{BlackOrientation, Board, Mirror, Perspective, fen_of};
use crate::features::FeatureSet;

const TEMPLATE: &str = include_str!("bullet.rs.template");

/// The text of `bullet.rs`.
///
/// # Errors
/// When the perspectives have different numbers of features in some position of random play: bullet takes features in
/// pairs.
pub fn source(set: &FeatureSet) -> Result<String, ExportError> {
    let mut active = Vec::new();
    let mut count = |board: &Board, pov| {
        set.encoder().encode(board, pov, &mut active);
        active.len()
    };
    for line in super::golden::random_lines() {
        for position in line.positions() {
            let [white, black] = Perspective::ALL.map(|pov| count(position.board(), pov));
            if white != black {
                let name = set.name().to_owned();
                return Err(ExportError::Unpaired { name, white, black, fen: fen_of(&position) });
            }
        }
    }
    let rotates = set.blocks().iter().any(|block| {
        let orientation = block.spec().orientation;
        orientation.black == BlackOrientation::Rotate && orientation.mirror == Mirror::None
    });
    let note = if rotates {
        "\n//! They do not say which colour that is. The definition rotates Black's board, so where Black is to move, \
             these\n\
             //! indices are those of the position with the files exchanged."
    } else {
        ""
    };
    Ok(TEMPLATE
        .replace("NAME)", &format!("{})", set.name().replace(char::is_control, " ")))
        .replace("NOTE\n", &format!("{note}\n")))
}
