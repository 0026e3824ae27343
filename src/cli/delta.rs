//! `fsbench delta`: what a move adds to and removes from the active features.

use serde::Serialize;
use shakmaty::Position;

use super::encode::listed;
use super::input::{fen, lines, uci};
use super::{Failure, Format, print_json, print_json_line};
use crate::chess::{BoardChange, Chess, Move, Perspective};
use crate::features::{Delta, FeatureSet};

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
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Changed {
    white: ChangedView,
    black: ChangedView,
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
            print_json_line(&change(&set, &position, uci(&position, mv)?))
        });
    }
    let position = fen(arguments.fen.as_deref().unwrap_or_default()).map_err(Failure::Request)?;
    let mv = uci(&position, arguments.mv.as_deref().unwrap_or_default()).map_err(Failure::Request)?;
    let changed = change(&set, &position, mv);
    match arguments.format {
        Format::Json => print_json(&changed)?,
        Format::Text => {
            for (name, view) in [("white", &changed.white), ("black", &changed.black)] {
                println!("{name}  {}", if view.refresh { "refresh" } else { "update" });
                println!("  added    {}", listed(&view.added));
                println!("  removed  {}", listed(&view.removed));
            }
        }
    }
    Ok(())
}

fn change(set: &FeatureSet, position: &Chess, mv: Move) -> Changed {
    let change = BoardChange::of(mv, position.turn());
    let after = change.applied_to(position.board());
    let view = |pov| {
        let mut delta = Delta::default();
        set.delta(position.board(), &change, &after, pov, &mut delta);
        ChangedView { added: delta.added, removed: delta.removed, refresh: delta.refresh }
    };
    Changed { white: view(Perspective::White), black: view(Perspective::Black) }
}
