//! A stream's data made ready on a thread of its own: what is found meanwhile, in words, and how far it is.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use super::error::in_python;
use super::interruptible::interruptible_while;
use crate::data::ScoreUnit;
use crate::data::formats::{FileUnit, SkippedSamples, UnitOrigin};
use crate::pipeline::{Manifest, WeightedInput};
use crate::service::{PrepareObserver, PreparedStream, ProcessBound, Request, ServedFile, prepare, prepare_mixture};

/// What a stream is made of.
#[derive(Clone)]
pub struct StreamSource {
    pub request: Request,
    /// The parts of a mixture, which replace the request's data.
    pub mixture: Option<Vec<WeightedInput>>,
}

impl StreamSource {
    /// Makes the data ready. `progress` is called with (done, total), in bytes, while they are scanned or built.
    ///
    /// # Errors
    /// When they cannot be made ready, or `progress` raises.
    pub fn prepare(
        &self,
        py: Python<'_>,
        found: &Arc<PreparationMessages>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<ProcessBound<Arc<PreparedStream>>> {
        let source = self.clone();
        let heard = Arc::clone(found);
        let work = move || match &source.mixture {
            None => prepare(source.request, &*heard),
            Some(inputs) => prepare_mixture(source.request, inputs, &*heard),
        };
        let mut reported = None;
        let mut report = |_: Python<'_>| {
            let at = *lock(&found.progress);
            if let (Some(progress), Some((done, total))) = (progress, at)
                && reported != at
            {
                reported = at;
                progress.call1((done, total))?;
            }
            Ok(())
        };
        Ok(ProcessBound::new(Arc::new(interruptible_while(py, &mut report, work)??)))
    }
}

/// The findings of the data's preparation, in words.
#[derive(Default)]
pub struct PreparationMessages {
    pub warnings: Messages,
    pub notes: Messages,
    /// Bytes scanned or built, and their total.
    progress: Mutex<Option<(u64, u64)>>,
}

#[derive(Default)]
pub struct Messages(Mutex<Vec<String>>);

impl Messages {
    fn add(&self, line: String) {
        self.extend([line]);
    }

    fn extend(&self, lines: impl IntoIterator<Item = String>) {
        lock(&self.0).extend(lines);
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl PrepareObserver for PreparationMessages {
    fn scanned(&self, done: u64, total: u64) {
        *lock(&self.progress) = Some((done, total));
    }

    fn built(&self, done: u64, total: u64) {
        self.scanned(done, total);
    }

    fn score_unit(&self, data: &Path, FileUnit { unit, origin }: FileUnit) {
        if origin == UnitOrigin::FormatDefault && unit != ScoreUnit::Centipawns {
            self.warnings.add(format!(
                "the scores of {} are assumed to be {}, as in Stockfish's training data; say from_unit=\"{unit}\", or \
                 from_unit=\"cp\" if they are centipawns",
                data.display(),
                unit.describe()
            ));
        }
    }

    fn skipped(&self, data: &Path, skipped: &SkippedSamples) {
        if !skipped.is_empty() {
            self.warnings.add(format!("broken entries of {} are left out{}", data.display(), skipped.describe()));
        }
    }

    fn opened(&self, opened: &ServedFile<'_>) {
        self.notes.extend(opened.summary());
        let by_ply = |manifest: &Manifest| manifest.options.as_ref().is_some_and(|options| options.min_ply > 0);
        for source in opened.manifest.into_iter().flat_map(Manifest::without_plies) {
            if opened.manifest.is_some_and(by_ply) {
                self.warnings.add(format!("{} records no plies: min_ply leaves out none of its samples", source.path));
            }
            self.warnings.add(format!(
                "{} records no games: each sample counts as a game of its own, so neighbouring positions of a game can \
                 be on both sides of a split into training and validation",
                source.path
            ));
        }
        for source in opened.manifest.into_iter().flat_map(|manifest| &manifest.sources) {
            if !source.notes.is_empty() {
                let line = format!("{}: {}", source.path, in_python(&source.notes.lines().join("; ")));
                if source.notes.concerns_scores() { &self.warnings } else { &self.notes }.add(line);
            }
            if let Some(first) = source.skipped.examples.first() {
                let total = source.skipped.total();
                self.warnings.add(format!("{}: {total} broken games are left out; the first: {first}", source.path));
            }
        }
    }

    fn left_out(&self, samples: usize, required: &str) {
        self.notes.add(format!("left out {samples} samples without {required}"));
    }
}

pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
