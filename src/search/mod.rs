//! A search over a network's evaluation, so that feature sets can be compared by playing strength.
//!
//! One thread, and deterministic at a node limit: the same network, game and limit give the same move, score and node
//! count on every back end. [`Searcher`] holds the tables and searches a [`Game`]; [`bench`] is the signature that every
//! back end must agree on. `tree` is the alpha-beta search itself, after the practice of strong small engines.

mod bench;
mod code;
mod exchange;
mod game;
mod history;
mod limits;
mod order;
mod quiescence;
mod scale;
mod score;
mod searcher;
mod table;
mod tree;
mod uci;

pub use bench::{BENCH_DEPTH, BENCH_FENS, BenchResult, bench};
pub use exchange::exchange_at_least;
pub use game::{Game, GameError};
pub use limits::{Clock, Limits, NODES_PER_TIME_CHECK};
pub use scale::EvalScale;
pub use score::{MAX_PLY, Score};
pub use searcher::{Iteration, SearchResult, Searcher};
pub use table::TranspositionTable;
pub use uci::{LoadNetwork, PlayingNetwork, uci};
