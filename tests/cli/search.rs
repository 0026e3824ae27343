//! `fsbench search`: a whole search on a few games.

use serde_json::Value;

use super::common::{pgn, random_game};
use super::workspace::Workspace;

const SEARCH: &str = r#"
name  = "found"
data  = "games.fsd"
seeds = [1]
[train]
l1            = 8
hidden        = [4]
batch_size    = 256
epochs        = 1
learning_rate = 0.01
decay         = 1
validation    = 0.2
threads       = 1
device        = "cpu"
[[runs]]
method = "pqr"
sets   = ["axis-h"]
[measure.speed]
positions   = 200
repetitions = 2
seconds     = 0.005
[match]
equal_cost = 20
pairs      = 4
[search]
hours     = 1
rounds    = 1
samples   = 500
finalists = 1
final     = 0.2
blocks    = ["axis-v", "axis-d1"]
"#;

#[test]
fn a_search_leaves_its_tree_and_can_be_resumed() {
    let workspace = Workspace::new();
    workspace.write("games.pgn", &pgn(&(0..60).map(|game| random_game(game, 40)).collect::<Vec<_>>()));
    workspace.stdout(&["dataset", "build", "games.pgn", "--method", "pqr", "--out", "games.fsd"]);
    workspace.write("search.toml", SEARCH);
    let json = workspace.stdout(&["search", "search.toml", "--out", "results", "--format", "json"]);
    let done: Value = serde_json::from_str(&json).unwrap();
    let search = &done["search"];
    let candidates = search["rounds"][0]["candidates"].as_array().unwrap();
    let changes: Vec<_> = candidates.iter().map(|candidate| candidate["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["plus axis-v", "plus axis-d1"]);
    assert!(candidates.iter().all(|one| one["liftings"][0]["samples"] == 500 && one["screen"]["features"].is_u64()));
    let played: Vec<_> = candidates.iter().filter(|candidate| candidate["played"].is_object()).collect();
    assert_eq!(played.len(), 1, "{search}");
    assert!(search["stopped"].is_string());
    for file in ["report.html", "report.md", "report.txt"] {
        let report = std::fs::read_to_string(workspace.path("results").join(file)).unwrap();
        assert!(report.contains("Round 1: changes of axis-h"), "{file}");
    }
    assert!(workspace.path("results/plots/search.svg").is_file());
    // `run` is the same command, and finds everything done.
    let again = workspace.stdout(&["run", "search.toml", "--out", "results", "--format", "json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["search"], done["search"]);

    let refused = workspace.refused(&["search", "search.toml", "--only", "axis-h"], 2);
    assert!(refused.contains("leave --only and --without out"), "{refused}");
    let (rows, _) = SEARCH.split_once("[measure.speed]").unwrap();
    workspace.write("rows.toml", rows);
    let refused = workspace.refused(&["search", "rows.toml"], 2);
    assert!(refused.contains("no table [search]"), "{refused}");
}
