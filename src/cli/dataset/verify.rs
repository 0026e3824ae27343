//! `fsbench dataset verify`: checks a whole file; the exit status is 1 when something is wrong.

use std::path::Path;

use anyhow::anyhow;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Threads, failure};
use crate::cli::progress_bar::progress;
use crate::cli::sample::FileArgument;
use crate::cli::{Failure, ResultFormat, print_json};
use crate::data::{EvalOptions, formats};
use crate::pipeline::verify::{VerifyReport, verify};

/// Read a whole file of samples or games and check everything in it
///
/// Checks the checksums, every position and move, every record's bytes, and whether the manifest agrees. The exit
/// status is 1 when something is wrong; the first problems are listed with their locations.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Games or samples in any format
    file: FileArgument,
    /// The file's format, where it cannot be detected from its content and name
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<formats::Format>,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    evals: EvalOptions,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// The result of checking a file.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// The file that was read.
    file: &'a Path,
    /// Whether nothing is wrong.
    ok: bool,
    #[serde(flatten)]
    report: &'a VerifyReport,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let file = arguments.file.file()?;
    let bar = progress(None, "{spinner} {elapsed} {msg}");
    let mut progress = |samples| bar.set_message(format!("{samples} samples"));
    let report = verify(&file, arguments.from, arguments.evals, &mut progress);
    bar.finish_and_clear();
    let report = report.map_err(failure)?;
    let printed = match arguments.format {
        ResultFormat::Text => outln!("{}", text(&report, &file)).map_err(Failure::from),
        ResultFormat::Json => print_json(&Document { file: &file, ok: report.problems == 0, report: &report }),
    };
    // The exit status shows a broken file even when printing fails.
    match report.problems {
        0 => printed,
        1 => Err(Failure::work(anyhow!("{} has a problem", file.display()))),
        count => Err(Failure::work(anyhow!("{} has {count} problems", file.display()))),
    }
}

fn text(report: &VerifyReport, file: &Path) -> String {
    let state = if report.problems == 0 { "in order" } else { "broken" };
    let mut lines = vec![
        format!("{}: {} ({} samples, {} games)", file.display(), state, report.samples, report.games),
        format!("format     {}", report.format.name()),
        format!("hash       {}", report.hash),
    ];
    lines.extend(report.manifest.map(|agrees| format!("manifest   {}", if agrees { "agrees" } else { "disagrees" })));
    lines.extend(report.first.iter().map(|problem| format!("{}: {}", problem.place, problem.message)));
    lines.extend(report.notes.lines().into_iter().map(|line| format!("note       {line}")));
    let more = report.problems - report.first.len() as u64;
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}
