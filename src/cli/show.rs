//! `fsbench show`: the active features on the board.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Serialize;
use shakmaty::Position;

use super::input::{fen, uci};
use super::{Failure, Format, print_json, refuse_existing};
use crate::chess::{Board, BoardChange, Perspective, Square};
use crate::features::{ExplainedFeature, FeatureSet};
use crate::output::OutputFile;
use crate::report::{Diagram, Highlight, HighlightKind, diagrams_svg};

/// Draw a board for each block with the features that are active, and what a move adds and removes
///
/// One row of boards a perspective, White's first. Features of pieces are marked on their squares, with an arrow to the
/// second square where a feature looks at two; resting the pointer on a mark shows index and values.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// The position
    #[arg(long)]
    fen: String,
    /// A move from it, in UCI notation; the board after it is drawn
    #[arg(long = "move", id = "mv", value_name = "UCI")]
    mv: Option<String>,
    /// The SVG file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace FILE where it exists
    #[arg(long)]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Shown {
    out: PathBuf,
    boards: Vec<ShownBlock>,
}

/// Bindings, not features, so that features that several bindings yield count once for each.
#[derive(Serialize)]
struct ShownBlock {
    perspective: &'static str,
    block: String,
    active: usize,
    added: usize,
    removed: usize,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    refuse_existing(&arguments.out, arguments.force)?;
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    let position = fen(&arguments.fen).map_err(Failure::Request)?;
    let mv = arguments.mv.as_deref().map(|text| uci(&position, text)).transpose().map_err(Failure::Request)?;
    let before = position.board().clone();
    let after = mv.map(|mv| BoardChange::of(mv, position.turn()).applied_to(&before));
    let mut boards = Vec::new();
    let rows: Vec<Vec<Diagram>> = [(Perspective::White, "white"), (Perspective::Black, "black")]
        .into_iter()
        .map(|(pov, name)| {
            let blocks = set.blocks().iter().enumerate().map(|(at, block)| {
                let marks = marks(&set, at, &before, after.as_ref(), pov);
                let count = |tone| marks.iter().filter(|mark| mark.tone == tone).count();
                let (kept, removed, added) =
                    (count(HighlightKind::Kept), count(HighlightKind::Removed), count(HighlightKind::Added));
                let shown =
                    ShownBlock { perspective: name, block: block.name.clone(), active: kept + added, added, removed };
                let note = notes(&shown, after.is_some(), &marks);
                let title = format!("{} ({name}'s view)", block.name);
                boards.push(shown);
                Diagram { title, notes: note, pieces: pieces(after.as_ref().unwrap_or(&before)), marks }
            });
            blocks.collect()
        })
        .collect();
    let mut file = OutputFile::create(&arguments.out).map_err(Failure::work)?;
    file.put(diagrams_svg(&rows).as_bytes()).map_err(Failure::work)?;
    file.finish().map_err(Failure::work)?;
    let shown = Shown { out: arguments.out.clone(), boards };
    match arguments.format {
        Format::Json => print_json(&shown)?,
        Format::Text => {
            for block in &shown.boards {
                let changed = mv.map(|_| format!(", +{} −{}", block.added, block.removed)).unwrap_or_default();
                outln!("{}, {}'s view: {} active{changed}", block.block, block.perspective, block.active)?;
            }
            outln!("wrote {}", shown.out.display())?;
        }
    }
    Ok(())
}

/// The bindings before and after, each as often as it occurs.
fn marks(set: &FeatureSet, block: usize, before: &Board, after: Option<&Board>, pov: Perspective) -> Vec<Highlight> {
    let mark = |explained: &ExplainedFeature, tone| Highlight {
        squares: explained.squares.iter().map(|square| *square as u8).collect(),
        tone,
        title: format!("{}: {}", explained.index, explained.values),
    };
    let from = set.explain(block, before, pov);
    let Some(after) = after else { return from.iter().map(|found| mark(found, HighlightKind::Kept)).collect() };
    let mut left: HashMap<&ExplainedFeature, usize> = HashMap::new();
    from.iter().for_each(|found| *left.entry(found).or_default() += 1);
    let to = set.explain(block, after, pov);
    let mut marks: Vec<Highlight> = Vec::with_capacity(to.len());
    for found in &to {
        let known = left.get_mut(found).filter(|count| **count > 0);
        let tone = if known.is_some() { HighlightKind::Kept } else { HighlightKind::Added };
        known.into_iter().for_each(|count| *count -= 1);
        marks.push(mark(found, tone));
    }
    for found in &from {
        if let Some(count) = left.get_mut(found).filter(|count| **count > 0) {
            *count -= 1;
            marks.push(mark(found, HighlightKind::Removed));
        }
    }
    marks.sort_by_key(|mark| mark.tone);
    marks
}

fn notes(shown: &ShownBlock, moved: bool, marks: &[Highlight]) -> Vec<String> {
    let mut notes = vec![match moved {
        true => format!("{} active, {} added, {} removed", shown.active, shown.added, shown.removed),
        false => format!("{} active", shown.active),
    }];
    // What stands on no square: counts, and blocks that look at kings only.
    notes.extend(marks.iter().filter(|mark| mark.squares.is_empty()).take(4).map(|mark| mark.title.clone()));
    notes
}

fn pieces(board: &Board) -> [Option<char>; 64] {
    let mut pieces = [None; 64];
    for square in Square::ALL {
        pieces[usize::from(square)] = board.piece_at(square).map(shakmaty::Piece::char);
    }
    pieces
}
