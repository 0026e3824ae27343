//! A consumer's request to a sample service.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::batch_order::BatchOrder;
use super::{Layout, MAX_SLOTS, ServiceError, Shard, ShmNaming};
use crate::data::formats::{Format, detect, is_compressed};
use crate::data::{DataError, DataFiles, EvalOptions, Method, Needs, Purpose, ScoreUnit, Split, SplitRule};
use crate::json;
use crate::pipeline::build::Filter;
use crate::units::Seed;

/// How samples are read from files that are not `.fsd`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadMode {
    /// A binpack is decoded while it is served, with every sample that the method can use; other files are built, with
    /// the same samples.
    #[default]
    Auto,
    /// Every file is first built into a `.fsd` file in the cache, with the method's filters.
    Built,
}

impl ReadMode {
    /// The mode in effect for these files: `Built`, unless they can be decoded while they are served. A compressed
    /// binpack can only be read from its start, so its segments cannot be decoded in any order.
    ///
    /// # Errors
    /// When a file cannot be read, its format is unknown, or only some of the files can be decoded.
    pub fn in_effect(self, data: &DataFiles) -> Result<ReadMode, DataError> {
        let is_decoded = |file: &Path| Ok(detect(file)? == Format::Binpack && !is_compressed(file)?);
        let decoded = match self {
            ReadMode::Auto => data.iter().map(is_decoded).collect::<Result<Vec<bool>, DataError>>()?,
            ReadMode::Built => Vec::new(),
        };
        match decoded.iter().position(|decoded| !decoded) {
            Some(number) if decoded.contains(&true) => Err(DataError::Input {
                input: data.files()[number].display().to_string(),
                reason: "it cannot be decoded while it is served, as the binpacks beside it can; give --read built"
                    .into(),
            }),
            None if self == ReadMode::Auto => Ok(ReadMode::Auto),
            _ => Ok(ReadMode::Built),
        }
    }
}

// Headings of the help of `fsbench samples-service` and `fsbench train`.
const DATA: &str = "Data";
const BATCHES: &str = "Batches";

/// Which samples of the data are read, and how: options of services and trainings alike.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default)]
pub struct ReadOptions {
    /// eval: unit of the scores if the data do not record it: cp, or internal:PAWN with an engine's units per pawn
    /// [default: internal:208 for a binpack or .plain, else cp]; batches have scores in centipawns
    // A training run records the unit that it assumed. It is absent if the data recorded theirs.
    #[arg(help_heading = DATA, long, value_name = "UNIT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_unit: Option<ScoreUnit>,
    /// auto: a binpack is decoded while it is read; built: it is built first, which gives the same samples and can
    /// filter them
    #[arg(help_heading = DATA, long = "read", value_name = "HOW", value_enum, default_value_t)]
    #[serde(rename = "read")]
    pub mode: ReadMode,
    /// Leave out positions before this ply, when the data are built [default: 0]
    #[arg(help_heading = DATA, long, value_name = "PLY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ply: Option<u16>,
    /// Which positions to leave out, when the data are built [default: none]
    #[arg(help_heading = DATA, long, value_enum, value_name = "FILTER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// Share of the training games that is read, above 0; games of a share are in every larger one [default: 1]
    #[arg(help_heading = DATA, long, value_name = "X")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_share: Option<f64>,
}

impl ReadOptions {
    /// What is wrong with a share of the training games, if anything.
    #[must_use]
    pub fn share_problem(share: f64) -> Option<String> {
        let is_share = share > 0.0 && share <= 1.0;
        (!is_share).then(|| format!("the share of the training games must be above 0 and at most 1, not {share}"))
    }
}

/// The options of `samples-service`, and the document that a client starts it with. The same request over the same data
/// gives the same batches, whatever `slots`, `threads` and `shm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// A TOML file, the name of a shipped set, or an inline expression
    #[arg(default_value_t = Request::default().set)]
    pub set: String,
    /// Served one after the other, as one data set.
    #[arg(skip)]
    pub data: DataFiles,
    /// What a sample is: a position with its score, or a triplet of positions
    #[arg(help_heading = DATA, long, value_enum, default_value_t = Request::default().method)]
    pub method: Method,
    #[command(flatten)]
    #[serde(flatten)]
    pub reading: ReadOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub evals: EvalOptions,
    /// eval: what a sample must have [default: a score; in a file of `dataset build`, what it was built for]
    #[arg(help_heading = DATA, long, value_enum, value_name = "WHAT")]
    pub needs: Option<Needs>,
    /// How active features are stored: offsets and indices, or one bit per feature
    #[arg(help_heading = BATCHES, long, value_enum, default_value_t)]
    pub layout: Layout,
    /// An expression with exactly one value in every position; batches then have its value as the side to move sees it,
    /// in the array `bucket`
    #[arg(help_heading = BATCHES, long, value_name = "EXPRESSION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket_rule: Option<String>,
    /// Samples per batch (a pqr sample holds three positions)
    #[arg(help_heading = BATCHES, long, value_name = "N", default_value_t = Request::BATCH_SIZE)]
    pub batch_size: usize,
    /// Batches that shared memory holds at once, at most 200 [default: threads + 2, from 4 to 32]
    #[arg(help_heading = BATCHES, long, value_name = "K")]
    pub slots: Option<usize>,
    /// Seed of the shuffle and of pqr's random moves
    #[arg(help_heading = BATCHES, long, value_name = "S", default_value_t)]
    pub seed: Seed,
    /// Passes over the data; 0 = without end
    #[arg(help_heading = BATCHES, long, value_name = "E", default_value_t = Request::default().epochs)]
    pub epochs: u32,
    /// Samples per pass [default: all]
    #[arg(help_heading = BATCHES, long, value_name = "N")]
    pub epoch_samples: Option<u64>,
    /// Which games to use
    #[arg(help_heading = DATA, long, value_enum, default_value_t = Request::default().split)]
    pub split: Split,
    /// Share of games held out for validation
    #[arg(help_heading = DATA, long, value_name = "X", default_value_t = Split::VALIDATION_SHARE)]
    pub validation: f64,
    /// Seed of the choice of validation games
    #[arg(help_heading = DATA, long, value_name = "S", default_value_t)]
    pub split_seed: Seed,
    /// Number of the first batch delivered, counted from 0 over all passes
    #[arg(help_heading = BATCHES, long, value_name = "K", default_value_t)]
    pub start_batch: u64,
    /// Encoding threads [default: one per core]
    #[arg(help_heading = BATCHES, long, value_name = "T", value_parser = Request::parse_threads,
        hide_default_value = true, default_value_t = Request::available_threads())]
    pub threads: usize,
    /// Keep the order of the file
    #[arg(help_heading = BATCHES, long = "no-shuffle", action = clap::ArgAction::SetFalse)]
    pub shuffle: bool,
    /// Deliver every N-th batch, from batch I on. For N trainers: the shards 0/N to (N-1)/N have no batch in common and
    /// together hold all of them
    #[arg(help_heading = BATCHES, long, value_name = "I/N", default_value_t)]
    pub shard: Shard,
    /// How consumers open the memory: unnamed = through /proc/PID/fd/N, which leaves nothing behind after a kill; named
    /// = through a file in /dev/shm, for consumers in another container or without access to /proc (always so on macOS
    /// and Windows)
    #[arg(help_heading = BATCHES, long, value_enum, default_value_t)]
    pub shm: ShmNaming,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            set: "piece".into(),
            data: DataFiles::default(),
            method: Method::Eval,
            reading: ReadOptions::default(),
            evals: EvalOptions::default(),
            needs: None,
            layout: Layout::default(),
            bucket_rule: None,
            batch_size: Request::BATCH_SIZE,
            slots: None,
            seed: Seed::default(),
            epochs: 1,
            epoch_samples: None,
            split: Split::All,
            validation: Split::VALIDATION_SHARE,
            split_seed: Seed::default(),
            start_batch: 0,
            threads: Request::available_threads(),
            shuffle: true,
            shard: Shard::default(),
            shm: ShmNaming::default(),
        }
    }
}

impl Request {
    /// More than any machine has cores; a larger number is taken for a typing error.
    pub const MAX_THREADS: usize = 1024;

    /// Parses the number of threads, for the command line.
    ///
    /// # Errors
    /// When the text is not a number from 1 to [`Request::MAX_THREADS`].
    pub fn parse_threads(text: &str) -> Result<usize, String> {
        let max = Request::MAX_THREADS;
        let threads = text.parse().map_err(|_| format!("it must be a number from 1 to {max}"))?;
        if (1..=max).contains(&threads) { Ok(threads) } else { Err(format!("it must be 1 to {max}")) }
    }

    /// A request for one epoch of all data, with the command's defaults.
    #[must_use]
    pub fn new(set: impl Into<String>, data: impl Into<DataFiles>, method: Method) -> Request {
        Request { set: set.into(), data: data.into(), method, ..Request::default() }
    }

    /// Default number of samples per batch, of services and trainings.
    pub const BATCH_SIZE: usize = 4_096;

    /// Batches that shared memory holds at once: by default one per thread, and some for the consumer to hold.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.unwrap_or((self.threads + 2).clamp(4, 32))
    }

    #[must_use]
    pub fn available_threads() -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    #[must_use]
    pub const fn positions_per_sample(&self) -> usize {
        match self.method {
            Method::Eval => 1,
            Method::Pqr => 3,
        }
    }

    /// Refuses numbers that no service takes, whatever its data. Every way to ask for batches leads through here.
    ///
    /// # Errors
    /// Names the number and its limits.
    pub(super) fn check(&self) -> Result<(), ServiceError> {
        let refused = |text: String| Err(ServiceError::Request(text));
        let slots = self.slots();
        if slots == 0 || slots > MAX_SLOTS {
            return refused(format!("the number of slots is {slots}; it must be 1 to {MAX_SLOTS}"));
        }
        if self.threads == 0 || self.threads > Request::MAX_THREADS {
            let most = Request::MAX_THREADS;
            return refused(format!("the number of threads is {}; it must be 1 to {most}", self.threads));
        }
        if self.batch_size == 0 {
            return refused("the batch size is 0; it must be at least 1".into());
        }
        if self.shard.index >= self.shard.of {
            return refused(format!("there is no shard {}; shards are numbered from 0", self.shard));
        }
        if self.epoch_samples == Some(0) {
            return refused("the number of samples per epoch is 0; give at least 1, or leave it out for all".into());
        }
        if let Some(problem) = self.reading.training_share.and_then(ReadOptions::share_problem) {
            return refused(problem);
        }
        if self.split == Split::Validation && self.reading.training_share.is_some() {
            return refused("a share of the training games has no effect on the split validation; leave it out".into());
        }
        if !(0.0..=1.0).contains(&self.validation) {
            return refused(format!("the validation share is {}; it must lie between 0 and 1", self.validation));
        }
        Ok(())
    }

    /// The labels that an eval sample of a file must have. A file that was built for a method is not filtered again.
    pub(super) fn needs_of(&self, purpose: Purpose) -> Needs {
        self.needs.unwrap_or(if purpose == Purpose::Any { Needs::default() } else { Needs::Any })
    }

    /// The labels that a sample must have, in words.
    pub(super) fn required(&self) -> &'static str {
        match self.method {
            Method::Eval => self.needs.unwrap_or_default().describe(),
            Method::Pqr => "a move and another legal one",
        }
    }

    /// Which games are read of each split.
    pub(super) fn split_rule(&self) -> SplitRule {
        let whole = SplitRule::new(self.split_seed, self.validation);
        whole.with_training_share(self.split_seed, self.reading.training_share.unwrap_or(1.0))
    }

    /// The order of a stream's batches over `available` samples.
    pub(super) fn batch_order(&self, available: u64) -> BatchOrder {
        BatchOrder {
            seed: self.seed,
            shuffle: self.shuffle,
            epoch_samples: self.epoch_samples.map_or(available, |limit| available.min(limit)),
            batch_size: self.batch_size.max(1) as u64,
            epochs: self.epochs,
        }
    }

    /// The arguments with which `fsbench` serves this request.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub fn arguments(&self) -> Result<[String; 3], ServiceError> {
        let document = json::to_text(self).map_err(|error| ServiceError::Request(error.to_string()))?;
        Ok(["samples-service".into(), "--request".into(), document])
    }

    /// Reads the document of [`Request::arguments`]; options that it lacks have their defaults.
    ///
    /// # Errors
    /// When the text is no such document, as a sentence.
    pub fn parse(document: &str) -> Result<Request, String> {
        json::from_text(document).map_err(|error| error.to_string())
    }
}
