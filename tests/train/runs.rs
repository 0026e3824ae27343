//! Runs that are resumed, continued, refused or killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fsbench::chess::Perspective;
use fsbench::data::Method;
use fsbench::features::FeatureSet;
use fsbench::net::{self, NetFile, Scheme};
use fsbench::service::ReadOptions;
use fsbench::train::{
    EpochMetrics, EvalLoss, LearningRateSchedule, Optimisation, Optimiser, Silent, TrainConfig, TrainError,
    TrainOutcome, TrainingRun, run_dir,
};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::{Chess, Position};

use super::common;
use super::fixture::{LoseAt, PROGRAM, StopAt, Workspace, error_of, same_results, with};

#[test]
fn an_interrupted_run_gives_the_results_of_an_uninterrupted_one() {
    let workspace = Workspace::new();
    for method in [Method::Eval, Method::Pqr] {
        let config = workspace.config(method);
        let whole = format!("whole-{method:?}");
        let cut = format!("cut-{method:?}");
        let outcome = workspace.run(&config, &whole, false, &mut Silent).expect("trained");
        assert_eq!((outcome.epochs.len(), outcome.epochs[3].samples), (4, 2800));
        assert!(outcome.epochs[3].train_loss < outcome.epochs[0].train_loss, "{outcome:?}");
        // In an epoch's first step, in the middle of one, and between its last step and its validation.
        for (number, stop) in [1, 8, 18].into_iter().enumerate() {
            let error = workspace.run(&config, &cut, number > 0, &mut StopAt::new(stop)).expect_err("stopped");
            assert!(matches!(error, TrainError::Interrupted { step, .. } if step == stop), "{error}");
            assert!(!workspace.path(&cut).join(run_dir::OUTCOME).exists());
        }
        let one_thread = with(&config, |settings| settings.threads = Some(1));
        workspace.run(&one_thread, &cut, true, &mut StopAt::new(20)).expect_err("stopped");
        let shorter = with(&config, |settings| settings.epochs = 3);
        let error = workspace.run(&shorter, &cut, true, &mut Silent).expect_err("beyond its end").to_string();
        assert!(error.contains("it has done 3 epochs and 20 steps, and 3 epochs were asked for"), "{error}");
        let resumed = workspace.run(&config, &cut, true, &mut Silent).expect("trained");
        // Its third epoch had only the validation left to do.
        let timed = resumed.epochs.iter().map(|epoch| epoch.samples_per_second.is_some());
        assert!(timed.eq([true, true, false, true]), "{resumed:?}");
        same_results(&workspace, &whole, &cut);
        let losses = |outcome: &TrainOutcome| -> Vec<[f64; 2]> {
            outcome.epochs.iter().map(|epoch| [epoch.train_loss, epoch.validation_loss]).collect()
        };
        assert_eq!(losses(&resumed), losses(&outcome));
        assert_eq!(resumed.baseline_loss, outcome.baseline_loss);
        // A finished run is not trained again.
        assert_eq!(workspace.run(&config, &cut, true, &mut Silent).expect("finished"), resumed);
    }
}

/// While a large batch is at work, the next is read.
#[test]
fn batches_read_ahead_follow_in_order() {
    let workspace = Workspace::new();
    let config = with(&workspace.config(Method::Pqr), |settings| {
        settings.batch_size = 700;
        settings.epoch_samples = Some(1400);
    });
    let outcome = workspace.run(&config, "whole", false, &mut Silent).expect("trained");
    assert_eq!((outcome.epochs.len(), outcome.epochs[3].samples), (4, 5600));
    workspace.run(&config, "cut", false, &mut StopAt::new(3)).expect_err("stopped");
    workspace.run(&config, "cut", true, &mut Silent).expect("trained");
    same_results(&workspace, "whole", "cut");
}

/// A process that another one has replaced writes nothing more into the run's folder, whether its epoch ends, a
/// checkpoint is due or it is interrupted.
#[test]
fn a_run_that_was_taken_over_is_left_alone() {
    let workspace = Workspace::new();
    let config = workspace.config(Method::Eval);
    workspace.run(&config, "run", false, &mut StopAt::new(10)).expect_err("stopped");
    let content = || {
        [run_dir::CHECKPOINT, run_dir::BEST]
            .map(|name| fs::read(workspace.path("run").join(name)).expect("the run left it"))
    };
    let before = content();
    // An epoch ends at step 12.
    for stops in [false, true] {
        let mut observer = LoseAt { at: 11, step: 0, lock: workspace.path("run/lock"), stops };
        let error = workspace.run(&config, "run", true, &mut observer).expect_err("lost").to_string();
        assert!(error.contains("another process has taken the run over"), "{error}");
        assert!(observer.step >= 11 && content() == before, "stops: {stops}");
    }
    workspace.run(&config, "run", true, &mut Silent).expect("trained");
    workspace.run(&config, "whole", false, &mut Silent).expect("trained");
    same_results(&workspace, "whole", "run");
}

/// The checkpoint holds everything that factors, slow weights, clipping and schedules by length need.
#[test]
fn every_optimiser_setting_is_resumed() {
    let workspace = Workspace::new();
    let optimisation = Optimisation {
        optimiser: Optimiser::Ranger,
        schedule: LearningRateSchedule::Cosine,
        warm_up: 3,
        gradient_clip: Some(0.1),
        ..Optimisation::default()
    };
    let config = TrainConfig { set: "half-ka-v2-hm".into(), ..workspace.config(Method::Eval) };
    let config = with(&config, |settings| {
        settings.optimisation = optimisation;
        settings.eval_loss = EvalLoss { lambda: 0.9, lambda_end: Some(0.6), ..settings.eval_loss };
    });
    workspace.run(&config, "whole", false, &mut Silent).expect("trained");
    for (number, stop) in [5, 13].into_iter().enumerate() {
        let threads = with(&config, |settings| settings.threads = Some(number + 1));
        workspace.run(&threads, "cut", number > 0, &mut StopAt::new(stop)).expect_err("stopped");
    }
    workspace.run(&config, "cut", true, &mut Silent).expect("trained");
    same_results(&workspace, "whole", "cut");
    let checkpoint = fs::read(workspace.path("whole").join(run_dir::CHECKPOINT)).expect("a checkpoint");
    for name in ["factor.own", "factor.weight", "slow.ft.weight", "adam.v.factor.weight"] {
        assert!(checkpoint.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
    let longer = with(&config, |settings| settings.epochs = 9);
    let error = workspace.run(&longer, "cut", true, &mut Silent).expect_err("another end").to_string();
    assert!(error.contains("epochs is 4 there and 9 was asked for"), "{error}");
    // The same features with other factors.
    let text = fs::read_to_string("feature_sets/half-ka-v2-hm.toml").expect("a definition");
    let factor = text.lines().find(|line| line.starts_with("factor")).expect("a factor");
    let shared = text.replace(factor, "factor = \"color(P) * role(P)\"");
    let path = workspace.path("shared.toml");
    fs::write(&path, shared).expect("written");
    workspace.run(&config, "shared", false, &mut StopAt::new(5)).expect_err("stopped");
    let shared = TrainConfig { set: path.display().to_string(), ..config.clone() };
    let error = workspace.run(&shared, "shared", true, &mut Silent).expect_err("other factors").to_string();
    assert!(error.contains("the factors of its feature set differ"), "{error}");
    let without = with(&config, |settings| settings.factor = Some(false));
    workspace.run(&without, "plain", false, &mut Silent).expect("trained");
    let net = |name: &str| net::load_float(&workspace.path(name).join(run_dir::BEST)).expect("a network").0;
    assert!(net("plain").shape == net("whole").shape && net("plain") != net("whole"));
    let events = fs::read(workspace.path("whole").join(run_dir::EVENTS)).expect("events");
    assert!(events.windows(15).any(|window| window == b"loss/validation"));
}

#[test]
fn a_run_begins_with_the_network_of_another_method() {
    let workspace = Workspace::new();
    let first = with(&workspace.config(Method::Pqr), |settings| settings.epochs = 2);
    workspace.run(&first, "first", false, &mut Silent).expect("trained");
    let start = Some(workspace.path("first").join(run_dir::BEST));
    let second = TrainConfig { start, ..workspace.config(Method::Eval) };
    let second = with(&second, |settings| settings.epochs = 1);
    // A learning rate that moves nothing leaves the network as it was.
    let still = with(&second, |settings| settings.learning_rate = 1e-30);
    workspace.run(&still, "still", false, &mut Silent).expect("trained");
    let net = |name: &str| net::load_float(&workspace.path(name).join(run_dir::BEST)).expect("a network").0;
    assert!(net("still") == net("first"));
    let outcome = workspace.run(&second, "second", false, &mut Silent).expect("trained");
    assert!(net("second") != net("first"));
    let fresh =
        workspace.run(&TrainConfig { start: None, ..second.clone() }, "fresh", false, &mut Silent).expect("trained");
    assert_ne!(outcome.validation_loss.to_bits(), fresh.validation_loss.to_bits());
    let wider = with(&second, |settings| settings.l1 = 32);
    let error = workspace.run(&wider, "wider", false, &mut Silent).expect_err("another shape");
    assert!(error.is_request() && error.to_string().contains("cannot be continued from"), "{error}");
    let other = "square(M) * role(P) for P in pieces, M in moves(P)";
    let other = TrainConfig { set: other.into(), ..second.clone() };
    let error = workspace.run(&other, "other", false, &mut Silent).expect_err("another set");
    assert!(error.is_request() && error.to_string().contains("cannot start one on"), "{error}");
    // A finer set: every score stays the same, so a run that moves nothing has the loss of the coarser network.
    let finer = TrainConfig { set: "file(K) * (role(P) * color(P) * square(P)) for P in pieces".into(), ..second };
    let lifted = with(&finer, |settings| settings.learning_rate = 1e-30);
    let lifted = workspace.run(&lifted, "lifted", false, &mut Silent).expect("trained");
    let still = with(&TrainConfig { set: "piece".into(), ..finer }, |settings| settings.learning_rate = 1e-30);
    let still = workspace.run(&still, "still again", false, &mut Silent).expect("trained");
    assert!((lifted.validation_loss / still.validation_loss - 1.0).abs() < 1e-5, "{lifted:?} {still:?}");
}

/// A copy of the network that a run began with is the same network; another network in its place is not.
#[test]
fn a_run_continues_with_the_network_that_it_began_with() {
    let workspace = Workspace::new();
    let config = with(&workspace.config(Method::Eval), |settings| settings.epochs = 1);
    for (name, seed) in [("first", 0), ("other", 1)] {
        let config = TrainConfig { seed: Seed(seed), ..config.clone() };
        workspace.run(&config, name, false, &mut Silent).expect("trained");
    }
    let network = |name: &str| workspace.path(name).join(run_dir::BEST);
    let begun_with = |start: PathBuf| TrainConfig { start: Some(start), ..config.clone() };
    workspace.run(&begun_with(network("first")), "run", false, &mut StopAt::new(5)).expect_err("stopped");
    let copy = workspace.path("copy.safetensors");
    fs::copy(network("first"), &copy).expect("copied");
    fs::copy(network("other"), network("first")).expect("replaced");
    let error = workspace.run(&begun_with(network("first")), "run", true, &mut Silent).expect_err("another network");
    assert!(error.to_string().contains("the network of --start is not the one"), "{error}");
    // How a binpack is read makes no difference to a .fsd file.
    let same = TrainConfig { reading: ReadOptions::default(), ..begun_with(copy) };
    workspace.run(&same, "run", true, &mut Silent).expect("the same network");
}

/// The run is killed at its start, then after random numbers of steps, and once between an epoch's last step and its
/// validation. Each kill waits until the run's checkpoint has reached a step, not for a time, so the steps do not
/// depend on the machine's speed.
#[test]
fn a_killed_run_is_resumed() {
    let workspace = Workspace::new();
    // A checkpoint after every step.
    let options = ["--epochs", "30", "--checkpoint-every", "0", "--second", "pqr", "--second-data"];
    let pqr = workspace.data(Method::Pqr).display().to_string();
    let command = |name: &str, more: &[&str]| {
        let all = [&options[..], &[&pqr], more].concat();
        workspace.command(name, &all)
    };
    let output = command("whole", &[]).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    let whole = fs::read_to_string(workspace.path("whole").join(run_dir::METRICS)).expect("metrics");
    let first: EpochMetrics = common::content_as(whole.lines().next().expect("an epoch").as_bytes());
    let steps_per_epoch = first.step;
    let checkpoint = workspace.path("killed").join(run_dir::CHECKPOINT);
    let step = || {
        if !checkpoint.exists() {
            return 0;
        }
        let (_, stored) = net::load_float(&checkpoint).expect("a whole checkpoint");
        stored.training["step"].as_u64().expect("a step")
    };
    let mut rng = Seed(11).stream("kill", 0);
    let mut hits = 0;
    for kill in 0..6 {
        let threads = ["1", "2"][kill % 2];
        let resume = ["--threads", threads, "--resume"];
        let mut child = command("killed", &resume[..if kill > 0 { 3 } else { 2 }]).spawn().expect("runs");
        let goal = match kill {
            0 => 0,
            5 => (step() + 1).next_multiple_of(steps_per_epoch),
            _ => step() + rng.random_range(5..60),
        };
        let deadline = Instant::now() + Duration::from_secs(300);
        while step() < goal {
            let running = child.try_wait().expect("a child").is_none();
            if !running || Instant::now() > deadline {
                let _ = child.kill();
                panic!("it should be at step {goal} and is at {}; running: {running}", step());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(rng.random_range(0..5000)));
        child.kill().expect("killed");
        child.wait().expect("gone");
        hits += u64::from(!step().is_multiple_of(steps_per_epoch));
    }
    assert!(hits > 0, "no kill hit a run in the middle of an epoch");
    // A kill during a write leaves half a line or half a temporary file.
    let metrics = workspace.path("killed").join(run_dir::METRICS);
    let text = fs::read_to_string(&metrics).unwrap_or_default() + "{\"epoch\": 99, \"st";
    fs::write(&metrics, text).expect("written");
    fs::write(workspace.path("killed").join(".outcome.json.AbCdEf.part"), "half").expect("written");
    let output = command("killed", &["--resume"]).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    same_results(&workspace, "whole", "killed");
    assert!(!workspace.path("killed").join(".outcome.json.AbCdEf.part").exists());
    let text = fs::read_to_string(&metrics).expect("metrics");
    let epochs: Vec<EpochMetrics> = text.lines().map(|line| common::content_as(line.as_bytes())).collect();
    assert!(epochs.iter().map(|metrics| metrics.epoch).eq(1..=30), "{text}");
    let second = epochs.iter().map(|metrics| metrics.second.expect("a second method"));
    assert!(second.into_iter().all(|second| second.method == Method::Pqr && second.train_loss > 0.0));
}

#[test]
fn without_dead_features_the_scores_are_the_same() {
    let workspace = Workspace::new();
    let full = workspace.config(Method::Eval);
    let compact = with(&full, |settings| settings.compact_dead = true);
    let a = workspace.run(&full, "full", false, &mut Silent).expect("trained");
    workspace.run(&compact, "compact", false, &mut StopAt::new(8)).expect_err("stopped");
    let b = workspace.run(&compact, "compact", true, &mut Silent).expect("trained");
    assert_eq!((a.num_features, b.num_features), (768, 736));
    assert_ne!(a.identity, b.identity);
    assert_eq!(a.validation_loss.to_bits(), b.validation_loss.to_bits());
    let load = |name: &str| NetFile::load(&workspace.path(name).join(run_dir::NETWORK)).expect("a network");
    let a = load("full");
    let b = load("compact");
    let full = a.origin.feature_set().expect("a set");
    let compact = b.origin.feature_set().expect("a set");
    let mut position = Chess::default();
    for mv in common::random_game(7, 80) {
        let raw = |net: &NetFile, set: &FeatureSet| {
            let [stm, nstm] = [position.turn(), position.turn().other()].map(Perspective::of);
            let views = [stm, nstm].map(|pov| set.reference(position.board(), pov));
            net::forward_integer(&net.net, 0, &views[0], &views[1]).sum()
        };
        assert_eq!(raw(&a, &full), raw(&b, &compact));
        position.play_unchecked(mv);
    }
}

#[test]
fn with_sparsity_fewer_neurons_are_active() {
    let workspace = Workspace::new();
    let positive = |sparsity: f64, name: &str| {
        let config = with(&workspace.config(Method::Eval), |settings| settings.optimisation.sparsity = sparsity);
        let outcome = workspace.run(&config, name, false, &mut Silent).expect("trained");
        let last = outcome.epochs.last().expect("epochs");
        assert!(last.train_loss < outcome.epochs[0].train_loss, "{outcome:?}");
        last.neurons.expect("a validation split").positive
    };
    let [plain, sparse] = [positive(0.0, "plain"), positive(0.2, "sparse")];
    assert!(sparse < 0.8 * plain, "{sparse} {plain}");
}

#[test]
fn the_outcome_is_one_document_and_the_network_loads() {
    let workspace = Workspace::new();
    let options = ["--epochs", "1", "--format", "json", "--hidden", "8,4"];
    let output = workspace.command("run", &options).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    let outcome: TrainOutcome = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(outcome_of(&workspace.path("run")), outcome);
    let file = NetFile::load(&workspace.path("run").join(&outcome.network)).expect("a network");
    assert_eq!((file.origin.identity, file.net.shape.hidden), (outcome.identity, vec![8, 4]));
    let (net, _) = net::load_float(&workspace.path("run").join(&outcome.checkpoint)).expect("a checkpoint");
    assert_eq!(net.parameters(), outcome.parameters);
}

#[test]
fn several_seeds_are_several_runs() {
    let workspace = Workspace::new();
    let options = ["--epochs", "1", "--format", "json", "--seed", "3,5"];
    let output = workspace.command("runs", &options).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    let outcomes: Vec<TrainOutcome> = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let seeds: Vec<u64> = outcomes.iter().map(|outcome| outcome.config.seed.0).collect();
    assert_eq!(seeds, [3, 5]);
    assert_ne!(outcomes[0].validation_loss.to_bits(), outcomes[1].validation_loss.to_bits());
    assert!(workspace.path("runs").join("seed-5").join(run_dir::OUTCOME).exists());
    let text =
        workspace.command("runs", &["--epochs", "1", "--seed", "3,5", "--resume"]).output().expect("runs").stdout;
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains(" ± ") && text.ends_with("(95%, 2 seeds)\n"), "{text}");
}

#[test]
fn conflicting_requests_are_refused() {
    let workspace = Workspace::new();
    let check = |more: &[&str], status: i32, expected: &[&str]| {
        let output = workspace.command("run", more).output().expect("runs");
        let text = error_of(&output);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(output.stdout.is_empty());
        for part in expected {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    };
    assert!(workspace.command("run", &["--epochs", "1"]).output().expect("runs").status.success());
    check(&["--epochs", "1"], 2, &["already holds a run", "--resume"]);
    check(
        &["--resume", "--learning-rate", "0.5"],
        2,
        &["checkpoint.safetensors", "learning_rate is 0.002 there and 0.5"],
    );
    check(&["--resume", "--seed", "9"], 2, &["seed is 0 there and 9 was asked for"]);
    check(&["--force", "--learning-rate", "0"], 2, &["the learning rate must be above 0, not 0"]);
    check(&["--force", "--kappa", "0.5"], 2, &["kappa (0.5) has no effect: this run does not learn by pqr"]);
    check(&["--force", "--threads", "5000"], 2, &["--threads", "it must be 1 to 1024"]);
    check(&["--force", "--lambda", "2"], 2, &["λ must lie between 0 and 1"]);
    check(
        &["--force", "--epochs", "2", "--learning-rate", "1e39"],
        1,
        &["training diverged at step 2: ft.weight[0, 0] is NaN", "gradient_clip"],
    );
    fs::write(workspace.path("run").join("notes.txt"), "mine").expect("written");
    // The message does not suggest --force, and nothing has been removed.
    let before = fs::read_dir(workspace.path("run")).expect("a folder").count();
    for options in [&["--force"][..], &[]] {
        check(options, 2, &["holds files that no run writes (notes.txt)", "move them away"]);
        assert_eq!(fs::read_dir(workspace.path("run")).expect("a folder").count(), before);
    }
}

#[test]
fn a_checkpoint_of_another_set_is_refused() {
    let workspace = Workspace::new();
    let config = with(&workspace.config(Method::Eval), |settings| settings.epochs = 1);
    let outcome = workspace.run(&config, "run", false, &mut Silent).expect("trained");
    let other = TrainConfig { set: "file(P) * role(P) for P in pieces".into(), ..config };
    let error = workspace.run(&other, "run", true, &mut Silent).expect_err("refused");
    assert!(matches!(error, TrainError::Mismatch { .. }), "{error}");
    let text = error.to_string();
    let identity = outcome.identity.to_string();
    for part in ["checkpoint.safetensors", "`PIECE`", &identity, "was asked for"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let workspace = Workspace::new();
    let config = with(&workspace.config(Method::Eval), |settings| settings.epochs = 1);
    workspace.run(&config, "run", false, &mut Silent).expect("trained");
    let checkpoint = workspace.path("run").join(run_dir::CHECKPOINT);
    let bytes = fs::read(&checkpoint).expect("a checkpoint");
    fs::write(&checkpoint, &bytes[..bytes.len() / 2]).expect("written");
    let more = with(&config, |settings| settings.epochs = 2);
    let error = workspace.run(&more, "run", true, &mut Silent).expect_err("damaged").to_string();
    assert!(error.contains("checkpoint.safetensors"), "{error}");
    // With the file restored, the run continues beyond the epochs first asked for.
    fs::write(&checkpoint, bytes).expect("written");
    assert_eq!(workspace.run(&more, "run", true, &mut Silent).expect("trained").epochs.len(), 2);
}

#[test]
fn a_service_that_ends_is_an_error_at_once() {
    let workspace = Workspace::new();
    let config = workspace.config(Method::Eval);
    let folder = workspace.path("run");
    let service = Some(Path::new("/bin/false"));
    let run = TrainingRun { service, ..TrainingRun::new(&config, &folder) };
    let error = run.train(&mut Silent).expect_err("no service").to_string();
    assert!(error.contains("ended before its first batch"), "{error}");
}

/// The run overfits its few samples, so that the best epoch is not the last. Both networks are available.
#[test]
fn the_network_is_that_of_the_best_epoch() {
    let workspace = Workspace::new();
    let options = ["--epochs", "8", "--learning-rate", "0.02", "--decay", "1"];
    let output = workspace.command("run", &options).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let run = workspace.path("run");
    let written = outcome_of(&run);
    let losses: Vec<f64> = written.epochs.iter().map(|epoch| epoch.validation_loss).collect();
    let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).expect("epochs");
    assert!(best + 1 < losses.len(), "the last epoch should not be the best: {losses:?}");
    assert_eq!((written.best_epoch, written.validation_loss), (best as u32 + 1, losses[best]));
    assert!(text.contains(&format!("network of epoch {} of 8, the best, in", best + 1)), "{text}");
    assert!(text.contains(&format!("the last epoch's, validation loss {:.6}, in", losses[7])), "{text}");
    let quantised = |name: &str| {
        let float = net::load_float(&run.join(name)).expect("weights").0;
        net::quantise(&float, &Scheme::stockfish()).expect("fits")
    };
    let load = |name: &str| NetFile::load(&run.join(name)).expect("a network").net;
    assert!(
        load(run_dir::NETWORK) == quantised(run_dir::BEST) && load(run_dir::LAST) == quantised(run_dir::CHECKPOINT)
    );
    assert!(load(run_dir::NETWORK) != load(run_dir::LAST));
    let networks = [run_dir::NETWORK, run_dir::LAST].map(|name| fs::read(run.join(name)).expect("a network"));
    check_conversions(&workspace, &networks);
    check_evaluations(&run);
    // A learning rate that moves nothing leaves the network as it was.
    for (more, expected) in [&[][..], &["--last"]].into_iter().zip(&networks) {
        let mut command = workspace.command("begun", &["--epochs", "1", "--learning-rate", "1e-30", "--force"]);
        assert!(command.arg("--start").arg(&run).args(more).output().expect("runs").status.success());
        assert!(fs::read(workspace.path("begun").join(run_dir::NETWORK)).expect("a network") == *expected, "{more:?}");
    }
}

fn outcome_of(run: &Path) -> TrainOutcome {
    common::content_as(&fs::read(run.join(run_dir::OUTCOME)).expect("an outcome"))
}

/// Checks what `net convert` makes of the directory `run`: its best network, the last one with `--last`, and of a
/// checkpoint the quantised network. `networks`: the bytes of the best network and of the last one.
fn check_conversions(workspace: &Workspace, [best, last]: &[Vec<u8>; 2]) {
    let to = workspace.path("converted.safetensors");
    for (from, more, expected) in [
        ("", &[][..], best),
        ("", &["--last"], last),
        (run_dir::BEST, &[], best),
        (run_dir::CHECKPOINT, &["--scheme", "stockfish"], last),
    ] {
        let files = [&workspace.path("run").join(from), &to];
        let output = Command::new(PROGRAM).args(["net", "convert"]).args(files).args(more).output().expect("runs");
        assert!(output.status.success(), "{}", error_of(&output));
        assert!(fs::read(&to).expect("a network") == *expected, "{from} {more:?}");
        fs::remove_file(&to).expect("removed");
    }
}

/// Checks that `eval` takes the same networks from a run's directory.
fn check_evaluations(run: &Path) {
    let evaluated = |net: &Path, more: &[&str]| {
        let fen = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";
        let output = Command::new(PROGRAM).args(["eval", "--fen", fen, "--net"]).arg(net).args(more).output();
        let output = output.expect("runs");
        (output.status.code(), output.stdout)
    };
    assert_eq!(evaluated(run, &[]), evaluated(&run.join(run_dir::NETWORK), &[]));
    assert_eq!(evaluated(run, &["--last"]), evaluated(&run.join(run_dir::LAST), &[]));
    assert_eq!(evaluated(&run.join(run_dir::LAST), &["--last"]).0, Some(2));
}
