//! How to run an experiment, and how to follow it.

use std::path::PathBuf;
use std::time::Duration;

use super::ExperimentError;
use super::network_links::TrainedRun;
use super::store::ResultKey;
use crate::generate::GenerateProgress;
use crate::play::MatchProgress;
use crate::record::{MatchResult, StageSeconds};
use crate::train::EpochMetrics;
use crate::units::SortedMap;

/// How to run an experiment.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// The results folder, for small records only.
    pub out: PathBuf,
    /// The folder of checkpoints, networks and stored results.
    pub work: PathBuf,
    /// Do only the steps of this set; finished results of other sets stay in the results.
    pub only: Option<String>,
    /// Delete the experiment's finished results first.
    pub fresh: bool,
    pub share: Share,
    /// The kind of machine on which times are measured. Keys of timed results hold it in the place of this machine's
    /// CPU, so that every machine knows them.
    pub timed_on: Option<String>,
}

/// Which steps this process does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// All, alone in the work folder.
    #[default]
    All,
    /// The steps that no other process of the work folder does, until all are done.
    Free,
    /// As `Free`, but without waiting for other processes.
    Unclaimed,
    /// The one of this key (see [`Runner::list_steps`]); for [`Runner::run_step`].
    One(String),
    /// None: it looks at what is done, also while another process is alone in the work folder.
    Nothing,
}

/// Whether a run was already finished when the experiment was started.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FinishedWhen {
    Before,
    Now,
}

/// Follows an experiment, and may stop it.
pub trait ExperimentMonitor: Sync {
    /// Step `number` (from 1) of `total` begins. `remaining` is estimated from the steps done so far.
    fn step(&mut self, number: usize, total: usize, name: &str, remaining: Option<Duration>);

    /// A step failed; others that do not need it are done meanwhile.
    fn failed(&mut self, _error: &ExperimentError) {}

    /// Other processes do what is left. `text` says which, and what to do about one that hangs.
    fn waits(&mut self, _text: &str) {}

    /// A training has finished an epoch, of `epochs`.
    fn epoch(&mut self, metrics: &EpochMetrics, epochs: u32);

    /// So many steps are skipped, because they are finished or not requested.
    fn skipped(&mut self, steps: usize);

    /// A training or a match begins. Until it ends, a request to stop makes it save its state first.
    fn resumable_begins(&mut self) {}

    fn resumable_ended(&mut self) {}

    /// A game of the present match has ended.
    fn games(&self, _progress: &MatchProgress) {}

    /// A game to learn from has ended.
    fn generated(&self, _progress: &GenerateProgress) {}

    /// A match is finished.
    fn played(&mut self, _result: &MatchResult) {}

    /// A run is finished.
    fn trained(&mut self, run: &TrainedRun, when: FinishedWhen);

    /// Whether the experiment should stop as soon as it can be resumed.
    fn stop_requested(&self) -> bool;
}

/// The purpose of a pass over an experiment's steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum PassPurpose {
    /// Its results are the experiment's.
    Results,
    /// Its results decide on the rows of another pass, and are not shown.
    Trial,
}

/// A stage of an experiment, whose time is reported.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Data,
    Training,
    Measures,
    Matches,
}

/// The times of results, by stage. They are added in the order of the keys, so that the sums do not depend on the order
/// of the steps.
pub(super) fn stage_seconds(seconds: &SortedMap<ResultKey, (Stage, f64)>) -> StageSeconds {
    let sum = |stage: Stage| seconds.values().filter(|(of, _)| *of == stage).map(|(_, seconds)| seconds).sum();
    let [data, training, measures, matches] = [Stage::Data, Stage::Training, Stage::Measures, Stage::Matches].map(sum);
    let total: f64 = data + training + measures + matches;
    StageSeconds { data, training, measures, matches, total }
}
