//! `fsbench delta`: the features that a move adds and removes.

use schemars::JsonSchema;
use serde::Serialize;
use shakmaty::Position;

use super::encode::{descriptions, explanation_lines, joined};
use super::input::{answer_each_line, parse_move};
use super::{Failure, ResultFormat, print_json, print_text};
use crate::chess::{BoardChange, Chess, Move, Perspective, parse_fen};
use crate::features::{Delta, FeatureSet, FeatureText};
use crate::json::to_text;
use crate::units::SortedMap;

/// List the features that a move adds and removes, for both perspectives
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// The position before the move
    #[arg(long, requires = "mv", required_unless_present = "moves", conflicts_with = "moves")]
    fen: Option<String>,
    /// The move in UCI notation; castling is e1g1 or king takes rook
    #[arg(long = "move", id = "mv", value_name = "UCI", requires = "fen")]
    mv: Option<String>,
    /// A file with one `FEN|UCI` per line (`-` = standard input); prints one JSON document per line
    #[arg(long, value_name = "FILE")]
    moves: Option<String>,
    /// Add the block and axis values of each feature
    #[arg(long)]
    explain: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// What a move changes, by perspective.
#[derive(Serialize, JsonSchema)]
pub struct DeltaDocument {
    white: PerspectiveDelta,
    black: PerspectiveDelta,
    /// Descriptions by index, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<SortedMap<u32, FeatureText>>,
}

/// A perspective's changes.
#[derive(Serialize, JsonSchema)]
struct PerspectiveDelta {
    /// Indices of features.
    added: Vec<u32>,
    /// Indices of features.
    removed: Vec<u32>,
    /// Whether the context changes, so that an engine computes all features again.
    refresh: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if let Some(file) = &arguments.moves {
        return answer_each_line(file, ResultFormat::Json, |line| {
            let (fen, mv) = line.split_once('|').ok_or_else(|| anyhow::anyhow!("expected `FEN|UCI`, found no `|`"))?;
            let position = parse_fen(fen)?;
            Ok(to_text(&delta(&set, &position, parse_move(&position, mv)?, arguments.explain))?)
        });
    }
    let position = parse_fen(arguments.fen.as_deref().unwrap_or_default()).map_err(Failure::request)?;
    let mv = parse_move(&position, arguments.mv.as_deref().unwrap_or_default()).map_err(Failure::Request)?;
    let document = delta(&set, &position, mv, arguments.explain);
    match arguments.format {
        ResultFormat::Json => print_json(&document)?,
        ResultFormat::Text => {
            let descriptions = document.features.as_ref();
            for (name, delta) in [("white", &document.white), ("black", &document.black)] {
                outln!("{name}  {}", if delta.refresh { "refresh" } else { "update" })?;
                outln!("  added    {}", joined(&delta.added))?;
                print_text(&explanation_lines(&delta.added, descriptions))?;
                outln!("  removed  {}", joined(&delta.removed))?;
                print_text(&explanation_lines(&delta.removed, descriptions))?;
            }
        }
    }
    Ok(())
}

fn delta(set: &FeatureSet, position: &Chess, mv: Move, explain: bool) -> DeltaDocument {
    let change = BoardChange::of(mv, position.turn());
    let after = change.applied_to(position.board());
    let of_perspective = |pov| {
        let mut delta = Delta::default();
        set.encoder().diff(position.board(), &change, &after, pov, &mut delta);
        PerspectiveDelta { added: delta.added.into(), removed: delta.removed.into(), refresh: delta.refresh }
    };
    let white = of_perspective(Perspective::White);
    let black = of_perspective(Perspective::Black);
    let indices = [&white, &black].into_iter().flat_map(|delta| delta.added.iter().chain(&delta.removed));
    let features = explain.then(|| descriptions(set, indices));
    DeltaDocument { white, black, features }
}
