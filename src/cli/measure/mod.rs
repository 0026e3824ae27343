//! `fsbench measure`: what a feature set or a network does on real games.

mod activity;
mod error;
mod loss;
mod progress;
mod speed;
mod updates;

use super::net::{FormatHints, load};
use super::print::{percent, table};
use super::sample::Data;
use super::threads::Threads;
use super::{Failure, Format, print_json};
use crate::measure::{MeasureError, ReadSummary};

/// Measure feature sets and networks on games
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    threads: Threads,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Updates(updates::Arguments),
    Activity(activity::Arguments),
    Error(error::Arguments),
    Loss(loss::Arguments),
    Speed(speed::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    match &arguments.what {
        What::Updates(arguments) => updates::run(arguments),
        What::Activity(arguments) => activity::run(arguments),
        What::Error(arguments) => error::run(arguments),
        What::Loss(arguments) => loss::run(arguments),
        What::Speed(arguments) => speed::run(arguments),
    }
}

/// Bad files are bad requests; what goes wrong in the measuring itself is failed work.
pub(super) fn failure(error: MeasureError) -> Failure {
    match error {
        MeasureError::Disagreement { .. } => Failure::work(error),
        _ => Failure::request(error),
    }
}

/// Says on stderr what was passed over.
pub(super) fn note_skipped(reading: &ReadSummary) {
    let skipped = &reading.skipped;
    if skipped.total() > 0 {
        note!("note: passed over {} broken games", skipped.total());
        skipped.examples.iter().for_each(|example| note!("note: {example}"));
    }
    let skipped = &reading.skipped_samples;
    if skipped.total() > 0 {
        note!("note: passed over {} broken samples", skipped.total());
        skipped.examples.iter().for_each(|example| note!("note: {example}"));
    }
}

/// Prints a result, and to stderr what was passed over.
fn print<T: serde::Serialize>(
    format: Format,
    record: &T,
    reading: &ReadSummary,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    note_skipped(reading);
    match format {
        Format::Text => Ok(outln!("{}", text(record))?),
        Format::Json => print_json(record),
    }
}
