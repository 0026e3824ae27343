//! `fsbench measure error`: measures the quantisation error.

use std::path::PathBuf;

use super::{Data, Failure, ResultFormat, failure, percent, print, table};
use crate::measure::{QuantisationOptions, quantisation};
use crate::net::{NetFile, load_float};
use crate::record::ErrorRecord;

/// Measure the quantisation error: compare a network with its float checkpoint
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network file
    #[arg(long, value_name = "FILE")]
    net: PathBuf,
    /// The checkpoint it was quantised from
    #[arg(long, value_name = "FILE")]
    checkpoint: PathBuf,
    #[command(flatten)]
    data: Data,
    /// Read only the first N games
    #[arg(long, value_name = "N")]
    games: Option<u64>,
    /// Scale of the expected result σ(score/CP)
    #[arg(long, value_name = "CP", default_value_t = QuantisationOptions::default().scale)]
    scale: f32,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !(arguments.scale > 0.0 && arguments.scale.is_finite()) {
        return Err(Failure::Request(anyhow::anyhow!("--scale {} is not a positive number", arguments.scale)));
    }
    let file = NetFile::load(&arguments.net).map_err(Failure::request)?;
    let (float, checkpoint) = load_float(&arguments.checkpoint).map_err(Failure::request)?;
    let options =
        QuantisationOptions { scale: arguments.scale, limit: arguments.games, ..QuantisationOptions::default() };
    let (record, summary) =
        quantisation(&file, &float, &checkpoint, &arguments.data.path()?, options).map_err(failure)?;
    if record.accumulator_overflows > 0 {
        note!("warning: an accumulator overflows in {} positions", record.accumulator_overflows);
    }
    print(arguments.format, &record, &summary, text)
}

fn text(record: &ErrorRecord) -> String {
    let head = format!("{}: {} positions, |WDL(float) − WDL(integer)|\n", record.name, record.positions);
    let within = format!("within {}", record.tolerance);
    let number = |value: f64| format!("{value:.5}");
    let row = vec![number(record.mean), number(record.p99), number(record.max), percent(record.within_tolerance)];
    head + &table(&["mean", "99%", "largest", &within], [row])
}
