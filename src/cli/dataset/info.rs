//! `fsbench dataset info`: counts and metadata of a file of games or samples.

use super::{Threads, failure};
use crate::cli::sample::FileArgument;
use crate::cli::score_unit::describe;
use crate::cli::{Failure, ResultFormat, print_json};
use crate::data::{EvalOptions, ScoreUnit, formats};
use crate::pipeline::{self, FileInfo};

/// Show the counts and metadata of a file of games or samples
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Games or samples in any format
    file: FileArgument,
    /// The file's format, where it cannot be detected from its content and name
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<formats::Format>,
    #[command(flatten)]
    threads: Threads,
    /// Unit of the scores where the file does not record it: cp, or internal:PAWN [default: internal:208 for a binpack,
    /// else cp]
    #[arg(long, value_name = "UNIT")]
    from_unit: Option<ScoreUnit>,
    #[command(flatten)]
    evals: EvalOptions,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let info = pipeline::file_info(&arguments.file.file()?, arguments.from, arguments.from_unit, arguments.evals)
        .map_err(failure)?;
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
