//! Scores of a network for training data: its static evaluation, or a search of each position.

use std::fmt::{self, Debug, Formatter};

use shakmaty::Chess;

use super::{EvalScale, Game, Limits, PlayingNetwork, Score, Searcher, search_digest};
use crate::data::Eval;
use crate::engine::{BackEnd, EngineError, Evaluator, LineEvaluator, PositionList, Strategy};
use crate::pipeline::label::{EvaluateRecords, NetworkScorer, SearchPosition};
use crate::pipeline::uci::{Answer, SearchLimit};
use crate::pipeline::{NetworkIdentity, NetworkSearch};
use crate::units::Centipawn;

/// A network with the limit of its searches.
pub struct RecordScorer {
    network: PlayingNetwork,
    identity: NetworkIdentity,
    limit: Option<SearchLimit>,
    megabytes: usize,
}

/// Nodes for which a transposition table of one MiB has more than enough entries. Larger tables take longer to empty than
/// such a search takes.
const NODES_PER_MEGABYTE: u64 = 20_000;

impl RecordScorer {
    /// A scorer by searches with `limit`, or by static evaluation without one. `hash`: BLAKE3 of the network's file.
    /// `megabytes`: the largest transposition table of a thread's searches.
    ///
    /// # Errors
    /// When the network was made for another feature set.
    pub fn new(
        network: PlayingNetwork,
        hash: String,
        limit: Option<SearchLimit>,
        megabytes: u32,
    ) -> Result<RecordScorer, EngineError> {
        let PlayingNetwork { set, model } = &network;
        let mut evaluator = Evaluator::new(set, model, Strategy::Refresh, BackEnd::best())?;
        let megabytes = match limit {
            Some(SearchLimit::Nodes(nodes)) => {
                nodes.div_ceil(NODES_PER_MEGABYTE).clamp(1, u64::from(megabytes.max(1))) as u32
            }
            _ => megabytes.max(1),
        };
        let search = limit.map(|_| NetworkSearch {
            hash: megabytes,
            eval_scale: EvalScale::of(&mut evaluator).factor(),
            digest: search_digest().into(),
        });
        let identity = NetworkIdentity { network: hash, features: set.identity().to_string(), search };
        Ok(RecordScorer { network, identity, limit, megabytes: megabytes as usize })
    }
}

impl Debug for RecordScorer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordScorer").field("identity", &self.identity).field("limit", &self.limit).finish()
    }
}

impl NetworkScorer for RecordScorer {
    fn identity(&self) -> NetworkIdentity {
        self.identity.clone()
    }

    fn limit(&self) -> Option<SearchLimit> {
        self.limit
    }

    fn evaluate(&self) -> Result<EvaluateRecords<'_>, String> {
        let PlayingNetwork { set, model } = &self.network;
        let mut evaluator = LineEvaluator::new(set, model, BackEnd::best()).map_err(|error| error.to_string())?;
        let scheme = model.scheme();
        let mut positions = PositionList::default();
        Ok(Box::new(move |records, scores| {
            positions.clear();
            records.iter().for_each(|record| positions.push(record.board(), record.turn()));
            let mut sources = records.iter().zip(positions.boards());
            evaluator.evaluate(positions.line(), |raw| {
                // The evaluation needs both kings; whatever else is legal does not concern it.
                let is_position =
                    sources.next().is_some_and(|(record, board)| record.board().is_sound() && board.kings().is_some());
                let score = || Eval::Score(Centipawn(scheme.centipawns(scheme.score(raw)))).centipawns();
                scores.push(is_position.then(score));
            });
        }))
    }

    fn search(&self) -> Result<SearchPosition<'_>, String> {
        let PlayingNetwork { set, model } = &self.network;
        let searcher = Searcher::new(set, model, BackEnd::best(), self.megabytes);
        let mut searcher = searcher.map_err(|error| error.to_string())?;
        let mut limits = Limits::default();
        match self.limit {
            Some(SearchLimit::Depth(depth)) => limits.depth = Some(depth),
            Some(SearchLimit::Nodes(nodes)) => limits.nodes = Some(nodes),
            _ => return Err("searches that are to be repeated are limited by nodes or depth".into()),
        }
        let scheme = model.scheme();
        let scale = searcher.scale().factor();
        Ok(Box::new(move |position: &Chess| {
            searcher.clear();
            let found = searcher.search(&Game::new(position.clone()), &limits, |_| ());
            let eval = match found.score {
                // In the network's own centipawns, as static evaluations are.
                Score::Cp(score) => {
                    let internal = (f64::from(score) / scale).round() as i32;
                    Eval::Score(Centipawn(scheme.centipawns(internal).clamp(-Eval::LARGEST, Eval::LARGEST)))
                }
                Score::Mate(moves) => Eval::Mate(moves),
            };
            Some(Answer { best: found.best?, eval })
        }))
    }
}
