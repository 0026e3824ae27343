//! Stockfish's own networks: our integers against what each engine prints, and our files in its hands.

mod bullet;
#[path = "../common/mod.rs"]
mod common;
mod convert;
mod engines;
mod equal;
mod malformed;
mod ours;
mod positions;
