//! A batch of samples as the trainer reads it: the active features of both perspectives, and the labels.

use crate::service::Csr;
use crate::train::EvalLoss;

/// The active features of a batch's positions from one perspective, position after position (CSR).
#[derive(Copy, Clone, Debug)]
pub struct ActiveFeatures<'a> {
    /// positions + 1 offsets: position p's features are `indices[offsets[p]..offsets[p + 1]]`.
    offsets: &'a [i32],
    indices: &'a [i32],
}

impl<'a> ActiveFeatures<'a> {
    /// Of one position less than there are offsets.
    #[must_use]
    pub const fn new(offsets: &'a [i32], indices: &'a [i32]) -> ActiveFeatures<'a> {
        ActiveFeatures { offsets, indices }
    }

    #[must_use]
    pub fn positions(&self) -> usize {
        self.offsets.len() - 1
    }

    #[must_use]
    pub const fn offsets(&self) -> &'a [i32] {
        self.offsets
    }

    #[must_use]
    pub const fn indices(&self) -> &'a [i32] {
        self.indices
    }

    #[must_use]
    pub fn of(&self, position: usize) -> &'a [i32] {
        &self.indices[self.offsets[position] as usize..self.offsets[position + 1] as usize]
    }
}

impl<'a> From<Csr<'a>> for ActiveFeatures<'a> {
    /// The client of the service has checked that the offsets ascend and that every feature exists.
    fn from(Csr { offsets, indices }: Csr<'a>) -> ActiveFeatures<'a> {
        ActiveFeatures { offsets, indices }
    }
}

/// The labels of a batch's samples.
#[derive(Copy, Clone, Debug)]
pub enum Labels<'a> {
    /// One target per sample: in [0, 1], or centipawns (form epsilon).
    Eval(&'a [f32]),
    /// Three positions per sample, P, Q and R, and no label.
    Pqr,
}

impl Labels<'_> {
    /// Labels of the same kind with other targets, if there are any.
    #[must_use]
    pub const fn with(self, targets: &[f32]) -> Labels<'_> {
        match self {
            Labels::Eval(_) => Labels::Eval(targets),
            Labels::Pqr => Labels::Pqr,
        }
    }
}

/// A batch of samples.
#[derive(Copy, Clone, Debug)]
pub struct Batch<'a> {
    pub samples: usize,
    /// The side to move's features, then the other's.
    pub active: [ActiveFeatures<'a>; 2],
    /// What chooses the output bucket, per position: the number of pieces on the board or, with a rule by an expression,
    /// the bucket itself; see [`OutputBuckets::of`](crate::net::OutputBuckets::of).
    pub bucket_inputs: &'a [u8],
    pub labels: Labels<'a>,
}

impl Batch<'_> {
    /// # Errors
    /// If the sizes of features, labels and bucket inputs do not fit the number of samples.
    pub fn check(&self) -> Result<(), String> {
        let positions = self.active.map(|side| side.positions());
        if positions != [self.positions(); 2] {
            return Err(format!("{positions:?} positions instead of {} for either perspective", self.positions()));
        }
        if self.bucket_inputs.len() != self.positions() {
            return Err(format!(
                "{} inputs of the bucket rule for {} positions",
                self.bucket_inputs.len(),
                self.positions()
            ));
        }
        match self.labels {
            Labels::Eval(targets) if targets.len() != self.samples => {
                Err(format!("{} targets for {} samples", targets.len(), self.samples))
            }
            _ => Ok(()),
        }
    }

    #[must_use]
    pub fn positions_per_sample(&self) -> usize {
        match self.labels {
            Labels::Eval(_) => 1,
            Labels::Pqr => 3,
        }
    }

    #[must_use]
    pub fn positions(&self) -> usize {
        self.samples * self.positions_per_sample()
    }
}

/// A batch that owns its memory.
#[derive(Clone, Debug)]
pub struct OwnedBatch {
    samples: usize,
    /// Offsets and indices.
    active: [(Vec<i32>, Vec<i32>); 2],
    bucket_inputs: Vec<u8>,
    /// `None` for pqr.
    targets: Option<Vec<f32>>,
}

impl OwnedBatch {
    #[must_use]
    pub fn copy(batch: &Batch<'_>) -> OwnedBatch {
        let targets = match batch.labels {
            Labels::Eval(targets) => Some(targets.to_vec()),
            Labels::Pqr => None,
        };
        let active = batch.active.map(|side| (side.offsets.to_vec(), side.indices.to_vec()));
        OwnedBatch { samples: batch.samples, active, bucket_inputs: batch.bucket_inputs.to_vec(), targets }
    }

    #[must_use]
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            samples: self.samples,
            active: self.active.each_ref().map(|(offsets, indices)| ActiveFeatures { offsets, indices }),
            bucket_inputs: &self.bucket_inputs,
            labels: self.targets.as_deref().map_or(Labels::Pqr, Labels::Eval),
        }
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        let numbers = self.active.iter().map(|(offsets, indices)| offsets.len() + indices.len()).sum::<usize>();
        4 * (numbers + self.targets.as_ref().map_or(0, Vec::len)) + self.bucket_inputs.len()
    }
}

/// [`EvalLoss::target`].
#[must_use]
pub fn eval_target(score: Option<f32>, result: Option<f32>, loss: &EvalLoss) -> Option<f32> {
    loss.target(score, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::LossForm;

    #[test]
    fn targets_mix_score_and_result() {
        let mix = |lambda| EvalLoss { lambda, ..EvalLoss::default() };
        let check = |score, result, lambda, expected: Option<f32>| {
            let target = eval_target(score, result, &mix(lambda));
            match (target, expected) {
                (Some(target), Some(expected)) => assert!((target - expected).abs() < 1e-6, "{target} {expected}"),
                pair => assert_eq!(pair.0, pair.1),
            }
        };
        check(Some(0.0), Some(1.0), 0.75, Some(0.625));
        check(Some(410.0), None, 0.5, Some(0.731_058_6));
        check(Some(410.0), Some(0.0), 1.0, Some(0.731_058_6));
        check(None, Some(1.0), 0.5, Some(1.0));
        check(None, Some(1.0), 1.0, None);
        check(Some(3.0), None, 0.0, None);
        check(None, None, 0.5, None);
        let epsilon = EvalLoss { form: LossForm::Epsilon, ..EvalLoss::default() };
        assert_eq!(eval_target(Some(-73.0), Some(1.0), &epsilon), Some(-73.0));
        assert_eq!(eval_target(None, Some(1.0), &epsilon), None);
    }
}
