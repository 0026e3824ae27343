//! `fsbench show`: draws the active features of a position, or looks into a network.

pub(super) mod network;

use std::collections::HashMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use shakmaty::Position;

use super::input::parse_move;
use super::{Failure, ResultFormat, print_json, refuse_existing};
use crate::chess::{Board, BoardChange, Perspective, Square, parse_fen};
use crate::features::{ExplainedFeature, FeatureSet};
use crate::output;
use crate::report::{Diagram, Highlight, HighlightKind, diagrams_svg};

/// Draw the active features of a position, or look into a network
///
/// With a feature set and --fen: a diagram per block with the active features and, for a move, the added and removed
/// ones. Each perspective has a row of diagrams, White's first. A feature is marked on the square of its piece; an
/// arrow leads to the second square if the feature has one. Resting the pointer on a mark shows the feature's index and
/// values.
///
/// With a network: the weights of neurons along the axes of its features (--neuron, --best), or what each feature and
/// piece of a position contributes to the score (--position).
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression; or a network: a file or a run's folder
    set: String,
    /// The position whose features are drawn
    #[arg(long)]
    fen: Option<String>,
    /// A move in UCI notation; the diagrams show the position after it
    #[arg(long = "move", id = "mv", value_name = "UCI", requires = "fen")]
    mv: Option<String>,
    /// The file to write: SVG; for neurons SVG, PNG or an HTML page, by its ending
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    network: network::NetworkArguments,
}

/// A drawing of a position's features.
#[derive(Serialize, JsonSchema)]
pub struct ShowDocument {
    /// The page that was written; absent where it is printed.
    out: PathBuf,
    boards: Vec<DiagramCounts>,
}

/// Counts of a block's features. A feature that several bindings yield counts once per binding.
#[derive(Serialize, JsonSchema)]
struct DiagramCounts {
    /// Who looks at the board.
    perspective: &'static str,
    /// The block's name.
    block: String,
    /// Active features.
    active: usize,
    /// Features that the move adds.
    added: usize,
    /// Features that the move removes.
    removed: usize,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(out) = &arguments.out {
        refuse_existing(out, arguments.force)?;
    }
    if arguments.network.is_used() || network::is_network(&arguments.set) {
        return network::run(arguments);
    }
    let missing = |what: &str| Failure::Request(anyhow::anyhow!("give {what}: see `fsbench show --help`"));
    let fen = arguments.fen.as_ref().ok_or_else(|| missing("--fen with a position"))?;
    let out = arguments.out.as_ref().ok_or_else(|| missing("--out with the SVG file to write"))?;
    if out.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("svg")) {
        return Err(Failure::Request(anyhow::anyhow!(
            "features are drawn as SVG: give --out a name that ends in .svg"
        )));
    }
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    let position = parse_fen(fen).map_err(Failure::request)?;
    let mv = arguments.mv.as_deref().map(|text| parse_move(&position, text)).transpose().map_err(Failure::Request)?;
    let before = position.board();
    let after = mv.map(|mv| BoardChange::of(mv, position.turn()).applied_to(before));
    let mut document = ShowDocument { out: out.clone(), boards: Vec::new() };
    let mut rows: Vec<Vec<Diagram>> = Vec::new();
    for (pov, perspective) in [(Perspective::White, "white"), (Perspective::Black, "black")] {
        let mut row = Vec::new();
        for (index, block) in set.blocks().iter().enumerate() {
            let highlights = highlights(&set, index, before, after.as_ref(), pov);
            let counts = counts(perspective, block.name.clone(), &highlights);
            let title = format!("{} ({perspective}'s view)", block.name);
            let notes = notes(&counts, after.is_some(), &highlights);
            row.push(Diagram { title, notes, pieces: pieces(after.as_ref().unwrap_or(before)), highlights });
            document.boards.push(counts);
        }
        rows.push(row);
    }
    output::write(out, diagrams_svg(&rows).as_bytes()).map_err(Failure::work)?;
    match arguments.format {
        ResultFormat::Json => print_json(&document)?,
        ResultFormat::Text => {
            for counts in &document.boards {
                let changes = mv.map(|_| format!(", +{} −{}", counts.added, counts.removed)).unwrap_or_default();
                outln!("{}, {}'s view: {} active{changes}", counts.block, counts.perspective, counts.active)?;
            }
            outln!("wrote {}", document.out.display())?;
        }
    }
    Ok(())
}

/// One highlight per binding that is active before or after the move.
fn highlights(
    set: &FeatureSet,
    block: usize,
    before: &Board,
    after: Option<&Board>,
    pov: Perspective,
) -> Vec<Highlight> {
    let highlight = |feature: &ExplainedFeature, kind| Highlight {
        squares: feature.squares.iter().map(|square| *square as u8).collect(),
        kind,
        tooltip: format!("{}: {}", feature.index, feature.values),
    };
    let old = set.explain(block, before, pov);
    let Some(after) = after else {
        return old.iter().map(|feature| highlight(feature, HighlightKind::Unchanged)).collect();
    };
    // How many times each old feature has not been found on the new board.
    let mut unmatched: HashMap<&ExplainedFeature, usize> = HashMap::new();
    old.iter().for_each(|feature| *unmatched.entry(feature).or_default() += 1);
    let mut match_one = |feature: &ExplainedFeature| match unmatched.get_mut(feature) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let new = set.explain(block, after, pov);
    let mut highlights: Vec<Highlight> = Vec::with_capacity(new.len());
    for feature in &new {
        let kind = if match_one(feature) { HighlightKind::Unchanged } else { HighlightKind::Added };
        highlights.push(highlight(feature, kind));
    }
    let removed = old.iter().filter(|feature| match_one(feature));
    highlights.extend(removed.map(|feature| highlight(feature, HighlightKind::Removed)));
    highlights.sort_by_key(|highlight| highlight.kind);
    highlights
}

fn counts(perspective: &'static str, block: String, highlights: &[Highlight]) -> DiagramCounts {
    let count = |kind| highlights.iter().filter(|highlight| highlight.kind == kind).count();
    let unchanged = count(HighlightKind::Unchanged);
    let removed = count(HighlightKind::Removed);
    let added = count(HighlightKind::Added);
    DiagramCounts { perspective, block, active: unchanged + added, added, removed }
}

fn notes(counts: &DiagramCounts, has_move: bool, highlights: &[Highlight]) -> Vec<String> {
    let mut notes = vec![if has_move {
        format!("{} active, {} added, {} removed", counts.active, counts.added, counts.removed)
    } else {
        format!("{} active", counts.active)
    }];
    // Features without a square: counts, and blocks over kings only.
    let without_square = highlights.iter().filter(|highlight| highlight.squares.is_empty());
    notes.extend(without_square.take(4).map(|highlight| highlight.tooltip.clone()));
    notes
}

/// The FEN letter of the piece on each square.
fn pieces(board: &Board) -> [Option<char>; 64] {
    let mut pieces = [None; 64];
    for square in Square::ALL {
        pieces[usize::from(square)] = board.piece_at(square).map(shakmaty::Piece::char);
    }
    pieces
}
