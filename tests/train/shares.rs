//! Trainings on a share of the training games.

use fsbench::data::Method;
use fsbench::train::{TrainConfig, TrainOutcome};

use super::fixture::{StopAt, Workspace, with};

/// The same run on a share of the training games.
fn on_share(config: &TrainConfig, share: f64, repeat_share: bool) -> TrainConfig {
    let mut config = TrainConfig { repeat_share, ..config.clone() };
    config.reading.training_share = Some(share);
    config
}

fn steps(outcome: &TrainOutcome) -> u64 {
    outcome.epochs.last().expect("an epoch").step
}

#[test]
fn a_share_has_fewer_samples_and_as_many_steps_where_it_repeats() {
    let workspace = Workspace::new();
    let base = with(&workspace.config(Method::Eval), |settings| {
        settings.epochs = 2;
        settings.epoch_samples = None;
    });
    let run = |config: &TrainConfig, name: &str| {
        workspace.run(config, name, false, &mut StopAt::new(u64::MAX)).expect("trained")
    };
    let whole = run(&base, "whole");
    let passes = run(&on_share(&base, 0.25, false), "passes");
    let repeated = run(&on_share(&base, 0.25, true), "repeated");
    let distinct = TrainOutcome::distinct_samples;
    assert_eq!(distinct(&whole), whole.training_samples);
    assert!(2 * distinct(&passes) < distinct(&whole), "{} {}", distinct(&passes), distinct(&whole));
    assert_eq!((distinct(&passes), steps(&passes)), (passes.training_samples, 2 * distinct(&passes).div_ceil(128)));
    assert_eq!((distinct(&repeated), steps(&repeated)), (distinct(&passes), steps(&whole)));
    let validated = [&whole, &passes, &repeated].map(|outcome| outcome.validation_samples);
    assert!(validated.iter().all(|samples| *samples == validated[0]), "{validated:?}");
    let part = run(&with(&on_share(&base, 0.25, true), |settings| settings.epoch_samples = Some(300)), "part");
    assert_eq!((part.training_samples, steps(&part)), (300, 6));

    let refused = |config: &TrainConfig| {
        workspace.run(config, "refused", false, &mut StopAt::new(u64::MAX)).expect_err("refused").to_string()
    };
    assert!(refused(&on_share(&base, 1.5, false)).contains("above 0 and at most 1, not 1.5"));
    assert!(refused(&TrainConfig { repeat_share: true, ..base.clone() }).contains("nothing to repeat"));
    assert!(refused(&on_share(&base, 1e-9, false)).contains("has no game"));
}
