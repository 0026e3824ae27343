//! Makes a request ready: resolves its feature set, opens its data, and builds data that are not in a `.fsd` file.

use std::path::Path;

use super::{MappedFiles, PreparedStream, ReadMode, Request, ServiceError, TripletCheck};
use crate::data::formats::binpack::{Segments, UsableSamples};
use crate::data::formats::{FileUnit, SkippedSamples, score_unit};
use crate::data::{Method, Needs, ScoreUnit, Split};
use crate::features::FeatureSet;
use crate::pipeline::{BuildOptions, Manifest, WeightedInput, default_cache, open_unchecked_or_build};

/// Hears what the preparation of a request finds. Every method does nothing by default; `()` ignores all.
pub trait PrepareObserver: Sync {
    /// Bytes of a binpack that were scanned so far, and its length. Called on several threads.
    fn scanned(&self, _done: u64, _total: u64) {}

    /// The scan of a binpack is over, successful or not.
    fn scan_ended(&self) {}

    /// The unit of the scores of `data`. Not called for pqr, which needs no scores.
    fn score_unit(&self, _data: &Path, _unit: FileUnit) {}

    /// Broken parts of `data` are left out.
    fn skipped(&self, _data: &Path, _skipped: &SkippedSamples) {}

    /// What is known of the `.fsd` file that is served.
    fn manifest(&self, _manifest: &Manifest) {}

    /// `samples` samples of the split are not used, because they lack `required`.
    fn left_out(&self, _samples: usize, _required: &str) {}
}

impl PrepareObserver for () {}

/// Opens the request's feature set and data.
///
/// # Errors
/// When the set or the data cannot be read, the data cannot be built, an option has no effect, or nothing can be
/// served.
pub fn prepare(request: Request, observer: &dyn PrepareObserver) -> Result<PreparedStream, ServiceError> {
    let set = FeatureSet::resolve(&request.set)?;
    let stream = match request.read_mode.in_effect(&request.data)? {
        ReadMode::Auto => {
            refuse_filters(&request, "is decoded without a filter; give --read built to filter it")?;
            prepare_binpack(request, set, observer)?
        }
        ReadMode::Built => prepare_built(request, set, observer)?,
    };
    if stream.unusable > 0 {
        observer.left_out(stream.unusable, required(stream.request()));
    }
    Ok(stream)
}

/// What a sample of the request must have.
fn required(request: &Request) -> &'static str {
    match request.method {
        Method::Eval => request.needs.unwrap_or(Needs::Any).describe(),
        Method::Pqr => "a move and another legal one",
    }
}

/// The unit of a file's scores.
fn unit(request: &Request, data: &Path, observer: &dyn PrepareObserver) -> Result<ScoreUnit, ServiceError> {
    let known = score_unit(data, None, request.from_unit)?;
    if request.method == Method::Eval {
        observer.score_unit(data, known);
    }
    Ok(known.unit)
}

fn prepare_binpack(
    request: Request,
    set: FeatureSet,
    observer: &dyn PrepareObserver,
) -> Result<PreparedStream, ServiceError> {
    let cache = default_cache().ok();
    let usable = UsableSamples::for_method(request.method, request.needs.unwrap_or(Needs::Any));
    let lengths = request.data.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.len()));
    let (total, mut scanned, mut samples) = (lengths.sum(), 0, 0);
    let mut all = Vec::with_capacity(request.data.files().len());
    for file in request.data.iter() {
        let progress = |done, _| observer.scanned(scanned + done, total);
        let segments = Segments::open(file, usable, request.threads, cache.as_deref(), &progress);
        let segments =
            segments.and_then(|segments| segments.following(samples)).inspect_err(|_| observer.scan_ended())?;
        scanned += file.metadata().map_or(0, |metadata| metadata.len());
        samples += segments.samples();
        // A training's second service, which validates, need not repeat the warnings.
        if request.split != Split::Validation && !segments.skipped().is_empty() {
            observer.skipped(file, segments.skipped());
        }
        all.push(segments);
    }
    observer.scan_ended();
    // Binpacks record no unit, so that of all is the same.
    let units = request.data.iter().map(|file| unit(&request, file, observer)).collect::<Result<Vec<_>, _>>()?;
    let unit = units.first().copied().unwrap_or(ScoreUnit::Centipawns);
    PreparedStream::from_binpack(request, set, all, unit)
}

/// Refuses the options that filter samples when they are built; `reason` says why they would have no effect.
fn refuse_filters(request: &Request, reason: &str) -> Result<(), ServiceError> {
    let given = [(request.min_ply.is_some(), "--min-ply"), (request.filter.is_some(), "--filter")];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(ServiceError::Request(format!("{option} has no effect: {} {reason}", request.data))),
        None => Ok(()),
    }
}

fn prepare_built(
    request: Request,
    set: FeatureSet,
    observer: &dyn PrepareObserver,
) -> Result<PreparedStream, ServiceError> {
    let needs = request.needs.filter(|_| request.method == Method::Eval).unwrap_or_default();
    let mut options = BuildOptions { needs, ..BuildOptions::new(request.method) };
    options.min_ply = request.min_ply.unwrap_or(options.min_ply);
    options.filter = request.filter.unwrap_or(options.filter);
    let mut files = Vec::with_capacity(request.data.files().len());
    for path in request.data.iter() {
        unit(&request, path, observer)?;
        let input = WeightedInput { unit: request.from_unit, ..WeightedInput::file(path) };
        let data = open_unchecked_or_build(&[input], &options, None)?;
        if data.path() == path {
            refuse_filters(&request, "is built already; give the option to `dataset build`")?;
        }
        let manifest = Manifest::of(&data);
        // Likewise said once.
        if let Ok(manifest) = &manifest
            && request.split != Split::Validation
        {
            observer.manifest(manifest);
            if data.path() != path {
                manifest.sources.iter().for_each(|source| observer.skipped(path, &source.skipped_samples));
            }
        }
        let has_triplets = manifest.is_ok_and(|manifest| {
            manifest.options.is_some_and(|options| options.method == Method::Pqr && options.min_moves >= 2)
        });
        files.push((data, if has_triplets { TripletCheck::DoneByBuild } else { TripletCheck::Needed }));
    }
    PreparedStream::new(request, set, MappedFiles::new(files)?)
}
