//! Training: plain configuration and outcome here; whatever touches libtorch only with the feature `train`.

mod config;

pub use config::{EpochMetrics, EvalLoss, Outcome, PqrLoss, TrainConfig};
