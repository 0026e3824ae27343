//! Chess engines that speak UCI: which engine and how it searches ([`EngineSpec`], [`SearchLimit`]), and a running
//! engine ([`Engine`]).

mod engine;
mod faults;
mod last_lines;
mod output_lines;
mod spec;

use std::io;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move};
use thiserror::Error;

use crate::chess::{castling_mode, fen_of, uci_move, uci_move_chess960};
use crate::data::Eval;

pub use engine::Engine;
pub use faults::{FaultLog, Useless, failures_allowed};
pub use spec::{EngineIdentity, EngineSpec, SearchLimit, Workers};

/// A game as UCI engines are told it.
#[derive(Clone, Debug)]
pub struct UciGame {
    /// FEN of the start position.
    pub start: String,
    /// The moves in UCI notation, separated by blanks.
    pub moves: String,
    /// Whether engines need their option `UCI_Chess960` for it. Castling is then king takes rook.
    pub chess960: bool,
}

impl UciGame {
    /// A game that starts from a position.
    #[must_use]
    pub fn new(start: &Chess) -> UciGame {
        UciGame { start: fen_of(start), moves: String::new(), chess960: castling_mode(start).is_chess960() }
    }

    /// Adds a move.
    pub fn push(&mut self, mv: Move) {
        if !self.moves.is_empty() {
            self.moves.push(' ');
        }
        self.moves.push_str(&if self.chess960 { uci_move_chess960(mv) } else { uci_move(mv) });
    }
}

/// The best move of a search and its score.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub best: Move,
    /// The side to move's view.
    pub eval: Eval,
}

/// An engine's report on a search: an [`Answer`] whose score may be missing, and the search's extent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SearchReport {
    pub best: Move,
    /// The side to move's view; `None` where the engine reported no score.
    pub eval: Option<Eval>,
    pub depth: Option<u32>,
    pub nodes: Option<u64>,
}

/// A fault of an engine while it plays.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineFault {
    /// It ended.
    Ended,
    /// It did not answer in time.
    Silent,
    /// Its answer is no legal move, or lacks a score where one is needed.
    Nonsense,
}

impl EngineFault {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EngineFault::Ended => "the engine ended",
            EngineFault::Silent => "no answer in time",
            EngineFault::Nonsense => "no usable answer",
        }
    }
}

/// Why an engine gave no usable answer.
#[derive(Debug, Error)]
pub enum UciError {
    #[error(
        "cannot start the engine {}: {cause}; give the path of its program, in quotes if it has blanks",
        engine.display()
    )]
    Start { engine: PathBuf, cause: io::Error },
    #[error("the engine {} ended while {doing} ({status}){}{said}", engine.display(), last_lines_label(said))]
    Ended {
        engine: PathBuf,
        doing: String,
        status: String,
        /// The engine's last lines, each after a line feed.
        said: String,
    },
    #[error("the engine {} gave no answer within {seconds} s while {doing}", engine.display())]
    Silent { engine: PathBuf, doing: String, seconds: f64 },
    #[error("the engine {} answered {answer:?} while {doing}: {why}", engine.display())]
    Nonsense { engine: PathBuf, doing: String, answer: String, why: &'static str },
    #[error("the engine {} has no option {name:?}; {}", engine.display(), suggestion(near))]
    UnknownOption { engine: PathBuf, name: String, near: Vec<String> },
    #[error(
        "the engine {} has no option UCI_Chess960, and this position needs it: {fen}; take an engine that plays \
         Chess960, or leave such positions out",
        engine.display()
    )]
    NoChess960 { engine: PathBuf, fen: String },
    #[error("the engine {} cannot set {name} to {value:?}: {why}", engine.display())]
    OptionValue { engine: PathBuf, name: String, value: String, why: String },
}

impl UciError {
    /// Whether the request was wrong (no such program, no such option); otherwise the engine failed.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.fault().is_none()
    }

    /// The engine's fault; `None` if the request was wrong.
    #[must_use]
    pub const fn fault(&self) -> Option<EngineFault> {
        match self {
            UciError::Ended { .. } => Some(EngineFault::Ended),
            UciError::Silent { .. } => Some(EngineFault::Silent),
            UciError::Nonsense { .. } => Some(EngineFault::Nonsense),
            UciError::Start { .. }
            | UciError::UnknownOption { .. }
            | UciError::NoChess960 { .. }
            | UciError::OptionValue { .. } => None,
        }
    }

    /// The error on one line without the engine's name, for a game's record.
    #[must_use]
    pub fn brief(&self) -> String {
        match self {
            UciError::Ended { status, said, .. } => match said.lines().last().map(str::trim) {
                Some(last) if !last.is_empty() => format!("ended ({status}): {last}"),
                _ => format!("ended ({status})"),
            },
            UciError::Silent { seconds, .. } => format!("gave no answer within {seconds} s"),
            UciError::Nonsense { answer, why, .. } => format!("answered {answer:?}: {why}"),
            UciError::Start { .. }
            | UciError::UnknownOption { .. }
            | UciError::NoChess960 { .. }
            | UciError::OptionValue { .. } => self.to_string(),
        }
    }
}

fn last_lines_label(said: &str) -> &'static str {
    if said.is_empty() { "" } else { "; its last lines:" }
}

fn suggestion(near: &[String]) -> String {
    match near {
        [] => "it has no options".into(),
        _ => format!("it has: {}", near.join(", ")),
    }
}
