//! Experiments: a TOML file → a matrix of runs → run folders and records, resumable at any moment.
//!
//! Everything finished is kept under a key made of all that determines it (definition, data, settings), so that a rerun
//! does only what is missing or changed. The records of an experiment are a function of its plan and that store.

mod error;
pub mod keys;
mod local;
mod networks;
mod plan;
mod runner;
mod spec;
mod store;
mod workbench;

#[cfg(test)]
mod tests;

pub use error::ExperimentError;
pub use local::Local;
pub use networks::{KeptRun, Trained, kept_runs, remove_unused_runs};
pub use plan::{Plan, PlannedRun, Step};
pub use runner::{Options, Progress, Runner};
pub use spec::{Dataset, DatasetOptions, Experiment, Location, Measures, NetMeasure, Row, SetMeasure, SpeedMeasure};
pub use workbench::{DataFacts, DataRequest, NetRequest, SetFacts, StepError, TrainRequest, Watch, Workbench};
