//! Estimates with 95% confidence intervals: means over repetitions, Elo of game pairs, means over seeds, differences
//! over seeds and games, and curves of the loss over the amount of data.

#[cfg(test)]
mod coverage;
mod distributions;
mod elo;
mod estimate;
mod level;
mod median;
mod outlook;
mod paired;
pub mod pentanomial;
mod scaling;
mod seed_noise;

pub use elo::{Effect, EloBySeed, elo_over_seeds, proportional_effect};
pub use estimate::{CONFIDENCE, Estimate, student_t_quantile};
pub use level::{Level, together};
pub use median::{Median, median};
pub use outlook::{NoiseSource, Outlook, SeedPlan, seed_plan};
pub use paired::{PairedDifference, PairedSets, Scale, SeedSums};
pub use scaling::{Crossing, LawCheck, ScalingCurves, ShareLosses};
pub use seed_noise::{BySeed, differences_to_first};

/// The two-sided 95% quantile of the normal distribution.
#[cfg(test)]
pub(crate) const Z_95: f64 = 1.959_963_984_540_054;
