//! Sums of losses by class and cluster, and their means with intervals.

use crate::data::{BREAKDOWNS, SampleContext};
use crate::record::{Cluster, LossBreakdown, SubsetLoss};
use crate::statistics::{CONFIDENCE, student_t_quantile};

/// Sums of several networks' losses: per class (class 0 is all samples) and cluster, the number of samples and the sum
/// of each network. Clusters are merged into [`Cluster::MAX_GROUPS`] groups, which are independent if the clusters are
/// (random groups; Wolter, Introduction to Variance Estimation, chapter 2).
pub(super) struct LossTally {
    networks: usize,
    /// [class][group][1 + networks]
    sums: Vec<f64>,
}

/// A mean with the half-width of its 95% interval.
pub(super) struct Mean {
    pub samples: u64,
    pub mean: f64,
    pub interval: Option<f64>,
}

impl LossTally {
    pub(super) fn new(networks: usize) -> LossTally {
        let classes = 1 + BREAKDOWNS.iter().map(|breakdown| breakdown.classes.len()).sum::<usize>();
        LossTally { networks, sums: vec![0.0; classes * Cluster::MAX_GROUPS * (1 + networks)] }
    }

    /// The classes of a sample, starting with class 0.
    pub(super) fn classes(sample: &SampleContext<'_>) -> impl Iterator<Item = usize> {
        let mut first = 1;
        let classes = BREAKDOWNS.iter().zip(sample.classes()).filter_map(move |(breakdown, class)| {
            let class = class.map(|class| first + class);
            first += breakdown.classes.len();
            class
        });
        std::iter::once(0).chain(classes)
    }

    /// Adds a sample to one of its classes: its cluster's number and each network's loss.
    pub(super) fn add(&mut self, cluster: u64, class: usize, losses: &[f64]) {
        let group = (cluster % Cluster::MAX_GROUPS as u64) as usize;
        let width = 1 + self.networks;
        let sums = &mut self.sums[(class * Cluster::MAX_GROUPS + group) * width..][..width];
        sums[0] += 1.0;
        sums[1..].iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
    }

    /// The mean over all samples of `value`, a linear function of the networks' losses.
    pub(super) fn mean(&self, value: impl Fn(&[f64]) -> f64) -> Mean {
        self.mean_of_class(0, value)
    }

    /// [`LossTally::mean`] by class.
    pub(super) fn by_class(&self, value: impl Fn(&[f64]) -> f64) -> LossBreakdown {
        let mut first = 1;
        let [pieces, ply, material, score, king, kings] = BREAKDOWNS.each_ref().map(|breakdown| {
            let classes = breakdown.classes.iter().enumerate();
            let means = classes.map(|(class, name)| (*name, self.mean_of_class(first + class, &value)));
            let record = |(name, Mean { samples, mean, interval }): (&str, Mean)| SubsetLoss {
                subset: name.into(),
                samples,
                loss: mean,
                interval,
            };
            let records = means.filter(|(_, mean)| mean.samples > 0).map(record).collect();
            first += breakdown.classes.len();
            records
        });
        LossBreakdown { pieces, ply, material, score, king, kings }
    }

    /// The ratio estimator and its linearised variance. With n samples and sum D per group, G groups and N samples in
    /// all: mean = ΣD/N, variance = G/(G−1) · Σ(D − mean·n)² / N² (Cochran, Sampling Techniques, 6.3).
    fn mean_of_class(&self, class: usize, value: impl Fn(&[f64]) -> f64) -> Mean {
        let width = 1 + self.networks;
        let all = &self.sums[class * Cluster::MAX_GROUPS * width..][..Cluster::MAX_GROUPS * width];
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
