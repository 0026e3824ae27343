//! Measures how many nodes two networks search in the same processor time.

use std::time::Duration;

use cpu_time::ThreadTime;
use shakmaty::Position;

use super::PlayError;
use super::player::{NetworkPlayer, Player};
use crate::alpha_beta::{BENCH_FENS, Game, Limits, Searcher, TranspositionTable};
use crate::chess::{BoardChange, parse_fen};
use crate::engine::{BackEnd, EngineError, Evaluator, Model, PlayedPosition, Strategy};
use crate::features::FeatureSet;
pub use crate::record::CostRatio;
use crate::record::{FeatureCost, Machine};
use crate::statistics::{Median, median};

/// Rounds, each over the same positions of the bench for both networks.
const ROUNDS: usize = 15;
/// Nodes that each network searches in a round (some 50 ms), if the bench has positions enough.
const ROUND_NODES: u64 = 50_000;
/// Positions of a round, at least.
const MIN_POSITIONS: u64 = 10;
/// Moves of the lines along which the finding of features is timed, and the nodes behind each move.
const LINE_MOVES: usize = 12;
const LINE_NODES: u64 = 100;
/// How long features are found in a round.
const FEATURES_TIME: Duration = Duration::from_millis(5);

/// A network of a comparison by cost.
#[derive(Copy, Clone)]
pub struct CostPlayer<'a> {
    pub player: &'a Player,
    pub network: &'a NetworkPlayer,
    /// Nanoseconds a move in which the user's engine finds the features of both perspectives; `None` = as fsbench does.
    pub own_features_ns: Option<f64>,
}

/// Measures two networks in searches of `nodes` nodes. Of a network with a time of its own for finding features, the
/// measured time of finding them is taken away and the own one added. `progress` receives the numbers of finished and
/// of all rounds, and returns whether to go on.
///
/// # Errors
/// When a network was not made for its feature set, there is no memory for the hash tables, or `progress` stops the
/// measurement.
pub fn equal_cost(
    players: [CostPlayer<'_>; 2],
    nodes: u64,
    hash: u32,
    mut progress: impl FnMut(usize, usize) -> bool,
) -> Result<CostRatio, PlayError> {
    let mut searchers = [searcher(players[0], hash)?, searcher(players[1], hash)?];
    let has_own = players.iter().any(|player| player.own_features_ns.is_some());
    let lines = if has_own { lines_of_play(&mut searchers[0]) } else { Vec::new() };
    let models = players.map(|player| player.network.model.without_neurons());
    let mut finders = [None, None];
    for side in 0..2 {
        let CostPlayer { player, network, own_features_ns } = players[side];
        if let Some(own_ns) = own_features_ns {
            let finder = FeatureFinder::new(&network.set, &models[side], own_ns);
            finders[side] = Some(finder.map_err(|error| PlayError::player(player, &error))?);
        }
    }
    let mut costs: [Vec<f64>; 2] = Default::default();
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut cost = [0.0; 2];
        // The second network finds other contents in the CPU's caches, so the order alternates.
        for side in [round % 2, 1 - round % 2] {
            let searched = search_round(&mut searchers[side], round, nodes);
            let replaced = finders[side].as_mut().map_or(0.0, |finder| finder.replace(&lines, searched.moves_per_node));
            cost[side] = searched.nanoseconds_per_node + replaced;
            costs[side].push(cost[side]);
        }
        ratios.push(cost[0] / cost[1]);
        if !progress(round + 1, ROUNDS) {
            return Err(PlayError::Stopped);
        }
    }
    let [first, second, ratio] = [&costs[0], &costs[1], &ratios].map(|values| median(values).ok_or(PlayError::Stopped));
    let Median { value, low, high } = ratio?;
    Ok(CostRatio {
        nanoseconds_per_node: Some([first?.value, second?.value]),
        ratio: value,
        low,
        high,
        rounds: ROUNDS,
        own_features: finders.map(|finder| finder.and_then(FeatureFinder::cost)),
        own_node_costs: None,
        weight: None,
        machine: Some(Machine::current()),
    })
}

fn searcher(CostPlayer { player, network, .. }: CostPlayer<'_>, hash: u32) -> Result<Searcher<'_>, PlayError> {
    let megabytes = hash as usize;
    TranspositionTable::check_memory(megabytes).map_err(|error| PlayError::player(player, &error))?;
    let searcher = Searcher::new(&network.set, &network.model, BackEnd::best(), megabytes);
    searcher.map_err(|error| PlayError::player(player, &error))
}

/// What a round of searches took.
struct SearchedRound {
    /// Processor time per node.
    nanoseconds_per_node: f64,
    /// Moves per node whose features were found.
    moves_per_node: f64,
}

/// Searches of `nodes` nodes from the round's positions. Only the first search has empty tables, as in a game.
fn search_round(searcher: &mut Searcher<'_>, round: usize, nodes: u64) -> SearchedRound {
    let positions = ROUND_NODES.div_ceil(nodes.max(1)).clamp(MIN_POSITIONS, BENCH_FENS.len() as u64) as usize;
    let fens = BENCH_FENS.iter().cycle().skip(round * positions).take(positions);
    let games: Vec<Game> = fens.filter_map(|fen| Some(Game::new(parse_fen(fen).ok()?))).collect();
    let limits = Limits { nodes: Some(nodes), ..Limits::default() };
    searcher.clear();
    let followed = searcher.moves_followed();
    let start = ThreadTime::now();
    let searched: u64 = games.iter().map(|game| searcher.search(game, &limits, |_| ()).nodes).sum();
    let nanoseconds = start.elapsed().as_nanos() as f64;
    let searched = searched.max(1) as f64;
    let moves_per_node = (searcher.moves_followed() - followed) / searched;
    SearchedRound { nanoseconds_per_node: nanoseconds / searched, moves_per_node }
}

/// Lines that a searcher plays from the positions of the bench, a few nodes a move.
fn lines_of_play(searcher: &mut Searcher<'_>) -> Vec<PlayedPosition> {
    let limits = Limits { nodes: Some(LINE_NODES), ..Limits::default() };
    let mut positions = Vec::new();
    for fen in BENCH_FENS {
        let Ok(position) = parse_fen(fen) else { continue };
        let mut game = Game::new(position);
        positions.push(PlayedPosition::start(game.position().board(), game.position().turn()));
        for _ in 0..LINE_MOVES {
            let Some(mv) = searcher.search(&game, &limits, |_| ()).best else { break };
            let change = BoardChange::of(mv, game.position().turn());
            game.play(mv);
            positions.push(PlayedPosition::after(change, game.position().turn()));
        }
    }
    positions
}

/// Times the finding of a set's features, for which the user has a figure.
struct FeatureFinder<'a> {
    /// Of a model without neurons, which finds features and does nothing else.
    evaluator: Evaluator<'a>,
    own_ns: f64,
    /// Of each round, measured nanoseconds a move.
    measured: Vec<f64>,
    moves_per_node: Vec<f64>,
}

impl<'a> FeatureFinder<'a> {
    fn new(set: &'a FeatureSet, model: &'a Model, own_ns: f64) -> Result<FeatureFinder<'a>, EngineError> {
        let evaluator = Evaluator::new(set, model, Strategy::LazyCached, BackEnd::best())?;
        Ok(FeatureFinder { evaluator, own_ns, measured: Vec::new(), moves_per_node: Vec::new() })
    }

    /// Nanoseconds by which a node costs more with the user's time of finding features; usually below 0.
    fn replace(&mut self, lines: &[PlayedPosition], moves_per_node: f64) -> f64 {
        let start = ThreadTime::now();
        let mut passes = 0u32;
        let mut elapsed = Duration::ZERO;
        while elapsed < FEATURES_TIME {
            self.evaluator.follow(lines.iter().map(PlayedPosition::of_line));
            passes += 1;
            elapsed = start.elapsed();
        }
        let measured = elapsed.as_nanos() as f64 / (f64::from(passes) * lines.len().max(1) as f64);
        self.measured.push(measured);
        self.moves_per_node.push(moves_per_node);
        moves_per_node * (self.own_ns - measured)
    }

    fn cost(self) -> Option<FeatureCost> {
        Some(FeatureCost {
            measured_ns: median(&self.measured)?.value,
            own_ns: self.own_ns,
            moves_per_node: median(&self.moves_per_node)?.value,
        })
    }
}
