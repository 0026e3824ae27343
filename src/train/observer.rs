//! How a run tells its caller how it goes, and asks whether to stop.

use std::path::Path;

use super::EpochMetrics;

/// What a run is about to do.
#[derive(Copy, Clone, Debug)]
pub struct RunOverview<'a> {
    pub folder: &'a Path,
    pub set: &'a str,
    pub features: u32,
    pub parameters: u64,
    pub epochs: u32,
    pub steps_per_epoch: u64,
    pub samples_per_epoch: u64,
    pub positions_per_sample: usize,
    /// Steps taken by the run that is continued; 0 for a new one.
    pub done: u64,
}

/// A step just taken.
#[derive(Copy, Clone, Debug)]
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

/// Follows a run. Every method may be left out.
pub trait RunObserver {
    /// Something worth knowing.
    fn noted(&mut self, _text: &str) {}
    fn started(&mut self, _plan: &RunOverview<'_>) {}
    fn stepped(&mut self, _step: &StepMetrics) {}
    /// The epoch's steps are done and its validation begins.
    fn validating(&mut self, _epoch: u32) {}
    fn finished_epoch(&mut self, _metrics: &EpochMetrics) {}
    /// Asked before every step and validation batch: true stops the run after saving a checkpoint.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Follows nothing.
#[derive(Debug)]
pub struct Silent;

impl RunObserver for Silent {}
