//! The interface by which a run reports its progress and is asked to stop.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::EpochMetrics;

/// The extent of a run that is about to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOverview {
    pub folder: PathBuf,
    pub set: String,
    pub features: u32,
    pub parameters: u64,
    pub epochs: u32,
    pub steps_per_epoch: u64,
    pub samples_per_epoch: u64,
    pub positions_per_sample: usize,
    /// Steps that the run had taken before it was resumed; 0 for a new run.
    pub steps_done: u64,
    /// The GPU that trains; `None`: the CPU does.
    pub gpu: Option<String>,
}

/// The metrics of one step.
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub struct StepMetrics {
    /// From 1.
    pub epoch: u32,
    /// Steps taken since the run began.
    pub step: u64,
    pub samples: u64,
    pub positions: u64,
    /// Mean over the step's batch.
    pub loss: f64,
}

/// Receives a run's progress. Every method has a default that does nothing.
pub trait RunObserver {
    /// A message to the user.
    fn note(&mut self, _text: &str) {}
    fn started(&mut self, _overview: &RunOverview) {}
    fn stepped(&mut self, _step: &StepMetrics) {}
    /// The epoch's steps are done, and its validation begins.
    fn validating(&mut self, _epoch: u32) {}
    fn finished_epoch(&mut self, _metrics: &EpochMetrics) {}
    /// Called before every step and validation batch. True stops the run after saving a checkpoint.
    fn interrupted(&self) -> bool {
        false
    }
}

/// An observer that ignores everything.
#[derive(Debug)]
pub struct Silent;

impl RunObserver for Silent {}
