//! UCI options: their declaration, values and limits.

use std::time::Duration;

use crate::alpha_beta::TranspositionTable;

/// Time reserved per move for its transmission, unless the option `Move Overhead` changes it.
pub(super) const DEFAULT_MOVE_OVERHEAD: Duration = Duration::from_millis(10);

/// Values of the options that are kept when another network is loaded.
pub(super) struct UciOptions {
    /// `Hash`.
    pub(super) megabytes: usize,
    /// `Move Overhead`.
    pub(super) move_overhead: Duration,
    /// `SoftNodes`: node limits are checked between iterations, as [`crate::alpha_beta::Limits::of_soft_nodes`] says.
    pub(super) soft_nodes: bool,
    /// `UCI_Chess960`: castling is written as king takes rook, whatever the position.
    pub(super) chess960: bool,
}

impl Default for UciOptions {
    fn default() -> UciOptions {
        let megabytes = TranspositionTable::DEFAULT_MEGABYTES;
        UciOptions { megabytes, move_overhead: DEFAULT_MOVE_OVERHEAD, soft_nodes: false, chess960: false }
    }
}

impl UciOptions {
    /// The answer to `uci`: name, options, `uciok`.
    pub(super) fn identification() -> Vec<String> {
        let default = TranspositionTable::DEFAULT_MEGABYTES;
        let most = TranspositionTable::MAX_MEGABYTES;
        let overhead = DEFAULT_MOVE_OVERHEAD.as_millis();
        vec![
            format!("id name fsbench {}", env!("CARGO_PKG_VERSION")),
            "id author the fsbench authors".into(),
            format!("option name Hash type spin default {default} min 1 max {most}"),
            "option name Threads type spin default 1 min 1 max 1".into(),
            "option name EvalFile type string default <empty>".into(),
            format!("option name Move Overhead type spin default {overhead} min 0 max 5000"),
            "option name SoftNodes type check default false".into(),
            "option name Ponder type check default false".into(),
            "option name UCI_Chess960 type check default false".into(),
            "uciok".into(),
        ]
    }

    /// Sets an option other than `EvalFile`; the error is a message for the user.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = |least: u64, most: u64| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("option {name} takes a number from {least} to {most}, not \"{value}\""))
        };
        let boolean = || -> Result<bool, String> {
            value.parse().map_err(|_| format!("option {name} takes true or false, not \"{value}\""))
        };
        match name.to_ascii_lowercase().as_str() {
            "hash" => self.megabytes = number(1, TranspositionTable::MAX_MEGABYTES as u64)? as usize,
            "threads" => {
                number(1, 1)?;
            }
            "move overhead" => self.move_overhead = Duration::from_millis(number(0, 5000)?),
            "softnodes" => self.soft_nodes = boolean()?,
            "ponder" => {
                boolean()?;
            }
            "uci_chess960" => self.chess960 = boolean()?,
            _ => return Err(format!("there is no option \"{name}\"")),
        }
        Ok(())
    }
}
