//! The kernels' steps on different numbers of threads and instruction sets, and what they keep. The tests of
//! `fsbench-tch` compare the gradients with libtorch's.

use super::*;
use crate::data::Method;
use crate::features::{Factors, FeatureSet};
use crate::net::{Activation, BucketRule, FloatNet, OutputBuckets, Scheme, Shape};
use crate::service::Csr;
use crate::train::trainer::{ActiveFeatures, Labels, Loss, random_network};
use crate::train::{EvalLoss, LossForm, Optimisation, Optimiser, PqrLoss};
use crate::units::Seed;
use rand::RngExt;

mod random_samples;

use random_samples::{FEATURES, RandomSamples, factors, rules};

fn model(l1: usize, hidden: &[usize], threads: usize) -> CpuTrainer {
    shaped(&Shape::plain(FEATURES, l1, hidden.into()), threads)
}

/// The trainer of a random network.
fn trainer(net: FloatNet, factors: Option<Factors>, optimisation: Optimisation, threads: usize) -> CpuTrainer {
    let state = TrainingState::new(net, factors, optimisation.optimiser);
    CpuTrainer::new(state, rules(optimisation), threads).expect("threads")
}

/// A network with both clipped and unclipped neurons, so that every branch of an activation's gradient is tested.
fn shaped(shape: &Shape, threads: usize) -> CpuTrainer {
    let mut net = random_network(shape, Seed(4));
    if *shape != Shape::plain(FEATURES, shape.l1, shape.hidden.clone()) {
        let mut rng = Seed(6).stream("spread", 0);
        net.ft_weights.iter_mut().for_each(|weight| *weight = rng.random_range(-0.3..0.4));
    }
    trainer(net, None, Optimisation::default(), threads)
}

/// One step on one batch.
fn step(model: &mut CpuTrainer, samples: &RandomSamples, learning_rate: f64) -> Sums {
    let sums = model.train(&[WeightedBatch { batch: samples.batch(), weight: 1.0 }], learning_rate).expect("a step");
    assert_eq!(sums.len(), 1);
    sums[0]
}

fn factored(l1: usize, hidden: &[usize], threads: usize) -> CpuTrainer {
    trainer(model(l1, hidden, threads).state.net, Some(factors()), Optimisation::default(), threads)
}

fn evaluate(model: &CpuTrainer, samples: &RandomSamples) -> Sums {
    model.evaluate(&samples.batch(), &mut Activity::default()).0
}

/// After a first step Adam's first moment is a tenth of the gradient.
fn gradients_of_first_step(model: &CpuTrainer) -> Vec<Vec<f32>> {
    model
        .state
        .first_moments
        .tensors()
        .into_iter()
        .map(|moment| moment.iter().map(|value| value * 10.0).collect())
        .collect()
}

/// A bucket without positions in the batch keeps its weights.
#[test]
fn buckets_without_positions_do_not_change() {
    let buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    let mut model = shaped(&Shape { buckets, ..Shape::plain(FEATURES, 16, vec![8]) }, 1);
    let mut samples = RandomSamples::new(Method::Eval, 300, 0);
    samples.bucket_inputs.fill(9);
    let before = model.state.net.clone();
    step(&mut model, &samples, 1e-3);
    for bucket in 0..8 {
        let moved = model.state.net.stacks[bucket] != before.stacks[bucket];
        assert_eq!(moved, bucket == 2, "bucket {bucket}");
    }
}

#[test]
fn validation_is_the_training_loss_without_a_step() {
    for method in [Method::Eval, Method::Pqr] {
        let mut model = model(16, &[8], 2);
        let samples = RandomSamples::new(method, 1100, 3);
        let before = evaluate(&model, &samples);
        assert_eq!(before.samples, 1100);
        assert_eq!(step(&mut model, &samples, 1e-3), before);
        let after = evaluate(&model, &samples);
        assert!(after.loss < before.loss, "{after:?} {before:?}");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let trained = |threads| {
        let mut model = model(32, &[16], threads);
        for index in 0..5 {
            let method = if index % 2 == 0 { Method::Eval } else { Method::Pqr };
            step(&mut model, &RandomSamples::new(method, 2500, index), 1e-3);
        }
        (model.state.net, model.state.first_moments, model.state.second_moments)
    };
    let one = trained(1);
    assert!(trained(2) == one, "two threads");
    assert!(trained(5) == one, "five threads");
}

/// Rows of features that no sample has are not counted, with and without factors.
#[test]
fn trained_parameters_are_those_that_samples_reach() {
    for mut model in [model(16, &[8], 2), factored(16, &[8], 2)] {
        assert_eq!(
            model.state.trained_parameters(),
            model.state.net.parameters() - 16 * u64::from(FEATURES),
            "before a step"
        );
        let mut active = std::collections::BTreeSet::new();
        for index in 0..3 {
            // Three samples have few features, so that most rows stay as they are.
            let samples = RandomSamples::new(Method::Eval, 3, index);
            active.extend(samples.sides.iter().flat_map(|(_, indices)| indices.clone()));
            step(&mut model, &samples, 1e-3);
            let untouched = 16 * (u64::from(FEATURES) - active.len() as u64);
            assert!(untouched > 0, "{} of {FEATURES} features", active.len());
            assert_eq!(model.state.trained_parameters(), model.state.net.parameters() - untouched, "{index}");
        }
    }
}

/// Every instruction set gives the same network, in the fullest shape.
#[test]
fn back_ends_do_not_change_a_bit() {
    let buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    let activation = Activation::Pairwise;
    let hidden_activation = Activation::Dual;
    let plain = Shape::plain(FEATURES, 26, vec![7, 5]);
    let shape = Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..plain };
    let trained = |back_end: BackEnd| {
        let mut model = shaped(&shape, 2);
        model.back_end = back_end;
        for index in 0..3 {
            let method = if index == 1 { Method::Pqr } else { Method::Eval };
            step(&mut model, &RandomSamples::new(method, 600, index), 1e-3);
        }
        (model.state.net, model.state.second_moments)
    };
    let back_ends = BackEnd::available();
    let scalar = trained(back_ends[0]);
    for back_end in &back_ends[1..] {
        assert!(trained(*back_end) == scalar, "{}", back_end.name());
    }
}

/// The first value that is not finite is named, and no step is taken.
#[test]
fn a_loss_that_is_not_finite_takes_no_step() {
    let check = |spoil: fn(&mut CpuTrainer, &mut RandomSamples), expected: &str| {
        let mut model = model(8, &[4], 1);
        let mut samples = RandomSamples::new(Method::Eval, 10, 0);
        spoil(&mut model, &mut samples);
        let before = model.state.net.ft_weights.clone();
        let batch = WeightedBatch { batch: samples.batch(), weight: 1.0 };
        let error = model.train(&[batch], 1e-3).expect_err("diverged").to_string();
        assert!(error.starts_with(&format!("training diverged at step 1: {expected}")), "{error}");
        assert_eq!((model.state.step, model.state.net.ft_weights), (0, before));
    };
    check(|model, _| model.state.net.stacks[0][0].biases[2] = f32::NAN, "layers.0.bias[2] is NaN");
    check(|model, _| model.state.net.stacks[0][0].weights[21] = f32::INFINITY, "layers.0.weight[1, 5] is inf");
    check(|_, samples| samples.targets[7] = f32::NAN, "the batch's targets[7] is NaN");
    let overflow = |model: &mut CpuTrainer, _: &mut RandomSamples| {
        model.rules.loss.eval.form = LossForm::Epsilon;
        model.state.net.stacks[0][1].biases[0] = 1e38;
    };
    check(overflow, "the loss is inf, though all weights are finite (the largest, 100000");
}

#[test]
fn weights_stay_within_the_scheme() {
    let mut model = model(8, &[4], 1);
    let samples = RandomSamples::new(Method::Eval, 200, 1);
    for _ in 0..50 {
        step(&mut model, &samples, 0.5);
    }
    let limits = Scheme::stockfish().limits();
    let largest = |values: &[f32]| values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    assert!(f64::from(largest(&model.state.net.stacks[0][0].weights)) <= limits.hidden[0] + 1e-6);
    assert!(f64::from(largest(&model.state.net.stacks[0][1].weights)) <= limits.output + 1e-6);
    assert!(f64::from(largest(&model.state.net.stacks[0][0].weights)) >= 1.9, "the limit is reached");
    assert!(crate::net::quantise(&model.state.net, &Scheme::stockfish()).is_ok());
}

#[test]
fn merged_rows_are_sums_on_any_number_of_threads() {
    let trained = |threads| {
        let mut model = factored(32, &[16], threads);
        for index in 0..4 {
            step(&mut model, &RandomSamples::new(Method::Eval, 1500, index), 1e-2);
        }
        model
    };
    let one = trained(1);
    let three = trained(3);
    assert!(one.state.net == three.state.net);
    let [rows, others] = [&one, &three].map(|model| model.state.factored.as_ref().expect("factors"));
    assert!(rows.own == others.own && rows.virtual_rows == others.virtual_rows);
    assert!(rows.second_moments == others.second_moments);
    let inputs = factors();
    assert!(rows.virtual_rows.iter().any(|weight| weight.abs() > 1e-3), "virtual rows move");
    for (feature, merged) in one.state.net.ft_weights.chunks(32).enumerate() {
        let mut sum = rows.own[feature * 32..][..32].to_vec();
        for &input in inputs.inputs(feature as u32) {
            sum.iter_mut().zip(&rows.virtual_rows[input as usize * 32..]).for_each(|(sum, weight)| *sum += weight);
        }
        assert_eq!(sum, merged, "feature {feature}");
    }
}

#[test]
fn long_gradients_are_scaled_down() {
    let moments = |clip| {
        let mut model = model(16, &[8], 2);
        model.rules.optimisation.gradient_clip = clip;
        step(&mut model, &RandomSamples::new(Method::Eval, 600, 2), 1e-3);
        gradients_of_first_step(&model).concat()
    };
    let length = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let unclipped = moments(None);
    let longest = length(&unclipped) / 3.0;
    assert!((length(&moments(Some(longest))) - longest).abs() < 1e-5 * longest);
    assert_eq!(moments(Some(longest * 4.0)), unclipped);
}

/// After six steps the weights are half way between the initial weights and rectified Adam's without Lookahead.
#[test]
fn slow_weights_follow() {
    let optimisation = Optimisation { optimiser: Optimiser::Ranger, weight_decay: 0.0, ..Optimisation::default() };
    let shape = Shape::plain(FEATURES, 16, vec![8]);
    let begin = random_network(&shape, Seed(4));
    for factors in [None, Some(factors())] {
        let trained = |lookahead: bool| {
            let mut model = trainer(begin.clone(), factors.clone(), optimisation, 2);
            if !lookahead {
                model.state.lookahead = None;
            }
            for index in 0..6 {
                step(&mut model, &RandomSamples::new(Method::Eval, 300, index), 1e-2);
            }
            model.state.net
        };
        let fast = trained(false);
        let synchronised = trained(true);
        assert!(fast != begin);
        let triples = begin.ft_weights.iter().zip(&fast.ft_weights).zip(&synchronised.ft_weights);
        for ((begin, fast), synchronised) in triples {
            assert!(((begin + fast) / 2.0 - synchronised).abs() < 1e-6, "{begin} {fast} {synchronised}");
        }
        let weight = |net: &FloatNet| net.stacks[0][1].weights[0];
        assert!((f32::midpoint(weight(&begin), weight(&fast)) - weight(&synchronised)).abs() < 1e-6);
    }
}
