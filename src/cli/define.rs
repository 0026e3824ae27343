//! `fsbench define`: a definition's sizes and properties.

use super::{Failure, Format};
use crate::features::FeatureSet;

/// Show what a feature-set definition means
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    match arguments.format {
        Format::Text => println!("{} {}", set.name(), set.num_features()),
        Format::Json => println!("{}", serde_json::json!({ "name": set.name(), "num_features": set.num_features() })),
    }
    Ok(())
}
