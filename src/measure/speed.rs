//! Evaluations per second of one thread that follows games move by move and evaluates every position.

use std::path::Path;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MeasureError;
use super::equal_speed::{EqualSpeedOptions, OwnSpeeds};
use super::ft_permute::{POSITIONS, ft_permute_by_lines};
use super::lines::{Line, ReadSummary, first_lines_and_next};
use super::speed_race::Race;
use crate::engine::{BackEnd, Evaluator, LineEvaluator, Model, PlayedPosition, Strategy};
use crate::features::FeatureSet;
use crate::net::{NetFile, QuantNet};
use crate::record::{FtPermutedSpeed, Machine, SpeedBeside, SpeedEntry, SpeedRecord, SpeedSetup, TimeBreakdown};
use crate::settings::{SettingError, check_all};
use crate::statistics::Estimate;

/// Options of [`speed`], of `fsbench measure speed` and of `[measure.speed]` in an experiment.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpeedOptions {
    /// Use only the first N positions; every repetition evaluates them again and again
    #[arg(long, value_name = "N", default_value_t = SpeedOptions::default().positions)]
    pub positions: u64,
    /// Repetitions per strategy and back end
    // In turns; at least 2.
    #[arg(long, value_name = "N", default_value_t = SpeedOptions::default().repetitions)]
    pub repetitions: u32,
    /// Minimum seconds per repetition
    #[arg(long, value_name = "S", default_value_t = SpeedOptions::default().seconds)]
    pub seconds: f64,
    /// Time every back end that this CPU supports, not only the best one
    #[arg(long)]
    pub all_back_ends: bool,
}

impl Default for SpeedOptions {
    fn default() -> Self {
        SpeedOptions { positions: 20_000, repetitions: 5, seconds: 0.6, all_back_ends: false }
    }
}

impl SpeedOptions {
    /// # Errors
    /// If a number is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        check_timing(self.positions, self.repetitions, self.seconds)
    }

    /// The back ends on which networks are timed.
    pub(crate) fn back_ends(self) -> Vec<BackEnd> {
        if self.all_back_ends { BackEnd::available() } else { vec![BackEnd::best()] }
    }

    /// Those of the turns that two networks take over the same positions.
    fn of_turns(self) -> EqualSpeedOptions {
        /// A turn is this part of a repetition.
        const TURN: f64 = 1.0 / 6.0;
        let SpeedOptions { positions, seconds, .. } = self;
        EqualSpeedOptions { positions, seconds: TURN * seconds, ..EqualSpeedOptions::default() }
    }
}

/// Checks the numbers of a timing.
pub(super) fn check_timing(positions: u64, repetitions: u32, seconds: f64) -> Result<(), SettingError> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    check_all(&[
        ("positions", positions > 0, "positions must be at least 1"),
        ("repetitions", repetitions >= 2, "repetitions must be at least 2: a single one gives no interval"),
        ("seconds", (0.0..=SECONDS_PER_DAY).contains(&seconds), "seconds must lie between 0 and 86400"),
    ])
}

/// The progress of [`speed`].
#[derive(Clone, Debug)]
pub struct SpeedProgress {
    /// Repetitions done and in total; `None` during preparation.
    pub repetitions: Option<(u32, u32)>,
    /// The next activity, for the user.
    pub activity: String,
}

/// Times every strategy on the options' back ends with the network as it is in the file, and lines known beforehand.
/// Also times every strategy on the best back end with neurons permuted by positions of other games
/// ([`super::ft_permute()`]). The time includes the update of features and accumulators and the forward pass, but
/// not the moves on the board. `beside`: a network with which it then takes turns, since a machine's speed changes
/// while networks are timed one after another.
///
/// # Errors
/// When the network's feature set cannot be rebuilt, the data cannot be read, or two strategies give different scores.
pub fn speed(
    file: &NetFile,
    data: &Path,
    options: SpeedOptions,
    beside: Option<&NetFile>,
    progress: &mut dyn FnMut(&SpeedProgress),
) -> Result<(SpeedRecord, ReadSummary), MeasureError> {
    let mut prepare = |activity: &str| progress(&SpeedProgress { repetitions: None, activity: activity.into() });
    prepare("rebuilding the feature set");
    let set = file.origin.feature_set()?;
    prepare("reading positions");
    let ([lines, others], summary) = first_lines_and_next(data, [options.positions, POSITIONS])?;
    let track: Vec<PlayedPosition> = lines.iter().flat_map(track_positions).collect();
    let model = Model::new(&file.net);
    let permuted = if others.is_empty() {
        None
    } else {
        prepare("arranging neurons");
        Some(Model::new(&ft_permute_by_lines(&set, &file.net, &others)?))
    };
    let features_only = model.without_neurons();
    let bookkeeping_only = set.without_features();
    let small = Small { model: &features_only, set: &bookkeeping_only };
    let back_ends = options.back_ends();
    let mut timings = Vec::new();
    for strategy in Strategy::ALL {
        for &back_end in &back_ends {
            timings.push(Timing::new(&set, &model, small, (strategy, back_end), false)?);
        }
    }
    for &back_end in &back_ends {
        timings.push(Timing::known_lines(&set, &model, back_end)?);
    }
    if let Some(permuted) = &permuted {
        for strategy in Strategy::ALL {
            timings.push(Timing::new(&set, permuted, small, (strategy, BackEnd::best()), true)?);
        }
    }
    repeat(&mut timings, &track, options, progress)?;
    let mut compared = None;
    if let Some(other) = beside {
        let activity = format!("turns with {}", other.origin.name);
        progress(&SpeedProgress { repetitions: None, activity });
        let race = Race::over(file, other, [&lines, &[]], options.of_turns(), OwnSpeeds::default())?;
        compared = Some(SpeedBeside { digest: digest(&other.net), speed: race.ratio_or_noisy(&file.net)? });
    }

    let entries = |permuted: bool, name: fn(&str) -> bool| -> Vec<SpeedEntry> {
        let is_wanted = |timing: &&Timing<'_>| timing.permuted == permuted && name(timing.name);
        timings.iter().filter(is_wanted).map(|timing| timing.entry(model.row_bytes())).collect()
    };
    let mut record = SpeedRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        encoder: Some(set.encoder_kind()),
        network: None,
        digest: digest(&file.net),
        positions: track.len() as u64,
        entries: entries(false, |name| name != KNOWN_LINE),
        best: None,
        known_lines: entries(false, |name| name == KNOWN_LINE),
        ft_permuted: permuted.is_some().then(|| FtPermutedSpeed {
            positions: others.iter().map(|line| line.len() as u64).sum(),
            entries: entries(true, |_| true),
        }),
        beside: compared,
        machine: Some(Machine::current()),
    };
    let way = |entry: &SpeedEntry| SpeedSetup { strategy: entry.strategy.clone(), back_end: entry.back_end.clone() };
    record.best = record.fastest().map(way);
    Ok((record, summary))
}

/// Repeats all timings in turns, so that other load on the machine affects all alike.
fn repeat(
    timings: &mut [Timing<'_>],
    track: &[PlayedPosition],
    options: SpeedOptions,
    progress: &mut dyn FnMut(&SpeedProgress),
) -> Result<(), MeasureError> {
    let repetitions = options.repetitions.max(2);
    let count = timings.len();
    let duration = Duration::try_from_secs_f64(options.seconds).unwrap_or_default();
    let total = repetitions * count as u32;
    let mut expected = None;
    for repetition in 0..repetitions {
        for turn in 0..count {
            // Every other repetition in reverse, so that a drift of the clock rate affects all alike.
            let at = if repetition % 2 == 0 { turn } else { count - 1 - turn };
            let timing = &mut timings[at];
            let done = repetition * count as u32 + turn as u32;
            let permuted = if timing.permuted { ", permuted" } else { "" };
            let activity = format!("{} on {}{permuted}", timing.name, timing.back_end.name());
            progress(&SpeedProgress { repetitions: Some((done, total)), activity });
            let checksum = timing.measure(track, duration);
            if *expected.get_or_insert(checksum) != checksum {
                let strategy = timing.name;
                let back_end = timing.back_end.name();
                return Err(MeasureError::Disagreement { strategy, back_end });
            }
        }
    }
    Ok(())
}

/// The first 16 hexadecimal digits of the blake3 hash of a network's numbers.
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

pub(super) fn track_positions(line: &Line) -> Vec<PlayedPosition> {
    let mut track = Vec::with_capacity(line.len());
    line.for_each_position(|board, turn, played| {
        track.push(match played {
            None => PlayedPosition::start(board, turn),
            Some(played) => PlayedPosition::after(*played.change, turn),
        });
    });
    track
}

/// The part of an evaluation that is timed. Each is a run of the same strategy over the same positions that leaves out
/// what the part after it in this list adds; the time of that task is the difference of both.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum TimedPart {
    /// Copying boards, making moves, what the strategy keeps: with a set of which no feature is ever active.
    Bookkeeping,
    /// Besides, finding the changed features: with a model without neurons.
    Features,
    /// Besides, adding and subtracting rows.
    Accumulators,
    /// Besides, the forward pass.
    Evaluation,
}

/// The timings of bookkeeping, of features and of accumulators last this fraction of a repetition each.
const PART_OF_TIME: u32 = 4;

/// What leaves out parts of an evaluation.
#[derive(Copy, Clone)]
struct Small<'a> {
    /// Without neurons.
    model: &'a Model,
    /// Of which no feature is ever active.
    set: &'a FeatureSet,
}

/// The name of [`LineEvaluator`] among the strategies.
const KNOWN_LINE: &str = "known line";

/// The timings of a strategy on a back end.
struct Timing<'a> {
    /// The strategy's name, or [`KNOWN_LINE`].
    name: &'static str,
    back_end: BackEnd,
    /// Whether the network's neurons are permuted.
    permuted: bool,
    evaluators: Evaluators<'a>,
    /// Evaluations per second of each repetition.
    rates: Vec<f64>,
    /// Nanoseconds per position of [`TimedPart`]s but the last, in each repetition; none for known lines.
    parts: [Vec<f64>; 3],
    evaluations: u64,
    rows: u64,
}

enum Evaluators<'a> {
    MoveByMove {
        evaluator: Box<Evaluator<'a>>,
        /// With a model without neurons.
        features_only: Box<Evaluator<'a>>,
        /// Besides with a set of which no feature is ever active.
        bookkeeping_only: Box<Evaluator<'a>>,
    },
    KnownLines(LineEvaluator<'a>),
}

impl Evaluators<'_> {
    /// Rows added and subtracted so far.
    fn rows(&self) -> u64 {
        match self {
            Evaluators::MoveByMove { evaluator, .. } => evaluator.rows(),
            Evaluators::KnownLines(evaluator) => evaluator.rows(),
        }
    }

    /// Does a part of the work for all positions once. Returns the checksum of the scores, if there are any.
    fn pass(&mut self, track: &[PlayedPosition], part: TimedPart) -> u64 {
        match (self, part) {
            (Evaluators::MoveByMove { evaluator, .. }, TimedPart::Evaluation) => scores(evaluator, track),
            (Evaluators::MoveByMove { evaluator, .. }, TimedPart::Accumulators) => {
                evaluator.follow(track.iter().map(PlayedPosition::of_line));
                0
            }
            (Evaluators::MoveByMove { features_only, .. }, TimedPart::Features) => {
                features_only.follow(track.iter().map(PlayedPosition::of_line));
                0
            }
            (Evaluators::MoveByMove { bookkeeping_only, .. }, TimedPart::Bookkeeping) => {
                bookkeeping_only.follow(track.iter().map(PlayedPosition::of_line));
                0
            }
            (Evaluators::KnownLines(evaluator), _) => {
                let mut checksum = 0;
                let positions = track.iter().map(PlayedPosition::of_line);
                evaluator.evaluate(positions, |raw| checksum = add_score(checksum, raw.sum()));
                checksum
            }
        }
    }
}

impl<'a> Timing<'a> {
    fn new(
        set: &'a FeatureSet,
        model: &'a Model,
        small: Small<'a>,
        (strategy, back_end): (Strategy, BackEnd),
        permuted: bool,
    ) -> Result<Timing<'a>, MeasureError> {
        let evaluators = Evaluators::MoveByMove {
            evaluator: Box::new(Evaluator::new(set, model, strategy, back_end)?),
            features_only: Box::new(Evaluator::new(set, small.model, strategy, back_end)?),
            bookkeeping_only: Box::new(Evaluator::new(small.set, small.model, strategy, back_end)?),
        };
        Ok(Timing::of(evaluators, strategy.name(), back_end, permuted))
    }

    fn known_lines(set: &'a FeatureSet, model: &'a Model, back_end: BackEnd) -> Result<Timing<'a>, MeasureError> {
        let evaluators = Evaluators::KnownLines(LineEvaluator::new(set, model, back_end)?);
        Ok(Timing::of(evaluators, KNOWN_LINE, back_end, false))
    }

    fn of(evaluators: Evaluators<'a>, name: &'static str, back_end: BackEnd, permuted: bool) -> Timing<'a> {
        let rates = Vec::new();
        let parts = [Vec::new(), Vec::new(), Vec::new()];
        Timing { name, back_end, permuted, evaluators, rates, parts, evaluations: 0, rows: 0 }
    }

    /// Times evaluations for `duration` and their parts for a fraction of it each. Returns the checksum of a pass.
    fn measure(&mut self, track: &[PlayedPosition], duration: Duration) -> u64 {
        let rows = self.evaluators.rows();
        let (checksum, passes, seconds) = self.time(track, duration, TimedPart::Evaluation);
        self.rows += self.evaluators.rows() - rows;
        let evaluations = passes * track.len() as u64;
        self.evaluations += evaluations;
        self.rates.push(evaluations as f64 / seconds);
        if matches!(self.evaluators, Evaluators::KnownLines(_)) {
            return checksum;
        }
        let parts = [TimedPart::Bookkeeping, TimedPart::Features, TimedPart::Accumulators];
        for (times, part) in parts.into_iter().enumerate() {
            let (_, passes, seconds) = self.time(track, duration / PART_OF_TIME, part);
            self.parts[times].push(1e9 * seconds / (passes * track.len() as u64) as f64);
        }
        checksum
    }

    /// Repeats passes over `track` for `duration`. Returns the checksum of a pass, the number of passes and the
    /// seconds.
    fn time(&mut self, track: &[PlayedPosition], duration: Duration, part: TimedPart) -> (u64, u64, f64) {
        let start = Instant::now();
        let mut passes = 0;
        loop {
            let checksum = self.evaluators.pass(track, part);
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
        // Shares from the fastest repetitions: other load on the machine only adds time.
        let evaluation = 1e9 / self.rates.iter().copied().fold(f64::NAN, f64::max);
        let [bookkeeping, features, accumulators] = self
            .parts
            .each_ref()
            .map(|times| times.iter().copied().fold(f64::NAN, f64::min).min(evaluation) / evaluation);
        let features = features.max(bookkeeping);
        let accumulators = accumulators.max(features);
        let nanoseconds = TimeBreakdown {
            features: (features - bookkeeping) / mean * 1e9,
            bookkeeping: Some(bookkeeping / mean * 1e9),
            rows: (accumulators - features) / mean * 1e9,
            forward: (1.0 - accumulators) / mean * 1e9,
        };
        let entry = SpeedEntry {
            strategy: self.name.into(),
            back_end: self.back_end.name().into(),
            evaluations_per_second: mean,
            interval,
            noisy: false,
            nanoseconds: (!self.parts[0].is_empty()).then_some(nanoseconds),
            rows: self.rows as f64 / self.evaluations.max(1) as f64,
            row_bytes,
        };
        SpeedEntry { noisy: entry.is_noisy(), ..entry }
    }
}

/// Evaluates all positions once. Returns the checksum of the scores.
pub(super) fn scores(evaluator: &mut Evaluator<'_>, track: &[PlayedPosition]) -> u64 {
    let mut checksum = 0u64;
    for position in track.iter().map(PlayedPosition::of_line) {
        evaluator.advance(&position);
        checksum = add_score(checksum, evaluator.raw(position.turn));
    }
    checksum
}

const fn add_score(checksum: u64, raw: i32) -> u64 {
    checksum.wrapping_mul(31).wrapping_add(raw as u64)
}
