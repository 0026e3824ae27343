//! Counts the games of a match from its journal, in the order of their numbers.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shakmaty::Position;

use super::PlayError;
use super::game::{GameSummary, PlayedGame, Termination};
use super::journal::{GAMES, GameJournal};
use super::pentanomial::Pairs;
use super::shards;
use super::tally::MatchTally;
use crate::output::OutputFile;
use crate::pipeline::Journal;
use crate::pipeline::uci::EngineFault;
use crate::units::SortedMap;

/// The progress of a match.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayerWork {
    pub moves: u64,
    pub nodes: u64,
    pub seconds: f64,
    /// Games lost by exceeding the time.
    pub lost_on_time: u64,
    /// Games lost by forfeit.
    pub forfeits: SortedMap<EngineFault, u64>,
}

/// Sums over the counted games.
pub(super) struct MatchTotals {
    /// By player.
    pub(super) work: Vec<PlayerWork>,
    pub(super) terminations: Vec<(Termination, u64)>,
}

/// The journal, and the counts of its games.
pub(super) struct Scoreboard {
    pub(super) journal: GameJournal,
    pub(super) tally: MatchTally,
}

impl Scoreboard {
    /// Opens the journal of a match's games.
    pub(super) fn open(path: &Path, head: &Value, mut tally: MatchTally) -> Result<Scoreboard, PlayError> {
        let journal = GameJournal::open(path, head, tally.total() as u64, &mut |summary| tally.note(summary))?;
        tally.count();
        Ok(Scoreboard { journal, tally })
    }

    /// Adds the games that shards of the match have played.
    pub(super) fn take_over(&mut self, folder: &Path, head: &Value) -> Result<(), PlayError> {
        for path in shards::journals(folder)? {
            let mut lines = Vec::new();
            Journal::read(&path, GAMES, head, &mut |_, line| {
                let summary = GameSummary::parse(line)?;
                self.tally.note(&summary)?;
                lines.push((summary.game, line.to_owned()));
                Ok(())
            })?;
            for (number, line) in lines {
                if self.journal.lacks(number) {
                    self.journal.add_line(number, &line)?;
                }
            }
        }
        self.tally.count();
        Ok(())
    }

    pub(super) fn add(&mut self, game: &PlayedGame) -> Result<(), PlayError> {
        self.journal.add(game)?;
        self.tally.add(game.number, game.result);
        self.tally.count();
        Ok(())
    }

    /// Writes the counted games in order; each player's work, and how the games ended.
    pub(super) fn write_pgn(&self, folder: &Path, names: &[String]) -> Result<MatchTotals, PlayError> {
        let mut file = OutputFile::create(&folder.join("games.pgn"))?;
        let mut work = vec![PlayerWork::default(); names.len()];
        let mut terminations = Termination::ALL.map(|kind| (kind, 0));
        for number in 0..2 * self.tally.counted {
            let Some(game) = self.journal.game(number)? else { break };
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
            if let Some(loser) = game.defaulter() {
                let work = &mut work[loser];
                match &game.forfeit {
                    Some(forfeit) => *work.forfeits.get_or_default(forfeit.reason) += 1,
                    None => work.lost_on_time += 1,
                }
            }
            terminations.iter_mut().filter(|(kind, _)| *kind == game.termination).for_each(|(_, count)| *count += 1);
        }
        file.finish()?;
        Ok(MatchTotals { work, terminations: terminations.to_vec() })
    }
}
