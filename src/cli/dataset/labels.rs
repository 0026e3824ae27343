//! The options by which an engine or a network scores the samples of a build.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};

use super::engine::EngineArguments;
use crate::alpha_beta::{PlayingNetwork, RecordScorer};
use crate::cli::Failure;
use crate::cli::named_player::NamedPlayer;
use crate::cli::net::{FormatHints, NetworkHints, load};
use crate::engine::Model;
use crate::pipeline::build::LabelJob;
use crate::pipeline::label::{LabelScorer, LabelSettings};
use crate::pipeline::uci::{EngineSpec, SearchLimit};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Scores by an engine", mut_args = needing_engine)]
pub(super) struct LabelOptions {
    /// Have a network or a UCI engine score the positions instead of taking the inputs' scores: a network file or run
    /// folder; or PROGRAM, 'PROGRAM ARGUMENTS' or 'PROGRAM|Option=value' (`uci:` before it says so). A network without
    /// --nodes or --depth scores by its static evaluation, on all --threads; all its scores are in its own centipawns,
    /// as `fsbench eval` prints them. An interrupted run resumes when the command is given again
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// Depth of each search in plies
    #[arg(long, group = "limit", requires = "engine")]
    depth: Option<u32>,
    /// Nodes per search
    #[arg(long, group = "limit", requires = "engine")]
    nodes: Option<u64>,
    /// Milliseconds per search of a UCI engine; the scores then differ from run to run
    #[arg(long, value_name = "MS", group = "limit", requires = "engine")]
    movetime: Option<u64>,
    /// Share of the inputs' scores in the scores, as 0.3: the rest is the engine's. Mates count as 300 pawns; samples
    /// without a score get the engine's
    #[arg(long, value_name = "X", requires = "engine", value_parser = share)]
    keep_score: Option<f64>,
    /// Fit the expected result by the new scores, 1 / (1 + exp(-(score - a) / b)), and keep it in the manifest
    #[arg(long, requires = "engine")]
    fit_results: bool,
    #[command(flatten)]
    hints: NetworkHints,
    #[command(flatten)]
    setup: EngineArguments,
}

/// The options of [`NetworkHints`] and [`EngineArguments`], which other commands have without `--engine`, need it here.
fn needing_engine(argument: clap::Arg) -> clap::Arg {
    const FLATTENED: [&str; 7] = ["arch", "last", "scheme", "options", "hash", "concurrency", "patience"];
    if FLATTENED.contains(&argument.get_id().as_str()) { argument.requires("engine") } else { argument }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err(format!("{text:?} must be a number from 0 to below 1, as in 0.3")),
    }
}

impl LabelOptions {
    pub(super) fn job(&self) -> Result<Option<LabelJob>, Failure> {
        let Some(text) = &self.engine else { return Ok(None) };
        let limit = match (self.depth, self.nodes, self.movetime) {
            (Some(depth), _, _) => Some(SearchLimit::Depth(depth)),
            (_, Some(nodes), _) => Some(SearchLimit::Nodes(nodes)),
            (_, _, Some(milliseconds)) => Some(SearchLimit::MoveTime(milliseconds)),
            _ => None,
        };
        let named = self.setup.named(std::slice::from_ref(text), false)?;
        let scorer = match named.into_iter().next() {
            Some(NamedPlayer::Network(path)) => self.network(&path, limit)?,
            Some(NamedPlayer::Engine(spec)) => self.engine(spec, limit)?,
            None => return Ok(None),
        };
        let keep_score = self.keep_score.unwrap_or_default();
        Ok(Some(LabelJob { scorer, keep_score, fits_results: self.fit_results }))
    }

    fn engine(&self, spec: EngineSpec, limit: Option<SearchLimit>) -> Result<LabelScorer, Failure> {
        let Some(limit) = limit else {
            return Err(Failure::request(anyhow!(
                "--engine {:?} is a UCI engine, not a network: limit its searches by --nodes, --depth or --movetime",
                spec.path
            )));
        };
        if !limit.reproducible() {
            note!(
                "warning: --movetime is not reproducible: another run gives other scores; --nodes and --depth are \
                 reproducible"
            );
        }
        Ok(LabelScorer::Engine { settings: LabelSettings::new(spec, limit), workers: self.setup.workers(1) })
    }

    fn network(&self, path: &Path, limit: Option<SearchLimit>) -> Result<LabelScorer, Failure> {
        if limit.is_some_and(|limit| !limit.reproducible()) {
            return Err(Failure::request(anyhow!(
                "--movetime limits UCI engines: give a network --nodes or --depth, or none for its static evaluation"
            )));
        }
        if self.setup.has_concurrency() {
            return Err(Failure::request(anyhow!(
                "--concurrency is the number of UCI engines: a network scores on all --threads; remove it"
            )));
        }
        let file = load(path, &FormatHints::new(self.hints.clone()))?.file;
        let place = || path.display().to_string();
        let set = file.origin.feature_set().with_context(place).map_err(Failure::Request)?;
        let network = PlayingNetwork { set, model: Model::new(&file.net) };
        let scorer = RecordScorer::new(network, file.hash(), limit, self.setup.hash());
        Ok(LabelScorer::Network(Arc::new(scorer.with_context(place).map_err(Failure::Request)?)))
    }
}
