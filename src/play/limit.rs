//! How long a player may think.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pipeline::uci::SearchLimit;

/// The limit of every move of a game.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveLimit {
    /// Nodes per move.
    Nodes(u64),
    /// Nodes after which a network's search begins no iteration.
    SoftNodes(u64),
    /// Plies per move.
    Depth(u32),
    /// Time per move.
    MoveTime(Duration),
    /// A clock: time for the whole game, and an increment per move.
    Clock { time: Duration, increment: Duration },
}

impl MoveLimit {
    /// Whether the same players play the same games.
    #[must_use]
    pub const fn is_reproducible(self) -> bool {
        matches!(self, MoveLimit::Nodes(_) | MoveLimit::SoftNodes(_) | MoveLimit::Depth(_))
    }

    /// In words, for tables.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            MoveLimit::Nodes(nodes) => format!("{nodes} nodes per move"),
            MoveLimit::SoftNodes(nodes) => format!("{nodes} soft nodes per move"),
            MoveLimit::Depth(depth) => format!("{depth} plies per move"),
            MoveLimit::MoveTime(time) => format!("{} ms per move", time.as_millis()),
            MoveLimit::Clock { time, increment } => format!("{}+{} s", time.as_secs_f64(), increment.as_secs_f64()),
        }
    }
}

/// A time control as text: `8+0.08`, seconds and the increment per move.
///
/// # Errors
/// When the text is no time control, as a sentence.
pub fn parse_time_control(text: &str) -> Result<MoveLimit, String> {
    let (time, increment) = text.split_once('+').unwrap_or((text, "0"));
    let seconds = |text: &str| {
        let value: f64 = text.trim().parse().ok()?;
        Duration::try_from_secs_f64(value).ok().filter(|time| time.as_secs() < 1_000_000)
    };
    match (seconds(time), seconds(increment)) {
        (Some(time), Some(increment)) if !time.is_zero() => Ok(MoveLimit::Clock { time, increment }),
        _ => Err("give seconds and an increment per move, as 8+0.08".into()),
    }
}

/// A player loses on time when it exceeds the limit by more than this.
const TIME_MARGIN: Duration = Duration::from_millis(20);

/// The time of both players.
pub(super) struct GameClock {
    limit: MoveLimit,
    left: [Duration; 2],
}

impl GameClock {
    pub(super) fn new(limit: MoveLimit) -> GameClock {
        let left = if let MoveLimit::Clock { time, .. } = limit { time } else { Duration::ZERO };
        GameClock { limit, left: [left; 2] }
    }

    /// The limit of the next search; `nodes`: the player's own, in place of the game's limit.
    pub(super) fn search_limit(&self, nodes: Option<u64>) -> SearchLimit {
        let millis = |time: Duration| time.as_millis() as u64;
        match (nodes, self.limit) {
            (Some(nodes), _) | (None, MoveLimit::Nodes(nodes)) => SearchLimit::Nodes(nodes),
            (None, MoveLimit::SoftNodes(nodes)) => SearchLimit::SoftNodes(nodes),
            (None, MoveLimit::Depth(depth)) => SearchLimit::Depth(depth),
            (None, MoveLimit::MoveTime(time)) => SearchLimit::MoveTime(millis(time)),
            (None, MoveLimit::Clock { increment, .. }) => {
                let [white, black] = self.left.map(millis);
                SearchLimit::Clock { white, black, increment: millis(increment) }
            }
        }
    }

    /// Subtracts the time of a move from one side's clock; returns whether the side has exceeded its time.
    pub(super) fn is_exceeded(&mut self, side: usize, time: Duration) -> bool {
        match self.limit {
            MoveLimit::Nodes(_) | MoveLimit::SoftNodes(_) | MoveLimit::Depth(_) => false,
            MoveLimit::MoveTime(most) => time > most + TIME_MARGIN,
            MoveLimit::Clock { increment, .. } => {
                let exceeded = time > self.left[side] + TIME_MARGIN;
                self.left[side] = self.left[side].saturating_sub(time) + increment;
                exceeded
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_controls() {
        let check = |text: &str, expected: Option<(u64, u64)>| {
            let found = parse_time_control(text).ok();
            let clock = |(time, increment)| MoveLimit::Clock {
                time: Duration::from_millis(time),
                increment: Duration::from_millis(increment),
            };
            assert_eq!(found, expected.map(clock), "{text}");
        };
        check("8+0.08", Some((8_000, 80)));
        check("60", Some((60_000, 0)));
        check("0+1", None);
        check("-1+1", None);
        check("8+x", None);
        check("1e30", None);
    }
}
