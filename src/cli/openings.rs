//! `fsbench openings`: makes a book of balanced openings.

use std::path::PathBuf;

use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;

use super::net::NetArgument;
use super::{Failure, ResultFormat, print_json, refuse_existing};
use crate::chess::fen_of;
use crate::output::OutputFile;
use crate::play::{OpeningSettings, balanced_openings};
use crate::units::Seed;

/// Make a book of balanced openings: random moves to positions that a network (--net) scores as level
///
/// One FEN per line. A position is level where the network's score stays small through a full-width search of a few
/// plies and the captures after them. The same network, settings and seed give the same file.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The book to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Number of openings
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Random moves from the initial position
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(0..=100))]
    plies: u16,
    /// Plies of the full-width search that judges a position
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=8))]
    depth: u32,
    /// Largest score of either side, in the network's centipawns
    #[arg(long, value_name = "CP", default_value_t = 50)]
    max_score: u16,
    /// Seed of the random moves
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Replace the book if it exists
    #[arg(long)]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    net: NetArgument,
}

/// A book of openings.
#[derive(Serialize, JsonSchema)]
pub struct OpeningsOutput<'a> {
    /// Path of the book that was written.
    out: &'a PathBuf,
    /// Openings in it.
    openings: usize,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    refuse_existing(&arguments.out, arguments.force)?;
    let player = arguments.net.load_player()?;
    let settings = OpeningSettings {
        count: arguments.count as usize,
        plies: arguments.plies,
        depth: arguments.depth,
        max_score: arguments.max_score,
        seed: Seed(arguments.seed),
    };
    let bar = ProgressBar::new(u64::from(arguments.count));
    let found = balanced_openings(&player, &settings, |found| bar.set_position(found as u64));
    bar.finish_and_clear();
    let found = found.map_err(Failure::request)?;
    let mut file = OutputFile::create(&arguments.out).map_err(Failure::work)?;
    for position in &found {
        let line = format!("{}\n", fen_of(position));
        file.put(line.as_bytes()).map_err(Failure::work)?;
    }
    file.finish().map_err(Failure::work)?;
    match arguments.format {
        ResultFormat::Text => Ok(outln!("{}: {} openings", arguments.out.display(), found.len())?),
        ResultFormat::Json => print_json(&OpeningsOutput { out: &arguments.out, openings: found.len() }),
    }
}
