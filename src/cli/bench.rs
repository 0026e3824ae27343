//! `fsbench bench`: the signature and speed of the search.

use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;

use super::net::NetArgument;
use super::{Failure, ResultFormat, print_json};
use crate::alpha_beta::{BENCH_DEPTH, BENCH_FENS, PlayingNetwork, Searcher, TranspositionTable, bench};
use crate::cpu;
use crate::engine::BackEnd;

/// Search fixed positions to a fixed depth: the node count is a signature, the same on every CPU
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Depth of each search
    #[arg(long, default_value_t = BENCH_DEPTH, value_parser = clap::value_parser!(u32).range(1..=30))]
    depth: u32,
    /// Size of the transposition table in megabytes; the signature depends on it
    #[arg(long, value_name = "MB", default_value_t = TranspositionTable::DEFAULT_MEGABYTES as u32,
        value_parser = clap::value_parser!(u32).range(1..=TranspositionTable::MAX_MEGABYTES as i64))]
    hash: u32,
    /// Run on every back end that this CPU supports, and fail if signatures differ
    #[arg(long)]
    all_back_ends: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    net: NetArgument,
}

/// What the searches of a benchmark took.
#[derive(Serialize, JsonSchema)]
pub struct BenchDocument {
    /// Nodes of all searches.
    nodes: u64,
    /// Nodes per second.
    nps: u64,
    /// The node count, as text.
    signature: String,
    /// Instruction set of the network's arithmetic.
    back_end: &'static str,
    /// The CPU's model name.
    cpu: String,
    /// Depth of every search.
    depth: u32,
    /// Positions that were searched.
    positions: usize,
    /// Factor from the network's internal units to the search's centipawns.
    eval_scale: f64,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let PlayingNetwork { set, model } = arguments.net.load_for_engine()?;
    TranspositionTable::check_memory(arguments.hash as usize).map_err(Failure::request)?;
    let back_ends = if arguments.all_back_ends { BackEnd::available() } else { vec![BackEnd::best()] };
    let mut documents = Vec::new();
    for back_end in back_ends {
        let searcher = Searcher::new(&set, &model, back_end, arguments.hash as usize);
        let mut searcher =
            searcher.with_context(|| arguments.net.path().display().to_string()).map_err(Failure::Request)?;
        let result = bench(&mut searcher, arguments.depth);
        let document = BenchDocument {
            nodes: result.nodes,
            nps: result.nps(),
            signature: result.nodes.to_string(),
            back_end: back_end.name(),
            cpu: cpu::model_name(),
            depth: arguments.depth,
            positions: BENCH_FENS.len(),
            eval_scale: searcher.scale().factor(),
        };
        if arguments.format == ResultFormat::Text {
            outln!("{} nodes {} nps ({}, {})", document.nodes, document.nps, document.back_end, document.cpu)?;
        }
        documents.push(document);
    }
    if documents.windows(2).any(|pair| pair[0].nodes != pair[1].nodes) {
        return Err(Failure::Work(anyhow::anyhow!("back ends disagree on the signature")));
    }
    match (arguments.format, documents.pop()) {
        (ResultFormat::Json, Some(document)) => print_json(&document),
        (ResultFormat::Text, Some(document)) => {
            outln!("{} nodes {} nps", document.nodes, document.nps)?;
            Ok(())
        }
        (_, None) => Ok(()),
    }
}
