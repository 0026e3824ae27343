//! Rows and their labels, and mistakes that are reported before anything runs.

use super::*;
use crate::features::FeatureSet;

/// The experiment with other rows.
fn with_rows(rows: &str) -> String {
    let (head, rest) = TEXT.split_once("[[runs]]").expect("rows");
    let (_, measures) = rest.split_once("[measure.updates]").expect("measures");
    format!("{head}{rows}\n[measure.updates]{measures}")
}

const SWEEP: &str = "[[runs]]\nmethod = \"eval\"\nsets = [\"piece\", \"compact\"]\n\
    [[runs]]\nmethod = \"eval\"\nlabel = \"{set}, l1 16\"\nsets = [\"piece\", \"compact\"]\ntrain = { l1 = 16 }\n\
    [[runs]]\nmethod = \"eval\"\nlabel = \"wide\"\nsets = [\"piece\"]\ntrain = { l1 = 32 }\n";

#[test]
fn a_set_can_appear_in_several_rows() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let text = with_rows(SWEEP);
    let results = folder.run(&text, &mut executor).expect("done");
    let labels: Vec<&str> = results.study.rows.iter().map(|row| row.set.as_str()).collect();
    assert_eq!(labels, ["piece", "compact", "piece, l1 16", "compact, l1 16", "wide"]);
    let wide = &results.study.rows[4];
    assert_eq!((wide.definition.as_deref(), &wide.train), (Some("piece"), &Some(serde_json::json!({ "l1": 32 }))));
    // Every row is trained once per seed under its own label; the updates of a set are measured once.
    let of = |label: &str| results.runs.iter().filter(|run| run.key.set == label).count();
    assert!(labels.iter().all(|label| of(label) == 2), "{labels:?}");
    assert_eq!(executor.calls["train piece Eval 1"], 3);
    assert_eq!((executor.calls["updates piece"], results.updates.len()), (1, 5));
    // The speed is measured for each row's own network; a second run measures nothing.
    assert_eq!(results.speed.len(), 5);
    let calls = executor.calls.clone();
    assert_eq!((folder.run(&text, &mut executor).expect("done"), executor.calls), (results, calls));
}

/// Rows that differ only in their label share their runs.
#[test]
fn equal_rows_are_trained_once() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let rows = "[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n\
        [[runs]]\nmethod = \"eval\"\nlabel = \"again\"\nsets = [\"piece\"]\n";
    let results = folder.run(&with_rows(rows), &mut executor).expect("done");
    assert_eq!((executor.calls["train piece Eval 1"], executor.calls["train piece Eval 2"]), (1, 1));
    let keys: Vec<_> = results.runs.iter().map(|run| run.key.to_string()).collect();
    let expected = ["piece by eval, seed 1", "again by eval, seed 1", "piece by eval, seed 2", "again by eval, seed 2"];
    assert_eq!(keys, expected);
}

#[test]
fn selections_name_labels_or_sets() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let text = with_rows(SWEEP).replace("methods = [\"eval\"]", "sets = [\"wide\"]");
    let results = folder.run(&text, &mut executor).expect("done");
    let timed: Vec<&str> = results.speed.iter().map(|result| result.key.set.as_str()).collect();
    assert_eq!(timed, ["piece", "wide"], "beside the first row's network");
    let text = with_rows(SWEEP).replace("methods = [\"eval\"]", "sets = [\"piece\"]");
    let results = ExperimentFolder::new().run(&text, &mut FakeExecutor::default()).expect("done");
    let timed: Vec<&str> = results.speed.iter().map(|result| result.key.set.as_str()).collect();
    assert_eq!(timed, ["piece", "piece, l1 16", "wide"]);
}

#[test]
fn labels_are_unique() {
    let refused = |rows: &str, expected: &str| {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor::default();
        let error = folder.run(&with_rows(rows), &mut executor).expect_err(rows);
        assert!(error.is_request() && error.to_string().contains(expected), "{error}");
        assert!(executor.calls.is_empty());
    };
    let row = |label: &str, set: &str| format!("[[runs]]\nmethod = \"eval\"\nlabel = \"{label}\"\nsets = [{set}]\n");
    refused(&(row("a", "\"piece\"") + &row("a", "\"compact\"")), "the label 'a' appears twice");
    refused(&row("a", "\"piece\", \"compact\""), "{set}");
    refused(&row(" ", "\"piece\""), "one line of text");
    refused(&(row("compact", "\"piece\"") + "[[runs]]\nmethod = \"pqr\"\nsets = [\"compact\"]\n"), "to two sets");
    refused("[[runs]]\nmethod = \"eval\"\nsets = [\"piece\", \"piece\"]\n", "label = \"piece, l1 128\"");
}

/// Mistakes are reported with their position before anything is built or trained.
#[test]
fn impossible_measures_are_refused_at_once() {
    let refused = |from: &str, to: &str, place: &str, expected: &str| {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor::default();
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT);
        let error = folder.run(&text, &mut executor).expect_err(to).to_string();
        assert!(error.contains(&format!("e.toml:{place}: ")) && error.contains(expected), "{error}");
        assert!(executor.calls.is_empty() && !folder.options().work.exists(), "{to}: work was begun");
    };
    refused("games = 10", "games = 0", "21:1", "games must be at least 1");
    refused("games = 10", "sets = [\"king-piece\"]", "21:1", "no run uses the set 'king-piece'");
    refused("seeds   = [1]", "seeds = [3]", "25:1", "no run has the seed 3");
    refused("seeds   = [1]", "seconds = -1.0", "25:1", "seconds must lie");
    refused("seeds   = [1]", "repetitions = 1", "25:1", "repetitions must be at least 2");
    refused("seeds   = [1]", "positions = 0", "25:1", "positions must be at least 1");
    refused("[train]", "[dataset.eval]\nper_game = 0\n[train]", "6:1", "samples per game must be at least 1");
}

/// A file beside the experiment, given by name or by path, takes precedence over a shipped set.
#[test]
fn sets_beside_the_experiment_take_precedence() {
    let folder = ExperimentFolder::new();
    let experiment = folder.experiment(TEXT).expect("an experiment");
    let request = |written: &str| experiment.set_request(written).expect("a set");
    assert_eq!([request("piece"), request("piece + compact")], ["piece", "piece + compact"]);
    let path = folder.folder.path().join("piece.toml");
    std::fs::write(&path, "features = \"file(P) for P in pieces\"").expect("written");
    let expected = path.display().to_string();
    assert_eq!([request("piece"), request("piece.toml")], [expected.clone(), expected]);
    // In an expression too: 8 features of the file beside and 192 of the shipped set.
    let set = FeatureSet::resolve(&request("piece + compact")).expect("a set");
    assert_eq!((set.name(), set.num_features()), ("piece + compact", 8 + 192));
    assert_eq!(request("compact + axis-h"), "compact + axis-h");
}

/// The experiment with a sweep, and rows of two sets by eval.
fn with_sweep(sweep: &str) -> String {
    let rows = "[[runs]]\nmethod = \"eval\"\nsets = [\"piece\", \"compact\"]\n";
    format!("{}\n[sweep]\n{sweep}", with_rows(rows))
}

#[test]
fn a_sweep_trains_every_row_at_every_grid_point() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let text = with_sweep("l1 = [8, 16]\nhidden = [[4], [4, 4]]");
    let results = folder.run(&text, &mut executor).expect("done");
    let rows: Vec<_> = results.study.rows.iter().map(|row| (row.name(), row.group.as_deref())).collect();
    let mut expected = Vec::new();
    for group in ["hidden 4, l1 8", "hidden 4, l1 16", "hidden 4-4, l1 8", "hidden 4-4, l1 16"] {
        expected.extend([("piece", Some(group)), ("compact", Some(group))]);
    }
    assert_eq!(rows, expected);
    assert_eq!(results.study.rows[3].set, "compact, hidden 4, l1 16");
    assert_eq!(results.study.rows[3].train, Some(serde_json::json!({ "hidden": [4], "l1": 16 })));
    // Eight rows and two seeds; a set's updates are counted once.
    assert_eq!((results.runs.len(), executor.calls["train piece Eval 1"], executor.calls["updates piece"]), (16, 4, 1));
    // The name without the swept settings means every row of the set.
    let named = text.replace("methods = [\"eval\"]", "sets = [\"compact\"]");
    let results = ExperimentFolder::new().run(&named, &mut FakeExecutor::default()).expect("done");
    let timed: Vec<&str> = results.speed.iter().map(|result| result.key.set.as_str()).collect();
    assert_eq!(timed.len(), 5);
    assert!(timed[0] == results.study.rows[0].set && timed[1..].iter().all(|set| set.starts_with("compact, hidden 4")));
}

/// A second method has data of its own, and changes the run.
#[test]
fn rows_can_learn_by_two_methods() {
    let rows = "[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n\
                label = \"both\"\nsecond = { method = \"pqr\", weight = 0.5 }\n";
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let experiment = folder.experiment(&with_rows(rows)).expect("an experiment");
    let plan = Plan::new(&experiment, &executor).expect("a plan");
    assert_eq!(plan.datasets.iter().map(|samples| samples.method).collect::<Vec<_>>(), [Method::Eval, Method::Pqr]);
    let config = plan.runs[1].config(&plan.sets[1], "eval.fsd".into(), "pqr.fsd".into());
    let second = config.second.expect("two methods");
    assert_eq!((second.method, second.weight, second.data), (Method::Pqr, 0.5, DataFiles::from("pqr.fsd")));
    assert!(plan.runs[0].config(&plan.sets[0], "eval.fsd".into(), "pqr.fsd".into()).second.is_none());
    let results = folder.run(&with_rows(rows), &mut executor).expect("done");
    let trained: u32 =
        executor.calls.iter().filter(|(name, _)| name.starts_with("train")).map(|(_, count)| count).sum();
    assert_eq!((trained, results.runs.len()), (2 * results.study.rows[0].seeds.len() as u32, trained as usize));

    let refused = |second: &str| {
        let rows = rows.replace("{ method = \"pqr\", weight = 0.5 }", second);
        folder.experiment(&with_rows(&rows)).expect_err(second).to_string()
    };
    assert!(refused("{ method = \"eval\", weight = 0.5 }").contains("must be another than eval"));
    assert!(refused("{ method = \"pqr\", weight = 0.0 }").contains("must be above 0"));
}

/// A sweep of one set compares the settings.
#[test]
fn a_sweep_of_one_set_is_one_comparison() {
    let text = with_sweep("l1 = [8, 16]").replace(", \"compact\"", "");
    let experiment = ExperimentFolder::new().experiment(&text).expect("an experiment");
    let rows: Vec<(&str, &str, &str)> =
        experiment.rows.iter().map(|row| (row.label.as_str(), row.name.as_str(), row.group.as_str())).collect();
    assert_eq!(rows, [("piece, l1 8", "piece, l1 8", ""), ("piece, l1 16", "piece, l1 16", "")]);
}

#[test]
fn a_sweep_over_methods_replaces_the_rows_method() {
    let rows = "[[runs]]\nsets = [\"piece\"]\n";
    let text = format!("{}\n[sweep]\nmethod = [\"eval\", \"pqr\"]\n", with_rows(rows));
    let results = ExperimentFolder::new().run(&text, &mut FakeExecutor::default()).expect("done");
    let rows: Vec<_> = results.study.rows.iter().map(|row| (row.set.as_str(), row.method, &row.group)).collect();
    assert_eq!(rows, [("piece", Method::Eval, &None), ("piece", Method::Pqr, &None)]);
}

#[test]
fn impossible_sweeps_are_refused_at_once() {
    let refused = |sweep: &str, expected: &str| {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor::default();
        let error = folder.run(&with_sweep(sweep), &mut executor).expect_err(sweep);
        assert!(error.is_request() && error.to_string().contains(expected), "{error}");
        assert!(executor.calls.is_empty() && !folder.options().work.exists(), "{sweep}: work was begun");
    };
    refused("l1 = 16", "l1 must list its values");
    refused("l1 = [0]", "an accumulator is 1 to 65536 wide, not 0");
    refused("method = [\"eval\", \"pqr\"]", "needs [[runs]] without method");
    refused("no_such_key = [1, 2]", "no_such_key");
    let many: Vec<String> = (1..=100).map(|value| value.to_string()).collect();
    let list = many.join(", ");
    let grid = format!("l1 = [{list}]\nbatch_size = [{list}]\nepochs = [{list}]");
    refused(&grid, "4000000 trainings; the limit is 10000");
    refused("l1 = [8, 16]\n[sweep.eval_loss]\nlambda = [1.5]", "λ must lie between 0 and 1");
}

/// Rows of one method can have different samples; the method's own stand first.
#[test]
fn rows_can_have_samples_of_their_own() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let rows = |quantile: &str| {
        with_rows(&format!(
            "[dataset.eval]\nmin_ply = 12\n[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n[[runs]]\n\
             method = \"eval\"\n\
             sets = [\"piece\"]\nlabel = \"many moves\"\ndataset = {{ min_moves_quantile = {quantile} }}\n"
        ))
    };
    let plan = Plan::new(&folder.experiment(&rows("0.5")).expect("an experiment"), &executor).expect("a plan");
    let samples: Vec<_> = plan.datasets.iter().map(|samples| (samples.min_ply, samples.min_moves_quantile)).collect();
    assert_eq!(samples, [(12, None), (12, Some(0.5))]);
    assert_eq!(plan.runs.iter().map(|run| run.data).collect::<Vec<_>>(), [0, 1, 0, 1]);
    let results = folder.run(&rows("0.5"), &mut executor).expect("done");
    assert_eq!(executor.calls["train piece Eval 1"], 2, "two runs");
    let [plain, own] = &results.study.rows[..] else { panic!("two rows") };
    assert!(plain.has_loss_of(plain) && !plain.has_loss_of(own));
    let error = folder.run(&rows("1.0"), &mut executor).expect_err("too large").to_string();
    assert!(error.contains("quantile of legal moves must lie between 0 and 1"), "{error}");
}

/// A row's runs begin with the networks of an earlier row, seed by seed, and are trained again when these are.
#[test]
fn rows_can_begin_with_an_earlier_row() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let rows = |epochs: u32, start: &str| {
        with_rows(&format!(
            "[[runs]]\nmethod = \"eval\"\nsets = [\"piece\", \"compact\"]\ntrain = {{ epochs = {epochs} }}\n\
             [[runs]]\nmethod = \"pqr\"\nlabel = \"tuned {{set}}\"\nsets = [\"piece\", \"compact\"]\n\
             start_row = \"{start}\"\n"
        ))
    };
    let error = folder.run(&rows(2, "tuned {set}"), &mut executor).expect_err("no earlier row").to_string();
    assert!(error.contains("no earlier row is called 'tuned piece'; there are piece, compact"), "{error}");
    assert!(executor.calls.is_empty());
    folder.run(&rows(2, "{set}"), &mut executor).expect("done");
    assert_eq!(executor.starts["train piece Pqr 2"], "eval-piece-seed2");
    assert_eq!(executor.starts["train compact Pqr 1"], "eval-compact-seed1");
    let trainings = |executor: &FakeExecutor| -> u32 {
        executor.calls.iter().filter(|(name, _)| name.contains("Pqr") && name.contains("train")).map(|(_, n)| n).sum()
    };
    assert_eq!(trainings(&executor), 4);
    folder.run(&rows(2, "{set}"), &mut executor).expect("done");
    assert_eq!(trainings(&executor), 4, "nothing has changed");
    folder.run(&rows(3, "{set}"), &mut executor).expect("done");
    assert_eq!(trainings(&executor), 8, "the networks to begin with have changed");
    let options = RunnerOptions { only: Some("tuned piece".into()), ..folder.options() };
    let experiment = folder.experiment(&rows(4, "{set}")).expect("read");
    let error = Runner::run(&experiment, &mut executor, &options, &mut RecordingMonitor::default());
    let error = error.expect_err("the row to begin with is not trained").to_string();
    assert!(error.contains("begins with the network of the training piece"), "{error}");
}

/// Runs that begin with a network are other runs than runs with random weights, and depend on the file's content only.
#[test]
fn rows_can_begin_with_a_network() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let rows = |start: &str| {
        with_rows(&format!(
            "[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n\
             [[runs]]\nmethod = \"eval\"\nlabel = \"tuned\"\nsets = [\"piece\"]\nstart = \"{start}\"\n"
        ))
    };
    let error = folder.run(&rows("net.safetensors"), &mut executor).expect_err("no file").to_string();
    assert!(error.contains("e.toml:20:9: no file net.safetensors"), "{error}");
    assert!(executor.calls.is_empty());
    for name in ["net.safetensors", "copy.safetensors"] {
        std::fs::write(folder.folder.path().join(name), "one").expect("written");
    }
    folder.run(&rows("net.safetensors"), &mut executor).expect("done");
    assert_eq!(executor.calls["train piece Eval 1"], 2, "from random weights and from the network");
    folder.run(&rows("copy.safetensors"), &mut executor).expect("done");
    assert_eq!(executor.calls["train piece Eval 1"], 2, "the same network");
    std::fs::write(folder.folder.path().join("copy.safetensors"), "two").expect("written");
    folder.run(&rows("copy.safetensors"), &mut executor).expect("done");
    assert_eq!(executor.calls["train piece Eval 1"], 3, "another network");
}
