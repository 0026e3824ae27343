//! `fsbench runs`: what experiments have left in the cache.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use indicatif::HumanBytes;
use serde::Serialize;

use super::print::table;
use super::run::{failure, work};
use super::{Failure, Format, print_json, print_text};
use crate::experiment::{KeptRun, kept_runs, remove_unused_runs};
use crate::pipeline;

/// List the runs that experiments keep: folder, size and who uses them; remove those nobody uses
///
/// An experiment uses the runs of its file as it was last run, as long as its results folder stands. What is removed is
/// trained again when an experiment asks for it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Remove the runs that no experiment uses, after asking
    #[arg(long)]
    remove: bool,
    /// Do not ask
    #[arg(long, requires = "remove")]
    yes: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Kept {
    folder: PathBuf,
    /// What is left.
    runs: Vec<KeptRun>,
    removed: Vec<KeptRun>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = work(&pipeline::default_cache().map_err(Failure::request)?);
    let mut runs = kept_runs(&folder).map_err(failure)?;
    let unused: Vec<&KeptRun> = runs.iter().filter(|run| run.used_by.is_empty()).collect();
    let mut removed = Vec::new();
    if arguments.remove && !unused.is_empty() && (arguments.yes || confirmed(&unused)?) {
        removed = remove_unused_runs(&folder).map_err(failure)?;
        runs.retain(|run| removed.iter().all(|gone| gone.path != run.path));
    }
    let kept = Kept { folder, runs, removed };
    match arguments.format {
        Format::Json => print_json(&kept),
        Format::Text => Ok(print_text(&text(&kept, arguments.remove))?),
    }
}

/// Asks on the terminal.
fn confirmed(unused: &[&KeptRun]) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Request(anyhow::anyhow!(
            "--remove asks before it removes; where nobody can answer, give --yes"
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

fn text(kept: &Kept, asked_to_remove: bool) -> String {
    let mut out = String::new();
    if !kept.runs.is_empty() {
        let row = |run: &KeptRun| {
            let path = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let users = run.used_by.iter().map(|results| results.display().to_string()).collect::<Vec<_>>().join(", ");
            let state = if run.finished { "" } else { "unfinished; " };
            let users = if users.is_empty() { "nobody".to_owned() } else { users };
            vec![path, HumanBytes(run.bytes).to_string(), format!("{state}{users}")]
        };
        out += &table(&["run", "size", "used by"], kept.runs.iter().map(row));
        out += "\n";
    }
    out += &format!("{} runs, {} in {}\n", kept.runs.len(), bytes(kept.runs.iter()), kept.folder.display());
    let unused: Vec<&KeptRun> = kept.runs.iter().filter(|run| run.used_by.is_empty()).collect();
    if asked_to_remove {
        out += &format!("removed {} runs, {}\n", kept.removed.len(), bytes(kept.removed.iter()));
    } else if !unused.is_empty() {
        let size = bytes(unused.iter().copied());
        out += &format!("{} runs, {size}, are used by nobody: `fsbench runs --remove` removes them\n", unused.len());
    }
    out
}
