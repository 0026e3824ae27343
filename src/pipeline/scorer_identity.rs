//! Who scored positions: a network or a UCI engine, as journals and manifests name it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::uci::{EngineIdentity, SearchLimit};

/// The facts that the scores and moves of a network depend on, beside the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkIdentity {
    /// BLAKE3 hash of its file, in hexadecimal.
    pub network: String,
    /// Identity of its feature set.
    pub features: String,
    /// Of searches; `None` for static evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<NetworkSearch>,
}

/// The facts about fsbench's search that scores depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkSearch {
    /// Transposition table in MiB.
    pub hash: u32,
    /// Factor from the network's internal units to the search's centipawns.
    pub eval_scale: f64,
    /// Digest of the search.
    pub digest: String,
}

/// Who scored positions, or chose the moves of games, as journals and manifests record it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ScorerIdentity {
    Network(NetworkIdentity),
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
