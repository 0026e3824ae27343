//! Two networks evaluate the same positions in turns on one thread: the ratio of their speeds, with its interval.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use cpu_time::ThreadTime;

use super::MeasureError;
use super::equal_speed::{EqualSpeedOptions, OwnSpeeds, distance};
use super::ft_permute::{POSITIONS, ft_permute_by_lines};
use super::lines::{Line, first_lines_and_next};
use super::speed::{scores, track_positions};
use crate::engine::{BackEnd, Evaluator, Model, PlayedPosition, Strategy};
use crate::features::FeatureSet;
use crate::net::{NetFile, QuantNet};
use crate::record::{EqualSpeedRecord, Machine, SpeedEntry, SpeedRatio, SpeedSetup, WidthSpeed};
use crate::statistics::{Median, median};

/// Finding features is timed for this fraction of a turn.
const PART_OF_TURN: u32 = 3;

/// A network with its set.
pub(super) struct Contestant {
    set: FeatureSet,
    pub(super) net: QuantNet,
    strategy: Strategy,
}

/// Two networks and the positions that they evaluate in turns.
pub(super) struct Race {
    pub(super) network: Contestant,
    reference: Contestant,
    /// The reference, with its neurons arranged if there are positions to arrange them by.
    reference_model: Model,
    track: Vec<PlayedPosition>,
    /// Other positions, to arrange neurons by; none to leave them as they are.
    others: Vec<Line>,
    options: EqualSpeedOptions,
    own_features_ns: [Option<f64>; 2],
    /// The factor of measured speeds; `None` = 1.
    pub(super) scale: Option<f64>,
}

impl Race {
    /// Neurons are arranged by positions after those that are evaluated.
    pub(super) fn new(
        network: &NetFile,
        reference: &NetFile,
        data: &Path,
        options: EqualSpeedOptions,
        own: OwnSpeeds,
    ) -> Result<Race, MeasureError> {
        let ([lines, others], _) = first_lines_and_next(data, [options.positions, POSITIONS])?;
        Race::over(network, reference, [&lines, &others], options, own)
    }

    /// The networks evaluate `lines`; neurons are arranged by `others`, or stay as they are if there are none.
    pub(super) fn over(
        network: &NetFile,
        reference: &NetFile,
        [lines, others]: [&[Line]; 2],
        options: EqualSpeedOptions,
        own: OwnSpeeds,
    ) -> Result<Race, MeasureError> {
        let track: Vec<PlayedPosition> = lines.iter().flat_map(track_positions).collect();
        let network = Contestant::new(network, &track, options)?;
        let reference = Contestant::new(reference, &track, options)?;
        let reference_model = arranged(&reference.set, &reference.net, others)?;
        let own_features_ns = own.features_ns;
        let others = others.to_vec();
        Ok(Race { network, reference, reference_model, track, others, options, own_features_ns, scale: own.scale })
    }

    /// Evaluations per second of a network of the set, relative to the reference. Noisy timings are repeated.
    ///
    /// # Errors
    /// When they stay noisy.
    pub(super) fn ratio(&self, net: &QuantNet) -> Result<SpeedRatio, MeasureError> {
        let found = self.ratio_or_noisy(net)?;
        if found.half_width() > self.tolerated() {
            let SpeedRatio { low, high, .. } = found;
            return Err(MeasureError::NoisyTimings {
                set: self.network.set.name().into(),
                l1: net.shape.l1,
                low,
                high,
            });
        }
        Ok(found)
    }

    /// Largest half-width of a ratio's interval, as a share of the ratio.
    fn tolerated(&self) -> f64 {
        SpeedEntry::NOISY_SHARE.max(self.options.tolerance)
    }

    /// As [`Race::ratio`], also if timings stay noisy.
    pub(super) fn ratio_or_noisy(&self, net: &QuantNet) -> Result<SpeedRatio, MeasureError> {
        let model = arranged(&self.network.set, net, &self.others)?;
        let mut evaluators = [
            Evaluator::new(&self.network.set, &model, self.network.strategy, BackEnd::best())?,
            Evaluator::new(&self.reference.set, &self.reference_model, self.reference.strategy, BackEnd::best())?,
        ];
        // Without neurons, they find features and do nothing else.
        let models = [model.without_neurons(), self.reference_model.without_neurons()];
        let mut finders = [
            Evaluator::new(&self.network.set, &models[0], self.network.strategy, BackEnd::best())?,
            Evaluator::new(&self.reference.set, &models[1], self.reference.strategy, BackEnd::best())?,
        ];
        let scale = self.scale.unwrap_or(1.0);
        let round = |round: usize| {
            let mut seconds = [0.0; 2];
            // The second network finds other contents in the CPU's caches, so the order alternates.
            for side in [round % 2, 1 - round % 2] {
                let evaluator = &mut evaluators[side];
                seconds[side] = self.seconds_per_pass(|| _ = black_box(scores(evaluator, &self.track)), 1);
                if let Some(own_ns) = self.own_features_ns[side] {
                    let finder = &mut finders[side];
                    let line = || self.track.iter().map(PlayedPosition::of_line);
                    let measured = self.seconds_per_pass(|| finder.follow(line()), PART_OF_TURN);
                    seconds[side] += 1e-9 * own_ns * self.track.len() as f64 - measured;
                }
            }
            scale * seconds[1] / seconds[0]
        };
        Ok(median_ratio(self.options.repetitions.max(2) as usize, self.tolerated(), round))
    }

    /// Mean processor time of a pass over all positions, in seconds, over a part of a turn.
    fn seconds_per_pass(&self, pass: impl FnMut(), part: u32) -> f64 {
        seconds_per_pass(pass, self.options.duration() / part)
    }

    pub(super) fn record(&self, mut tried: Vec<WidthSpeed>) -> EqualSpeedRecord {
        tried.sort_by_key(|tried| tried.l1);
        let closest = tried.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let setup = |contestant: &Contestant| SpeedSetup {
            strategy: contestant.strategy.name().into(),
            back_end: BackEnd::best().name().into(),
        };
        let WidthSpeed { l1, speed } = closest.expect("a width was timed");
        EqualSpeedRecord {
            l1,
            speed,
            tried,
            tolerance: self.options.tolerance,
            reference_l1: self.reference.net.shape.l1,
            own_features_ns: self.own_features_ns,
            own_scale: self.scale,
            strategies: [setup(&self.network), setup(&self.reference)],
            positions: self.track.len() as u64,
            rounds: self.options.repetitions.max(2),
            machine: Machine::current(),
        }
    }
}

impl Contestant {
    /// The network with its fastest strategy.
    fn new(file: &NetFile, track: &[PlayedPosition], options: EqualSpeedOptions) -> Result<Contestant, MeasureError> {
        const TURNS: usize = 3;
        let set = file.origin.feature_set()?;
        let model = Model::new(&file.net);
        let mut best = (f64::INFINITY, Strategy::ALL[0]);
        for strategy in Strategy::ALL {
            let mut evaluator = Evaluator::new(&set, &model, strategy, BackEnd::best())?;
            let mut pass = || _ = black_box(scores(&mut evaluator, track));
            let turn = |_| seconds_per_pass(&mut pass, options.duration() / 4);
            let seconds = (0..TURNS).map(turn).fold(f64::INFINITY, f64::min);
            if seconds < best.0 {
                best = (seconds, strategy);
            }
        }
        Ok(Contestant { set, net: file.net.clone(), strategy: best.1 })
    }
}

/// As often are noisy rounds repeated.
const REPEATS: usize = 3;

/// The median of `rounds` rounds; of up to [`REPEATS`] times as many more as long as its interval reaches farther from
/// it than the share `tolerated`.
fn median_ratio(rounds: usize, tolerated: f64, mut round: impl FnMut(usize) -> f64) -> SpeedRatio {
    let mut ratios = Vec::new();
    let mut found = SpeedRatio { ratio: 1.0, low: 0.0, high: f64::INFINITY };
    for _ in 0..=REPEATS {
        ratios.extend((ratios.len()..ratios.len() + rounds).map(&mut round));
        if let Some(Median { value: ratio, low, high }) = median(&ratios) {
            found = SpeedRatio { ratio, low, high };
        }
        if found.half_width() <= tolerated {
            break;
        }
    }
    found
}

/// The model with its neurons arranged by positions; as it is if there are none.
fn arranged(set: &FeatureSet, net: &QuantNet, lines: &[Line]) -> Result<Model, MeasureError> {
    Ok(match lines {
        [] => Model::new(net),
        _ => Model::new(&ft_permute_by_lines(set, net, lines)?),
    })
}

/// Mean processor time of a pass, in seconds; passes are repeated for `duration`.
pub(super) fn seconds_per_pass(mut pass: impl FnMut(), duration: Duration) -> f64 {
    let start = ThreadTime::now();
    let mut passes = 0u32;
    loop {
        pass();
        passes += 1;
        let elapsed = start.elapsed();
        if elapsed >= duration {
            return elapsed.as_secs_f64() / f64::from(passes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some disturbed rounds do not matter; a median that stays uncertain is no width's speed.
    #[test]
    fn noisy_rounds_are_repeated() {
        let measure = |tolerated: f64, noise: &dyn Fn(usize) -> f64| {
            let mut done = 0;
            let found = median_ratio(15, tolerated, |round| {
                done = round + 1;
                0.8 * noise(round)
            });
            (found, done)
        };
        let (found, rounds) = measure(0.1, &|round| if round % 5 == 0 { 3.0 } else { 1.0 });
        assert_eq!((found.ratio, rounds), (0.8, 15));
        // At first every other round is disturbed.
        let (found, rounds) = measure(0.1, &|round| if round < 15 && round % 2 == 0 { 1.5 } else { 1.0 });
        assert!(found.ratio == 0.8 && found.half_width() <= 0.1 && rounds > 15, "{found:?} {rounds}");
        let (found, rounds) = measure(0.1, &|round| if round % 2 == 0 { 1.5 } else { 1.0 });
        assert!((found.low, found.high, rounds) == (0.8, 0.8 * 1.5, 60), "{found:?} {rounds}");
        // A wide tolerance takes wide timings.
        let (found, rounds) = measure(0.5, &|round| if round % 2 == 0 { 1.5 } else { 1.0 });
        assert!(found.half_width() <= 0.5 && rounds == 15, "{found:?} {rounds}");
    }
}
