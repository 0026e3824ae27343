//! Receives the filtered samples of all games in order; numbers the games, draws samples, repeats games by weight and
//! writes the result. All draws depend on the seed and the game's number only.

use rand::seq::index;

use super::drop_reason::{BuildCounts, DropReason, GameDropReason};
use super::filter::FilteredSamples;
use super::options::{BuildOptions, PerGame};
use super::temp_samples::TempSamplesWriter;
use super::win_rate_model::result_probability;
use crate::data::{DataError, FsdWriter, Record, ScoreUnit, Split, SplitRule};
use crate::units::{Draws, Seed};

/// Where the sampler writes to.
pub enum SampleSink {
    File(Box<FsdWriter>),
    /// For a second pass over all samples.
    TempFile(TempSamplesWriter),
}

impl SampleSink {
    fn push(&mut self, records: &[Record]) -> Result<(), DataError> {
        match self {
            SampleSink::File(writer) => writer.push_all(records),
            SampleSink::TempFile(writer) => writer.push(records),
        }
    }
}

pub struct Sampler {
    per_game: PerGame,
    seed: Seed,
    split: Option<(SplitRule, Split)>,
    /// Draws for dropping unlikely results; `None` where they are kept, or where an engine gives the scores later.
    unlikely_draws: Option<Draws>,
    weight_draws: Draws,
    source: CurrentSource,
    /// The game being received: its number within the source, and its samples and counts so far.
    open_game: Option<(u64, FilteredSamples)>,
    pub counts: BuildCounts,
    pub samples: u64,
    pub sink: SampleSink,
}

struct CurrentSource {
    /// Games of all earlier sources.
    first_game: u64,
    weight: f64,
    unit: ScoreUnit,
}

impl Sampler {
    /// `scores_later`: an engine will score the samples in a second pass.
    pub fn new(options: &BuildOptions, scores_later: bool, sink: SampleSink) -> Sampler {
        Sampler {
            per_game: options.per_game,
            seed: options.seed,
            split: options.split.map(|split| (SplitRule::new(split.seed, split.validation), split.split)),
            unlikely_draws: (options.skip_unlikely && !scores_later).then(|| options.seed.draws("unlikely")),
            weight_draws: options.seed.draws("weight"),
            source: CurrentSource { first_game: 0, weight: 1.0, unit: ScoreUnit::Centipawns },
            open_game: None,
            counts: BuildCounts::default(),
            samples: 0,
            sink,
        }
    }

    pub fn begin_source(&mut self, weight: f64, unit: ScoreUnit) {
        self.source = CurrentSource { first_game: self.counts.games, weight, unit };
    }

    /// Ends the source, which had `games` games, including games without samples.
    pub fn finish_source(&mut self, games: u64) -> Result<(), DataError> {
        self.finish_game()?;
        self.counts.games = self.source.first_game + games;
        Ok(())
    }

    /// Adds samples of the source's game `number`; the next call may add more samples of the same game.
    pub fn add(&mut self, number: u64, filtered: FilteredSamples) -> Result<(), DataError> {
        match &mut self.open_game {
            Some((open, game)) if *open == number => {
                game.records.extend(filtered.records);
                game.counts.add(&filtered.counts);
            }
            _ => {
                self.finish_game()?;
                self.open_game = Some((number, filtered));
            }
        }
        Ok(())
    }

    fn finish_game(&mut self) -> Result<(), DataError> {
        let Some((number, game)) = self.open_game.take() else { return Ok(()) };
        let Ok(number) = u32::try_from(self.source.first_game + number) else {
            let reason = "there are more than 2^32 games; build several files".into();
            return Err(DataError::Input { input: "all inputs".into(), reason });
        };
        self.write_game(number, game)
    }

    fn write_game(&mut self, number: u32, game: FilteredSamples) -> Result<(), DataError> {
        let FilteredSamples { mut records, counts } = game;
        if self.split.is_some_and(|(rule, split)| !rule.contains(number, split)) {
            self.counts.add(&counts.of_game_left_out(GameDropReason::OtherPart));
            return Ok(());
        }
        let copies = self.copies(number);
        if copies == 0 {
            self.counts.add(&counts.of_game_left_out(GameDropReason::Weight));
            return Ok(());
        }
        self.counts.add(&counts);
        if let Some(draws) = self.unlikely_draws {
            let before = records.len();
            records.retain(|record| survives_result_draw(record, number, self.source.unit, draws));
            self.counts.drop(DropReason::Unlikely, (before - records.len()) as u64);
        }
        if let PerGame::AtMost(count) = self.per_game {
            let before = records.len();
            keep_random(&mut records, number, count as usize, self.seed);
            self.counts.drop(DropReason::NotDrawn, (before - records.len()) as u64);
        }
        for record in &mut records {
            *record = record.with_game(number);
        }
        self.counts.repeated += (copies - 1) * records.len() as u64;
        for _ in 0..copies {
            self.samples += records.len() as u64;
            self.sink.push(&records)?;
        }
        Ok(())
    }

    /// How often the game is written: the source's weight, rounded up or down at random.
    fn copies(&self, number: u32) -> u64 {
        let floor = self.source.weight.floor();
        let round_up = unit_interval(self.weight_draws.at(u64::from(number))) < self.source.weight - floor;
        floor as u64 + u64::from(round_up)
    }
}

/// Draws whether a sample is kept, with the probability of its result. A sample without a score or a result is kept.
pub fn survives_result_draw(record: &Record, game: u32, unit: ScoreUnit, draws: Draws) -> bool {
    let (Some(score), Some(result)) = (record.score(), record.result()) else { return true };
    let probability = result_probability(result, f64::from(unit.in_centipawns(score)), record.ply());
    unit_interval(draws.at(u64::from(game) << 16 | u64::from(record.ply().0))) < probability
}

/// Random bits as a number in [0, 1).
fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Keeps `count` random records of the game, in their order.
fn keep_random(records: &mut Vec<Record>, game: u32, count: usize, seed: Seed) {
    if records.len() > count {
        let mut rng = seed.stream("per-game", u64::from(game));
        let mut drawn = index::sample(&mut rng, records.len(), count).into_vec();
        drawn.sort_unstable();
        *records = drawn.into_iter().map(|index| records[index]).collect();
    }
}
