//! Sums of losses by part and cluster, and what follows from them.

use super::breakdown::{DIVISIONS, Place};
use crate::record::{ByPlace, Cluster, PartLoss};
use crate::statistics::{CONFIDENCE, student_t_quantile};

/// Sums of several networks' losses over the samples: of each part (the first is all of them), by cluster, the number of
/// samples and each network's sum. Clusters are taken together in [`Cluster::GROUPS`] groups: groups of whole clusters are
/// as independent as the clusters are (random groups; Wolter, Introduction to Variance Estimation, chapter 2).
pub(super) struct Tally {
    networks: usize,
    /// [part][group][1 + networks]
    sums: Vec<f64>,
}

/// A mean with the half-width of its 95% interval.
pub(super) struct Mean {
    pub samples: u64,
    pub mean: f64,
    pub interval: Option<f64>,
}

impl Tally {
    pub(super) fn new(networks: usize) -> Tally {
        let parts = 1 + DIVISIONS.iter().map(|division| division.parts.len()).sum::<usize>();
        Tally { networks, sums: vec![0.0; parts * Cluster::GROUPS * (1 + networks)] }
    }

    /// The parts of a sample, all of them first.
    pub(super) fn parts(place: &Place<'_>) -> impl Iterator<Item = usize> {
        let mut first = 1;
        let parts = DIVISIONS.iter().filter_map(move |division| {
            let part = (division.of)(place).map(|part| first + part);
            first += division.parts.len();
            part
        });
        std::iter::once(0).chain(parts)
    }

    /// Adds a sample: its cluster's number, one of its parts, and each network's loss.
    pub(super) fn add(&mut self, cluster: u64, part: usize, losses: &[f64]) {
        let group = (cluster % Cluster::GROUPS as u64) as usize;
        let width = 1 + self.networks;
        let sums = &mut self.sums[(part * Cluster::GROUPS + group) * width..][..width];
        sums[0] += 1.0;
        sums[1..].iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
    }

    /// Of all samples, what `value` makes of the networks' losses; it must be linear.
    pub(super) fn mean(&self, value: impl Fn(&[f64]) -> f64) -> Mean {
        self.mean_of(0, value)
    }

    /// As [`Tally::mean`], by part.
    pub(super) fn by_place(&self, value: impl Fn(&[f64]) -> f64) -> ByPlace {
        let mut first = 1;
        let [pieces, ply, material, king, kings] = DIVISIONS.each_ref().map(|division| {
            let parts =
                division.parts.iter().enumerate().map(|(part, name)| (*name, self.mean_of(first + part, &value)));
            let parts = parts.filter(|(_, mean)| mean.samples > 0);
            let part = |(name, Mean { samples, mean, interval }): (&str, Mean)| PartLoss {
                part: name.into(),
                samples,
                loss: mean,
                interval,
            };
            let found = parts.map(part).collect();
            first += division.parts.len();
            found
        });
        ByPlace { pieces, ply, material, king, kings }
    }

    /// The ratio estimator and its variance, linearised: with n samples and the sum D of a group, G groups and N samples in
    /// all, mean = ΣD/N and variance = G/(G−1) · Σ(D − mean·n)² / N² (Cochran, Sampling Techniques, 6.3).
    fn mean_of(&self, part: usize, value: impl Fn(&[f64]) -> f64) -> Mean {
        let width = 1 + self.networks;
        let all = &self.sums[part * Cluster::GROUPS * width..][..Cluster::GROUPS * width];
        let groups = || all.chunks_exact(width).filter(|sums| sums[0] > 0.0).map(|sums| (sums[0], value(&sums[1..])));
        let (samples, total) = groups().fold((0.0, 0.0), |(n, sum), (more, value)| (n + more, sum + value));
        let mean = total / samples;
        let squares: f64 = groups().map(|(n, sum)| (sum - mean * n).powi(2)).sum();
        let count = groups().count();
        let interval = (count > 1).then(|| {
            let variance = squares * count as f64 / (count - 1) as f64 / (samples * samples);
            student_t_quantile(CONFIDENCE, count - 1) * variance.sqrt()
        });
        Mean { samples: samples as u64, mean, interval }
    }
}
