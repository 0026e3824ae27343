//! The finished games of a job in its journal, by number.

use std::path::Path;

use serde_json::Value;

use super::PlayError;
use super::game::{GameSummary, PlayedGame};
use crate::pipeline::{Journal, JournalError};

/// The contents of a journal's lines.
pub(super) const GAMES: &str = "games";

/// A job's journal. Takes 16 bytes of memory per game.
pub struct GameJournal {
    file: Journal,
    /// Where each game's line begins, by number.
    offsets: Vec<Option<u64>>,
    /// Games of the file that the job does not ask for; they stay in it.
    pub unused: u64,
}

impl GameJournal {
    /// Opens the journal of a job of so many games. `head` identifies the job; `note` receives the outcome of each of
    /// its games in the file.
    ///
    /// # Errors
    /// When the file cannot be used, belongs to another job, or `note` says that it is damaged.
    pub fn open(
        path: &Path,
        head: &Value,
        games: usize,
        note: &mut dyn FnMut(&GameSummary) -> Result<(), String>,
    ) -> Result<GameJournal, JournalError> {
        let mut offsets = vec![None; games];
        let mut unused = 0;
        let file = Journal::open(path, GAMES, head, &mut |offset, line| {
            let summary = GameSummary::parse(line)?;
            match offsets.get_mut(summary.game as usize) {
                Some(place @ None) => {
                    note(&summary)?;
                    *place = Some(offset);
                }
                Some(Some(_)) => {}
                None => unused += 1,
            }
            Ok(())
        })?;
        Ok(GameJournal { file, offsets, unused })
    }

    /// Adds a game of the job.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, game: &PlayedGame) -> Result<(), PlayError> {
        let line = game.to_journal();
        let line = line.map_err(|error| PlayError::Damaged { game: game.number, reason: error.to_string() })?;
        self.add_line(game.number, &line)
    }

    /// Adds a game from its line in another journal of the job.
    pub(super) fn add_line(&mut self, number: u64, line: &str) -> Result<(), PlayError> {
        self.offsets[number as usize] = Some(self.file.append(line)?);
        Ok(())
    }

    /// Whether a game is not in the file, but one of the job.
    pub(super) fn lacks(&self, number: u64) -> bool {
        self.offsets.get(number as usize) == Some(&None)
    }

    /// The numbers of the games that are not in the file.
    #[must_use]
    pub fn missing(&self) -> Vec<u64> {
        (0..self.offsets.len() as u64).filter(|number| self.lacks(*number)).collect()
    }

    /// Reads a game; `None` if it is not in the file.
    ///
    /// # Errors
    /// When the file cannot be read, or the game is damaged.
    pub fn game(&self, number: u64) -> Result<Option<PlayedGame>, PlayError> {
        let Some(Some(offset)) = self.offsets.get(number as usize) else { return Ok(None) };
        let damaged = |reason| PlayError::Damaged { game: number, reason };
        let game = PlayedGame::from_journal(&self.file.line_at(*offset)?).map_err(damaged)?;
        if game.number != number {
            return Err(damaged("its number is wrong".into()));
        }
        Ok(Some(game))
    }

    /// Waits until all games are on the disk.
    pub(super) fn sync(&self) -> Result<(), PlayError> {
        Ok(self.file.sync()?)
    }

    /// Removes the file, unless it holds games beyond the job's.
    pub fn finish(self) {
        if self.unused == 0 {
            self.file.remove();
        }
    }
}
