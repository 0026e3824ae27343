//! A chess search over a network's evaluation, so that feature sets can be compared by playing strength.
//!
//! [`Searcher`] searches a [`Game`] on one thread by iterative deepening. At a node limit it is deterministic: the same
//! network, game and limit give the same move, score and node count on every back end. [`bench()`] counts the nodes of
//! fixed searches, the signature that all back ends must share. [`uci()`] makes a searcher a UCI engine.

mod bench;
mod correction;
mod digest;
mod eval_scale;
mod history;
mod iterative_deepening;
mod limits;
mod move_loop;
mod move_picker;
mod network_scorer;
mod node;
mod perft;
mod pruning;
mod quiescence;
mod score;
mod see;
mod transposition;
mod uci;

pub use crate::chess::{Game, GameError};
pub use bench::{BENCH_DEPTH, BENCH_FENS, BenchResult, bench};
pub use digest::search_digest;
pub use eval_scale::EvalScale;
pub use iterative_deepening::{Iteration, SearchResult, Searcher};
pub use limits::{Clock, Limits, NODES_PER_TIME_CHECK};
pub use network_scorer::RecordScorer;
pub use score::{MAX_PLY, Score};
pub use see::see_at_least;
pub use transposition::TranspositionTable;
pub use uci::{DrawOpenings, GenfensRequest, LoadNetwork, OpeningSource, PlayingNetwork, UciHost, uci, uci_commands};
