//! `fsbench select`: the features of a set that are active most often.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::measure::failure;
use super::sample::Data;
use super::threads::Threads;
use super::{Failure, Format, print_json, put, refuse_existing};
use crate::features::FeatureSet;
use crate::measure::frequencies;
use crate::output::OutputFile;

/// Write the indices of the features that are active most often, for the `select` key of a definition
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// How many features to keep
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    #[command(flatten)]
    data: Data,
    /// Take the first so many games only
    #[arg(long, value_name = "N", alias = "limit")]
    games: Option<u64>,
    /// The file of indices to write, one a line, the most frequent first
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace FILE where it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Selected<'a> {
    set: &'a str,
    identity: String,
    num_features: u32,
    games: u64,
    positions: u64,
    selected: u32,
    /// Activations a position and perspective: of the first and the last feature selected, of all selected, of all.
    most_frequent: f64,
    least_frequent: f64,
    active_selected: f64,
    active_all: f64,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    refuse_existing(&arguments.out, arguments.force)?;
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    if arguments.top > set.num_features() {
        let message = format!("{} features asked for; {} has {}", arguments.top, set.name(), set.num_features());
        return Err(Failure::Request(anyhow::anyhow!(message)));
    }
    let data = arguments.data.path()?;
    let (found, reading) = frequencies(&set, &data, arguments.games).map_err(failure)?;
    let top = found.top(arguments.top as usize);
    let seen = (2 * found.positions) as f64;
    let count = |feature: Option<&u32>| feature.map_or(0, |feature| found.counts[*feature as usize]) as f64;
    let selected = Selected {
        set: set.name(),
        identity: set.identity().to_string(),
        num_features: set.num_features(),
        games: reading.games,
        positions: found.positions,
        selected: arguments.top,
        most_frequent: count(top.first()) / seen,
        least_frequent: count(top.last()) / seen,
        active_selected: top.iter().map(|feature| count(Some(feature))).sum::<f64>() / seen,
        active_all: found.counts.iter().sum::<u64>() as f64 / seen,
    };
    if let Some(never) = top.iter().position(|feature| found.counts[*feature as usize] == 0) {
        let message = format!(
            "only {never} features of {} are ever active in {}; give a smaller --top or more games",
            set.name(),
            data.display()
        );
        return Err(Failure::Request(anyhow::anyhow!(message)));
    }
    write(arguments, &top)?;
    match arguments.format {
        Format::Json => print_json(&selected)?,
        Format::Text => put(&text(&selected, arguments))?,
    }
    Ok(())
}

fn write(arguments: &Arguments, top: &[u32]) -> Result<(), Failure> {
    let lines: String = top.iter().map(|feature| format!("{feature}\n")).collect();
    let mut file = OutputFile::create(&arguments.out).map_err(Failure::work)?;
    file.put(lines.as_bytes()).map_err(Failure::work)?;
    file.finish().map_err(Failure::work)
}

fn text(selected: &Selected<'_>, arguments: &Arguments) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}: {} of {} features of {}, over {} positions of {} games",
        arguments.out.display(),
        selected.selected,
        selected.num_features,
        selected.set,
        selected.positions,
        selected.games
    );
    let _ = writeln!(
        out,
        "active in {:.2}% (the first) to {:.2}% (the last) of views; {:.2} of {:.2} active features a view are kept",
        100.0 * selected.most_frequent,
        100.0 * selected.least_frequent,
        selected.active_selected,
        selected.active_all
    );
    out
}
