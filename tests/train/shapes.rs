//! Network shapes, from training to the engine.

use fsbench::data::Method;
use fsbench::features::available_names;
use fsbench::measure::{self, QuantisationOptions};
use fsbench::net::{self, Activation, BucketRule, NetFile, Scheme, quantise};
use fsbench::train::{SecondMethod, ShapeOptions, Silent, TrainConfig, run_dir};

use super::fixture::{StopAt, Workspace, with};

/// All options at once, as in Stockfish 15.1.
fn all_options() -> ShapeOptions {
    ShapeOptions {
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        skip: true,
        psqt: true,
        buckets: 8,
        bucket_rule: BucketRule::Stockfish,
        ..ShapeOptions::default()
    }
}

/// Checks that the exported integers evaluate every position of the games as the floats do, within `measure error`'s
/// tolerance of 0.03 in expected result.
pub fn check_export(workspace: &Workspace, run: &str) {
    let path = |name: &str| workspace.path(run).join(name);
    let file = NetFile::load(&path(run_dir::NETWORK)).expect("a network");
    let (float, checkpoint) = net::load_float(&path(run_dir::BEST)).expect("weights");
    assert_eq!(quantise(&float, &file.net.scheme).expect("fits"), file.net);
    let games = workspace.path("games.pgn");
    let (record, _) =
        measure::quantisation(&file, &float, &checkpoint, &games, QuantisationOptions::default()).expect("measured");
    assert!(record.positions > 2000 && record.accumulator_overflows == 0, "{run}: {record:?}");
    assert!(record.within_tolerance == 1.0 && record.mean < 0.01, "{run}: {record:?}");
}

#[test]
fn every_shipped_set_is_trained_resumed_and_exported() {
    let workspace = Workspace::new();
    for set in &available_names() {
        let config = TrainConfig { set: set.clone(), ..workspace.config(Method::Eval) };
        let config = with(&config, |settings| {
            settings.shape_options = all_options();
            settings.hidden = vec![15, 8];
            settings.epochs = 2;
        });
        workspace.run(&config, set, false, &mut StopAt::new(8)).expect_err("stopped");
        workspace.run(&config, set, true, &mut Silent).expect("trained");
        check_export(&workspace, set);
    }
}

#[test]
fn every_activation_is_trained_and_exported() {
    let workspace = Workspace::new();
    for activation in [Activation::Crelu, Activation::Screlu, Activation::Pairwise] {
        for hidden_activation in [Activation::Crelu, Activation::Screlu, Activation::Dual] {
            let name = format!("{activation:?}-{hidden_activation:?}");
            let shape = ShapeOptions { activation, hidden_activation, ..ShapeOptions::default() };
            let config = with(&workspace.config(Method::Pqr), |settings| {
                settings.shape_options = shape;
                settings.epochs = 1;
            });
            workspace.run(&config, &name, false, &mut Silent).expect("trained");
            check_export(&workspace, &name);
        }
    }
    let config = with(&workspace.config(Method::Pqr), |settings| settings.shape_options.activation = Activation::Relu);
    let error = workspace.run(&config, "relu", false, &mut Silent).expect_err("no integers for it");
    assert!(error.is_request() && error.to_string().contains("does not support relu"), "{error}");
}

/// The shape and the scheme of Stockfish 19, the first features' weights in eight bits, with a factor and without.
#[test]
fn the_shape_of_stockfish_19_is_trained_and_exported() {
    const NARROW: u32 = 500;
    let workspace = Workspace::new();
    for (set, factor) in [("piece", false), ("half-ka-v2-hm", true)] {
        let shape =
            ShapeOptions { skip: false, skip_difference: true, concatenated: true, narrow: NARROW, ..all_options() };
        let config = TrainConfig { set: set.into(), ..workspace.config(Method::Eval) };
        let config = with(&config, |settings| {
            settings.factor = Some(factor);
            settings.shape_options = shape;
            settings.hidden = vec![15, 8];
            settings.epochs = 2;
            settings.scheme = Some("stockfish-19".into());
            settings.learning_rate = 0.1;
        });
        workspace.run(&config, set, false, &mut StopAt::new(7)).expect_err("stopped");
        workspace.run(&config, set, true, &mut Silent).expect("trained");
        check_export(&workspace, set);
        let net = NetFile::load(&workspace.path(set).join(run_dir::NETWORK)).expect("a network").net;
        assert_eq!((net.shape.narrow, &net.scheme), (NARROW, &Scheme { pawn_value: 100, ..Scheme::stockfish_19() }));
        let (narrow, wide) = net.ft_weights.split_at(NARROW as usize * net.shape.l1);
        let largest = |weights: &[i16]| weights.iter().map(|weight| weight.unsigned_abs()).max();
        assert_eq!(largest(narrow), Some(127), "{set}: the limit is reached");
        assert!(largest(wide) > Some(127), "{set}: {:?}", largest(wide));
    }
}

/// No hidden layers, weights in i16: every activation, with buckets, by either method.
#[test]
fn the_simple_scheme_is_trained_and_exported() {
    let workspace = Workspace::new();
    for activation in [Activation::Relu, Activation::Crelu, Activation::Screlu, Activation::Pairwise] {
        let name = format!("simple-{activation:?}");
        let shape = ShapeOptions { activation, buckets: 8, bucket_rule: BucketRule::Cpw, ..ShapeOptions::default() };
        let config = with(&workspace.config(Method::Eval), |settings| {
            settings.shape_options = shape;
            settings.hidden = vec![];
            settings.epochs = 2;
            settings.scheme = Some("simple".into());
        });
        workspace.run(&config, &name, false, &mut StopAt::new(7)).expect_err("stopped");
        workspace.run(&config, &name, true, &mut Silent).expect("trained");
        check_export(&workspace, &name);
        assert_eq!(
            NetFile::load(&workspace.path(&name).join(run_dir::NETWORK)).expect("a network").net.scheme,
            Scheme::simple()
        );
    }
    let config = with(&workspace.config(Method::Eval), |settings| settings.scheme = Some("simple".into()));
    let error = workspace.run(&config, "hidden", false, &mut Silent).expect_err("a hidden layer");
    assert!(error.is_request() && error.to_string().contains("does not support hidden layers"), "{error}");
    let config = with(&config, |settings| settings.scheme = Some("fancy".into()));
    let error = workspace.run(&config, "fancy", false, &mut Silent).expect_err("no such scheme").to_string();
    assert_eq!(
        error,
        "there is no quantisation scheme `fancy`; there are stockfish, stockfish-18, stockfish-19, simple"
    );
}

/// A quantised network is as good a start as its checkpoint, up to rounding.
#[test]
fn a_run_begins_from_a_quantised_network() {
    let workspace = Workspace::new();
    let first = with(&workspace.config(Method::Eval), |settings| {
        settings.shape_options = all_options();
        settings.hidden = vec![15, 8];
    });
    workspace.run(&first, "first", false, &mut Silent).expect("trained");
    let start = Some(workspace.path("first").join(run_dir::NETWORK));
    let still = TrainConfig { start, ..first.clone() };
    let still = with(&still, |settings| (settings.learning_rate, settings.epochs) = (1e-30, 1));
    let outcome = workspace.run(&still, "still", false, &mut Silent).expect("trained");
    let net = |run: &str| NetFile::load(&workspace.path(run).join(run_dir::NETWORK)).expect("a network");
    assert_eq!(net("still"), net("first"));
    let finished = workspace.run(&first, "first", true, &mut Silent).expect("finished");
    let before = finished.validation_loss;
    let after = outcome.validation_loss;
    assert!((before - after).abs() < 0.02 * before, "{before} {after}");
}

/// Both methods of a run are learned, and a larger weight of the second improves it at the cost of the first.
#[test]
fn two_methods_are_learned_in_one_run() {
    let workspace = Workspace::new();
    let trained = |name: &str, weight: f64| {
        let plain = workspace.config(Method::Eval);
        let second = SecondMethod {
            method: Method::Pqr,
            data: workspace.data(Method::Pqr).into(),
            reading: plain.reading,
            weight,
        };
        let config = with(&TrainConfig { second: Some(second), ..plain }, |settings| settings.epochs = 6);
        workspace.run(&config, name, false, &mut Silent).expect("trained")
    };
    let light = trained("light", 1e-5);
    let heavy = trained("heavy", 0.05);
    let last = |outcome: &fsbench::train::TrainOutcome| {
        let metrics = outcome.epochs.last().expect("an epoch").clone();
        (metrics.train_loss, metrics.second.expect("a second method"))
    };
    let (light_eval, light_pqr) = last(&light);
    let (heavy_eval, heavy_pqr) = last(&heavy);
    assert!(light_eval < heavy_eval, "{light_eval} {heavy_eval}");
    assert!(heavy_pqr.train_loss < light_pqr.train_loss, "{heavy_pqr:?} {light_pqr:?}");
    assert!(light_eval < light.baseline_loss, "{light_eval} {}", light.baseline_loss);
    assert!(heavy_pqr.validation_accuracy.is_some());
    let still = TrainConfig { second: None, ..heavy.config.clone() };
    let error = workspace.run(&still, "heavy", true, &mut Silent).expect_err("another run").to_string();
    assert!(error.contains("second is"), "{error}");
}
