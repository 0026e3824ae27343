//! Self-play: an engine plays games against itself, written as PGN with `[%eval]` comments.
//!
//! A game depends on the settings, the seed and its number only (one thread, fixed hash, `ucinewgame` before each), and
//! games are written in number order: the file is the same whatever the concurrency. Finished games are kept in a
//! journal beside the output until all are there, so an interrupted run goes on where it stopped.

mod play;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::journal::{Journal, JournalError, journal_path};
use super::output::OutputFile;
use super::uci::{Engine, EngineSpec, Limit, UciError};
use super::{DataError, GameResult};
use crate::units::Seed;

/// What determines a game, beside its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub limit: Limit,
    pub seed: Seed,
    /// Fewest and most random moves a game begins with.
    pub random_plies: (u16, u16),
    /// Chance that a later move is random too; its position is searched all the same.
    pub random_move_rate: f64,
    /// The engine's hash table in MiB.
    pub hash: u32,
    pub adjudication: Adjudication,
}

/// When a game ends before the rules end it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjudication {
    /// Longer games are draws.
    pub max_plies: u16,
    /// A win after `win_plies` scores in a row of at least `win_score` centipawns for the same side.
    pub win_score: u16,
    pub win_plies: u16,
    /// A draw after `draw_plies` scores in a row of at most `draw_score` centipawns, from ply `draw_from` on.
    pub draw_score: u16,
    pub draw_plies: u16,
    pub draw_from: u16,
}

impl Default for Adjudication {
    fn default() -> Adjudication {
        Adjudication { max_plies: 300, win_score: 1000, win_plies: 5, draw_score: 10, draw_plies: 10, draw_from: 70 }
    }
}

/// How the work is done; changes nothing in the games.
#[derive(Clone, Debug)]
pub struct Work {
    pub engine: EngineSpec,
    pub games: u32,
    pub concurrency: usize,
    /// Longest wait for an engine's answer.
    pub patience: Duration,
}

/// What was generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub engine: String,
    pub games: u32,
    /// Games taken from an interrupted run.
    pub resumed: u32,
    pub plies: u64,
    /// White's view.
    pub results: BTreeMap<String, u32>,
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
}

fn kept(finished: usize, journal: &Path) -> String {
    match finished {
        0 => String::new(),
        _ => format!("; {finished} finished games are kept in {}: run the command again to go on", journal.display()),
    }
}

/// A finished game as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Played {
    number: u32,
    result: GameResult,
    plies: u16,
    movetext: String,
}

/// Plays the games and writes them to `output` (`.pgn` or `.pgn.zst`). `progress` gets the number of finished games.
///
/// # Errors
/// When the engine cannot be used, or a file not be written; finished games stay in the journal.
pub fn generate(
    settings: &Settings,
    work: &Work,
    output: &Path,
    progress: &mut dyn FnMut(u32),
) -> Result<Summary, GenerateError> {
    check(settings, work, output)?;
    let path = journal_path(output);
    let engine_failed =
        |error, finished| GenerateError::Engine { error: Box::new(error), finished, journal: path.clone() };
    let first = Engine::start(&work.engine, work.patience).map_err(|error| engine_failed(error, 0))?;
    let engine = first.name().to_owned();
    let head = serde_json::json!({ "journal": "games", "version": 1, "engine": engine, "settings": settings });
    let mut played = BTreeMap::new();
    let mut journal = Journal::open(&path, "games", &head, &mut |_, line| {
        let game: Played = serde_json::from_str(line).map_err(|error| error.to_string())?;
        played.insert(game.number, game);
        Ok(())
    })?;
    played.retain(|number, _| *number < work.games);
    let resumed = played.len() as u32;
    let missing: Vec<u32> = (0..work.games).filter(|number| !played.contains_key(number)).collect();
    progress(resumed);
    let outcome = play_all(settings, work, first, &missing, &mut |game| {
        let line = serde_json::to_string(&game)
            .map_err(|error| Stopped::Data(DataError::Append { path: PathBuf::new(), cause: error.into() }))?;
        journal.append(&line)?;
        played.insert(game.number, game);
        progress(played.len() as u32);
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(Stopped::Engine(error)) => return Err(engine_failed(error, played.len())),
        Err(Stopped::Data(error)) => return Err(error.into()),
        Err(Stopped::Journal(error)) => return Err(error.into()),
    }
    write_games(output, played.values())?;
    journal.remove()?;
    let mut results = BTreeMap::new();
    for game in played.values() {
        *results.entry(result_text(game.result).to_owned()).or_default() += 1;
    }
    let plies = played.values().map(|game| u64::from(game.plies)).sum();
    Ok(Summary { engine, games: work.games, resumed, plies, results })
}

fn check(settings: &Settings, work: &Work, output: &Path) -> Result<(), GenerateError> {
    let request = |text: &str| Err(GenerateError::Request(text.to_owned()));
    if !is_plain(output) && !is_zst(output) {
        return request("the output's name must end in .pgn or .pgn.zst");
    }
    if !(0.0..=1.0).contains(&settings.random_move_rate) {
        return request("--random-move-rate must lie between 0 and 1");
    }
    if settings.random_plies.0 > settings.random_plies.1 {
        return request("--random-plies A..B needs A at most B");
    }
    if settings.random_plies.1 > settings.adjudication.max_plies {
        return request("--random-plies must not exceed --max-plies");
    }
    if matches!(settings.limit, Limit::Nodes(0) | Limit::Depth(0)) {
        return request("a search needs at least one node or ply");
    }
    if work.games == 0 {
        return request("--games must be at least 1");
    }
    Ok(())
}

fn is_plain(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending == "pgn")
}

fn is_zst(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending == "zst")
}

enum Stopped {
    Engine(UciError),
    Data(DataError),
    Journal(JournalError),
}

impl From<JournalError> for Stopped {
    fn from(error: JournalError) -> Stopped {
        Stopped::Journal(error)
    }
}

/// Plays the games `numbers` on `work.concurrency` engines, `first` among them; `keep` gets each as it ends.
fn play_all(
    settings: &Settings,
    work: &Work,
    first: Engine,
    numbers: &[u32],
    keep: &mut dyn FnMut(Played) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let play = |mut engine: Engine, sender: &Sender<Result<Played, UciError>>| {
        while !stop.load(Ordering::Relaxed)
            && let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let game = play::game(&mut engine, settings, *number);
            let failed = game.is_err();
            if sender.send(game).is_err() || failed {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let (sender, games) = channel();
        let mut first = Some(first);
        for _ in 0..work.concurrency.clamp(1, numbers.len().max(1)) {
            let (sender, engine, play) = (sender.clone(), first.take(), &play);
            scope.spawn(move || {
                match engine.map_or_else(|| Engine::start(&work.engine, work.patience), Ok) {
                    Ok(engine) => play(engine, &sender),
                    // The receiver is gone only when another engine failed before.
                    Err(error) => drop(sender.send(Err(error))),
                }
            });
        }
        drop(sender);
        let mut outcome = Ok(());
        for game in games {
            let kept = match game {
                Ok(game) => keep(game),
                Err(error) => Err(Stopped::Engine(error)),
            };
            // Games under way are still finished and kept; the first failure is the one reported.
            if kept.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        outcome
    })
}

fn write_games<'a>(output: &Path, games: impl Iterator<Item = &'a Played>) -> Result<(), DataError> {
    let mut file = OutputFile::create(output)?;
    let mut text = String::new();
    for game in games {
        let result = result_text(game.result);
        let (round, moves) = (game.number + 1, &game.movetext);
        // Writing to a string cannot fail.
        let _ =
            write!(text, "[Event \"Self-play\"]\n[Round \"{round}\"]\n[Result \"{result}\"]\n\n{moves}{result}\n\n");
    }
    if is_zst(output) {
        let mut encoder = zstd::Encoder::new(&mut file, 19).map_err(DataError::write(output))?;
        encoder.include_checksum(true).map_err(DataError::write(output))?;
        encoder.write_all(text.as_bytes()).map_err(DataError::write(output))?;
        encoder.finish().map_err(DataError::write(output))?;
    } else {
        file.put(text.as_bytes())?;
    }
    file.finish()
}

/// White's view.
fn result_text(result: GameResult) -> &'static str {
    match result {
        GameResult::Win => "1-0",
        GameResult::Draw => "1/2-1/2",
        GameResult::Loss => "0-1",
    }
}
