//! The steps of a learning loop beside its trainings: what they are planned as, and what they have made. Their files
//! stand in the results folder, where the loop's users look for them.

use std::path::{Path, PathBuf};

use super::{Gate, Generate, PlanStep, StartNetwork, Step};
use crate::experiment::executor::{LoopStart, StepError};
use crate::experiment::runner::Runner;
use crate::generate::GenerateGoal;
use crate::pipeline::generation::GenerateSettings;
use crate::play::Sprt;
use crate::record::{GeneratedGames, MatchRecord};
use crate::train::TrainConfig;
use crate::units::Seed;

/// A file and the hash of its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedFile {
    pub path: PathBuf,
    pub hash: String,
}

/// The steps of one pass of a loop; each may be absent.
#[derive(Clone, Debug, Default)]
pub struct SelfPlaySteps {
    pub start: Option<PlannedStartNetwork>,
    pub generation: Option<PlannedGeneration>,
    pub gate: Option<PlannedGate>,
}

/// The network that plays a loop's first games.
#[derive(Clone, Debug)]
pub struct PlannedStartNetwork {
    /// Of the loop's trainings, without data.
    pub config: TrainConfig,
    /// Its file in the results folder.
    pub file: PathBuf,
}

/// Games of a network against itself.
#[derive(Clone, Debug)]
pub struct PlannedGeneration {
    /// The step in words.
    pub name: String,
    pub network: HashedFile,
    pub settings: GenerateSettings,
    /// Hash of the book.
    pub book: Option<String>,
    pub goal: GenerateGoal,
    /// Their file in the results folder.
    pub file: PathBuf,
}

/// A match of two networks of a loop, under the conditions of the experiment's `[match]`.
#[derive(Clone, Debug)]
pub struct PlannedGate {
    /// Of the network in question, and of the one that it plays.
    pub names: [String; 2],
    pub networks: [HashedFile; 2],
    /// Ends the match once it has decided.
    pub sprt: Option<Sprt>,
    /// Seed of the order of openings.
    pub seed: Seed,
    /// Its folder in the results folder. The network in question is copied into it.
    pub folder: PathBuf,
}

/// What the steps of a pass have made.
#[derive(Clone, Debug, Default)]
pub struct SelfPlayResults {
    pub start: Option<(HashedFile, LoopStart)>,
    /// The file of the games.
    pub games: Option<(PathBuf, GeneratedGames)>,
    /// The match and its time.
    pub gate: Option<(MatchRecord, f64)>,
}

impl SelfPlaySteps {
    pub fn steps(&self) -> Vec<PlanStep> {
        let start = self.start.as_ref().map(|_| StartNetwork.step());
        let generation = self.generation.as_ref().map(|_| Generate.step());
        let gate = self.gate.as_ref().map(|_| Gate.step());
        [start, generation, gate].into_iter().flatten().collect()
    }
}

/// The part of the plan that a step is about.
pub fn planned<T>(part: Option<&T>) -> Result<&T, StepError> {
    part.ok_or_else(|| "the step is not planned".into())
}

/// Makes the folder of a file.
pub fn make_folder_of(file: &Path) -> Result<(), StepError> {
    Ok(file.parent().map_or(Ok(()), std::fs::create_dir_all)?)
}

impl Runner<'_> {
    /// A file or folder of the results folder.
    pub(super) fn in_results(&self, name: &Path) -> PathBuf {
        self.options.out.join(name)
    }

    /// The time of a step whose result is known.
    pub(super) fn seconds_of(&self, step: &PlanStep) -> f64 {
        self.seconds.get(&self.key(step)).map_or(0.0, |(_, seconds)| *seconds)
    }
}
