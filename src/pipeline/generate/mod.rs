//! Has engines play games against each other, or one engine against itself, and writes them as PGN with `[%eval]`
//! comments or as samples.
//!
//! A game depends on the engines, the settings, the seed and its number only: engines have one thread and a fixed hash,
//! and get `ucinewgame` before each game. Games are written in number order, so the file does not depend on the number
//! of workers. A journal beside the output keeps finished games, so an interrupted run resumes where it stopped.

mod book;
mod finished_game;
mod output;
mod pairing;
mod play;
mod pool;
mod random_moves;
mod settings;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use super::journal::{Journal, JournalError, journal_path};
use super::uci::{Engine, EngineFault, EngineIdentity, UciError};
use crate::data::formats::Omissions;
use crate::data::{DataError, GameResult, ScoreUnit};
use crate::output::OutputError;
use crate::text::distinct_names;
use finished_game::EntrySummary;
use output::{GameFacts, GameWriter, OutputFormat};
use pool::{DroppedGame, GameKeeper};

pub use book::{Book, BookFacts, BookOrder, BookSpec};
pub use finished_game::{FinishedGame, PlayedPly, samples_of};
pub use pairing::Pairing;
pub use settings::{Adjudication, GenerateJob, GenerateSettings};

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
    pub dropped_games: BTreeMap<EngineFault, u32>,
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
    /// What the format could not hold of the samples.
    #[serde(rename = "account", skip_serializing_if = "Option::is_none")]
    pub omissions: Option<Omissions>,
    /// Games by result, White's view.
    pub results: BTreeMap<String, u32>,
    /// Each engine's score; empty for a single engine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<EngineScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<BookFacts>,
}

/// The facts that the games depend on, for journals and manifests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generation {
    pub engines: Vec<EngineIdentity>,
    pub settings: GenerateSettings,
    pub book: Option<BookFacts>,
}

/// An engine's score against all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EngineScore {
    pub engine: String,
    pub wins: u32,
    pub draws: u32,
    pub losses: u32,
}

/// Why generating games failed.
#[derive(Debug, Error)]
pub enum GenerateError {
    #[error("{error}{}{}", failures_note(*failures), journal_note(*finished, journal))]
    Engine { error: Box<UciError>, failures: u64, finished: usize, journal: PathBuf },
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the book {}{}: {reason}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Book { path: PathBuf, line: Option<u64>, reason: String },
    #[error("cannot keep the book's openings in a temporary file in {}: {cause}; make room or set TMPDIR", folder.display())]
    TempFile { folder: PathBuf, cause: io::Error },
    #[error("game {game} of the journal is damaged: {reason}; remove the line with \"number\":{game} to play it again")]
    Game { game: u32, reason: String },
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
            GenerateError::Journal(error) => error.is_request(),
            GenerateError::Request(_) | GenerateError::Book { .. } => true,
            GenerateError::TempFile { .. } | GenerateError::Game { .. } => false,
        }
    }
}

/// Says that the engine does not work.
fn failures_note(failures: u64) -> String {
    if failures > 1 { format!("; it failed in {failures} games in a row") } else { String::new() }
}

/// Says where the finished games are kept.
fn journal_note(finished: usize, journal: &Path) -> String {
    match finished {
        0 => String::new(),
        _ => format!("; {finished} finished games are kept in {}: run the command again to go on", journal.display()),
    }
}

/// Plays the games and writes them to `output` (`.pgn`, `.pgn.zst`, `.fsd` or `.binpack`). `progress` receives the
/// number of games that are done. Takes 12 bytes of memory per game.
///
/// When an engine fails, the game is played again by new engines; if one fails again, the game is dropped and counted.
///
/// In a file of samples each searched position is a sample: the engine's best move (whether or not it was played), the
/// score in centipawns and the game's result. A `.fsd` file gets a manifest beside it.
///
/// # Errors
/// When an engine cannot be started or fails in game after game (the first 8, later 32 in a row), or a file cannot be read
/// or written; finished games stay in the journal.
pub fn generate(
    settings: &GenerateSettings,
    job: &GenerateJob,
    output: &Path,
    progress: &mut dyn FnMut(u32),
) -> Result<GenerateSummary, GenerateError> {
    settings::check(settings, job)?;
    OutputFormat::of(output)?;
    let path = journal_path(output);
    let book = settings.book.as_ref().map(Book::open).transpose()?;
    let engines: Result<Vec<Engine>, _> =
        job.engines.iter().map(|spec| Engine::start(spec, job.workers.answer_timeout)).collect();
    let no_engine =
        |error| GenerateError::Engine { error: Box::new(error), failures: 1, finished: 0, journal: path.clone() };
    let engines = engines.map_err(no_engine)?;
    let identities: Vec<EngineIdentity> = engines.iter().map(|engine| engine.identity().clone()).collect();
    if let Some(engine) = identities.iter().find(|engine| !engine.reproducible(settings.limit)) {
        let why = "plays below its strength by choosing moves at random: its games cannot be repeated";
        return Err(GenerateError::Request(format!("{} with the options {:?} {why}", engine.name, engine.options)));
    }
    let names: Vec<&str> = identities.iter().map(|engine| engine.name.as_str()).collect();
    let names = distinct_names(&names);
    let generation = Generation {
        engines: identities,
        settings: settings.clone(),
        book: book.as_ref().map(|book| book.facts.clone()),
    };
    let head = json!({ "journal": "games", "version": 1, "about": generation });
    let mut journal = GameJournal::open(&path, &head, job.games)?;
    let resumed = journal.count;
    progress(resumed as u32);
    let missing = journal.missing();
    // Engines that have finished games of an interrupted run are no useless ones.
    let has_worked = vec![journal.finished() > 0; job.engines.len()];
    let mut keeper = Keeper { journal: &mut journal, replayed: 0, progress };
    pool::play_all(settings, job, book.as_ref(), engines, &missing, &has_worked, &mut keeper)?;
    let replayed = keeper.replayed;
    let mut summary = journal.write(output, job, &names, &generation)?;
    summary.unused = journal.unused;
    // Games beyond the requested number may be wanted later.
    if journal.unused == 0 {
        journal.file.remove();
    }
    summary.resumed = resumed as u32;
    summary.replayed = replayed;
    summary.book = book.map(|book| book.facts);
    Ok(summary)
}

/// Keeps games in the journal as they end.
struct Keeper<'a> {
    journal: &'a mut GameJournal,
    replayed: u32,
    progress: &'a mut dyn FnMut(u32),
}

impl GameKeeper for Keeper<'_> {
    fn finished(&mut self, game: FinishedGame, replayed: bool) -> Result<(), GenerateError> {
        self.journal.keep(game.number, game.to_entry())?;
        self.replayed += u32::from(replayed);
        (self.progress)(self.journal.count as u32);
        Ok(())
    }

    fn dropped(&mut self, game: DroppedGame) -> Result<(), GenerateError> {
        let summary = EntrySummary { number: game.number, dropped: game.error.fault() };
        self.journal.keep(game.number, summary.to_entry())?;
        self.journal.dropped.extend(summary.dropped.map(|fault| (game.number, fault)));
        (self.progress)(self.journal.count as u32);
        Ok(())
    }

    fn engine_error(&self, error: UciError, failures: u64) -> GenerateError {
        let (finished, journal) = (self.journal.finished(), self.journal.file.path().into());
        GenerateError::Engine { error: Box::new(error), failures, finished, journal }
    }
}

/// The finished and the dropped games, in the journal's file.
struct GameJournal {
    file: Journal,
    /// Offset of each game in the file, by number.
    offsets: Vec<u64>,
    /// Games in the file.
    count: usize,
    /// The dropped ones among them, by number.
    dropped: BTreeMap<u32, EngineFault>,
    /// Games beyond the requested number, which stay in the journal.
    unused: u32,
}

const MISSING: u64 = u64::MAX;

impl GameJournal {
    fn open(path: &Path, head: &Value, games: u32) -> Result<GameJournal, JournalError> {
        let (mut offsets, mut count, mut unused) = (vec![MISSING; games as usize], 0, 0);
        let mut dropped = BTreeMap::new();
        let file = Journal::open(path, "games", head, &mut |offset, line| {
            let EntrySummary { number, dropped: fault } = EntrySummary::parse(line)?;
            match offsets.get_mut(number as usize) {
                Some(stored) => {
                    count += usize::from(*stored == MISSING);
                    *stored = offset;
                    dropped.remove(&number);
                    dropped.extend(fault.map(|fault| (number, fault)));
                }
                None => unused += 1,
            }
            Ok(())
        })?;
        Ok(GameJournal { file, offsets, count, dropped, unused })
    }

    /// The numbers of the games still to be played.
    fn missing(&self) -> Vec<u32> {
        self.offsets.iter().zip(0..).filter(|(offset, _)| **offset == MISSING).map(|(_, number)| number).collect()
    }

    fn finished(&self) -> usize {
        self.count - self.dropped.len()
    }

    /// Adds a game's entry.
    fn keep(&mut self, number: u32, entry: serde_json::Result<String>) -> Result<(), GenerateError> {
        let entry = entry.map_err(|error| GenerateError::Game { game: number, reason: error.to_string() })?;
        self.offsets[number as usize] = self.file.append(&entry)?;
        self.count += 1;
        Ok(())
    }

    /// Writes the finished games in number order.
    fn write(
        &self,
        output: &Path,
        job: &GenerateJob,
        names: &[String],
        generation: &Generation,
    ) -> Result<GenerateSummary, GenerateError> {
        let mut writer = GameWriter::create(output)?;
        let several = names.len() > 1;
        let score = |name: &String| EngineScore { engine: name.clone(), ..EngineScore::default() };
        let mut scores: Vec<EngineScore> = if several { names.iter().map(score).collect() } else { Vec::new() };
        let (mut results, mut plies) = (BTreeMap::new(), 0);
        let finished = self.offsets.iter().zip(0..).filter(|(_, number)| !self.dropped.contains_key(number));
        for (offset, number) in finished {
            let broken = |reason| GenerateError::Game { game: number, reason };
            let game = FinishedGame::from_entry(&self.file.line_at(*offset)?).map_err(broken)?;
            if game.number != number || game.white >= names.len() || game.black >= names.len() {
                return Err(broken("its number or a player's number is wrong".into()));
            }
            writer.push(&game, several.then_some(names), output)?;
            plies += game.move_count() as u64;
            *results.entry(game.result.pgn().to_owned()).or_default() += 1;
            if several {
                add_result(&mut scores[game.white], game.result);
                add_result(&mut scores[game.black], game.result.reversed());
            }
        }
        let mut dropped_games = BTreeMap::new();
        for fault in self.dropped.values() {
            *dropped_games.entry(*fault).or_default() += 1;
        }
        let facts = GameFacts { generation, plies, dropped: &dropped_games };
        let written = writer.finish(output, job, &facts)?;
        Ok(GenerateSummary {
            engine: names.join(", "),
            games: self.finished() as u32,
            dropped_games,
            resumed: 0,
            unused: 0,
            replayed: 0,
            plies,
            samples: written.as_ref().map(|written| written.samples),
            score_unit: written.as_ref().map(|written| written.score_unit),
            omissions: written.map(|written| written.omissions).filter(|omissions| *omissions != Omissions::default()),
            results,
            scores,
            book: None,
        })
    }
}

fn add_result(score: &mut EngineScore, result: GameResult) {
    match result {
        GameResult::Win => score.wins += 1,
        GameResult::Draw => score.draws += 1,
        GameResult::Loss => score.losses += 1,
    }
}
