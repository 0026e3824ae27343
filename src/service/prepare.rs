//! Makes a request ready: resolves its feature set, opens its data, and builds data that are not in a `.fsd` file.

use std::path::{Path, PathBuf};

use super::{MappedFiles, PreparedStream, ReadMode, ReadOptions, Request, ServiceError};
use crate::data::formats::binpack::{Segments, UsableSamples};
use crate::data::formats::{FileUnit, SkippedSamples, score_unit};
use crate::data::{Fsd, Method, Purpose, ScoreUnit, Split};
use crate::features::FeatureSet;
use crate::pipeline::build::set_units;
use crate::pipeline::{
    BuildOptions, CacheEvent, DataOrigin, Manifest, OpenedData, WeightedInput, default_cache, open_unchecked_or_build,
};

/// Hears the findings of a request's preparation. Every method does nothing by default; `()` ignores all.
pub trait PrepareObserver: Sync {
    /// Bytes of a binpack that were scanned so far, and its length. Called on several threads.
    fn scanned(&self, _done: u64, _total: u64) {}

    /// The scan of a binpack is over, successful or not.
    fn scan_ended(&self) {}

    /// The unit of the scores of `data`. Not called for pqr, which needs no scores.
    fn score_unit(&self, _data: &Path, _unit: FileUnit) {}

    /// `data` are being built into a file of the cache, which may take minutes.
    fn building(&self, _data: &Path, _file: &Path) {}

    /// The build has read `done` of the `total` bytes of its inputs.
    fn built(&self, _done: u64, _total: u64) {}

    /// A file of the data is open. Not called for a binpack that is decoded while it is served.
    fn opened(&self, _file: &ServedFile<'_>) {}

    /// Broken parts of `data` are left out.
    fn skipped(&self, _data: &Path, _skipped: &SkippedSamples) {}

    /// `samples` samples of the split are not used, because they lack `required`.
    fn left_out(&self, _samples: usize, _required: &str) {}
}

impl PrepareObserver for () {}

/// A `.fsd` file that is served.
pub struct ServedFile<'a> {
    /// The file of the request: this file, or the source it was built from.
    pub data: &'a Path,
    pub file: &'a Fsd,
    pub origin: DataOrigin,
    /// The known facts about it; `None` without a manifest.
    pub manifest: Option<&'a Manifest>,
}

impl ServedFile<'_> {
    /// The samples that the build kept and left out, and where the file is, in words; `None` for a file that is served
    /// as it is.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        let when = match self.origin {
            DataOrigin::Input => return None,
            DataOrigin::Cached => "built before into",
            DataOrigin::Built => "built into",
        };
        let path = self.file.path();
        let megabytes = path.metadata().map_or(0, |metadata| metadata.len()) as f64 / 1e6;
        let data = self.data.display();
        let kept = self.manifest?.summary();
        Some(format!("{data}: {kept}; {when} {} ({megabytes:.1} MB)", path.display()))
    }
}

/// Opens the request's feature set and data.
///
/// # Errors
/// When the set or the data cannot be read, the data cannot be built, an option has no effect, or nothing can be
/// served.
pub fn prepare(request: Request, observer: &dyn PrepareObserver) -> Result<PreparedStream, ServiceError> {
    request.check()?;
    let set = FeatureSet::resolve(&request.set)?;
    let stream = match request.reading.mode.in_effect(&request.data)? {
        ReadMode::Auto => {
            refuse_filters(&request, "is decoded without a filter; give --read built to filter it")?;
            refuse_evals(&request)?;
            prepare_binpack(request, set, observer)?
        }
        ReadMode::Built => {
            let files: Vec<_> = request.data.iter().map(|path| vec![WeightedInput::file(path)]).collect();
            prepare_built(request, set, &files, observer)?
        }
    };
    Ok(with_note(stream, observer))
}

/// As [`prepare`] for the mixture of some files, each with a weight, instead of the request's data: one data set, which
/// is built.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_mixture(
    request: Request,
    inputs: &[WeightedInput],
    observer: &dyn PrepareObserver,
) -> Result<PreparedStream, ServiceError> {
    request.check()?;
    let set = FeatureSet::resolve(&request.set)?;
    Ok(with_note(prepare_built(request, set, &[inputs.to_vec()], observer)?, observer))
}

fn with_note(stream: PreparedStream, observer: &dyn PrepareObserver) -> PreparedStream {
    if stream.unusable > 0 && says_what_it_finds(stream.request()) {
        observer.left_out(stream.unusable, stream.request().required());
    }
    stream
}

/// A training's second service, which validates, need not repeat the messages of the first.
fn says_what_it_finds(request: &Request) -> bool {
    request.split != Split::Validation
}

/// The unit of a file's scores; `given` if the file does not record it.
fn unit(
    request: &Request,
    data: &Path,
    given: Option<ScoreUnit>,
    observer: &dyn PrepareObserver,
) -> Result<ScoreUnit, ServiceError> {
    let known = score_unit(data, None, given)?;
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
    let usable = UsableSamples::for_method(request.method, request.needs_of(Purpose::Any));
    let lengths = request.data.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.len()));
    let total = lengths.sum();
    let mut scanned = 0;
    let mut samples = 0;
    let mut all = Vec::with_capacity(request.data.files().len());
    for file in request.data.iter() {
        let progress = |done, _| observer.scanned(scanned + done, total);
        let segments = Segments::open(file, usable, request.threads, cache.as_deref(), &progress);
        let segments =
            segments.and_then(|segments| segments.following(samples)).inspect_err(|_| observer.scan_ended())?;
        scanned += file.metadata().map_or(0, |metadata| metadata.len());
        samples += segments.samples();
        if says_what_it_finds(&request) && !segments.skipped().is_empty() {
            observer.skipped(file, segments.skipped());
        }
        all.push(segments);
    }
    observer.scan_ended();
    // Binpacks record no unit, so all have the same.
    let units = request
        .data
        .iter()
        .map(|file| unit(&request, file, request.reading.from_unit, observer))
        .collect::<Result<Vec<_>, _>>()?;
    let unit = units.first().copied().unwrap_or(ScoreUnit::Centipawns);
    PreparedStream::from_binpack(request, set, all, unit)
}

/// Refuses the options that filter samples when they are built; `reason` says why they would have no effect.
fn refuse_filters(request: &Request, reason: &str) -> Result<(), ServiceError> {
    let ReadOptions { min_ply, filter, .. } = request.reading;
    let given = [(min_ply.is_some(), "--min-ply"), (filter.is_some(), "--filter")];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(ServiceError::Request(format!("{option} has no effect: {} {reason}", request.data))),
        None => Ok(()),
    }
}

/// Refuses the options for scores in comments, which a binpack does not have.
fn refuse_evals(request: &Request) -> Result<(), ServiceError> {
    let given =
        [(request.evals.eval_unit.is_some(), "--eval-unit"), (request.evals.eval_view.is_some(), "--eval-view")];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => {
            let reason = "has no comments with scores";
            Err(ServiceError::Request(format!("{option} has no effect: {} {reason}", request.data)))
        }
        None => Ok(()),
    }
}

/// `inputs_of_files`: the inputs of each file that is served.
fn prepare_built(
    request: Request,
    set: FeatureSet,
    inputs_of_files: &[Vec<WeightedInput>],
    observer: &dyn PrepareObserver,
) -> Result<PreparedStream, ServiceError> {
    let needs = request.needs.filter(|_| request.method == Method::Eval).unwrap_or_default();
    let mut options = BuildOptions { needs, ..BuildOptions::new(request.method) };
    let ReadOptions { from_unit, min_ply, filter, .. } = request.reading;
    options.min_ply = min_ply.unwrap_or(options.min_ply);
    options.filter = filter.unwrap_or(options.filter);
    let mut files = Vec::with_capacity(inputs_of_files.len());
    let length = |input: &WeightedInput| input.origin.length().unwrap_or(0);
    let total = inputs_of_files.iter().flatten().map(length).sum();
    let mut done = 0;
    let mut all: Vec<WeightedInput> = inputs_of_files.iter().flatten().cloned().collect();
    set_units(&mut all, from_unit)?;
    let mut all = all.into_iter();
    for inputs in inputs_of_files {
        let mut named: Vec<String> = Vec::new();
        let mut given = Vec::with_capacity(inputs.len());
        for input in all.by_ref().take(inputs.len()) {
            unit(&request, &input.origin.path(), input.unit, observer)?;
            named.push(input.to_string());
            given.push(WeightedInput { evals: request.evals, ..input });
        }
        let path = PathBuf::from(named.join(", "));
        let path = path.as_path();
        let OpenedData { file, origin } = open_unchecked_or_build(&given, &options, None, &mut |event| match event {
            CacheEvent::Begins(file) => observer.building(path, file),
            CacheEvent::Reads(progress) => observer.built(done + progress.bytes, total),
        })?;
        done += inputs.iter().map(length).sum::<u64>();
        if origin == DataOrigin::Input {
            refuse_filters(&request, "is built already; give the option to `dataset build`")?;
        }
        let manifest = Manifest::of(&file).ok();
        if says_what_it_finds(&request) {
            observer.opened(&ServedFile { data: path, file: &file, origin, manifest: manifest.as_ref() });
            if origin != DataOrigin::Input {
                let sources = manifest.iter().flat_map(|manifest| &manifest.sources);
                sources.for_each(|source| observer.skipped(path, &source.skipped_samples));
            }
        }
        files.push((file, manifest));
    }
    PreparedStream::new(request, set, MappedFiles::new(files)?)
}
