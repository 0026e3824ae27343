//! The work behind an experiment's steps, as a trait: so the order of steps and the resumption can be tested without
//! data, a trainer or an engine.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::equal_speed::EqualSpeedRequest;
use super::match_settings::MatchMeasure;
use super::runner_options::ExperimentMonitor;
use super::steps::NetworkMeasure;
use crate::data::ScoreUnit;
use crate::features::{EncoderKind, Identity};
use crate::generate::GenerateGoal;
use crate::measure::{ScreenOptions, SpeedOptions};
use crate::net::{NetError, NetFile};
use crate::pipeline::generation::GenerateSettings;
use crate::pipeline::{BuildOptions, WeightedInput};
use crate::play::{BookPart, Sprt};
use crate::record::{
    CostRatio, EqualSpeedRecord, GeneratedGames, MatchKind, MatchRecord, OwnFigures, ScreenRecord, ScreenedCosts,
    ShardRecord, SpeedRecord, UpdatesRecord, ValidationRecord,
};
use crate::train::{TrainConfig, TrainOutcome, TrainSettings};
use crate::units::Seed;

/// The error of a step's own work.
pub type StepError = Box<dyn std::error::Error + Send + Sync>;

/// A feature set that was found and parsed.
#[derive(Clone, Debug)]
pub struct ResolvedSet {
    pub name: String,
    pub about: Option<String>,
    pub identity: Identity,
    pub encoder: EncoderKind,
    /// The self-contained definition.
    pub definition: String,
}

/// A request for the samples of one method.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRequest {
    /// Files of games or samples, with the unit of the scores where a file does not record it.
    pub inputs: Vec<WeightedInput>,
    pub options: BuildOptions,
}

/// A data set ready to train on.
#[derive(Clone, Debug)]
pub struct PreparedData {
    /// The `.fsd` file.
    pub path: PathBuf,
    /// Hash of the samples.
    pub hash: String,
    pub score_unit: ScoreUnit,
}

/// A training: to start, to resume from the folder's checkpoint or, if it is finished, to validate.
#[derive(Clone, Debug)]
pub struct TrainRequest<'a> {
    pub config: &'a TrainConfig,
    pub folder: PathBuf,
}

/// A trained network and the games to measure it on.
#[derive(Clone, Debug)]
pub struct NetRequest {
    /// Of its training, as the folder.
    pub config: TrainConfig,
    pub folder: PathBuf,
    /// The quantised network.
    pub network: PathBuf,
    /// The float network that it was quantised from.
    pub weights: PathBuf,
    /// File of the games.
    pub data: PathBuf,
    /// Largest number of games to use; `None` = all.
    pub games: Option<u64>,
}

impl NetRequest {
    /// Reads the quantised network.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self) -> Result<NetFile, NetError> {
        NetFile::load(&self.network)
    }
}

/// A match to play, or to continue from the folder's journal.
#[derive(Clone, Debug)]
pub struct MatchRequest<'a> {
    pub kind: MatchKind,
    /// The network of the set in question, and the reference set's network.
    pub networks: [PathBuf; 2],
    /// Their names in the games.
    pub names: [String; 2],
    pub settings: &'a MatchMeasure,
    /// The book; `None` = the openings that come with fsbench.
    pub openings: Option<PathBuf>,
    /// Game pairs; fewer if half the interval's width ends the match.
    pub pairs: u64,
    /// The openings that are played; `None` = all.
    pub book_part: Option<BookPart>,
    /// Ends the match once it has decided.
    pub sprt: Option<Sprt>,
    /// Seed of the order of openings.
    pub seed: Seed,
    /// The user's figures of both, which equal cost goes by.
    pub own: [OwnFigures; 2],
    /// The cost of a node, if a step has measured it already.
    pub cost: Option<CostRatio>,
    /// Gets the journal and the games.
    pub folder: PathBuf,
}

/// The network that a loop starts with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopStart {
    /// The name of its set.
    pub set: String,
    /// Whether the loop's trainings can begin with it.
    pub has_shape: bool,
}

/// Games of a network against itself, to play or to go on with.
#[derive(Clone, Debug)]
pub struct GenerationRequest<'a> {
    pub network: &'a Path,
    pub settings: &'a GenerateSettings,
    pub goal: GenerateGoal,
    /// Size of the hash table in MiB.
    pub hash: u32,
    /// Games at once; `None` = one per core.
    pub concurrency: Option<u16>,
    /// The file of the games; a journal stands beside it until they are all played.
    pub out: &'a Path,
}

/// The conditions of an experiment's matches, beside its settings and networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchSetup {
    /// BLAKE3 hash of the openings, in hexadecimal.
    pub openings: String,
    /// Number of openings.
    pub count: u64,
    /// Digest of the search.
    pub search: String,
}

/// Does the work of an experiment's steps.
pub trait Executor {
    /// Finds and parses a feature set.
    ///
    /// # Errors
    /// When there is no such set or its definition is wrong.
    fn resolve_set(&self, request: &str) -> Result<ResolvedSet, StepError>;

    /// Whether there is the trainer that the settings name.
    ///
    /// # Errors
    /// When it is missing.
    fn check_trainer(&self, settings: &TrainSettings) -> Result<(), StepError>;

    /// Opens or builds a data set.
    ///
    /// # Errors
    /// When the games cannot be read or the samples cannot be written.
    fn prepare_data(&mut self, request: &DataRequest) -> Result<PreparedData, StepError>;

    /// Writes the network that a loop of such trainings starts with; without a path, only checks that there is one.
    ///
    /// # Errors
    /// When there is none, or it is of another set or shape.
    fn starting_network(&mut self, config: &TrainConfig, path: Option<&Path>) -> Result<LoopStart, StepError>;

    /// Plays games of a network against itself; `None` if the monitor stopped it.
    ///
    /// # Errors
    /// When the games cannot be played or written.
    fn generate(
        &mut self,
        request: &GenerationRequest<'_>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<GeneratedGames>, StepError>;

    /// Trains to the end and leaves `outcome.json` in the folder; `None` if the monitor stopped the training.
    ///
    /// # Errors
    /// When the training fails.
    fn train(
        &mut self,
        request: &TrainRequest<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<TrainOutcome>, StepError>;

    /// Validates the network of a finished training, game by game.
    ///
    /// # Errors
    /// When the validation fails.
    fn validation(&mut self, request: &TrainRequest<'_>) -> Result<ValidationRecord, StepError>;

    /// The sizes of sets with networks of `l1` neurons, on the games of a file.
    ///
    /// # Errors
    /// When the games cannot be read.
    fn screen(
        &mut self,
        sets: &[&str],
        data: &Path,
        limits: ScreenOptions,
        l1: usize,
    ) -> Result<Vec<ScreenRecord>, StepError>;

    /// What sets cost that [`Executor::screen`] does not refuse, and what is proved of them.
    ///
    /// # Errors
    /// When the games cannot be read.
    fn screened_costs(&mut self, sets: &[&str], data: &Path) -> Result<Vec<ScreenedCosts>, StepError>;

    /// # Errors
    /// When the measure fails.
    fn updates(&mut self, set: &str, data: &Path, games: Option<u64>) -> Result<UpdatesRecord, StepError>;

    /// Takes a measure of a network, and returns its record as JSON.
    ///
    /// # Errors
    /// When the measure fails.
    fn measure_network(&mut self, measure: &NetworkMeasure, request: &NetRequest) -> Result<Value, StepError>;

    /// A number for every feature of a network's set: how much its row matters.
    ///
    /// # Errors
    /// When the network or the games cannot be read.
    fn row_importance(&mut self, request: &NetRequest) -> Result<Vec<f64>, StepError>;

    /// Merges the king squares of a network into each of these numbers of buckets: a number for every square.
    ///
    /// # Errors
    /// When the network or the games cannot be read, or it has no rows for each king square.
    fn king_buckets(&mut self, request: &NetRequest, counts: &[usize]) -> Result<Vec<Vec<i32>>, StepError>;

    /// Times a network, and by turns with the one `beside` it.
    ///
    /// # Errors
    /// When the measure fails.
    fn speed(
        &mut self,
        request: &NetRequest,
        beside: Option<&Path>,
        timing: SpeedOptions,
    ) -> Result<SpeedRecord, StepError>;

    /// Finds the width at which a set is as fast as a reference, or times a network beside it.
    ///
    /// # Errors
    /// When the measure fails.
    fn equal_speed(&mut self, request: &EqualSpeedRequest<'_>) -> Result<EqualSpeedRecord, StepError>;

    /// Reads a book, or the openings that come with fsbench; of `part`, if it is given.
    ///
    /// # Errors
    /// When the book cannot be used.
    fn match_setup(
        &self,
        openings: Option<&Path>,
        plies: Option<u16>,
        part: Option<BookPart>,
    ) -> Result<MatchSetup, StepError>;

    /// Measures the cost of a node of a match at equal cost; `None` if the monitor stopped it.
    ///
    /// # Errors
    /// When a network cannot play.
    fn match_cost(
        &mut self,
        request: &MatchRequest<'_>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<CostRatio>, StepError>;

    /// Plays the pairs of these numbers (from 0) of a match; `None` if the monitor stopped it.
    ///
    /// # Errors
    /// When the match cannot be played.
    fn play_shard(
        &mut self,
        request: &MatchRequest<'_>,
        pairs: Range<u64>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<ShardRecord>, StepError>;

    /// Plays a match to its end, taking over the games that its shards have played; `None` if the monitor stopped it.
    ///
    /// # Errors
    /// When the match cannot be played.
    fn play(
        &mut self,
        request: &MatchRequest<'_>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<MatchRecord>, StepError>;
}
