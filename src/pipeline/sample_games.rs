//! The sample games: embedded in the program, and written to the cache when a file is needed.

use std::path::PathBuf;

use super::cache::default_cache;
use crate::data::DataError;
use crate::output::OutputFile;

/// 5,000 scored games of an engine against itself, described in `experiments/quickstart/SOURCE.md`.
const GAMES: &[u8] = include_bytes!("../../experiments/quickstart/games.pgn.zst");

/// The path of the sample games in the cache; the file is written where it is missing or differs. Its name contains a
/// hash of its content.
///
/// # Errors
/// When there is no folder for the cache, or the file cannot be written.
pub fn sample_games() -> Result<PathBuf, DataError> {
    let folder = default_cache()?.with_file_name("sample");
    let path = folder.join(format!("games-{}.pgn.zst", &blake3::hash(GAMES).to_hex()[..16]));
    if std::fs::read(&path).is_ok_and(|found| found == GAMES) {
        return Ok(path);
    }
    std::fs::create_dir_all(&folder).map_err(DataError::write(&folder))?;
    let mut file = OutputFile::create(&path)?;
    file.put(GAMES)?;
    file.finish()?;
    Ok(path)
}
