//! Both trainers on the same batches: the first step's loss and gradients, and the losses of two hundred steps.

use super::*;
use fsbench::net::{Activation, BucketRule, OutputBuckets};
use fsbench::train::trainer::StepLosses;

const STEPS: u64 = 200;
const RATE: f64 = 1e-3;

/// Bounds of the relative difference of two trainers.
const FIRST_STEP: f64 = 1e-5;
const EVERY_STEP: f64 = 1e-3;

fn check(method: Method, shape: &Shape) {
    let mut ours = kernels(spread(shape), None, Optimisation::default());
    let mut others = trainers(&spread(shape), None, Optimisation::default());
    let mut expected = Vec::new();
    let mut known: Vec<Vec<StepLosses>> = others.iter().map(|_| Vec::new()).collect();
    for number in 0..STEPS {
        let samples = samples_for(shape, method, 512, number);
        let batches = [WeightedBatch { batch: samples.batch(), weight: 1.0 }];
        let a = ours.train(&batches, RATE).expect("a step")[0].mean_loss();
        expected.push(a);
        for (trainer, theirs) in others.iter_mut().enumerate() {
            known[trainer].extend(theirs.train(&batches, RATE).expect("a step"));
            if number == 0 {
                compare_gradients(&mut ours, &mut **theirs, &format!("{method:?} {shape}, trainer {trainer}"));
            }
        }
    }
    for (trainer, (theirs, mut known)) in others.iter_mut().zip(known).enumerate() {
        known.extend(theirs.finish_steps().expect("the last steps"));
        assert_eq!(known.len() as u64, STEPS);
        for (number, (a, losses)) in (0..).zip(expected.iter().zip(known)) {
            assert_eq!(losses.step, number + 1);
            let b = losses.batches[0].mean_loss();
            let bound = if number == 0 { FIRST_STEP } else { EVERY_STEP };
            assert!((a - b).abs() <= bound * a, "{method:?} {shape}, trainer {trainer}, step {number}: {a} {b}");
        }
    }
}

/// After a first step Adam's first moment is a tenth of the gradient.
fn compare_gradients(ours: &mut CpuTrainer, theirs: &mut dyn Trainer, what: &str) {
    let ours = Trainer::state(ours).expect("in memory");
    let theirs = theirs.state().expect("copied");
    let names = ours.net.shape.tensors().into_iter().map(|(name, _)| name);
    let pairs = ours.first_moments.tensors().into_iter().zip(theirs.first_moments.tensors());
    for (name, (a, b)) in names.zip(pairs) {
        let off = distance(a, b);
        assert!(length(a) > 0.0, "{what}: {name} has no gradient");
        assert!(off <= FIRST_STEP * length(a), "{what}: {name} is {off} off of {}", length(a));
    }
}

#[test]
fn a_plain_shape() {
    let shape = Shape::plain(FEATURES, 16, vec![8, 4]);
    check(Method::Eval, &shape);
    check(Method::Pqr, &shape);
}

#[test]
fn buckets_by_an_expression() {
    let buckets = OutputBuckets { count: 4, rule: BucketRule::Expression("rank(K)".into()) };
    let shape = Shape { psqt: true, buckets, ..Shape::plain(FEATURES, 16, vec![8, 4]) };
    check(Method::Eval, &shape);
    check(Method::Pqr, &shape);
}

#[test]
fn a_shape_without_hidden_layers() {
    let shape = Shape { activation: Activation::Screlu, ..Shape::plain(FEATURES, 24, vec![]) };
    check(Method::Eval, &shape);
    check(Method::Pqr, &shape);
}

#[test]
fn a_shape_with_every_option() {
    let buckets = OutputBuckets { count: 8, ..OutputBuckets::default() };
    let shape = Shape {
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        skip: true,
        psqt: true,
        buckets,
        ..Shape::plain(FEATURES, 32, vec![8, 4])
    };
    check(Method::Eval, &shape);
    check(Method::Pqr, &shape);
}

#[test]
fn losses_with_an_offset_and_an_asymmetry() {
    let shape = Shape::plain(FEATURES, 16, vec![8, 4]);
    let mut rules = rules(Optimisation::default());
    rules.loss.eval = EvalLoss { output_offset: 250.0, qp_asymmetry: 0.4, ..EvalLoss::default() };
    let state = || TrainingState::new(spread(&shape), None, rules.optimisation.optimiser);
    let mut ours = CpuTrainer::new(state(), rules.clone(), 2).expect("threads");
    let kernels = Box::new(EmulatedKernels::new(&shape, &rules.scheme).expect("a C++ compiler"));
    let streams = Rc::new(kernels.streams());
    let emulated = KernelTrainer::new(state(), rules.clone(), kernels, streams, Device::Cpu).expect("tensors");
    let tensors = TchTrainer::new(state(), rules.clone(), Device::Cpu).expect("tensors");
    let mut others: [Box<dyn Trainer>; 2] = [Box::new(tensors), Box::new(emulated)];
    let samples = samples_for(&shape, Method::Eval, 512, 0);
    let batches = [WeightedBatch { batch: samples.batch(), weight: 1.0 }];
    let expected = ours.train(&batches, RATE).expect("a step")[0].mean_loss();
    for (trainer, theirs) in others.iter_mut().enumerate() {
        let found = step_losses(&mut **theirs, &batches, RATE).expect("a step")[0].mean_loss();
        assert!((found - expected).abs() <= FIRST_STEP * expected, "trainer {trainer}: {found} {expected}");
        compare_gradients(&mut ours, &mut **theirs, &format!("an offset, trainer {trainer}"));
    }
}
