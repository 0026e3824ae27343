//! The sample games, carried in the program and laid into the cache when they are wanted as a file.

use std::path::PathBuf;

use super::cache::default_cache;
use crate::data::DataError;
use crate::output::OutputFile;

/// 5,000 games of an engine against itself, with scores; `experiments/quickstart/SOURCE.md` says more.
const GAMES: &[u8] = include_bytes!("../../experiments/quickstart/games.pgn.zst");

/// The sample games as a file, made where it is missing or differs. Its name holds a hash of its content.
///
/// # Errors
/// When there is no place for a cache, or the file cannot be written.
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
