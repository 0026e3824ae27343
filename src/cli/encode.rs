//! `fsbench encode`: the active features of positions.

use std::collections::BTreeMap;

use serde::Serialize;
use shakmaty::Position;

use super::input::{fen, lines};
use super::{Failure, Format, print_json, print_json_line, put};
use crate::chess::{Chess, Perspective};
use crate::features::{FeatureSet, FeatureText};

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
    /// Say what each feature is
    #[arg(long)]
    explain: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Encoded {
    white: Vec<u32>,
    black: Vec<u32>,
    /// What each index is, where that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<BTreeMap<u32, FeatureText>>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if let Some(file) = &arguments.fens {
        return lines(file, |line| print_json_line(&encode(&set, &fen(line)?, arguments.explain)));
    }
    let position = fen(arguments.fen.as_deref().unwrap_or_default()).map_err(Failure::Request)?;
    let encoded = encode(&set, &position, arguments.explain);
    match arguments.format {
        Format::Json => print_json(&encoded)?,
        Format::Text => {
            for (name, active) in [("white", &encoded.white), ("black", &encoded.black)] {
                outln!("{name}  {}", listed(active))?;
                put(&explained(active, encoded.features.as_ref()))?;
            }
        }
    }
    Ok(())
}

fn encode(set: &FeatureSet, position: &Chess, explain: bool) -> Encoded {
    let active = |pov| {
        let mut indices = Vec::new();
        set.encoder().encode(position.board(), pov, &mut indices);
        indices.sort_unstable();
        indices
    };
    let (white, black) = (active(Perspective::White), active(Perspective::Black));
    let features = explain.then(|| texts(set, white.iter().chain(&black)));
    Encoded { white, black, features }
}

/// What each of these features is.
pub fn texts<'a>(set: &FeatureSet, indices: impl IntoIterator<Item = &'a u32>) -> BTreeMap<u32, FeatureText> {
    indices.into_iter().filter_map(|index| Some((*index, set.describe(*index)?))).collect()
}

/// A line for each of the features that `texts` knows.
pub fn explained(indices: &[u32], texts: Option<&BTreeMap<u32, FeatureText>>) -> String {
    let line = |index: &u32| {
        let FeatureText { block, values } = texts?.get(index)?;
        Some(format!("  {index:>8}  {block}: {values}\n"))
    };
    indices.iter().filter_map(line).collect()
}

/// Numbers with spaces between.
pub fn listed(indices: &[u32]) -> String {
    indices.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
