//! `fsbench eval`: a network's score of given positions.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Chess, Position, PositionError};

use super::{Failure, Format};
use crate::engine::{BackEnd, Evaluation, Evaluator, Model, Strategy};
use crate::net::NetFile;

/// Score positions with a network
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("positions").required(true).args(["fen", "fens"])))]
pub struct Arguments {
    /// A network file
    #[arg(long, value_name = "FILE")]
    net: PathBuf,
    /// A position
    #[arg(long)]
    fen: Option<String>,
    /// Positions, a FEN a line; - reads them from standard input
    #[arg(long, value_name = "FILE")]
    fens: Option<PathBuf>,
    /// How to print the results; as JSON, a document a line
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = NetFile::load(&arguments.net).map_err(Failure::request)?;
    let foreign = || format!("cannot use {}", arguments.net.display());
    let set = file.origin.feature_set().with_context(foreign).map_err(Failure::Request)?;
    let model = Model::new(&file.net);
    let evaluator = Evaluator::new(&set, &model, Strategy::Refresh, BackEnd::best());
    let mut evaluator = evaluator.with_context(foreign).map_err(Failure::Request)?;
    let mut score = |fen: &str| -> anyhow::Result<String> {
        let position = parse(fen)?;
        evaluator.set(position.board());
        let evaluation = evaluator.evaluate(position.turn());
        Ok(match arguments.format {
            Format::Json => serde_json::to_string(&evaluation)?,
            Format::Text => text(fen, &evaluation),
        })
    };
    match (&arguments.fen, &arguments.fens) {
        (Some(fen), _) => print(&score(fen).map_err(Failure::Request)?)?,
        (None, Some(path)) => {
            for (number, line) in lines(path)?.lines().enumerate() {
                let at = || format!("{}, line {}", path.display(), number + 1);
                let line = line.with_context(at).map_err(Failure::Request)?;
                if !line.trim().is_empty() {
                    print(&score(line.trim()).with_context(at).map_err(Failure::Request)?)?;
                }
            }
        }
        (None, None) => return Err(Failure::Request(anyhow!("give a position with --fen or --fens"))),
    }
    Ok(())
}

/// A line to stdout; a reader that has gone away is failed work, not a panic.
fn print(line: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{line}").context("cannot print").map_err(Failure::Work)
}

fn lines(path: &Path) -> Result<BufReader<Box<dyn Read>>, Failure> {
    let input: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => {
            let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()));
            Box::new(file.map_err(Failure::Request)?)
        }
    };
    Ok(BufReader::new(input))
}

/// A position to score. What does not reach the network (castling rights, en passant, how a check came about) may be
/// inconsistent.
fn parse(fen: &str) -> anyhow::Result<Chess> {
    let setup = Fen::from_ascii(fen.as_bytes()).with_context(|| format!("not a FEN: {fen:?}"))?.into_setup();
    let mode = CastlingMode::detect(&setup);
    setup
        .position::<Chess>(mode)
        .or_else(PositionError::ignore_invalid_castling_rights)
        .or_else(PositionError::ignore_invalid_ep_square)
        .or_else(PositionError::ignore_impossible_check)
        .with_context(|| format!("no position to score: {fen:?}"))
}

fn text(fen: &str, evaluation: &Evaluation) -> String {
    let Evaluation { score_internal, score_cp, bucket, buckets } = evaluation;
    let mut out = format!("{fen}\n  score {} cp ({score_internal} internal units), side to move's view", score_cp.0);
    if buckets.len() > 1 {
        for (index, part) in buckets.iter().enumerate() {
            let used = if index == *bucket { "  <- used" } else { "" };
            let _ = write!(out, "\n  bucket {index}: psqt {:>6}, positional {:>6}{used}", part.psqt, part.positional);
        }
    }
    out
}
