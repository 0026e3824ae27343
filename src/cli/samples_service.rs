//! `fsbench samples-service`: batches in shared memory for a trainer in any language.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::ProgressBar;

use super::dataset::{warn_of_scores, warn_of_sources};
use super::print::StdoutError;
use super::progress_bar::progress;
use super::sample::SeveralData;
use super::score_unit::note_assumed;
use super::skipped::warn_skipped_samples;
use super::{Failure, ResultFormat, print_json_line};
use crate::data::formats::{FileUnit, SkippedSamples};
use crate::service::{BenchReport, PrepareObserver, Request, ServedFile, ServiceError, bench, prepare, run as serve};

/// Minimum duration of a `--bench` measurement.
const BENCH_DURATION: Duration = Duration::from_secs(3);

/// Encode batches into shared memory for a trainer (see `fsbench help protocol`)
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// All options as one JSON document, as programs pass them: the options' names with _ for -, but `data` (a file or
    /// a list), `shuffle`: true or false, `shard`: {"index": I, "of": N} and `from_unit`: {"internal": {"pawn": PAWN}}
    #[arg(long = "request", value_name = "JSON", value_parser = Request::parse, exclusive = true)]
    document: Option<Request>,
    /// Measure how fast batches are made, without a consumer
    #[arg(long)]
    bench: bool,
    /// How to print the result of --bench
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    data: SeveralData,
}

impl Arguments {
    fn request(&self) -> Result<Request, Failure> {
        if let Some(document) = &self.document {
            return Ok(document.clone());
        }
        let mut request = Request { data: self.data.files()?, ..self.request.clone() };
        if self.bench {
            // A measurement ends after BENCH_DURATION, not with the data.
            request.epochs = 0;
        }
        Ok(request)
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

/// Shows the findings of a request's preparation on stderr.
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
            warn_of_sources(manifest);
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

fn print(report: &BenchReport, format: ResultFormat) -> Result<(), Failure> {
    match format {
        ResultFormat::Text => outln!(
            "{:.0} positions/s, {:.0} samples/s, {:.1} MB/s with {} threads ({} batches in {:.2} s; {}, vector \
             instructions: {})",
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
        ResultFormat::Json => print_json_line(report).map_err(Failure::Work),
    }
}
