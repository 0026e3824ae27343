//! Estimates with 95% confidence intervals: means over repetitions, Elo of game pairs, means over seeds, differences
//! over seeds and games, and curves of the loss over the amount of data.

#[cfg(test)]
mod coverage;
mod distributions;
mod estimate;
mod level;
mod median;
mod outlook;
mod paired;
pub mod pentanomial;
mod random_effects;
mod scaling;
mod seed_noise;

pub use estimate::{CONFIDENCE, Estimate, student_t_quantile};
pub use level::{Level, together};
pub use median::{Median, median};
pub use outlook::{NoiseSource, Outlook, SeedPlan, seed_plan};
pub use paired::{PairedDifference, PairedSets, Scale, SeedSums};
pub use random_effects::{Effect, elo_outlook, random_effects_mean};
pub use scaling::{Crossing, LawCheck, ScalingCurves, ShareLosses};
pub use seed_noise::{BySeed, differences_to_first};

/// The two-sided 95% quantile of the normal distribution.
#[cfg(test)]
pub(crate) const Z_95: f64 = 1.959_963_984_540_054;
