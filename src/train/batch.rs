//! One batch of samples as the trainer reads it: active features of both perspectives, and what to learn.

use std::ops::Range;

use crate::train::EvalLoss;

/// Active features of a batch's positions for one perspective, row after row (CSR).
#[derive(Copy, Clone, Debug)]
pub struct Rows<'a> {
    /// Where each position's features begin in `indices`, and, last, where they end: positions + 1 numbers.
    offsets: &'a [i32],
    indices: &'a [i32],
}

impl<'a> Rows<'a> {
    /// # Errors
    /// What is wrong, when the offsets do not ascend from 0 to the number of indices or an index is not below `features`.
    pub fn new(offsets: &'a [i32], indices: &'a [i32], features: u32) -> Result<Rows<'a>, String> {
        if offsets.first() != Some(&0) || offsets.last().map(|&end| end as usize) != Some(indices.len()) {
            return Err(format!("the offsets do not span the {} indices", indices.len()));
        }
        if !offsets.is_sorted() {
            return Err("the offsets do not ascend".into());
        }
        // As u32 a negative index is a large one.
        match indices.iter().map(|&index| index as u32).max() {
            Some(largest) if largest >= features => {
                Err(format!("feature {largest} does not exist: the set has {features}"))
            }
            _ => Ok(Rows { offsets, indices }),
        }
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

/// What the samples of a batch teach.
#[derive(Copy, Clone, Debug)]
pub enum Labels<'a> {
    /// A target a sample: in [0, 1], or centipawns (form epsilon).
    Eval(&'a [f32]),
    /// Three positions a sample, P, Q and R, and no label.
    Pqr,
}

impl<'a> Labels<'a> {
    /// Those of some samples.
    #[must_use]
    pub fn part(self, samples: Range<usize>) -> Labels<'a> {
        match self {
            Labels::Eval(targets) => Labels::Eval(&targets[samples]),
            Labels::Pqr => Labels::Pqr,
        }
    }
}

/// A batch. `rows` holds the side to move's features, then the other's.
#[derive(Copy, Clone, Debug)]
pub struct Batch<'a> {
    pub samples: usize,
    pub rows: [Rows<'a>; 2],
    /// On the board, one a position.
    pub pieces: &'a [u8],
    pub labels: Labels<'a>,
}

impl Batch<'_> {
    /// # Errors
    /// What is wrong, when rows, labels and the number of samples do not fit each other.
    pub fn check(&self) -> Result<(), String> {
        let positions = self.rows.map(|rows| rows.positions());
        if positions != [self.positions(); 2] {
            return Err(format!("{positions:?} positions instead of {} on either side", self.positions()));
        }
        if self.pieces.len() != self.positions() {
            return Err(format!("{} piece counts for {} positions", self.pieces.len(), self.positions()));
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

/// A batch with memory of its own.
#[derive(Clone, Debug)]
pub struct KeptBatch {
    samples: usize,
    /// Offsets and indices.
    rows: [(Vec<i32>, Vec<i32>); 2],
    pieces: Vec<u8>,
    /// None for pqr.
    targets: Option<Vec<f32>>,
}

impl KeptBatch {
    #[must_use]
    pub fn copy(batch: &Batch<'_>) -> KeptBatch {
        let targets = match batch.labels {
            Labels::Eval(targets) => Some(targets.to_vec()),
            Labels::Pqr => None,
        };
        let rows = batch.rows.map(|rows| (rows.offsets.to_vec(), rows.indices.to_vec()));
        KeptBatch { samples: batch.samples, rows, pieces: batch.pieces.to_vec(), targets }
    }

    #[must_use]
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            samples: self.samples,
            rows: self.rows.each_ref().map(|(offsets, indices)| Rows { offsets, indices }),
            pieces: &self.pieces,
            labels: self.targets.as_deref().map_or(Labels::Pqr, Labels::Eval),
        }
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        let numbers = self.rows.iter().map(|(offsets, indices)| offsets.len() + indices.len()).sum::<usize>();
        4 * (numbers + self.targets.as_ref().map_or(0, Vec::len)) + self.pieces.len()
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
    fn targets_mix_what_is_known() {
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

    #[test]
    fn broken_rows_are_refused() {
        let check = |offsets: &[i32], indices: &[i32], expected: &str| {
            assert_eq!(Rows::new(offsets, indices, 10).map(|_| ()), Err(expected.to_string()));
        };
        assert!(Rows::new(&[0, 2, 2], &[9, 9], 10).is_ok());
        check(&[], &[], "the offsets do not span the 0 indices");
        check(&[0, 1], &[1, 2], "the offsets do not span the 2 indices");
        check(&[0, 3, 2], &[1, 2], "the offsets do not ascend");
        check(&[0, 1], &[10], "feature 10 does not exist: the set has 10");
        check(&[0, 1], &[-1], "feature 4294967295 does not exist: the set has 10");
    }
}
