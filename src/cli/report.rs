//! `fsbench report`: tables, plots and a page from a results folder.

use std::path::PathBuf;

use super::{Failure, Format, print_json, put};
use crate::experiment::Trained;
use crate::record::Results;
use crate::report::{self, Summary};

/// Write tables, plots and a page from results
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A results folder (default: of those in results/ and in folders there, the one recorded last)
    results: Option<PathBuf>,
    /// Where the report's files go (default: the results folder)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = match &arguments.results {
        Some(folder) => folder.clone(),
        None => Results::newest(Results::ROOT.as_ref()).map_err(Failure::request)?,
    };
    let results = Results::load(&folder).map_err(Failure::request)?;
    show(&results, arguments.out.as_ref().unwrap_or(&folder), arguments.format, None)
}

/// The terminal's width; of a file or a pipe, that of the report's own file.
fn width() -> usize {
    terminal_size::terminal_size().map_or(report::WIDTH, |(width, _)| usize::from(width.0).max(40))
}

/// Writes the report's files and prints the tables; as JSON with the networks of an experiment just done.
pub(super) fn show(
    results: &Results,
    out: &std::path::Path,
    format: Format,
    networks: Option<&[Trained]>,
) -> Result<(), Failure> {
    let summary = Summary::of(results);
    let written = report::write(&summary, results, out).map_err(Failure::work)?;
    match format {
        Format::Text => {
            put(&report::text(&summary, width()))?;
            note!("wrote {} files to {}; open {}", written.len(), out.display(), out.join("report.html").display());
        }
        Format::Json => {
            let mut document = serde_json::to_value(&summary).map_err(Failure::work)?;
            document["files"] = written.iter().map(|path| path.display().to_string()).collect();
            if let Some(networks) = networks {
                document["networks"] = serde_json::to_value(networks).map_err(Failure::work)?;
            }
            print_json(&document)?;
        }
    }
    Ok(())
}
