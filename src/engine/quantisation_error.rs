//! Quantisation error: the difference between the float and the integer network's expected result, per position.

use super::Evaluator;
use crate::chess::{Board, Color, Perspective};
use crate::features::FeatureSet;
use crate::net::{FloatNet, QuantNet, forward};
use crate::units::Wdl;

/// The differences between two networks, in memory that does not grow with the positions, and the positions in which an
/// accumulator overflows.
pub struct Differences {
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

    /// The usual tolerance.
    pub const TOLERANCE: f64 = 0.03;

    #[must_use]
    pub fn new(tolerance: f64) -> Differences {
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

    #[must_use]
    pub fn plus(mut self, other: Differences) -> Differences {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.within += other.within;
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.overflows += other.overflows;
        self
    }

    /// Positions that were compared.
    #[must_use]
    pub const fn positions(&self) -> u64 {
        self.count
    }

    #[must_use]
    pub const fn max(&self) -> f32 {
        self.max
    }

    /// The share of the positions whose difference is within the tolerance.
    #[must_use]
    pub fn within_tolerance(&self) -> f64 {
        self.within as f64 / self.count.max(1) as f64
    }

    #[must_use]
    pub const fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Positions with an accumulator element outside i16, which wraps in the engine.
    #[must_use]
    pub const fn accumulator_overflows(&self) -> u64 {
        self.overflows
    }

    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / Differences::UNIT / self.count.max(1) as f64
    }

    /// The smallest difference that at least 99% do not exceed, or up to a thousandth more; 2⁻²⁰ for differences below.
    #[must_use]
    pub fn p99(&self) -> f32 {
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

/// A float network and its integers, to be compared.
pub struct NetworkPair<'a> {
    pub set: &'a FeatureSet,
    /// Its dense weights are rounded to the scheme's grid, as in training.
    pub float: FloatNet,
    pub net: &'a QuantNet,
    /// Centipawns at which the expected result is σ(1).
    pub scale: f32,
}

impl<'a> NetworkPair<'a> {
    #[must_use]
    pub fn new(set: &'a FeatureSet, float: &FloatNet, net: &'a QuantNet, scale: f32) -> NetworkPair<'a> {
        NetworkPair { set, float: float.on_grid(&net.scheme), net, scale }
    }

    /// Adds the position at which `evaluator`, of the integer network, stands.
    pub fn compare(&self, evaluator: &mut Evaluator<'_>, board: &Board, turn: Color, differences: &mut Differences) {
        let scheme = &self.net.scheme;
        let pov = Perspective::of(turn);
        let [stm, nstm] = [pov, pov.other()].map(|pov| {
            let mut active = Vec::new();
            self.set.encoder().encode(board, pov, &mut active);
            active
        });
        let output = forward(&self.float, scheme, evaluator.bucket(turn), &stm, &nstm);
        let float = Wdl::from_score(output * scheme.float_centipawns() as f32, self.scale);
        let integer = Wdl::from_score(scheme.centipawns(evaluator.score(turn)) as f32, self.scale);
        differences.push((float.0 - integer.0).abs());
        let outside = |sum: &i32| i16::try_from(*sum).is_err();
        let overflows = |active: &[u32]| self.net.accumulate(active).iter().any(outside);
        differences.overflows += u64::from(overflows(&stm) || overflows(&nstm));
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
