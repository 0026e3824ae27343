//! `fsbench explain`: what features are.

use std::collections::BTreeMap;

use anyhow::anyhow;
use serde::Serialize;

use super::encode::{explained, texts};
use super::{Failure, Format, print_json, put};
use crate::features::{FeatureSet, FeatureText};

/// Say what features are: their block and the values of its axes
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// The features' indices
    #[arg(required = true, value_name = "INDEX")]
    indices: Vec<u32>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Features<'a> {
    name: &'a str,
    features: BTreeMap<u32, FeatureText>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if let Some(index) = arguments.indices.iter().find(|index| **index >= set.num_features()) {
        let (name, last) = (set.name(), set.num_features() - 1);
        return Err(Failure::Request(anyhow!("{name} has no feature {index}: its indices run from 0 to {last}")));
    }
    let features = texts(&set, &arguments.indices);
    match arguments.format {
        Format::Json => print_json(&Features { name: set.name(), features })?,
        Format::Text => put(&explained(&arguments.indices, Some(&features)))?,
    }
    Ok(())
}
