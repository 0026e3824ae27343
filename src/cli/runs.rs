//! `fsbench runs`: lists the runs that experiments keep in the cache, and removes unused ones.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::print::table;
use super::run::{failure, work_folder};
use super::{Failure, ResultFormat, print_json, print_text};
use crate::experiment::{KeptRun, kept_runs, remove_unused_runs};
use crate::pipeline;

/// List the runs that experiments keep: folder, size and the experiments that use them; remove unused runs
///
/// An experiment uses the runs of its file as it was last run, as long as its results folder exists. If an experiment
/// needs a removed run again, it trains it again.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Remove the runs that no experiment uses, after asking for confirmation
    #[arg(long)]
    remove: bool,
    /// Remove without asking
    #[arg(long, requires = "remove")]
    yes: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// The runs that experiments keep.
#[derive(Serialize, JsonSchema)]
pub struct RunList {
    /// The folder of all runs.
    folder: PathBuf,
    /// Runs that were not removed.
    runs: Vec<KeptRun>,
    removed: Vec<KeptRun>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = work_folder(&pipeline::default_cache().map_err(Failure::request)?);
    let mut runs = kept_runs(&folder).map_err(failure)?;
    let unused: Vec<&KeptRun> = runs.iter().filter(|run| run.used_by.is_empty()).collect();
    let mut removed = Vec::new();
    if arguments.remove && !unused.is_empty() && (arguments.yes || confirmed(&unused)?) {
        removed = remove_unused_runs(&folder).map_err(failure)?;
        runs.retain(|run| removed.iter().all(|removed| removed.path != run.path));
    }
    let list = RunList { folder, runs, removed };
    match arguments.format {
        ResultFormat::Json => print_json(&list),
        ResultFormat::Text => Ok(print_text(&text(&list, arguments.remove))?),
    }
}

/// Asks the user on the terminal whether to remove these runs.
fn confirmed(unused: &[&KeptRun]) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Request(anyhow::anyhow!(
            "--remove asks before it removes runs, but there is no terminal; give --yes to skip the question"
        )));
    }
    unused.iter().for_each(|run| note!("{}", run.path.display()));
    note!("Remove these {} runs, {}? [y/N]", unused.len(), bytes(unused.iter().copied()));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(Failure::work)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn bytes<'a>(runs: impl Iterator<Item = &'a KeptRun>) -> HumanBytes {
    HumanBytes(runs.map(|run| run.bytes).sum())
}

fn text(list: &RunList, remove: bool) -> String {
    let mut out = String::new();
    if !list.runs.is_empty() {
        let row = |run: &KeptRun| {
            let path = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let users = run.used_by.iter().map(|results| results.display().to_string()).collect::<Vec<_>>().join(", ");
            let state = if run.finished { "" } else { "unfinished; " };
            let users = if users.is_empty() { "unused".to_owned() } else { users };
            vec![path, HumanBytes(run.bytes).to_string(), format!("{state}{users}")]
        };
        out += &table(&["run", "size", "used by"], list.runs.iter().map(row));
        out += "\n";
    }
    out += &format!("{} runs, {} in {}\n", list.runs.len(), bytes(list.runs.iter()), list.folder.display());
    let unused: Vec<&KeptRun> = list.runs.iter().filter(|run| run.used_by.is_empty()).collect();
    if remove {
        out += &format!("removed {} runs, {}\n", list.removed.len(), bytes(list.removed.iter()));
    } else if !unused.is_empty() {
        let size = bytes(unused.iter().copied());
        out += &format!("{} runs, {size}, are unused: `fsbench runs --remove` removes them\n", unused.len());
    }
    out
}
