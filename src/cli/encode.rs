//! `fsbench encode`: the active features of positions.

use serde::Serialize;
use shakmaty::Position;

use super::input::{fen, lines};
use super::{Failure, Format, print_json, print_json_line};
use crate::chess::{Chess, Perspective};
use crate::features::FeatureSet;

/// List the active features of a position, for both perspectives
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// The position
    #[arg(long, required_unless_present = "fens", conflicts_with = "fens")]
    fen: Option<String>,
    /// A file with a FEN a line (`-` = standard input): a JSON document a line out
    #[arg(long, value_name = "FILE")]
    fens: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Encoded {
    white: Vec<u32>,
    black: Vec<u32>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if let Some(file) = &arguments.fens {
        return lines(file, |line| print_json_line(&encode(&set, &fen(line)?)));
    }
    let position = fen(arguments.fen.as_deref().unwrap_or_default()).map_err(Failure::Request)?;
    let encoded = encode(&set, &position);
    match arguments.format {
        Format::Json => print_json(&encoded)?,
        Format::Text => {
            println!("white  {}", listed(&encoded.white));
            println!("black  {}", listed(&encoded.black));
        }
    }
    Ok(())
}

fn encode(set: &FeatureSet, position: &Chess) -> Encoded {
    let active = |pov| {
        let mut indices = Vec::new();
        set.active(position.board(), pov, &mut indices);
        indices.sort_unstable();
        indices
    };
    Encoded { white: active(Perspective::White), black: active(Perspective::Black) }
}

/// Numbers with spaces between.
pub fn listed(indices: &[u32]) -> String {
    indices.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
