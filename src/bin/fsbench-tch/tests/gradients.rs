//! The kernels' gradients compared with plain tensors' in double precision.

use super::*;
use fsbench::net::{Activation, BucketRule, OutputBuckets};
use tch::{Kind, Tensor};

/// The leaves of a network whose dense weights are rounded to the grid.
fn leaves_on_grid(net: &FloatNet) -> Vec<Tensor> {
    leaves(&net.on_grid(&Scheme::stockfish()))
}

/// One step on one batch.
fn step(trainer: &mut CpuTrainer, samples: &RandomSamples) -> f64 {
    let batch = WeightedBatch { batch: samples.batch(), weight: 1.0 };
    trainer.train(&[batch], 1e-3).expect("a step")[0].mean_loss()
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
        let offsets = Tensor::from_slice(offsets);
        let indices = Tensor::from_slice(indices);
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
    let buckets: Vec<i64> =
        samples.bucket_inputs.iter().map(|count| shape.buckets.of((*count).into()) as i64).collect();
    let values = outputs.gather(1, &Tensor::from_slice(&buckets).unsqueeze(1), false);
    let out = values.squeeze_dim(1) * 600.0;
    let loss = match samples.method {
        Method::Eval => {
            let targets = Tensor::from_slice(&samples.targets).to_kind(Kind::Double);
            ((&out / 361.0).sigmoid() - targets).abs().pow_tensor_scalar(2.6).mean(Kind::Double)
        }
        Method::Pqr => {
            let f = ((&out / 300.0).sigmoid() * 2.0 - 1.0).view([-1, 3]);
            let p = f.select(1, 0);
            let q = f.select(1, 1);
            let r = f.select(1, 2);
            let equal = (&p + &q).log_sigmoid() + (-&p - &q).log_sigmoid();
            -((r - q).log_sigmoid() + equal * 0.7).mean(Kind::Double)
        }
    };
    (loss, activation)
}

/// After a first step Adam's first moment is a tenth of the gradient.
fn compare(trainer: &mut CpuTrainer, leaves: &[Tensor], what: &str) {
    let state = Trainer::state(trainer).expect("in memory");
    for (number, (ours, leaf)) in state.first_moments.tensors().into_iter().zip(leaves).enumerate() {
        let theirs = Vec::<f64>::try_from(leaf.grad().flatten(0, -1)).expect("doubles");
        let scale = theirs.iter().fold(0.0f64, |scale, value| scale.max(value.abs()));
        assert!(scale > 0.0, "{what}: tensor {number} has no gradient");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let difference = (f64::from(*ours) * 10.0 - theirs).abs();
            assert!(difference < 1e-5 * scale, "{what}, tensor {number}: {ours} {theirs}");
        }
    }
}

fn check_shape(method: Method, shape: &Shape, samples: usize) {
    let net = spread(shape);
    let samples = samples_for(shape, method, samples, shape.l1 as u64);
    let leaves = leaves_on_grid(&net);
    let mut trainer = kernels(net, None, Optimisation::default());
    let expected = plain_loss(shape, &leaves, &samples);
    expected.backward();
    let loss = step(&mut trainer, &samples);
    let expected = expected.double_value(&[]);
    assert!((loss - expected).abs() < 1e-5 * expected, "{shape}: {loss} {expected}");
    compare(&mut trainer, &leaves, &format!("{method:?} {shape}"));
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
    let buckets = OutputBuckets { count: 4, rule: BucketRule::Expression("rank(K)".into()) };
    check_shape(Method::Eval, &Shape { buckets, psqt: true, ..plain() }, 1500);
    let activation = Activation::Pairwise;
    let hidden_activation = Activation::Dual;
    let buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    let full = Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..plain() };
    check_shape(Method::Eval, &full, 2100);
    check_shape(Method::Pqr, &full, 700);
    let concatenated = Shape { skip: false, skip_difference: true, concatenated: true, ..full };
    check_shape(Method::Eval, &concatenated, 2100);
}

/// The gradient includes the gradient of the weighted mean activation; the reported loss does not include it.
#[test]
fn sparsity_adds_the_gradient_of_the_mean_activation() {
    for activation in [Activation::Crelu, Activation::Pairwise] {
        let shape = Shape { activation, ..Shape::plain(FEATURES, 16, vec![8]) };
        for method in [Method::Eval, Method::Pqr] {
            let net = spread(&shape);
            let samples = RandomSamples::new(method, 1200, 5);
            let leaves = leaves_on_grid(&net);
            let mut trainer = kernels(net, None, Optimisation { sparsity: 0.3, ..Optimisation::default() });
            let (loss, activation) = plain_losses(&shape, &leaves, &samples);
            (&loss * 2.0 + &activation * 0.6).backward();
            let batch = WeightedBatch { batch: samples.batch(), weight: 2.0 };
            let sums = trainer.train(&[batch], 1e-3).expect("a step");
            let expected = loss.double_value(&[]);
            assert!((sums[0].mean_loss() - expected).abs() < 1e-5 * expected);
            compare(&mut trainer, &leaves, &format!("{method:?} {shape}"));
        }
    }
}

/// A step on two batches follows the gradient of their weighted losses.
#[test]
fn batches_of_a_step_add_up_by_weight() {
    let shape = Shape { psqt: true, ..Shape::plain(FEATURES, 16, vec![8]) };
    let net = spread(&shape);
    let eval = RandomSamples::new(Method::Eval, 1300, 1);
    let pqr = RandomSamples::new(Method::Pqr, 500, 2);
    let leaves = leaves_on_grid(&net);
    let mut trainer = kernels(net, None, Optimisation::default());
    let losses = [plain_loss(&shape, &leaves, &eval), plain_loss(&shape, &leaves, &pqr)];
    (&losses[0] * 0.75 + &losses[1] * 2.0).backward();
    let batches =
        [WeightedBatch { batch: eval.batch(), weight: 0.75 }, WeightedBatch { batch: pqr.batch(), weight: 2.0 }];
    let sums = trainer.train(&batches, 1e-3).expect("a step");
    for (sums, loss) in sums.iter().zip(losses) {
        let expected = loss.double_value(&[]);
        assert!((sums.mean_loss() - expected).abs() < 1e-5 * expected);
    }
    compare(&mut trainer, &leaves, "two batches");
}

/// The same sums of the features' own rows and virtual rows, computed by libtorch.
#[test]
fn gradients_of_factors_are_those_of_added_rows() {
    let l1 = 24;
    let hidden = [8];
    let shape = Shape::plain(FEATURES, l1, hidden.into());
    let net = spread(&shape);
    let samples = RandomSamples::new(Method::Eval, 1300, 5);
    let leaves = leaves_on_grid(&net);
    let mut trainer = kernels(net, Some(factors()), Optimisation::default());
    let inputs = factors();
    let rows =
        Tensor::zeros([i64::from(inputs.size), l1 as i64], (Kind::Double, tch::Device::Cpu)).set_requires_grad(true);
    let lists: Vec<i64> =
        (0..FEATURES).flat_map(|feature| inputs.inputs(feature)).map(|&input| i64::from(input)).collect();
    assert_eq!(lists.len(), 2 * FEATURES as usize, "each feature has a file and a role");
    let added = rows.index_select(0, &Tensor::from_slice(&lists)).view([i64::from(FEATURES), 2, l1 as i64]);
    let mut merged: Vec<Tensor> = leaves.iter().map(Tensor::shallow_clone).collect();
    merged[0] = &leaves[0] + added.sum_dim_intlist(1i64, false, Kind::Double);
    plain_loss(&shape, &merged, &samples).backward();
    step(&mut trainer, &samples);
    let state = Trainer::state(&mut trainer).expect("in memory");
    let factored = state.factored.as_ref().expect("factors");
    let pairs = [(&state.first_moments.ft_weights, &leaves[0]), (&factored.first_moments, &rows)];
    for (ours, leaf) in pairs {
        let theirs = Vec::<f64>::try_from(leaf.grad().flatten(0, -1)).expect("doubles");
        let scale = theirs.iter().fold(0.0f64, |scale, value| scale.max(value.abs()));
        assert!(scale > 0.0 && ours.len() == theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((f64::from(*ours) * 10.0 - theirs).abs() < 1e-5 * scale, "{ours} {theirs}");
        }
    }
}
