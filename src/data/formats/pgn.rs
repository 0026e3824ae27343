//! Games as samples: every position a move was played from. The one place where games are read for the other formats.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::PoisonError;

use shakmaty::{Chess, Move, Position};

use super::decoders;
use super::sink::{BLOCK, Sink};
use crate::data::input::{Input, Origin};
use crate::data::pgn::{Eval, Head, Reading, Scribe, first_ply};
use crate::data::{DataError, GameResult, Record, Skipped};
use crate::units::Ply;

/// Delivers the samples of a file of games.
pub fn run(path: &Path, sink: &mut Sink) -> Result<(), DataError> {
    let mut block = Vec::with_capacity(BLOCK);
    let totals = all_positions(&Origin::of(path), |records| {
        for record in records {
            block.push(*record);
            if block.len() == BLOCK && !sink.deliver(std::mem::replace(&mut block, Vec::with_capacity(BLOCK)))? {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    sink.deliver(block)?;
    *sink.shared.skipped.lock().unwrap_or_else(PoisonError::into_inner) = (&totals.skipped).into();
    *sink.shared.compression.lock().unwrap_or_else(PoisonError::into_inner) = Some(totals.compression);
    *sink.shared.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(totals.stored);
    sink.games = totals.games;
    Ok(())
}

/// Counts of a file of games that was read.
pub struct GameTotals {
    pub games: u64,
    pub positions: u64,
    pub compression: &'static str,
    pub skipped: Skipped,
    /// Length and blake3 of the file as far as it was read.
    pub stored: (u64, blake3::Hash),
}

/// Hands all positions of a source of games to `visit`, one game per call, until `visit` returns false.
///
/// # Errors
/// When the source cannot be read to its end, or `visit` fails.
pub fn all_positions(
    origin: &Origin,
    mut visit: impl FnMut(&[Record]) -> Result<bool, DataError>,
) -> Result<GameTotals, DataError> {
    let mut reading = Reading::new(Input::open(origin)?, AllPositions);
    let decoders = decoders(&origin.path())?;
    let (mut games, mut positions) = (0, 0);
    'read: while let Some(batch) = decoders.install(|| reading.batch())? {
        for (number, mut records) in (games..).zip(batch) {
            games += 1;
            positions += records.len() as u64;
            for record in &mut records {
                *record = record.with_game(number as u32);
            }
            if !visit(&records)? {
                break 'read;
            }
        }
    }
    let meter = &reading.input().meter;
    let stored = (meter.bytes(), meter.hash());
    Ok(GameTotals { games, positions, compression: reading.compression(), skipped: reading.skipped.clone(), stored })
}

/// Turns every position that a record can hold into a sample, whether it has a score or not.
struct AllPositions;

/// The samples of the game being read.
struct GameSamples {
    records: Vec<Record>,
    ply: u16,
    /// White's view of the current position.
    eval: Option<Eval>,
    /// Whether the last record is the newest move's and has no score.
    unscored: bool,
}

impl Scribe for AllPositions {
    type Page = GameSamples;
    type Kept = Vec<Record>;

    fn open(&self, head: &Head, length: usize) -> ControlFlow<Vec<Record>, GameSamples> {
        // With evaluations a move takes some 28 bytes; longer texts hold more than moves.
        let records = Vec::with_capacity((length / 24).min(500));
        ControlFlow::Continue(GameSamples { records, ply: first_ply(&head.start).0, eval: None, unscored: false })
    }

    fn ply(&self, samples: &mut GameSamples, before: &Chess, mv: Move) {
        let ply = samples.ply;
        samples.ply = ply.saturating_add(1);
        let score = samples.eval.take().map(|eval| before.turn().fold_wb(eval, eval.reversed()).centipawns());
        let record = Record::of(before, 0, Ply(ply), Some(mv), score, None).ok();
        samples.unscored = record.is_some() && score.is_none();
        samples.records.extend(record);
    }

    fn eval(&self, samples: &mut GameSamples, eval: Eval) {
        samples.eval = Some(eval);
    }

    fn searched(&self, samples: &mut GameSamples, eval: Eval) {
        if std::mem::take(&mut samples.unscored)
            && let Some(record) = samples.records.last_mut()
        {
            *record = record.with_score(Some(eval.centipawns()));
        }
    }

    fn close(&self, samples: GameSamples, _: Head, result: Option<GameResult>) -> Vec<Record> {
        let mut records = samples.records;
        if let Some(result) = result {
            for record in &mut records {
                let own = record.turn().fold_wb(result, result.reversed());
                *record = record.with_result(Some(own));
            }
        }
        records
    }
}
