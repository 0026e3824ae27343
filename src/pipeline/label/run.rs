//! The state of a labelling under way: what is found, what failed, what is in the journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use shakmaty::EnPassantMode;
use shakmaty::fen::Fen;

use super::pool::{Outcome, Searched, Task};
use super::{
    FailReason, FailedPosition, Label, LabelError, LabelProgress, Labelling, Labels, MISSING, PATIENCE_AT_FIRST,
    PATIENCE_LATER, RunCounts, journal_entry, repeats,
};
use crate::data::Record;
use crate::pipeline::journal::Journal;
use crate::pipeline::uci::{EngineIdentity, SearchLimit};

pub struct LabelRun<'a> {
    records: &'a [Record],
    progress: &'a mut dyn FnMut(LabelProgress),
    labelling: Labelling,
    counts: RunCounts,
    /// For each record the first one with its position.
    first: Vec<u32>,
    /// By number of that one.
    found: Vec<Label>,
    journal: Journal,
    begin: Instant,
    /// The record to look at next.
    cursor: usize,
    failed: u64,
    /// Failures of the engine since its last answer, and the last one.
    in_a_row: u64,
    last_failure: Option<FailedPosition>,
}

const EXAMPLES: usize = 10;

impl<'a> LabelRun<'a> {
    /// Finds the repeated positions and takes what the journal holds.
    pub fn open(
        records: &'a [Record],
        limit: SearchLimit,
        engine: EngineIdentity,
        journal: &Path,
        fingerprint: &str,
        progress: &'a mut dyn FnMut(LabelProgress),
    ) -> Result<LabelRun<'a>, LabelError> {
        let first = repeats::first_occurrences(records);
        let positions = first.iter().zip(0..).filter(|(first, number)| **first == *number).count() as u64;
        let mut found = vec![MISSING; records.len()];
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
            if first[number as usize] != number {
                return Err(format!("record {number} repeats an earlier position"));
            }
            let place = &mut found[number as usize];
            resumed += u64::from(*place == MISSING);
            *place = label;
            Ok(())
        })?;
        let labelling = Labelling {
            reproducible: engine.reproducible(limit),
            engine,
            limit,
            positions,
            repeated: records.len() as u64 - positions,
            failed: BTreeMap::new(),
            examples: Vec::new(),
        };
        Ok(LabelRun {
            records,
            progress,
            labelling,
            counts: RunCounts { resumed, ..RunCounts::default() },
            first,
            found,
            journal,
            begin: Instant::now(),
            cursor: 0,
            failed: 0,
            in_a_row: 0,
            last_failure: None,
        })
    }

    /// Tells how far it is.
    pub fn tell(&mut self) {
        let done = self.counts.resumed + self.counts.searched + self.failed;
        let seconds = self.begin.elapsed().as_secs_f64();
        let rate = if seconds > 0.0 { (done - self.counts.resumed) as f64 / seconds } else { 0.0 };
        (self.progress)(LabelProgress { done, total: self.labelling.positions, failed: self.failed, rate });
    }

    pub fn finish(self) -> Result<Labels, LabelError> {
        if self.finished() == 0 {
            self.give_up_after(1)?;
        }
        let LabelRun { labelling, counts, first, found, journal, .. } = self;
        Ok(Labels { labelling, counts, first, found, journal })
    }

    /// Positions in the journal.
    fn finished(&self) -> u64 {
        self.counts.resumed + self.counts.searched
    }

    fn failed(&mut self, number: u32, reason: FailReason, message: String) -> Result<(), LabelError> {
        self.failed += 1;
        *self.labelling.failed.entry(reason).or_default() += 1;
        let record = &self.records[number as usize];
        let fen = record.position().map(|position| Fen::from_position(&position, EnPassantMode::Legal).to_string());
        let failed = FailedPosition { record: number, fen: fen.unwrap_or_else(|_| "?".into()), reason, message };
        let examples = &mut self.labelling.examples;
        // The first by number, in whatever order the engines come upon them.
        examples.insert(examples.partition_point(|other| other.record < number), failed.clone());
        examples.truncate(EXAMPLES);
        if reason.is_engine() {
            self.in_a_row += 1;
            self.last_failure = Some(failed);
        }
        self.give_up_after(if self.counts.searched == 0 { PATIENCE_AT_FIRST } else { PATIENCE_LATER })
    }

    /// An error when the engine failed so often in a row.
    fn give_up_after(&self, failures: u64) -> Result<(), LabelError> {
        match &self.last_failure {
            Some(last) if self.in_a_row >= failures => Err(LabelError::NothingButFailures {
                failures: self.in_a_row,
                last: Box::new(last.clone()),
                finished: self.finished(),
                journal: self.journal.path().into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Task for LabelRun<'_> {
    type Error = LabelError;

    fn next(&mut self) -> Option<u32> {
        while let Some(first) = self.first.get(self.cursor) {
            let number = self.cursor as u32;
            self.cursor += 1;
            if *first == number && self.found[number as usize] == MISSING {
                return Some(number);
            }
        }
        None
    }

    fn keep(&mut self, searched: Searched) -> Result<(), LabelError> {
        let Searched { number, outcome, lost } = searched;
        self.counts.engines_lost += lost;
        match outcome {
            Outcome::Found(answer) => {
                self.journal.append(&journal_entry::write(number, &answer))?;
                self.found[number as usize] = Label::of(&answer);
                self.counts.searched += 1;
                self.in_a_row = 0;
            }
            Outcome::Failed { reason, message } => self.failed(number, reason, message)?,
            Outcome::NoEngine(error) => {
                let (finished, journal) = (self.finished(), self.journal.path().into());
                return Err(LabelError::Engine { error: Box::new(error), finished, journal });
            }
        }
        self.tell();
        Ok(())
    }
}
