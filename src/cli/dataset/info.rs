//! `fsbench dataset info`: counts and metadata of a file of games or samples.

use super::{Threads, failure};
use crate::cli::sample::{FileArgument, FileHints};
use crate::cli::score_unit::describe;
use crate::cli::{Failure, ResultFormat, print_json};
use crate::pipeline::{self, FileInfo};

/// Show the counts and metadata of a file of games or samples
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Games or samples in any format
    file: FileArgument,
    #[command(flatten)]
    hints: FileHints,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let FileHints { from, from_unit, evals } = arguments.hints;
    let info = pipeline::file_info(&arguments.file.file()?, from, from_unit, evals).map_err(failure)?;
    match arguments.format {
        ResultFormat::Text => outln!("{}", text(&info))?,
        ResultFormat::Json => print_json(&info)?,
    }
    Ok(())
}

fn text(info: &FileInfo) -> String {
    let mut lines = vec![
        format!("format       {} ({})", info.format, info.compression),
        format!("samples      {}", info.samples),
        format!("games        {}", info.games),
        format!("with score   {}", info.with_score),
        format!("with result  {}", info.with_result),
        format!("score unit   {}", describe(info.score_unit, info.unit_said_by)),
    ];
    if let Some(method) = info.method {
        lines.push(format!("method       {}", method.name()));
    }
    if let Some(seed) = info.seed {
        lines.push(format!("seed         {}", seed.0));
    }
    if let Some(skipped) = &info.skipped {
        lines.extend(skipped.by_reason.iter().map(|(reason, count)| format!("skipped      {count} games: {reason}")));
        lines.extend(skipped.examples.iter().map(|game| format!("  {game}")));
    }
    if let Some(skipped) = &info.skipped_samples {
        lines.extend(skipped.by_reason.iter().map(|(reason, count)| format!("skipped      {count}: {reason}")));
        lines.extend(skipped.examples.iter().map(|sample| format!("  {sample}")));
    }
    lines.extend(info.notes.lines().into_iter().map(|line| format!("note         {line}")));
    lines.push(format!("hash         {}", info.hash));
    lines.join("\n")
}
