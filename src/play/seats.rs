//! The players of one worker at their boards: each has its own search or its own engine process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shakmaty::{Color, Position};

use super::PlayError;
use super::game::SearchInfo;
use super::game_line::GameLine;
use super::player::{Player, PlayerKind, PlayerSetup};
use crate::alpha_beta::{Clock, Limits, Score, Searcher, TranspositionTable};
use crate::data::Eval;
use crate::engine::BackEnd;
use crate::pipeline::uci::{Engine, SearchLimit};
use crate::units::Centipawn;

/// The seats of all players, by number.
pub(super) struct Seats<'a> {
    players: &'a [Player],
    setup: PlayerSetup,
    /// Ends searches and games. Nothing is passed on by it: its accesses are relaxed.
    stop: Arc<AtomicBool>,
    /// `None` for a player that is not running.
    seats: Vec<Option<Seat<'a>>>,
}

/// A player that runs.
enum Seat<'a> {
    Network(Box<Searcher<'a>>),
    Engine(Box<Engine>),
}

impl<'a> Seats<'a> {
    /// Seats without players.
    pub(super) fn new(players: &'a [Player], setup: PlayerSetup, stop: &Arc<AtomicBool>) -> Seats<'a> {
        Seats { players, setup, stop: Arc::clone(stop), seats: players.iter().map(|_| None).collect() }
    }

    /// Readies a player for a new game; one that is not running, or that ended after its last game, is started.
    pub(super) fn ready(&mut self, player: usize) -> Result<(), PlayError> {
        if let Some(seat) = &mut self.seats[player]
            && seat.new_game(&self.players[player]).is_ok()
        {
            return Ok(());
        }
        self.seats[player] = None;
        let mut seat = self.start(player)?;
        seat.new_game(&self.players[player])?;
        self.seats[player] = Some(seat);
        Ok(())
    }

    fn start(&self, number: usize) -> Result<Seat<'a>, PlayError> {
        let player = &self.players[number];
        match &player.kind {
            PlayerKind::Network(network) => {
                let hash = self.setup.hash as usize;
                TranspositionTable::check_memory(hash).map_err(|error| PlayError::player(player, &error))?;
                let searcher = Searcher::new(&network.set, &network.model, BackEnd::best(), hash);
                let mut searcher = searcher.map_err(|error| PlayError::player(player, &error))?;
                searcher.set_stop_flag(Arc::clone(&self.stop));
                Ok(Seat::Network(Box::new(searcher)))
            }
            PlayerKind::Engine(spec) => {
                let engine = Engine::start(spec, self.setup.patience);
                Ok(Seat::Engine(Box::new(engine.map_err(|error| PlayError::engine(player, error))?)))
            }
        }
    }

    /// Ends a player's engine.
    pub(super) fn clear(&mut self, player: usize) {
        self.seats[player] = None;
    }

    /// Ends all players' engines.
    pub(super) fn clear_all(&mut self) {
        self.seats.fill_with(|| None);
    }

    /// The player's own nodes per move.
    pub(super) fn nodes(&self, player: usize) -> Option<u64> {
        self.players[player].nodes
    }

    /// Has a player that is ready search the position that `line` has reached, in which the game is not over.
    ///
    /// # Errors
    /// When the player fails, its score is missing although one is needed, or the work was stopped meanwhile.
    pub(super) fn search(
        &mut self,
        player: usize,
        line: &GameLine,
        limit: SearchLimit,
        needs_score: bool,
    ) -> Result<SearchInfo, PlayError> {
        let Some(seat) = &mut self.seats[player] else { return Err(PlayError::Stopped) };
        let start = Instant::now();
        let info = match seat {
            Seat::Network(searcher) => {
                let limits = network_limits(limit, line.position().turn(), start, self.setup.overhead);
                let found = searcher.search(&line.game, &limits, |_| ());
                let Some(best) = found.best else { return Err(PlayError::Stopped) };
                let eval = match found.score {
                    Score::Cp(score) => Eval::Score(Centipawn(score)),
                    Score::Mate(moves) => Eval::Mate(moves),
                };
                let depth = found.depth;
                let nodes = found.nodes;
                SearchInfo { best, eval: Some(eval), depth, nodes, time: start.elapsed() }
            }
            Seat::Engine(engine) => {
                let report = engine.analyse(&line.uci, line.position(), limit);
                let scored = match report {
                    Ok(report) if needs_score && report.eval.is_none() => {
                        Err(engine.no_score(line.position(), report.best))
                    }
                    report => report,
                };
                let report = scored.map_err(|error| PlayError::engine(&self.players[player], error))?;
                let depth = report.depth.unwrap_or(0);
                let nodes = report.nodes.unwrap_or(0);
                SearchInfo { best: report.best, eval: report.eval, depth, nodes, time: start.elapsed() }
            }
        };
        // A search that was cut short is none.
        if self.stop.load(Ordering::Relaxed) { Err(PlayError::Stopped) } else { Ok(info) }
    }
}

impl Seat<'_> {
    fn new_game(&mut self, player: &Player) -> Result<(), PlayError> {
        match self {
            Seat::Network(searcher) => searcher.clear(),
            Seat::Engine(engine) => engine.new_game().map_err(|error| PlayError::engine(player, error))?,
        }
        Ok(())
    }
}

fn network_limits(limit: SearchLimit, turn: Color, start: Instant, overhead: Duration) -> Limits {
    let none = Limits::default();
    match limit {
        SearchLimit::Nodes(nodes) => Limits { nodes: Some(nodes), ..none },
        SearchLimit::SoftNodes(nodes) => Limits::of_soft_nodes(nodes),
        SearchLimit::Depth(depth) => Limits { depth: Some(depth), ..none },
        SearchLimit::MoveTime(time) => {
            Limits { clock: Some(Clock::fixed(start, Duration::from_millis(time), overhead)), ..none }
        }
        SearchLimit::Clock { white, black, increment } => {
            let left = Duration::from_millis(turn.fold_wb(white, black));
            let clock = Clock::share(start, left, Duration::from_millis(increment), None, overhead);
            Limits { clock: Some(clock), ..none }
        }
    }
}
