//! `fsbench match --shard`: a part of a match's pairs.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::match_play::{bar, running};
use super::{Failure, ResultFormat, interrupt, print_json};
use crate::play::{MatchSettings, Pairs, PlayError, Player, TournamentType, play_shard, shard_of};
use crate::service::Shard;

/// A shard of a match.
#[derive(Serialize, JsonSchema)]
pub struct MatchShardDocument {
    /// `I/N`: number I, from 0, of N shards.
    shard: String,
    /// Numbers of its pairs, from 1.
    first_pair: u64,
    /// Number of the last pair that this shard plays.
    last_pair: u64,
    /// Pairs by outcome, all pairings together; `None` if earlier shards decide the test.
    pairs: Option<Pairs>,
}

/// Plays the pairs of a shard, or continues them.
pub(super) fn play(
    players: &[Player],
    settings: &MatchSettings,
    shard: Shard,
    folder: &Path,
    format: ResultFormat,
) -> Result<Result<(), PlayError>, Failure> {
    let pairings = TournamentType::pairings(settings.tournament, players.len()).len() as u64;
    let range = shard_of(settings.pairs * pairings, u64::from(shard.index), u64::from(shard.of));
    let points = {
        let _graceful = interrupt::gracefully();
        let bar = bar(players.len());
        let played = play_shard(players, settings, range.clone(), folder, &interrupt::requested, &mut |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.games);
            bar.set_message(running(progress.first));
        });
        bar.finish_and_clear();
        played
    };
    let points = match points {
        Ok(points) => points,
        Err(error) => return Ok(Err(error)),
    };
    let pairs = points.map(|points| {
        let mut pairs = Pairs::default();
        points.iter().try_for_each(|points| pairs.add(*points)).map(|()| pairs)
    });
    let pairs = pairs.transpose().map_err(Failure::work)?;
    let document =
        MatchShardDocument { shard: shard.to_string(), first_pair: range.start + 1, last_pair: range.end, pairs };
    match (format, document.pairs) {
        (ResultFormat::Json, _) => print_json(&document)?,
        (_, None) => outln!("the shards before this one decide the test; nothing to play")?,
        (_, Some(pairs)) => {
            let counts = pairs.counts().map(|count| count.to_string()).join(",");
            outln!("pairs {} to {}: LL,LD,WL+DD,WD,WW {counts}", document.first_pair, document.last_pair)?;
        }
    }
    Ok(Ok(()))
}
