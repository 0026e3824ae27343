//! A consumer's request to a sample service.

use std::ffi::OsString;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schedule::Schedule;
use super::{Layout, MAX_SLOTS, ServiceError, Shard, ShmNaming};
use crate::data::formats::{Format, detect, is_compressed};
use crate::data::{DataError, DataFiles, EvalOptions, Method, Needs, Purpose, ScoreUnit, Split};
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

/// The options of `samples-service`. The same request over the same data gives the same batches, whatever `slots`,
/// `threads` and `shm`.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// A name, a path or an expression.
    pub set: String,
    /// Served one after the other, as one data set.
    pub data: DataFiles,
    pub read_mode: ReadMode,
    pub method: Method,
    /// Leaves out positions before this ply, when the data are built; `None` = leaves out none.
    pub min_ply: Option<u16>,
    /// Which positions to leave out, when the data are built; `None` = none.
    pub filter: Option<Filter>,
    /// Unit of the scores, for files that do not name it; `None` = the usual unit of the format.
    pub from_unit: Option<ScoreUnit>,
    /// How scores in PGN comments are read.
    pub evals: EvalOptions,
    /// What an eval sample must have; `None` = a score, and in a file that was built for eval what it was built for.
    pub needs: Option<Needs>,
    pub layout: Layout,
    /// Samples per batch (a pqr sample holds three positions).
    pub batch_size: usize,
    pub slots: usize,
    pub seed: Seed,
    /// 0 = without end.
    pub epochs: u32,
    /// Samples per epoch; `None` = all of the split.
    pub epoch_samples: Option<u64>,
    pub split: Split,
    /// Share of games held out for validation.
    pub validation: f64,
    pub split_seed: Seed,
    /// Number of the first batch to deliver, counted over all epochs.
    pub start_batch: u64,
    pub threads: usize,
    /// false = in file order.
    pub shuffle: bool,
    pub shard: Shard,
    pub shm: ShmNaming,
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
        let threads = Request::available_threads();
        Request {
            set: set.into(),
            data: data.into(),
            read_mode: ReadMode::Auto,
            method,
            min_ply: None,
            filter: None,
            from_unit: None,
            evals: EvalOptions::default(),
            needs: None,
            layout: Layout::Csr,
            batch_size: Request::BATCH_SIZE,
            slots: Request::default_slots(threads),
            seed: Seed(0),
            epochs: 1,
            epoch_samples: None,
            split: Split::All,
            validation: 0.1,
            split_seed: Seed(0),
            start_batch: 0,
            threads,
            shuffle: true,
            shard: Shard::WHOLE,
            shm: ShmNaming::Unnamed,
        }
    }

    /// Default number of samples per batch, of services and trainings.
    pub const BATCH_SIZE: usize = 4_096;

    /// One slot per thread, and some for the consumer to hold.
    #[must_use]
    pub const fn default_slots(threads: usize) -> usize {
        match threads + 2 {
            0..=4 => 4,
            5..=32 => threads + 2,
            _ => 32,
        }
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
        if self.slots == 0 || self.slots > MAX_SLOTS {
            return refused(format!("the number of slots is {}; it must be 1 to {MAX_SLOTS}", self.slots));
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
        if !(0.0..=1.0).contains(&self.validation) {
            return refused(format!("the validation share is {}; it must lie between 0 and 1", self.validation));
        }
        Ok(())
    }

    /// What an eval sample of a file must have. A file that was built for a method is not filtered again.
    pub(super) fn needs_of(&self, purpose: Purpose) -> Needs {
        self.needs.unwrap_or(if purpose == Purpose::Any { Needs::default() } else { Needs::Any })
    }

    /// What a sample must have, in words.
    pub(super) fn required(&self) -> &'static str {
        match self.method {
            Method::Eval => self.needs.unwrap_or_default().describe(),
            Method::Pqr => "a move and another legal one",
        }
    }

    /// The schedule of a stream over `available` samples.
    pub(super) fn schedule(&self, available: u64) -> Schedule {
        Schedule {
            seed: self.seed,
            shuffle: self.shuffle,
            epoch_samples: self.epoch_samples.map_or(available, |limit| available.min(limit)),
            batch_size: self.batch_size.max(1) as u64,
            epochs: self.epochs,
        }
    }

    /// The command line of this request, without the program's name.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["samples-service".into(), self.set.clone().into()];
        let mut option = |name: &str, value: OsString| arguments.extend([format!("--{name}").into(), value]);
        for file in self.data.iter() {
            option("data", file.into());
        }
        option("read", value_name(&self.read_mode));
        option("method", value_name(&self.method));
        if let Some(ply) = self.min_ply {
            option("min-ply", ply.to_string().into());
        }
        if let Some(filter) = self.filter {
            option("filter", value_name(&filter));
        }
        if let Some(unit) = self.from_unit {
            option("from-unit", unit.to_string().into());
        }
        if let Some(unit) = self.evals.eval_unit {
            option("eval-unit", value_name(&unit));
        }
        if let Some(view) = self.evals.eval_view {
            option("eval-view", value_name(&view));
        }
        if let Some(needs) = self.needs {
            option("needs", value_name(&needs));
        }
        option("layout", value_name(&self.layout));
        option("batch-size", self.batch_size.to_string().into());
        option("slots", self.slots.to_string().into());
        option("seed", self.seed.0.to_string().into());
        option("epochs", self.epochs.to_string().into());
        if let Some(samples) = self.epoch_samples {
            option("epoch-samples", samples.to_string().into());
        }
        option("split", value_name(&self.split));
        option("validation", self.validation.to_string().into());
        option("split-seed", self.split_seed.0.to_string().into());
        option("start-batch", self.start_batch.to_string().into());
        option("threads", self.threads.to_string().into());
        if self.shard != Shard::WHOLE {
            option("shard", self.shard.to_string().into());
        }
        if self.shm != ShmNaming::Unnamed {
            option("shm", value_name(&self.shm));
        }
        if !self.shuffle {
            arguments.push("--no-shuffle".into());
        }
        arguments
    }
}

/// A value as the command line writes it.
fn value_name(value: &impl clap::ValueEnum) -> OsString {
    value.to_possible_value().map_or_else(OsString::new, |value| value.get_name().into())
}
