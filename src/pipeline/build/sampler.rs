//! The samples of all games in order: numbered, drawn, repeated by weight, and handed on. What is drawn depends on the
//! seed and the game's number only.

use rand::seq::index;

use super::drop_reason::{BuildCounts, DropReason, GameDropReason};
use super::filter::FilteredSamples;
use super::options::{BuildOptions, PerGame};
use super::temp_samples::TempSamplesWriter;
use super::win_rate_model::result_probability;
use crate::data::{DataError, FsdWriter, Record, ScoreUnit, Split, SplitRule};
use crate::units::{Draws, Seed};

/// Where samples go.
pub enum Sink {
    File(Box<FsdWriter>),
    /// More is to be decided.
    TempSamplesWriter(TempSamplesWriter),
}

impl Sink {
    fn push(&mut self, records: &[Record]) -> Result<(), DataError> {
        match self {
            Sink::File(writer) => writer.push_all(records),
            Sink::TempSamplesWriter(spool) => spool.push(records),
        }
    }
}

pub struct Sampler {
    per_game: PerGame,
    seed: Seed,
    part: Option<(SplitRule, Split)>,
    /// Draws results that are unlikely; none where they are kept, or where the scores come later.
    unlikely: Option<Draws>,
    weights: Draws,
    source: CurrentSource,
    pending: Option<(u64, Vec<Record>)>,
    pub tally: BuildCounts,
    pub kept: u64,
    pub sink: Sink,
}

struct CurrentSource {
    /// Games of the sources before this.
    first_game: u64,
    weight: f64,
    unit: ScoreUnit,
}

impl Sampler {
    pub fn new(options: &BuildOptions, scores_later: bool, sink: Sink) -> Sampler {
        let part = options.split.map(|split| (SplitRule::new(split.seed, split.validation), split.split));
        Sampler {
            per_game: options.per_game,
            seed: options.seed,
            part,
            unlikely: (options.skip_unlikely && !scores_later).then(|| options.seed.draws("unlikely")),
            weights: options.seed.draws("weight"),
            source: CurrentSource { first_game: 0, weight: 1.0, unit: ScoreUnit::Centipawns },
            pending: None,
            tally: BuildCounts::default(),
            kept: 0,
            sink,
        }
    }

    /// Another source begins.
    pub fn begin(&mut self, weight: f64, unit: ScoreUnit) {
        self.source = CurrentSource { first_game: self.tally.games, weight, unit };
    }

    /// The source is read; `games` of it, also those without samples.
    pub fn finish(&mut self, games: u64) -> Result<(), DataError> {
        self.end()?;
        self.tally.games = self.source.first_game + games;
        Ok(())
    }

    /// Samples of the source's game `number`, which may go on with the next.
    pub fn add(&mut self, number: u64, sifted: FilteredSamples) -> Result<(), DataError> {
        self.tally.add(&sifted.tally);
        match &mut self.pending {
            Some((pending, records)) if *pending == number => records.extend(sifted.records),
            _ => {
                self.end()?;
                self.pending = Some((number, sifted.records));
            }
        }
        Ok(())
    }

    /// The game under way is complete.
    fn end(&mut self) -> Result<(), DataError> {
        let Some((number, records)) = self.pending.take() else { return Ok(()) };
        let Ok(number) = u32::try_from(self.source.first_game + number) else {
            let reason = "there are more than 2^32 games; build several files".into();
            return Err(DataError::Input { input: "all inputs".into(), reason });
        };
        self.game(number, records)
    }

    fn game(&mut self, number: u32, mut records: Vec<Record>) -> Result<(), DataError> {
        if self.part.is_some_and(|(rule, split)| !rule.contains(number, split)) {
            self.leave_out(GameDropReason::OtherPart, &records);
            return Ok(());
        }
        let copies = self.copies(number);
        if copies == 0 {
            self.leave_out(GameDropReason::Weight, &records);
            return Ok(());
        }
        if let Some(draws) = self.unlikely {
            let before = records.len();
            records.retain(|record| is_likely(record, number, self.source.unit, draws));
            self.tally.drop(DropReason::Unlikely, (before - records.len()) as u64);
        }
        if let PerGame::AtMost(count) = self.per_game {
            let before = records.len();
            draw(&mut records, number, count as usize, self.seed);
            self.tally.drop(DropReason::NotDrawn, (before - records.len()) as u64);
        }
        for record in &mut records {
            *record = record.with_game(number);
        }
        for _ in 0..copies {
            self.kept += records.len() as u64;
            self.sink.push(&records)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, why: GameDropReason, records: &[Record]) {
        self.tally.drop_game(why);
        self.tally.drop(DropReason::GameLeftOut, records.len() as u64);
    }

    fn copies(&self, number: u32) -> u64 {
        let whole = self.source.weight.floor();
        let more = share(self.weights.at(u64::from(number))) < self.source.weight - whole;
        whole as u64 + u64::from(more)
    }
}

/// Whether a sample survives the draw by its result's result_probability; without a score or a result it does.
pub fn is_likely(record: &Record, number: u32, unit: ScoreUnit, draws: Draws) -> bool {
    let (Some(score), Some(result)) = (record.score(), record.result()) else { return true };
    let result_probability = result_probability(result, f64::from(unit.in_centipawns(score)), record.ply());
    share(draws.at(u64::from(number) << 16 | u64::from(record.ply().0))) < result_probability
}

/// In [0, 1).
fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn draw(records: &mut Vec<Record>, game: u32, count: usize, seed: Seed) {
    if records.len() > count {
        let mut rng = seed.stream("per-game", u64::from(game));
        let mut drawn = index::sample(&mut rng, records.len(), count).into_vec();
        drawn.sort_unstable();
        *records = drawn.into_iter().map(|place| records[place]).collect();
    }
}
