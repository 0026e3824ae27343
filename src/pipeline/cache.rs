//! Files of games as training data: built once into a cache, found there the next time.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::{BuildError, BuildJob, BuildOptions, build};
use super::inputs::WeightedInput;
use crate::data::formats::{Format, SaidBy, detect, score_unit};
use crate::data::{DataError, FSD_VERSION, Fsd, Header, Method, Needs, Purpose, ScoreUnit, hash_file};

/// `$FSBENCH_CACHE`, else `$XDG_CACHE_HOME/fsbench`, else `~/.cache/fsbench`; there the folder `data`.
///
/// # Errors
/// When none of the variables is set.
pub fn default_cache() -> Result<PathBuf, DataError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("FSBENCH_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("fsbench")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache").join("fsbench")))
        .ok_or(DataError::NoCache)?;
    Ok(base.join("data"))
}

/// A `.fsd` file as it is; anything else built with the method's default options, once, into `cache` (by default
/// [`default_cache`]). The cached file's name holds a hash of the source's content and the options.
///
/// # Errors
/// When the file cannot be read or built, or is a `.fsd` file for another method.
pub fn open_or_build(path: &Path, method: Method, cache: Option<&Path>) -> Result<Fsd, BuildError> {
    open_or_build_with(path, None, &BuildOptions::new(method), cache)
}

/// [`open_or_build`] with other options than the method's defaults; a `.fsd` file is taken as it is. `unit`: of the
/// scores, where the file does not say it itself.
///
/// # Errors
/// As [`open_or_build`], or when the file says another unit than the one given.
pub fn open_or_build_with(
    path: &Path,
    unit: Option<ScoreUnit>,
    options: &BuildOptions,
    cache: Option<&Path>,
) -> Result<Fsd, BuildError> {
    let method = options.method;
    let known = score_unit(path, None, unit)?;
    // Samples selected for no method are a source like any other.
    if detect(path)? == Format::Fsd && Header::load(path)?.purpose != Purpose::Any {
        return Ok(Fsd::open_for(path, method)?);
    }
    // What the file does not say itself.
    let unit_key = (known.said_by != SaidBy::File).then(|| known.unit.to_string());
    let folder = cache.map_or_else(default_cache, |folder| Ok(folder.to_path_buf()))?;
    fs::create_dir_all(&folder).map_err(DataError::write(&folder))?;
    let cached = folder.join(cached_name(path, unit_key.as_deref(), options)?);
    if cached.exists()
        && let Ok(fsd) = Fsd::open_for(&cached, method)
    {
        return Ok(fsd);
    }
    let text = |path: &Path| path.display().to_string();
    let command = ["fsbench", "dataset", "build", &text(path), "--method", method.name(), "--out", &text(&cached)];
    let mut command = command.map(String::from).to_vec();
    command.extend(unit_key.into_iter().flat_map(|unit| ["--from-unit".to_owned(), unit]));
    if options.needs != Needs::default() {
        command.extend(["--needs", options.needs.name()].map(String::from));
    }
    let inputs = [WeightedInput { unit, ..WeightedInput::file(path) }];
    build(&BuildJob { command: &command, ..BuildJob::new(&inputs, &cached, options) }, &mut |_| {})?;
    Ok(Fsd::open_for(&cached, method)?)
}

fn cached_name(path: &Path, unit: Option<&str>, options: &BuildOptions) -> Result<String, DataError> {
    let (_, content) = hash_file(path)?;
    let mut key = blake3::Hasher::new();
    key.update(content.as_bytes());
    key.update(&FSD_VERSION.to_le_bytes());
    key.update(env!("CARGO_PKG_VERSION").as_bytes());
    key.update(format!("{options:?}").as_bytes());
    key.update(unit.unwrap_or_default().as_bytes());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("games");
    Ok(format!("{stem}-{}-{}.fsd", options.method.name(), &key.finalize().to_hex()[..16]))
}
