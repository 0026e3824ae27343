//! Activity of the accumulators' neurons over the validation split.

use super::NeuronActivity;

/// Counts per neuron, over both perspectives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    accumulators: u64,
    positive: Vec<u64>,
    saturated: Vec<u64>,
}

impl Activity {
    /// Counts over activated accumulators of `width` values each; values from `saturation` on count as saturated.
    #[must_use]
    pub fn count(activations: &[f32], width: usize, saturation: f32) -> Activity {
        let mut activity = Activity { accumulators: 0, positive: vec![0; width], saturated: vec![0; width] };
        for accumulator in activations.chunks_exact(width) {
            activity.accumulators += 1;
            let counts = activity.positive.iter_mut().zip(&mut activity.saturated);
            for ((positive, saturated), value) in counts.zip(accumulator) {
                *positive += u64::from(*value > 0.0);
                *saturated += u64::from(*value >= saturation);
            }
        }
        activity
    }

    pub fn add(&mut self, other: &Activity) {
        self.accumulators += other.accumulators;
        for (sums, more) in [(&mut self.positive, &other.positive), (&mut self.saturated, &other.saturated)] {
            sums.resize(more.len(), 0);
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    /// The counts as shares; `None` without accumulators.
    #[must_use]
    pub fn shares(&self) -> Option<NeuronActivity> {
        let values = self.accumulators as f64 * self.positive.len() as f64;
        let share = |counts: &[u64]| counts.iter().sum::<u64>() as f64 / values;
        let dead = self.positive.iter().filter(|count| **count == 0).count();
        (values > 0.0).then(|| NeuronActivity {
            positive: share(&self.positive),
            saturated: share(&self.saturated),
            dead: dead as f64 / self.positive.len() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_hand() {
        assert_eq!(Activity::default().shares(), None);
        let mut sum = Activity::default();
        sum.add(&Activity::count(&[0.0, 0.5, 1.0, 0.0, 0.0, 0.25, 1.0, 0.0], 4, 1.0));
        sum.add(&Activity::count(&[0.0, 0.0, 1.0, 0.0], 4, 1.0));
        assert_eq!(sum.shares(), Some(NeuronActivity { positive: 5.0 / 12.0, saturated: 0.25, dead: 0.5 }));
    }
}
