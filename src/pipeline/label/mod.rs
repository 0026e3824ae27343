//! Scores by an engine: every distinct position of a slice of records is searched once, each for itself (`ucinewgame`
//! before it), so that its answer depends on the engine, its options, the limit and the position alone.
//!
//! Two records hold the same position when board, side to move, castling rights, en passant and rule-50 counter agree;
//! what happened in the game before is not told to the engine. Finished positions are kept in a journal: an interrupted
//! run goes on where it stopped, and its result is the same as without the interruption.

mod journal_entry;
mod pool;
mod repeats;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position};
use thiserror::Error;

use super::journal::{Journal, JournalError};
use super::uci::{Answer, Engine, EngineIdentity, EngineSpec, SearchLimit, UciError, Workers};
use crate::data::{Eval, Record, pack_move};
use crate::units::Centipawn;
use run::LabelRun;

/// What determines the scores, beside the positions.
#[derive(Clone, Debug)]
pub struct LabelSettings {
    pub engine: EngineSpec,
    pub limit: SearchLimit,
    /// How often a position is tried again, on a new engine, after the engine failed.
    pub retries: u32,
}

impl LabelSettings {
    /// With one more try.
    #[must_use]
    pub const fn new(engine: EngineSpec, limit: SearchLimit) -> LabelSettings {
        LabelSettings { engine, limit, retries: 1 }
    }
}

/// How far a run is.
#[derive(Copy, Clone, Debug)]
pub struct LabelProgress {
    /// Distinct positions with an answer or a failure, those from the journal included.
    pub done: u64,
    /// Distinct positions.
    pub total: u64,
    pub failed: u64,
    /// Positions a second since this run began.
    pub rate: f64,
}

/// What the engine found in a position.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Side to move's view, as [`Eval::centipawns`]: centipawns, mates beyond ±30,000.
    pub score: i16,
    /// As a record packs it.
    mv: u16,
}

impl Label {
    fn of(answer: &Answer) -> Label {
        Label { score: answer.eval.centipawns(), mv: pack_move(answer.best) }
    }

    /// Side to move's view.
    #[must_use]
    pub fn eval(self) -> Eval {
        let score = i32::from(self.score);
        if score.abs() <= Eval::LARGEST {
            Eval::Score(Centipawn(score))
        } else {
            Eval::Mate(score.signum() * (Eval::MATE - score.abs()) / 2)
        }
    }

    /// The engine's choice in `position`, the one that was searched.
    #[must_use]
    pub fn best_move(self, position: &Chess) -> Option<Move> {
        position.legal_moves().into_iter().find(|mv| pack_move(*mv) == self.mv)
    }

    /// `record`, which holds the searched position, with this score and the engine's choice as its move.
    #[must_use]
    pub fn apply(self, record: Record) -> Record {
        record.with_score(Some(self.score)).with_move(self.mv)
    }

    /// `record`, which holds the searched position, with this score and its own move.
    #[must_use]
    pub fn apply_score(self, record: Record) -> Record {
        record.with_score(Some(self.score))
    }
}

/// Why a position has no score.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailReason {
    /// The record holds no legal position.
    NotLegal,
    /// Mate or stalemate: there is nothing to search.
    NoLegalMove,
    /// The engine ended in the middle of the search.
    EngineEnded,
    /// The engine gave no answer in time.
    EngineSilent,
    /// The engine answered with something that is no legal move and score.
    EngineNonsense,
}

impl FailReason {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FailReason::NotLegal => "no legal position",
            FailReason::NoLegalMove => "no legal move",
            FailReason::EngineEnded => "the engine ended",
            FailReason::EngineSilent => "no answer in time",
            FailReason::EngineNonsense => "no legal move and score in the answer",
        }
    }

    const fn of(error: &UciError) -> FailReason {
        match error {
            UciError::Silent { .. } => FailReason::EngineSilent,
            UciError::Nonsense { .. } => FailReason::EngineNonsense,
            _ => FailReason::EngineEnded,
        }
    }

    const fn is_engine(self) -> bool {
        !matches!(self, FailReason::NotLegal | FailReason::NoLegalMove)
    }
}

/// A position that has no score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedPosition {
    /// Number of the first record that holds it.
    pub record: u32,
    pub fen: String,
    pub reason: FailReason,
    pub message: String,
}

/// How the scores came about: what a manifest records. The same whether the run was interrupted or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labelling {
    pub engine: EngineIdentity,
    pub limit: SearchLimit,
    /// Whether the same engine gives the same scores again.
    pub reproducible: bool,
    /// Distinct positions.
    pub positions: u64,
    /// Records that hold a position of an earlier one.
    pub repeated: u64,
    /// Distinct positions without a score.
    pub failed: BTreeMap<FailReason, u64>,
    /// The first few of them.
    pub examples: Vec<FailedPosition>,
}

/// What this run did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    pub searched: u64,
    /// Positions taken from the journal of an interrupted run.
    pub resumed: u64,
    /// Engines that died or were killed, each replaced by a new one.
    pub engines_lost: u64,
}

/// The scores of a slice of records.
#[derive(Debug)]
pub struct Labels {
    pub labelling: Labelling,
    pub counts: RunCounts,
    /// For each record the first one with its position.
    first: Vec<u32>,
    /// By number of that one.
    found: Vec<Label>,
    journal: Journal,
}

impl Labels {
    /// The answer for a record by its place in the slice; none where its position failed.
    ///
    /// # Panics
    /// When the slice had no such record.
    #[must_use]
    pub fn get(&self, record: usize) -> Option<Label> {
        Some(self.found[self.first[record] as usize]).filter(|label| *label != MISSING)
    }

    /// Removes the journal: to be called when what was made of the scores stands where it belongs.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove_journal(self) -> Result<(), JournalError> {
        self.journal.remove()
    }
}

/// In the place of an answer that is not there.
const MISSING: Label = Label { score: i16::MIN, mv: 0 };

/// Why there are no scores. Positions searched so far are kept in the journal.
#[derive(Debug, Error)]
pub enum LabelError {
    #[error("{error}{}", kept(*finished, journal))]
    Engine { error: Box<UciError>, finished: u64, journal: PathBuf },
    #[error(
        "{failures} positions in a row could not be searched; the last one, {}: {}{}",
        last.fen, last.message, kept(*finished, journal)
    )]
    NothingButFailures { failures: u64, last: Box<FailedPosition>, finished: u64, journal: PathBuf },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("a search needs at least one node, ply or millisecond")]
    EmptyLimit,
    #[error("{records} records are too many to label at once: at most {} are possible; split the data", u32::MAX - 1)]
    TooMany { records: usize },
}

impl LabelError {
    /// Whether the request was wrong, rather than the work having failed on the way.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        match self {
            LabelError::Engine { error, .. } => error.is_request(),
            LabelError::Journal(error) => error.is_request(),
            LabelError::EmptyLimit | LabelError::TooMany { .. } => true,
            LabelError::NothingButFailures { .. } => false,
        }
    }
}

fn kept(finished: u64, journal: &Path) -> String {
    match finished {
        0 => String::new(),
        _ => {
            format!("; {finished} finished positions are kept in {}: run the command again to go on", journal.display())
        }
    }
}

/// So many failures in a row end the run: an engine that is wrong from the start is found out sooner.
const PATIENCE_AT_FIRST: u64 = 8;
const PATIENCE_LATER: u64 = 32;

/// Has the engine score every position of `records`, each distinct one once. `fingerprint` names the records (a hash):
/// the journal at `journal` (by custom [`journal_path`](super::journal_path) of the output) goes with them only.
///
/// Takes 8 bytes of memory a record, 9 while it looks for repeated positions, beside the records themselves, which may be
/// mapped from a file. The answers do not depend on the concurrency.
///
/// # Errors
/// When the engine cannot be started, does nothing but fail, or the journal cannot be written or belongs to other work.
pub fn label(
    records: &[Record],
    settings: &LabelSettings,
    workers: &Workers,
    journal: &Path,
    fingerprint: &str,
    progress: &mut dyn FnMut(LabelProgress),
) -> Result<Labels, LabelError> {
    if settings.limit.is_empty() {
        return Err(LabelError::EmptyLimit);
    }
    if records.len() >= u32::MAX as usize {
        return Err(LabelError::TooMany { records: records.len() });
    }
    let stopped = |error, finished| LabelError::Engine { error: Box::new(error), finished, journal: journal.into() };
    let engine = Engine::start(&settings.engine, workers.answer_timeout).map_err(|error| stopped(error, 0))?;
    let identity = engine.identity().clone();
    let mut run = LabelRun::open(records, settings.limit, identity, journal, fingerprint, progress)?;
    run.tell();
    pool::search_all(records, settings, workers, engine, &mut run)?;
    run.finish()
}
