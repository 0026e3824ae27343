//! Evaluations a second: one thread, games in order, accumulators following the moves, every position evaluated.

use std::path::Path;
use std::time::{Duration, Instant};

use shakmaty::Position;

use super::MeasureError;
use super::arrange::by_positions;
use super::lines::{Line, Reading, first};
use crate::chess::{Board, BoardChange, Color};
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::net::NetFile;
use crate::record::{SpeedEntry, SpeedRecord};
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

/// Every strategy on every back end this CPU has. What is timed is following the move (features and accumulators) and the
/// forward pass; boards are made beforehand, and neurons that are active together are put together ([`super::arrange()`]).
///
/// # Errors
/// When the network's feature set cannot be rebuilt, the data cannot be read, or two ways give different scores.
pub fn speed(file: &NetFile, data: &Path, options: SpeedOptions) -> Result<(SpeedRecord, Reading), MeasureError> {
    let set = file.origin.feature_set()?;
    let (lines, reading) = first(data, options.positions)?;
    let track: Vec<Event> = lines.iter().flat_map(events).collect();
    let positions: Vec<_> = track.iter().map(|event| (&event.board, event.turn)).collect();
    let model = Model::new(&by_positions(&set, &file.net, &positions)?);

    let mut runs = Vec::new();
    let each = |strategy| BackEnd::available().into_iter().map(move |back_end| (strategy, back_end));
    for (strategy, back_end) in Strategy::ALL.into_iter().flat_map(each) {
        let evaluator = Evaluator::new(&set, &model, strategy, back_end)?;
        runs.push(Run { strategy, back_end, evaluator, rates: Vec::new(), evaluations: 0 });
    }
    let mut expected = None;
    for repetition in 0..options.repetitions.max(2) {
        let count = runs.len();
        for turn in 0..count {
            // There and back again, so that a drift of the clock rate touches all alike.
            let turn = if repetition % 2 == 0 { turn } else { count - 1 - turn };
            let run = &mut runs[turn];
            let checksum = run.measure(&track, options.duration);
            if *expected.get_or_insert(checksum) != checksum {
                let (strategy, back_end) = (run.strategy.name(), run.back_end.name());
                return Err(MeasureError::Disagreement { strategy, back_end });
            }
        }
    }
    let record = SpeedRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        positions: track.len() as u64,
        entries: runs.iter().map(|run| run.entry(model.row_bytes())).collect(),
    };
    Ok((record, reading))
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

struct Run<'a> {
    strategy: Strategy,
    back_end: BackEnd,
    evaluator: Evaluator<'a>,
    /// Evaluations a second, one a repetition.
    rates: Vec<f64>,
    evaluations: u64,
}

impl Run<'_> {
    /// Runs through `track` until `duration` is over; gives one pass's checksum.
    fn measure(&mut self, track: &[Event], duration: Duration) -> u64 {
        let start = Instant::now();
        let mut passes = 0;
        loop {
            let checksum = self.pass(track);
            passes += 1;
            self.evaluations += track.len() as u64;
            let elapsed = start.elapsed();
            if elapsed >= duration {
                self.rates.push((passes * track.len()) as f64 / elapsed.as_secs_f64());
                return checksum;
            }
        }
    }

    fn pass(&mut self, track: &[Event]) -> u64 {
        let mut checksum = 0u64;
        for event in track {
            match &event.played {
                None => self.evaluator.set(&event.board),
                Some((before, change)) => self.evaluator.play(before, change, &event.board),
            }
            checksum = checksum.wrapping_mul(31).wrapping_add(self.evaluator.raw(event.turn) as u64);
        }
        checksum
    }

    fn entry(&self, row_bytes: usize) -> SpeedEntry {
        let estimate = Estimate::over(&self.rates);
        SpeedEntry {
            strategy: self.strategy.name().into(),
            back_end: self.back_end.name().into(),
            evaluations_per_second: estimate.map_or(f64::NAN, |estimate| estimate.mean),
            interval: estimate.and_then(|estimate| estimate.interval).unwrap_or_default(),
            rows: self.evaluator.rows() as f64 / self.evaluations.max(1) as f64,
            row_bytes,
        }
    }
}
