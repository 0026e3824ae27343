//! `[loop]`: a network plays games against itself, the next one learns from them and plays the one before, and so on.
//!
//! As a search, a loop is a sequence of passes over ordinary experiments (`Runner::passes`): [`controller`] decides on
//! them by the results of those before, and does nothing itself. What starts, plays, trains and tests are steps.

mod controller;
mod estimate;
mod table;

pub use estimate::LoopEstimate;
pub use table::{LearningLoop, LoopTerms};
pub(super) use table::{check_loop, keep_further_record};
