//! The accumulator width at which networks of one set are as fast as a network of another.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MeasureError;
use super::speed::check_timing;
use super::speed_race::Race;
use crate::net::NetFile;
use crate::record::{EqualSpeedRecord, WidthSpeed};
use crate::settings::SettingError;
use crate::units::sort_by;

/// Options of [`equal_speed`], and keys of `[equal_speed]` in an experiment.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EqualSpeedOptions {
    /// How far from 1 the ratio of speeds may be; without such a width, the closest
    pub tolerance: f64,
    /// Positions to evaluate
    // The first of the data.
    pub positions: u64,
    /// Rounds per width, in which both networks take turns
    // At least 2.
    pub repetitions: u32,
    /// Minimum processor time of a turn, in seconds
    pub seconds: f64,
}

impl Default for EqualSpeedOptions {
    fn default() -> Self {
        EqualSpeedOptions { tolerance: 0.03, positions: 5_000, repetitions: 15, seconds: 0.1 }
    }
}

impl EqualSpeedOptions {
    /// # Errors
    /// If a number is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        if !(self.tolerance > 0.0 && self.tolerance <= 0.5) {
            return Err(SettingError::new("tolerance", "tolerance must lie between 0 and 0.5, as in 0.03"));
        }
        check_timing(self.positions, self.repetitions, self.seconds)
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds).unwrap_or_default()
    }
}

/// The user's figures that a comparison of speeds goes by.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct OwnSpeeds {
    /// Nanoseconds a move in which features of both perspectives are found, of the network and of the reference.
    pub features_ns: [Option<f64>; 2],
    /// Cost of the network's node against the reference's: measured speeds get the factor with which the network, as it
    /// is, has this cost.
    pub node_cost: Option<f64>,
    /// Such a factor, found before.
    pub scale: Option<f64>,
}

/// Widths are multiples of this.
pub const WIDTH_STEP: usize = 32;
/// Largest width that is tried.
const MAX_WIDTH: usize = 4096;
/// Most widths that are tried.
const MOST_TRIES: usize = 10;
/// A width that is off by this share of the tolerance ends the search: the trained network's speed will differ a
/// little, and another timing too.
const WELL_WITHIN: f64 = 1.0 / 3.0;
/// The share of the evaluation time that is taken to grow with the width, as long as only one width is timed.
const TIME_OF_WIDTH: f64 = 0.5;
/// The ratio of another width must be closer to 1 by this: about the difference between timings of the same network.
const WORTH_ANOTHER_TRAINING: f64 = 0.005;

/// Finds the accumulator width, a multiple of [`WIDTH_STEP`], at which networks of `network`'s set and shape evaluate
/// as many positions per second as `reference`. A width is timed with `network`'s own neurons, repeated or left out, so
/// that as large a share of them is active as in training. Both networks have their neurons arranged by the positions
/// of other games, use their fastest strategy, and take turns on one thread. The search ends at a width well within the
/// tolerance, else when the closest of all is timed.
///
/// # Errors
/// When a network's feature set cannot be rebuilt, the data cannot be read, or timings stay noisy although they are
/// repeated.
pub fn equal_speed(
    network: &NetFile,
    reference: &NetFile,
    data: &Path,
    options: EqualSpeedOptions,
    own: OwnSpeeds,
) -> Result<EqualSpeedRecord, MeasureError> {
    let mut race = Race::new(network, reference, data, options, own)?;
    if let Some(cost) = own.node_cost {
        race.scale = Some(1.0 / (cost * race.ratio(&race.network.net)?.ratio));
    }
    let mut widths = WidthSearch::new(options.tolerance);
    let mut next = Some(nearest_width(network.net.shape.l1 as f64));
    while let Some(l1) = next {
        widths.add(WidthSpeed { l1, speed: race.ratio(&race.network.net.with_l1(l1))? });
        next = widths.next();
    }
    Ok(race.record(widths.tried))
}

/// The speed of `network` as it is, relative to `reference`; both arranged, in turns, as in [`equal_speed`].
///
/// # Errors
/// As [`equal_speed`].
pub fn relative_speed(
    network: &NetFile,
    reference: &NetFile,
    data: &Path,
    options: EqualSpeedOptions,
    own: OwnSpeeds,
) -> Result<EqualSpeedRecord, MeasureError> {
    let race = Race::new(network, reference, data, options, own)?;
    let speed = race.ratio(&race.network.net)?;
    Ok(race.record(vec![WidthSpeed { l1: network.net.shape.l1, speed }]))
}

/// The width of equal speed by a second look: `trained` is the ratio of speeds of a network that was trained at the
/// width that `search` found, and every other width is expected to differ from its own timing, or from a straight line
/// through its neighbours' times, by the same factor. A width whose expected ratio is hardly closer to 1 does not
/// replace the one found.
#[must_use]
pub fn corrected_width(search: &EqualSpeedRecord, trained: f64) -> usize {
    let slowdown = search.speed.ratio / trained;
    let expected = |l1: usize| (slowdown * time(&search.tried, l1 as f64)).ln().abs();
    let widths = (1..=MAX_WIDTH / WIDTH_STEP).map(|steps| steps * WIDTH_STEP);
    let best = widths.map(|l1| (l1, expected(l1))).min_by(|a, b| a.1.total_cmp(&b.1));
    match best {
        Some((l1, distance)) if distance + WORTH_ANOTHER_TRAINING < trained.ln().abs() => l1,
        _ => search.l1,
    }
}

/// Evaluation time at a width, in the reference's, on the line through the times of the two tried widths next to it.
fn time(tried: &[WidthSpeed], l1: f64) -> f64 {
    let times: Vec<(f64, f64)> = tried.iter().map(|width| (width.l1 as f64, 1.0 / width.speed.ratio)).collect();
    match times[..] {
        [] => 1.0,
        [(width, time)] => time * (1.0 - TIME_OF_WIDTH + TIME_OF_WIDTH * l1 / width),
        _ => {
            let after = times.partition_point(|(width, _)| *width < l1).clamp(1, times.len() - 1);
            let [(a, time_a), (b, time_b)] = [times[after - 1], times[after]];
            time_a + (time_b - time_a) * (l1 - a) / (b - a)
        }
    }
}

/// How far a width's speed is from the reference's.
pub(super) fn distance(width: &WidthSpeed) -> f64 {
    width.speed.ratio.ln().abs()
}

/// The multiple of [`WIDTH_STEP`] that is nearest to a width.
fn nearest_width(width: f64) -> usize {
    let steps = (width / WIDTH_STEP as f64).round().clamp(1.0, (MAX_WIDTH / WIDTH_STEP) as f64);
    steps as usize * WIDTH_STEP
}

/// A search for the width at which the ratio of speeds is 1.
struct WidthSearch {
    tried: Vec<WidthSpeed>,
    tolerance: f64,
}

impl WidthSearch {
    const fn new(tolerance: f64) -> WidthSearch {
        WidthSearch { tried: Vec::new(), tolerance }
    }

    fn add(&mut self, tried: WidthSpeed) {
        self.tried.push(tried);
    }

    /// The next width to time: where a straight line through the evaluation times of two widths, which enclose the
    /// reference's if there are such, meets it. `None` if the search is at its end.
    fn next(&self) -> Option<usize> {
        let WidthSearch { tried, tolerance } = self;
        let is_equal = |width: &WidthSpeed| (width.speed.ratio - 1.0).abs() <= WELL_WITHIN * tolerance;
        if tried.len() >= MOST_TRIES || tried.iter().any(is_equal) {
            return None;
        }
        // Wider networks are slower: widths between the widest faster and the narrowest slower one remain.
        let faster = tried.iter().filter(|width| width.speed.ratio > 1.0).max_by_key(|width| width.l1);
        let slower = tried.iter().filter(|width| width.speed.ratio <= 1.0).min_by_key(|width| width.l1);
        let [low, high] = [faster.map_or(0, |width| width.l1), slower.map_or(MAX_WIDTH + WIDTH_STEP, |width| width.l1)];
        if high <= low + WIDTH_STEP {
            return None;
        }
        let guess = match (faster, slower) {
            (Some(a), Some(b)) => meets_one(a, b),
            // With one side only: the two closest widths, or an assumption.
            _ => {
                let mut closest: Vec<&WidthSpeed> = tried.iter().collect();
                sort_by(&mut closest, &|a, b| distance(a).total_cmp(&distance(b)));
                match closest[..] {
                    [a, b, ..] if a.l1 != b.l1 => meets_one(a, b),
                    _ => {
                        let only = closest.first()?;
                        only.l1 as f64 * (1.0 + (only.speed.ratio - 1.0) / TIME_OF_WIDTH)
                    }
                }
            }
        };
        let bounds = [low + WIDTH_STEP, high - WIDTH_STEP];
        // Times are noisy: a line may lead outside or nowhere.
        let guess = if guess.is_finite() { guess } else { f64::midpoint(low as f64, high as f64) };
        let width = nearest_width(guess).clamp(bounds[0], bounds[1].max(bounds[0]));
        (!tried.iter().any(|other| other.l1 == width)).then_some(width)
    }
}

/// The width at which the line through the times of two widths meets the reference's time.
fn meets_one(a: &WidthSpeed, b: &WidthSpeed) -> f64 {
    let [time_a, time_b] = [1.0 / a.speed.ratio, 1.0 / b.speed.ratio];
    a.l1 as f64 + (1.0 - time_a) * (b.l1 as f64 - a.l1 as f64) / (time_b - time_a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Machine, SpeedRatio, SpeedSetup};

    /// Searches with exact times, and returns the closest width and the number of widths tried.
    fn search(start: usize, ratio: impl Fn(usize) -> f64) -> (usize, usize) {
        let mut search = WidthSearch::new(0.03);
        let mut next = Some(start);
        while let Some(l1) = next {
            assert!(l1.is_multiple_of(WIDTH_STEP) && (WIDTH_STEP..=MAX_WIDTH).contains(&l1), "{l1}");
            assert!(search.tried.iter().all(|tried| tried.l1 != l1), "{l1} again");
            search.add(WidthSpeed { l1, speed: SpeedRatio { ratio: ratio(l1), low: 0.0, high: 9.0 } });
            next = search.next();
        }
        let closest = search.tried.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("tried");
        (closest.l1, search.tried.len())
    }

    #[test]
    fn the_width_of_equal_speed_is_found() {
        // Time = 100 + width, in the reference's 356 units.
        for (fixed, reference) in [(100.0, 356.0), (300.0, 600.0), (0.0, 512.0), (500.0, 1500.0), (20.0, 148.0)] {
            let ratio = |l1: usize| reference / (fixed + l1 as f64);
            let best = (1..=128).map(|steps| 32 * steps).min_by(|a, b| {
                let far = |l1: usize| ratio(l1).ln().abs();
                far(*a).total_cmp(&far(*b))
            });
            for start in [32, 256, 1024, 4096] {
                let (found, tries) = search(start, ratio);
                let is_equal = (ratio(found) - 1.0).abs() <= 0.01;
                assert!(is_equal || Some(found) == best, "{fixed} {reference} from {start}: {found}, not {best:?}");
                assert!(tries <= 7, "{fixed} {reference} from {start}: {tries} tries");
            }
        }
    }

    /// Sets that are slower than the reference at any width, or faster at every width.
    #[test]
    fn a_search_without_a_solution_ends_at_the_limit() {
        assert_eq!(search(256, |l1| 0.5 / (1.0 + l1 as f64 / 1000.0)).0, WIDTH_STEP);
        assert_eq!(search(256, |l1| 9.0 / (1.0 + l1 as f64 / 1000.0)).0, MAX_WIDTH);
    }

    #[test]
    fn a_second_look_corrects_the_width() {
        let speed = |ratio| SpeedRatio { ratio, low: ratio, high: ratio };
        // As measured: half-ka-v2-hm beside piece at 512, then the same with an exact line, and with one width only.
        let record = |l1, tried: &[(usize, f64)]| EqualSpeedRecord {
            l1,
            speed: speed(tried.iter().find(|(width, _)| *width == l1).expect("tried").1),
            tried: tried.iter().map(|&(l1, ratio)| WidthSpeed { l1, speed: speed(ratio) }).collect(),
            tolerance: 0.03,
            reference_l1: 512,
            own_features_ns: [None; 2],
            own_scale: None,
            strategies: [0, 1].map(|_| SpeedSetup { strategy: "eager".into(), back_end: "scalar".into() }),
            positions: 1,
            rounds: 2,
            machine: Machine::current(),
        };
        let measured = record(352, &[(320, 1.05), (352, 0.98), (512, 0.72)]);
        assert_eq!(corrected_width(&measured, 0.956), 320);
        assert_eq!(corrected_width(&measured, 0.98), 352, "as fast as found");
        assert_eq!(corrected_width(&measured, 1.0), 352);
        assert_eq!(corrected_width(&measured, 1.06), 384, "faster than found");
        assert_eq!(corrected_width(&record(352, &[(352, 1.0)]), 0.9), 288);
        // 320 would be as far off on the other side: not worth a training.
        assert_eq!(corrected_width(&record(352, &[(320, 1.07), (352, 1.0)]), 0.97), 352);
    }

    /// The ratio of a step function never comes within the tolerance: the search still ends.
    #[test]
    fn uneven_times_end_the_search() {
        let (found, tries) = search(256, |l1| if l1 <= 352 { 1.2 } else { 0.9 });
        assert!(found > 352 && tries <= MOST_TRIES, "{found} {tries}");
    }
}
