//! `fsbench measure`: measures feature sets and networks on real games.

mod activity;
mod error;
mod importance;
mod loss;
mod progress;
mod speed;
mod updates;

use super::net::{FormatHints, NetArgument};
use super::print::{percent, table};
use super::sample::Data;
use super::threads::Threads;
use super::{Failure, Format, print_json};
use crate::measure::{MeasureError, ReadSummary};

/// Measure feature sets and networks on games
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    threads: Threads,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
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
        Command::Updates(arguments) => updates::run(arguments),
        Command::Activity(arguments) => activity::run(arguments),
        Command::Error(arguments) => error::run(arguments),
        Command::Importance(arguments) => importance::run(arguments),
        Command::Loss(arguments) => loss::run(arguments),
        Command::Speed(arguments) => speed::run(arguments),
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
    let skipped = &summary.skipped_samples;
    if skipped.total() > 0 {
        note!("note: skipped {} broken samples", skipped.total());
        skipped.examples.iter().for_each(|example| note!("note: {example}"));
    }
}

/// Prints a result, and reports skipped games on stderr.
fn print<T: serde::Serialize>(
    format: Format,
    record: &T,
    summary: &ReadSummary,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    note_skipped(summary);
    match format {
        Format::Text => Ok(outln!("{}", text(record))?),
        Format::Json => print_json(record),
    }
}
