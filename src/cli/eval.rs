//! `fsbench eval`: a network's score of given positions.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use shakmaty::Position;

use super::input::{for_each_line, parse_fen};
use super::net::FormatHints;
use super::{Failure, Format, print_json, print_json_line};
use crate::engine::{BackEnd, Evaluation, Evaluator, Model, Strategy};

/// Score positions with a network
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network file, a run's folder, a checkpoint, a .nnue file of Stockfish's, or with --bullet a raw file of bullet's
    #[arg(long, value_name = "FILE")]
    net: PathBuf,
    #[command(flatten)]
    hints: FormatHints,
    /// The position
    #[arg(long, required_unless_present = "fens", conflicts_with = "fens")]
    fen: Option<String>,
    /// A file with a FEN a line (`-` = standard input); as JSON, a document a line out
    #[arg(long, value_name = "FILE")]
    fens: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = super::net::load(&arguments.net, &arguments.hints)?.file;
    let place = || format!("{}", arguments.net.display());
    let set = file.origin.feature_set().with_context(place).map_err(Failure::Request)?;
    let model = Model::new(&file.net);
    let evaluator = Evaluator::new(&set, &model, Strategy::Refresh, BackEnd::best());
    let mut evaluator = evaluator.with_context(place).map_err(Failure::Request)?;
    let mut score = |text: &str| -> anyhow::Result<Evaluation> {
        let position = parse_fen(text)?;
        evaluator.set(position.board());
        Ok(evaluator.evaluate(position.turn()))
    };
    if let Some(file) = &arguments.fens {
        return for_each_line(file, |line| match arguments.format {
            Format::Json => print_json_line(&Scored { fen: line.trim(), evaluation: &score(line)? }),
            Format::Text => Ok(outln!("{}", text(line, &score(line)?))?),
        });
    }
    let given = arguments.fen.as_deref().unwrap_or_default();
    let evaluation = score(given).map_err(Failure::Request)?;
    match arguments.format {
        Format::Json => print_json(&Scored { fen: given, evaluation: &evaluation }),
        Format::Text => Ok(outln!("{}", text(given, &evaluation))?),
    }
}

/// A position and its score.
#[derive(Serialize)]
struct Scored<'a> {
    fen: &'a str,
    #[serde(flatten)]
    evaluation: &'a Evaluation,
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
