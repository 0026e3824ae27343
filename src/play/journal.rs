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
    /// Games of the job: their numbers lie below.
    games: u64,
    /// Where each game's line begins, by number.
    offsets: Vec<Option<u64>>,
    /// Games of the file that the job does not ask for; they stay in it.
    pub unused: u64,
}

impl GameJournal {
    /// Opens the journal of a job of at most so many games. `head` identifies the job; `note` receives the outcome of each of
    /// its games in the file.
    ///
    /// # Errors
    /// When the file cannot be used, belongs to another job, or `note` says that it is damaged.
    pub fn open(
        path: &Path,
        head: &Value,
        games: u64,
        note: &mut dyn FnMut(&GameSummary) -> Result<(), String>,
    ) -> Result<GameJournal, JournalError> {
        let mut offsets = Vec::new();
        let mut unused = 0;
        let file = Journal::open(path, GAMES, head, &mut |offset, line| {
            let summary = GameSummary::parse(line)?;
            if summary.game >= games {
                unused += 1;
                return Ok(());
            }
            let place = place(&mut offsets, summary.game);
            if place.is_none() {
                note(&summary)?;
                *place = Some(offset);
            }
            Ok(())
        })?;
        Ok(GameJournal { file, games, offsets, unused })
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
        let offset = self.file.append(line)?;
        *place(&mut self.offsets, number) = Some(offset);
        Ok(())
    }

    /// Whether a game is not in the file, but one of the job.
    pub(super) fn lacks(&self, number: u64) -> bool {
        number < self.games && self.offsets.get(number as usize).is_none_or(Option::is_none)
    }

    /// The numbers of the games that are not in the file now, in order.
    pub fn missing(&self) -> impl Iterator<Item = u64> + Send + use<> {
        let present: Vec<bool> = self.offsets.iter().map(Option::is_some).collect();
        (0..self.games).filter(move |number| !present.get(*number as usize).is_some_and(|present| *present))
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

/// The place of a game's offset.
fn place(offsets: &mut Vec<Option<u64>>, number: u64) -> &mut Option<u64> {
    let index = number as usize;
    if offsets.len() <= index {
        offsets.resize(index + 1, None);
    }
    &mut offsets[index]
}
