//! Playing strength: what a match's results say about Elo.

mod pentanomial;
mod sprt;

pub use pentanomial::{Interval, MatchEstimate, Pairs, PairsError};
pub use sprt::{EloModel, Sprt, SprtError, SprtOutcome, SprtState};
