//! What an experiment asks of the rest of the program, behind a trait, so that its order and resumption can be tested
//! without data, libtorch or an engine.

use std::path::{Path, PathBuf};

use super::spec::SpeedMeasure;
use crate::data::ScoreUnit;
use crate::features::Identity;
use crate::pipeline::BuildOptions;
use crate::record::{ActivityRecord, ErrorRecord, SpeedRecord, UpdatesRecord};
use crate::train::{EpochMetrics, TrainConfig, TrainOutcome};

/// Any step's own error.
pub type StepError = Box<dyn std::error::Error + Send + Sync>;

/// A feature set as resolved.
#[derive(Clone, Debug)]
pub struct SetFacts {
    pub name: String,
    pub identity: Identity,
    /// The self-contained definition.
    pub definition: String,
}

/// Samples of one method from games.
#[derive(Clone, Debug)]
pub struct DataRequest {
    pub source: PathBuf,
    /// Of the scores, where the source does not say it.
    pub from_unit: Option<ScoreUnit>,
    pub options: BuildOptions,
}

/// A data set ready to train on.
#[derive(Clone, Debug)]
pub struct DataFacts {
    /// The native file.
    pub path: PathBuf,
    /// Hash of the samples.
    pub hash: String,
    /// What their scores are measured in.
    pub score_unit: ScoreUnit,
}

/// One training, from the beginning or from where the folder's checkpoint stands.
#[derive(Clone, Debug)]
pub struct TrainRequest<'a> {
    pub config: &'a TrainConfig,
    pub folder: PathBuf,
}

/// A trained network and the games to run it over.
#[derive(Clone, Debug)]
pub struct NetRequest {
    /// The quantised network.
    pub network: PathBuf,
    /// The float network it was quantised from.
    pub weights: PathBuf,
    /// The games.
    pub data: PathBuf,
    /// The first so many; none = all.
    pub games: Option<u64>,
}

/// Looks at a training from outside.
pub trait Watch {
    fn epoch(&mut self, metrics: &EpochMetrics);

    /// Asked between steps; when true the training saves a checkpoint and ends.
    fn stop_requested(&self) -> bool;
}

/// The work behind an experiment's steps.
pub trait Workbench {
    /// # Errors
    /// When the request names no set or its definition is wrong.
    fn set(&self, request: &str) -> Result<SetFacts, StepError>;

    /// Opens or builds a data set.
    ///
    /// # Errors
    /// When the games cannot be read or the samples not written.
    fn data(&mut self, request: &DataRequest) -> Result<DataFacts, StepError>;

    /// Trains to the end and leaves `outcome.json` in the folder, or ends early (none) when the watch asks for it.
    ///
    /// # Errors
    /// When the training fails.
    fn train(&mut self, request: &TrainRequest<'_>, watch: &mut dyn Watch) -> Result<Option<TrainOutcome>, StepError>;

    /// # Errors
    /// When the measure fails.
    fn updates(&mut self, set: &str, data: &Path, games: Option<u64>) -> Result<UpdatesRecord, StepError>;

    /// # Errors
    /// When the measure fails.
    fn activity(&mut self, request: &NetRequest) -> Result<ActivityRecord, StepError>;

    /// # Errors
    /// When the measure fails.
    fn error(&mut self, request: &NetRequest) -> Result<ErrorRecord, StepError>;

    /// # Errors
    /// When the measure fails.
    fn speed(&mut self, request: &NetRequest, timing: &SpeedMeasure) -> Result<SpeedRecord, StepError>;
}
