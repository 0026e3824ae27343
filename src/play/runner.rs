//! Plays a match: games in parallel, each a function of the match and its number, kept in a journal as they end.
//!
//! Games are counted in the order of their numbers, so the result of a match at a node limit, and where a sequential test
//! stops it, do not depend on how many are played at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use shakmaty::fen::Fen;
use shakmaty::{Chess, EnPassantMode, Position};
use thiserror::Error;

use super::adjudication::{Adjudication, Adjudicator};
use super::game::{GameSummary, MatchGame, MatchMove, Termination};
use super::limit::MoveLimit;
use super::pentanomial::Pairs;
use super::player::{Clocks, Player, PlayerIdentity, PlayerKind, PlayerSetup, Seat, UciLine};
use super::rating::PairingResult;
use super::schedule::{Fixture, Schedule, fixture};
use super::sprt::{Sprt, SprtState};
use crate::data::GameResult;
use crate::output::{OutputError, OutputFile};
use crate::pipeline::generate::{Book, BookFacts, BookOrder, BookSpec, GenerateError};
use crate::pipeline::uci::{UciError, uci_move};
use crate::pipeline::{Journal, JournalError};
use crate::search::Game;
use crate::units::Seed;

/// Why a match could not be played or finished.
#[derive(Debug, Error)]
pub enum MatchError {
    #[error("{0}")]
    Request(String),
    #[error("player {name}: {reason}")]
    Player { name: String, reason: String },
    #[error("{0}")]
    Engine(#[from] UciError),
    #[error(transparent)]
    Openings(#[from] GenerateError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("game {game} of the journal is damaged: {reason}; remove its line to play it again")]
    Damaged { game: u64, reason: String },
    /// The caller asked to stop; finished games are in the journal.
    #[error("the match was interrupted")]
    Stopped,
}

impl MatchError {
    pub(super) fn player(player: &Player, reason: &impl ToString) -> MatchError {
        MatchError::Player { name: player.name.clone(), reason: reason.to_string() }
    }

    /// Whether the request was wrong, rather than the work having failed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            MatchError::Request(_) | MatchError::Player { .. } => true,
            MatchError::Engine(error) => error.is_request(),
            MatchError::Openings(error) => error.is_request(),
            MatchError::Journal(error) => error.is_request(),
            MatchError::Output(_) | MatchError::Damaged { .. } | MatchError::Stopped => false,
        }
    }
}

/// What determines the games of a match, beside the players.
#[derive(Clone, Debug)]
pub struct MatchSettings {
    pub limit: MoveLimit,
    pub schedule: Schedule,
    /// Game pairs per pairing.
    pub pairs: u64,
    pub openings: PathBuf,
    /// Moves taken from each game of a PGN book; all of them if `None`.
    pub opening_plies: Option<u16>,
    pub seed: Seed,
    pub adjudication: Option<Adjudication>,
    /// Ends the match once the test has decided; two players only.
    pub sprt: Option<Sprt>,
    pub setup: PlayerSetup,
    /// Games at once.
    pub concurrency: usize,
}

impl MatchSettings {
    /// A forfeit needs this much more time than the limit.
    const TIME_MARGIN: Duration = Duration::from_millis(20);
}

/// What was played and counted so far.
#[derive(Clone, Debug)]
pub struct MatchProgress {
    /// Finished games, counted or not.
    pub games: u64,
    /// Games of the whole match.
    pub total: u64,
    /// Results of the first pairing.
    pub first: Pairs,
}

/// A player's work over the counted games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerWork {
    pub moves: u64,
    pub nodes: u64,
    pub seconds: f64,
}

/// The games of a match, counted.
#[derive(Clone, Debug)]
pub struct MatchResult {
    pub names: Vec<String>,
    pub identities: Vec<PlayerIdentity>,
    pub pairings: Vec<PairingResult>,
    /// Wins, draws and losses of each pairing's first player.
    pub games: Vec<[u64; 3]>,
    pub work: Vec<PlayerWork>,
    pub terminations: Vec<(Termination, u64)>,
    pub openings: BookFacts,
    /// Games taken over from an interrupted match.
    pub resumed: u64,
}

/// Plays a match, or continues it. `folder` gets the journal (`games.jsonl`) and the counted games (`games.pgn`).
///
/// # Errors
/// When players or openings cannot be used, an engine fails, or a file cannot be read or written. Finished games stay in
/// the journal; the same call continues from there.
pub fn play_match(
    players: &[Player],
    settings: &MatchSettings,
    folder: &Path,
    interrupted: &(dyn Fn() -> bool + Sync),
    progress: &mut dyn FnMut(&MatchProgress),
) -> Result<MatchResult, MatchError> {
    check(players, settings)?;
    let book = Book::open(&BookSpec {
        path: settings.openings.clone(),
        order: BookOrder::Random,
        plies: settings.opening_plies,
    })?;
    let identities = identities(players, settings)?;
    let names = distinct_names(players);
    let head = json!({
        "journal": "match",
        "version": 1,
        "about": {
            "players": identities,
            "limit": settings.limit,
            "schedule": settings.schedule,
            "openings": book.facts,
            "seed": settings.seed,
            "adjudication": settings.adjudication,
            "hash": settings.setup.hash,
        },
    });
    let pairings = settings.schedule.pairings(players.len());
    let total = 2 * settings.pairs * pairings.len() as u64;
    let mut score = Scoreboard::open(&folder.join("games.jsonl"), &head, total, &pairings, settings.sprt)?;
    let resumed = score.finished;
    progress(&score.progress());
    let table = PlayingTable { players, settings, book: &book, pairings: &pairings, interrupted };
    if !score.is_decided() {
        table.play(&score.missing(), &mut |game| {
            score.add(&game)?;
            progress(&score.progress());
            Ok(score.is_decided())
        })?;
    }
    if !score.is_decided() && interrupted() {
        score.write_pgn(folder, &names)?;
        return Err(MatchError::Stopped);
    }
    let Totals { work, terminations } = score.write_pgn(folder, &names)?;
    let pairing_results = pairings.iter().zip(&score.pairs);
    Ok(MatchResult {
        pairings: pairing_results.map(|(&(first, second), &pairs)| PairingResult { first, second, pairs }).collect(),
        games: score.games.clone(),
        names,
        identities,
        work,
        terminations,
        openings: book.facts,
        resumed,
    })
}

fn check(players: &[Player], settings: &MatchSettings) -> Result<(), MatchError> {
    let request = |text: &str| Err(MatchError::Request(text.into()));
    if players.len() < 2 {
        return request("a match needs at least two players");
    }
    if settings.pairs == 0 {
        return request("a match needs at least one pair of games");
    }
    if settings.sprt.is_some() && players.len() > 2 {
        return request("a sequential test compares two players; leave --sprt out or give two");
    }
    let without_nodes = players.iter().any(|player| player.nodes.is_none_or(|nodes| nodes == 0));
    if matches!(settings.limit, MoveLimit::Nodes(0)) && without_nodes {
        return request("a search needs at least one node");
    }
    Ok(())
}

/// Names as PGN and tables show them; players of the same name get a number.
fn distinct_names(players: &[Player]) -> Vec<String> {
    let name = |place: usize| &players[place].name;
    let numbered = |place: usize| {
        let same = |range: std::ops::Range<usize>| range.filter(|other| name(*other) == name(place)).count();
        match same(0..players.len()) {
            1 => name(place).clone(),
            _ => format!("{} #{}", name(place), same(0..place) + 1),
        }
    };
    (0..players.len()).map(numbered).collect()
}

fn identities(players: &[Player], settings: &MatchSettings) -> Result<Vec<PlayerIdentity>, MatchError> {
    let identity = |player: &Player| match &player.kind {
        PlayerKind::Network(network) => Ok(PlayerIdentity::Network {
            hash: network.hash.clone(),
            features: network.set.identity().to_string(),
            nodes: player.nodes,
        }),
        PlayerKind::Engine(spec) => {
            let engine = crate::pipeline::uci::Engine::start(spec, settings.setup.patience)?;
            Ok(PlayerIdentity::Engine { engine: engine.identity().clone(), nodes: player.nodes })
        }
    };
    players.iter().map(identity).collect()
}

/// Sums over the counted games.
struct Totals {
    /// By player.
    work: Vec<PlayerWork>,
    terminations: Vec<(Termination, u64)>,
}

/// The journal, and what has been counted of it.
struct Scoreboard {
    journal: Journal,
    /// Where each game's line begins, by number.
    offsets: Vec<Option<u64>>,
    /// White's result of each finished game, by number.
    results: Vec<Option<GameResult>>,
    finished: u64,
    pairings: Vec<(usize, usize)>,
    sprt: Option<Sprt>,
    /// Pairs counted, in the order of their numbers.
    counted: u64,
    /// By pairing.
    pairs: Vec<Pairs>,
    games: Vec<[u64; 3]>,
    decided: bool,
}

impl Scoreboard {
    fn open(
        path: &Path,
        head: &serde_json::Value,
        total: u64,
        pairings: &[(usize, usize)],
        sprt: Option<Sprt>,
    ) -> Result<Scoreboard, MatchError> {
        let (mut offsets, mut results) = (vec![None; total as usize], vec![None; total as usize]);
        let journal = Journal::open(path, "games", head, &mut |offset, line| {
            let summary = GameSummary::parse(line)?;
            let Fixture { white, black, .. } = fixture(summary.game, pairings);
            if (summary.white, summary.black) != (white, black) {
                return Err(format!("game {} has other players than the schedule", summary.game));
            }
            // Games beyond the number asked for stay in the journal.
            if let Some(place) = offsets.get_mut(summary.game as usize) {
                *place = Some(offset);
                results[summary.game as usize] = Some(summary.result);
            }
            Ok(())
        })?;
        let finished = results.iter().flatten().count() as u64;
        let (pairs, games) = (vec![Pairs::default(); pairings.len()], vec![[0; 3]; pairings.len()]);
        let pairings = pairings.to_vec();
        let mut score = Scoreboard {
            journal,
            offsets,
            results,
            finished,
            pairings,
            sprt,
            counted: 0,
            pairs,
            games,
            decided: false,
        };
        score.count();
        Ok(score)
    }

    fn missing(&self) -> Vec<u64> {
        self.results.iter().zip(0..).filter(|(result, _)| result.is_none()).map(|(_, number)| number).collect()
    }

    fn add(&mut self, game: &MatchGame) -> Result<(), MatchError> {
        let line = game.to_journal();
        let line = line.map_err(|error| MatchError::Damaged { game: game.number, reason: error.to_string() })?;
        let place = game.number as usize;
        self.offsets[place] = Some(self.journal.append(&line)?);
        self.results[place] = Some(game.result);
        self.finished += 1;
        self.count();
        Ok(())
    }

    /// Counts the pairs that are finished without a gap, up to the one that decides the test.
    fn count(&mut self) {
        while !self.decided
            && let Some([Some(first), Some(second)]) =
                self.results.get(2 * self.counted as usize..2 * self.counted as usize + 2)
        {
            // The pairing's first player is White in the first game, Black in the second.
            let results = [*first, second.reversed()];
            let pairing = (self.counted % self.pairings.len() as u64) as usize;
            let points = results.iter().map(|result| half_points(*result)).sum();
            if self.pairs[pairing].add(points).is_err() {
                return;
            }
            for result in results {
                self.games[pairing][2 - usize::from(half_points(result))] += 1;
            }
            self.counted += 1;
            self.decided = self.sprt.is_some_and(|test| test.outcome(self.pairs[0]).state != SprtState::Continue);
        }
    }

    fn is_decided(&self) -> bool {
        self.decided || 2 * self.counted == self.results.len() as u64
    }

    fn progress(&self) -> MatchProgress {
        MatchProgress { games: self.finished, total: self.results.len() as u64, first: self.pairs[0] }
    }

    /// Writes the counted games in order; each player's work, and how the games ended.
    fn write_pgn(&self, folder: &Path, names: &[String]) -> Result<Totals, MatchError> {
        let mut file = OutputFile::create(&folder.join("games.pgn"))?;
        let mut work = vec![PlayerWork { moves: 0, nodes: 0, seconds: 0.0 }; names.len()];
        let kinds = [Termination::Rules, Termination::Adjudication, Termination::Time];
        let mut terminations = kinds.map(|kind| (kind, 0));
        for (number, offset) in (0..2 * self.counted).zip(self.offsets.iter().flatten()) {
            let damaged = |reason| MatchError::Damaged { game: number, reason };
            let game = MatchGame::from_journal(&self.journal.line_at(*offset)?).map_err(damaged)?;
            file.put(game.pgn(names).as_bytes())?;
            let mut turn = game.start.turn();
            for played in &game.moves {
                if let Some(info) = played.search {
                    let work = &mut work[turn.fold_wb(game.white, game.black)];
                    work.moves += 1;
                    work.nodes += info.nodes;
                    work.seconds += info.time.as_secs_f64();
                }
                turn = turn.other();
            }
            terminations.iter_mut().filter(|(kind, _)| *kind == game.termination).for_each(|(_, count)| *count += 1);
        }
        file.finish()?;
        Ok(Totals { work, terminations: terminations.to_vec() })
    }
}

/// Half points of a game: 2 for a win.
const fn half_points(result: GameResult) -> u8 {
    match result {
        GameResult::Win => 2,
        GameResult::Draw => 1,
        GameResult::Loss => 0,
    }
}

/// What all workers share.
struct PlayingTable<'a> {
    players: &'a [Player],
    settings: &'a MatchSettings,
    book: &'a Book,
    pairings: &'a [(usize, usize)],
    interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl PlayingTable<'_> {
    /// Plays the games `numbers`; `keep` gets each as it ends and returns whether the match is decided.
    fn play(
        &self,
        numbers: &[u64],
        keep: &mut dyn FnMut(MatchGame) -> Result<bool, MatchError>,
    ) -> Result<(), MatchError> {
        let (next, stop) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
        let worker = |games: &Sender<Result<MatchGame, MatchError>>| {
            let mut seats: Vec<Option<Seat>> = self.players.iter().map(|_| None).collect();
            while !stop.load(Ordering::Relaxed)
                && let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let game = self.game(&mut seats, *number, &stop);
                let failed = game.is_err();
                if games.send(game).is_err() || failed {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            let (sender, games) = channel();
            for _ in 0..self.settings.concurrency.clamp(1, numbers.len().max(1)) {
                let (sender, worker) = (sender.clone(), &worker);
                scope.spawn(move || worker(&sender));
            }
            drop(sender);
            let outcome = self.collect(&games, &stop, keep);
            stop.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn collect(
        &self,
        games: &Receiver<Result<MatchGame, MatchError>>,
        stop: &AtomicBool,
        keep: &mut dyn FnMut(MatchGame) -> Result<bool, MatchError>,
    ) -> Result<(), MatchError> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let mut outcome = Ok(());
        loop {
            let kept = match games.recv_timeout(LOOK_EVERY) {
                Ok(Ok(game)) => keep(game).map(|decided| {
                    if decided {
                        stop.store(true, Ordering::Relaxed);
                    }
                }),
                // A worker whose game was cut short.
                Ok(Err(MatchError::Stopped)) => Ok(()),
                Ok(Err(error)) => Err(error),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    if (self.interrupted)() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    Ok(())
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return outcome,
            };
            // The first failure is reported; games that end meanwhile are kept.
            if kept.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
    }

    /// Plays game `number`.
    fn game<'a>(
        &'a self,
        seats: &mut [Option<Seat<'a>>],
        number: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<MatchGame, MatchError> {
        let MatchSettings { seed, setup, limit, .. } = self.settings;
        let Fixture { white, black, opening } = fixture(number, self.pairings);
        for player in [white, black] {
            let seat = match &mut seats[player] {
                Some(seat) => seat,
                empty => empty.insert(Seat::new(&self.players[player], setup, stop)?),
            };
            seat.new_game()?;
        }
        let (start, opening) = self.book.opening(opening, BookOrder::Random, *seed)?;
        let mut line = Line::new(start);
        opening.into_iter().for_each(|mv| line.play(MatchMove { mv, search: None }));
        let mut clock = GameClock::new(*limit);
        let mut adjudicator = self.settings.adjudication.map(Adjudicator::new);
        let (result, termination) = loop {
            if let Some(result) = line.result_by_rule() {
                break (result, Termination::Rules);
            }
            let position = line.game.position();
            let (turn, fullmove) = (position.turn(), position.fullmoves().get());
            let player = turn.fold_wb(white, black);
            let limit = self.players[player].nodes.map_or(*limit, MoveLimit::Nodes);
            let Some(seat) = &mut seats[player] else { return Err(MatchError::Stopped) };
            let (mv, search) = seat.choose(&line.game, &line.uci, limit, clock.clocks(), setup)?;
            if stop.load(Ordering::Relaxed) {
                return Err(MatchError::Stopped);
            }
            if clock.is_exceeded(turn.fold_wb(0, 1), search.time) {
                break (turn.fold_wb(GameResult::Loss, GameResult::Win), Termination::Time);
            }
            let zeroing = mv.is_zeroing();
            line.play(MatchMove { mv, search: Some(search) });
            let adjudicated =
                adjudicator.as_mut().and_then(|rules| rules.observe(turn, search.eval, fullmove, zeroing));
            // Mate and stalemate on the board count before what the players think.
            if let Some(result) = adjudicated.filter(|_| line.result_by_rule().is_none()) {
                break (result, Termination::Adjudication);
            }
        };
        Ok(MatchGame { number, white, black, start: line.start, moves: line.moves, result, termination })
    }
}

/// A game in play.
struct Line {
    start: Chess,
    game: Game,
    moves: Vec<MatchMove>,
    uci: UciLine,
}

impl Line {
    fn new(start: Chess) -> Line {
        let fen = Fen::from_position(&start, EnPassantMode::Legal).to_string();
        let uci = UciLine { start: fen, moves: String::new() };
        Line { game: Game::new(start.clone()), start, moves: Vec::new(), uci }
    }

    fn play(&mut self, played: MatchMove) {
        if !self.uci.moves.is_empty() {
            self.uci.moves.push(' ');
        }
        self.uci.moves.push_str(&uci_move(played.mv));
        self.game.play(played.mv);
        self.moves.push(played);
    }

    /// White's view of a game that the rules have ended.
    fn result_by_rule(&self) -> Option<GameResult> {
        let position = self.game.position();
        if position.is_checkmate() {
            return Some(position.turn().fold_wb(GameResult::Loss, GameResult::Win));
        }
        self.game.is_draw().then_some(GameResult::Draw)
    }
}

/// The time of both players.
struct GameClock {
    limit: MoveLimit,
    left: [Duration; 2],
}

impl GameClock {
    fn new(limit: MoveLimit) -> GameClock {
        let left = if let MoveLimit::Clock { time, .. } = limit { time } else { Duration::ZERO };
        GameClock { limit, left: [left; 2] }
    }

    fn clocks(&self) -> Option<Clocks> {
        let MoveLimit::Clock { increment, .. } = self.limit else { return None };
        Some(Clocks { left: self.left, increment })
    }

    /// Takes the time of a move of one side; whether it was too long.
    fn is_exceeded(&mut self, side: usize, time: Duration) -> bool {
        match self.limit {
            MoveLimit::Nodes(_) => false,
            MoveLimit::MoveTime(most) => time > most + MatchSettings::TIME_MARGIN,
            MoveLimit::Clock { increment, .. } => {
                let exceeded = time > self.left[side] + MatchSettings::TIME_MARGIN;
                self.left[side] = self.left[side].saturating_sub(time) + increment;
                exceeded
            }
        }
    }
}
