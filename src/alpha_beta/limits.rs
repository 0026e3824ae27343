//! Limits of a search: depth, nodes, time and mate.

use std::time::{Duration, Instant};

/// Nodes between two checks of the clock.
pub const NODES_PER_TIME_CHECK: u64 = 512;

/// Limits of a search. Without any limit only a stop flag ends it.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Deepest iteration.
    pub depth: Option<u32>,
    /// Checked at every node.
    pub nodes: Option<u64>,
    /// Checked between iterations.
    pub soft_nodes: Option<u64>,
    /// Time limit.
    pub clock: Option<Clock>,
    /// Stop when a mate in at most this many moves is found.
    pub mate: Option<u32>,
    /// Search only these root moves; if empty, all.
    pub search_moves: Vec<shakmaty::Move>,
}

impl Limits {
    /// A search of soft nodes ends in an iteration that takes more than so many times as many.
    const HARD_PER_SOFT: u64 = 8;

    /// No iteration begins after so many nodes, and none goes beyond 8 times as many.
    #[must_use]
    pub fn of_soft_nodes(nodes: u64) -> Limits {
        let hard = nodes.saturating_mul(Limits::HARD_PER_SOFT);
        Limits { nodes: Some(hard), soft_nodes: Some(nodes), ..Limits::default() }
    }
}

/// Time limits of a search, measured from its start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    pub start: Instant,
    /// No iteration begins after this.
    pub soft: Duration,
    /// The search stops here.
    pub hard: Duration,
}

impl Clock {
    /// A fixed time per move, less the overhead of sending it.
    #[must_use]
    pub fn fixed(start: Instant, time: Duration, overhead: Duration) -> Clock {
        let time = time.saturating_sub(overhead).max(Duration::from_millis(1));
        Clock { start, soft: time, hard: time }
    }

    /// A share of the remaining time, planned for `moves_to_go` (at most 25) more moves, each with its increment.
    #[must_use]
    pub fn share(
        start: Instant,
        remaining: Duration,
        increment: Duration,
        moves_to_go: Option<u32>,
        overhead: Duration,
    ) -> Clock {
        const PLANNED_MOVES: u32 = 25;
        let usable = remaining.saturating_sub(overhead).max(Duration::from_millis(1));
        let moves = moves_to_go.unwrap_or(PLANNED_MOVES).clamp(1, PLANNED_MOVES);
        let planned = usable / moves + increment * 3 / 4;
        // Half of the time stays in reserve, except for the last move before the time control.
        let most = if moves == 1 { usable * 4 / 5 } else { usable / 2 };
        let soft = (planned * 3 / 5).min(most);
        let hard = (planned * 5 / 2).min(most);
        let least = Duration::from_millis(1);
        Clock { start, soft: soft.max(least), hard: hard.max(least) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_never_exceeds_the_remaining_time() {
        let start = Instant::now();
        let millis = Duration::from_millis;
        for remaining in [1, 10, 50, 1_000, 60_000] {
            for increment in [0, 10, 1_000] {
                for moves in [None, Some(1), Some(2), Some(40)] {
                    let clock = Clock::share(start, millis(remaining), millis(increment), moves, millis(10));
                    assert!(clock.soft <= clock.hard, "{clock:?}");
                    assert!(clock.hard <= millis(remaining.saturating_sub(10).max(1)), "{remaining} {clock:?}");
                }
            }
        }
    }
}
