//! Shards of a match: runs of its pairs that several processes play, each with a journal of its own below the match's
//! folder. The match takes their games over. Since a game depends on the match and its number alone, the result equals
//! a match played by one process.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::game::GameSummary;
use super::journal::GAMES;
use super::player::Player;
use super::runner::Opened;
use super::scoreboard::{MatchProgress, Scoreboard};
use super::tally::MatchTally;
use super::{MatchSettings, PlayError};
use crate::output::OutputError;
use crate::pipeline::Journal;

/// The journal in a folder of a match or of its shards.
pub(super) const JOURNAL: &str = "games.journal";
/// The prefix of the shards' folder names.
const PREFIX: &str = "pairs-";

/// Shard `index` (from 0) of `count` of a match of so many pairs.
#[must_use]
pub fn shard_of(pairs: u64, index: u64, count: u64) -> Range<u64> {
    let at = |index: u64| (u128::from(pairs) * u128::from(index) / u128::from(count.max(1))) as u64;
    at(index)..at(index + 1)
}

/// Plays the pairs of these numbers (from 0), or continues them, and returns the half points of the pairing's first
/// player in each pair. `folder` is the match's. `None` if the pairs before the first of these decide a sequential
/// test, as far as the shards that played them are finished: the match needs no more.
///
/// # Errors
/// As [`super::play_match`].
pub fn play_shard(
    players: &[Player],
    settings: &MatchSettings,
    pairs: Range<u64>,
    folder: &Path,
    interrupted: &(dyn Fn() -> bool + Sync),
    progress: &mut dyn FnMut(&MatchProgress),
) -> Result<Option<Vec<u8>>, PlayError> {
    let opened = Opened::new(players, settings)?;
    let tally = || MatchTally::new(opened.pairs(settings), &opened.pairings, settings.sprt);
    let mut before = tally();
    for path in journals(folder)? {
        Journal::read(&path, GAMES, &opened.head, &mut |_, line| before.note(&GameSummary::parse(line)?))?;
    }
    before.count();
    if before.is_decided() && before.counted <= pairs.start {
        return Ok(None);
    }
    let own = folder.join(format!("{PREFIX}{}-{}", pairs.start + 1, pairs.end));
    std::fs::create_dir_all(&own).map_err(|cause| OutputError { path: own.clone(), cause })?;
    // Without the test, which is judged between shards.
    let untested = MatchTally::new(opened.pairs(settings), &opened.pairings, None);
    let mut score = Scoreboard::open(&own.join(JOURNAL), &opened.head, untested)?;
    let of_shard = |number: &u64| pairs.contains(&(number / 2));
    let missing: Vec<u64> = score.journal.missing().filter(of_shard).collect();
    let report = |score: &Scoreboard, progress: &mut dyn FnMut(&MatchProgress)| {
        let total = 2 * (pairs.end - pairs.start);
        progress(&MatchProgress { total, ..score.tally.progress() });
    };
    report(&score, progress);
    if !missing.is_empty() {
        let has_worked = score.tally.players_seen(players.len());
        opened.play(players, settings, &has_worked, missing.into_iter(), interrupted, &mut |played| {
            score.add(&played.game)?;
            report(&score, progress);
            Ok(false)
        })?;
    }
    let points: Option<Vec<u8>> = pairs.clone().map(|pair| Some(score.tally.points(pair)?.iter().sum())).collect();
    score.journal.sync()?;
    points.map(Some).ok_or(PlayError::Stopped)
}

/// The journals of a match's shards.
pub(super) fn journals(folder: &Path) -> Result<Vec<PathBuf>, PlayError> {
    let failed = |cause| OutputError { path: folder.to_path_buf(), cause };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let journal = entry.path().join(JOURNAL);
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && journal.is_file() {
            found.push(journal);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_every_pair_once() {
        for (pairs, count) in [(10, 3), (7, 7), (3, 5), (10_000_000, 1_000)] {
            let shards: Vec<_> = (0..count).map(|index| shard_of(pairs, index, count)).collect();
            assert_eq!((shards[0].start, shards[count as usize - 1].end), (0, pairs));
            assert!(shards.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
