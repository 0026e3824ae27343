//! Players: networks under fsbench's own search, and UCI engines.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::Model;
use crate::features::FeatureSet;
use crate::net::{NetError, NetFile};
use crate::pipeline::uci::{EngineIdentity, EngineSpec};

/// A player by its name.
#[derive(Clone)]
pub struct Player {
    pub name: String,
    pub kind: PlayerKind,
    /// Nodes per move of this player alone, in place of the game's limit.
    pub nodes: Option<u64>,
}

impl Player {
    /// A UCI engine, named by its program's path.
    #[must_use]
    pub fn engine(spec: EngineSpec) -> Player {
        Player { name: spec.path.display().to_string(), kind: PlayerKind::Engine(spec), nodes: None }
    }

    /// A network under fsbench's own search.
    #[must_use]
    pub fn network(name: impl Into<String>, network: NetworkPlayer) -> Player {
        Player { name: name.into(), kind: PlayerKind::Network(Arc::new(network)), nodes: None }
    }

    #[must_use]
    pub const fn is_network(&self) -> bool {
        matches!(self.kind, PlayerKind::Network(_))
    }
}

/// A network or an engine.
#[derive(Clone)]
pub enum PlayerKind {
    Network(Arc<NetworkPlayer>),
    Engine(EngineSpec),
}

/// A network ready to play.
pub struct NetworkPlayer {
    pub set: FeatureSet,
    pub model: Model,
    /// BLAKE3 hash of the network's file, in hexadecimal.
    pub hash: String,
}

impl NetworkPlayer {
    /// The player of a network file.
    ///
    /// # Errors
    /// When the definition of its feature set is not valid.
    pub fn of(file: &NetFile) -> Result<NetworkPlayer, NetError> {
        Ok(NetworkPlayer { set: file.origin.feature_set()?, model: Model::new(&file.net), hash: file.hash() })
    }
}

/// The facts that a player's moves depend on, for the journal and the result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlayerIdentity {
    /// A network under fsbench's search.
    Network {
        /// BLAKE3 hash of its file, in hexadecimal.
        hash: String,
        /// Identity of its feature set.
        features: String,
        /// Factor from the network's internal units to the search's centipawns.
        eval_scale: f64,
        /// Nodes per move of this player alone; `None` = the game's limit.
        nodes: Option<u64>,
    },
    /// A UCI engine.
    Engine {
        engine: EngineIdentity,
        /// Nodes per move of this player alone; `None` = the game's limit.
        nodes: Option<u64>,
    },
}

/// How players are set up.
#[derive(Copy, Clone, Debug)]
pub struct PlayerSetup {
    /// Transposition table of a network's search, in MiB.
    pub hash: u32,
    /// Longest wait for a UCI engine's answer, beyond its time for a move.
    pub patience: Duration,
    /// Time of each move that a network leaves unused, for the overhead of sending moves.
    pub overhead: Duration,
}
