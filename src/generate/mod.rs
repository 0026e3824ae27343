//! Has engines play games against each other, or one engine against itself, and writes them as PGN with `[%eval]`
//! comments or as samples.
//!
//! A game depends on the engines, the settings, the seed and its number only: engines have one thread and a fixed hash,
//! and get `ucinewgame` before each game. Games are written in number order, so the file does not depend on
//! the number of workers. A journal beside the output keeps finished games, so an interrupted run resumes where it
//! stopped.

mod job;
mod opening;
mod output;
mod samples;

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use crate::data::formats::Omissions;
use crate::data::{DataError, GameResult, ScoreUnit};
use crate::output::OutputError;
use crate::pipeline::generation::{BookFacts, GenerateSettings, Generation};
use crate::pipeline::journal_path;
use crate::pipeline::uci::{Engine, EngineFault, EngineIdentity, EngineSpec, UciError};
use crate::play::{
    BookError, Fixture, Forfeit, GameJournal, GamePool, GameRules, OnFault, PlayError, Player, PlayerKind, PlayerSetup,
    PooledGame,
};
use crate::text::distinct_names;
use crate::units::SortedMap;
use output::{GameFacts, GameWriter, OutputFormat};

pub use job::GenerateJob;
pub use samples::{pgn_of, samples_of};

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A summary of a finished generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GenerateSummary {
    /// The engines' names.
    pub engine: String,
    /// Finished games.
    pub games: u32,
    /// Games that were dropped, as an engine failed in them twice.
    pub dropped_games: SortedMap<EngineFault, u32>,
    /// Games taken from the journal of an interrupted run.
    pub resumed: u32,
    /// Games played again because an engine failed in them.
    #[serde(rename = "again")]
    pub replayed: u32,
    /// Games of the journal beyond the requested number; they stay in the journal.
    #[serde(skip_serializing_if = "is_zero")]
    pub unused: u32,
    /// Moves played.
    pub plies: u64,
    /// Samples written; `None` for PGN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Unit of the samples' scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_unit: Option<ScoreUnit>,
    /// Information of the samples that the format could not hold.
    #[serde(rename = "account", skip_serializing_if = "Option::is_none")]
    pub omissions: Option<Omissions>,
    /// Games by result, White's view.
    pub results: SortedMap<String, u32>,
    /// Each engine's score; empty for a single engine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<EngineScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<BookFacts>,
}

/// An engine's score against all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EngineScore {
    /// The engine's name.
    pub engine: String,
    /// Games that it won.
    pub wins: u32,
    /// Games without a winner.
    pub draws: u32,
    /// Games that it lost.
    pub losses: u32,
}

impl EngineScore {
    fn add(&mut self, result: GameResult) {
        match result {
            GameResult::Win => self.wins += 1,
            GameResult::Draw => self.draws += 1,
            GameResult::Loss => self.losses += 1,
        }
    }
}

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

/// Plays the games and writes them to `output` (`.pgn`, `.pgn.zst`, `.fsd` or `.binpack`). `progress` receives the
/// number of games that are done. Takes 24 bytes of memory per game.
///
/// When an engine fails, the game is played again by new engines; if one fails again, the game is dropped and counted.
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
    progress: &mut dyn FnMut(u32),
) -> Result<GenerateSummary, GenerateError> {
    let limit = job::check(settings, job)?;
    OutputFormat::of(output)?;
    let path = journal_path(output);
    let book = opening::book_of(settings)?;
    let generation = Generation {
        engines: identities(settings, job, &path)?,
        settings: settings.clone(),
        book: book.as_ref().map(|book| book.facts.clone()),
    };
    let mut games = GenerationCounts { resumed: 0, replayed: 0, finished: 0, dropped: SortedMap::new() };
    let mut has_worked = vec![false; job.engines.len()];
    let head = json!({ "journal": "games", "version": 1, "about": generation });
    let mut journal = GameJournal::open(&path, &head, job.games as usize, &mut |summary| {
        let Fixture { white, black, .. } = opening::fixture_of(summary.game, job.engines.len());
        if (summary.white, summary.black) != (white, black) {
            return Err(format!("game {} has other engines than the schedule", summary.game));
        }
        games.note(summary.game, summary.forfeit.as_ref());
        if summary.forfeit.is_none() {
            has_worked[white] = true;
            has_worked[black] = true;
        }
        Ok(())
    })
    .map_err(PlayError::Journal)?;
    games.resumed = games.done();
    progress(games.done());
    let players: Vec<Player> = job.engines.iter().map(player).collect();
    let pool = GamePool {
        players: &players,
        setup: PlayerSetup { hash: 0, patience: job.workers.answer_timeout, overhead: Duration::ZERO },
        rules: GameRules { limit, adjudication: settings.adjudication.into(), needs_score: true },
        on_fault: OnFault::Replay,
        begin: &|number| Ok(opening::begin(number, players.len(), settings, book.as_ref())?),
        concurrency: job.workers.concurrency,
        has_worked: &has_worked,
        interrupted: &|| false,
    };
    let played = pool.play(&journal.missing(), &mut |PooledGame { game, replayed }| {
        journal.add(&game)?;
        games.note(game.number, game.forfeit.as_ref());
        games.replayed += u32::from(replayed && game.forfeit.is_none());
        progress(games.done());
        Ok(false)
    });
    played.map_err(|error| engine_error(error, games.finished, &path))?;
    let mut summary = write(&journal, output, job, &generation, &games)?;
    summary.unused = journal.unused as u32;
    summary.book = generation.book;
    journal.finish();
    Ok(summary)
}

fn player(engine: &EngineSpec) -> Player {
    Player { name: engine.path.display().to_string(), kind: PlayerKind::Engine(engine.clone()), nodes: None }
}

/// Starts each engine once to learn its name and options.
fn identities(
    settings: &GenerateSettings,
    job: &GenerateJob,
    journal: &Path,
) -> Result<Vec<EngineIdentity>, GenerateError> {
    let mut identities = Vec::new();
    for spec in &job.engines {
        let engine = Engine::start(spec, job.workers.answer_timeout).map_err(|error| GenerateError::Engine {
            error: Box::new(error),
            failures: 0,
            finished: 0,
            journal: journal.into(),
        })?;
        let engine = engine.identity().clone();
        if !engine.reproducible(settings.limit) {
            let why = "plays below its strength by choosing moves at random: its games cannot be repeated";
            return Err(GenerateError::Request(format!("{} with the options {:?} {why}", engine.name, engine.options)));
        }
        identities.push(engine);
    }
    Ok(identities)
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

/// The games of a generation so far.
struct GenerationCounts {
    /// Games taken from the journal of an interrupted run.
    resumed: u32,
    /// Games played again because an engine failed in them.
    replayed: u32,
    finished: u32,
    /// Games that an engine spoiled twice, by number.
    dropped: SortedMap<u64, EngineFault>,
}

impl GenerationCounts {
    fn note(&mut self, number: u64, forfeit: Option<&Forfeit>) {
        match forfeit {
            Some(forfeit) => {
                self.dropped.insert(number, forfeit.reason);
            }
            None => self.finished += 1,
        }
    }

    fn done(&self) -> u32 {
        self.finished + self.dropped.len() as u32
    }
}

/// Writes the finished games of the journal in number order.
fn write(
    journal: &GameJournal,
    output: &Path,
    job: &GenerateJob,
    generation: &Generation,
    games: &GenerationCounts,
) -> Result<GenerateSummary, GenerateError> {
    let names: Vec<&str> = generation.engines.iter().map(|engine| engine.name.as_str()).collect();
    let names = distinct_names(&names);
    let several = names.len() > 1;
    let mut writer = GameWriter::create(output)?;
    let mut scores = Vec::new();
    if several {
        scores.extend(names.iter().map(|name| EngineScore { engine: name.clone(), ..EngineScore::default() }));
    }
    let mut results = SortedMap::new();
    let mut plies = 0;
    for number in (0..u64::from(job.games)).filter(|number| !games.dropped.contains_key(number)) {
        let Some(game) = journal.game(number)? else { continue };
        writer.push(&game, several.then_some(&names), output)?;
        plies += game.moves.len() as u64;
        *results.get_or_default(game.result.pgn().to_owned()) += 1;
        if several {
            scores[game.white].add(game.result);
            scores[game.black].add(game.result.reversed());
        }
    }
    let mut dropped_games = SortedMap::new();
    for fault in games.dropped.values() {
        *dropped_games.get_or_default(*fault) += 1;
    }
    let facts = GameFacts { generation, plies, dropped: &dropped_games };
    let written = writer.finish(output, job, &facts)?;
    Ok(GenerateSummary {
        engine: names.join(", "),
        games: games.finished,
        dropped_games,
        resumed: games.resumed,
        unused: 0,
        replayed: games.replayed,
        plies,
        samples: written.as_ref().map(|written| written.samples),
        score_unit: written.as_ref().map(|written| written.score_unit),
        omissions: written.map(|written| written.omissions).filter(|omissions| *omissions != Omissions::default()),
        results,
        scores,
        book: None,
    })
}
