//! `fsbench run`, `fsbench runs`, and trainings that are resumed in another folder.

use std::path::Path;

use serde_json::Value;

use super::common::{self, pgn, random_game};
use super::workspace::{Workspace, stderr};

/// An experiment that trains for a moment on few games.
const EXPERIMENT: &str = r#"
name  = "small"
data  = "games.fsd"
seeds = [1]
[train]
l1            = 8
hidden        = [4]
batch_size    = 256
epochs        = 1
learning_rate = 0.01
decay         = 0.5
validation    = 0.2
threads       = 1
device        = "cpu"
[[runs]]
method = "pqr"
sets   = ["own"]
[[runs]]
method = "pqr"
label  = "own, wider"
sets   = ["own"]
train  = { l1 = 16 }
[measure.updates]
games = 5
"#;

/// A workspace with an experiment, its data and its feature set in the folder `proj`.
pub fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("games.pgn", &pgn(&(0..60).map(|game| random_game(game, 40)).collect::<Vec<_>>()));
    workspace.write("proj/small.toml", EXPERIMENT);
    workspace.write("proj/own.toml", "features = \"file(P) * role(P) * color(P) for P in pieces\"\n");
    workspace.stdout(&["dataset", "build", "games.pgn", "--method", "pqr", "--out", "proj/games.fsd"]);
    workspace
}

/// Finished runs are recognised by the contents of data and sets, not by paths, so any folder gives the same runs.
#[test]
fn finished_runs_are_recognised_from_another_folder() {
    let workspace = workspace();
    let json = workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--format", "json"]);
    let done: Value = serde_json::from_str(&json).unwrap();
    let networks = done["networks"].as_array().unwrap();
    assert_eq!(networks.len(), 2);
    let labels: Vec<_> = networks.iter().map(|run| run["set"].as_str().unwrap()).collect();
    assert_eq!(labels, ["own", "own, wider"]);
    for run in networks {
        let link = run["link"].as_str().unwrap();
        let network = run["network"].as_str().unwrap();
        assert_eq!(std::fs::read_link(workspace.path(link)).unwrap().to_str(), Some(network));
        workspace.stdout(&["net", "info", link]);
    }
    let below = |arguments: &[&str]| workspace.command(arguments).current_dir(workspace.path("proj")).output().unwrap();
    let again = below(&["run", "small.toml", "--out", "../results"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(stderr(&again).contains("skipped steps (finished or not requested): 6"), "{}", stderr(&again));

    let runs: Value = serde_json::from_str(&workspace.stdout(&["runs", "--format", "json"])).unwrap();
    let runs = runs["runs"].as_array().unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| run["finished"] == true && run["bytes"].as_u64() > Some(1000)));
    let results = workspace.path("results").canonicalize().unwrap();
    for run in runs {
        let users = run["used_by"].as_array().unwrap();
        assert_eq!(users.len(), 1, "{run}");
        assert_eq!(std::path::Path::new(users[0].as_str().unwrap()).canonicalize().unwrap(), results);
    }
    // Used runs are not removed.
    assert_eq!(workspace.stdout(&["runs", "--remove", "--yes"]).lines().last(), Some("removed 0 runs, 0 B"));
    std::fs::remove_dir_all(results).unwrap();
    let complaint = workspace.refused(&["runs", "--remove"], 2);
    assert!(complaint.contains("give --yes"), "{complaint}");
    let removed: Value =
        serde_json::from_str(&workspace.stdout(&["runs", "--remove", "--yes", "--format", "json"])).unwrap();
    assert_eq!((removed["removed"].as_array().unwrap().len(), removed["runs"].as_array().unwrap().len()), (2, 0));
    assert!(!std::path::Path::new(networks[0]["network"].as_str().unwrap()).exists());
}

#[test]
fn a_training_resumes_with_the_same_data_under_another_name() {
    let workspace = workspace();
    let train = |data: &str, more: &[&str]| {
        let mut arguments =
            vec!["train", "own.toml", "--method", "pqr", "--l1", "8", "--batch-size", "256", "--data", data];
        arguments.extend(["--threads", "1", "--device", "cpu", "--out", "../run"]);
        arguments.extend(more);
        workspace.command(&arguments).current_dir(workspace.path("proj")).output().unwrap()
    };
    let first = train("games.fsd", &["--epochs", "1"]);
    assert!(first.status.success(), "{}", stderr(&first));
    std::fs::create_dir(workspace.path("other")).unwrap();
    std::fs::copy(workspace.path("proj/games.fsd"), workspace.path("other/same.fsd")).unwrap();
    let more = train("../other/same.fsd", &["--epochs", "2", "--resume"]);
    assert!(more.status.success(), "{}", stderr(&more));
    // Other samples under the old name are refused.
    workspace.write("games.pgn", &pgn(&(100..160).map(|game| random_game(game, 40)).collect::<Vec<_>>()));
    workspace.stdout(&["dataset", "build", "games.pgn", "--method", "pqr", "--out", "proj/games.fsd", "--force"]);
    let changed = train("games.fsd", &["--epochs", "3", "--resume"]);
    assert_eq!(changed.status.code(), Some(2));
    let complaint = stderr(&changed);
    assert!(complaint.contains("the contents of its data have changed"), "{complaint}");
}

#[test]
fn the_version_names_the_commit() {
    let version = Workspace::new().stdout(&["--version"]);
    let commit = env!("FSBENCH_COMMIT");
    let number = env!("CARGO_PKG_VERSION");
    let expected = if commit.is_empty() { number.to_owned() } else { format!("{number} ({commit})") };
    assert_eq!(version, format!("fsbench {expected}\n"));
}

/// Two rows and two seeds: the validation is kept by game, compared in pairs, and repeated if it is lost.
#[test]
fn an_experiment_compares_its_sets_by_game() {
    let workspace = workspace();
    workspace.write("proj/small.toml", &EXPERIMENT.replace("seeds = [1]", "seeds = [1, 2]"));
    let run = || -> Value {
        let json = workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--format", "json"]);
        serde_json::from_str(&json).unwrap()
    };
    let document = run();
    let comparisons = &document["methods"][0]["comparisons"];
    let pairs = comparisons["pairs"].as_array().unwrap();
    let measures: Vec<&str> = pairs.iter().map(|pair| pair["measure"].as_str().unwrap()).collect();
    assert_eq!(measures, ["loss", "accuracy"]);
    for pair in pairs {
        assert_eq!((&pair["set"], &pair["against"]), (&"own, wider".into(), &"own".into()));
        let [difference, low, high] = ["difference", "low", "high"].map(|name| pair[name].as_f64().unwrap());
        assert!(low < difference && difference < high, "{pair}");
        let expected = if low > 0.0 || high < 0.0 { "better or worse" } else { "not_distinguished" };
        assert!(expected.contains(pair["statement"].as_str().unwrap()), "{pair}");
        assert_eq!(pair["seeds"], 2, "{pair}");
    }
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(workspace.path("results").join(name)).unwrap()).unwrap()
    };
    // The sums by game add up to the losses of the trainings.
    let validation = read("validation.json");
    let runs = read("runs.json");
    let means = |records: &Value, loss: &dyn Fn(&Value) -> f64| -> Vec<f64> {
        records.as_array().unwrap().iter().map(loss).collect()
    };
    let by_game = means(&validation, &|result| result["record"]["loss"].as_f64().unwrap());
    let trained = means(&runs, &|run| run["validation_loss"].as_f64().unwrap());
    assert_eq!(by_game.len(), 4);
    assert!(by_game.iter().zip(&trained).all(|(a, b)| (a / b - 1.0).abs() < 1e-6), "{by_game:?} {trained:?}");
    let ratio = (by_game[1] * by_game[3] / (by_game[0] * by_game[2])).sqrt();
    let found = pairs[0]["difference"].as_f64().unwrap();
    assert!((found - 100.0 * (ratio - 1.0)).abs() < 1e-3, "{found} {ratio}");
    let text = std::fs::read_to_string(workspace.path("results/report.txt")).unwrap();
    assert!(text.contains("Pairs: loss, %") && text.contains("own, wider vs own"), "{text}");

    // Lost losses are computed again, with the same bytes and without a training.
    let file = "results/validation/pqr-own__wider-";
    let files = || {
        let entries = std::fs::read_dir(workspace.path("results/validation")).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = files();
    assert!(before.len() == 4 && before.iter().any(|(path, _)| path.display().to_string().contains(file)));
    let folder = Path::new(document["networks"][1]["folder"].as_str().unwrap()).to_owned();
    std::fs::remove_file(folder.join("validation.parquet")).unwrap();
    std::fs::remove_dir_all(workspace.path("results/validation")).unwrap();
    let again = workspace.run(&["run", "proj/small.toml", "--out", "results"]);
    let steps = stderr(&again);
    assert!(steps.contains("[1/1] validation of own, wider by pqr, seed 1 by game"), "{steps}");
    assert_eq!((files(), read("validation.json")), (before, validation));

    // Results without the losses report without comparisons, and say so.
    std::fs::remove_file(workspace.path("results/validation.json")).unwrap();
    let report = workspace.stdout(&["report", "results"]);
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!report.contains("Pairs:") && words.contains("no validation losses by game"), "{report}");
    // A damaged file is named.
    run();
    let (path, bytes) = files().swap_remove(0);
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let complaint = workspace.refused(&["report", "results"], 2);
    assert!(complaint.contains(path.file_name().unwrap().to_str().unwrap()), "{complaint}");
}

/// A process that finds its step done does not read the samples of a `.fsd` file; one that does a step checks those
/// that it uses.
#[test]
fn steps_check_the_samples_that_they_use() {
    let workspace = workspace();
    let data = workspace.path("proj/games.fsd");
    let whole = std::fs::read(&data).unwrap();
    let damage = || {
        let mut bytes = whole.clone();
        bytes[300] ^= 1;
        std::fs::write(&data, bytes).unwrap();
    };
    damage();
    let run = ["run", "proj/small.toml", "--out", "results"];
    let steps: Value = serde_json::from_str(&workspace.stdout(&[&run[..], &["--list-steps"]].concat())).unwrap();
    let step = |kind: &str| {
        let step = steps.as_array().unwrap().iter().find(|step| step["kind"] == kind).unwrap();
        [&run[..], &["--step", step["key"].as_str().unwrap()]].concat()
    };
    for kind in ["train", "validation", "updates"] {
        let complaint = workspace.refused(&step(kind), 1);
        assert!(complaint.contains("games.fsd") && complaint.contains("checksum"), "{complaint}");
        std::fs::write(&data, &whole).unwrap();
        workspace.stdout(&step(kind));
        damage();
        workspace.stdout(&step(kind));
    }
}

/// Two rows, one seed, few pairs: matches are played, kept, resumed after a kill, and reported.
#[test]
fn an_experiment_plays_matches() {
    let workspace = workspace();
    let matches = "[match]\nnodes = 60\nequal_cost = 60\npairs = 3\nhash = 1\nconcurrency = 2\n";
    workspace.write("proj/small.toml", &format!("{EXPERIMENT}{matches}"));
    let run = || -> Value {
        let json = workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--format", "json"]);
        serde_json::from_str(&json).unwrap()
    };
    let document = run();
    let rows = document["methods"][0]["rows"].as_array().unwrap();
    assert!(rows[0]["strength"]["elo_equal_nodes"].is_null(), "the reference");
    let strength = &rows[1]["strength"];
    assert!(strength["nps"].as_f64().unwrap() > 0.0, "{strength}");
    for name in ["elo_equal_nodes", "elo_equal_cost", "elo_by_cost"] {
        assert!(strength[name]["interval"].as_f64().unwrap() > 0.0, "{name}: {strength}");
    }
    assert_eq!(strength["games"], serde_json::json!([6, 6]));
    let conditions = document["match_conditions"].as_str().unwrap();
    assert!(conditions.contains("60 nodes per move") && conditions.contains("One trained seed played"), "{conditions}");

    let read =
        || -> Value { serde_json::from_slice(&std::fs::read(workspace.path("results/match.json")).unwrap()).unwrap() };
    let records = read();
    let [nodes, cost] = &records.as_array().unwrap()[..] else { panic!("{records}") };
    assert_eq!((nodes["set"].as_str(), nodes["reference"].as_str()), (Some("own, wider"), Some("own")));
    assert_eq!(nodes["record"]["player"]["node_limit"], 60);
    let ratio = cost["record"]["cost"]["ratio"].as_f64().unwrap();
    assert_eq!(cost["record"]["player"]["node_limit"].as_u64().unwrap(), (60.0 * ratio).round().max(1.0) as u64);
    assert_eq!(cost["record"]["reference_player"]["node_limit"], 60);
    assert_eq!(nodes["record"]["conditions"]["openings"]["count"], 2_000, "the openings that come with fsbench");

    // The journals and games are in the work folder, with the run whose network played.
    let folder = Path::new(document["networks"][1]["folder"].as_str().unwrap()).join("matches");
    let played: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(played.len(), 2);
    for game in &played {
        assert_eq!(std::fs::read_to_string(game.join("games.pgn")).unwrap().matches("[Round ").count(), 6);
    }
    // As after a kill during the match at equal nodes: two games are in its journal, and half a line.
    let is_at_equal_nodes = |path: &&std::path::PathBuf| !path.join("cost.json").exists();
    let journal = played.iter().find(is_at_equal_nodes).unwrap().join("games.journal");
    let text = std::fs::read_to_string(&journal).unwrap();
    let begun: String = text.split_inclusive('\n').take(3).collect();
    std::fs::write(&journal, format!("{begun}{{\"game\":5,")).unwrap();
    let finished = folder.parent().unwrap().with_file_name("finished");
    let mut removed = 0;
    for entry in std::fs::read_dir(finished).unwrap().map(|entry| entry.unwrap()) {
        let stored = common::content(&std::fs::read(entry.path()).unwrap());
        if stored["record"]["kind"] == "equal_nodes" {
            std::fs::remove_file(entry.path()).unwrap();
            removed += 1;
        }
    }
    assert_eq!(removed, 1, "the match at equal nodes is to be played again");
    run();
    let again = read();
    assert_eq!(again[0]["record"]["pairs"], nodes["record"]["pairs"]);
    assert_eq!(again[0]["record"]["games"], nodes["record"]["games"]);
    assert_eq!(again[1], *cost, "what was measured and played stands");
    assert!(std::fs::read_to_string(&journal).unwrap().starts_with(&begun), "its games were kept");

    // By the user's cost of a node, the wider network searches half the nodes.
    let own = format!("{EXPERIMENT}{matches}cost = {{ \"own, wider\" = 2.0 }}\n");
    workspace.write("proj/figures.toml", &own);
    let text = workspace.stdout(&["run", "proj/figures.toml", "--out", "figures"]);
    assert!(text.contains("By your figures: a node costs, against the first set's, own, wider 2"), "{text}");
    let played: Value = serde_json::from_slice(&std::fs::read(workspace.path("figures/match.json")).unwrap()).unwrap();
    assert_eq!((&played[0], &played[1]["record"]["player"]["node_limit"]), (&again[0], &Value::from(30)));

    // A wanted precision: the first stage of fifty pairs is enough.
    let to_width = "[match]\nnodes = 10\nhalf_width = 1000.0\nhash = 1\n";
    workspace.write("proj/small.toml", &format!("{EXPERIMENT}{to_width}"));
    let document = run();
    assert_eq!(document["methods"][0]["rows"][1]["strength"]["games"], serde_json::json!([100, 0]));
    let conditions = document["match_conditions"].as_str().unwrap();
    assert!(conditions.contains("biases Elo slightly"), "{conditions}");

    // An unusable book is refused at its place, before anything else is done.
    workspace.write("proj/book.epd", "no position\n");
    workspace.write("proj/small.toml", &format!("{EXPERIMENT}{matches}openings = \"book.epd\"\n"));
    let complaint = workspace.refused(&["run", "proj/small.toml", "--out", "results"], 2);
    assert!(complaint.contains("small.toml:31:12: the openings cannot be used"), "{complaint}");
}

/// What a preset says of the other method is left out, what the user says of it is refused.
#[test]
fn presets_serve_both_methods() {
    let workspace = Workspace::new();
    let games = pgn(&(0..60).map(|game| random_game(game, 40)).collect::<Vec<_>>()).replace('*', "1-0");
    let moves = |line: &str| line.split(' ').map(|mv| format!("{mv} {{ [%eval 0.4] }} ")).collect::<String>();
    let with_scores = |line: &str| match line.strip_suffix(" 1-0") {
        Some(line) => format!("{}1-0\n", moves(line)),
        None => format!("{line}\n"),
    };
    workspace.write("games.pgn", &games.lines().map(with_scores).collect::<String>());
    for preset in ["stockfish", "bullet", "thesis"] {
        for method in ["eval", "pqr"] {
            let out = format!("{preset}-{method}");
            let all = ["train", "piece", "--data", "games.pgn", "--preset", preset, "--method", method, "--out", &out];
            let small =
                ["--l1", "8", "--batch-size", "256", "--epoch-samples", "512", "--epochs", "1", "--read", "auto"];
            let text = workspace.stdout(&[&all[..], &small, &["--filter", "none", "--min-ply", "0"]].concat());
            assert!(text.contains("network of epoch 1 of 1"), "{text}");
            let refused =
                [&all[..], &small, &["--filter", "none", "--min-ply", "0", "--power", "2.2", "--force"]].concat();
            if method == "pqr" {
                assert!(workspace.refused(&refused, 2).contains("power (2.2) has no effect"));
            } else {
                workspace.stdout(&refused);
            }
        }
    }
}
