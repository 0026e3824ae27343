//! The program `fsbench-tch`, which trains with libtorch: how it is found, and the messages between it and `fsbench`.
//!
//! `fsbench` starts it with pipes as standard input and output, and reads events from its output, one JSON document a
//! line ([`Event`]). The first says which version answers. Then `fsbench` writes one JSON document, the
//! [`TrainingRequest`], on one line, and leaves the input open. Its end means that the run shall stop: the program
//! saves a checkpoint and says so. It runs the same loop as `fsbench`
//! ([`TrainingRun::train_with`](super::TrainingRun::train_with)) and reads the same batches from a samples service that
//! it starts itself.

mod answer;
mod ask;
mod gpus;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{DeviceChoice, EpochMetrics, RunOverview, StepMetrics, TrainConfig, TrainOutcome};

pub use answer::{ChooseTrainer, answer};
pub(super) use ask::train;
pub(super) use gpus::available as available_gpus;
pub use gpus::{LISTED as LISTED_GPUS, VISIBLE as VISIBLE_GPUS};

/// The program's name.
pub const NAME: &str = "fsbench-tch";

/// A run to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrainingRequest {
    pub config: TrainConfig,
    /// The configuration may leave it to `auto`, which has decided.
    pub device: DeviceChoice,
    pub folder: PathBuf,
    pub resume: bool,
    pub force: bool,
    /// The program that serves samples.
    pub service: PathBuf,
    /// Seconds between two checkpoints within an epoch.
    pub checkpoint_every: f64,
}

/// An event of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The first event.
    Ready {
        version: String,
    },
    Note {
        text: String,
    },
    Started(RunOverview),
    Stepped(StepMetrics),
    Validating {
        epoch: u32,
    },
    FinishedEpoch(EpochMetrics),
    /// The run is finished. The last event, as is [`Event::Failed`].
    Finished {
        outcome: Box<TrainOutcome>,
    },
    Failed {
        cause: Cause,
        message: String,
    },
}

/// Why a run ended without an outcome.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// As [`TrainError::is_of_network`](super::TrainError::is_of_network).
    Network { is_request: bool },
    /// The request was wrong otherwise.
    Request,
    /// As [`TrainError::NoGpu`](super::TrainError::NoGpu).
    NoGpu,
    /// The work failed.
    Work,
    /// Stopped before there was a state worth saving.
    Stopped,
    /// Stopped; its state is saved.
    Interrupted { step: u64 },
}

/// Failures of the program.
#[derive(Debug, Error)]
pub enum TchError {
    #[error(
        "tch trains by the program {NAME}, which is neither in {} nor on PATH; build it with libtorch \
         (scripts/setup.sh, then cargo build --release --features tch), or train on the CPU with --trainer kernels",
        folder.display()
    )]
    Missing { folder: PathBuf },
    #[error("cannot start {}: {source}", program.display())]
    Start { program: PathBuf, source: std::io::Error },
    #[error(
        "{} is of version {found}, this program of {own}; build both from one commit: cargo build --release --features \
         tch",
        program.display()
    )]
    Version { program: PathBuf, found: String, own: &'static str },
    #[error("{} does not speak as {NAME} does: {why}", program.display())]
    Foreign { program: PathBuf, why: String },
    #[error(
        "{} ended without a result ({status}); its messages are above. `--resume` continues the run",
        program.display()
    )]
    Died { program: PathBuf, status: ExitStatus },
    #[error("{} ended before it could train ({status}); its messages are above", program.display())]
    NotReady { program: PathBuf, status: ExitStatus },
    /// As the program said it.
    #[error("{message}")]
    Failed { message: String, is_request: bool, is_of_network: bool },
}

impl TchError {
    /// Whether the request was wrong, as opposed to work that failed.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        match self {
            TchError::Missing { .. } | TchError::Version { .. } | TchError::Foreign { .. } => true,
            TchError::Start { .. } | TchError::Died { .. } | TchError::NotReady { .. } => false,
            TchError::Failed { is_request, .. } => *is_request,
        }
    }

    /// Whether the program failed before it was asked for a run.
    pub(super) const fn is_before_run(&self) -> bool {
        match self {
            TchError::Missing { .. }
            | TchError::Start { .. }
            | TchError::Version { .. }
            | TchError::NotReady { .. } => true,
            TchError::Foreign { .. } | TchError::Died { .. } | TchError::Failed { .. } => false,
        }
    }
}

/// The program: beside `fsbench`, else on PATH.
///
/// # Errors
/// If it is in neither place.
pub fn find(fsbench: &Path) -> Result<PathBuf, TchError> {
    let name = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let beside = fsbench.with_file_name(&name);
    if beside.is_file() {
        return Ok(beside);
    }
    for folder in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        let program = folder.join(&name);
        if program.is_file() {
            return Ok(program);
        }
    }
    Err(TchError::Missing { folder: fsbench.parent().unwrap_or(Path::new(".")).to_path_buf() })
}
