//! Who scores positions: a UCI engine in processes of its own, or a network in this one.

use std::fmt::Debug;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::Chess;

use super::LabelSettings;
use crate::data::Record;
use crate::pipeline::uci::{Answer, EngineIdentity, SearchLimit, Workers};

/// Who scores the samples.
#[derive(Clone, Debug)]
pub enum LabelScorer {
    /// A UCI engine.
    Engine { settings: LabelSettings, workers: Workers },
    /// A network, on the threads of rayon's current pool.
    Network(Arc<dyn NetworkScorer>),
}

/// Evaluates records statically: appends the score of each, in centipawns of the side to move, or `None` where the record
/// holds no position with one king on each side.
pub type EvaluateRecords<'a> = Box<dyn FnMut(&[Record], &mut Vec<Option<i16>>) + Send + 'a>;

/// Searches a position, with nothing left of earlier searches; `None` where the game is over.
pub type SearchPosition<'a> = Box<dyn FnMut(&Chess) -> Option<Answer> + Send + 'a>;

/// A network that scores positions in this process. Its scores depend on its identity, the limit and the position only.
pub trait NetworkScorer: Debug + Send + Sync {
    fn identity(&self) -> ScoringNetwork;
    /// The limit of each search; `None` for static evaluations.
    fn limit(&self) -> Option<SearchLimit>;
    /// Evaluates for one thread.
    ///
    /// # Errors
    /// When the network does not fit its feature set, as a sentence.
    fn evaluate(&self) -> Result<EvaluateRecords<'_>, String>;
    /// Searches for one thread.
    ///
    /// # Errors
    /// As [`NetworkScorer::evaluate`], or when the limit cannot be repeated.
    fn search(&self) -> Result<SearchPosition<'_>, String>;
}

/// The facts that a network's scores depend on, beside the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoringNetwork {
    /// BLAKE3 hash of its file, in hexadecimal.
    pub network: String,
    /// Identity of its feature set.
    pub features: String,
    /// Of searches; `None` for static evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<ScoringSearch>,
}

/// The facts about fsbench's search that scores depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoringSearch {
    /// Transposition table in MiB.
    pub hash: u32,
    /// Factor from the network's internal units to the search's centipawns.
    pub eval_scale: f64,
    /// Digest of the search.
    pub digest: String,
}

/// The scorer as journals and manifests record it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ScorerIdentity {
    Network(ScoringNetwork),
    Uci(EngineIdentity),
}

impl ScorerIdentity {
    /// Whether the same position gets the same score every time.
    #[must_use]
    pub fn reproducible(&self, limit: Option<SearchLimit>) -> bool {
        match (self, limit) {
            (ScorerIdentity::Uci(engine), Some(limit)) => engine.reproducible(limit),
            (_, Some(limit)) => limit.reproducible(),
            (_, None) => true,
        }
    }

    /// The engine's name, or the beginning of the network's hash.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            ScorerIdentity::Uci(engine) => engine.name.clone(),
            ScorerIdentity::Network(network) => format!("network {:.12}", network.network),
        }
    }
}
