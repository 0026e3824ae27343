//! Makes a request ready: resolves its feature set, opens its data, and builds data that are not in a `.fsd` file.

use std::path::Path;

use super::{PreparedStream, ReadMode, Request, ServiceError, TripletCheck};
use crate::data::formats::binpack::{Segments, UsableSamples};
use crate::data::formats::{FileUnit, score_unit};
use crate::data::{Method, Needs, ScoreUnit, Split};
use crate::features::FeatureSet;
use crate::pipeline::{BuildOptions, Manifest, default_cache, open_or_build_with};

/// Hears what the preparation of a request finds. Every method does nothing by default; `()` ignores all.
pub trait PrepareObserver: Sync {
    /// Bytes of a binpack that were scanned so far, and its length. Called on several threads.
    fn scanned(&self, _done: u64, _total: u64) {}

    /// The scan of a binpack is over, successful or not.
    fn scan_ended(&self) {}

    /// The unit of the scores of `data`. Not called for pqr, which needs no scores.
    fn score_unit(&self, _data: &Path, _unit: FileUnit) {}

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

/// The unit of the data's scores.
fn unit(request: &Request, observer: &dyn PrepareObserver) -> Result<ScoreUnit, ServiceError> {
    let known = score_unit(&request.data, None, request.from_unit)?;
    if request.method == Method::Eval {
        observer.score_unit(&request.data, known);
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
    let progress = |done, total| observer.scanned(done, total);
    let segments = Segments::open(&request.data, usable, request.threads, cache.as_deref(), &progress);
    observer.scan_ended();
    let unit = unit(&request, observer)?;
    PreparedStream::from_binpack(request, set, segments?, unit)
}

/// Refuses the options that filter samples when they are built; `reason` says why they would have no effect.
fn refuse_filters(request: &Request, reason: &str) -> Result<(), ServiceError> {
    let given = [(request.min_ply.is_some(), "--min-ply"), (request.filter.is_some(), "--filter")];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => {
            Err(ServiceError::Request(format!("{option} has no effect: {} {reason}", request.data.display())))
        }
        None => Ok(()),
    }
}

fn prepare_built(
    request: Request,
    set: FeatureSet,
    observer: &dyn PrepareObserver,
) -> Result<PreparedStream, ServiceError> {
    unit(&request, observer)?;
    let needs = request.needs.filter(|_| request.method == Method::Eval).unwrap_or_default();
    let mut options = BuildOptions { needs, ..BuildOptions::new(request.method) };
    options.min_ply = request.min_ply.unwrap_or(options.min_ply);
    options.filter = request.filter.unwrap_or(options.filter);
    let data = open_or_build_with(&request.data, request.from_unit, &options, None)?;
    if data.path() == request.data {
        refuse_filters(&request, "is built already; give the option to `dataset build`")?;
    }
    let manifest = Manifest::of(&data);
    // A training's second service, which validates, need not repeat the warnings.
    if let Ok(manifest) = &manifest
        && request.split != Split::Validation
    {
        observer.manifest(manifest);
    }
    let has_triplets = manifest.is_ok_and(|manifest| {
        manifest.options.is_some_and(|options| options.method == Method::Pqr && options.min_moves >= 2)
    });
    let triplet_check = if has_triplets { TripletCheck::DoneByBuild } else { TripletCheck::Needed };
    PreparedStream::new(request, set, data, triplet_check)
}
