//! Games between engines, or of one against itself: as PGN with `[%eval]` comments, or as samples.
//!
//! A game depends on the engines, the settings, the seed and its number only (one thread, fixed hash, `ucinewgame`
//! before each), and games are written in number order: the file is the same whatever the concurrency. GameJournal games
//! are kept in a journal beside the output until all are there, so an interrupted run goes on where it stopped.

mod book;
mod finished_game;
mod game_state;
mod output;
mod pairing;
mod play;
mod pool;
mod settings;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use super::journal::{Journal, JournalError, journal_path};
use super::uci::{Engine, EngineIdentity, UciError};
use crate::data::formats::Account;
use crate::data::{DataError, GameResult, ScoreUnit};
use crate::output::OutputError;
use book::Book;
use finished_game::{FinishedGame, result_text};
use output::{Facts, Sink};

pub use book::{BookFacts, BookOrder, BookSpec};
pub use pairing::Pairing;
pub use settings::{Adjudication, GenerateJob, GenerateSettings};

/// What was generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GenerateSummary {
    /// What the engines call themselves.
    pub engine: String,
    pub games: u32,
    /// Games taken from an interrupted run.
    pub resumed: u32,
    /// Games played again because an engine failed in them.
    pub again: u32,
    /// Moves played.
    pub plies: u64,
    /// Samples written, to a file of samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// What their scores are measured in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_unit: Option<ScoreUnit>,
    /// What the format could not hold of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// White's view.
    pub results: BTreeMap<String, u32>,
    /// Of several engines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<EngineScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<BookFacts>,
}

/// What determined the games: for journals and manifests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    pub engines: Vec<EngineIdentity>,
    pub settings: GenerateSettings,
    pub book: Option<BookFacts>,
}

/// How an engine did against the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EngineScore {
    pub engine: String,
    pub wins: u32,
    pub draws: u32,
    pub losses: u32,
}

/// Why no games were generated.
#[derive(Debug, Error)]
pub enum GenerateError {
    #[error("{error}{}", kept(*finished, journal))]
    Engine { error: Box<UciError>, finished: usize, journal: PathBuf },
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the book {}{}: {reason}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Book { path: PathBuf, line: Option<u64>, reason: String },
    #[error("cannot keep the book's openings in a temporary file in {}: {cause}; make room or set TMPDIR", folder.display())]
    Spool { folder: PathBuf, cause: io::Error },
    #[error("game {game} of the journal is damaged: {reason}; remove the line with \"number\":{game} to play it again")]
    Game { game: u32, reason: String },
}

impl From<OutputError> for GenerateError {
    fn from(error: OutputError) -> GenerateError {
        GenerateError::Data(error.into())
    }
}

impl GenerateError {
    /// Whether the request was wrong, rather than the work having failed on the way.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            GenerateError::Engine { error, .. } => error.is_request(),
            GenerateError::Data(error) => error.is_request(),
            GenerateError::Journal(error) => error.is_request(),
            GenerateError::Request(_) | GenerateError::Book { .. } => true,
            GenerateError::Spool { .. } | GenerateError::Game { .. } => false,
        }
    }
}

fn kept(finished: usize, journal: &Path) -> String {
    match finished {
        0 => String::new(),
        _ => format!("; {finished} finished games are kept in {}: run the command again to go on", journal.display()),
    }
}

/// Plays the games and writes them to `output` (`.pgn`, `.pgn.zst`, `.fsd` or `.binpack`). `progress` gets the number of finished
/// games. Takes 12 bytes of memory a game.
///
/// In a file of samples each searched position is one: the engine's choice as its move, whether it was played or not, the
/// search's score in centipawns, and the game's result. A `.fsd` file gets a manifest beside it.
///
/// # Errors
/// When an engine cannot be used, or a file not be read or written; finished games stay in the journal.
pub fn generate(
    settings: &GenerateSettings,
    job: &GenerateJob,
    output: &Path,
    progress: &mut dyn FnMut(u32),
) -> Result<GenerateSummary, GenerateError> {
    settings::check(settings, job)?;
    output::Kind::of(output)?;
    let path = journal_path(output);
    let stopped = |error, finished| GenerateError::Engine { error: Box::new(error), finished, journal: path.clone() };
    let book = settings.book.as_ref().map(Book::open).transpose()?;
    let engines: Result<Vec<Engine>, _> =
        job.engines.iter().map(|spec| Engine::start(spec, job.workers.answer_timeout)).collect();
    let engines = engines.map_err(|error| stopped(error, 0))?;
    let identities: Vec<EngineIdentity> = engines.iter().map(|engine| engine.identity().clone()).collect();
    if let Some(engine) = identities.iter().find(|engine| !engine.reproducible(settings.limit)) {
        let why = "plays below its strength by choosing moves at random: its games cannot be repeated";
        return Err(GenerateError::Request(format!("{} with the options {:?} {why}", engine.name, engine.options)));
    }
    let names = names(&identities);
    let generated = Generation {
        engines: identities,
        settings: settings.clone(),
        book: book.as_ref().map(|book| book.facts.clone()),
    };
    let head = json!({ "journal": "games", "version": 1, "about": generated });
    let mut games = GameJournal::open(&path, &head, job.games)?;
    let resumed = games.count;
    progress(resumed as u32);
    let missing = games.missing();
    let mut again = 0;
    // For the error when an engine fails: what the loop has kept by then.
    let finished = std::cell::Cell::new(resumed);
    let mut keep = |game: FinishedGame, twice: bool| {
        games.keep(&game)?;
        again += u32::from(twice);
        finished.set(games.count);
        progress(games.count as u32);
        Ok(())
    };
    let failed = |error| stopped(error, finished.get());
    pool::play_all(settings, job, book.as_ref(), engines, &missing, &mut keep, &failed)?;
    let mut summary = games.write(output, job, &names, &generated)?;
    games.journal.remove()?;
    summary.resumed = resumed as u32;
    summary.again = again;
    summary.book = book.map(|book| book.facts);
    Ok(summary)
}

/// The engines' names, told apart where two call themselves the same.
fn names(engines: &[EngineIdentity]) -> Vec<String> {
    let name = |place: usize| &engines[place].name;
    let numbered = |place: usize| {
        let twins = (0..engines.len()).filter(|other| name(*other) == name(place)).count();
        let before = (0..place).filter(|other| name(*other) == name(place)).count();
        if twins > 1 { format!("{} #{}", name(place), before + 1) } else { name(place).clone() }
    };
    (0..engines.len()).map(numbered).collect()
}

/// The games that are there, each by its place in the journal.
struct GameJournal {
    journal: Journal,
    /// By number.
    offsets: Vec<u64>,
    count: usize,
}

const MISSING: u64 = u64::MAX;

impl GameJournal {
    fn open(path: &Path, head: &Value, games: u32) -> Result<GameJournal, JournalError> {
        let (mut offsets, mut count) = (vec![MISSING; games as usize], 0);
        let journal = Journal::open(path, "games", head, &mut |offset, line| {
            // Those beyond the number asked for stay where they are.
            if let Some(place) = offsets.get_mut(FinishedGame::number_of(line)? as usize) {
                count += usize::from(*place == MISSING);
                *place = offset;
            }
            Ok(())
        })?;
        Ok(GameJournal { journal, offsets, count })
    }

    fn missing(&self) -> Vec<u32> {
        self.offsets.iter().zip(0..).filter(|(offset, _)| **offset == MISSING).map(|(_, number)| number).collect()
    }

    fn keep(&mut self, game: &FinishedGame) -> Result<(), GenerateError> {
        let broken = |reason: serde_json::Error| GenerateError::Game { game: game.number, reason: reason.to_string() };
        self.offsets[game.number as usize] = self.journal.append(&game.to_entry().map_err(broken)?)?;
        self.count += 1;
        Ok(())
    }

    /// Writes all games in number order.
    fn write(
        &self,
        output: &Path,
        job: &GenerateJob,
        names: &[String],
        generated: &Generation,
    ) -> Result<GenerateSummary, GenerateError> {
        let mut sink = Sink::create(output)?;
        let several = names.len() > 1;
        let score = |name: &String| EngineScore { engine: name.clone(), ..EngineScore::default() };
        let mut scores: Vec<EngineScore> = if several { names.iter().map(score).collect() } else { Vec::new() };
        let (mut results, mut plies) = (BTreeMap::new(), 0);
        for (offset, number) in self.offsets.iter().zip(0..) {
            let broken = |reason| GenerateError::Game { game: number, reason };
            let game = FinishedGame::from_entry(&self.journal.line_at(*offset)?).map_err(broken)?;
            if game.number != number || game.white >= names.len() || game.black >= names.len() {
                return Err(broken("its number or a player's is wrong".into()));
            }
            sink.put(&game, several.then_some(names), output)?;
            plies += game.moves() as u64;
            *results.entry(result_text(game.result).to_owned()).or_default() += 1;
            if several {
                count(&mut scores[game.white], game.result);
                count(&mut scores[game.black], game.result.reversed());
            }
        }
        let written = sink.finish(output, job, &Facts { generated, plies })?;
        Ok(GenerateSummary {
            engine: names.join(", "),
            games: job.games,
            resumed: 0,
            again: 0,
            plies,
            samples: written.as_ref().map(|written| written.samples),
            score_unit: written.as_ref().map(|written| written.score_unit),
            account: written.map(|written| written.account).filter(|account| *account != Account::default()),
            results,
            scores,
            book: None,
        })
    }
}

fn count(score: &mut EngineScore, result: GameResult) {
    match result {
        GameResult::Win => score.wins += 1,
        GameResult::Draw => score.draws += 1,
        GameResult::Loss => score.losses += 1,
    }
}
