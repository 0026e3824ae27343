//! Playing strength from match results: Elo, its interval, and the sequential test.

mod pentanomial;
mod sprt;

pub use pentanomial::{Interval, MatchEstimate, Pairs, PairsError};
pub use sprt::{EloModel, Sprt, SprtError, SprtOutcome, SprtState};
