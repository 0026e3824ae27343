//! The players of a match: networks under fsbench's own search, and UCI engines.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use shakmaty::{Color, Move, Position};

use super::MatchError;
use super::game::{MatchMove, SearchInfo};
use super::limit::{Clocks, MoveLimit};
use crate::data::Eval;
use crate::engine::{BackEnd, Model};
use crate::features::FeatureSet;
use crate::pipeline::GameLine;
use crate::pipeline::uci::{Engine, EngineIdentity, EngineSpec, SearchLimit as UciLimit};
use crate::search::{Clock, Limits, Score, Searcher};
use crate::units::Centipawn;

/// A player as a match names it.
#[derive(Clone)]
pub struct Player {
    pub name: String,
    pub kind: PlayerKind,
    /// Nodes per move of this player alone, in place of the match's limit.
    pub nodes: Option<u64>,
}

impl Player {
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

/// The facts that a player's moves depend on, for the journal and the result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlayerIdentity {
    Network {
        hash: String,
        features: String,
        /// Factor from the network's internal units to the search's centipawns.
        eval_scale: f64,
        nodes: Option<u64>,
    },
    Engine {
        engine: EngineIdentity,
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

/// A player with what it needs to choose moves: its search or its running engine.
pub(super) struct Seat<'a> {
    player: &'a Player,
    chooser: Chooser<'a>,
}

enum Chooser<'a> {
    Network(Box<Searcher<'a>>),
    Engine(Box<Engine>),
}

impl<'a> Seat<'a> {
    pub(super) fn new(player: &'a Player, setup: &PlayerSetup, stop: &Arc<AtomicBool>) -> Result<Seat<'a>, MatchError> {
        let chooser = match &player.kind {
            PlayerKind::Network(network) => {
                let searcher = Searcher::new(&network.set, &network.model, BackEnd::best(), setup.hash as usize);
                let mut searcher = searcher.map_err(|error| MatchError::player(player, &error))?;
                searcher.set_stop_flag(Arc::clone(stop));
                Chooser::Network(Box::new(searcher))
            }
            PlayerKind::Engine(spec) => {
                let engine = Engine::start(spec, setup.patience);
                Chooser::Engine(Box::new(engine.map_err(|error| MatchError::engine(player, error))?))
            }
        };
        Ok(Seat { player, chooser })
    }

    pub(super) fn new_game(&mut self) -> Result<(), MatchError> {
        match &mut self.chooser {
            Chooser::Network(searcher) => searcher.clear(),
            Chooser::Engine(engine) => engine.new_game().map_err(|error| MatchError::engine(self.player, error))?,
        }
        Ok(())
    }

    /// Chooses a move in a game that is not over.
    pub(super) fn choose(
        &mut self,
        line: &GameLine<MatchMove>,
        limit: MoveLimit,
        clocks: Option<Clocks>,
        setup: &PlayerSetup,
    ) -> Result<(Move, SearchInfo), MatchError> {
        let start = Instant::now();
        match &mut self.chooser {
            Chooser::Network(searcher) => {
                let limits = network_limits(limit, clocks, line.position().turn(), start, setup.overhead);
                let found = searcher.search(&line.game, &limits, |_| ());
                let Some(best) = found.best else { return Err(MatchError::Stopped) };
                let eval = match found.score {
                    Score::Cp(score) => Eval::Score(Centipawn(score)),
                    Score::Mate(moves) => Eval::Mate(moves),
                };
                let (depth, nodes) = (found.depth, found.nodes);
                Ok((best, SearchInfo { eval: Some(eval), depth, nodes, time: start.elapsed() }))
            }
            Chooser::Engine(engine) => {
                let analysis = engine.analyse(&line.uci, line.position(), uci_limit(limit, clocks));
                let analysis = analysis.map_err(|error| MatchError::engine(self.player, error))?;
                let (depth, nodes) = (analysis.depth.unwrap_or(0), analysis.nodes.unwrap_or(0));
                Ok((analysis.best, SearchInfo { eval: analysis.eval, depth, nodes, time: start.elapsed() }))
            }
        }
    }
}

fn network_limits(limit: MoveLimit, clocks: Option<Clocks>, turn: Color, start: Instant, overhead: Duration) -> Limits {
    let clock = match (limit, clocks) {
        (MoveLimit::Nodes(nodes), _) => return Limits { nodes: Some(nodes), ..Limits::default() },
        (MoveLimit::MoveTime(time), _) | (MoveLimit::Clock { time, .. }, None) => Clock::fixed(start, time, overhead),
        (MoveLimit::Clock { .. }, Some(Clocks { left, increment })) => {
            Clock::share(start, left[turn.fold_wb(0, 1)], increment, None, overhead)
        }
    };
    Limits { clock: Some(clock), ..Limits::default() }
}

fn uci_limit(limit: MoveLimit, clocks: Option<Clocks>) -> UciLimit {
    match (limit, clocks) {
        (MoveLimit::Nodes(nodes), _) => UciLimit::Nodes(nodes),
        (MoveLimit::MoveTime(time), _) | (MoveLimit::Clock { time, .. }, None) => {
            UciLimit::MoveTime(time.as_millis() as u64)
        }
        (MoveLimit::Clock { .. }, Some(Clocks { left: [white, black], increment })) => {
            let millis = |time: Duration| time.as_millis() as u64;
            UciLimit::Clock { white: millis(white), black: millis(black), increment: millis(increment) }
        }
    }
}
