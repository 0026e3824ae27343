//! The finished games of a run under way: a line of settings, then a line a game, appended as each ends.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{GenerateError, Played, Settings};
use crate::data::DataError;

/// `X.journal` for the output `X`.
#[must_use]
pub fn journal_path(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal and reads the games in it, or begins one. A last line that was not finished is removed.
    pub fn open(
        path: &Path,
        settings: &Settings,
        engine: &str,
    ) -> Result<(Journal, BTreeMap<u32, Played>), GenerateError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(DataError::write(path))?;
        let unusable = |reason: String| GenerateError::Journal { journal: path.into(), reason };
        file.try_lock().map_err(|_| unusable("another process is writing it".into()))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(DataError::read(path))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines();
        let head = serde_json::json!({ "engine": engine, "settings": settings }).to_string();
        match lines.next() {
            Some(found) if found == head => {}
            Some(found) => {
                let finished = lines.count();
                return Err(GenerateError::OtherRun { journal: path.into(), finished, found: found.into() });
            }
            None => {
                let begin = |file: &mut File| {
                    file.set_len(0)?;
                    file.seek(SeekFrom::Start(0))?;
                    file.write_all(format!("{head}\n").as_bytes())
                };
                begin(&mut file).map_err(DataError::write(path))?;
                return Ok((Journal { path: path.into(), file }, BTreeMap::new()));
            }
        }
        let mut played = BTreeMap::new();
        for (line, text) in lines.enumerate() {
            let game: Played = serde_json::from_str(text)
                .map_err(|error| unusable(format!("line {}: {error}; remove it to begin anew", line + 2)))?;
            played.insert(game.number, game);
        }
        file.set_len(whole as u64).map_err(DataError::write(path))?;
        file.seek(SeekFrom::End(0)).map_err(DataError::write(path))?;
        Ok((Journal { path: path.into(), file }, played))
    }

    /// Adds a game.
    pub fn append(&mut self, game: &Played) -> Result<(), DataError> {
        let line = serde_json::to_string(game).map_err(std::io::Error::other);
        let written = line.and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|cause| DataError::Append { path: self.path.clone(), cause })
    }

    /// The run is finished.
    pub fn remove(self) -> Result<(), DataError> {
        fs::remove_file(&self.path).map_err(DataError::write(&self.path))
    }
}
