//! `fsbench select`: writes the most frequently active features of a set.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::measure::failure;
use super::sample::Data;
use super::threads::Threads;
use super::{Failure, ResultFormat, print_json, print_text, refuse_existing};
use crate::features::FeatureSet;
use crate::measure::frequencies;
use crate::output;

/// Write the indices of the most frequently active features, for the `select` key of a definition
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// Number of features to select
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    #[command(flatten)]
    data: Data,
    /// Read only the first N games
    #[arg(long, value_name = "N")]
    games: Option<u64>,
    /// The index file to write: one index per line, the most frequent first
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// The features that are active most often.
#[derive(Serialize, JsonSchema)]
pub struct SelectDocument<'a> {
    /// The set.
    set: &'a str,
    /// The set's identity.
    identity: String,
    /// Inputs per perspective.
    num_features: u32,
    /// Games that were read.
    games: u64,
    /// Positions that were encoded.
    positions: u64,
    /// Features that were selected.
    selected: u32,
    /// Activations per position and perspective: of the first selected feature, …
    most_frequent: f64,
    /// … of the last selected feature, …
    least_frequent: f64,
    /// … of all selected features, and of all features.
    active_selected: f64,
    /// Mean number of active features of the whole set.
    active_all: f64,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    refuse_existing(&arguments.out, arguments.force)?;
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if arguments.top > set.num_features() {
        let message = format!("--top {}: {} has only {} features", arguments.top, set.name(), set.num_features());
        return Err(Failure::Request(anyhow::anyhow!(message)));
    }
    let data = arguments.data.path()?;
    let (frequencies, games_read) = frequencies(&set, &data, arguments.games).map_err(failure)?;
    let selected = frequencies.top(arguments.top as usize);
    let count = |feature: &u32| frequencies.counts[*feature as usize];
    if let Some(active) = selected.iter().position(|feature| count(feature) == 0) {
        let message = format!(
            "only {active} features of {} are ever active in {}; give a smaller --top or more games",
            set.name(),
            data.display()
        );
        return Err(Failure::Request(anyhow::anyhow!(message)));
    }
    // Two perspectives per position.
    let per_perspective = |activations: u64| activations as f64 / (2 * frequencies.positions) as f64;
    let document = SelectDocument {
        set: set.name(),
        identity: set.identity().to_string(),
        num_features: set.num_features(),
        games: games_read.games,
        positions: frequencies.positions,
        selected: arguments.top,
        most_frequent: per_perspective(selected.first().map_or(0, count)),
        least_frequent: per_perspective(selected.last().map_or(0, count)),
        active_selected: per_perspective(selected.iter().map(count).sum()),
        active_all: per_perspective(frequencies.counts.iter().sum()),
    };
    let lines: String = selected.iter().map(|feature| format!("{feature}\n")).collect();
    output::write(&arguments.out, lines.as_bytes()).map_err(Failure::work)?;
    match arguments.format {
        ResultFormat::Json => print_json(&document)?,
        ResultFormat::Text => print_text(&text(&document, arguments))?,
    }
    Ok(())
}

fn text(document: &SelectDocument<'_>, arguments: &Arguments) -> String {
    let SelectDocument { set, num_features, games, positions, selected, .. } = document;
    format!(
        "{}: {selected} of {num_features} features of {set}, counted over {positions} positions of {games} games\n\
         the first feature is active in {:.2}% of positions and perspectives, the last in {:.2}%\n\
         {:.2} of {:.2} active features per position and perspective are selected\n",
        arguments.out.display(),
        100.0 * document.most_frequent,
        100.0 * document.least_frequent,
        document.active_selected,
        document.active_all
    )
}
