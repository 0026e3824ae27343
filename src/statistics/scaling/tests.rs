//! How often intervals and crossings hold the truth, where it is known. A part of the grid is a test;
//! `scripts/coverage.sh` runs the whole.

use rand::RngExt;

use super::power_law::PowerLaw;
use super::*;
use crate::units::SortedMap;

/// Power laws and the noise of what is measured of them.
#[derive(Clone, Debug)]
struct TrueCurves {
    exponent: f64,
    curves: Vec<PowerLaw>,
    shares: Vec<f64>,
    /// Trainings of each set and share.
    seeds: u64,
    games: usize,
    /// Relative deviation of a training, at the largest share; √`uneven` times as large at the smallest.
    seed_noise: f64,
    uneven: f64,
    /// Relative deviations of a game's difficulty, and of a set's own on it.
    game_noise: [f64; 2],
}

const SHARES: [f64; 6] = [0.031, 0.0625, 0.125, 0.25, 0.5, 1.0];
/// Samples of the whole.
const LARGEST: f64 = 6.7e6;

impl TrueCurves {
    /// Three sets like those of chess: a small one that learns fast, one with a lower floor, and a large one.
    fn of_chess(exponent: f64) -> TrueCurves {
        let curve = |floor, reducible| PowerLaw { floor, reducible };
        TrueCurves {
            exponent,
            curves: vec![curve(1.16, 0.12), curve(1.02, 0.22), curve(0.90, 0.36)],
            shares: SHARES.to_vec(),
            seeds: 3,
            games: 150,
            seed_noise: 0.004,
            uneven: 1.0,
            game_noise: [0.5, 0.05],
        }
    }

    fn loss(&self, set: usize, samples: f64) -> f64 {
        self.curves[set].loss(self.exponent, (samples / LARGEST).ln())
    }

    /// Where two sets cross, whichever is ahead.
    fn crossing(&self, first: usize, second: usize) -> f64 {
        let [first, second] = [first, second].map(|set| self.curves[set]);
        let q = (second.floor - first.floor) / (first.reducible - second.reducible);
        LARGEST * q.powf(-1.0 / self.exponent)
    }

    fn measure(&self, rng: &mut impl RngExt) -> (Vec<f64>, Vec<Vec<ShareLosses>>) {
        let samples: Vec<f64> = (0..self.games).map(|_| 20.0 + 60.0 * rng.random::<f64>()).collect();
        let [common, own] = self.game_noise;
        let log_normal = |deviation: f64, rng: &mut _| deviation.mul_add(normal(rng), -deviation.powi(2) / 2.0).exp();
        let difficulty: Vec<f64> = samples.iter().map(|_| log_normal(common, rng)).collect();
        let mut sets = Vec::new();
        for set in 0..self.curves.len() {
            let on_games: Vec<f64> = samples.iter().map(|_| log_normal(own, rng)).collect();
            let mut shares = Vec::new();
            for (number, share) in self.shares.iter().enumerate() {
                let of_share = LARGEST * share;
                let noise = self.seed_noise * self.uneven.powf(0.5 * share.ln() / self.shares[0].ln());
                let mut losses: SeedSums = SortedMap::new();
                for seed in 0..self.seeds {
                    let mean = self.loss(set, of_share) * noise.mul_add(normal(rng), 1.0);
                    let mut of_game = |game: usize| {
                        samples[game] * mean * difficulty[game] * on_games[game] * log_normal(own / 2.0, rng)
                    };
                    losses.insert(seed, (0..samples.len()).map(&mut of_game).collect());
                }
                shares.push(ShareLosses { share: number, samples: of_share as u64, losses });
            }
            sets.push(shares);
        }
        (samples, sets)
    }
}

/// Shares of simulated experiments.
#[derive(Debug, Default)]
struct Coverage {
    /// In which the interval of the loss at ten times the data holds it, mean over the sets.
    tenfold: f64,
    /// The same of the floors.
    floor: f64,
    exponent: f64,
    /// Of the crossings that are stated, those whose interval holds the true one; and how many of those there are.
    crossing: f64,
    stated: f64,
    /// Of the predictions of the self-check.
    check: f64,
    /// Mean half-width of the loss at ten times the data, relative.
    width: f64,
}

fn coverage(truth: &TrueCurves, experiments: u64) -> Coverage {
    let sets = truth.curves.len();
    let pairs: Vec<(usize, usize)> = (0..sets).flat_map(|a| (a + 1..sets).map(move |b| (a, b))).collect();
    let mut sums = Coverage::default();
    let mut checked = 0.0;
    for number in 0..experiments {
        let mut rng = Seed(7).stream("scaling simulation", number);
        let (samples, measured) = truth.measure(&mut rng);
        let curves = ScalingCurves::new(&samples, &measured, Seed(number)).expect("enough shares");
        let holds = |interval: Interval, value: f64| f64::from((interval.low..=interval.high).contains(&value));
        sums.exponent += holds(curves.exponent(), truth.exponent);
        for set in 0..sets {
            let tenfold = curves.loss(set, 10.0 * LARGEST).expect("within the limit");
            let expected = truth.loss(set, 10.0 * LARGEST);
            sums.tenfold += holds(tenfold, expected) / sets as f64;
            sums.floor += holds(curves.floor(set), truth.curves[set].floor) / sets as f64;
            sums.width += (tenfold.high - tenfold.low) / 2.0 / expected / sets as f64;
        }
        for (first, second) in &pairs {
            if let Some(crossing) = curves.crossing(*first, *second) {
                sums.stated += 1.0;
                sums.crossing += holds(crossing.samples, truth.crossing(*first, *second));
            }
        }
        if let Some(LawCheck { held, sets }) = curves.check() {
            sums.check += held as f64;
            checked += sets as f64;
        }
    }
    let count = experiments as f64;
    Coverage {
        tenfold: sums.tenfold / count,
        floor: sums.floor / count,
        exponent: sums.exponent / count,
        crossing: sums.crossing / sums.stated.max(1.0),
        stated: sums.stated / count / pairs.len() as f64,
        check: sums.check / checked,
        width: sums.width / count,
    }
}

impl Coverage {
    /// `noise`: how far simulated shares may be off.
    fn check(&self, truth: &TrueCurves, noise: f64) {
        let least = 0.93 - noise;
        let Coverage { tenfold, floor, exponent, crossing, stated, check, .. } = self;
        let all = [tenfold, floor, exponent, check];
        assert!(all.iter().all(|share| **share >= least), "{truth:?}: {self:?}");
        // Of few statements the share is known badly.
        assert!(*crossing >= least || *stated < 0.1, "{truth:?}: {self:?}");
    }
}

/// With many games of equal difficulty, so that the seeds decide.
fn of_many_games(exponent: f64) -> TrueCurves {
    TrueCurves { game_noise: [0.1, 0.02], ..TrueCurves::of_chess(exponent) }
}

#[test]
fn curves_and_crossings_are_covered() {
    let three_shares = TrueCurves { shares: vec![0.25, 0.5, 1.0], seeds: 2, ..TrueCurves::of_chess(0.3) };
    for truth in [TrueCurves::of_chess(0.3), of_many_games(0.45), three_shares] {
        coverage(&truth, 60).check(&truth, 0.08);
    }
}

#[test]
#[ignore = "minutes: scripts/coverage.sh"]
fn curves_are_covered_everywhere() {
    const EXPERIMENTS: u64 = 1_000;
    for exponent in [0.12, 0.2, 0.3, 0.5, 0.7] {
        for seeds in [1, 2, 3, 5] {
            let few_shares = |truth: TrueCurves| TrueCurves { shares: vec![0.25, 0.5, 1.0], ..truth };
            let truths = [
                ("many games", of_many_games(exponent)),
                ("small shares noisy", TrueCurves { uneven: 9.0, ..of_many_games(exponent) }),
                ("noisy seeds", TrueCurves { seed_noise: 0.015, ..of_many_games(exponent) }),
                ("few games", TrueCurves::of_chess(exponent)),
                ("three shares", few_shares(of_many_games(exponent))),
            ];
            for (name, truth) in truths {
                let truth = TrueCurves { seeds, ..truth };
                let found = coverage(&truth, EXPERIMENTS);
                println!("exponent {exponent}, {seeds} seeds, {name}: {found:.3?}");
                found.check(&truth, 0.02);
            }
        }
    }
}

/// Without noise the law is found as it is, and the same data give the same intervals.
#[test]
fn exact_curves_are_found() {
    let truth = TrueCurves { seed_noise: 0.0, game_noise: [0.0, 0.0], seeds: 2, ..TrueCurves::of_chess(0.4) };
    let (samples, measured) = truth.measure(&mut Seed(1).stream("exact", 0));
    let curves = |seed: u64| ScalingCurves::new(&samples, &measured, Seed(seed)).expect("enough shares");
    let found = curves(1);
    let close = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 1e-3, "{value}, not {expected}");
    close(found.exponent().value, 0.4);
    for set in 0..3 {
        close(found.floor(set).value, truth.curves[set].floor);
        close(found.reducible(set, LARGEST).value, truth.curves[set].reducible);
        close(found.loss(set, 3.0 * LARGEST).expect("within the limit").value, truth.loss(set, 3.0 * LARGEST));
        assert_eq!(found.loss(set, 31.0 * LARGEST), None);
    }
    let crossing = found.crossing(0, 2).expect("they cross");
    close(crossing.samples.value, truth.crossing(0, 2));
    assert_eq!((crossing.ahead, found.crossing(2, 0)), (2, Some(crossing)));
    assert_eq!([0.03, 10.0].map(|share| found.lowest(share * LARGEST)), [Some(0), Some(2)]);
    assert_eq!(curves(1).exponent(), found.exponent());
}

/// Sets that are equal, parallel, or in the same order everywhere have no crossing.
#[test]
fn no_crossing_is_stated_without_one() {
    let stated = |curves: [PowerLaw; 2], seed_noise: f64| {
        let truth = TrueCurves { curves: curves.to_vec(), seed_noise, ..of_many_games(0.3) };
        let of = |number: u64| {
            let (samples, measured) = truth.measure(&mut Seed(2).stream("orders", number));
            ScalingCurves::new(&samples, &measured, Seed(number)).expect("enough shares").crossing(0, 1).is_some()
        };
        (0..20).filter(|number| of(*number)).count()
    };
    let curve = |floor, reducible| PowerLaw { floor, reducible };
    assert!(stated([curve(1.0, 0.2); 2], 0.004) <= 2);
    assert_eq!(stated([curve(1.0, 0.2), curve(0.9, 0.19)], 0.002), 0);
    assert_eq!(stated([curve(1.0, 0.2), curve(0.9, 0.31)], 0.002), 20);
}

#[test]
fn too_little_data_give_no_curves() {
    let truth = TrueCurves { seeds: 1, games: 10, ..TrueCurves::of_chess(0.3) };
    let (samples, measured) = truth.measure(&mut Seed(3).stream("few", 0));
    let is_some = |sets: &[Vec<ShareLosses>]| ScalingCurves::new(&samples, sets, Seed(0)).is_some();
    assert!(is_some(&measured));
    assert!(!is_some(&[measured[0][..2].to_vec()]), "two shares");
    assert!(!is_some(&[measured[0][..3].to_vec()]), "three points and three parameters");
    assert!(!is_some(&[]));
    assert!(ScalingCurves::new(&[0.0; 10], &measured, Seed(0)).is_none(), "no samples");
}
