//! Has networks and UCI engines play games against each other, or one against itself, and writes them as PGN with
//! `[%eval]` comments or as samples.
//!
//! A game depends on the players, the settings, the seed and its number only: each has one thread and a fixed hash, and
//! forgets everything before each game. Games are written in number order, so the file does not depend on
//! the number of workers. A journal beside the output keeps finished games, so an interrupted run resumes where it
//! stopped.

mod genfens;
mod identities;
mod job;
mod opening;
mod output;
mod samples;
mod summary;
mod tally;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use thiserror::Error;

use crate::data::DataError;
use crate::data::formats::Omissions;
use crate::output::OutputError;
use crate::pipeline::generation::{GenerateSettings, Generation};
use crate::pipeline::journal_path;
use crate::pipeline::uci::UciError;
use crate::play::{
    BookError, Fixture, GameJournal, GamePool, GameRules, OnFault, PlayError, PlayerSetup, PooledGame, Termination,
};
use identities::Identities;
use output::{GameWriter, OutputFormat};
use tally::GenerationTally;

pub use genfens::draw_openings;
pub use job::{GenerateGoal, GenerateJob};
pub use samples::{pgn_of, samples_of};
pub use summary::{EngineScore, GenerateSummary};
pub use tally::{GenerateProgress, GenerateSpeed, PhaseCounts};

/// Why generating games failed.
#[derive(Debug, Error)]
pub enum GenerateError {
    #[error("{error}{}{}", failures_note(*failures), journal_note(*finished, journal))]
    Engine { error: Box<UciError>, failures: u64, finished: u32, journal: PathBuf },
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Play(#[from] PlayError),
}

impl From<BookError> for GenerateError {
    fn from(error: BookError) -> GenerateError {
        GenerateError::Play(error.into())
    }
}

impl From<OutputError> for GenerateError {
    fn from(error: OutputError) -> GenerateError {
        GenerateError::Data(error.into())
    }
}

impl GenerateError {
    fn before_games(error: UciError) -> GenerateError {
        GenerateError::Engine { error: Box::new(error), failures: 0, finished: 0, journal: PathBuf::new() }
    }

    /// Whether the request was wrong; otherwise the work failed on the way.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            GenerateError::Engine { error, .. } => error.is_request(),
            GenerateError::Data(error) => error.is_request(),
            GenerateError::Play(error) => error.is_request(),
            GenerateError::Request(_) => true,
        }
    }
}

/// Says that the engine does not work.
fn failures_note(failures: u64) -> String {
    if failures > 1 { format!("; it failed in {failures} games in a row") } else { String::new() }
}

/// Says where the finished games are kept.
fn journal_note(finished: u32, journal: &Path) -> String {
    match finished {
        0 => String::new(),
        _ => format!("; {finished} finished games are kept in {}: run the command again to go on", journal.display()),
    }
}

/// Plays the games and writes them to `output` (`.pgn`, `.pgn.zst`, `.fsd`, `.binpack` or another format of samples).
/// Takes 24 bytes of memory per game. When `interrupted` says so, the finished games are kept in the journal, the error
/// is [`PlayError::Stopped`], and the same call goes on. `progress` is called after each game.
///
/// A game whose opening lies beyond the bound is dropped and counted. When a UCI engine fails, the game is played again
/// by new engines; if one fails again, the game is dropped and counted.
///
/// In a file of samples each searched position is a sample: the engine's best move (whether or not it was played), the
/// score in centipawns and the game's result. A `.fsd` file gets a manifest beside it.
///
/// # Errors
/// When an engine cannot be started or fails in game after game (the first 8, later 32 in a row), or a file cannot be
/// read or written; finished games stay in the journal.
pub fn generate(
    settings: &GenerateSettings,
    job: &GenerateJob,
    output: &Path,
    interrupted: &(dyn Fn() -> bool + Sync),
    progress: &mut dyn FnMut(&GenerateProgress),
) -> Result<GenerateSummary, GenerateError> {
    let limit = job::check(settings, job)?;
    OutputFormat::of(output)?;
    let path = journal_path(output);
    let book = match &job.openings_engine {
        Some(engine) => Some(genfens::book_by(engine, settings, job)?),
        None => opening::book_of(settings)?,
    };
    if let Some(book) = &book {
        job::check_book(settings, book)?;
    }
    let Identities { engines, names } = Identities::of(settings, job)?;
    let generation =
        Generation { engines, settings: settings.clone(), book: book.as_ref().map(|book| book.facts.clone()) };
    let players = &job.players;
    let mut tally = GenerationTally::new(job.goal);
    let mut has_worked = vec![false; players.len()];
    let head = json!({ "journal": "games", "version": 2, "about": generation });
    let mut journal = GameJournal::open(&path, &head, job.most_games(), &mut |summary| {
        let Fixture { white, black, .. } = opening::fixture_of(summary.game, players.len());
        if (summary.white, summary.black) != (white, black) {
            return Err(format!("game {} has other engines than the schedule", summary.game));
        }
        tally.note(summary);
        if summary.forfeit.is_none() {
            has_worked[white] = true;
            has_worked[black] = true;
        }
        Ok(())
    })
    .map_err(PlayError::Journal)?;
    tally.count();
    let resumed = tally.progress.done();
    let mut replayed = 0;
    progress(&tally.progress);
    let pool = GamePool {
        players,
        setup: PlayerSetup { hash: job.hash, patience: job.workers.answer_timeout, overhead: Duration::ZERO },
        rules: GameRules {
            limit,
            adjudication: settings.adjudication.into(),
            needs_score: true,
            opening_bound: Some(settings.opening_bound),
        },
        on_fault: OnFault::Replay,
        begin: &|number| Ok(opening::begin(number, players.len(), settings, book.as_ref())?),
        concurrency: job.workers.concurrency,
        has_worked: &has_worked,
        interrupted,
    };
    if !tally.is_reached() {
        let start = Instant::now();
        let played = pool.play(journal.missing(), &mut |PooledGame { game, replayed: again }| {
            journal.add(&game)?;
            tally.add(&game, start.elapsed());
            replayed += u32::from(again && game.forfeit.is_none());
            progress(&tally.progress);
            tally.check().map(|()| tally.is_reached())
        });
        played.map_err(|error| engine_error(error, tally.progress.games, &path))?;
        if !tally.is_reached() {
            return Err(PlayError::Stopped.into());
        }
    }
    let mut summary = write(&journal, output, job, &generation, &names, tally.counted)?;
    summary.resumed = resumed;
    summary.replayed = replayed;
    summary.unused = journal.unused as u32;
    summary.book = generation.book;
    summary.speed = Some(tally.progress.speed).filter(|speed| speed.positions > 0);
    journal.finish();
    Ok(summary)
}

/// Says of an engine's failure which games are kept.
fn engine_error(error: PlayError, finished: u32, journal: &Path) -> GenerateError {
    match error {
        PlayError::Engine { error, failures, .. } => {
            GenerateError::Engine { error, failures, finished, journal: journal.into() }
        }
        error => GenerateError::Play(error),
    }
}

/// Writes the first games of the journal, so many, in number order.
fn write(
    journal: &GameJournal,
    output: &Path,
    job: &GenerateJob,
    generation: &Generation,
    names: &[String],
    games: u64,
) -> Result<GenerateSummary, GenerateError> {
    let several = names.len() > 1;
    let mut writer = GameWriter::create(output)?;
    let mut summary = GenerateSummary { engine: names.join(", "), ..GenerateSummary::default() };
    if several {
        let score = |name: &String| EngineScore { engine: name.clone(), ..EngineScore::default() };
        summary.scores.extend(names.iter().map(score));
    }
    for number in 0..games {
        let Some(game) = journal.game(number)? else { continue };
        match (&game.forfeit, game.termination) {
            (Some(forfeit), _) => *summary.dropped_games.get_or_default(forfeit.reason) += 1,
            (None, Termination::Opening) => summary.dropped_openings += 1,
            (None, _) => {
                writer.push(&game, several.then_some(names), output)?;
                summary.add(&game);
            }
        }
    }
    if let Some(written) = writer.finish(output, job, generation, games, &summary)? {
        summary.samples = Some(written.samples);
        summary.score_unit = Some(written.score_unit);
        summary.omissions = Some(written.omissions).filter(|omissions| *omissions != Omissions::default());
    }
    Ok(summary)
}
