//! Quantisation error: the difference between the float and the integer network's expected result, per position.

use std::path::Path;

use super::MeasureError;
use super::lines::{Line, ReadSummary, advance, fold_lines};
use crate::chess::Perspective;
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::features::FeatureSet;
use crate::net::{Checkpoint, FloatNet, NetFile, forward};
use crate::record::ErrorRecord;
use crate::train::EvalLoss;
use crate::units::Wdl;

/// Options of [`quantisation`].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct QuantisationOptions {
    /// Centipawns at which the expected result is σ(1).
    pub scale: f32,
    /// The largest difference in expected result that is within tolerance.
    pub tolerance: f64,
    /// The number of games to read; `None` reads all.
    pub limit: Option<u64>,
}

impl Default for QuantisationOptions {
    fn default() -> Self {
        let scale = EvalLoss::default().output_scale as f32;
        QuantisationOptions { scale, tolerance: ErrorRecord::TOLERANCE, limit: None }
    }
}

/// Measures |WDL(float) − WDL(integer)| over the positions of the data, from the side to move's view. The dense weights
/// of the float network are rounded to the scheme's grid, as in training.
///
/// # Errors
/// When network and checkpoint have different feature sets or shapes, or the data cannot be read.
pub fn quantisation(
    file: &NetFile,
    float: &FloatNet,
    checkpoint: &Checkpoint,
    data: &Path,
    options: QuantisationOptions,
) -> Result<(ErrorRecord, ReadSummary), MeasureError> {
    check_compatible(file, float, checkpoint)?;
    let set = file.origin.feature_set()?;
    let model = Model::new(&file.net);
    let evaluator = Evaluator::new(&set, &model, Strategy::EagerCached, BackEnd::best())?;
    let float = float.on_grid(&file.net.scheme);
    let pair = NetworkPair { set: &set, file, float: &float, scale: options.scale };
    let empty = || Differences::new(options.tolerance);
    let add = |differences: &mut Differences, line: &Line| pair.compare(evaluator.clone(), line, differences);
    let (differences, summary) = fold_lines(data, options.limit, empty, add, Differences::plus)?;
    let count = differences.count.max(1) as f64;
    let record = ErrorRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        positions: differences.count,
        mean: differences.mean(),
        p99: f64::from(differences.p99()),
        max: f64::from(differences.max),
        within_tolerance: differences.within as f64 / count,
        tolerance: options.tolerance,
        accumulator_overflows: differences.overflows,
    };
    Ok((record, summary))
}

/// The differences between two networks, in memory that does not grow with the positions, and the positions in which an
/// accumulator overflows.
struct Differences {
    tolerance: f64,
    count: u64,
    /// In units of 2⁻⁴⁰: a sum of whole numbers does not depend on the order.
    sum: u128,
    max: f32,
    /// How many are within the tolerance.
    within: u64,
    /// How many there are by their leading bits; see [`Differences::bin`].
    counts: Vec<u64>,
    overflows: u64,
}

impl Differences {
    /// Bits of an f32 that a bin leaves out: a bin's ends differ by less than a thousandth.
    const DROPPED_BITS: u32 = 13;
    /// The upper end of the first bin; f32's leading bits grow with the number.
    const LEAST: f32 = 1.0 / (1 << 20) as f32;
    const UNIT: f64 = (1u64 << 40) as f64;

    fn new(tolerance: f64) -> Differences {
        let counts = vec![0; 1 + Differences::bin(1.0)];
        Differences { tolerance, count: 0, sum: 0, max: 0.0, within: 0, counts, overflows: 0 }
    }

    fn bin(difference: f32) -> usize {
        let leading = |number: f32| number.to_bits() >> Differences::DROPPED_BITS;
        (leading(difference) + 1).saturating_sub(leading(Differences::LEAST)) as usize
    }

    /// The largest number of a bin.
    fn upper_end(bin: usize) -> f32 {
        let next = (Differences::LEAST.to_bits() >> Differences::DROPPED_BITS) + bin as u32;
        f32::from_bits((next << Differences::DROPPED_BITS) - 1)
    }

    /// Adds a difference of two expected results, from 0 to 1.
    fn push(&mut self, difference: f32) {
        self.count += 1;
        self.sum += (f64::from(difference) * Differences::UNIT).round() as u128;
        self.max = self.max.max(difference);
        self.within += u64::from(f64::from(difference) <= self.tolerance);
        let last = self.counts.len() - 1;
        self.counts[Differences::bin(difference).min(last)] += 1;
    }

    fn plus(mut self, other: Differences) -> Differences {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.within += other.within;
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.overflows += other.overflows;
        self
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / Differences::UNIT / self.count.max(1) as f64
    }

    /// The smallest difference that at least 99% do not exceed, or up to a thousandth more; 2⁻²⁰ for differences below.
    fn p99(&self) -> f32 {
        let wanted = (u128::from(self.count) * 99).div_ceil(100);
        let mut so_far = 0;
        let reaches = |count: &u64| {
            so_far += u128::from(*count);
            so_far >= wanted
        };
        let bin = self.counts.iter().position(reaches).unwrap_or_default();
        Differences::upper_end(bin).min(self.max)
    }
}

fn check_compatible(file: &NetFile, float: &FloatNet, checkpoint: &Checkpoint) -> Result<(), MeasureError> {
    if file.origin.identity != checkpoint.origin.identity {
        return Err(MeasureError::FeatureSets {
            net: file.origin.name.clone(),
            net_identity: file.origin.identity.clone(),
            checkpoint: checkpoint.origin.name.clone(),
            checkpoint_identity: checkpoint.origin.identity.clone(),
        });
    }
    if file.net.shape == float.shape {
        Ok(())
    } else {
        Err(MeasureError::Shapes { net: file.net.shape.to_string(), checkpoint: float.shape.to_string() })
    }
}

/// The two networks to compare.
struct NetworkPair<'a> {
    set: &'a FeatureSet,
    file: &'a NetFile,
    float: &'a FloatNet,
    scale: f32,
}

impl NetworkPair<'_> {
    fn compare(&self, mut evaluator: Evaluator<'_>, line: &Line, differences: &mut Differences) {
        let scheme = &self.file.net.scheme;
        let centipawns = scheme.nnue2score as f32 * 100.0 / scheme.pawn_value as f32;
        let mut stm = Vec::new();
        let mut nstm = Vec::new();
        line.for_each_position(|board, turn, played| {
            advance(&mut evaluator, board, played);
            let pov = Perspective::of(turn);
            self.set.encoder().encode(board, pov, &mut stm);
            self.set.encoder().encode(board, pov.other(), &mut nstm);
            let bucket = evaluator.bucket(turn);
            let output = forward(self.float, scheme, bucket, &stm, &nstm);
            let float = Wdl::from_score(output * centipawns, self.scale);
            let integer = Wdl::from_score(scheme.centipawns(evaluator.score(turn)) as f32, self.scale);
            differences.push((float.0 - integer.0).abs());
            let outside = |sum: &i32| i16::try_from(*sum).is_err();
            let overflows = |active: &[u32]| self.file.net.accumulate(active).iter().any(outside);
            differences.overflows += u64::from(overflows(&stm) || overflows(&nstm));
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Differences;

    /// Differences from 0 to 1, most of them small.
    fn difference() -> impl Strategy<Value = f32> {
        (0.0f32..1.0, 0..40).prop_map(|(number, exponent)| number * 0.5f32.powi(exponent))
    }

    proptest! {
        #[test]
        fn sums_are_those_of_all_differences(
            all in prop::collection::vec(prop_oneof![difference(), Just(0.0), Just(1.0)], 1..500),
            split in any::<prop::sample::Index>(),
        ) {
            let tolerance = 0.03;
            let of = |some: &[f32]| {
                let mut sums = Differences::new(tolerance);
                some.iter().for_each(|difference| sums.push(*difference));
                sums
            };
            let (first, second) = all.split_at(split.index(all.len()));
            let sums = of(second).plus(of(first));
            let mut sorted = all.clone();
            sorted.sort_unstable_by(f32::total_cmp);
            let exact = sorted[(99 * all.len()).div_ceil(100) - 1];
            prop_assert!(sums.p99() >= exact && sums.p99() <= (exact * 1.001).max(Differences::LEAST).min(sums.max));
            prop_assert_eq!(sums.max, sorted[all.len() - 1]);
            prop_assert_eq!(sums.within as usize, all.iter().filter(|one| f64::from(**one) <= tolerance).count());
            let mean = all.iter().copied().map(f64::from).sum::<f64>() / all.len() as f64;
            prop_assert!((sums.mean() - mean).abs() < 1e-12);
            prop_assert_eq!(sums.count as usize, all.len());
        }
    }
}
