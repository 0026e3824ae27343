//! Measures how many nodes two networks search in the same processor time.

use std::time::Instant;

use super::MatchError;
use super::player::{NetworkPlayer, Player};
use crate::chess::parse_fen;
use crate::engine::BackEnd;
pub use crate::record::CostRatio;
use crate::search::{BENCH_FENS, Game, Limits, Searcher};

/// Rounds, each over [`POSITIONS`] positions of the bench for both networks.
const ROUNDS: usize = 15;
const POSITIONS: usize = 10;
/// With 15 rounds, the 4th smallest and the 4th largest ratio enclose the median in 96.5% of all cases (binomial).
const OUTSIDE: usize = 3;

/// Measures two networks in searches of `nodes` nodes. `progress` receives the numbers of finished and of all rounds.
///
/// # Errors
/// When a network was not made for its feature set.
pub fn equal_cost(
    players: [(&Player, &NetworkPlayer); 2],
    nodes: u64,
    hash: u32,
    mut progress: impl FnMut(usize, usize),
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
        progress(round + 1, ROUNDS);
    }
    ratios.sort_by(f64::total_cmp);
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Ok(CostRatio {
        nanoseconds_per_node: [median(&mut costs[0]), median(&mut costs[1])],
        ratio: ratios[ROUNDS / 2],
        low: ratios[OUTSIDE],
        high: ratios[ROUNDS - 1 - OUTSIDE],
        rounds: ROUNDS,
    })
}

fn nanoseconds_per_node(searcher: &mut Searcher<'_>, round: usize, nodes: u64) -> f64 {
    let (mut searched, mut time) = (0, 0.0);
    for place in 0..POSITIONS {
        let fen = BENCH_FENS[(round * POSITIONS + place) % BENCH_FENS.len()];
        let Ok(position) = parse_fen(fen) else { continue };
        searcher.clear();
        let game = Game::new(position);
        let start = ProcessorClock::start();
        searched += searcher.search(&game, &Limits { nodes: Some(nodes), ..Limits::default() }, |_| ()).nodes;
        time += start.nanoseconds();
    }
    time / searched.max(1) as f64
}

/// Processor time of this thread on Linux, elsewhere wall-clock time.
struct ProcessorClock {
    processor: Option<u64>,
    wall: Instant,
}

impl ProcessorClock {
    fn start() -> ProcessorClock {
        ProcessorClock { processor: thread_nanoseconds(), wall: Instant::now() }
    }

    fn nanoseconds(&self) -> f64 {
        match (self.processor, thread_nanoseconds()) {
            (Some(start), Some(end)) if end > start => (end - start) as f64,
            _ => self.wall.elapsed().as_nanos() as f64,
        }
    }
}

/// Nanoseconds that this thread has been running: the first number of its `schedstat`.
fn thread_nanoseconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}
