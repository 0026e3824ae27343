//! Averages of a network's weights over the last part of a run: with equal shares (stochastic weight averaging, Izmailov et
//! al. 2018, arXiv:1803.05407) or with shares that decay (an exponential moving average).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Optimisation;
use crate::net::FloatNet;

/// The average so far.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightAverage {
    pub net: FloatNet,
    /// Networks that it is the average of.
    pub networks: u64,
}

/// The average at the end of a run.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AveragedNetwork {
    /// Networks that were averaged.
    pub networks: u64,
    /// Its validation loss, by the first method.
    pub validation_loss: f64,
    /// Whether it is the run's network, as no epoch's has a lower loss.
    pub kept: bool,
}

impl WeightAverage {
    /// Adds a network. Each has an equal share or, with a decay, a share of 1 − decay when it is added.
    pub fn add(average: &mut Option<WeightAverage>, net: &FloatNet, decay: Option<f64>) {
        let Some(WeightAverage { net: mean, networks }) = average else {
            *average = Some(WeightAverage { net: net.clone(), networks: 1 });
            return;
        };
        *networks += 1;
        let share = decay.map_or(1.0 / *networks as f64, |decay| 1.0 - decay) as f32;
        for (mean, values) in mean.tensors_mut().into_iter().zip(net.tensors()) {
            mean.iter_mut().zip(values).for_each(|(mean, value)| *mean += share * (value - *mean));
        }
    }
}

impl Optimisation {
    /// Whether the network after `step` of a run's `steps` steps is averaged.
    #[must_use]
    pub fn averages(&self, step: u64, steps: u64) -> bool {
        let Some(from) = self.average_from else { return false };
        let first = (from * steps as f64).floor() as u64;
        step > first && ((step - first).is_multiple_of(self.average_every) || step == steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Shape;

    #[test]
    fn averages_by_hand() {
        let net = |value: f32| {
            let mut net = FloatNet::zeros(&Shape::plain(3, 4, vec![2]));
            net.tensors_mut().into_iter().for_each(|values| values.fill(value));
            net
        };
        let check = |decay: Option<f64>, expected: f32| {
            let mut average = None;
            [1.0, 2.0, 6.0].into_iter().for_each(|value| WeightAverage::add(&mut average, &net(value), decay));
            let WeightAverage { net, networks } = average.expect("three networks");
            assert_eq!(networks, 3);
            for value in net.tensors().into_iter().flatten() {
                assert!((value - expected).abs() < 1e-6, "{value} {expected}");
            }
        };
        check(None, 3.0);
        // 0.75·(0.75·1 + 0.25·2) + 0.25·6
        check(Some(0.75), 2.4375);
    }

    #[test]
    fn steps_of_the_last_part_are_averaged() {
        let steps = |average_from, average_every| {
            let optimisation = Optimisation { average_from, average_every, ..Optimisation::default() };
            (1..=20).filter(|step| optimisation.averages(*step, 20)).collect::<Vec<u64>>()
        };
        assert!(steps(None, 1).is_empty());
        assert_eq!(steps(Some(0.75), 1), [16, 17, 18, 19, 20]);
        assert_eq!(steps(Some(0.5), 4), [14, 18, 20]);
        assert_eq!(steps(Some(0.0), 100), [20]);
        assert_eq!(steps(Some(0.99), 1), [20]);
    }
}
