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
    /// Adds the activated accumulators of some positions, `width` values for either perspective; values from
    /// `saturation` on count as saturated. There are fewer than 2³² accumulators.
    pub fn count<'a>(&mut self, positions: impl Iterator<Item = &'a [f32]>, width: usize, saturation: f32) {
        let mut counts = [vec![0u32; width], vec![0u32; width]];
        let [positive, saturated] = &mut counts;
        for accumulator in positions.flat_map(|sides| sides[..2 * width].chunks_exact(width)) {
            self.accumulators += 1;
            for ((positive, saturated), value) in positive.iter_mut().zip(saturated.iter_mut()).zip(accumulator) {
                *positive += u32::from(*value > 0.0);
                *saturated += u32::from(*value >= saturation);
            }
        }
        for (sums, more) in [&mut self.positive, &mut self.saturated].into_iter().zip(counts) {
            sums.resize(width, 0);
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += u64::from(more));
        }
    }

    /// Adds counts by neuron over so many accumulators.
    pub fn add_counts(&mut self, accumulators: u64, positive: &[i32], saturated: &[i32]) {
        let counts = |counts: &[i32]| counts.iter().map(|count| u64::from(count.cast_unsigned())).collect();
        self.add(&Activity { accumulators, positive: counts(positive), saturated: counts(saturated) });
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
        let padding = 7.0;
        let rows =
            [[0.0, 0.5, 1.0, 0.0, 0.0, 0.25, 1.0, 0.0, padding], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, padding]];
        let mut first = Activity::default();
        first.count(rows[..1].iter().map(|row| &row[..]), 4, 1.0);
        sum.add(&first);
        sum.count(rows[1..].iter().map(|row| &row[..]), 4, 1.0);
        assert_eq!(sum.shares(), Some(NeuronActivity { positive: 6.0 / 16.0, saturated: 0.25, dead: 0.5 }));
    }
}
