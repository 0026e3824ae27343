//! `fsbench samples-service`: batches in shared memory for a trainer in any language.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::ProgressBar;

use super::dataset::{warn_of_scores, warn_without_plies};
use super::print::StdoutError;
use super::progress_bar::progress;
use super::sample::SeveralData;
use super::score_unit::note_assumed;
use super::skipped::warn_skipped_samples;
use super::{Failure, Format, print_json_line};
use crate::data::formats::{FileUnit, SkippedSamples};
use crate::data::{EvalOptions, Method, Needs, ScoreUnit, Split};
use crate::pipeline::build::Filter;
use crate::service::{
    BenchReport, Layout, PrepareObserver, ReadMode, Request, ServedFile, ServiceError, Shard, ShmNaming, bench,
    prepare, run as serve,
};
use crate::units::Seed;

/// Minimum duration of a `--bench` measurement.
const BENCH_DURATION: Duration = Duration::from_secs(3);

/// Encode batches into shared memory for a trainer (protocol: src/service/PROTOCOL.md)
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    #[arg(default_value = "piece")]
    set: String,
    #[command(flatten)]
    data: SeveralData,
    /// auto: decode a binpack while it is served; built: build it first, which gives the same samples and can filter them
    #[arg(long = "read", value_name = "HOW", value_enum, default_value_t)]
    read_mode: ReadMode,
    /// What a sample is: a position with its score, or a triplet of positions
    #[arg(long, value_enum, default_value = "eval")]
    method: Method,
    /// Leave out positions before this ply, when the data are built [default: 0]
    #[arg(long, value_name = "PLY")]
    min_ply: Option<u16>,
    /// Which positions to leave out, when the data are built [default: none]
    #[arg(long, value_enum, value_name = "FILTER")]
    filter: Option<Filter>,
    /// Unit of the scores, for data that do not name it: cp, or internal:PAWN for an engine that counts PAWN units per
    /// pawn [default: internal:208 for a binpack, else cp]; batches have scores in centipawns
    #[arg(long, value_name = "UNIT")]
    from_unit: Option<ScoreUnit>,
    #[command(flatten)]
    evals: EvalOptions,
    /// eval: what a sample must have [default: a score; in a file of `dataset build`, what it was built for]
    #[arg(long, value_enum, value_name = "WHAT")]
    needs: Option<Needs>,
    /// How active features are stored: offsets and indices, or one bit per feature
    #[arg(long, value_enum, default_value = "csr")]
    layout: Layout,
    /// Samples per batch (a pqr sample holds three positions)
    #[arg(long, value_name = "N", default_value_t = Request::BATCH_SIZE)]
    batch_size: usize,
    /// Batches that shared memory holds at once, at most 200 [default: threads + 2, from 4 to 32]
    #[arg(long, value_name = "K")]
    slots: Option<usize>,
    /// Seed of the shuffle and of pqr's random moves
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Passes over the data; 0 = without end
    #[arg(long, value_name = "E", default_value_t = 1)]
    epochs: u32,
    /// Samples per pass [default: all]
    #[arg(long, value_name = "N")]
    epoch_samples: Option<u64>,
    /// Which games to use
    #[arg(long, value_enum, default_value = "all")]
    split: Split,
    /// Share of games held out for validation
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    validation: f64,
    /// Seed of the choice of validation games
    #[arg(long, value_name = "S", default_value_t = 0)]
    split_seed: u64,
    /// Number of the first batch delivered, counted from 0 over all passes
    #[arg(long, value_name = "K", default_value_t = 0)]
    start_batch: u64,
    /// Encoding threads [default: one per core]
    #[arg(long, value_name = "T", value_parser = Request::parse_threads)]
    threads: Option<usize>,
    /// Keep the order of the file
    #[arg(long)]
    no_shuffle: bool,
    /// Deliver every N-th batch, from batch I on. For N trainers: the shards 0/N to (N-1)/N have no batch in common and
    /// together hold all of them
    #[arg(long, value_name = "I/N", default_value_t)]
    shard: Shard,
    /// How consumers open the memory: unnamed = through /proc/PID/fd/N, which leaves nothing behind after a kill; named
    /// = through a file in /dev/shm, for consumers in another container or without access to /proc
    #[arg(long, value_enum, default_value_t)]
    shm: ShmNaming,
    /// Measure how fast batches are made, without a consumer
    #[arg(long)]
    bench: bool,
    /// How to print the result of --bench
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Arguments {
    fn request(&self) -> Result<Request, Failure> {
        let threads = self.threads.unwrap_or_else(Request::available_threads);
        Ok(Request {
            set: self.set.clone(),
            data: self.data.files()?,
            read_mode: self.read_mode,
            method: self.method,
            min_ply: self.min_ply,
            filter: self.filter,
            from_unit: self.from_unit,
            evals: self.evals,
            needs: self.needs,
            layout: self.layout,
            batch_size: self.batch_size,
            slots: self.slots.unwrap_or(Request::default_slots(threads)),
            seed: Seed(self.seed),
            // A measurement ends after BENCH_DURATION, not with the data.
            epochs: if self.bench { 0 } else { self.epochs },
            epoch_samples: self.epoch_samples,
            split: self.split,
            validation: self.validation,
            split_seed: Seed(self.split_seed),
            start_batch: self.start_batch,
            threads,
            shuffle: !self.no_shuffle,
            shard: self.shard,
            shm: self.shm,
        })
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Failure {
        match error {
            ServiceError::Consumer(error) => StdoutError(error).into(),
            _ if error.is_request() => Failure::request(error),
            _ => Failure::work(error),
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = arguments.request()?;
    if arguments.bench {
        let stream = prepare(request, &Notes::default())?;
        print(&bench(&stream, BENCH_DURATION)?, arguments.format)
    } else {
        Ok(serve(move || prepare(request, &Notes::default()), std::io::stdin(), &mut std::io::stdout())?)
    }
}

/// Shows on stderr what the preparation of a request finds.
#[derive(Default)]
struct Notes {
    /// The scan's progress bar, while there is one.
    bar: Mutex<Option<ProgressBar>>,
}

impl Notes {
    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrepareObserver for Notes {
    fn scanned(&self, done: u64, total: u64) {
        let template = "scanning the file {elapsed} {wide_bar} {bytes}/{total_bytes}, {left}";
        let mut bar = self.bar();
        let bar = bar.get_or_insert_with(|| progress(Some(total), template));
        bar.set_length(total);
        bar.set_position(done);
    }

    fn scan_ended(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn score_unit(&self, data: &Path, unit: FileUnit) {
        note_assumed(data, unit);
    }

    fn building(&self, data: &Path, file: &Path) {
        note!("building {} into {}", data.display(), file.display());
    }

    fn skipped(&self, data: &Path, skipped: &SkippedSamples) {
        warn_skipped_samples(data.display(), skipped);
    }

    fn opened(&self, opened: &ServedFile<'_>) {
        if let Some(manifest) = opened.manifest {
            warn_without_plies(manifest);
            for source in &manifest.sources {
                warn_of_scores(Path::new(&source.path), &source.notes);
            }
        }
        if let Some(summary) = opened.summary() {
            note!("{summary}");
        }
    }

    fn left_out(&self, samples: usize, required: &str) {
        note!("left out {samples} samples without {required}");
    }
}

fn print(report: &BenchReport, format: Format) -> Result<(), Failure> {
    match format {
        Format::Text => outln!(
            "{:.0} positions/s, {:.0} samples/s, {:.1} MB/s with {} threads ({} batches in {:.2} s; {}, vector instructions: {})",
            report.positions_per_second,
            report.samples_per_second,
            report.bytes_per_second / 1e6,
            report.threads,
            report.batches,
            report.seconds,
            report.cpu,
            report.vectors
        )
        .map_err(Failure::from),
        Format::Json => print_json_line(report).map_err(Failure::Work),
    }
}
