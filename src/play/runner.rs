//! Plays a match: games in parallel, kept in a journal as they end. Each game depends only on the match and its number.
//!
//! Games are counted in the order of their numbers, so the result of a match at a node limit, and where a sequential
//! test stops it, do not depend on how many are played at once.

use std::path::Path;

use serde_json::{Value, json};

use super::adjudication::AdjudicationRules;
use super::book::Book;
use super::fixtures::{Fixture, fixture};
use super::game::Termination;
use super::game_line::GameLine;
use super::game_loop::{GameRules, GameStart};
use super::player::{Player, PlayerIdentity, PlayerKind};
use super::pool::{GamePool, KeepGame, OnFault};
use super::rating::PairingResult;
use super::scoreboard::{MatchProgress, MatchTotals, PlayerWork, Scoreboard};
use super::shards::JOURNAL;
use super::tally::MatchTally;
use super::{MatchSettings, PlayError};
use crate::alpha_beta::{EvalScale, search_digest};
use crate::pipeline::generation::{BookFacts, BookOrder};
use crate::pipeline::uci::Engine;
use crate::text::distinct_names;
use crate::units::Seed;

/// The games of a match, counted.
#[derive(Clone, Debug)]
pub struct MatchOutcome {
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

/// Plays a match, or continues it, with the games that its shards have played. `folder` gets the journal
/// (`games.journal`) and the counted games (`games.pgn`).
///
/// # Errors
/// When players or openings cannot be used, an engine cannot be started or loses game after game by forfeit (the first
/// 8 without having made a move, or 32 in a row), or a file cannot be read or written. Finished games stay in the
/// journal; the same call continues from there.
pub fn play_match(
    players: &[Player],
    settings: &MatchSettings,
    folder: &Path,
    interrupted: &(dyn Fn() -> bool + Sync),
    progress: &mut dyn FnMut(&MatchProgress),
) -> Result<MatchOutcome, PlayError> {
    let opened = Opened::new(players, settings)?;
    let tally = MatchTally::new(opened.pairs(settings), &opened.pairings, settings.sprt);
    let mut score = Scoreboard::open(&folder.join(JOURNAL), &opened.head, tally)?;
    score.take_over(folder, &opened.head)?;
    let resumed = score.tally.finished;
    progress(&score.tally.progress());
    if !score.tally.is_decided() {
        let missing = score.journal.missing();
        let has_worked = score.tally.players_seen(players.len());
        opened.play(players, settings, &has_worked, missing, interrupted, &mut |played| {
            score.add(&played.game)?;
            progress(&score.tally.progress());
            Ok(score.tally.is_decided())
        })?;
    }
    let Opened { book, identities, names, pairings, .. } = opened;
    if !score.tally.is_decided() && interrupted() {
        score.write_pgn(folder, &names)?;
        return Err(PlayError::Stopped);
    }
    let MatchTotals { work, terminations } = score.write_pgn(folder, &names)?;
    let pairing_results = pairings.iter().zip(&score.tally.pairs);
    Ok(MatchOutcome {
        pairings: pairing_results.map(|(&(first, second), &pairs)| PairingResult { first, second, pairs }).collect(),
        games: score.tally.games.clone(),
        names,
        identities,
        work,
        terminations,
        openings: book.facts,
        resumed,
    })
}

/// The settings that the processes of a match have in common.
pub(super) struct Opened {
    pub(super) book: Book,
    pub(super) identities: Vec<PlayerIdentity>,
    pub(super) names: Vec<String>,
    pub(super) pairings: Vec<(usize, usize)>,
    /// The first line of the journals: the inputs that determine the games.
    pub(super) head: Value,
}

impl Opened {
    pub(super) fn new(players: &[Player], settings: &MatchSettings) -> Result<Opened, PlayError> {
        settings.check(players)?;
        let book = Book::open(&settings.openings, settings.opening_plies, settings.book_part)?;
        settings.check_book(book.facts.openings)?;
        let identities = identities(players, settings)?;
        let names: Vec<&str> = players.iter().map(|player| player.name.as_str()).collect();
        let mut about = json!({
            "players": identities,
            "limit": settings.limit,
            "schedule": settings.tournament,
            "openings": book.facts,
            "seed": settings.seed,
            "adjudication": settings.adjudication,
            "hash": settings.setup.hash,
            "search": players.iter().any(Player::is_network).then(search_digest),
        });
        // Nothing else depends on it.
        if !settings.limit.is_reproducible() {
            about["overhead_ms"] = json!(settings.setup.overhead.as_millis() as u64);
        }
        let head = json!({ "journal": "match", "version": 1, "about": about });
        let names = distinct_names(&names);
        let pairings = settings.tournament.pairings(players.len());
        Ok(Opened { book, identities, names, pairings, head })
    }

    /// Plays the games `numbers` of the match. `has_worked`: by player, whether it has finished games before.
    pub(super) fn play(
        &self,
        players: &[Player],
        settings: &MatchSettings,
        has_worked: &[bool],
        numbers: impl Iterator<Item = u64> + Send,
        interrupted: &(dyn Fn() -> bool + Sync),
        keep: KeepGame<'_>,
    ) -> Result<(), PlayError> {
        let adjudication = settings.adjudication.map(AdjudicationRules::from).unwrap_or_default();
        let pool = GamePool {
            players,
            setup: settings.setup,
            rules: GameRules { limit: settings.limit, adjudication, needs_score: false, opening_bound: None },
            on_fault: OnFault::Forfeit,
            begin: &|number| self.begin(number, settings.seed),
            concurrency: settings.concurrency,
            has_worked,
            interrupted,
        };
        pool.play(numbers, keep)
    }

    /// Game `number`: the encounters of a round, one for every two players, have the same opening.
    fn begin(&self, number: u64, seed: Seed) -> Result<GameStart, PlayError> {
        let Fixture { white, black, encounter } = fixture(number, &self.pairings);
        let round = encounter / self.pairings.len() as u64;
        let line = GameLine::of_opening(self.book.opening(round, BookOrder::Random, seed)?);
        Ok(GameStart { white, black, line, random_moves: None })
    }

    /// Pairs of games in the whole match.
    pub(super) fn pairs(&self, settings: &MatchSettings) -> u64 {
        settings.pairs * self.pairings.len() as u64
    }
}

fn identities(players: &[Player], settings: &MatchSettings) -> Result<Vec<PlayerIdentity>, PlayError> {
    let identity = |player: &Player| match &player.kind {
        PlayerKind::Network(network) => Ok(PlayerIdentity::Network {
            hash: network.hash.clone(),
            features: network.set.identity().to_string(),
            eval_scale: EvalScale::of_model(&network.set, &network.model)
                .map_err(|error| PlayError::player(player, &error))?
                .factor(),
            nodes: player.nodes,
        }),
        PlayerKind::Engine(spec) => {
            let engine = Engine::start(spec, settings.setup.patience);
            let engine = engine.map_err(|error| PlayError::engine(player, error))?;
            Ok(PlayerIdentity::Engine { engine: engine.identity(), nodes: player.nodes })
        }
    };
    players.iter().map(identity).collect()
}
