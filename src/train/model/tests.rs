//! The trainer's steps compared with plain libtorch in double precision, and on different numbers of threads.

use rand::RngExt;
use tch::{Kind, Tensor};

use super::super::batch::{ActiveFeatures, Labels};
use super::super::init::random_network;
use super::super::{EvalLoss, LossForm, PqrLoss};
use super::*;
use crate::data::Method;
use crate::features::{Factors, FeatureSet};
use crate::net::{Activation, BucketRule, OutputBuckets, Shape};
use crate::service::Csr;
use crate::units::Seed;

pub const FEATURES: u32 = 40;

pub fn loss() -> Loss {
    Loss { eval: EvalLoss::default(), pqr: PqrLoss { kappa: 0.7, output_scale: 300.0 } }
}

fn model(l1: usize, hidden: &[usize], threads: usize) -> Model {
    shaped(&Shape::plain(FEATURES, l1, hidden.into()), threads)
}

/// A network with both clipped and unclipped neurons, so that every branch of an activation's gradient is tested.
fn shaped(shape: &Shape, threads: usize) -> Model {
    let mut net = random_network(shape, Seed(4));
    if *shape != Shape::plain(FEATURES, shape.l1, shape.hidden.clone()) {
        let mut rng = Seed(6).stream("spread", 0);
        net.ft_weights.iter_mut().for_each(|weight| *weight = rng.random_range(-0.3..0.4));
    }
    Model::new(net, None, Optimisation::default(), loss(), &Scheme::stockfish(), threads).expect("threads")
}

/// One step on one batch.
fn step(model: &mut Model, samples: &RandomSamples, learning_rate: f64) -> Sums {
    let sums = model.train(&[WeightedBatch { batch: samples.batch(), weight: 1.0 }], learning_rate).expect("a step");
    assert_eq!(sums.len(), 1);
    sums[0]
}

/// 40 features of 8 files and 5 roles; files and roles are the virtual inputs.
pub fn factors() -> Factors {
    let text = "features = \"file(P) * role(P, pawn..queen) for P in pieces\"\nfactor = \"(file(P) + role(P, pawn..queen))\"\n";
    let set = FeatureSet::from_definition(text).expect("a good definition");
    assert_eq!(set.num_features(), FEATURES);
    Factors::of(&set).expect("determined").expect("a factor")
}

fn factored(l1: usize, hidden: &[usize], threads: usize) -> Model {
    let model = model(l1, hidden, threads);
    Model::new(model.net, Some(factors()), Optimisation::default(), loss(), &Scheme::stockfish(), threads)
        .expect("threads")
}

/// Random samples with up to 12 features per perspective, including repeated features and empty positions.
pub struct RandomSamples {
    method: Method,
    sides: [(Vec<i32>, Vec<i32>); 2],
    pub piece_counts: Vec<u8>,
    targets: Vec<f32>,
}

impl RandomSamples {
    pub fn new(method: Method, samples: usize, index: u64) -> RandomSamples {
        let mut rng = Seed(9).stream("samples", index);
        let positions = if method == Method::Pqr { 3 * samples } else { samples };
        let mut side = || {
            let (mut offsets, mut indices) = (vec![0], Vec::new());
            for _ in 0..positions {
                let active = rng.random_range(0..=12);
                indices.extend((0..active).map(|_| rng.random_range(0..FEATURES as i32)));
                offsets.push(indices.len() as i32);
            }
            (offsets, indices)
        };
        let sides = [side(), side()];
        let targets = (0..samples).map(|_| rng.random_range(0.0..1.0)).collect();
        let piece_counts = (0..positions).map(|_| rng.random_range(2..=32)).collect();
        RandomSamples { method, sides, piece_counts, targets }
    }

    pub fn batch(&self) -> Batch<'_> {
        let active = self.sides.each_ref().map(|(offsets, indices)| ActiveFeatures::from(Csr { offsets, indices }));
        let labels = if self.method == Method::Eval { Labels::Eval(&self.targets) } else { Labels::Pqr };
        Batch { samples: self.targets.len(), active, piece_counts: &self.piece_counts, labels }
    }
}

/// A network of double-precision leaves, in the order of its tensors.
fn leaves(net: &FloatNet) -> Vec<Tensor> {
    let all = net.shape.tensors().into_iter().zip(net.tensors());
    let leaf = |((_, size), values): ((String, Vec<usize>), &[f32])| {
        let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let size: Vec<i64> = size.into_iter().map(|size| size as i64).collect();
        Tensor::from_slice(&values).view(&size[..]).set_requires_grad(true)
    };
    all.map(leaf).collect()
}

fn activate(activation: Activation, x: &Tensor) -> Tensor {
    let scale = 127.0 / 128.0;
    match activation {
        Activation::Relu => x.relu(),
        Activation::Crelu => x.clamp(0.0, 1.0),
        Activation::Screlu => x.clamp(0.0, 1.0).square() * scale,
        Activation::Pairwise => {
            let halves = x.clamp(0.0, 1.0).chunk(2, -1);
            &halves[0] * &halves[1] * scale
        }
        Activation::Dual => Tensor::cat(&[(x.square() * scale).clamp_max(1.0), x.clamp(0.0, 1.0)], -1),
    }
}

/// The batch's mean loss by embedding_bag and linear. Every bucket's output is computed for every position, and one is
/// selected.
fn plain_loss(shape: &Shape, leaves: &[Tensor], samples: &RandomSamples) -> Tensor {
    plain_losses(shape, leaves, samples).0
}

/// The mean loss and the mean activation of the accumulators.
fn plain_losses(shape: &Shape, leaves: &[Tensor], samples: &RandomSamples) -> (Tensor, Tensor) {
    let l1 = shape.l1 as i64;
    let side = |(offsets, indices): &(Vec<i32>, Vec<i32>)| {
        let (offsets, indices) = (Tensor::from_slice(offsets), Tensor::from_slice(indices));
        let none = None::<Tensor>;
        let (sums, ..) = Tensor::embedding_bag(&leaves[0], &indices, &offsets, false, 0, false, none, true);
        sums
    };
    let sides = [side(&samples.sides[0]), side(&samples.sides[1])];
    let activated = sides.each_ref().map(|sums| activate(shape.activation, &(sums.narrow(1, 0, l1) + &leaves[1])));
    let input = Tensor::cat(&activated, 1);
    let activation = input.mean(Kind::Double);
    let stack = |bucket: usize| {
        let layers = shape.layer_sizes().len();
        let mut values = input.shallow_clone();
        let mut skip = Tensor::zeros([1, 1], (Kind::Double, tch::Device::Cpu));
        let mut all = Vec::new();
        for (index, layer) in leaves[2 + bucket * 2 * layers..][..2 * layers].chunks(2).enumerate() {
            values = values.linear(&layer[0], Some(&layer[1]));
            if let Some(width) = shape.hidden.get(index) {
                let width = *width as i64;
                if values.size()[1] > width {
                    skip = values.narrow(1, width, 1);
                }
                if index == 0 && shape.skip_difference {
                    skip = values.narrow(1, width - 2, 1) - values.narrow(1, width - 1, 1);
                }
                values = activate(shape.hidden_activation(index), &values.narrow(1, 0, width));
                all.push(values.shallow_clone());
                if shape.concatenated && index + 2 == layers {
                    values = Tensor::cat(&all, 1);
                }
            }
        }
        values + skip
    };
    let mut outputs = Tensor::cat(&(0..shape.buckets.count).map(stack).collect::<Vec<_>>(), 1);
    if shape.psqt {
        let [stm, nstm] = sides.map(|sums| sums.narrow(1, l1, shape.buckets.count as i64));
        outputs += (stm - nstm) / 2.0;
    }
    let buckets: Vec<i64> = samples.piece_counts.iter().map(|count| shape.buckets.of((*count).into()) as i64).collect();
    let values = outputs.gather(1, &Tensor::from_slice(&buckets).unsqueeze(1), false);
    let out = values.squeeze_dim(1) * 600.0;
    let loss = match samples.method {
        Method::Eval => {
            let targets = Tensor::from_slice(&samples.targets).to_kind(Kind::Double);
            ((&out / 361.0).sigmoid() - targets).abs().pow_tensor_scalar(2.6).mean(Kind::Double)
        }
        Method::Pqr => {
            let f = ((&out / 300.0).sigmoid() * 2.0 - 1.0).view([-1, 3]);
            let (p, q, r) = (f.select(1, 0), f.select(1, 1), f.select(1, 2));
            let equal = (&p + &q).log_sigmoid() + (-&p - &q).log_sigmoid();
            -((r - q).log_sigmoid() + equal * 0.7).mean(Kind::Double)
        }
    };
    (loss, activation)
}

fn evaluate(model: &Model, samples: &RandomSamples) -> Sums {
    model.evaluate(&samples.batch(), &mut Activity::default()).0
}

/// After a first step Adam's first moment is a tenth of the gradient.
fn gradients_of_first_step(model: &Model) -> Vec<Vec<f32>> {
    model.first_moments.tensors().into_iter().map(|moment| moment.iter().map(|value| value * 10.0).collect()).collect()
}

fn compare(model: &Model, leaves: &[Tensor], what: &str) {
    for (number, (ours, leaf)) in gradients_of_first_step(model).iter().zip(leaves).enumerate() {
        let theirs = Vec::<f64>::try_from(leaf.grad().flatten(0, -1)).expect("doubles");
        let scale = theirs.iter().fold(0.0f64, |scale, value| scale.max(value.abs()));
        assert!(scale > 0.0, "{what}: tensor {number} has no gradient");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let difference = (f64::from(*ours) - theirs).abs();
            assert!(difference < 1e-5 * scale, "{what}, tensor {number}: {ours} {theirs}");
        }
    }
}

fn check_shape(method: Method, shape: &Shape, samples: usize) {
    let mut model = shaped(shape, 2);
    let samples = RandomSamples::new(method, samples, shape.l1 as u64);
    let leaves = leaves(&model.net.on_grid(&Scheme::stockfish()));
    let expected = plain_loss(shape, &leaves, &samples);
    expected.backward();
    let sums = step(&mut model, &samples, 1e-3);
    let expected = expected.double_value(&[]);
    assert!((sums.mean_loss() - expected).abs() < 1e-5 * expected, "{shape}: {} {expected}", sums.mean_loss());
    compare(&model, &leaves, &format!("{method:?} {shape}"));
}

fn check_gradients(method: Method, l1: usize, hidden: &[usize], samples: usize) {
    check_shape(method, &Shape::plain(FEATURES, l1, hidden.into()), samples);
}

#[test]
fn gradients_are_those_of_embedding_bag() {
    check_gradients(Method::Eval, 16, &[8], 1500);
    check_gradients(Method::Eval, 13, &[], 100);
    check_gradients(Method::Eval, 64, &[32, 16], 1024);
    check_gradients(Method::Pqr, 16, &[8], 700);
    check_gradients(Method::Pqr, 24, &[], 1);
}

/// Every shape option, alone and all together.
#[test]
fn gradients_with_every_shape_option_are_those_of_plain_tensors() {
    let plain = || Shape::plain(FEATURES, 16, vec![8, 4]);
    for activation in [Activation::Relu, Activation::Screlu, Activation::Pairwise] {
        check_shape(Method::Eval, &Shape { activation, ..plain() }, 1100);
        check_shape(Method::Pqr, &Shape { activation, hidden: vec![], ..plain() }, 400);
    }
    for hidden_activation in [Activation::Relu, Activation::Screlu, Activation::Dual] {
        check_shape(Method::Eval, &Shape { hidden_activation, ..plain() }, 300);
    }
    check_shape(Method::Eval, &Shape { skip: true, ..plain() }, 300);
    check_shape(Method::Eval, &Shape { psqt: true, ..plain() }, 300);
    let buckets = OutputBuckets { count: 4, rule: BucketRule::Cpw };
    check_shape(Method::Eval, &Shape { buckets, ..plain() }, 1500);
    let (activation, hidden_activation) = (Activation::Pairwise, Activation::Dual);
    let buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    let full = Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..plain() };
    check_shape(Method::Eval, &full, 2100);
    check_shape(Method::Pqr, &full, 700);
    let concatenated = Shape { skip: false, skip_difference: true, concatenated: true, ..full };
    check_shape(Method::Eval, &concatenated, 2100);
}

/// A bucket without positions in the batch keeps its weights.
#[test]
fn buckets_without_positions_do_not_change() {
    let buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    let mut model = shaped(&Shape { buckets, ..Shape::plain(FEATURES, 16, vec![8]) }, 1);
    let mut samples = RandomSamples::new(Method::Eval, 300, 0);
    samples.piece_counts.fill(9);
    let before = model.net.clone();
    step(&mut model, &samples, 1e-3);
    for bucket in 0..8 {
        let moved = model.net.stacks[bucket] != before.stacks[bucket];
        assert_eq!(moved, bucket == 2, "bucket {bucket}");
    }
}

/// The gradient includes that of the weighted mean activation; the reported loss does not include it.
#[test]
fn sparsity_adds_the_gradient_of_the_mean_activation() {
    for activation in [Activation::Crelu, Activation::Pairwise] {
        let shape = Shape { activation, ..Shape::plain(FEATURES, 16, vec![8]) };
        for method in [Method::Eval, Method::Pqr] {
            let mut model = shaped(&shape, 2);
            model.optimisation.sparsity = 0.3;
            let samples = RandomSamples::new(method, 1200, 5);
            let leaves = leaves(&model.net.on_grid(&Scheme::stockfish()));
            let (loss, activation) = plain_losses(&shape, &leaves, &samples);
            (&loss * 2.0 + &activation * 0.6).backward();
            let batch = WeightedBatch { batch: samples.batch(), weight: 2.0 };
            let sums = model.train(&[batch], 1e-3).expect("a step");
            let expected = loss.double_value(&[]);
            assert!((sums[0].mean_loss() - expected).abs() < 1e-5 * expected);
            compare(&model, &leaves, &format!("{method:?} {shape}"));
        }
    }
}

/// A step on two batches follows the gradient of their weighted losses.
#[test]
fn batches_of_a_step_add_up_by_weight() {
    let shape = Shape { psqt: true, ..Shape::plain(FEATURES, 16, vec![8]) };
    let mut model = shaped(&shape, 2);
    let (eval, pqr) = (RandomSamples::new(Method::Eval, 1300, 1), RandomSamples::new(Method::Pqr, 500, 2));
    let leaves = leaves(&model.net.on_grid(&Scheme::stockfish()));
    let losses = [plain_loss(&shape, &leaves, &eval), plain_loss(&shape, &leaves, &pqr)];
    (&losses[0] * 0.75 + &losses[1] * 2.0).backward();
    let batches =
        [WeightedBatch { batch: eval.batch(), weight: 0.75 }, WeightedBatch { batch: pqr.batch(), weight: 2.0 }];
    let sums = model.train(&batches, 1e-3).expect("a step");
    for (sums, loss) in sums.iter().zip(losses) {
        let expected = loss.double_value(&[]);
        assert!((sums.mean_loss() - expected).abs() < 1e-5 * expected);
    }
    compare(&model, &leaves, "two batches");
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
        (model.net, model.first_moments, model.second_moments)
    };
    let one = trained(1);
    assert!(trained(2) == one, "two threads");
    assert!(trained(5) == one, "five threads");
}

/// Rows of features that no sample has are not counted, with and without factors.
#[test]
fn trained_parameters_are_those_that_samples_reach() {
    for mut model in [model(16, &[8], 2), factored(16, &[8], 2)] {
        assert_eq!(model.trained_parameters(), model.net.parameters() - 16 * u64::from(FEATURES), "before a step");
        let mut active = std::collections::BTreeSet::new();
        for index in 0..3 {
            // Three samples have few features, so that most rows stay as they are.
            let samples = RandomSamples::new(Method::Eval, 3, index);
            active.extend(samples.sides.iter().flat_map(|(_, indices)| indices.clone()));
            step(&mut model, &samples, 1e-3);
            let untouched = 16 * (u64::from(FEATURES) - active.len() as u64);
            assert!(untouched > 0, "{} of {FEATURES} features", active.len());
            assert_eq!(model.trained_parameters(), model.net.parameters() - untouched, "{index}");
        }
    }
}

/// Every instruction set gives the same network, in the fullest shape.
#[test]
fn back_ends_do_not_change_a_bit() {
    let buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    let (activation, hidden_activation) = (Activation::Pairwise, Activation::Dual);
    let plain = Shape::plain(FEATURES, 26, vec![7, 5]);
    let shape = Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..plain };
    let trained = |back_end: BackEnd| {
        let mut model = shaped(&shape, 2);
        model.back_end = back_end;
        for index in 0..3 {
            let method = if index == 1 { Method::Pqr } else { Method::Eval };
            step(&mut model, &RandomSamples::new(method, 600, index), 1e-3);
        }
        (model.net, model.second_moments)
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
    let check = |spoil: fn(&mut Model, &mut RandomSamples), expected: &str| {
        let mut model = model(8, &[4], 1);
        let mut samples = RandomSamples::new(Method::Eval, 10, 0);
        spoil(&mut model, &mut samples);
        let before = model.net.ft_weights.clone();
        let batch = WeightedBatch { batch: samples.batch(), weight: 1.0 };
        let error = model.train(&[batch], 1e-3).expect_err("diverged").to_string();
        assert!(error.starts_with(&format!("training diverged at step 1: {expected}")), "{error}");
        assert_eq!((model.step, model.net.ft_weights), (0, before));
    };
    check(|model, _| model.net.stacks[0][0].biases[2] = f32::NAN, "layers.0.bias[2] is NaN");
    check(|model, _| model.net.stacks[0][0].weights[21] = f32::INFINITY, "layers.0.weight[1, 5] is inf");
    check(|_, samples| samples.targets[7] = f32::NAN, "the batch's targets[7] is NaN");
    let overflow = |model: &mut Model, _: &mut RandomSamples| {
        model.loss.eval.form = LossForm::Epsilon;
        model.net.stacks[0][1].biases[0] = 1e38;
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
    assert!(f64::from(largest(&model.net.stacks[0][0].weights)) <= limits.hidden[0] + 1e-6);
    assert!(f64::from(largest(&model.net.stacks[0][1].weights)) <= limits.output + 1e-6);
    assert!(f64::from(largest(&model.net.stacks[0][0].weights)) >= 1.9, "the limit is reached");
    assert!(crate::net::quantise(&model.net, &Scheme::stockfish()).is_ok());
}

/// The same sums of the features' own rows and virtual rows, computed by libtorch.
#[test]
fn gradients_of_factors_are_those_of_added_rows() {
    let (l1, hidden) = (24, [8]);
    let mut model = factored(l1, &hidden, 2);
    let samples = RandomSamples::new(Method::Eval, 1300, 5);
    let leaves = leaves(&model.net.on_grid(&Scheme::stockfish()));
    let inputs = factors();
    let rows =
        Tensor::zeros([i64::from(inputs.size), l1 as i64], (Kind::Double, tch::Device::Cpu)).set_requires_grad(true);
    let lists: Vec<i64> =
        (0..FEATURES).flat_map(|feature| inputs.inputs(feature)).map(|&input| i64::from(input)).collect();
    assert_eq!(lists.len(), 2 * FEATURES as usize, "each feature has a file and a role");
    let added = rows.index_select(0, &Tensor::from_slice(&lists)).view([i64::from(FEATURES), 2, l1 as i64]);
    let mut merged: Vec<Tensor> = leaves.iter().map(Tensor::shallow_clone).collect();
    merged[0] = &leaves[0] + added.sum_dim_intlist(1i64, false, Kind::Double);
    plain_loss(&model.net.shape, &merged, &samples).backward();
    step(&mut model, &samples, 1e-3);
    let factored = model.factored.as_ref().expect("factors");
    let pairs = [(&model.first_moments.ft_weights, &leaves[0]), (&factored.first_moments, &rows)];
    for (ours, leaf) in pairs {
        let theirs = Vec::<f64>::try_from(leaf.grad().flatten(0, -1)).expect("doubles");
        let scale = theirs.iter().fold(0.0f64, |scale, value| scale.max(value.abs()));
        assert!(scale > 0.0 && ours.len() == theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((f64::from(*ours) * 10.0 - theirs).abs() < 1e-5 * scale, "{ours} {theirs}");
        }
    }
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
    let (one, three) = (trained(1), trained(3));
    assert!(one.net == three.net);
    let [rows, others] = [&one, &three].map(|model| model.factored.as_ref().expect("factors"));
    assert!(rows.own == others.own && rows.virtual_rows == others.virtual_rows);
    assert!(rows.second_moments == others.second_moments);
    let inputs = factors();
    assert!(rows.virtual_rows.iter().any(|weight| weight.abs() > 1e-3), "virtual rows move");
    for (feature, merged) in one.net.ft_weights.chunks(32).enumerate() {
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
        model.optimisation.gradient_clip = clip;
        step(&mut model, &RandomSamples::new(Method::Eval, 600, 2), 1e-3);
        gradients_of_first_step(&model).concat()
    };
    let length = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let unclipped = moments(None);
    let longest = length(&unclipped) / 3.0;
    assert!((length(&moments(Some(longest))) - longest).abs() < 1e-5 * longest);
    assert_eq!(moments(Some(longest * 4.0)), unclipped);
}

/// After six steps the weights are half way between the initial ones and those of rectified Adam without Lookahead.
#[test]
fn slow_weights_follow() {
    let optimisation = Optimisation { optimiser: Optimiser::Ranger, weight_decay: 0.0, ..Optimisation::default() };
    let shape = Shape::plain(FEATURES, 16, vec![8]);
    let begin = random_network(&shape, Seed(4));
    let scheme = Scheme::stockfish();
    for factors in [None, Some(factors())] {
        let trained = |lookahead: bool| {
            let mut model =
                Model::new(begin.clone(), factors.clone(), optimisation, loss(), &scheme, 2).expect("threads");
            if !lookahead {
                model.lookahead = None;
            }
            for index in 0..6 {
                step(&mut model, &RandomSamples::new(Method::Eval, 300, index), 1e-2);
            }
            model.net
        };
        let (fast, synchronised) = (trained(false), trained(true));
        assert!(fast != begin);
        let triples = begin.ft_weights.iter().zip(&fast.ft_weights).zip(&synchronised.ft_weights);
        for ((begin, fast), synchronised) in triples {
            assert!(((begin + fast) / 2.0 - synchronised).abs() < 1e-6, "{begin} {fast} {synchronised}");
        }
        let weight = |net: &FloatNet| net.stacks[0][1].weights[0];
        assert!((f32::midpoint(weight(&begin), weight(&fast)) - weight(&synchronised)).abs() < 1e-6);
    }
}
