//! Steps whose losses are read later: all of them, in order, and the first that diverged by its number.

use super::*;
use fsbench::train::trainer::StepLosses;

const RATE: f64 = 1e-3;

fn plain() -> KernelTrainer {
    emulated(network(&Shape::plain(FEATURES, 16, vec![8])), None, Optimisation::default())
}

fn take(trainer: &mut KernelTrainer, samples: &RandomSamples) -> Result<Vec<StepLosses>, TrainError> {
    trainer.train(&[WeightedBatch { batch: samples.batch(), weight: 1.0 }], RATE)
}

/// Batches of different sizes, so that memory grows; steps that are waited for now and then, and validations between.
#[test]
fn losses_come_late_and_in_order() {
    let mut late = plain();
    let mut prompt = plain();
    let mut known = Vec::new();
    let mut expected = Vec::new();
    let mut calls_with_losses = 0;
    for number in 0..90u64 {
        let samples = RandomSamples::new(Method::Eval, 40 + 700 * (number as usize % 5), number);
        let more = take(&mut late, &samples).expect("a step");
        calls_with_losses += u64::from(!more.is_empty());
        known.extend(more);
        if number == 50 {
            known.extend(late.finish_steps().expect("all steps"));
            assert_eq!(known.len(), 51);
            let validation = RandomSamples::new(Method::Eval, 300, 1000);
            let (sums, _) = late.evaluate(&validation.batch(), &mut Default::default()).expect("a loss");
            assert_eq!(sums.samples, 300);
        }
        let batches = [WeightedBatch { batch: samples.batch(), weight: 1.0 }];
        expected.extend(step_losses(&mut prompt, &batches, RATE).expect("a step"));
    }
    known.extend(late.finish_steps().expect("all steps"));
    assert!(late.finish_steps().expect("nothing more").is_empty());
    assert!(calls_with_losses > 0 && calls_with_losses < 10, "{calls_with_losses} calls returned losses");
    let numbers: Vec<u64> = known.iter().map(|losses| losses.step).collect();
    assert_eq!(numbers, (1..=90).collect::<Vec<u64>>());
    let losses: Vec<Sums> = known.iter().map(|losses| losses.batches[0]).collect();
    assert_eq!(losses, expected);
}

/// Later steps change nothing, and the error names the step, its sample and the target.
#[test]
fn a_diverged_step_is_named_some_steps_later() {
    let mut trainer = plain();
    let mut before = plain();
    let mut error = None;
    let mut begun = 0;
    for number in 0..60u64 {
        let mut samples = RandomSamples::new(Method::Eval, 200, number);
        if number == 20 {
            samples.targets[7] = f32::INFINITY;
        }
        if number > 25 {
            samples.targets[3] = f32::NAN;
        }
        if number < 20 {
            take(&mut before, &samples).expect("a step");
        }
        begun += 1;
        if let Err(diverged) = take(&mut trainer, &samples) {
            error = Some(diverged);
            break;
        }
    }
    let error = error.expect("it was noticed").to_string();
    assert!(begun > 21, "noticed at once, after {begun} steps");
    assert!(error.contains("diverged at step 21: the batch's targets[7] is inf"), "{error}");
    assert_eq!(trainer.step(), 20);
    before.finish_steps().expect("all finite");
    let expected = before.state().expect("copied").net.clone();
    assert!(trainer.state().expect("copied").net == expected);
}

/// A device that pins no memory takes the same steps.
#[test]
fn memory_need_not_be_pinned() {
    let shape = Shape::plain(FEATURES, 16, vec![8]);
    let rules = rules(Optimisation::default());
    let kernels = Box::new(EmulatedKernels::new(&shape, &rules.scheme).expect("a C++ compiler"));
    let streams = Rc::new(kernels.streams_without_pins());
    let state = TrainingState::new(network(&shape), None, Optimisation::default().optimiser);
    let mut trainer = KernelTrainer::new(state, rules, kernels, streams, Device::Cpu).expect("tensors");
    let samples = RandomSamples::new(Method::Eval, 300, 1);
    let batches = [WeightedBatch { batch: samples.batch(), weight: 1.0 }];
    let losses = step_losses(&mut trainer, &batches, RATE).expect("a step");
    assert_eq!(losses, step_losses(&mut plain(), &batches, RATE).expect("a step"));
}
