//! Experiments: a TOML file → a matrix of runs → run folders and records, resumable at any time.
//!
//! Each finished result is stored under a key of everything that determines it (definition, data, settings), so that a
//! rerun does only the steps that are missing or changed. The records of an experiment depend only on its plan and that
//! store.

mod checks;
mod earlier;
mod equal_speed;
mod error;
mod estimate;
mod executor;
mod kept_runs;
pub mod key_help;
pub mod learning_loop;
mod listed_steps;
mod local_executor;
mod local_generation;
mod local_match;
mod lock;
mod machine_checks;
mod match_settings;
mod network_links;
mod own_figures;
mod plan;
mod run;
mod runner;
mod runner_options;
mod runs_table;
mod scale;
mod scaling;
pub mod search;
pub mod slurm;
mod spec;
mod steps;
mod store;
mod sweep;
mod toml_file;
mod view;

#[cfg(test)]
mod tests;

pub use checks::NetworkChoice;
pub use earlier::Earlier;
pub use equal_speed::{EqualSpeedMeasure, EqualSpeedRequest, EqualSpeedTerms};
pub use error::ExperimentError;
pub use estimate::{RowEstimate, RowFigures, RunEstimate, StageEstimate};
pub use executor::{
    DataRequest, Executor, GenerationRequest, LoopStart, MatchRequest, MatchSetup, NetRequest, PreparedData,
    ResolvedSet, StepError, TrainRequest,
};
pub use kept_runs::{KeptRun, kept_runs, remove_unused_runs};
pub use listed_steps::ListedStep;
pub use local_executor::LocalExecutor;
pub use match_settings::{MatchMeasure, MatchTerms};
pub use network_links::TrainedRun;
pub use own_figures::{FiguresByRow, OwnFeatures};
pub use runner::Runner;
pub use runner_options::{ExperimentMonitor, FinishedWhen, RunnerOptions, Share};
pub use scale::DEFAULT_SCALE;
pub use spec::{
    ComparisonRow, Dataset, DatasetKeys, Experiment, GameLimit, Location, Measures, NetMeasure, RowSecond, SetMeasure,
    SpeedMeasure,
};
