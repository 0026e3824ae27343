//! `fsbench dataset verify`: whether all in a file is as it should be. Exit status 1 when something is not.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::json;

use super::{Threads, failure, progress};
use crate::cli::{Failure, Format, print_json};
use crate::data::formats;
use crate::pipeline::verify::{VerifyReport, verify};

/// Read a whole file of samples or games and check all in it
///
/// Checksums, every position and move, every record's bytes, and whether the manifest agrees. Exit status 1 when
/// something is wrong; the first problems are told with their place.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// .fsd, .binpack, bulletformat, or PGN or lines FEN,score,move (plain, .zst, .gz or .bz2)
    file: PathBuf,
    /// The file's format, where it cannot be told from its content and name
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<formats::Format>,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let bar = progress(None, "{spinner} {elapsed} {msg}");
    let verdict = verify(&arguments.file, arguments.from, &mut |samples| bar.set_message(format!("{samples} samples")));
    bar.finish_and_clear();
    let verdict = verdict.map_err(failure)?;
    let printed = match arguments.format {
        Format::Text => outln!("{}", text(&verdict, &arguments.file)).map_err(Failure::from),
        Format::Json => {
            let mut document = serde_json::to_value(&verdict).map_err(Failure::work)?;
            document["file"] = json!(arguments.file);
            document["ok"] = json!(verdict.problems == 0);
            print_json(&document)
        }
    };
    // A broken file is told by the exit status, whoever reads the rest.
    match verdict.problems {
        0 => printed,
        1 => Err(Failure::work(anyhow!("{} has a problem", arguments.file.display()))),
        count => Err(Failure::work(anyhow!("{} has {count} problems", arguments.file.display()))),
    }
}

fn text(verdict: &VerifyReport, file: &Path) -> String {
    let state = if verdict.problems == 0 { "in order" } else { "broken" };
    let mut lines = vec![
        format!("{}: {} ({} samples, {} games)", file.display(), state, verdict.samples, verdict.games),
        format!("format     {}", verdict.format.name()),
        format!("hash       {}", verdict.hash),
    ];
    lines.extend(verdict.manifest.map(|agrees| format!("manifest   {}", if agrees { "agrees" } else { "disagrees" })));
    lines.extend(verdict.first.iter().map(|problem| format!("{}: {}", problem.place, problem.what)));
    let more = verdict.problems - verdict.first.len() as u64;
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}
