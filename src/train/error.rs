//! Errors of training.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::tch_program::TchError;
use crate::data::DataFiles;
use crate::features::FeatureError;
use crate::output::OutputError;
use crate::output::file_lock::LockError;
use crate::settings::SettingError;

/// Errors of training. [`TrainError::is_request`] tells a wrong request from failed work.
#[derive(Debug, Error)]
pub enum TrainError {
    #[error("{0}")]
    Config(String),
    /// There is no such network: its shape, or a start from another network, is impossible.
    #[error("{0}")]
    Network(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Features(#[from] FeatureError),
    #[error(transparent)]
    Service(#[from] crate::service::ServiceError),
    #[error(transparent)]
    Net(#[from] crate::net::NetError),
    #[error(
        "{} already holds a run ({first}); give another directory, `--resume` to continue the run or `--force` to \
         replace it",
        folder.display()
    )]
    Occupied { folder: PathBuf, first: String },
    #[error(
        "{} holds files that no run writes ({first}), which `--force` does not remove either; give another directory, \
         or move them away",
        folder.display()
    )]
    Foreign { folder: PathBuf, first: String },
    #[error("{0}; wait until that process has ended, or give another directory")]
    InUse(LockError),
    #[error("{} cannot be continued: {why}", checkpoint.display())]
    Mismatch { checkpoint: PathBuf, why: String },
    #[error("{} is damaged: {why}; remove it, or start again with `--force`", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(
        "training diverged at step {step}: {cause}. Try a lower learning rate than {learning_rate}, or clip the \
         gradient (gradient_clip); a new run can start with this one's checkpoint, if it has one"
    )]
    NotFinite { step: u64, cause: String, learning_rate: f64 },
    #[error("{0}")]
    Labels(String),
    #[error("the samples service sent a broken batch {batch}: {why}")]
    Batch { batch: u64, why: String },
    #[error("the {split} split of {data} holds no sample; {hint}")]
    Empty { data: DataFiles, split: &'static str, hint: &'static str },
    /// Interrupted before there was a state worth saving; otherwise [`TrainError::Interrupted`].
    #[error("interrupted while the data were prepared; the same command begins again")]
    Stopped,
    #[error(
        "interrupted at step {step}; continue with the same command and `--resume` (state saved in {})",
        folder.display()
    )]
    Interrupted { step: u64, folder: PathBuf },
    #[error("{}: another process has taken the run over, since this one was silent", .0.display())]
    TakenOver(PathBuf),
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// The library with which a trainer computes failed.
    #[error("{library}: {why}")]
    Device { library: &'static str, why: String },
    /// No GPU can train this run. Nothing of the run was touched.
    #[error("{0}")]
    NoGpu(String),
    /// As [`TrainError::Device`], in a run.
    #[error(
        "the device failed after step {step} ({library}: {why}). {}: continue with the same command and `--resume`",
        saved_state(*saved, folder)
    )]
    DeviceLost { library: &'static str, why: String, step: u64, saved: Option<u64>, folder: PathBuf },
    #[error(transparent)]
    Tch(#[from] TchError),
}

/// `saved`: the steps of a run's last checkpoint.
fn saved_state(saved: Option<u64>, folder: &Path) -> String {
    match saved {
        Some(step) => format!("The state after step {step} is saved in {}", folder.display()),
        None => format!("No state is saved yet in {}", folder.display()),
    }
}

impl From<OutputError> for TrainError {
    fn from(OutputError { path, cause }: OutputError) -> TrainError {
        TrainError::Io { action: "cannot write", path, source: cause }
    }
}

impl From<LockError> for TrainError {
    fn from(error: LockError) -> TrainError {
        match error {
            LockError::Io { path, source } => TrainError::Io { action: "cannot lock", path, source },
            held => TrainError::InUse(held),
        }
    }
}

impl TrainError {
    /// Whether the request was wrong, as opposed to work that failed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            TrainError::Config(_)
            | TrainError::Network(_)
            | TrainError::NoGpu(_)
            | TrainError::Setting(_)
            | TrainError::Features(_)
            | TrainError::Occupied { .. }
            | TrainError::Foreign { .. }
            | TrainError::Mismatch { .. }
            | TrainError::Damaged { .. }
            | TrainError::Labels(_)
            | TrainError::Empty { .. } => true,
            TrainError::Net(error) => error.is_request(),
            TrainError::Service(error) => error.is_request(),
            TrainError::Tch(error) => error.is_request(),
            _ => false,
        }
    }

    /// Whether the network itself cannot be trained with these settings: on whatever machine, and each time.
    #[must_use]
    pub const fn is_of_network(&self) -> bool {
        matches!(
            self,
            TrainError::NotFinite { .. }
                | TrainError::Network(_)
                | TrainError::Features(FeatureError::Definition(_))
                | TrainError::Tch(TchError::Failed { is_of_network: true, .. })
        )
    }

    /// Whether a run ended before it began, for want of a GPU or of the program that uses it.
    pub(super) const fn is_without_gpu(&self) -> bool {
        match self {
            TrainError::NoGpu(_) => true,
            TrainError::Tch(error) => error.is_before_run(),
            _ => false,
        }
    }

    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> TrainError {
        let path = path.into();
        move |source| TrainError::Io { action, path, source }
    }
}
