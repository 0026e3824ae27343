//! `fsbench eval`: scores positions with a network.

use std::fmt::Write as _;

use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use shakmaty::Position;

use super::input::answer_each_line;
use super::net::NetArgument;
use super::{Failure, ResultFormat, print_json};
use crate::alpha_beta::PlayingNetwork;
use crate::chess::parse_fen;
use crate::engine::{BackEnd, Evaluation, Evaluator, Strategy};
use crate::json::to_text;

/// Score positions with a network
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The position, as a FEN
    #[arg(long, required_unless_present = "fens", conflicts_with = "fens")]
    fen: Option<String>,
    /// A file with one FEN per line (`-` for standard input); JSON output is one document per line
    #[arg(long, value_name = "FILE")]
    fens: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    net: NetArgument,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let PlayingNetwork { set, model } = arguments.net.load_for_engine()?;
    let evaluator = Evaluator::new(&set, &model, Strategy::Refresh, BackEnd::best());
    let mut evaluator =
        evaluator.with_context(|| arguments.net.path().display().to_string()).map_err(Failure::Request)?;
    let mut score = |text: &str| -> anyhow::Result<Evaluation> {
        let position = parse_fen(text)?;
        evaluator.set(position.board());
        Ok(evaluator.evaluate(position.turn()))
    };
    if let Some(file) = &arguments.fens {
        return answer_each_line(file, arguments.format, |line| {
            let evaluation = &score(line)?;
            match arguments.format {
                ResultFormat::Json => Ok(to_text(&ScoredPosition { fen: line.trim(), evaluation })?),
                ResultFormat::Text => Ok(text(line, evaluation)),
            }
        });
    }
    let fen = arguments.fen.as_deref().unwrap_or_default();
    let evaluation = score(fen).map_err(Failure::Request)?;
    match arguments.format {
        ResultFormat::Json => print_json(&ScoredPosition { fen, evaluation: &evaluation }),
        ResultFormat::Text => Ok(outln!("{}", text(fen, &evaluation))?),
    }
}

/// A network's score of a position.
#[derive(Serialize, JsonSchema)]
pub struct ScoredPosition<'a> {
    /// The position.
    fen: &'a str,
    #[serde(flatten)]
    evaluation: &'a Evaluation,
}

fn text(fen: &str, evaluation: &Evaluation) -> String {
    let Evaluation { score_internal, score_cp, bucket, buckets } = evaluation;
    let mut out = format!("{fen}\n  score {} cp ({score_internal} internal units), side to move's view", score_cp.0);
    if buckets.len() > 1 {
        for (index, score) in buckets.iter().enumerate() {
            let used = if index == *bucket { "  <- used" } else { "" };
            let _ = write!(out, "\n  bucket {index}: psqt {:>6}, positional {:>6}{used}", score.psqt, score.positional);
        }
    }
    out
}
