//! `fsbench report`: tables, plots and an HTML page from a results folder.

use std::path::{Path, PathBuf};

use super::print::terminal_width;
use super::{Failure, Format, print_json, print_text};
use crate::experiment::TrainedRun;
use crate::record::Results;
use crate::report::{self, Summary};

/// Write tables, plots and an HTML page from an experiment's results
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A results folder [default: the latest results in results/ or one folder below]
    results: Option<PathBuf>,
    /// Folder for the report's files [default: the results folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = match &arguments.results {
        Some(folder) => folder.clone(),
        None => Results::newest(Results::DEFAULT_FOLDER.as_ref()).map_err(Failure::request)?,
    };
    let results = Results::load(&folder).map_err(Failure::request)?;
    write_and_print(&results, arguments.out.as_ref().unwrap_or(&folder), arguments.format, None)
}

/// The width of the terminal, or of `report.txt` if stdout is not a terminal.
fn width() -> usize {
    terminal_width().unwrap_or(report::WIDTH)
}

/// Writes the report's files and prints its tables. The JSON document lists `networks`, which an experiment that has
/// just ended passes.
pub(super) fn write_and_print(
    results: &Results,
    out: &Path,
    format: Format,
    networks: Option<&[TrainedRun]>,
) -> Result<(), Failure> {
    let summary = Summary::of(results);
    let files = report::write(&summary, results, out).map_err(Failure::work)?;
    match format {
        Format::Text => {
            print_text(&report::text(&summary, width()))?;
            note!("wrote {} files to {}; open {}", files.len(), out.display(), out.join("report.html").display());
        }
        Format::Json => {
            let mut document = serde_json::to_value(&summary).map_err(Failure::work)?;
            document["files"] = files.iter().map(|path| path.display().to_string()).collect();
            if let Some(networks) = networks {
                document["networks"] = serde_json::to_value(networks).map_err(Failure::work)?;
            }
            print_json(&document)?;
        }
    }
    Ok(())
}
