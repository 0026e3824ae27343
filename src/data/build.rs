//! From games to a `.fsd` file: which positions become samples, and what is recorded of them.
//!
//! A sample is a position, the move played in it, and the score of that position: the evaluation written after the move
//! before it. The first position of a game therefore never has one.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use rand::seq::index;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use shakmaty::Position;

use super::games::games;
use super::manifest::{Dropped, Manifest, Source};
use super::pgn::Game;
use super::writer::Provenance;
use super::{DataError, FsdWriter, Method, Record, Sample, ScoreUnit};
use crate::units::{Ply, Seed};

/// How many samples a game gives.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PerGame {
    All,
    /// So many at most, drawn uniformly from those that pass the filters.
    At(u32),
}

/// Which positions are left out for being too lively for a static evaluation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    None,
    /// Positions in check and those whose move captures or promotes.
    Quiet,
}

/// What becomes a sample.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub method: Method,
    pub seed: Seed,
    pub per_game: PerGame,
    pub min_ply: u16,
    pub filter: Filter,
    /// Fewest legal moves of a position; 0 and 1 keep all.
    pub min_moves: u16,
}

impl Options {
    /// The defaults for a method: for `eval` scored positions from ply 20 on, for `pqr` positions from the first on with
    /// at least two legal moves (the one played and another).
    #[must_use]
    pub const fn new(method: Method) -> Options {
        let (min_ply, min_moves) = match method {
            Method::Eval => (20, 0),
            Method::Pqr => (0, 2),
        };
        Options { method, seed: Seed(0), per_game: PerGame::All, min_ply, filter: Filter::None, min_moves }
    }

    /// Every position of every game.
    pub(super) const fn everything() -> Options {
        Options { min_moves: 0, ..Options::new(Method::Pqr) }
    }
}

/// How far a build is.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    pub games: u64,
    pub samples: u64,
}

/// A finished build.
#[derive(Clone, Debug)]
pub struct Built {
    pub manifest: Manifest,
}

/// Builds `output` and its manifest from the games in `input`. `command` goes into the manifest.
///
/// # Errors
/// When the input cannot be read to its end or yields nothing, or the output cannot be written; then nothing is left.
pub fn build(
    input: &Path,
    output: &Path,
    options: &Options,
    command: &[String],
    progress: &mut dyn FnMut(Progress),
) -> Result<Built, DataError> {
    let (bytes, source_hash) = hash_file(input)?;
    let mut writer = FsdWriter::create(output)?;
    let mut selection = Selection::start(input, *options)?;
    selection.run(&mut |record| writer.push(record), progress)?;
    let Selection { games, tally, .. } = selection;
    if tally.games == 0 {
        return Err(DataError::NoGames { path: input.into(), skipped: describe_skipped(games.skipped()) });
    }
    if tally.kept == 0 {
        let dropped = describe_dropped(&tally.dropped);
        return Err(DataError::NoSamples { path: input.into(), method: options.method, dropped });
    }
    let source = Source {
        path: input.display().to_string(),
        bytes,
        blake3: source_hash.to_hex().to_string(),
        games: tally.games,
        skipped: games.skipped().clone(),
    };
    let manifest = Manifest {
        fsbench: env!("CARGO_PKG_VERSION").into(),
        command: command.to_vec(),
        method: options.method.into(),
        score_unit: ScoreUnit::Centipawns,
        options: Some(*options),
        conversion: None,
        sources: vec![source],
        games: tally.games,
        positions: tally.positions,
        kept: tally.kept,
        dropped: tally.dropped,
        samples_hash: blake3::Hash::from_bytes(writer.hash()).to_hex().to_string(),
    };
    let data = writer.seal(Provenance {
        purpose: options.method.into(),
        score_unit: ScoreUnit::Centipawns,
        seed: options.seed,
        games: tally.games.min(u64::from(u32::MAX)) as u32,
        sources: *blake3::hash(source_hash.as_bytes()).as_bytes(),
    })?;
    // The manifest first: where the data stands, its manifest does too.
    manifest.seal(output)?.persist()?;
    data.persist()?;
    Ok(Built { manifest })
}

/// Length and blake3 of a file as it is stored.
pub(super) fn hash_file(path: &Path) -> Result<(u64, blake3::Hash), DataError> {
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path).map_err(DataError::read(path))?;
    hasher.update_reader(file).map_err(DataError::read(path))?;
    Ok((hasher.count(), hasher.finalize()))
}

/// Counts of a selection.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub games: u64,
    pub positions: u64,
    pub kept: u64,
    pub with_score: u64,
    pub with_result: u64,
    pub dropped: BTreeMap<Dropped, u64>,
}

/// The samples of a file of games, in order.
pub(super) struct Selection {
    pub games: super::Games,
    pub tally: Tally,
    options: Options,
}

/// Games turned into records at once.
const BATCH_GAMES: usize = 512;

impl Selection {
    pub fn start(input: &Path, options: Options) -> Result<Selection, DataError> {
        Ok(Selection { games: games(input)?, tally: Tally::default(), options })
    }

    /// Hands every sample to `keep`.
    pub fn run(
        &mut self,
        keep: &mut dyn FnMut(&Record) -> Result<(), DataError>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), DataError> {
        loop {
            let batch: Vec<Game> = self.games.by_ref().take(BATCH_GAMES).collect::<Result<_, _>>()?;
            if batch.is_empty() {
                return Ok(());
            }
            let first = self.tally.games;
            let options = &self.options;
            let chosen: Vec<Chosen> = batch
                .par_iter()
                .enumerate()
                .map(|(i, game)| choose(game, (first + i as u64) as u32, options))
                .collect();
            self.tally.games += batch.len() as u64;
            for game in chosen {
                self.tally.positions += game.positions;
                for (why, count) in game.dropped {
                    *self.tally.dropped.entry(why).or_default() += count;
                }
                for record in &game.records {
                    self.tally.kept += 1;
                    self.tally.with_score += u64::from(record.score().is_some());
                    self.tally.with_result += u64::from(record.result().is_some());
                    keep(record)?;
                }
            }
            progress(Progress { games: self.tally.games, samples: self.tally.kept });
        }
    }
}

#[derive(Default)]
struct Chosen {
    records: Vec<Record>,
    positions: u64,
    dropped: BTreeMap<Dropped, u64>,
}

/// The samples of one game; depends on the game, its number and the options only.
fn choose(game: &Game, number: u32, options: &Options) -> Chosen {
    let mut chosen = Chosen { positions: game.moves.len() as u64, ..Chosen::default() };
    let mut position = game.start.clone();
    let mut eval = None;
    for (played, ply) in game.moves.iter().zip(game.first_ply().0..) {
        let turn = position.turn();
        let sample = Sample {
            position: position.clone(),
            game: number,
            ply: Ply(ply),
            mv: Some(played.mv),
            score: eval.map(|eval: super::Eval| turn.fold_wb(eval, eval.reversed()).centipawns()),
            result: game.result.map(|result| turn.fold_wb(result, result.reversed())),
        };
        match why_dropped(&sample, options)
            .map_or_else(|| Record::pack(&sample).map_err(|_| Dropped::TooManyPieces), Err)
        {
            Ok(record) => chosen.records.push(record),
            Err(why) => *chosen.dropped.entry(why).or_default() += 1,
        }
        eval = played.eval;
        position.play_unchecked(played.mv);
    }
    if let PerGame::At(count) = options.per_game {
        draw(&mut chosen, number, count as usize, options.seed);
    }
    chosen
}

fn why_dropped(sample: &Sample, options: &Options) -> Option<Dropped> {
    if sample.ply.0 < options.min_ply {
        return Some(Dropped::Early);
    }
    if options.method == Method::Eval && sample.score.is_none() {
        return Some(Dropped::NoScore);
    }
    let lively = || sample.position.is_check() || sample.mv.is_some_and(|mv| mv.is_capture() || mv.is_promotion());
    if options.filter == Filter::Quiet && lively() {
        return Some(Dropped::NotQuiet);
    }
    // The move played is legal, so one move needs no count.
    let few = options.min_moves > 1 && sample.position.legal_moves().len() < usize::from(options.min_moves);
    few.then_some(Dropped::FewMoves)
}

fn draw(chosen: &mut Chosen, game: u32, count: usize, seed: Seed) {
    let all = chosen.records.len();
    if all <= count {
        return;
    }
    let mut rng = seed.stream("per-game", u64::from(game));
    let mut drawn = index::sample(&mut rng, all, count).into_vec();
    drawn.sort_unstable();
    chosen.records = drawn.into_iter().map(|i| chosen.records[i]).collect();
    *chosen.dropped.entry(Dropped::NotDrawn).or_default() += (all - count) as u64;
}

fn describe_skipped(skipped: &super::Skipped) -> String {
    let first = skipped.examples.first().map(|game| format!("; the first: {game}")).unwrap_or_default();
    if skipped.total() == 0 { String::new() } else { format!(" ({} broken games{first})", skipped.total()) }
}

fn describe_dropped(dropped: &BTreeMap<Dropped, u64>) -> String {
    let parts: Vec<String> = dropped.iter().map(|(why, count)| format!("{count} {}", why.name())).collect();
    if parts.is_empty() { String::new() } else { format!(" (dropped: {})", parts.join(", ")) }
}
