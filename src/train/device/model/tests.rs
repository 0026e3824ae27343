//! A device model's steps compared with those of the CPU kernels.

use super::*;
use crate::data::Method;
use crate::net::Scheme;
use crate::net::{Activation, OutputBuckets, Shape};
use crate::train::model::tests::{FEATURES, RandomSamples, factors, loss};
use crate::train::{Optimisation, Optimiser, init};
use crate::units::Seed;

fn model(shape: &Shape, factors: Option<Factors>, optimisation: Optimisation) -> Model {
    let net = init::random_network(shape, Seed(4));
    Model::new(net, factors, optimisation, loss(), &Scheme::stockfish(), 2).expect("threads")
}

/// Nine steps by eval, by pqr and by both: the same losses, weights and moments up to rounding.
fn check(shape: &Shape, factors: Option<&Factors>, optimisation: Optimisation, rate: f64) {
    let begin = model(shape, factors.cloned(), optimisation);
    let mut ours = model(shape, factors.cloned(), optimisation);
    let mut theirs = DeviceModel::new(model(shape, factors.cloned(), optimisation), Device::Cpu).expect("tensors");
    for number in 0..9 {
        let (eval, pqr) = (RandomSamples::new(Method::Eval, 300, number), RandomSamples::new(Method::Pqr, 100, number));
        let batches =
            [WeightedBatch { batch: eval.batch(), weight: 1.0 }, WeightedBatch { batch: pqr.batch(), weight: 0.25 }];
        let batches = if number % 3 == 2 { &batches[..] } else { &batches[(number % 3) as usize..][..1] };
        let (ours, theirs) = (ours.train(batches, rate).expect("a step"), theirs.train(batches, rate).expect("a step"));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours.samples, theirs.samples);
            let (ours, theirs) = (ours.mean_loss(), theirs.mean_loss());
            assert!((ours - theirs).abs() < 2e-4 * ours, "{shape}, step {number}: {ours} {theirs}");
        }
    }
    assert_eq!(theirs.step(), 9);
    let samples = RandomSamples::new(Method::Eval, 300, 77);
    let (mut our_activity, mut their_activity) = (Activity::default(), Activity::default());
    let (a, our_each) = ours.evaluate(&samples.batch(), &mut our_activity);
    let (b, their_each) = theirs.evaluate(&samples.batch(), &mut their_activity).expect("a loss");
    let sum = our_each.losses.iter().map(|loss| f64::from(*loss)).sum::<f64>();
    assert!((sum - a.loss).abs() < 1e-4 * a.loss && our_each.losses.len() == 300, "{shape}: {sum} {a:?}");
    let near = |(ours, theirs): (&f32, &f32)| (ours - theirs).abs() < 0.01 * ours.max(0.01);
    assert!(our_each.losses.iter().zip(&their_each.losses).all(near), "{shape}: each sample");
    let (a, b) = (a.mean_loss(), b.mean_loss());
    assert!((a - b).abs() < 2e-4 * a, "{shape}: {a} {b}");
    let shares = |activity: &Activity| activity.shares().expect("positions").positive;
    assert!((shares(&our_activity) - shares(&their_activity)).abs() < 0.01);
    let theirs = theirs.download().expect("back on the CPU");
    assert_eq!(theirs.step, ours.step);
    // They differ little compared with how far they moved.
    let compare = |begin: &[f32], ours: &[f32], theirs: &[f32], what: &str| {
        let apart = |a: &[f32], b: &[f32]| {
            let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let (moved, off) = (apart(begin, ours), apart(ours, theirs));
        assert!(off <= 0.02 * moved, "{shape}, {what}: {off} off after {moved}");
        moved > 0.0
    };
    let all = |model: &Model| {
        let mut arrays = Vec::new();
        for (what, net) in [
            ("weights", &model.net),
            ("first moments", &model.first_moments),
            ("second moments", &model.second_moments),
        ] {
            let tensors = shape.tensors().into_iter().zip(net.tensors());
            arrays.extend(tensors.map(|((name, _), values)| (format!("{what} of {name}"), values.to_vec())));
        }
        if let Some(factored) = &model.factored {
            let rows = [("rows", &factored.virtual_rows), ("own", &factored.own)];
            let moments = [("first", &factored.first_moments), ("second", &factored.second_moments)];
            arrays.extend(
                rows.into_iter().chain(moments).map(|(name, values)| (format!("factors, {name}"), values.clone())),
            );
        }
        if let Some(lookahead) = &model.lookahead {
            arrays.push(("slow weights".into(), lookahead.net.ft_weights.clone()));
            arrays.push(("slow rows of virtual inputs".into(), lookahead.virtual_rows.clone()));
        }
        arrays
    };
    let (before, ours, theirs) = (all(&begin), all(&ours), all(theirs));
    let triples = ours.iter().zip(&theirs).zip(&before);
    let moved = triples.filter(|(((what, ours), (_, theirs)), (_, begin))| compare(begin, ours, theirs, what)).count();
    // Layers whose inputs are all zero do not move.
    assert!(moved * 10 >= ours.len() * 9, "{shape}: {moved} of {} moved", ours.len());
}

#[test]
fn steps_are_those_of_the_kernels() {
    let plain = || Shape::plain(FEATURES, 16, vec![8, 4]);
    check(&plain(), None, Optimisation::default(), 1e-3);
    check(&Shape::plain(FEATURES, 16, vec![]), None, Optimisation::default(), 1e-3);
    let (activation, hidden_activation) = (Activation::Pairwise, Activation::Dual);
    let buckets = OutputBuckets { count: 8, ..OutputBuckets::default() };
    let full = Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..plain() };
    check(&full, None, Optimisation::default(), 1e-3);
    let concatenated = Shape { skip: false, skip_difference: true, concatenated: true, narrow: 3, ..full.clone() };
    check(&concatenated, None, Optimisation::default(), 1e-3);
    check(&concatenated, Some(&factors()), Optimisation::default(), 1e-1);
    let optimisation = Optimisation {
        optimiser: Optimiser::Ranger,
        gradient_clip: Some(0.05),
        sparsity: 0.1,
        ..Optimisation::default()
    };
    check(&full, Some(&factors()), optimisation, 1e-1);
    check(&plain(), Some(&factors()), Optimisation { optimiser: Optimiser::Adamw, ..Optimisation::default() }, 1e-3);
}

/// As with the kernels, layers of a bucket without positions do not change, from the first step on.
#[test]
fn buckets_without_positions_do_not_change() {
    let buckets = OutputBuckets { count: 8, ..OutputBuckets::default() };
    let shape = Shape { buckets, psqt: true, ..Shape::plain(FEATURES, 16, vec![8]) };
    let begin = model(&shape, None, Optimisation::default());
    let before = begin.net.clone();
    let mut tensors = DeviceModel::new(begin, Device::Cpu).expect("tensors");
    let mut samples = RandomSamples::new(Method::Eval, 100, 0);
    samples.piece_counts.fill(9);
    tensors.train(&[WeightedBatch { batch: samples.batch(), weight: 1.0 }], 1e-3).expect("a step");
    let after = &tensors.download().expect("a model").net;
    for bucket in 0..8 {
        assert_eq!(after.stacks[bucket] != before.stacks[bucket], bucket == 2, "bucket {bucket}");
    }
}

#[test]
fn a_diverged_step_is_explained_and_not_taken() {
    let shape = Shape::plain(FEATURES, 16, vec![8]);
    let mut broken = model(&shape, None, Optimisation::default());
    broken.net.stacks[0][0].biases[3] = f32::NAN;
    let before = broken.net.ft_weights.clone();
    let mut tensors = DeviceModel::new(broken, Device::Cpu).expect("tensors");
    let samples = RandomSamples::new(Method::Eval, 50, 0);
    let error = tensors.train(&[WeightedBatch { batch: samples.batch(), weight: 1.0 }], 1e-3).expect_err("diverged");
    assert!(error.to_string().contains("layers.0.bias[3] is NaN"), "{error}");
    assert_eq!(tensors.step(), 0);
    assert!(tensors.download().expect("a model").net.ft_weights == before);
}
