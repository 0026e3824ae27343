//! The sample games and the balanced openings: embedded in the program, and written to the cache when a file is needed.

use std::path::{Path, PathBuf};

use super::cache::default_cache;
use crate::data::DataError;
use crate::output::OutputFile;

/// 5,000 scored games of an engine against itself, described in `experiments/quickstart/SOURCE.md`.
const GAMES: &[u8] = include_bytes!("../../experiments/quickstart/games.pgn.zst");

/// 2,000 openings that a network calls level, made by `fsbench openings`.
const OPENINGS: &[u8] = include_bytes!("../../experiments/openings.epd");

/// The path of the sample games in the cache; the file is written where it is missing or differs. Its name contains a
/// hash of its content.
///
/// # Errors
/// When there is no folder for the cache, or the file cannot be written.
pub fn sample_games() -> Result<PathBuf, DataError> {
    in_cache("games", ".pgn.zst", GAMES)
}

/// The path of the balanced openings in the cache, as [`sample_games`].
///
/// # Errors
/// As [`sample_games`].
pub fn sample_openings() -> Result<PathBuf, DataError> {
    in_cache("openings", ".epd", OPENINGS)
}

fn in_cache(name: &str, extension: &str, content: &[u8]) -> Result<PathBuf, DataError> {
    let folder = default_cache()?.with_file_name("sample");
    let path = folder.join(format!("{name}-{}{extension}", &blake3::hash(content).to_hex()[..16]));
    if std::fs::read(&path).is_ok_and(|found| found == content) {
        return Ok(path);
    }
    write(&folder, &path, content)?;
    Ok(path)
}

fn write(folder: &Path, path: &Path, content: &[u8]) -> Result<(), DataError> {
    std::fs::create_dir_all(folder).map_err(DataError::write(folder))?;
    let mut file = OutputFile::create(path)?;
    file.put(content)?;
    file.finish()?;
    Ok(())
}
