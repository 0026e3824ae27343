//! The trainer against plain libtorch in double precision, and against itself on other numbers of threads.

use rand::RngExt;
use tch::{Kind, Tensor};

use super::super::batch::Rows;
use super::super::init::fresh;
use super::super::{EvalLoss, PqrLoss};
use super::*;
use crate::data::Method;
use crate::features::{Factors, FeatureSet};
use crate::net::Shape;
use crate::units::Seed;

const FEATURES: u32 = 40;

fn loss() -> Loss {
    Loss { eval: EvalLoss::default(), pqr: PqrLoss { kappa: 0.7, output_scale: 300.0 } }
}

fn model(l1: usize, hidden: &[usize], threads: usize) -> Model {
    let shape = Shape::plain(FEATURES, l1, hidden.into());
    Model::new(fresh(&shape, Seed(4)), None, Recipe::default(), loss(), &Scheme::stockfish(), threads).expect("threads")
}

/// 40 features of 8 files and 5 roles; files and roles are the virtual inputs.
fn factors() -> Factors {
    let text = "features = \"file(P) * role(P, pawn..queen) for P in pieces\"\nfactor = \"(file(P) + role(P, pawn..queen))\"\n";
    let set = FeatureSet::from_definition(text).expect("a good definition");
    assert_eq!(set.num_features(), FEATURES);
    Factors::of(&set).expect("determined").expect("a factor")
}

fn factored(l1: usize, hidden: &[usize], threads: usize) -> Model {
    let model = model(l1, hidden, threads);
    Model::new(model.net, Some(factors()), Recipe::default(), loss(), &Scheme::stockfish(), threads).expect("threads")
}

/// Random samples: up to 12 features a side, with repeats and empty positions.
struct Samples {
    method: Method,
    sides: [(Vec<i32>, Vec<i32>); 2],
    targets: Vec<f32>,
}

impl Samples {
    fn new(method: Method, samples: usize, index: u64) -> Samples {
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
        Samples { method, sides, targets: (0..samples).map(|_| rng.random_range(0.0..1.0)).collect() }
    }

    fn batch(&self) -> Batch<'_> {
        let rows = self.sides.each_ref().map(|(offsets, indices)| Rows::new(offsets, indices, FEATURES).expect("rows"));
        let labels = if self.method == Method::Eval { Labels::Eval(&self.targets) } else { Labels::Pqr };
        Batch { samples: self.targets.len(), rows, labels }
    }
}

/// A network of double-precision leaves: feature transformer first, then the layers, weight before bias.
fn leaves(net: &FloatNet) -> Vec<Tensor> {
    let leaf = |values: &[f32], size: &[i64]| {
        let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
        Tensor::from_slice(&values).view(size).set_requires_grad(true)
    };
    let l1 = net.shape.l1 as i64;
    let mut all = vec![leaf(&net.ft_weights, &[-1, l1]), leaf(&net.ft_biases, &[l1])];
    for layer in &net.layers {
        all.push(leaf(&layer.weights, &[layer.outputs as i64, layer.inputs as i64]));
        all.push(leaf(&layer.biases, &[layer.outputs as i64]));
    }
    all
}

/// The batch's mean loss by embedding_bag and linear.
fn plain_loss(leaves: &[Tensor], samples: &Samples) -> Tensor {
    let side = |(offsets, indices): &(Vec<i32>, Vec<i32>)| {
        let (offsets, indices) = (Tensor::from_slice(offsets), Tensor::from_slice(indices));
        let none = None::<Tensor>;
        let (sums, ..) = Tensor::embedding_bag(&leaves[0], &indices, &offsets, false, 0, false, none, true);
        sums + &leaves[1]
    };
    let mut values = Tensor::cat(&[side(&samples.sides[0]), side(&samples.sides[1])], 1);
    for layer in leaves[2..].chunks(2) {
        values = values.clamp(0.0, 1.0).linear(&layer[0], Some(&layer[1]));
    }
    let out = values.squeeze_dim(1) * 600.0;
    match samples.method {
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
    }
}

fn evaluate(model: &Model, samples: &Samples) -> Sums {
    model.observe(&samples.batch(), &mut Activity::default()).expect("a loss")
}

/// After a first step Adam's first moment is a tenth of the gradient.
fn gradients_of_first_step(model: &Model) -> Vec<Vec<f32>> {
    let moments = &model.first;
    let layers = moments.layers.iter().flat_map(|layer| [&layer.weights, &layer.biases]);
    let all = [&moments.ft_weights, &moments.ft_biases].into_iter().chain(layers);
    all.map(|moment| moment.iter().map(|value| value * 10.0).collect()).collect()
}

fn check_gradients(method: Method, l1: usize, hidden: &[usize], samples: usize) {
    let mut model = model(l1, hidden, 2);
    let samples = Samples::new(method, samples, l1 as u64);
    let scheme = Scheme::stockfish();
    let leaves = leaves(&FloatNet { layers: on_grid(&model.net.layers, &scheme), ..model.net.clone() });
    let expected = plain_loss(&leaves, &samples);
    expected.backward();
    let sums = model.train(&samples.batch(), 1e-3).expect("a step");
    let expected = expected.double_value(&[]);
    assert!((sums.mean_loss() - expected).abs() < 1e-5 * expected, "{} {expected}", sums.mean_loss());
    for (number, (ours, leaf)) in gradients_of_first_step(&model).iter().zip(&leaves).enumerate() {
        let theirs = Vec::<f64>::try_from(leaf.grad().flatten(0, -1)).expect("doubles");
        let scale = theirs.iter().fold(0.0f64, |scale, value| scale.max(value.abs()));
        assert!(scale > 0.0, "tensor {number} has no gradient");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let difference = (f64::from(*ours) - theirs).abs();
            assert!(difference < 1e-5 * scale, "{method:?} {hidden:?}, tensor {number}: {ours} {theirs}");
        }
    }
}

#[test]
fn gradients_are_those_of_embedding_bag() {
    check_gradients(Method::Eval, 16, &[8], 1500);
    check_gradients(Method::Eval, 13, &[], 100);
    check_gradients(Method::Eval, 64, &[32, 16], 1024);
    check_gradients(Method::Pqr, 16, &[8], 700);
    check_gradients(Method::Pqr, 24, &[], 1);
}

#[test]
fn validation_is_the_training_loss_without_a_step() {
    for method in [Method::Eval, Method::Pqr] {
        let mut model = model(16, &[8], 2);
        let samples = Samples::new(method, 1100, 3);
        let before = evaluate(&model, &samples);
        assert_eq!(before.samples, 1100);
        assert_eq!(model.train(&samples.batch(), 1e-3).expect("a step"), before);
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
            model.train(&Samples::new(method, 2500, index).batch(), 1e-3).expect("a step");
        }
        (model.net, model.first, model.second)
    };
    let one = trained(1);
    assert!(trained(2) == one, "two threads");
    assert!(trained(5) == one, "five threads");
}

#[test]
fn a_loss_that_is_no_number_takes_no_step() {
    let mut model = model(8, &[4], 1);
    model.net.layers[0].biases[0] = f32::NAN;
    let before = model.net.ft_weights.clone();
    let sums = model.train(&Samples::new(Method::Eval, 10, 0).batch(), 1e-3).expect("no failure of libtorch");
    assert!(sums.loss.is_nan());
    assert_eq!((model.step, model.net.ft_weights), (0, before));
}

#[test]
fn weights_stay_within_the_scheme() {
    let mut model = model(8, &[4], 1);
    let samples = Samples::new(Method::Eval, 200, 1);
    for _ in 0..50 {
        model.train(&samples.batch(), 0.5).expect("a step");
    }
    let limits = Scheme::stockfish().limits();
    let largest = |values: &[f32]| values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    assert!(f64::from(largest(&model.net.layers[0].weights)) <= limits.hidden + 1e-6);
    assert!(f64::from(largest(&model.net.layers[1].weights)) <= limits.output + 1e-6);
    assert!(f64::from(largest(&model.net.layers[0].weights)) >= 1.9, "the limit is reached");
    assert!(crate::net::quantise(&model.net, &Scheme::stockfish()).is_ok());
}

/// Rows picked and added up by libtorch: features' own, and virtual ones.
#[test]
fn gradients_of_factors_are_those_of_added_rows() {
    let (l1, hidden) = (24, [8]);
    let mut model = factored(l1, &hidden, 2);
    let samples = Samples::new(Method::Eval, 1300, 5);
    let leaves = leaves(&FloatNet { layers: on_grid(&model.net.layers, &Scheme::stockfish()), ..model.net.clone() });
    let inputs = factors();
    let rows =
        Tensor::zeros([i64::from(inputs.size), l1 as i64], (Kind::Double, tch::Device::Cpu)).set_requires_grad(true);
    let lists: Vec<i64> =
        (0..FEATURES).flat_map(|feature| inputs.inputs(feature)).map(|&input| i64::from(input)).collect();
    assert_eq!(lists.len(), 2 * FEATURES as usize, "each feature has a file and a role");
    let added = rows.index_select(0, &Tensor::from_slice(&lists)).view([i64::from(FEATURES), 2, l1 as i64]);
    let mut merged: Vec<Tensor> = leaves.iter().map(Tensor::shallow_clone).collect();
    merged[0] = &leaves[0] + added.sum_dim_intlist(1i64, false, Kind::Double);
    plain_loss(&merged, &samples).backward();
    model.train(&samples.batch(), 1e-3).expect("a step");
    let factored = model.factored.as_ref().expect("factors");
    let pairs = [(&model.first.ft_weights, &leaves[0]), (&factored.first, &rows)];
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
fn merged_rows_are_the_sums_of_their_parts_and_threads_change_nothing() {
    let trained = |threads| {
        let mut model = factored(32, &[16], threads);
        for index in 0..4 {
            model.train(&Samples::new(Method::Eval, 1500, index).batch(), 1e-2).expect("a step");
        }
        model
    };
    let (one, three) = (trained(1), trained(3));
    assert!(one.net == three.net);
    let [parts, others] = [&one, &three].map(|model| model.factored.as_ref().expect("factors"));
    assert!((&parts.own, &parts.rows, &parts.second) == (&others.own, &others.rows, &others.second));
    let inputs = factors();
    assert!(parts.rows.iter().any(|weight| weight.abs() > 1e-3), "virtual rows move");
    for (feature, merged) in one.net.ft_weights.chunks(32).enumerate() {
        let mut sum = parts.own[feature * 32..][..32].to_vec();
        for &input in inputs.inputs(feature as u32) {
            sum.iter_mut().zip(&parts.rows[input as usize * 32..]).for_each(|(sum, weight)| *sum += weight);
        }
        assert_eq!(sum, merged, "feature {feature}");
    }
}

#[test]
fn long_gradients_are_shortened() {
    let moments = |clip| {
        let mut model = model(16, &[8], 2);
        model.recipe.gradient_clip = clip;
        model.train(&Samples::new(Method::Eval, 600, 2).batch(), 1e-3).expect("a step");
        gradients_of_first_step(&model).concat()
    };
    let length = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let whole = moments(None);
    let longest = length(&whole) / 3.0;
    assert!((length(&moments(Some(longest))) - longest).abs() < 1e-5 * longest);
    assert_eq!(moments(Some(longest * 4.0)), whole);
}

/// After six steps the weights stand half-way between where they began and where plain rectified Adam leads.
#[test]
fn slow_weights_follow() {
    let recipe = Recipe { optimiser: Optimiser::Ranger, weight_decay: 0.0, ..Recipe::default() };
    let shape = Shape::plain(FEATURES, 16, vec![8]);
    let begin = fresh(&shape, Seed(4));
    let scheme = Scheme::stockfish();
    for factors in [None, Some(factors())] {
        let trained = |lookahead: bool| {
            let mut model = Model::new(begin.clone(), factors.clone(), recipe, loss(), &scheme, 2).expect("threads");
            if !lookahead {
                model.slow = None;
            }
            for index in 0..6 {
                model.train(&Samples::new(Method::Eval, 300, index).batch(), 1e-2).expect("a step");
            }
            model.net
        };
        let (fast, met) = (trained(false), trained(true));
        assert!(fast != begin);
        let triples = begin.ft_weights.iter().zip(&fast.ft_weights).zip(&met.ft_weights);
        for ((begin, fast), met) in triples {
            assert!(((begin + fast) / 2.0 - met).abs() < 1e-6, "{begin} {fast} {met}");
        }
        assert!(
            (f32::midpoint(begin.layers[1].weights[0], fast.layers[1].weights[0]) - met.layers[1].weights[0]).abs()
                < 1e-6
        );
    }
}
