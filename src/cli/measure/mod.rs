//! `fsbench measure`: measures feature sets and networks on real games.

mod activity;
mod error;
mod importance;
mod loss;
mod progress;
mod speed;
mod updates;

use std::path::PathBuf;

use super::net::{FormatHints, NetArgument};
use super::print::{percent, table};
use super::sample::{Data, FileHints};
use super::score_unit::note_assumed;
use super::skipped::warn_skipped_samples;
use super::threads::Threads;
use super::{Failure, ResultFormat, print_json};
use crate::data::formats::score_unit;
use crate::measure::{MeasureError, ReadSummary};

/// Measure feature sets and networks on games
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: MeasureCommand,
    #[command(flatten)]
    threads: Threads,
}

#[derive(Debug, clap::Subcommand)]
enum MeasureCommand {
    Updates(updates::Arguments),
    Activity(activity::Arguments),
    Error(error::Arguments),
    Importance(importance::Arguments),
    Loss(loss::Arguments),
    Speed(speed::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    match &arguments.command {
        MeasureCommand::Updates(arguments) => updates::run(arguments),
        MeasureCommand::Activity(arguments) => activity::run(arguments),
        MeasureCommand::Error(arguments) => error::run(arguments),
        MeasureCommand::Importance(arguments) => importance::run(arguments),
        MeasureCommand::Loss(arguments) => loss::run(arguments),
        MeasureCommand::Speed(arguments) => speed::run(arguments),
    }
}

/// Errors in files are failures of the request; a defect found while measuring is failed work.
pub(super) fn failure(error: MeasureError) -> Failure {
    match error {
        MeasureError::Disagreement { .. } => Failure::work(error),
        _ => Failure::request(error),
    }
}

/// Reports skipped games and samples on stderr.
pub(super) fn note_skipped(summary: &ReadSummary) {
    let skipped = &summary.skipped;
    if skipped.total() > 0 {
        note!("note: skipped {} broken games", skipped.total());
        skipped.examples.iter().for_each(|example| note!("note: {example}"));
    }
    warn_skipped_samples("the data", &summary.skipped_samples);
}

/// Samples with scores, and the unit of these.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Data")]
struct ScoredData {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    hints: FileHints,
}

impl ScoredData {
    /// The data file. Notes on stderr if the unit of its scores is assumed.
    fn path(&self) -> Result<PathBuf, Failure> {
        let data = self.data.path()?;
        note_assumed(&data, score_unit(&data, self.hints.from, self.hints.from_unit).map_err(Failure::request)?);
        Ok(data)
    }
}

/// Prints a result, and reports skipped games on stderr.
fn print<T: serde::Serialize>(
    format: ResultFormat,
    record: &T,
    summary: &ReadSummary,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    note_skipped(summary);
    match format {
        ResultFormat::Text => Ok(outln!("{}", text(record))?),
        ResultFormat::Json => print_json(record),
    }
}
