//! Evaluations per second: one thread, games in order, accumulators following the moves, every position evaluated.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use shakmaty::Position;

use super::MeasureError;
use super::ft_permute::{READ, by_lines};
use super::lines::{Line, ReadSummary, first_two};
use crate::chess::{Board, BoardChange, Color, Perspective};
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::features::FeatureSet;
use crate::net::{NetFile, QuantNet};
use crate::record::{ArrangedSpeed, Machine, Nanoseconds, SpeedEntry, SpeedRecord, Way};
use crate::statistics::Estimate;

/// How long and on how much.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct SpeedOptions {
    /// Times each strategy and back end is measured, in turns; at least 2.
    pub repetitions: u32,
    /// A repetition lasts at least this long.
    pub duration: Duration,
    /// Positions taken from the start of the data and run through again and again.
    pub positions: u64,
}

impl Default for SpeedOptions {
    fn default() -> Self {
        SpeedOptions { repetitions: 5, duration: Duration::from_millis(600), positions: 20_000 }
    }
}

/// How far a measure is.
#[derive(Clone, Debug)]
pub struct SpeedProgress {
    /// Repetitions done and to do; none while something else is prepared.
    pub repetitions: Option<(u32, u32)>,
    /// What comes next.
    pub what: String,
}

/// Every strategy on every back end this CPU has, with the network as its file has it; and every strategy on the widest
/// back end with its neurons arranged by positions of other games ([`super::ft_permute()`]). What is timed is following the
/// move (features and accumulators) and the forward pass; boards are made beforehand.
///
/// # Errors
/// When the network's feature set cannot be rebuilt, the data cannot be read, or two ways give different scores.
pub fn speed(
    file: &NetFile,
    data: &Path,
    options: SpeedOptions,
    progress: &mut dyn FnMut(&SpeedProgress),
) -> Result<(SpeedRecord, ReadSummary), MeasureError> {
    let mut prepare = |what: &str| progress(&SpeedProgress { repetitions: None, what: what.into() });
    prepare("rebuilding the feature set");
    let set = file.origin.feature_set()?;
    prepare("reading positions");
    let ([lines, others], reading) = first_two(data, [options.positions, READ])?;
    let track: Vec<Event> = lines.iter().flat_map(events).collect();
    let model = Model::new(&file.net);
    let arranged = match others.is_empty() {
        true => None,
        false => {
            prepare("arranging neurons");
            Some(Model::new(&by_lines(&set, &file.net, &others)?))
        }
    };
    let hollow = model.without_neurons();
    let mut runs = Vec::new();
    for strategy in Strategy::ALL {
        for back_end in BackEnd::available() {
            runs.push(Run::new(&set, [&model, &hollow], strategy, back_end, false)?);
        }
    }
    if let Some(arranged) = &arranged {
        for strategy in Strategy::ALL {
            runs.push(Run::new(&set, [arranged, &hollow], strategy, BackEnd::best(), true)?);
        }
    }
    repeat(&mut runs, &track, options, progress)?;

    let entries = |arranged: bool| -> Vec<SpeedEntry> {
        runs.iter().filter(|run| run.arranged == arranged).map(|run| run.entry(model.row_bytes())).collect()
    };
    let mut record = SpeedRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        network: None,
        digest: digest(&file.net),
        positions: track.len() as u64,
        entries: entries(false),
        best: None,
        arranged: arranged.is_some().then(|| ArrangedSpeed {
            positions: others.iter().map(|line| line.len() as u64).sum(),
            entries: entries(true),
        }),
        machine: Some(Machine::here()),
    };
    let way = |entry: &SpeedEntry| Way { strategy: entry.strategy.clone(), back_end: entry.back_end.clone() };
    record.best = record.fastest().map(way);
    Ok((record, reading))
}

/// Times every run in turns, so that what else the machine does touches all alike.
fn repeat(
    runs: &mut [Run<'_>],
    track: &[Event],
    options: SpeedOptions,
    progress: &mut dyn FnMut(&SpeedProgress),
) -> Result<(), MeasureError> {
    let (repetitions, count) = (options.repetitions.max(2), runs.len());
    let total = repetitions * count as u32;
    let mut expected = None;
    for repetition in 0..repetitions {
        for turn in 0..count {
            // There and back again, so that a drift of the clock rate touches all alike.
            let at = if repetition % 2 == 0 { turn } else { count - 1 - turn };
            let run = &mut runs[at];
            let done = repetition * count as u32 + turn as u32;
            let order = if run.arranged { ", arranged" } else { "" };
            let what = format!("{} on {}{order}", run.strategy.name(), run.back_end.name());
            progress(&SpeedProgress { repetitions: Some((done, total)), what });
            let checksum = run.measure(track, options.duration);
            if *expected.get_or_insert(checksum) != checksum {
                let (strategy, back_end) = (run.strategy.name(), run.back_end.name());
                return Err(MeasureError::Disagreement { strategy, back_end });
            }
        }
    }
    Ok(())
}

/// The first 16 hexadecimal digits of the blake3 of a network's numbers.
fn digest(net: &QuantNet) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{:?} {:?}", net.shape, net.scheme).as_bytes());
    hasher.update(bytemuck::cast_slice(&net.ft_weights)).update(bytemuck::cast_slice(&net.ft_biases));
    hasher.update(bytemuck::cast_slice(&net.psqt_weights));
    for layer in net.stacks.iter().flatten() {
        hasher.update(bytemuck::cast_slice(&layer.weights)).update(bytemuck::cast_slice(&layer.biases));
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// What happens on the way through the data.
struct Event {
    /// Board before and the change; none where a line starts.
    played: Option<(Board, BoardChange)>,
    board: Board,
    turn: Color,
}

fn events(line: &Line) -> Vec<Event> {
    let mut events = Vec::with_capacity(line.len());
    line.positions(|board, turn, step| {
        let played = step.map(|step| (step.before.board().clone(), *step.change));
        events.push(Event { played, board: board.clone(), turn });
    });
    events
}

/// How much of an evaluation is done.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Extent {
    /// Score and all.
    Whole,
    /// Without the forward pass.
    Accumulators,
    /// Without adding rows either.
    Features,
}

/// Two extents that take so much of a repetition's time each, beside the whole.
const PART_OF_TIME: u32 = 3;

struct Run<'a> {
    strategy: Strategy,
    back_end: BackEnd,
    arranged: bool,
    evaluator: Evaluator<'a>,
    /// On a model without neurons.
    hollow: Evaluator<'a>,
    /// Evaluations per second, one per repetition.
    rates: Vec<f64>,
    /// Nanoseconds per position without the forward pass, and without adding rows either; one per repetition.
    parts: [Vec<f64>; 2],
    evaluations: u64,
    rows: u64,
}

impl<'a> Run<'a> {
    fn new(
        set: &'a FeatureSet,
        [model, hollow]: [&'a Model; 2],
        strategy: Strategy,
        back_end: BackEnd,
        arranged: bool,
    ) -> Result<Run<'a>, MeasureError> {
        Ok(Run {
            strategy,
            back_end,
            arranged,
            evaluator: Evaluator::new(set, model, strategy, back_end)?,
            hollow: Evaluator::new(set, hollow, strategy, back_end)?,
            rates: Vec::new(),
            parts: [Vec::new(), Vec::new()],
            evaluations: 0,
            rows: 0,
        })
    }

    /// Times the whole for `duration` and its parts for a part of it each; gives one pass's checksum.
    fn measure(&mut self, track: &[Event], duration: Duration) -> u64 {
        let rows = self.evaluator.rows();
        let (checksum, passes, seconds) = self.timed(track, duration, Extent::Whole);
        self.rows += self.evaluator.rows() - rows;
        let evaluations = passes * track.len() as u64;
        self.evaluations += evaluations;
        self.rates.push(evaluations as f64 / seconds);
        for (part, extent) in [Extent::Accumulators, Extent::Features].into_iter().enumerate() {
            let (_, passes, seconds) = self.timed(track, duration / PART_OF_TIME, extent);
            self.parts[part].push(1e9 * seconds / (passes * track.len() as u64) as f64);
        }
        checksum
    }

    /// Runs through `track` until `duration` is over: one pass's checksum, passes and seconds.
    fn timed(&mut self, track: &[Event], duration: Duration, extent: Extent) -> (u64, u64, f64) {
        let start = Instant::now();
        let mut passes = 0;
        loop {
            let checksum = match extent {
                Extent::Whole => scores(&mut self.evaluator, track),
                Extent::Accumulators => accumulators(&mut self.evaluator, track),
                Extent::Features => accumulators(&mut self.hollow, track),
            };
            passes += 1;
            let elapsed = start.elapsed();
            if elapsed >= duration {
                return (checksum, passes, elapsed.as_secs_f64());
            }
        }
    }

    fn entry(&self, row_bytes: usize) -> SpeedEntry {
        let estimate = Estimate::over(&self.rates);
        let mean = estimate.map_or(f64::NAN, |estimate| estimate.mean);
        let interval = estimate.and_then(|estimate| estimate.interval).unwrap_or_default();
        // Shares of the fastest repetitions: what else the machine does only adds time.
        let whole = 1e9 / self.rates.iter().copied().fold(f64::NAN, f64::max);
        let [accumulators, features] =
            self.parts.each_ref().map(|times| times.iter().copied().fold(f64::NAN, f64::min).min(whole) / whole);
        let accumulators = accumulators.max(features);
        let nanoseconds = Nanoseconds {
            features: features / mean * 1e9,
            rows: (accumulators - features) / mean * 1e9,
            forward: (1.0 - accumulators) / mean * 1e9,
        };
        let entry = SpeedEntry {
            strategy: self.strategy.name().into(),
            back_end: self.back_end.name().into(),
            evaluations_per_second: mean,
            interval,
            noisy: false,
            nanoseconds: Some(nanoseconds),
            rows: self.rows as f64 / self.evaluations.max(1) as f64,
            row_bytes,
        };
        SpeedEntry { noisy: entry.is_noisy(), ..entry }
    }
}

/// One pass with all scores; their checksum.
fn scores(evaluator: &mut Evaluator<'_>, track: &[Event]) -> u64 {
    let mut checksum = 0u64;
    for event in track {
        follow(evaluator, event);
        checksum = checksum.wrapping_mul(31).wrapping_add(evaluator.raw(event.turn) as u64);
    }
    checksum
}

/// One pass that makes all accumulators.
fn accumulators(evaluator: &mut Evaluator<'_>, track: &[Event]) -> u64 {
    for event in track {
        follow(evaluator, event);
        for pov in Perspective::ALL {
            black_box(evaluator.accumulator(pov));
        }
    }
    0
}

fn follow(evaluator: &mut Evaluator<'_>, event: &Event) {
    match &event.played {
        None => evaluator.set(&event.board),
        Some((before, change)) => evaluator.play(before, change, &event.board),
    }
}
