//! The state after some steps of either trainer, and steps that are not taken.

use super::*;
use fsbench::net::{Activation, OutputBuckets};
use fsbench::train::Optimiser;
use fsbench::train::trainer::Activity;

/// Nine steps by eval, by pqr and by both: the same losses, weights and moments up to rounding.
fn check(shape: &Shape, factors: Option<&Factors>, optimisation: Optimisation, rate: f64) {
    for mut theirs in trainers(&network(shape), factors, optimisation) {
        let mut begin = kernels(network(shape), factors.cloned(), optimisation);
        let ours = kernels(network(shape), factors.cloned(), optimisation);
        compare(shape, &mut begin, ours, &mut *theirs, rate);
    }
}

/// As [`check`], of one trainer; `begin` and `ours` are the same.
fn compare(shape: &Shape, begin: &mut CpuTrainer, mut ours: CpuTrainer, theirs: &mut dyn Trainer, rate: f64) {
    for number in 0..9 {
        let eval = RandomSamples::new(Method::Eval, 300, number);
        let pqr = RandomSamples::new(Method::Pqr, 100, number);
        let batches =
            [WeightedBatch { batch: eval.batch(), weight: 1.0 }, WeightedBatch { batch: pqr.batch(), weight: 0.25 }];
        let batches = if number % 3 == 2 { &batches[..] } else { &batches[(number % 3) as usize..][..1] };
        let ours = ours.train(batches, rate).expect("a step");
        let theirs = step_losses(theirs, batches, rate).expect("a step");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours.samples, theirs.samples);
            let ours = ours.mean_loss();
            let theirs = theirs.mean_loss();
            assert!((ours - theirs).abs() < 2e-4 * ours, "{shape}, step {number}: {ours} {theirs}");
        }
    }
    assert_eq!(theirs.step(), 9);
    let samples = RandomSamples::new(Method::Eval, 300, 77);
    let mut our_activity = Activity::default();
    let mut their_activity = Activity::default();
    let (a, our_each) = Trainer::evaluate(&ours, &samples.batch(), &mut our_activity).expect("a loss");
    let (b, their_each) = theirs.evaluate(&samples.batch(), &mut their_activity).expect("a loss");
    let sum = our_each.losses.iter().map(|loss| f64::from(*loss)).sum::<f64>();
    assert!((sum - a.loss).abs() < 1e-4 * a.loss && our_each.losses.len() == 300, "{shape}: {sum} {a:?}");
    let near = |(ours, theirs): (&f32, &f32)| (ours - theirs).abs() < 0.01 * ours.max(0.01);
    assert!(our_each.losses.iter().zip(&their_each.losses).all(near), "{shape}: each sample");
    let a = a.mean_loss();
    let b = b.mean_loss();
    assert!((a - b).abs() < 2e-4 * a, "{shape}: {a} {b}");
    let shares = |activity: &Activity| activity.shares().expect("positions").positive;
    assert!((shares(&our_activity) - shares(&their_activity)).abs() < 0.01);
    let begin = Trainer::state(begin).expect("in memory");
    let ours = Trainer::state(&mut ours).expect("in memory");
    let theirs = theirs.state().expect("copied");
    assert_eq!(theirs.step, ours.step);
    // They differ little compared with how far they moved.
    let compare = |begin: &[f32], ours: &[f32], theirs: &[f32], what: &str| {
        let moved = distance(begin, ours);
        let off = distance(ours, theirs);
        assert!(off <= 0.02 * moved, "{shape}, {what}: {off} off after {moved}");
        moved > 0.0
    };
    let all = |state: &TrainingState| {
        let mut arrays = Vec::new();
        for (what, net) in [
            ("weights", &state.net),
            ("first moments", &state.first_moments),
            ("second moments", &state.second_moments),
        ] {
            let tensors = shape.tensors().into_iter().zip(net.tensors());
            arrays.extend(tensors.map(|((name, _), values)| (format!("{what} of {name}"), values.to_vec())));
        }
        if let Some(factored) = &state.factored {
            let rows = [("rows", &factored.virtual_rows), ("own", &factored.own)];
            let moments = [("first", &factored.first_moments), ("second", &factored.second_moments)];
            arrays.extend(
                rows.into_iter().chain(moments).map(|(name, values)| (format!("factors, {name}"), values.clone())),
            );
        }
        if let Some(lookahead) = &state.lookahead {
            arrays.push(("slow weights".into(), lookahead.net.ft_weights.clone()));
            arrays.push(("slow rows of virtual inputs".into(), lookahead.virtual_rows.clone()));
        }
        arrays
    };
    let before = all(begin);
    let ours = all(ours);
    let theirs = all(theirs);
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
    let activation = Activation::Pairwise;
    let hidden_activation = Activation::Dual;
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
    let before = network(&shape);
    for mut trainer in trainers(&before, None, Optimisation::default()) {
        let mut samples = RandomSamples::new(Method::Eval, 100, 0);
        samples.bucket_inputs.fill(9);
        let batches = [WeightedBatch { batch: samples.batch(), weight: 1.0 }];
        step_losses(&mut *trainer, &batches, 1e-3).expect("a step");
        let after = &trainer.state().expect("copied").net;
        for bucket in 0..8 {
            assert_eq!(after.stacks[bucket] != before.stacks[bucket], bucket == 2, "bucket {bucket}");
        }
    }
}

#[test]
fn a_diverged_step_is_explained_and_not_taken() {
    let shape = Shape::plain(FEATURES, 16, vec![8]);
    let mut broken = network(&shape);
    broken.stacks[0][0].biases[3] = f32::NAN;
    let before = broken.ft_weights.clone();
    for mut trainer in trainers(&broken, None, Optimisation::default()) {
        let samples = RandomSamples::new(Method::Eval, 50, 0);
        let batch = WeightedBatch { batch: samples.batch(), weight: 1.0 };
        let error = step_losses(&mut *trainer, &[batch], 1e-3).expect_err("diverged");
        assert!(error.to_string().contains("layers.0.bias[3] is NaN"), "{error}");
        assert_eq!(trainer.step(), 0);
        assert!(trainer.state().expect("copied").net.ft_weights == before);
    }
}
