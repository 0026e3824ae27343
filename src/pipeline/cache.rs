//! The cache of built data: a file of games is built once and found in the cache afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::{BuildError, BuildJob, BuildOptions, BuildProgress, build, input_unit};
use super::inputs::WeightedInput;
use crate::data::formats::{Format, UnitOrigin, detect, score_unit};
use crate::data::{DataError, FSD_VERSION, Fsd, FsdHeader, InputPath, Method, Needs, Purpose, ScoreUnit, hash_file};
use crate::json;
use crate::system;

/// The folder `data` in `$FSBENCH_CACHE`, else in `$XDG_CACHE_HOME/fsbench`, else in `~/.cache/fsbench`, on every system.
///
/// # Errors
/// When none of the variables is set.
pub fn default_cache() -> Result<PathBuf, DataError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("FSBENCH_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("fsbench")))
        .or_else(|| variable(system::HOME).map(|folder| folder.join(".cache").join("fsbench")))
        .ok_or(DataError::NoCache)?;
    Ok(base.join("data"))
}

/// Opens a `.fsd` file as it is; builds any other file with the method's default options into `cache` (by default
/// [`default_cache`]), unless it was built before. The cached file's name contains a hash of the source's content and
/// of the options.
///
/// # Errors
/// When the file cannot be read or built, or is a `.fsd` file for another method.
pub fn open_or_build(path: &Path, method: Method, cache: Option<&Path>) -> Result<Fsd, BuildError> {
    open_or_build_with(path, None, &BuildOptions::new(method), cache)
}

/// [`open_or_build`] with the given options. `unit` is the unit of the scores where the file does not record it.
///
/// # Errors
/// As [`open_or_build_all`].
pub fn open_or_build_with(
    path: &Path,
    unit: Option<ScoreUnit>,
    options: &BuildOptions,
    cache: Option<&Path>,
) -> Result<Fsd, BuildError> {
    open_or_build_all(&[WeightedInput { unit, ..WeightedInput::file(path) }], options, cache)
}

/// A `.fsd` file that stands for some inputs.
pub(crate) struct OpenedData {
    pub(crate) file: Fsd,
    pub(crate) origin: DataOrigin,
}

/// Refuses options that leave samples out, for a file that is opened as it is ([`DataOrigin::Input`]).
///
/// # Errors
/// When the options would leave out samples.
pub fn check_applied(path: &Path, options: &BuildOptions) -> Result<(), DataError> {
    if options.keeps_all() {
        return Ok(());
    }
    let reason = "its samples are used as they are, so options that leave some out have no effect: leave these options \
                  out, or give them to `dataset build`";
    Err(DataError::Input { input: path.display().to_string(), reason: reason.into() })
}

/// What a build into the cache says of itself.
#[derive(Copy, Clone, Debug)]
pub(crate) enum CacheEvent<'a> {
    /// It begins to write this file.
    Begins(&'a Path),
    Reads(BuildProgress),
}

/// How a `.fsd` file came to stand for some inputs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DataOrigin {
    /// It is the only input.
    Input,
    /// It was found in the cache.
    Cached,
    /// It was built into the cache just now.
    Built,
}

/// [`open_or_build_all`], but the checksums of an input that is itself opened are not checked: whoever uses its samples
/// checks them first. `begins` is called with the path of a file that is about to be built.
pub(crate) fn open_unchecked_or_build(
    inputs: &[WeightedInput],
    options: &BuildOptions,
    cache: Option<&Path>,
    hear: &mut dyn FnMut(CacheEvent<'_>),
) -> Result<OpenedData, BuildError> {
    match file_as_it_is(inputs, options)? {
        Some(path) => {
            Ok(OpenedData { file: Fsd::open_for_unchecked(path, options.method)?, origin: DataOrigin::Input })
        }
        None => find_or_build(inputs, options, cache, hear),
    }
}

/// The `.fsd` file that needs no build, if that is the only input: it was built for a method, or the options leave
/// nothing out. In the latter case it may hold samples that the method cannot use, which its reader leaves out.
fn file_as_it_is<'a>(inputs: &'a [WeightedInput], options: &BuildOptions) -> Result<Option<&'a Path>, DataError> {
    let [WeightedInput { origin: InputPath::File(path), weight: 1.0, unit, .. }] = inputs else { return Ok(None) };
    score_unit(path, None, *unit)?;
    if detect(path)? != Format::Fsd {
        return Ok(None);
    }
    let needs_no_build = options.keeps_all() || FsdHeader::load(path)?.purpose != Purpose::Any;
    Ok(needs_no_build.then_some(path))
}

/// [`open_or_build`] of several inputs together, which then are one data set; their units of scores are for files that
/// do not record it. A `.fsd` file that was built for a method is
/// taken as it is where it stands alone, with weight 1.
///
/// # Errors
/// As [`open_or_build`], when a file records another unit than its input, when the options leave samples of a `.fsd` file
/// out that was built for a method, or when there is no input.
pub fn open_or_build_all(
    inputs: &[WeightedInput],
    options: &BuildOptions,
    cache: Option<&Path>,
) -> Result<Fsd, BuildError> {
    match file_as_it_is(inputs, options)? {
        Some(path) => {
            check_applied(path, options)?;
            Ok(Fsd::open_for(path, options.method)?)
        }
        None => Ok(find_or_build(inputs, options, cache, &mut |_| {})?.file),
    }
}

fn find_or_build(
    inputs: &[WeightedInput],
    options: &BuildOptions,
    cache: Option<&Path>,
    hear: &mut dyn FnMut(CacheEvent<'_>),
) -> Result<OpenedData, BuildError> {
    let method = options.method;
    let folder = cache.map_or_else(default_cache, |folder| Ok(folder.to_path_buf()))?;
    fs::create_dir_all(&folder).map_err(DataError::write(&folder))?;
    let cached = folder.join(cached_name(inputs, options)?);
    if cached.exists()
        && let Ok(fsd) = Fsd::open_for(&cached, method)
    {
        return Ok(OpenedData { file: fsd, origin: DataOrigin::Cached });
    }
    hear(CacheEvent::Begins(&cached));
    let mut command = ["fsbench", "dataset", "build"].map(String::from).to_vec();
    command.extend(inputs.iter().map(WeightedInput::to_string));
    command.extend(["--method", method.name(), "--out", &cached.display().to_string()].map(String::from));
    let units: Vec<Option<String>> = inputs.iter().map(assumed_unit).collect::<Result<_, _>>()?;
    command.extend(units.into_iter().flatten().next().into_iter().flat_map(|unit| ["--from-unit".to_owned(), unit]));
    if options.needs != Needs::default() {
        command.extend(["--needs", options.needs.name()].map(String::from));
    }
    let job = BuildJob { command: &command, ..BuildJob::new(inputs, &cached, options) };
    build(&job, &mut |progress| hear(CacheEvent::Reads(progress)))?;
    Ok(OpenedData { file: Fsd::open_for(&cached, method)?, origin: DataOrigin::Built })
}

/// The unit that is taken for an input's scores; `None` if the file records it.
fn assumed_unit(input: &WeightedInput) -> Result<Option<String>, DataError> {
    let found = input_unit(input)?;
    Ok((found.origin != UnitOrigin::File).then(|| found.unit.to_string()))
}

fn cached_name(inputs: &[WeightedInput], options: &BuildOptions) -> Result<String, DataError> {
    let mut key = blake3::Hasher::new();
    let mut rest = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let InputPath::File(path) = &input.origin else {
            let reason = "standard input cannot be read twice; write it to a file first".to_owned();
            return Err(DataError::Input { input: "-".into(), reason });
        };
        let (_, content_hash) = hash_file(path)?;
        // The unit is part of the name only where the file does not record it.
        let mut unit = assumed_unit(input)?.unwrap_or_default();
        if !input.evals.is_default() {
            unit += &format!(" {:?}", input.evals);
        }
        match (index, input.weight) {
            // Names of single files stay as they were.
            (0, 1.0) => {
                key.update(content_hash.as_bytes());
                rest.extend(unit.into_bytes());
            }
            (_, weight) => rest.extend(format!("\n{} {weight} {unit}", content_hash.to_hex()).into_bytes()),
        }
    }
    key.update(&FSD_VERSION.to_le_bytes());
    key.update(env!("CARGO_PKG_VERSION").as_bytes());
    key.update(written(options).as_bytes());
    key.update(&rest);
    let path = inputs.first().map(|input| input.origin.path()).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("games");
    Ok(format!("{stem}-{}-{}.fsd", options.method.name(), &key.finalize().to_hex()[..16]))
}

/// The options as JSON, which unlike Rust's debug text stays the same from one compiler to the next.
fn written(options: &BuildOptions) -> String {
    json::to_text(options).expect("numbers, strings and maps with number keys are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_so_that_they_can_be_read() {
        for method in [Method::Eval, Method::Pqr] {
            let options = BuildOptions { min_moves_quantile: Some(0.1), ..BuildOptions::new(method) };
            assert_eq!(json::from_text::<BuildOptions>(&written(&options)).expect("JSON"), options);
        }
    }
}
