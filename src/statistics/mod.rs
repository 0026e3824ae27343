//! Estimates with 95% confidence intervals: means over repetitions, Elo of game pairs, means over seeds, differences
//! over seeds and games.

mod distributions;
mod estimate;
mod median;
mod paired;
pub mod pentanomial;
mod random_effects;

pub use estimate::{CONFIDENCE, Estimate, student_t_quantile};
pub use median::{Median, median};
pub use paired::{PairedDifference, PairedSets, Scale, SeedSums};
pub use random_effects::{Effect, random_effects_mean};

/// The two-sided 95% quantile of the normal distribution.
pub(crate) const Z_95: f64 = 1.959_963_984_540_054;
