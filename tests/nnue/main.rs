//! Compares evaluations with Stockfish: its own networks here, and fsbench networks in Stockfish.

mod bullet;
#[path = "../common/mod.rs"]
mod common;
mod convert;
mod engines;
mod equal;
mod malformed;
mod ours;
mod positions;
