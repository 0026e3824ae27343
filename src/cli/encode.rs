//! `fsbench encode`: the active features of positions.

use schemars::JsonSchema;
use serde::Serialize;
use shakmaty::Position;

use super::input::answer_each_line;
use super::{Failure, ResultFormat, print_json, print_text};
use crate::chess::{Chess, Perspective, parse_fen};
use crate::features::{FeatureSet, FeatureText};
use crate::json::to_text;
use crate::units::SortedMap;

/// List the active features of a position for both perspectives
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// The position
    #[arg(long, required_unless_present = "fens", conflicts_with = "fens")]
    fen: Option<String>,
    /// A file with one FEN per line (`-` = standard input); prints one JSON document per line, and `line` and `error`
    /// of a line that is no legal position
    #[arg(long, value_name = "FILE")]
    fens: Option<String>,
    /// Add the block and axis values of each feature
    #[arg(long)]
    explain: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// The active features of a position, ascending, by perspective.
#[derive(Serialize, JsonSchema)]
pub struct EncodeDocument {
    /// Active features as White sees them, ascending.
    white: Vec<u32>,
    /// Active features as Black sees them, ascending.
    black: Vec<u32>,
    /// Descriptions by index, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<SortedMap<u32, FeatureText>>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if let Some(file) = &arguments.fens {
        return answer_each_line(file, ResultFormat::Json, |line| {
            Ok(to_text(&encode(&set, &parse_fen(line)?, arguments.explain))?)
        });
    }
    let position = parse_fen(arguments.fen.as_deref().unwrap_or_default()).map_err(Failure::request)?;
    let encoded = encode(&set, &position, arguments.explain);
    match arguments.format {
        ResultFormat::Json => print_json(&encoded)?,
        ResultFormat::Text => {
            for (name, active) in [("white", &encoded.white), ("black", &encoded.black)] {
                outln!("{name}  {}", joined(active))?;
                print_text(&explanation_lines(active, encoded.features.as_ref()))?;
            }
        }
    }
    Ok(())
}

fn encode(set: &FeatureSet, position: &Chess, explain: bool) -> EncodeDocument {
    let active = |pov| {
        let mut indices = Vec::new();
        set.encoder().encode(position.board(), pov, &mut indices);
        indices.sort_unstable();
        indices
    };
    let white = active(Perspective::White);
    let black = active(Perspective::Black);
    let features = explain.then(|| descriptions(set, white.iter().chain(&black)));
    EncodeDocument { white, black, features }
}

/// Describes each of these features.
pub fn descriptions<'a>(set: &FeatureSet, indices: impl IntoIterator<Item = &'a u32>) -> SortedMap<u32, FeatureText> {
    indices.into_iter().filter_map(|index| Some((*index, set.describe(*index)?))).collect()
}

/// One line per feature that has a description.
pub fn explanation_lines(indices: &[u32], descriptions: Option<&SortedMap<u32, FeatureText>>) -> String {
    let line = |index: &u32| {
        let FeatureText { block, values } = descriptions?.get(index)?;
        Some(format!("  {index:>8}  {block}: {values}\n"))
    };
    indices.iter().filter_map(line).collect()
}

/// Joins indices by spaces.
pub fn joined(indices: &[u32]) -> String {
    indices.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
