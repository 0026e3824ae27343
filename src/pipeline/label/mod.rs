//! Has an engine or a network score the positions of a slice of records. Every distinct position is searched once, after a
//! `ucinewgame`, so that the answer depends on the engine, its options, the search limit and the position only.
//! Static evaluations by a network take less time than the search for repeated positions: every record has its own.
//!
//! Two positions are equal when board, side to move, castling rights, en passant square and rule-50 counter agree; the
//! engine does not see the earlier moves of the game. A journal keeps finished positions: an interrupted run resumes
//! where it stopped, and gives the same result as an uninterrupted one.

mod journal_entry;
mod pool;
mod repeats;
mod run;
mod scorer;
mod static_scores;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position};
use thiserror::Error;

use super::ScorerIdentity;
use super::journal::{Journal, JournalError};
use super::stats::LogisticFit;
use super::uci::{Answer, Engine, EngineFault, EngineSpec, SearchLimit, UciError, Workers};
use crate::chess::PackedMove;
use crate::data::{Eval, Record};
use crate::units::{Centipawn, SortedMap};
use pool::{PositionSearcher, UciSearcher};
use run::LabelRun;

pub use journal_entry::read as read_entry;
pub use scorer::{EvaluateRecords, LabelScorer, NetworkScorer, SearchPosition};

/// The settings that the scores depend on.
#[derive(Clone, Debug)]
pub struct LabelSettings {
    pub engine: EngineSpec,
    pub limit: SearchLimit,
    /// How often a position is searched again, by a new engine, after the engine failed.
    pub retries: u32,
}

impl LabelSettings {
    /// Settings with one retry.
    #[must_use]
    pub const fn new(engine: EngineSpec, limit: SearchLimit) -> LabelSettings {
        LabelSettings { engine, limit, retries: 1 }
    }
}

/// The progress of a run.
#[derive(Copy, Clone, Debug)]
pub struct LabelProgress {
    /// Distinct positions with an answer or a failure, including the journal's.
    pub done: u64,
    /// Distinct positions.
    pub total: u64,
    pub failed: u64,
    /// Positions per second since this run began.
    pub rate: f64,
}

/// The engine's score and move for a position.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Side to move's view, as [`Eval::centipawns`]: centipawns, with mates beyond ±30,000.
    pub score: i16,
    /// The best move.
    mv: PackedMove,
}

impl Label {
    fn of(answer: &Answer) -> Label {
        Label { score: answer.eval.centipawns(), mv: PackedMove::of(answer.best) }
    }

    /// The score as an evaluation, side to move's view.
    #[must_use]
    pub fn eval(self) -> Eval {
        let score = i32::from(self.score);
        if score.abs() <= Eval::LARGEST {
            Eval::Score(Centipawn(score))
        } else {
            Eval::Mate(score.signum() * (Eval::MATE - score.abs()) / 2)
        }
    }

    /// The label with a share `keep` of an earlier score of the position, rounded; mates count as
    /// ±[`Eval::LARGEST`], unless both are mates for the same side, when the new one stays.
    #[must_use]
    pub fn mixed(self, earlier: i16, keep: f64) -> Label {
        let is_mate = |score: i16| i32::from(score).abs() > Eval::LARGEST;
        if is_mate(self.score) && is_mate(earlier) && self.score.signum() == earlier.signum() {
            return self;
        }
        let centipawns = |score: i16| f64::from(i32::from(score).clamp(-Eval::LARGEST, Eval::LARGEST));
        let mixed = keep * centipawns(earlier) + (1.0 - keep) * centipawns(self.score);
        Label { score: mixed.round() as i16, ..self }
    }

    /// The engine's best move; `position` must be the position that was searched.
    #[must_use]
    pub fn best_move(self, position: &Chess) -> Option<Move> {
        position.legal_moves().into_iter().find(|mv| PackedMove::of(*mv) == self.mv)
    }

    /// Replaces score and move of `record`, which must hold the searched position.
    pub fn apply(self, record: &mut Record) {
        record.set_score(Some(self.score));
        record.set_move(self.mv);
    }

    /// Replaces the score of `record`, which must hold the searched position, and leaves its move.
    pub fn apply_score(self, record: &mut Record) {
        record.set_score(Some(self.score));
    }
}

/// Why a position has no score.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailReason {
    /// The record holds no legal position.
    NotLegal,
    /// Mate or stalemate.
    NoLegalMove,
    /// The engine ended during the search.
    EngineEnded,
    /// The engine did not answer in time.
    EngineSilent,
    /// The engine's answer is not a legal move with a score.
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
        match error.fault() {
            Some(EngineFault::Silent) => FailReason::EngineSilent,
            Some(EngineFault::Nonsense) => FailReason::EngineNonsense,
            Some(EngineFault::Ended) | None => FailReason::EngineEnded,
        }
    }

    const fn is_engine(self) -> bool {
        !matches!(self, FailReason::NotLegal | FailReason::NoLegalMove)
    }
}

/// A position that the engine could not score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedPosition {
    /// Number of the first record with this position.
    pub record: u32,
    /// The position.
    pub fen: String,
    pub reason: FailReason,
    /// What the engine or this program says of it.
    pub message: String,
}

/// The provenance of the scores, for the manifest. It does not depend on interruptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Labelling {
    pub engine: ScorerIdentity,
    /// `None` for static evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<SearchLimit>,
    /// Whether the same engine gives the same scores every time.
    pub reproducible: bool,
    /// Distinct positions.
    pub positions: u64,
    /// Records whose position an earlier record has too.
    pub repeated: u64,
    /// Distinct positions without a score.
    pub failed: SortedMap<FailReason, u64>,
    /// The first failed positions.
    pub examples: Vec<FailedPosition>,
    /// Share of the inputs' scores in the scores.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_score: f64,
    /// The expected result by the scores, if it was asked for and the results determine it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wdl: Option<LogisticFit>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Failed positions that are listed.
const EXAMPLES: usize = 10;

/// Counts of this run.
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
pub struct EngineLabels {
    pub labelling: Labelling,
    pub counts: RunCounts,
    /// For each record the first record with its position; empty where every record has a label of its own.
    first_occurrence: Vec<u32>,
    /// Labels by record number; set for first occurrences only.
    labels: Vec<Label>,
    journal: Journal,
}

impl EngineLabels {
    /// The label of the record with this index, or `None` where the search of its position failed.
    ///
    /// # Panics
    /// When the index is out of range.
    #[must_use]
    pub fn get(&self, record: usize) -> Option<Label> {
        let first = self.first_occurrence.get(record).map_or(record, |first| *first as usize);
        let label = self.labels[first];
        if label == MISSING { None } else { Some(label) }
    }

    /// Removes the journal, as [`Journal::remove`] does. To be called once the scores are saved elsewhere.
    pub fn remove_journal(self) {
        self.journal.remove();
    }
}

/// Stands for a label that is not known.
const MISSING: Label = Label { score: i16::MIN, mv: PackedMove::NONE };

/// Why labelling failed. The positions searched so far stay in the journal.
#[derive(Debug, Error)]
pub enum LabelError {
    #[error("{error}{}", journal_note(*finished, journal))]
    Engine { error: Box<UciError>, finished: u64, journal: PathBuf },
    #[error(
        "{failures} positions in a row could not be searched; the last one, {}: {}{}",
        last.fen, last.message, journal_note(*finished, journal)
    )]
    OnlyFailures { failures: u64, last: Box<FailedPosition>, finished: u64, journal: PathBuf },
    #[error("the network cannot score: {0}")]
    Network(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("a search needs at least one node, ply or millisecond")]
    EmptyLimit,
    #[error("{records} records are too many to label at once: at most {} are possible; split the data", u32::MAX - 1)]
    TooMany { records: usize },
}

impl LabelError {
    /// Whether the request was wrong; otherwise the work failed on the way.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        match self {
            LabelError::Engine { error, .. } => error.is_request(),
            LabelError::Journal(error) => error.is_request(),
            LabelError::Network(_) | LabelError::EmptyLimit | LabelError::TooMany { .. } => true,
            LabelError::OnlyFailures { .. } => false,
        }
    }
}

/// Says where the finished positions are kept.
fn journal_note(finished: u64, journal: &Path) -> String {
    match finished {
        0 => String::new(),
        _ => {
            format!("; {finished} finished positions are kept in {}: run the command again to go on", journal.display())
        }
    }
}

/// Has the engine score every distinct position of `records` once. `fingerprint` is a hash of the records: the journal
/// at `journal` (usually [`journal_path`](super::journal_path) of the output) is valid for these records only.
///
/// Takes 8 bytes of memory per record, and 9 while it looks for repeated positions. The records themselves may be
/// mapped from a file. The labels do not depend on the number of workers.
///
/// # Errors
/// When the engine cannot be started or fails again and again, or when the journal cannot be written or belongs to
/// another job.
pub fn label(
    records: &[Record],
    settings: &LabelSettings,
    workers: &Workers,
    journal: &Path,
    fingerprint: &str,
    progress: &mut dyn FnMut(LabelProgress),
) -> Result<EngineLabels, LabelError> {
    check(records, Some(settings.limit))?;
    let stopped = |error, finished| LabelError::Engine { error: Box::new(error), finished, journal: journal.into() };
    let engine = Engine::start(&settings.engine, workers.answer_timeout).map_err(|error| stopped(error, 0))?;
    let identity = ScorerIdentity::Uci(engine.identity());
    let mut run = LabelRun::open(records, settings.limit, identity, journal, fingerprint, progress)?;
    run.report_progress();
    let mut first = Some(engine);
    let searchers = 0..workers.concurrency.clamp(1, Workers::MOST);
    let searchers =
        searchers.map(|_| PositionSearcher::Engine(Box::new(UciSearcher::new(settings, workers, first.take()))));
    pool::search_all(records, searchers.collect(), &mut run)?;
    run.finish()
}

/// As [`label`], by a network in this process, on the threads of rayon's current pool. Static evaluations take 4 bytes of
/// memory per record.
///
/// # Errors
/// When the journal cannot be written or belongs to another job.
pub fn label_by_network(
    records: &[Record],
    scorer: &dyn NetworkScorer,
    journal: &Path,
    fingerprint: &str,
    progress: &mut dyn FnMut(LabelProgress),
) -> Result<EngineLabels, LabelError> {
    check(records, scorer.limit())?;
    let Some(limit) = scorer.limit() else {
        return static_scores::evaluate_all(records, scorer, journal, fingerprint, progress);
    };
    let identity = ScorerIdentity::Network(scorer.identity());
    let mut run = LabelRun::open(records, limit, identity, journal, fingerprint, progress)?;
    run.report_progress();
    let searchers = (0..rayon::current_num_threads()).map(|_| scorer.search().map(PositionSearcher::Network));
    let searchers = searchers.collect::<Result<_, _>>().map_err(LabelError::Network)?;
    pool::search_all(records, searchers, &mut run)?;
    run.finish()
}

fn check(records: &[Record], limit: Option<SearchLimit>) -> Result<(), LabelError> {
    if limit.is_some_and(SearchLimit::is_empty) {
        return Err(LabelError::EmptyLimit);
    }
    if records.len() >= u32::MAX as usize {
        return Err(LabelError::TooMany { records: records.len() });
    }
    Ok(())
}
