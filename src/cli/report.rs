//! `fsbench report`: tables, plots and an HTML page from results folders.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::Serialize;

use super::print::terminal_width;
use super::{Failure, ResultFormat, print_json, print_json_line, print_text};
use crate::experiment::TrainedRun;
use crate::record::{Results, ResultsError};
use crate::report::{self, DataFrames, Summary, TableDocument};

/// Write tables, plots and an HTML page from an experiment's results
///
/// Several folders are compared as if they were one experiment: rows of one label with the same settings are one row,
/// with the seeds of both; rows that differ get their experiment's name.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Results folders [default: the latest results in results/ or one folder below]
    results: Vec<PathBuf>,
    /// Folder for the report's files [default: the results folder; of several, their names joined by +, beside the
    /// first]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Follow an experiment that runs: write the report again whenever there are new results, until no
    /// training is missing
    #[arg(long, conflicts_with = "format")]
    watch: bool,
    /// Print the tables of the report as one JSON document, each column with its meaning, and write no files
    #[arg(long, conflicts_with_all = ["out", "watch", "format"])]
    tables: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folders = match &arguments.results[..] {
        [] => vec![Results::newest(Results::DEFAULT_FOLDER.as_ref()).map_err(Failure::request)?],
        folders => folders.to_vec(),
    };
    let out = arguments.out.clone().unwrap_or_else(|| default_out(&folders));
    if arguments.watch {
        return watch(&folders, &out);
    }
    let results = load(&folders).map_err(Failure::request)?;
    if results.learning_loop.is_some() && folders.len() > 1 {
        return Err(Failure::Request(anyhow::anyhow!("a loop has a report of its own: name one folder")));
    }
    if arguments.tables {
        let frames = DataFrames::of(&Summary::of(&results), &results).map_err(Failure::work)?;
        return print_json_line(&TableDocument::of(&frames).map_err(Failure::work)?).map_err(Failure::Work);
    }
    write_and_print(&results, &out, arguments.format, None)
}

fn load(folders: &[PathBuf]) -> Result<Results, ResultsError> {
    let all: Vec<Results> = folders.iter().map(|folder| Results::load(folder)).collect::<Result<_, _>>()?;
    Results::joined(all).ok_or_else(|| ResultsError::NoResultsIn(PathBuf::new()))
}

fn default_out(folders: &[PathBuf]) -> PathBuf {
    let [first, _, ..] = folders else { return folders.first().cloned().unwrap_or_default() };
    let name = |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    first.with_file_name(folders.iter().map(name).collect::<Vec<_>>().join("+"))
}

/// Writes the report whenever a folder's results have changed, until no training is missing.
fn watch(folders: &[PathBuf], out: &Path) -> Result<(), Failure> {
    const EVERY: Duration = Duration::from_secs(5);
    let mut seen = None;
    loop {
        let newest = newest_change(folders);
        if newest.is_none() || newest != seen {
            seen = newest;
            match load(folders) {
                Ok(results) => {
                    let summary = Summary::of(&results);
                    report::write(&summary, &results, out).map_err(Failure::work)?;
                    let rows = || summary.methods.iter().flat_map(|method| &method.rows);
                    let done: usize = rows().map(|row| row.seeds_done).sum();
                    let planned: usize = rows().map(|row| row.seeds_planned).sum();
                    note!("{done} of {planned} trainings; wrote {}", out.join("report.html").display());
                    if !summary.is_partial() {
                        return Ok(());
                    }
                }
                // The experiment may just be writing its first records.
                Err(error) if newest.is_some() => note!("not complete yet: {error}"),
                Err(error) => return Err(Failure::request(error)),
            }
        }
        std::thread::sleep(EVERY);
    }
}

/// When a record of the folders last changed; `None` if they have none.
fn newest_change(folders: &[PathBuf]) -> Option<SystemTime> {
    let records = ["study.json", "runs.json", "validation.json", "speed.json", "match.json", "loop.json"];
    let paths = folders.iter().flat_map(|folder| records.map(|record| folder.join(record)));
    paths.filter_map(|path| path.metadata().ok()?.modified().ok()).max()
}

/// The width of the terminal, or of `report.txt` if stdout is not a terminal.
fn width() -> usize {
    terminal_width().unwrap_or(report::WIDTH)
}

/// The report of an experiment.
#[derive(Serialize, JsonSchema)]
pub struct ReportDocument<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// The files written.
    files: Vec<PathBuf>,
    /// The trained networks; only of `fsbench run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    networks: Option<&'a [TrainedRun]>,
}

/// Writes the report's files and prints its tables. The JSON document lists `networks`, which an experiment that has
/// just ended passes.
pub(super) fn write_and_print(
    results: &Results,
    out: &Path,
    format: ResultFormat,
    networks: Option<&[TrainedRun]>,
) -> Result<(), Failure> {
    let summary = Summary::of(results);
    let files = report::write(&summary, results, out).map_err(Failure::work)?;
    match format {
        ResultFormat::Text => {
            print_text(&report::text(&summary, width()))?;
            note!("wrote {} files to {}; open {}", files.len(), out.display(), out.join("report.html").display());
        }
        ResultFormat::Json => print_json(&ReportDocument { summary: &summary, files, networks })?,
    }
    Ok(())
}
