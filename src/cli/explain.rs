//! `fsbench explain`: the block and axis values of features.

use anyhow::anyhow;
use schemars::JsonSchema;
use serde::Serialize;

use super::encode::{descriptions, explanation_lines};
use super::{Failure, ResultFormat, print_json, print_text};
use crate::features::{FeatureSet, FeatureText};
use crate::units::SortedMap;

/// Show the block and axis values of features
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// Indices of the features
    #[arg(required = true, value_name = "INDEX")]
    indices: Vec<u32>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// Features in words.
#[derive(Serialize, JsonSchema)]
pub struct ExplainDocument<'a> {
    /// The set's name.
    name: &'a str,
    /// By index.
    features: SortedMap<u32, FeatureText>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if let Some(index) = arguments.indices.iter().find(|index| **index >= set.num_features()) {
        let name = set.name();
        let last = set.num_features() - 1;
        return Err(Failure::Request(anyhow!("{name} has no feature {index}: its indices run from 0 to {last}")));
    }
    let features = descriptions(&set, &arguments.indices);
    match arguments.format {
        ResultFormat::Json => print_json(&ExplainDocument { name: set.name(), features })?,
        ResultFormat::Text => print_text(&explanation_lines(&arguments.indices, Some(&features)))?,
    }
    Ok(())
}
