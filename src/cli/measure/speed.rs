//! `fsbench measure speed`: evaluations a second.

use std::path::PathBuf;
use std::time::Duration;

use super::{Data, Failure, Format, Told, failure, load, print, table};
use crate::measure::{SpeedOptions, speed};
use crate::record::SpeedRecord;

/// Time evaluations along games, on one thread: every strategy on every back end, the network's neurons in the order that
/// suits the positions best (the scores are the same)
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network file, a .nnue file of Stockfish's, or with --bullet a raw file of bullet's
    #[arg(long, value_name = "FILE")]
    net: PathBuf,
    #[command(flatten)]
    told: Told,
    #[command(flatten)]
    data: Data,
    /// Times each way is measured, in turns
    #[arg(long, value_name = "N", default_value_t = SpeedOptions::default().repetitions, value_parser = clap::value_parser!(u32).range(2..))]
    repetitions: u32,
    /// Seconds a repetition lasts at least
    #[arg(long, value_name = "S", default_value_t = SpeedOptions::default().duration.as_secs_f64())]
    seconds: f64,
    /// Positions to run through, from the start of the data
    #[arg(long, value_name = "N", default_value_t = SpeedOptions::default().positions, value_parser = clap::value_parser!(u64).range(1..))]
    positions: u64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let duration = Duration::try_from_secs_f64(arguments.seconds).map_err(Failure::request)?;
    let file = load(&arguments.net, &arguments.told)?.file;
    let options = SpeedOptions { repetitions: arguments.repetitions, duration, positions: arguments.positions };
    let (record, reading) = speed(&file, &arguments.data.path()?, options).map_err(failure)?;
    print(arguments.format, &record, &reading, text)
}

fn text(record: &SpeedRecord) -> String {
    let head = format!("{}: {} positions, one thread\n", record.name, record.positions);
    let rows = record.entries.iter().map(|entry| {
        vec![
            entry.strategy.clone(),
            entry.back_end.clone(),
            format!("{:.0}", entry.evaluations_per_second),
            format!("± {:.0}", entry.interval),
            format!("{:.2}", entry.rows),
            format!("{:.0}", entry.rows * entry.row_bytes as f64),
            format!("{:.0}", 1e9 / entry.evaluations_per_second),
        ]
    });
    head + &table(&["strategy", "back end", "evaluations/s", "95%", "rows", "bytes of rows", "ns"], rows)
}
