//! `fsbench samples-service`: batches in shared memory for a trainer in any language.

use std::path::Path;
use std::time::Duration;

use super::dataset::{progress, warn_without_plies};
use super::print::StdoutError;
use super::sample::Data;
use super::score_unit::note_assumed;
use super::{Failure, Format, print_json_line};
use crate::data::formats::binpack::{Pieces, Usable};
use crate::data::formats::{self, detect, is_compressed, score_unit};
use crate::data::{DataError, Method, Needs, ScoreUnit, Split};
use crate::features::FeatureSet;
use crate::pipeline::{BuildError, BuildOptions, Manifest, default_cache, open_or_build_with};
use crate::service::{
    BenchReport, Layout, PreparedStream, ReadMode, Request, ServiceError, Shard, ShmNaming, bench, run as serve,
};
use crate::units::Seed;

/// How long `--bench` measures, at least.
const BENCH: Duration = Duration::from_secs(3);

/// Encode batches into shared memory for a trainer (protocol: src/service/PROTOCOL.md)
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    #[arg(default_value = "piece")]
    set: String,
    #[command(flatten)]
    data: Data,
    /// auto: a binpack is decoded while it is served, every sample of it; built: the method's filters apply to it, too
    #[arg(long = "read", alias = "source", value_name = "HOW", value_enum, default_value_t)]
    read_mode: ReadMode,
    /// What a sample is: a position with its score, or a triplet of positions
    #[arg(long, value_enum, default_value = "eval")]
    method: Method,
    /// Leave out positions before this ply when the data are built [default: 20 for eval, 0 for pqr]
    #[arg(long, value_name = "PLY")]
    min_ply: Option<u16>,
    /// Unit of the scores, where the data do not say it: cp, or internal:PAWN with an engine's units a pawn [default:
    /// internal:208 of a binpack, else cp]; batches have them in centipawns
    #[arg(long, value_name = "UNIT")]
    from_unit: Option<ScoreUnit>,
    /// eval: what a sample must hold [default: a score of what is built, a score or a result of samples]
    #[arg(long, value_enum, value_name = "WHAT")]
    needs: Option<Needs>,
    /// How active features are written: offsets and indices, or one bit a feature
    #[arg(long, value_enum, default_value = "csr")]
    layout: Layout,
    /// Samples a batch (a pqr sample holds three positions)
    #[arg(long, value_name = "N", default_value_t = Request::BATCH_SIZE)]
    batch_size: usize,
    /// Batches that fit into shared memory at once, 200 at most [default: threads + 2, at least 4]
    #[arg(long, value_name = "K")]
    slots: Option<usize>,
    /// Root of the shuffle and of pqr's random moves
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Passes over the data; 0 = without end
    #[arg(long, value_name = "E", default_value_t = 1)]
    epochs: u32,
    /// Samples a pass [default: all]
    #[arg(long, value_name = "N")]
    epoch_samples: Option<u64>,
    /// Which games
    #[arg(long, value_enum, default_value = "all")]
    split: Split,
    /// Share of games kept for validation
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    validation: f64,
    /// Root of the choice of validation games
    #[arg(long, value_name = "S", default_value_t = 0)]
    split_seed: u64,
    /// Number of the first batch delivered, counted from 0 over all passes
    #[arg(long, value_name = "K", default_value_t = 0)]
    start_batch: u64,
    /// Encoding threads [default: one a core]
    #[arg(long, value_name = "T", value_parser = Request::parse_threads)]
    threads: Option<usize>,
    /// Keep the order of the file
    #[arg(long)]
    no_shuffle: bool,
    /// Deliver every N-th batch from number I on, for several trainers: the shards 0/N to (N-1)/N share nothing and hold
    /// everything together
    #[arg(long, value_name = "I/N", default_value_t)]
    shard: Shard,
    /// How consumers find the memory: unnamed = /proc/PID/fd/N, nothing is left whoever is killed; named = a file in
    /// /dev/shm, for consumers in another container or without access to /proc
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
            data: self.data.path()?,
            read_mode: self.read_mode,
            method: self.method,
            min_ply: self.min_ply,
            from_unit: self.from_unit,
            needs: self.needs,
            layout: self.layout,
            batch_size: self.batch_size,
            slots: self.slots.unwrap_or(Request::default_slots(threads)),
            seed: Seed(self.seed),
            // A measurement ends by the clock.
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
        let prepared = prepare(request)?;
        print(&bench(&prepared, BENCH)?, arguments.format)
    } else {
        serve(move || prepare(request), std::io::stdin(), &mut std::io::stdout())
    }
}

/// Opens what the request names; builds the data where they are no `.fsd` file.
fn prepare(request: Request) -> Result<PreparedStream, Failure> {
    let set = FeatureSet::resolve(&request.set).map_err(Failure::request)?;
    // Where a compressed one's pieces stand, only those who read it from the start can tell.
    let direct_from = |path: &Path| -> Result<bool, DataError> {
        Ok(detect(path)? == formats::Format::Binpack && !is_compressed(path)?)
    };
    let prepared = match request.read_mode {
        ReadMode::Auto if direct_from(&request.data).map_err(refused)? => {
            if request.min_ply.is_some() {
                return Err(built_already(&request, "is served as it is: give --read built to have it filtered"));
            }
            direct(request, set)?
        }
        ReadMode::Auto | ReadMode::Built => built(request, set)?,
    };
    if prepared.unusable > 0 {
        note!("left out {} samples without {}", prepared.unusable, wanted(&prepared));
    }
    Ok(prepared)
}

fn wanted(prepared: &PreparedStream) -> &'static str {
    let Request { method, needs, .. } = prepared.request();
    match method {
        Method::Eval => needs.unwrap_or(Needs::Any).describe(),
        Method::Pqr => "a move and another legal one",
    }
}

fn refused(error: impl Into<BuildError>) -> Failure {
    let error = error.into();
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

/// The unit of the data's scores; says so where it was only assumed.
fn unit(request: &Request) -> Result<ScoreUnit, Failure> {
    let known = score_unit(&request.data, None, request.from_unit).map_err(refused)?;
    if request.method == Method::Eval {
        note_assumed(&request.data, known);
    }
    Ok(known.unit)
}

fn direct(request: Request, set: FeatureSet) -> Result<PreparedStream, Failure> {
    let bar = progress(Some(0), "looking through the file {elapsed} {wide_bar} {bytes}/{total_bytes}, {eta} left");
    let show = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let cache = default_cache().ok();
    let usable = Usable::for_method(request.method, request.needs.unwrap_or(Needs::Any));
    let pieces = Pieces::open(&request.data, usable, request.threads, cache.as_deref(), &show);
    bar.finish_and_clear();
    let unit = unit(&request)?;
    Ok(PreparedStream::direct(request, set, pieces.map_err(refused)?, unit)?)
}

fn built_already(request: &Request, why: &str) -> Failure {
    Failure::request(anyhow::anyhow!("--min-ply cannot be heeded: {} {why}", request.data.display()))
}

fn built(request: Request, set: FeatureSet) -> Result<PreparedStream, Failure> {
    unit(&request)?;
    let needs = request.needs.filter(|_| request.method == Method::Eval).unwrap_or_default();
    let mut options = BuildOptions { needs, ..BuildOptions::new(request.method) };
    options.min_ply = request.min_ply.unwrap_or(options.min_ply);
    let data = open_or_build_with(&request.data, request.from_unit, &options, None).map_err(refused)?;
    if request.min_ply.is_some() && data.path() == request.data {
        return Err(built_already(&request, "is built already; give it to `dataset build`"));
    }
    // Whoever validates trains, too, and was told then.
    if let Ok(manifest) = Manifest::of(&data)
        && request.split != Split::Validation
    {
        warn_without_plies(&manifest);
    }
    // Built to hold positions with at least two legal moves: no need to look at each.
    let triplets = Manifest::of(&data).is_ok_and(|manifest| {
        manifest.options.is_some_and(|options| options.method == Method::Pqr && options.min_moves >= 2)
    });
    Ok(PreparedStream::new(request, set, data, triplets)?)
}

fn print(report: &BenchReport, format: Format) -> Result<(), Failure> {
    match format {
        Format::Text => outln!(
            "{:.0} positions/s, {:.0} samples/s, {:.1} MB/s with {} threads ({} batches in {:.2} s)",
            report.positions_per_second,
            report.samples_per_second,
            report.bytes_per_second / 1e6,
            report.threads,
            report.batches,
            report.seconds
        )
        .map_err(Failure::from),
        Format::Json => print_json_line(report).map_err(Failure::Work),
    }
}
