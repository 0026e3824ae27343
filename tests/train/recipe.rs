//! Parts of recipes: averaged weights, samples that are skipped, λ with jitter.

use fsbench::data::Method;
use fsbench::net;
use fsbench::train::{EvalLoss, Optimisation, Silent, SkipRules, TrainConfig, run_dir};

use super::fixture::{StopAt, Workspace, same_results, with};

fn averaging(config: &TrainConfig, average_from: f64, average_decay: Option<f64>) -> TrainConfig {
    with(config, |settings| {
        settings.optimisation = Optimisation {
            average_from: Some(average_from),
            average_every: 2,
            average_decay,
            ..Optimisation::default()
        };
    })
}

#[test]
fn the_better_of_average_and_epochs_is_the_network() {
    let workspace = Workspace::new();
    let config = workspace.config(Method::Eval);
    let plain = workspace.run(&config, "plain", false, &mut Silent).expect("trained");
    assert_eq!(plain.averaged, None);
    // Of the last step alone: the last epoch's network, which is no better than itself.
    let last = workspace.run(&averaging(&config, 0.99, None), "last", false, &mut Silent).expect("trained");
    let averaged = last.averaged.expect("an average");
    assert_eq!((averaged.networks, averaged.kept), (1, false));
    assert_eq!(averaged.validation_loss, last.epochs[3].validation_loss);
    assert_eq!(last.validation_loss, plain.validation_loss);
    for decay in [None, Some(0.5)] {
        let name = format!("{decay:?}");
        let config = averaging(&config, 0.5, decay);
        let outcome = workspace.run(&config, &name, false, &mut Silent).expect("trained");
        let averaged = outcome.averaged.expect("an average");
        // Steps 14, 16, … 24.
        assert_eq!(averaged.networks, 6);
        // The training itself is the same.
        assert_eq!(outcome.epochs[3].validation_loss, plain.epochs[3].validation_loss);
        assert_ne!(averaged.validation_loss, plain.epochs[3].validation_loss);
        let best = plain.validation_loss;
        assert_eq!(averaged.kept, averaged.validation_loss < best);
        assert_eq!(outcome.validation_loss, best.min(averaged.validation_loss));
        let net = |folder: &str| net::load_float(&workspace.path(folder).join(run_dir::BEST)).expect("a network").0;
        assert_eq!(net(&name) != net("plain"), averaged.kept);
    }
}

#[test]
fn averages_are_resumed() {
    let workspace = Workspace::new();
    for method in [Method::Eval, Method::Pqr] {
        let config = averaging(&workspace.config(method), 0.4, Some(0.8));
        let whole = format!("whole-{method:?}");
        let cut = format!("cut-{method:?}");
        let outcome = workspace.run(&config, &whole, false, &mut Silent).expect("trained");
        for (number, stop) in [5, 13, 24].into_iter().enumerate() {
            workspace.run(&config, &cut, number > 0, &mut StopAt::new(stop)).expect_err("stopped");
        }
        let resumed = workspace.run(&config, &cut, true, &mut Silent).expect("trained");
        assert_eq!(resumed.averaged, outcome.averaged);
        same_results(&workspace, &whole, &cut);
        let longer = with(&config, |settings| settings.epochs = 9);
        let error = workspace.run(&longer, &cut, true, &mut Silent).expect_err("another end").to_string();
        assert!(error.contains("epochs is 4 there and 9 was asked for"), "{error}");
    }
}

#[test]
fn epochs_skip_samples_anew() {
    let workspace = Workspace::new();
    for method in [Method::Eval, Method::Pqr] {
        let config = with(&workspace.config(method), |settings| {
            settings.skip = SkipRules { random: 0.5, ..SkipRules::default() };
        });
        let whole = format!("whole-{method:?}");
        let cut = format!("cut-{method:?}");
        let outcome = workspace.run(&config, &whole, false, &mut Silent).expect("trained");
        // Of 700 samples an epoch.
        let samples: Vec<u64> = outcome.epochs.iter().map(|epoch| epoch.samples).collect();
        assert!((1250..1550).contains(&samples[3]) && samples[0] * 2 != samples[1], "{samples:?}");
        let full = workspace.run(&workspace.config(method), &format!("full-{method:?}"), false, &mut Silent);
        assert_eq!(full.expect("trained").validation_samples, outcome.validation_samples);
        let threads = with(&config, |settings| settings.threads = Some(1));
        workspace.run(&threads, &cut, false, &mut StopAt::new(8)).expect_err("stopped");
        workspace.run(&config, &cut, true, &mut Silent).expect("trained");
        same_results(&workspace, &whole, &cut);
    }
    let unlikely = with(&workspace.config(Method::Pqr), |settings| settings.skip.unlikely = true);
    let error = workspace.run(&unlikely, "unlikely", false, &mut Silent).expect_err("no effect").to_string();
    assert!(error.contains("has no effect: pqr reads no scores"), "{error}");
    let late = with(&workspace.config(Method::Eval), |settings| settings.skip.before_ply = 5000);
    let error = workspace.run(&late, "late", false, &mut Silent).expect_err("nothing left").to_string();
    assert!(error.contains("leave none of epoch 1 but one in each of its 6 batches"), "{error}");
}

#[test]
fn jitter_moves_targets_and_not_the_validation() {
    let workspace = Workspace::new();
    let run = |name: &str, lambda_jitter: f64, lambda: f64| {
        let config = with(&workspace.config(Method::Eval), |settings| {
            settings.eval_loss = EvalLoss { lambda, lambda_jitter, ..EvalLoss::default() };
            // Nothing is learned, so that the losses are those of the same network.
            settings.learning_rate = 1e-30;
            settings.epochs = 2;
        });
        workspace.run(&config, name, false, &mut Silent).expect("trained")
    };
    let plain = run("plain", 0.0, 0.7);
    let jitter = run("jitter", 0.2, 0.7);
    assert_eq!(plain.epochs[0].validation_loss, jitter.epochs[0].validation_loss);
    assert_ne!(plain.epochs[0].train_loss, jitter.epochs[0].train_loss);
    let again = run("again", 0.2, 0.7);
    assert_eq!(again.epochs[1].train_loss, jitter.epochs[1].train_loss);
}
