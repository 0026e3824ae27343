//! The cache of built data: a file of games is built once and found in the cache afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::{BuildError, BuildJob, BuildOptions, build};
use super::inputs::WeightedInput;
use crate::data::formats::{Format, UnitOrigin, detect, score_unit};
use crate::data::{DataError, FSD_VERSION, Fsd, Header, Method, Needs, Purpose, ScoreUnit, hash_file};

/// The folder `data` in `$FSBENCH_CACHE`, else in `$XDG_CACHE_HOME/fsbench`, else in `~/.cache/fsbench`.
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

/// Opens a `.fsd` file; builds any other file with the method's default options into `cache` (by default
/// [`default_cache`]), unless it was built before. The cached file's name contains a hash of the source's content and
/// of the options.
///
/// # Errors
/// When the file cannot be read or built, or is a `.fsd` file for another method.
pub fn open_or_build(path: &Path, method: Method, cache: Option<&Path>) -> Result<Fsd, BuildError> {
    open_or_build_with(path, None, &BuildOptions::new(method), cache)
}

/// [`open_or_build`] with the given options, which do not apply to a `.fsd` file. `unit` is the unit of the scores
/// where the file does not record it.
///
/// # Errors
/// As [`open_or_build`], or when the file records another unit than `unit`.
pub fn open_or_build_with(
    path: &Path,
    unit: Option<ScoreUnit>,
    options: &BuildOptions,
    cache: Option<&Path>,
) -> Result<Fsd, BuildError> {
    let method = options.method;
    let resolve_unit = score_unit(path, None, unit)?;
    // A `.fsd` file that was not built for a method is a source like any other.
    if detect(path)? == Format::Fsd && Header::load(path)?.purpose != Purpose::Any {
        return Ok(Fsd::open_for(path, method)?);
    }
    // The unit is part of the name only where the file does not record it.
    let unit_key = (resolve_unit.origin != UnitOrigin::File).then(|| resolve_unit.unit.to_string());
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
    let (_, content_hash) = hash_file(path)?;
    let mut key = blake3::Hasher::new();
    key.update(content_hash.as_bytes());
    key.update(&FSD_VERSION.to_le_bytes());
    key.update(env!("CARGO_PKG_VERSION").as_bytes());
    key.update(written(options).as_bytes());
    key.update(unit.unwrap_or_default().as_bytes());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("games");
    Ok(format!("{stem}-{}-{}.fsd", options.method.name(), &key.finalize().to_hex()[..16]))
}

/// The options as JSON, which unlike Rust's debug text stays the same from one compiler to the next.
fn written(options: &BuildOptions) -> String {
    serde_json::to_string(options).expect("numbers, strings and maps with number keys are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_so_that_they_can_be_read() {
        for method in [Method::Eval, Method::Pqr] {
            let options = BuildOptions { min_moves_quantile: Some(0.1), ..BuildOptions::new(method) };
            assert_eq!(serde_json::from_str::<BuildOptions>(&written(&options)).expect("JSON"), options);
        }
    }
}
