//! The state of a labelling run: labels found, failures, and the journal.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::pool::{SearchOutcome, SearchQueue, SearchedRecord};
use super::{
    EXAMPLES, EngineLabels, FailReason, FailedPosition, Label, LabelError, LabelProgress, Labelling, MISSING,
    RunCounts, journal_entry, repeats,
};
use crate::chess::fen_of;
use crate::data::Record;
use crate::pipeline::ScorerIdentity;
use crate::pipeline::journal::Journal;
use crate::pipeline::uci::{SearchLimit, failures_allowed};
use crate::units::SortedMap;

pub struct LabelRun<'a> {
    records: &'a [Record],
    progress: &'a mut dyn FnMut(LabelProgress),
    labelling: Labelling,
    counts: RunCounts,
    /// For each record the first record with its position.
    first_occurrence: Vec<u32>,
    /// Labels by record number; set for first occurrences only.
    labels: Vec<Label>,
    journal: Journal,
    started: Instant,
    /// The next record to consider.
    cursor: usize,
    failed: u64,
    /// Engine failures since the last answer.
    consecutive_failures: u64,
    last_failure: Option<FailedPosition>,
}

impl<'a> LabelRun<'a> {
    /// Finds the repeated positions and reads the labels in the journal.
    pub fn open(
        records: &'a [Record],
        limit: SearchLimit,
        engine: ScorerIdentity,
        journal: &Path,
        fingerprint: &str,
        progress: &'a mut dyn FnMut(LabelProgress),
    ) -> Result<LabelRun<'a>, LabelError> {
        let first_occurrence = repeats::first_occurrences(records);
        let is_first = |(number, first): &(u32, &u32)| number == *first;
        let positions = (0..).zip(&first_occurrence).filter(is_first).count() as u64;
        let mut labels = vec![MISSING; records.len()];
        let head = json!({
            "journal": "scores",
            "version": 1,
            "records": { "number": records.len(), "hash": fingerprint },
            "engine": engine,
            "limit": limit,
        });
        let mut resumed = 0;
        let journal = Journal::open(journal, "positions", &head, &mut |_, text| {
            let (number, label) = journal_entry::read(text, records)?;
            if first_occurrence[number as usize] != number {
                return Err(format!("record {number} repeats an earlier position"));
            }
            let stored = &mut labels[number as usize];
            resumed += u64::from(*stored == MISSING);
            *stored = label;
            Ok(())
        })?;
        let labelling = Labelling {
            reproducible: engine.reproducible(Some(limit)),
            engine,
            limit: Some(limit),
            positions,
            repeated: records.len() as u64 - positions,
            failed: SortedMap::new(),
            examples: Vec::new(),
            keep_score: 0.0,
            wdl: None,
        };
        Ok(LabelRun {
            records,
            progress,
            labelling,
            counts: RunCounts { resumed, ..RunCounts::default() },
            first_occurrence,
            labels,
            journal,
            started: Instant::now(),
            cursor: 0,
            failed: 0,
            consecutive_failures: 0,
            last_failure: None,
        })
    }

    pub fn report_progress(&mut self) {
        let done = self.finished() + self.failed;
        let seconds = self.started.elapsed().as_secs_f64();
        let rate = if seconds > 0.0 { (done - self.counts.resumed) as f64 / seconds } else { 0.0 };
        (self.progress)(LabelProgress { done, total: self.labelling.positions, failed: self.failed, rate });
    }

    pub fn finish(self) -> Result<EngineLabels, LabelError> {
        if self.finished() == 0 {
            self.check_failures(1)?;
        }
        let LabelRun { labelling, counts, first_occurrence, labels, journal, .. } = self;
        Ok(EngineLabels { labelling, counts, first_occurrence, labels, journal })
    }

    /// Positions in the journal.
    fn finished(&self) -> u64 {
        self.counts.resumed + self.counts.searched
    }

    fn record_failure(&mut self, number: u32, reason: FailReason, message: String) -> Result<(), LabelError> {
        self.failed += 1;
        *self.labelling.failed.get_or_default(reason) += 1;
        let record = &self.records[number as usize];
        let fen = record.position().map(|position| fen_of(&position));
        let failed = FailedPosition { record: number, fen: fen.unwrap_or_else(|_| "?".into()), reason, message };
        let examples = &mut self.labelling.examples;
        // The first failures by record number, whatever the order of the answers.
        examples.insert(examples.partition_point(|other| other.record < number), failed.clone());
        examples.truncate(EXAMPLES);
        if reason.is_engine() {
            self.consecutive_failures += 1;
            self.last_failure = Some(failed);
        }
        self.check_failures(failures_allowed(self.counts.searched > 0))
    }

    /// Returns an error after `limit` consecutive failures of the engine.
    fn check_failures(&self, limit: u64) -> Result<(), LabelError> {
        match &self.last_failure {
            Some(last) if self.consecutive_failures >= limit => Err(LabelError::OnlyFailures {
                failures: self.consecutive_failures,
                last: Box::new(last.clone()),
                finished: self.finished(),
                journal: self.journal.path().into(),
            }),
            _ => Ok(()),
        }
    }
}

impl SearchQueue for LabelRun<'_> {
    type Error = LabelError;

    fn next(&mut self) -> Option<u32> {
        while let Some(first) = self.first_occurrence.get(self.cursor) {
            let number = self.cursor as u32;
            self.cursor += 1;
            if *first == number && self.labels[number as usize] == MISSING {
                return Some(number);
            }
        }
        None
    }

    fn receive(&mut self, searched: SearchedRecord) -> Result<(), LabelError> {
        let SearchedRecord { number, outcome, engines_lost } = searched;
        self.counts.engines_lost += engines_lost;
        match outcome {
            SearchOutcome::Answered(answer) => {
                self.journal.append(&journal_entry::write(number, &answer))?;
                self.labels[number as usize] = Label::of(&answer);
                self.counts.searched += 1;
                self.consecutive_failures = 0;
            }
            SearchOutcome::Failed { reason, message } => self.record_failure(number, reason, message)?,
            SearchOutcome::NoEngine(error) => {
                let finished = self.finished();
                let journal = self.journal.path().into();
                return Err(LabelError::Engine { error: Box::new(error), finished, journal });
            }
        }
        self.report_progress();
        Ok(())
    }
}
