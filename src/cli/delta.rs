//! `fsbench delta`: what a move adds to and removes from the active features.

use std::collections::BTreeMap;

use serde::Serialize;
use shakmaty::Position;

use super::encode::{explained, listed, texts};
use super::input::{fen, lines, uci};
use super::{Failure, Format, print_json, print_json_line, put};
use crate::chess::{BoardChange, Chess, Move, Perspective};
use crate::features::{Delta, FeatureSet, FeatureText};

/// List what a move adds and removes, for both perspectives
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// The position before the move
    #[arg(long, requires = "mv", required_unless_present = "moves", conflicts_with = "moves")]
    fen: Option<String>,
    /// The move in UCI notation; castling as e1g1 or king takes rook
    #[arg(long = "move", id = "mv", value_name = "UCI", requires = "fen")]
    mv: Option<String>,
    /// A file with a line `FEN|UCI` a move (`-` = standard input): a JSON document a line out
    #[arg(long, value_name = "FILE")]
    moves: Option<String>,
    /// Say what each feature is
    #[arg(long)]
    explain: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Changed {
    white: ChangedView,
    black: ChangedView,
    /// What each index is, where that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<BTreeMap<u32, FeatureText>>,
}

#[derive(Serialize)]
struct ChangedView {
    added: Vec<u32>,
    removed: Vec<u32>,
    refresh: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if let Some(file) = &arguments.moves {
        return lines(file, |line| {
            let (position, mv) =
                line.split_once('|').ok_or_else(|| anyhow::anyhow!("expected `FEN|UCI`, found no `|`"))?;
            let position = fen(position)?;
            print_json_line(&change(&set, &position, uci(&position, mv)?, arguments.explain))
        });
    }
    let position = fen(arguments.fen.as_deref().unwrap_or_default()).map_err(Failure::Request)?;
    let mv = uci(&position, arguments.mv.as_deref().unwrap_or_default()).map_err(Failure::Request)?;
    let changed = change(&set, &position, mv, arguments.explain);
    match arguments.format {
        Format::Json => print_json(&changed)?,
        Format::Text => {
            for (name, view) in [("white", &changed.white), ("black", &changed.black)] {
                outln!("{name}  {}", if view.refresh { "refresh" } else { "update" })?;
                outln!("  added    {}", listed(&view.added))?;
                put(&explained(&view.added, changed.features.as_ref()))?;
                outln!("  removed  {}", listed(&view.removed))?;
                put(&explained(&view.removed, changed.features.as_ref()))?;
            }
        }
    }
    Ok(())
}

fn change(set: &FeatureSet, position: &Chess, mv: Move, explain: bool) -> Changed {
    let change = BoardChange::of(mv, position.turn());
    let after = change.applied_to(position.board());
    let view = |pov| {
        let mut delta = Delta::default();
        set.encoder().diff(position.board(), &change, &after, pov, &mut delta);
        ChangedView { added: delta.added, removed: delta.removed, refresh: delta.refresh }
    };
    let (white, black) = (view(Perspective::White), view(Perspective::Black));
    let indices = [&white, &black].into_iter().flat_map(|view| view.added.iter().chain(&view.removed));
    let features = explain.then(|| texts(set, indices));
    Changed { white, black, features }
}
