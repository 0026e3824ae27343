//! Training samples that an epoch skips. Every epoch draws anew, by the seed, the epoch and the sample's number in the
//! data; a batch has so many samples fewer, one at least. Validation skips nothing.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::batch::{ActiveFeatures, Batch, Labels};
use crate::data::GameResult;
use crate::pipeline::build::result_probability;
use crate::settings::SettingError;
use crate::units::{Draws, Ply};

/// Which training samples are skipped
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkipRules {
    /// Share of the training samples that every epoch skips, drawn anew
    #[arg(id = "skip_random", long = "skip-random", value_name = "SHARE", default_value_t = 0.0)]
    #[serde(skip_serializing_if = "is_zero")]
    pub random: f64,
    /// Skip training samples before this ply of their game
    #[arg(id = "skip_before_ply", long = "skip-before-ply", value_name = "PLY", default_value_t = 0)]
    #[serde(skip_serializing_if = "is_no_ply")]
    pub before_ply: u16,
    /// Keep each training sample with the probability of its game's result, given its score and ply, by Stockfish's
    /// win-rate model, and skip it else
    #[arg(id = "skip_unlikely", long = "skip-unlikely")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlikely: bool,
    /// Skip training samples by their number of pieces: five relative frequencies at 0, 8, 16, 24 and 32 pieces, as
    /// 0,0.4,1,1,0.75. Of the samples of a batch with the most over-represented number, a fortieth is kept
    #[arg(id = "skip_by_pieces", long = "skip-by-pieces", value_name = "Y,Y,Y,Y,Y")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_pieces: Option<PieceCurve>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_no_ply(ply: &u16) -> bool {
    *ply == 0
}

/// Relative frequencies at 0, 8, 16, 24 and 32 pieces.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PieceCurve([f64; 5]);

/// Numbers of pieces.
const PIECES: usize = 33;
/// Of the most over-represented number of pieces, this share is kept: nnue-pytorch's 1 − `max_pc_skip_rate`.
const LEAST_KEPT: f64 = 0.025;

impl PieceCurve {
    /// The frequency at a number of pieces: nnue-pytorch's cubic Hermite spline, at least 0.
    fn at(&self, pieces: usize) -> f64 {
        let y = &self.0;
        let segment = (pieces / 8).min(3);
        let t = (pieces as f64 - 8.0 * segment as f64) / 8.0;
        let slope = |knot: usize| match knot {
            0 => y[1] - y[0],
            4 => y[4] - y[3],
            _ => (y[knot + 1] - y[knot - 1]) / 2.0,
        };
        let (from, to) = (y[segment], y[segment + 1]);
        let value = (1.0 + 2.0 * t) * (1.0 - t).powi(2) * from
            + t * (1.0 - t).powi(2) * slope(segment)
            + t * t * (3.0 - 2.0 * t) * to
            + t * t * (t - 1.0) * slope(segment + 1);
        value.max(0.0)
    }

    /// The probability of keeping a sample, by its number of pieces, in a batch with these counts.
    fn kept(&self, counts: &[u32; PIECES]) -> [f64; PIECES] {
        let wanted: [f64; PIECES] = std::array::from_fn(|pieces| self.at(pieces));
        let total: f64 = wanted.iter().sum();
        let samples = f64::from(counts.iter().sum::<u32>());
        let ratio = |pieces: usize| match counts[pieces] {
            0 => f64::INFINITY,
            count => samples * wanted[pieces] / (total * f64::from(count)),
        };
        let ratios: [f64; PIECES] = std::array::from_fn(ratio);
        let least = ratios.iter().copied().filter(|ratio| *ratio > 0.0).fold(f64::INFINITY, f64::min);
        ratios.map(|ratio| (LEAST_KEPT * ratio / least).min(1.0))
    }
}

impl FromStr for PieceCurve {
    type Err = String;

    fn from_str(text: &str) -> Result<PieceCurve, String> {
        let wrong = || "give five numbers separated by commas, as 0,0.4,1,1,0.75".to_owned();
        let numbers: Result<Vec<f64>, _> = text.split(',').map(|number| number.trim().parse()).collect();
        let curve = PieceCurve(numbers.map_err(|_| wrong())?.try_into().map_err(|_| wrong())?);
        if curve.problem() { Err(wrong()) } else { Ok(curve) }
    }
}

impl PieceCurve {
    /// Whether a frequency is impossible, or all are zero.
    fn problem(&self) -> bool {
        !self.0.iter().all(|y| y.is_finite() && *y >= 0.0) || self.0.iter().all(|y| *y == 0.0)
    }
}

impl fmt::Display for PieceCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|y| y.to_string()).join(","))
    }
}

/// The facts about a batch's samples that decide which are skipped; `scores` and `results` are empty for pqr.
pub struct SampleFields<'a> {
    pub numbers: &'a [u32],
    /// Centipawns; not a number: none.
    pub scores: &'a [f32],
    /// 0, 0.5 or 1; not a number: none.
    pub results: &'a [f32],
    pub plies: &'a [u16],
    /// Of each position.
    pub piece_counts: &'a [u8],
}

impl SkipRules {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == SkipRules::default()
    }

    /// The rule that goes by a sample's ply.
    #[must_use]
    pub fn needs_plies(&self) -> Option<&'static str> {
        let options = [("--skip-before-ply", self.before_ply > 0), ("--skip-unlikely", self.unlikely)];
        options.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
    }

    /// The first number that is out of range.
    #[must_use]
    pub fn problem(&self) -> Option<SettingError> {
        if !(0.0..1.0).contains(&self.random) {
            let message = format!("the share that is skipped must be from 0 to below 1, not {}", self.random);
            return Some(SettingError::new("random", message));
        }
        if self.by_pieces.is_some_and(|curve| curve.problem()) {
            return Some(SettingError::new("by_pieces", "the frequencies must be at least 0, and not all of them 0"));
        }
        None
    }

    /// Whether each sample of a batch is trained on in an epoch.
    #[must_use]
    pub fn kept(&self, fields: &SampleFields<'_>, draws: Draws, epoch: u32) -> Vec<bool> {
        let samples = fields.numbers.len();
        let each = fields.piece_counts.len() / samples.max(1);
        let pieces = |sample: usize| usize::from(fields.piece_counts[sample * each]).min(PIECES - 1);
        let by_pieces = self.by_pieces.map(|curve| {
            let mut counts = [0; PIECES];
            (0..samples).for_each(|sample| counts[pieces(sample)] += 1);
            curve.kept(&counts)
        });
        let probability = |sample: usize| {
            let mut kept = 1.0 - self.random;
            let ply = fields.plies[sample];
            if ply < self.before_ply {
                return 0.0;
            }
            if let (true, Some(&score), Some(result)) =
                (self.unlikely, fields.scores.get(sample), fields.results.get(sample).copied().and_then(result_of))
                && !score.is_nan()
            {
                kept *= result_probability(result, f64::from(score), Ply(ply));
            }
            kept * by_pieces.map_or(1.0, |kept| kept[pieces(sample)])
        };
        let uniform = |sample: usize| {
            let index = u64::from(epoch) << 32 | u64::from(fields.numbers[sample]);
            (draws.at(index) >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut kept: Vec<bool> = (0..samples).map(|sample| uniform(sample) < probability(sample)).collect();
        if !kept.contains(&true) {
            // A step needs a sample.
            kept.iter_mut().take(1).for_each(|kept| *kept = true);
        }
        kept
    }
}

fn result_of(points: f32) -> Option<GameResult> {
    [GameResult::Loss, GameResult::Draw, GameResult::Win].into_iter().find(|result| result.points() == points)
}

/// A batch without the samples that are skipped.
#[derive(Debug, Default)]
pub struct ThinnedBatch {
    offsets: [Vec<i32>; 2],
    indices: [Vec<i32>; 2],
    bucket_inputs: Vec<u8>,
    targets: Vec<f32>,
    numbers: Vec<u32>,
}

impl ThinnedBatch {
    /// Copies the samples of a batch that are kept; `numbers` are those of its samples.
    pub fn fill(&mut self, batch: &Batch<'_>, numbers: &[u32], kept: &[bool]) {
        let each = batch.positions_per_sample();
        let samples = || (0..batch.samples).filter(|sample| kept[*sample]);
        let positions = || samples().flat_map(|sample| sample * each..(sample + 1) * each);
        for ((offsets, indices), side) in self.offsets.iter_mut().zip(&mut self.indices).zip(&batch.active) {
            offsets.clear();
            indices.clear();
            offsets.push(0);
            for position in positions() {
                indices.extend_from_slice(side.of(position));
                offsets.push(indices.len() as i32);
            }
        }
        self.bucket_inputs.clear();
        self.bucket_inputs.extend(positions().map(|position| batch.bucket_inputs[position]));
        self.targets.clear();
        if let Labels::Eval(targets) = batch.labels {
            self.targets.extend(samples().map(|sample| targets[sample]));
        }
        self.numbers.clear();
        self.numbers.extend(samples().map(|sample| numbers[sample]));
    }

    /// The batch, with labels of the kind of `labels`.
    #[must_use]
    pub fn batch(&self, labels: Labels<'_>) -> Batch<'_> {
        let side = |side: usize| ActiveFeatures::new(&self.offsets[side], &self.indices[side]);
        Batch {
            samples: self.numbers.len(),
            active: [side(0), side(1)],
            bucket_inputs: &self.bucket_inputs,
            labels: labels.with(&self.targets),
        }
    }

    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    const STOCKFISH: PieceCurve = PieceCurve([0.0, 0.4, 1.0, 1.0, 0.75]);

    #[test]
    fn curves_pass_through_their_points() {
        for (pieces, expected) in [(0, 0.0), (8, 0.4), (16, 1.0), (24, 1.0), (32, 0.75)] {
            assert!((STOCKFISH.at(pieces) - expected).abs() < 1e-12, "{pieces}");
        }
        // Half way from 8 to 16: the mean, and an eighth of the difference of the slopes 0.5 and 0.3.
        assert!((STOCKFISH.at(12) - (0.7 + (0.5 - 0.3) / 8.0)).abs() < 1e-12);
        assert_eq!("0,0.4,1,1,0.75".parse(), Ok(STOCKFISH));
        assert_eq!(STOCKFISH.to_string().parse(), Ok(STOCKFISH));
        for wrong in ["", "1,1,1,1", "1,1,1,1,x", "0,0,0,0,0", "-1,1,1,1,1"] {
            assert!(wrong.parse::<PieceCurve>().is_err(), "{wrong}");
        }
    }

    /// The share that is kept of a batch of samples with these fields, over some epochs.
    fn share(rules: SkipRules, score: f32, result: f32, ply: u16, piece_counts: &[u8]) -> Vec<f64> {
        let samples = piece_counts.len();
        let numbers: Vec<u32> = (0..samples as u32).collect();
        let scores = vec![score; samples];
        let results = vec![result; samples];
        let plies = vec![ply; samples];
        let fields =
            SampleFields { numbers: &numbers, scores: &scores, results: &results, plies: &plies, piece_counts };
        let draws = Seed(1).draws("test");
        let first = rules.kept(&fields, draws, 0);
        assert_eq!(first, rules.kept(&fields, draws, 0));
        let mut counts = vec![0.0; samples];
        for epoch in 0..200 {
            let kept = rules.kept(&fields, draws, epoch);
            counts.iter_mut().zip(kept).for_each(|(count, kept)| *count += f64::from(u8::from(kept)) / 200.0);
        }
        counts
    }

    #[test]
    fn samples_are_kept_with_their_probability() {
        let none = SkipRules::default();
        let mean = |rules, score, result, ply| share(rules, score, result, ply, &[20; 100]).iter().sum::<f64>() / 100.0;
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.015, "{found} {expected}");
        let exactly = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        exactly(mean(none, 0.0, 0.5, 3), 1.0);
        near(mean(SkipRules { random: 0.3, ..none }, 0.0, 0.5, 3), 0.7);
        let early = SkipRules { before_ply: 10, ..none };
        // Of a batch that is skipped as a whole one sample stays.
        exactly(mean(early, 0.0, 0.5, 9), 0.01);
        exactly(mean(early, 0.0, 0.5, 10), 1.0);
        let unlikely = SkipRules { unlikely: true, ..none };
        near(mean(unlikely, 150.0, 1.0, 60), result_probability(GameResult::Win, 150.0, Ply(60)));
        near(mean(unlikely, 150.0, 0.5, 60), result_probability(GameResult::Draw, 150.0, Ply(60)));
        exactly(mean(unlikely, f32::NAN, 1.0, 60), 1.0);
    }

    /// A batch of 30 positions with 30 pieces for each with 12: the first are thinned to a fortieth; of the others, by
    /// the formula, 0.025 · (30 / 1) · at(12) / at(30) are kept.
    #[test]
    fn numbers_of_pieces_are_balanced() {
        let pieces: Vec<u8> = (0..31 * 30).map(|sample| if sample % 31 == 0 { 12 } else { 30 }).collect();
        let kept = share(SkipRules { by_pieces: Some(STOCKFISH), ..SkipRules::default() }, 0.0, 0.5, 9, &pieces);
        let mean = |rest: bool| {
            let chosen: Vec<f64> = kept
                .iter()
                .enumerate()
                .filter(|(sample, _)| (sample % 31 == 0) != rest)
                .map(|(_, kept)| *kept)
                .collect();
            chosen.iter().sum::<f64>() / chosen.len() as f64
        };
        assert!((mean(true) - 0.025).abs() < 0.003, "{}", mean(true));
        let expected = 0.025 * 30.0 * STOCKFISH.at(12) / STOCKFISH.at(30);
        assert!((mean(false) - expected).abs() < 0.03, "{} {expected}", mean(false));
    }

    #[test]
    fn thinned_batches_hold_the_kept_samples() {
        let offsets = [[0, 2, 2, 5], [0, 1, 3, 4]];
        let indices = [vec![1, 2, 3, 4, 5], vec![6, 7, 8, 9]];
        let active = [0, 1].map(|side: usize| ActiveFeatures::new(&offsets[side], &indices[side]));
        let labels = Labels::Eval(&[0.1, 0.2, 0.3]);
        let batch = Batch { samples: 3, active, bucket_inputs: &[30, 20, 10], labels };
        let mut thinned = ThinnedBatch::default();
        thinned.fill(&batch, &[7, 8, 9], &[false, true, true]);
        let found = thinned.batch(labels);
        found.check().expect("sizes fit");
        assert_eq!((found.samples, thinned.numbers(), found.bucket_inputs), (2, &[8, 9][..], &[20, 10][..]));
        assert_eq!([found.active[0].of(0), found.active[0].of(1)], [&[][..], &[3, 4, 5]]);
        assert_eq!([found.active[1].of(0), found.active[1].of(1)], [&[7, 8][..], &[9]]);
        let Labels::Eval(targets) = found.labels else { panic!("targets") };
        assert_eq!(targets, [0.2, 0.3]);
    }
}
