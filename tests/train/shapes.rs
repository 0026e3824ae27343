//! Network shapes, from training to the engine.

use fsbench::data::Method;
use fsbench::features::available_names;
use fsbench::measure::{self, ErrorOptions};
use fsbench::net::{self, Activation, BucketRule, NetFile, Scheme, quantise};
use fsbench::train::{SecondMethod, ShapeOptions, Silent, TrainConfig, run_dir};

use super::fixture::{Bench, StopAt, with};

/// All options at once, as in Stockfish 15.1.
fn all_options() -> ShapeOptions {
    ShapeOptions {
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        skip: true,
        psqt: true,
        buckets: 8,
        bucket_rule: BucketRule::Stockfish,
    }
}

/// Checks that the exported integers evaluate every position of the games as the floats do, within `measure error`'s tolerance
/// of 0.03 in expected result.
fn check_export(bench: &Bench, run: &str) {
    let path = |name: &str| bench.path(run).join(name);
    let file = NetFile::load(&path(run_dir::NETWORK)).expect("a network");
    let (float, checkpoint) = net::load_float(&path(run_dir::BEST)).expect("weights");
    assert_eq!(quantise(&float, &file.net.scheme).expect("fits"), file.net);
    let games = bench.path("games.pgn");
    let (record, _) = measure::error(&file, &float, &checkpoint, &games, ErrorOptions::default()).expect("measured");
    assert!(record.positions > 2000 && record.accumulator_overflows == 0, "{run}: {record:?}");
    assert!(record.within_tolerance == 1.0 && record.mean < 0.01, "{run}: {record:?}");
}

#[test]
fn every_shipped_set_is_trained_resumed_and_exported() {
    let bench = Bench::new();
    for set in &available_names() {
        let config = TrainConfig { set: set.clone(), ..bench.config(Method::Eval) };
        let config = with(&config, |settings| {
            (settings.shape_options, settings.hidden, settings.epochs) = (all_options(), vec![15, 8], 2);
        });
        bench.run(&config, set, false, &mut StopAt::new(8)).expect_err("stopped");
        bench.run(&config, set, true, &mut Silent).expect("trained");
        check_export(&bench, set);
    }
}

#[test]
fn every_activation_is_trained_and_exported() {
    let bench = Bench::new();
    for activation in [Activation::Crelu, Activation::Screlu, Activation::Pairwise] {
        for hidden_activation in [Activation::Crelu, Activation::Screlu, Activation::Dual] {
            let name = format!("{activation:?}-{hidden_activation:?}");
            let shape = ShapeOptions { activation, hidden_activation, ..ShapeOptions::default() };
            let config = with(&bench.config(Method::Pqr), |settings| {
                (settings.shape_options, settings.epochs) = (shape, 1);
            });
            bench.run(&config, &name, false, &mut Silent).expect("trained");
            check_export(&bench, &name);
        }
    }
    let config = with(&bench.config(Method::Pqr), |settings| settings.shape_options.activation = Activation::Relu);
    let error = bench.run(&config, "relu", false, &mut Silent).expect_err("no integers for it");
    assert!(error.is_request() && error.to_string().contains("does not support relu"), "{error}");
}

/// No hidden layers, weights in i16: every activation, with buckets, by either method.
#[test]
fn the_simple_scheme_is_trained_and_exported() {
    let bench = Bench::new();
    for activation in [Activation::Relu, Activation::Crelu, Activation::Screlu, Activation::Pairwise] {
        let name = format!("simple-{activation:?}");
        let shape = ShapeOptions { activation, buckets: 8, bucket_rule: BucketRule::Cpw, ..ShapeOptions::default() };
        let config = with(&bench.config(Method::Eval), |settings| {
            (settings.shape_options, settings.hidden, settings.epochs) = (shape, vec![], 2);
            settings.scheme = Some("simple".into());
        });
        bench.run(&config, &name, false, &mut StopAt::new(7)).expect_err("stopped");
        bench.run(&config, &name, true, &mut Silent).expect("trained");
        check_export(&bench, &name);
        assert_eq!(
            NetFile::load(&bench.path(&name).join(run_dir::NETWORK)).expect("a network").net.scheme,
            Scheme::simple()
        );
    }
    let config = with(&bench.config(Method::Eval), |settings| settings.scheme = Some("simple".into()));
    let error = bench.run(&config, "hidden", false, &mut Silent).expect_err("a hidden layer");
    assert!(error.is_request() && error.to_string().contains("does not support hidden layers"), "{error}");
    let config = with(&config, |settings| settings.scheme = Some("fancy".into()));
    let error = bench.run(&config, "fancy", false, &mut Silent).expect_err("no such scheme").to_string();
    assert_eq!(error, "there is no quantisation scheme `fancy`; there are stockfish, simple");
}

/// A quantised network is as good a start as its checkpoint, up to rounding.
#[test]
fn a_run_begins_from_a_quantised_network() {
    let bench = Bench::new();
    let first = with(&bench.config(Method::Eval), |settings| {
        (settings.shape_options, settings.hidden) = (all_options(), vec![15, 8]);
    });
    bench.run(&first, "first", false, &mut Silent).expect("trained");
    let start = Some(bench.path("first").join(run_dir::NETWORK));
    let still = TrainConfig { start, ..first.clone() };
    let still = with(&still, |settings| (settings.learning_rate, settings.epochs) = (1e-30, 1));
    let outcome = bench.run(&still, "still", false, &mut Silent).expect("trained");
    let net = |run: &str| NetFile::load(&bench.path(run).join(run_dir::NETWORK)).expect("a network");
    assert_eq!(net("still"), net("first"));
    let finished = bench.run(&first, "first", true, &mut Silent).expect("finished");
    let (before, after) = (finished.validation_loss, outcome.validation_loss);
    assert!((before - after).abs() < 0.02 * before, "{before} {after}");
}

/// Both methods of a run are learned, and a larger weight of the second improves it at the cost of the first.
#[test]
fn two_methods_are_learned_in_one_run() {
    let bench = Bench::new();
    let trained = |name: &str, weight: f64| {
        let plain = bench.config(Method::Eval);
        let second = SecondMethod {
            method: Method::Pqr,
            data: bench.data(Method::Pqr),
            from_unit: None,
            read_mode: plain.read_mode,
            weight,
        };
        let config = with(&TrainConfig { second: Some(second), ..plain }, |settings| settings.epochs = 6);
        bench.run(&config, name, false, &mut Silent).expect("trained")
    };
    let (light, heavy) = (trained("light", 1e-5), trained("heavy", 0.05));
    let last = |outcome: &fsbench::train::TrainOutcome| {
        let metrics = outcome.epochs.last().expect("an epoch").clone();
        (metrics.train_loss, metrics.second.expect("a second method"))
    };
    let ((light_eval, light_pqr), (heavy_eval, heavy_pqr)) = (last(&light), last(&heavy));
    assert!(light_eval < heavy_eval, "{light_eval} {heavy_eval}");
    assert!(heavy_pqr.train_loss < light_pqr.train_loss, "{heavy_pqr:?} {light_pqr:?}");
    assert!(light_eval < light.baseline_loss, "{light_eval} {}", light.baseline_loss);
    assert!(heavy_pqr.validation_accuracy.is_some());
    let still = TrainConfig { second: None, ..heavy.config.clone() };
    let error = bench.run(&still, "heavy", true, &mut Silent).expect_err("another run").to_string();
    assert!(error.contains("second is"), "{error}");
}
