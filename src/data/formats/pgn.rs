//! Reads games as samples: every position in which a move was played.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::PoisonError;

use shakmaty::{Chess, Move, Position};

use super::block_queue::{BLOCK_SAMPLES, BlockSender, decoders};
use crate::data::input::{Input, InputPath};
use crate::data::pgn::{Eval, EvalOptions, GameHeader, GameReader, GameVisitor, PgnNotes, first_ply};
use crate::data::{DataError, GameResult, Record, SkippedGames};
use crate::units::Ply;

/// Sends the positions of a file of games.
pub fn read(path: &Path, evals: EvalOptions, sender: &mut BlockSender) -> Result<(), DataError> {
    let mut block = Vec::with_capacity(BLOCK_SAMPLES);
    let totals = all_positions(&InputPath::of(path), evals, |records| {
        for record in records {
            block.push(*record);
            if block.len() == BLOCK_SAMPLES
                && !sender.send(std::mem::replace(&mut block, Vec::with_capacity(BLOCK_SAMPLES)))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    sender.send(block)?;
    *sender.state.skipped.lock().unwrap_or_else(PoisonError::into_inner) = (&totals.skipped).into();
    *sender.state.notes.lock().unwrap_or_else(PoisonError::into_inner) = totals.notes;
    *sender.state.compression.lock().unwrap_or_else(PoisonError::into_inner) = Some(totals.compression);
    *sender.state.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(totals.stored);
    sender.games = totals.games;
    Ok(())
}

/// Totals of a file of games.
pub struct GameTotals {
    pub games: u64,
    pub compression: &'static str,
    pub skipped: SkippedGames,
    pub notes: PgnNotes,
    /// Length and blake3 of the file as stored, up to the last byte read.
    pub stored: (u64, blake3::Hash),
}

/// Calls `visit` with the positions of each game until it returns false.
///
/// # Errors
/// When the games cannot be read to their end, or `visit` fails.
pub fn all_positions(
    origin: &InputPath,
    evals: EvalOptions,
    mut visit: impl FnMut(&[Record]) -> Result<bool, DataError>,
) -> Result<GameTotals, DataError> {
    let mut reader = GameReader::new(Input::open(origin)?, AllPositions, evals);
    let decoders = decoders(&origin.path())?;
    let mut games = 0;
    'read: while let Some(batch) = decoders.install(|| reader.next_batch())? {
        for (number, mut records) in (games..).zip(batch) {
            games += 1;
            for record in &mut records {
                *record = record.with_game(number as u32);
            }
            if !visit(&records)? {
                break 'read;
            }
        }
    }
    let meter = &reader.input().meter;
    let stored = (meter.bytes(), meter.hash());
    let notes = reader.notes();
    Ok(GameTotals { games, compression: reader.compression(), skipped: reader.skipped, notes, stored })
}

/// Collects every position that a record can hold, with or without a score.
struct AllPositions;

/// The samples of the game being read.
struct GameSamples {
    records: Vec<Record>,
    ply: u16,
    /// Evaluation of the current position, from White's point of view.
    eval: Option<Eval>,
    /// Whether the last record is the last move's and has no score.
    unscored: bool,
}

impl GameVisitor for AllPositions {
    type State = GameSamples;
    type Output = Vec<Record>;

    fn begin_game(&self, header: &GameHeader, length: usize) -> ControlFlow<Vec<Record>, GameSamples> {
        // A move with its evaluation takes about 28 bytes; longer texts hold other comments too.
        let records = Vec::with_capacity((length / 24).min(500));
        ControlFlow::Continue(GameSamples { records, ply: first_ply(&header.start).0, eval: None, unscored: false })
    }

    fn visit_move(&self, samples: &mut GameSamples, before: &Chess, mv: Move) {
        let ply = samples.ply;
        samples.ply = ply.saturating_add(1);
        let score = samples.eval.take().map(|eval| before.turn().fold_wb(eval, eval.reversed()).centipawns());
        let record = Record::of(before, 0, Ply(ply), Some(mv), score, None).ok();
        samples.unscored = record.is_some() && score.is_none();
        samples.records.extend(record);
    }

    fn visit_eval(&self, samples: &mut GameSamples, eval: Eval) {
        samples.eval = Some(eval);
    }

    fn visit_search_eval(&self, samples: &mut GameSamples, eval: Eval) {
        if std::mem::take(&mut samples.unscored)
            && let Some(record) = samples.records.last_mut()
        {
            *record = record.with_score(Some(eval.centipawns()));
        }
    }

    fn end_game(&self, samples: GameSamples, _: GameHeader, result: Option<GameResult>) -> Vec<Record> {
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
