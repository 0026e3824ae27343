//! Measures how many nodes two networks search in the same processor time.

use cpu_time::ThreadTime;

use super::MatchError;
use super::player::{NetworkPlayer, Player};
use crate::alpha_beta::{BENCH_FENS, Game, Limits, Searcher};
use crate::chess::parse_fen;
use crate::engine::BackEnd;
pub use crate::record::CostRatio;
use crate::record::Machine;
use crate::statistics::{Median, median};

/// Rounds, each over the same positions of the bench for both networks.
const ROUNDS: usize = 15;
/// Nodes that each network searches in a round (some 50 ms), if the bench has positions enough.
const ROUND_NODES: u64 = 50_000;
/// Positions of a round, at least.
const MIN_POSITIONS: u64 = 10;

/// Measures two networks in searches of `nodes` nodes. `progress` receives the numbers of finished and of all rounds,
/// and returns whether to go on.
///
/// # Errors
/// When a network was not made for its feature set, or `progress` stops the measurement.
pub fn equal_cost(
    players: [(&Player, &NetworkPlayer); 2],
    nodes: u64,
    hash: u32,
    mut progress: impl FnMut(usize, usize) -> bool,
) -> Result<CostRatio, MatchError> {
    let [(first_player, first), (second_player, second)] = players;
    let first = Searcher::new(&first.set, &first.model, BackEnd::best(), hash as usize);
    let second = Searcher::new(&second.set, &second.model, BackEnd::best(), hash as usize);
    let mut searchers = [
        first.map_err(|error| MatchError::player(first_player, &error))?,
        second.map_err(|error| MatchError::player(second_player, &error))?,
    ];
    let mut costs: [Vec<f64>; 2] = Default::default();
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut cost = [0.0; 2];
        // The second network finds other contents in the CPU's caches, so the order alternates.
        for place in [round % 2, 1 - round % 2] {
            cost[place] = nanoseconds_per_node(&mut searchers[place], round, nodes);
            costs[place].push(cost[place]);
        }
        ratios.push(cost[0] / cost[1]);
        if !progress(round + 1, ROUNDS) {
            return Err(MatchError::Stopped);
        }
    }
    let [first, second, ratio] =
        [&costs[0], &costs[1], &ratios].map(|values| median(values).ok_or(MatchError::Stopped));
    let Median { value, low, high } = ratio?;
    let nanoseconds_per_node = [first?.value, second?.value];
    Ok(CostRatio { nanoseconds_per_node, ratio: value, low, high, rounds: ROUNDS, machine: Some(Machine::current()) })
}

/// Processor time per node of searches of `nodes` nodes from the round's positions. Only the first search has empty
/// tables, as in a game.
fn nanoseconds_per_node(searcher: &mut Searcher<'_>, round: usize, nodes: u64) -> f64 {
    let positions = ROUND_NODES.div_ceil(nodes.max(1)).clamp(MIN_POSITIONS, BENCH_FENS.len() as u64) as usize;
    let fens = BENCH_FENS.iter().cycle().skip(round * positions).take(positions);
    let games: Vec<Game> = fens.filter_map(|fen| Some(Game::new(parse_fen(fen).ok()?))).collect();
    let limits = Limits { nodes: Some(nodes), ..Limits::default() };
    searcher.clear();
    let start = ThreadTime::now();
    let searched: u64 = games.iter().map(|game| searcher.search(game, &limits, |_| ()).nodes).sum();
    start.elapsed().as_nanos() as f64 / searched.max(1) as f64
}
