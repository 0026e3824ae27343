//! Matches in shards: their steps, the steps these need, and the games played.

use super::*;

/// The experiment without measures, with `[match]` and these lines.
fn text(lines: &str) -> String {
    let (runs, _) = TEXT.split_once("[measure.updates]").expect("measures");
    format!("{runs}[match]\nmethods = [\"eval\"]\nseeds = [1]\n{lines}\n")
}

fn played(executor: &FakeExecutor) -> Vec<&str> {
    let of_matches = |name: &&String| ["shard", "cost", "match"].iter().any(|kind| name.starts_with(kind));
    executor.calls.keys().filter(of_matches).map(|name| name.rsplit(' ').next().unwrap_or_default()).collect()
}

#[test]
fn shards_cover_the_match_and_come_before_it() {
    let folder = ExperimentFolder::new();
    let steps = folder.list(&text("nodes = 10\nequal_cost = 10\npairs = 7\nshard_pairs = 3"));
    let of = |kind: &str| steps.iter().filter(|step| step.kind == kind).collect::<Vec<_>>();
    let shards = of("match shard");
    let costs = of("match cost");
    let matches = of("match");
    assert_eq!((shards.len(), costs.len(), matches.len()), (6, 1, 2));
    let names: Vec<&str> = shards.iter().map(|step| step.name.split(" of the ").next().unwrap_or_default()).collect();
    assert_eq!(names, ["pairs 1 to 3", "pairs 4 to 6", "pairs 7 to 7"].repeat(2));
    assert!(costs[0].alone && matches.iter().chain(&shards).all(|step| !step.alone));
    // Two trainings, and the cost where it decides on the nodes; the match needs them and its shards.
    let needs: Vec<usize> = shards.iter().map(|step| step.needs.len()).collect();
    assert_eq!(needs, [2, 2, 2, 3, 3, 3]);
    assert!(matches.iter().all(|step| step.needs.len() == 2 + 3));
    // Without shards, the match measures the cost itself.
    let whole = folder.list(&text("nodes = 10\nequal_cost = 10\npairs = 7"));
    let alone: Vec<bool> = whole.iter().filter(|step| step.kind == "match").map(|step| step.alone).collect();
    assert_eq!(alone, [false, true]);
}

#[test]
fn a_match_is_one_result_however_it_is_divided() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    folder.run(&text("nodes = 10\npairs = 7\nshard_pairs = 3"), &mut executor).expect("done");
    assert_eq!(played(&executor), ["nodes", "0-3", "3-6", "6-7"]);
    // The result of the match is found whatever the shards.
    for lines in ["nodes = 10\npairs = 7", "nodes = 10\npairs = 7\nshard_pairs = 2"] {
        folder.run(&text(lines), &mut executor).expect("done");
    }
    assert_eq!(played(&executor).len(), 4);
    // A longer match plays the pairs that it lacks.
    folder.run(&text("nodes = 10\npairs = 9\nshard_pairs = 3"), &mut executor).expect("done");
    assert_eq!(played(&executor), ["nodes", "0-3", "3-6", "6-7", "6-9"]);
    assert!(executor.calls.values().all(|count| *count <= 2));
}

/// Shards of a match to a wanted interval come in batches; those that the earlier ones make superfluous are not played.
#[test]
fn a_wanted_interval_is_judged_between_batches() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let lines = "nodes = 10\npairs = 400\nhalf_width = 40.0\nshard_pairs = 25";
    let steps = folder.list(&text(lines));
    let shards: Vec<&ListedStep> = steps.iter().filter(|step| step.kind == "match shard").collect();
    assert_eq!(shards.len(), 16);
    // Batches of 1, 2, 4, 8 and 1: each needs the one before.
    let needs: Vec<usize> = shards.iter().map(|step| step.needs.len() - 2).collect();
    assert_eq!(needs, [0, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 8]);
    folder.run(&text(lines), &mut executor).expect("done");
    // The made-up results have points of 1, 2 and 3 by turns: their spread tells how many pairs are needed.
    let points: Vec<u8> = (0..400).map(|pair| 1 + (pair % 3) as u8).collect();
    let needed = crate::play::pairs_to_width(&points, 40.0, 400).expect("enough");
    let shards = executor.calls.keys().filter(|name| name.starts_with("shard")).count() as u64;
    assert!(needed < 300 && shards == needed.div_ceil(25), "{needed} pairs, {shards} shards");
    assert!(folder.list(&text(lines)).iter().all(|step| step.done));
}

/// Several workers play every shard once.
#[test]
fn workers_share_a_match() {
    let folder = ExperimentFolder::new();
    let lines = text("nodes = 10\nequal_cost = 10\npairs = 20\nshard_pairs = 2");
    let work = || {
        let mut executor = FakeExecutor::default();
        let experiment = folder.experiment(&lines).expect("an experiment");
        let shared = RunnerOptions { share: Share::Free, ..folder.options() };
        Runner::run(&experiment, &mut executor, &shared, &mut RecordingMonitor::default()).expect("done");
        executor.calls
    };
    let calls = std::thread::scope(|scope| {
        let workers = [(); 3].map(|()| scope.spawn(work));
        workers.map(|worker| worker.join().expect("no panic"))
    });
    let all: Vec<(String, u32)> = calls.into_iter().flatten().filter(|(name, _)| name.starts_with("shard")).collect();
    assert!(all.len() == 20 && all.iter().all(|(_, count)| *count == 1), "{all:?}");
}
