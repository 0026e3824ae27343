//! Steps of tensors against steps of the CPU's own kernels.

use super::*;
use crate::data::Method;
use crate::net::Scheme;
use crate::net::{Activation, OutputBuckets, Shape};
use crate::train::model::tests::{FEATURES, Samples, factors, loss};
use crate::train::{Optimiser, Recipe, init};
use crate::units::Seed;

fn model(shape: &Shape, factors: Option<Factors>, recipe: Recipe) -> Model {
    let net = init::fresh(shape, Seed(4));
    Model::new(net, factors, recipe, loss(), &Scheme::stockfish(), 2).expect("threads")
}

/// Nine steps, eval and pqr by turns and together: the same losses and weights, but for rounding.
fn check(shape: &Shape, factors: Option<&Factors>, recipe: Recipe) {
    let mut ours = model(shape, factors.cloned(), recipe);
    let mut theirs = Tensors::new(model(shape, factors.cloned(), recipe), Device::Cpu).expect("tensors");
    for number in 0..9 {
        let (eval, pqr) = (Samples::new(Method::Eval, 300, number), Samples::new(Method::Pqr, 100, number));
        let parts = [Part { batch: eval.batch(), weight: 1.0 }, Part { batch: pqr.batch(), weight: 0.25 }];
        let parts = if number % 3 == 2 { &parts[..] } else { &parts[(number % 3) as usize..][..1] };
        let (ours, theirs) = (ours.train(parts, 1e-3).expect("a step"), theirs.train(parts, 1e-3).expect("a step"));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours.samples, theirs.samples);
            let (ours, theirs) = (ours.mean_loss(), theirs.mean_loss());
            assert!((ours - theirs).abs() < 2e-4 * ours, "{shape}, step {number}: {ours} {theirs}");
        }
    }
    assert_eq!(theirs.step(), 9);
    let samples = Samples::new(Method::Eval, 300, 77);
    let (mut seen, mut also) = (Activity::default(), Activity::default());
    let [a, b] = [ours.observe(&samples.batch(), &mut seen), theirs.observe(&samples.batch(), &mut also)];
    let (a, b) = (a.expect("a loss").mean_loss(), b.expect("a loss").mean_loss());
    assert!((a - b).abs() < 2e-4 * a, "{shape}: {a} {b}");
    let shares = |activity: &Activity| activity.shares().expect("positions").positive;
    assert!((shares(&seen) - shares(&also)).abs() < 0.01);
    let theirs = theirs.model().expect("back on the CPU");
    assert_eq!(theirs.step, ours.step);
    let compare = |ours: &[f32], theirs: &[f32], what: &str| {
        // Where a gradient is next to nothing, Adam's step is of either sign.
        let far = ours.iter().zip(theirs).filter(|(ours, theirs)| (*ours - *theirs).abs() > 1e-3).count();
        assert!(far * 100 <= ours.len(), "{shape}, {what}: {far} of {}", ours.len());
    };
    for ((name, _), (ours, theirs)) in
        shape.tensors().iter().zip(ours.net.tensors().into_iter().zip(theirs.net.tensors()))
    {
        compare(ours, theirs, name);
    }
    if let (Some(ours), Some(theirs)) = (&ours.factored, &theirs.factored) {
        compare(&ours.rows, &theirs.rows, "virtual rows");
        compare(&ours.own, &theirs.own, "own rows");
        compare(&ours.second, &theirs.second, "second moments of virtual rows");
    }
    if let (Some(ours), Some(theirs)) = (&ours.slow, &theirs.slow) {
        compare(&ours.net.ft_weights, &theirs.net.ft_weights, "slow weights");
    }
}

#[test]
fn steps_are_those_of_the_kernels() {
    let plain = || Shape::plain(FEATURES, 16, vec![8, 4]);
    check(&plain(), None, Recipe::default());
    check(&Shape::plain(FEATURES, 16, vec![]), None, Recipe::default());
    let (activation, hidden_activation) = (Activation::Pairwise, Activation::Dual);
    let buckets = OutputBuckets { count: 8, ..OutputBuckets::default() };
    let full = Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..plain() };
    check(&full, None, Recipe::default());
    let recipe = Recipe { optimiser: Optimiser::Ranger, gradient_clip: Some(0.05), ..Recipe::default() };
    check(&full, Some(&factors()), recipe);
    check(&plain(), Some(&factors()), Recipe { optimiser: Optimiser::Adamw, ..Recipe::default() });
}

#[test]
fn what_diverges_is_named_and_moves_nothing() {
    let shape = Shape::plain(FEATURES, 16, vec![8]);
    let mut broken = model(&shape, None, Recipe::default());
    broken.net.stacks[0][0].biases[3] = f32::NAN;
    let before = broken.net.ft_weights.clone();
    let mut tensors = Tensors::new(broken, Device::Cpu).expect("tensors");
    let samples = Samples::new(Method::Eval, 50, 0);
    let error = tensors.train(&[Part { batch: samples.batch(), weight: 1.0 }], 1e-3).expect_err("diverged");
    assert!(error.to_string().contains("layers.0.bias[3] is NaN"), "{error}");
    assert_eq!(tensors.step(), 0);
    assert!(tensors.model().expect("a model").net.ft_weights == before);
}
