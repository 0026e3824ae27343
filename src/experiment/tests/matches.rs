//! `[match]`: which networks play, when, and the changes that make them play again.

use super::fake_executor::run_name;
use super::*;
use crate::play::Pairs;
use crate::record::{GameCounts, Machine, MatchConditions, MatchKind, MatchOpenings, MatchPlayer, MatchRecord};
use crate::units::Seed;

/// A made-up result of a requested match.
pub fn record(request: &MatchRequest<'_>) -> MatchRecord {
    let settings = request.settings;
    let nodes = match request.kind {
        MatchKind::EqualNodes => settings.terms.nodes,
        MatchKind::EqualCost => settings.terms.equal_cost,
    };
    let player = |network: &Path| MatchPlayer {
        network: run_name(network),
        eval_scale: 0.25,
        node_limit: nodes.unwrap_or_default(),
        moves: 100,
        nodes: 10_000,
        seconds: 0.1,
    };
    let openings =
        MatchOpenings { name: None, count: 2_000, blake3: String::new(), plies: settings.options.opening_plies };
    let conditions = MatchConditions {
        nodes: nodes.unwrap_or_default(),
        openings,
        seed: request.seed,
        adjudication: None,
        hash: settings.options.hash,
        search: String::new(),
        half_width: settings.terms.half_width,
    };
    MatchRecord {
        kind: request.kind,
        conditions,
        player: player(&request.networks[0]),
        reference_player: player(&request.networks[1]),
        cost: None,
        pairs: Pairs::from_counts([1, 2, 3, 2, 1]),
        games: GameCounts { wins: 6, draws: 6, losses: 6 },
        adjudicated: 0,
        machine: Machine::current(),
    }
}

/// The experiment without measures, with `[match]` and these lines.
fn text(lines: &str) -> String {
    let (runs, _) = TEXT.split_once("[measure.updates]").expect("measures");
    format!("{runs}[match]\n{lines}\n")
}

/// The planned steps, shortened: `train piece 1`, `match compact 1 equal nodes`.
fn steps(text: &str) -> Vec<String> {
    let experiment = ExperimentFolder::new().experiment(text).expect("an experiment");
    let plan = Plan::new(&experiment, &FakeExecutor::default()).expect("a plan");
    let name = |run: usize| {
        let key = &plan.runs[run].key;
        format!("{} {} {}", key.method.name(), key.set, key.seed.0)
    };
    let step = |step: &PlanStep| match step.id() {
        ("train", run) => format!("train {}", name(run)),
        ("match", index) => {
            let PlannedMatch { run, reference, kind, .. } = plan.matches[index];
            format!("{} against {} at {}", name(run), plan.runs[reference].key.set, kind.name())
        }
        _ => step.name(&plan),
    };
    plan.steps.iter().filter(|step| step.kind().name != "validation").map(step).collect()
}

#[test]
fn matches_follow_the_trainings_of_their_seed() {
    let nodes_and_cost = steps(&text("nodes = 100\nequal_cost = 200"));
    assert_eq!(
        nodes_and_cost[..5],
        [
            "train eval piece 1",
            "train eval compact 1",
            "train pqr piece 1",
            "eval compact 1 against piece at equal nodes",
            "eval compact 1 against piece at equal cost",
        ]
    );
    assert_eq!(nodes_and_cost.len(), 10, "{nodes_and_cost:?}");
    let played = |lines: &str| -> Vec<String> {
        steps(&text(lines)).into_iter().filter(|step| step.contains(" against ")).collect()
    };
    // The reference may be trained after the others.
    assert_eq!(
        played("nodes = 100\nreference = \"compact\"\nmethods = [\"eval\"]\nseeds = [2]"),
        ["eval piece 2 against compact at equal nodes"]
    );
}

#[test]
fn seeds_have_their_own_order_of_openings() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let results = folder.run(&text("nodes = 100\nseed = 40"), &mut executor).expect("done");
    let seeds: Vec<Seed> = results.matches.iter().map(|result| result.record.conditions.seed).collect();
    assert_eq!(seeds, [Seed(41), Seed(42)]);
    assert!(results.matches.iter().all(|result| result.reference == "piece" && result.key.set == "compact"));
}

/// A change plays exactly the matches again that it affects; their stored results are found again later.
#[test]
fn a_change_replays_only_what_it_affects() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    std::fs::write(folder.folder.path().join("book.epd"), "openings").expect("written");
    let mut check = |lines: &str, expected: u32, why: &str| {
        folder.run(&text(lines), &mut executor).expect("done");
        let (trained, played): (Vec<_>, Vec<_>) =
            executor.calls.iter().partition(|(name, _)| !name.starts_with("match"));
        let count = |calls: &[(&String, &u32)]| calls.iter().map(|(_, count)| **count).sum::<u32>();
        assert_eq!((count(&trained), count(&played)), (6 + 6, expected), "{why}");
    };
    check("nodes = 100", 2, "one match per seed");
    check("nodes = 100", 2, "nothing changed");
    check("nodes = 100\nequal_cost = 100", 4, "the other kind");
    check("nodes = 100\nequal_cost = 100\ncost_weight = 0.3", 6, "another weight of cost");
    check("nodes = 200", 8, "another limit");
    check("nodes = 100\npairs = 7", 10, "another length");
    check("nodes = 100\nhalf_width = 5", 12, "a wanted precision");
    check("nodes = 100\nopenings = \"book.epd\"", 14, "other openings");
    check("nodes = 100\nseed = 1", 16, "another order");
    check("nodes = 100\nadjudication = false", 18, "other rules");
    check("nodes = 100\nhash = 8", 20, "another table");
    check("nodes = 100\nconcurrency = 3", 20, "games do not depend on it");
    check("nodes = 100", 20, "the first results are still stored");
    executor.search = "changed".into();
    folder.run(&text("nodes = 100"), &mut executor).expect("done");
    assert_eq!(executor.calls.values().sum::<u32>(), 6 + 6 + 22, "another search");
}

/// After a kill at any step, the next run does the remaining steps, once; so does a run after a stop.
#[test]
fn interrupted_matches_are_resumed() {
    let text = text("nodes = 100\nequal_cost = 100");
    // Six trainings with their validations, and four matches.
    for calls in 0..16 {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor { calls_left: Some(calls), ..FakeExecutor::default() };
        folder.run(&text, &mut executor).expect_err("killed");
        executor.calls_left = None;
        let results = folder.run(&text, &mut executor).expect("done");
        assert!(executor.calls.values().all(|&count| count == 1), "after {calls} steps: {:?}", executor.calls);
        assert_eq!((executor.calls.len(), results.matches.len()), (16, 4));
        let kinds: Vec<_> = results.matches.iter().map(|result| (result.key.seed.0, result.record.kind)).collect();
        let [nodes, cost] = MatchKind::ALL;
        assert_eq!(kinds, [(1, nodes), (1, cost), (2, nodes), (2, cost)], "in the plan's order");
        assert_eq!(Results::load(&folder.options().out).expect("saved"), results);
    }
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let mut monitor = RecordingMonitor { stop_after_games: Some(2), ..RecordingMonitor::default() };
    let experiment = folder.experiment(&text).expect("an experiment");
    let stopped = Runner::run(&experiment, &mut executor, &folder.options(), &mut monitor).expect_err("stopped");
    assert!(matches!(stopped, ExperimentError::Interrupted), "{stopped}");
    let kept = Results::load(&folder.options().out).expect("saved");
    assert_eq!(kept.matches.len(), 1, "the second match was cut short");
    assert_eq!(folder.run(&text, &mut executor).expect("done").matches.len(), 4);
}

/// With `--only`, a match waits for its reference's network.
#[test]
fn only_plays_what_is_trained() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let experiment = folder.experiment(&text("nodes = 100")).expect("an experiment");
    let mut run = |set: &str| {
        let only = RunnerOptions { only: Some(set.into()), ..folder.options() };
        Runner::run(&experiment, &mut executor, &only, &mut RecordingMonitor::default()).expect("done").matches.len()
    };
    assert_eq!(run("compact"), 0);
    assert_eq!(run("piece"), 0);
    assert_eq!(run("compact"), 2);
}

#[test]
fn force_plays_again() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let text = text("nodes = 100");
    folder.run(&text, &mut executor).expect("done");
    let fresh = RunnerOptions { fresh: true, ..folder.options() };
    let experiment = folder.experiment(&text).expect("an experiment");
    Runner::run(&experiment, &mut executor, &fresh, &mut RecordingMonitor::default()).expect("done");
    assert!(executor.calls.values().all(|&count| count == 2), "{:?}", executor.calls);
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let line = TEXT.split_once("[measure.updates]").expect("measures").0.lines().count() + 1;
    let check = |lines: &str, below: usize, message: &str| {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor::default();
        std::fs::write(folder.folder.path().join("empty.epd"), "").expect("written");
        let error = folder.run(&text(lines), &mut executor).expect_err(lines);
        let text = error.to_string();
        assert!(error.is_request() && executor.calls.is_empty(), "{text}");
        assert!(text.contains(&format!("e.toml:{}:", line + below)) && text.contains(message), "{lines}: {text}");
    };
    check("", 0, "give nodes = 5000");
    check("nodes = 0", 1, "nodes must be at least 1");
    check("equal_cost = 0", 1, "equal_cost must be at least 1");
    check("equal_cost = 9\ncost_weight = 0.0", 2, "cost_weight must be above 0");
    check("nodes = 9\ncost_weight = 0.3", 2, "cost_weight has no effect without equal_cost");
    check("nodes = 9\npairs = 0", 2, "pairs must lie between 1 and");
    check("nodes = 9\nhalf_width = 0.0", 2, "half_width must be above 0");
    check("nodes = 9\nhash = 0", 2, "hash must lie between 1 and");
    check("nodes = 9\nconcurrency = 0", 2, "concurrency must lie between 1 and");
    check("nodes = 9\nopening_plies = 8", 2, "name a book as `openings`");
    check("nodes = 9\nsets = [\"pice\"]", 2, "no run uses the set 'pice'");
    check("nodes = 9\nseeds = [3]", 2, "no run has the seed 3");
    check("nodes = 9\nsets = [\"piece\"]", 0, "no set plays");
    check("nodes = 9\nmethods = [\"pqr\"]", 0, "no set plays");
    check("nodes = 9\nreference = \"pice\"", 2, "no run uses the set 'pice'");
    check("nodes = 9\nreference = \"compact\"", 2, "no run by pqr uses the set 'compact'");
    check("nodes = 9\nopenings = \"bok.epd\"", 2, "no file bok.epd");
    check("nodes = 9\nopenings = \"empty.epd\"", 2, "the openings cannot be used: no playable opening");
    check("nodes = 9\nnode = 9", 2, "unknown field `node`");
}
