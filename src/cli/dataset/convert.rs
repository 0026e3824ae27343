//! `fsbench dataset convert`: converts samples from one format to another.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Threads, check_inputs, check_manifest, check_names_file, failure, warn_of_scores};
use crate::cli::progress_bar::progress;
use crate::cli::sample::{FileArgument, FileHints};
use crate::cli::score_unit::describe;
use crate::cli::skipped::warn_skipped_samples;
use crate::cli::{Failure, ResultFormat, print_json, refuse_existing};
use crate::data::ScoreUnit;
use crate::data::formats;
use crate::pipeline::convert::{
    Conversion, ConvertJob, ConvertOptions, ConvertProgress, ConvertSummary, convert, convert_stream,
};

/// Convert samples from one format to another
///
/// `fsbench help data` has a table of the formats and what each holds. Warnings count what the target format cannot
/// hold: lost fields, and samples left out because it could only store them with wrong values.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The file to convert; - for standard input
    input: FileArgument,
    /// The file to write; the manifest of a .fsd file is written beside it as FILE.json
    output: PathBuf,
    #[command(flatten)]
    hints: FileHints,
    /// The output's format, where its name does not show it: fsd, binpack, viriformat, bullet, text, bullet-text, plain
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    to: Option<formats::Format>,
    /// Unit of the output's scores [default: the input's unit for a .fsd file, internal:208 for a binpack or .plain,
    /// else cp]
    #[arg(long, value_name = "UNIT")]
    to_unit: Option<ScoreUnit>,
    /// The result written for samples without one where the format needs a result [default: such samples are left out]
    #[arg(long, value_enum)]
    unknown_result: Option<UnknownResult>,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
enum UnknownResult {
    Draw,
}

/// A conversion.
#[derive(Serialize, JsonSchema)]
pub struct ConvertDocument<'a> {
    /// Path of the file that was written.
    out: &'a Path,
    #[serde(flatten)]
    summary: &'a ConvertSummary,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let output = &arguments.output;
    let input = &arguments.input.file()?;
    check_names_file(output)?;
    refuse_existing(output, arguments.force)?;
    if arguments.to.or_else(|| formats::format_by_name(output)) == Some(formats::Format::Fsd) {
        check_manifest(output, arguments.force)?;
    }
    check_inputs([input.clone()], output)?;
    let FileHints { from, from_unit, evals } = arguments.hints;
    let Arguments { to, to_unit, .. } = *arguments;
    let unknown_is_draw = arguments.unknown_result.is_some();
    let options = ConvertOptions { from, to, from_unit, to_unit, unknown_is_draw, evals };
    let command: Vec<String> = std::env::args().collect();
    let job = ConvertJob { output, options: &options, command: &command };
    let bar = progress(None, "{spinner} {elapsed} {msg}");
    let mut report = |progress: ConvertProgress| {
        let share = progress.length.filter(|length| *length > 0 && progress.bytes > 0);
        let share = share.map(|length| format!(", {:.0}%", 100.0 * progress.bytes as f64 / length as f64));
        bar.set_message(format!("{} samples{}", progress.samples, share.unwrap_or_default()));
    };
    let converted = if input == Path::new("-") {
        let stream = Box::new(std::io::stdin());
        convert_stream(stream, Path::new("standard input"), &job, &mut report)
    } else {
        convert(input, &job, &mut report)
    };
    bar.finish_and_clear();
    let converted = converted.map_err(failure)?;
    warn(&converted, input);
    match arguments.format {
        ResultFormat::Text => outln!("{}", text(&converted, output))?,
        ResultFormat::Json => print_json(&ConvertDocument { out: output, summary: &converted })?,
    }
    Ok(())
}

fn warn(converted: &ConvertSummary, input: &Path) {
    let Conversion { to, score_units, omissions, skipped, notes, .. } = &converted.conversion;
    let to_name = to.name();
    for (why, count) in &omissions.samples {
        note!("warning: {count} samples {} were left out: {to_name} cannot store them", why.name());
    }
    for (field, count) in &omissions.fields {
        note!("warning: {count} samples lose {}: {to_name} does not store it", field.name());
    }
    if omissions.clamped > 0 {
        note!("warning: {} scores were cut to the range that can be stored", omissions.clamped);
    }
    if omissions.assumed_draws > 0 {
        note!("warning: {} unknown results became draws", omissions.assumed_draws);
    }
    warn_of_scores(input, notes);
    let unit_is_known = *to == formats::Format::Fsd || score_units.to == to.default_unit();
    if !unit_is_known {
        let unit = score_units.to;
        note!("warning: {to_name} records no score unit: read the file with --from-unit {unit}");
    }
    warn_skipped_samples(input.display(), skipped);
}

fn units(conversion: &Conversion) -> String {
    let formats::UnitConversion { from, to } = conversion.score_units;
    let source = describe(from, conversion.unit_said_by);
    if from == to { source } else { format!("{}, from {source}", to.describe()) }
}

fn text(converted: &ConvertSummary, output: &Path) -> String {
    let Conversion { from, to, notes, .. } = &converted.conversion;
    let mut lines = vec![
        format!("{}: {} samples, {} from {}", output.display(), converted.samples, to.name(), from.name()),
        format!("read     {}", converted.read),
        format!("games    {}", converted.games),
        format!("scores   {}", units(&converted.conversion)),
    ];
    lines.extend(notes.lines().into_iter().map(|line| format!("note     {line}")));
    lines.extend(converted.hash.iter().map(|hash| format!("hash     {hash}")));
    lines.join("\n")
}
