//! `[search]`: candidates that cannot be trained, and layouts of king buckets that are merged from a network.

use super::search::{called, executor, text, timeless, tree};
use super::*;
use crate::features::FeatureSet;
use crate::record::CandidateStage;
use crate::units::Seed;

const RANKS: &str = "rank(P) * role(P) * color(P) for";
const ONE_ROUND: (&str, &str) = ("hours     = 1", "hours = 1\nrounds = 1");

#[test]
fn a_candidate_that_diverges_is_left_out_and_the_search_goes_on() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor { diverges: Some((RANKS, Seed(1))), ..executor() };
    let results = folder.run(&text(&[]), &mut executor).expect("done");
    let tree = tree(&results);
    for round in 0..tree.rounds.len() {
        let ranks = called(tree, round, "plus axis-v");
        let expected = "seed 1: training diverged at step 7: the loss is NaN.";
        assert!(ranks.why.starts_with(expected) && ranks.stage == CandidateStage::Screened, "{ranks:?}");
    }
    assert_eq!(tree.winner.as_ref().map(|winner| &winner.label[..]), Some("piece plus axis-h plus pairs-h"));
    // It is a result like others: it is neither tried again, nor does it keep other steps from being done.
    let calls = executor.calls.clone();
    let again = folder.run(&text(&[]), &mut executor).expect("done");
    assert_eq!((&executor.calls, &again.search), (&calls, &results.search));
    let steps =
        Runner::list_steps(&folder.experiment(&text(&[])).expect("an experiment"), &mut executor, &folder.options());
    assert!(steps.expect("a list").iter().all(|step| step.done));
}

/// Every seed must be trained. Others play.
#[test]
fn a_finalist_that_diverges_does_not_play() {
    for equal_speed in ["[search]", "[equal_speed]\n[search]"] {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor { diverges: Some((RANKS, Seed(2))), ..executor() };
        let results = folder.run(&text(&[ONE_ROUND, ("[search]", equal_speed)]), &mut executor).expect("done");
        let tree = tree(&results);
        let ranks = called(tree, 0, "plus axis-v");
        assert!(ranks.why.starts_with("seed 2: training diverged at step 7"), "{ranks:?}");
        assert!(ranks.stage == CandidateStage::Lifted && ranks.played.is_none(), "{ranks:?}");
        assert_eq!(called(tree, 0, "plus axis-h").stage, CandidateStage::Winner);
    }
}

#[test]
fn a_search_says_so_when_nothing_remains() {
    let folder = ExperimentFolder::new();
    let blocks = "\"axis-h\", \"axis-v\", \"axis-d1\", \"axis-d2\", \"pairs-h\", \"mobility-count\"";
    let mut executor = FakeExecutor { diverges: Some((RANKS, Seed(1))), ..executor() };
    let results = folder.run(&text(&[(blocks, "\"axis-v\"")]), &mut executor).expect("done");
    let tree = tree(&results);
    assert_eq!(tree.stopped.as_deref(), Some("no candidate of round 1 remained to play piece"));
    assert!(tree.winner.is_none() && results.runs.iter().all(|run| run.key.set == "piece"));
}

/// The incumbent is no candidate: the search cannot go on without it. Nor is every error the network's.
#[test]
fn other_failures_end_a_search() {
    let folder = ExperimentFolder::new();
    let mut diverging = FakeExecutor { diverges: Some(("piece", Seed(2))), ..executor() };
    let error = folder.run(&text(&[]), &mut diverging).map(|_| ()).expect_err("it diverged").to_string();
    assert!(error.contains("training piece by eval, seed 2: training diverged at step 7"), "{error}");
    let set =
        called(tree(&folder.run(&text(&[ONE_ROUND]), &mut executor()).expect("done")), 0, "plus axis-v").set.clone();
    let failing = ExperimentFolder::new();
    let mut broken = FakeExecutor { fails: Some(format!("train {set} Eval 1")), ..executor() };
    let error = failing.run(&text(&[]), &mut broken).map(|_| ()).expect_err("the disk is full").to_string();
    assert!(error.starts_with("training piece plus axis-v by eval, seed 1: failed"), "{error}");
}

#[test]
fn king_squares_are_merged_into_a_layout() {
    let folder = ExperimentFolder::new();
    let blocks = "blocks    = [\"axis-h\", \"axis-v\", \"axis-d1\", \"axis-d2\", \"pairs-h\", \"mobility-count\"]";
    let text =
        text(&[("hours     = 1", "hours = 1\nrounds = 2"), (blocks, "king_buckets = [{ merged = 4 }, \"none\"]")]);
    let with_merit = || FakeExecutor { merits: vec![(["(merged)", "[buckets]"], 0.9)], ..executor() };
    let mut executor = with_merit();
    let results = folder.run(&text, &mut executor).expect("done");
    let tree = tree(&results);
    assert_eq!(called(tree, 0, "4 king buckets (merged)").stage, CandidateStage::Winner);
    // The network with rows for every square begins with the incumbent's.
    let merges = executor.calls.keys().filter(|name| name.starts_with("king buckets")).count();
    assert_eq!(merges, 2, "{:?}", executor.calls);
    let by_square = executor.starts.iter().filter(|(name, _)| name.contains("square(K)"));
    let starts: Vec<&str> = by_square.map(|(_, start)| start.as_str()).collect();
    assert!(starts.len() == 2 && starts.contains(&"eval-piece-seed1"), "{starts:?}");
    let winner = &tree.winner.as_ref().expect("a winner").definition;
    let written: toml::Table = winner.parse().expect("TOML");
    let numbers: Vec<_> = written["buckets"]["layout"].as_array().expect("a table").iter().step_by(8).collect();
    assert_eq!(numbers.iter().filter_map(|number| number.as_integer()).collect::<Vec<_>>(), [0, 1, 2, 3, 3, 3, 3, 3]);
    let set = FeatureSet::resolve(winner).expect("a set");
    assert_eq!(set.num_features(), 4 * FeatureSet::resolve("piece").expect("shipped").num_features());
    // The layout is a step's result: it is made once, and a search that was killed makes the same choices.
    let calls = executor.calls.clone();
    for killed_after in (0..calls.values().sum::<u32>()).step_by(5) {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor { calls_left: Some(killed_after), ..with_merit() };
        folder.run(&text, &mut executor).expect_err("killed");
        executor.calls_left = None;
        let resumed = folder.run(&text, &mut executor).expect("done");
        assert_eq!(executor.calls, calls, "after {killed_after} calls");
        assert_eq!(timeless(super::search::tree(&resumed)), timeless(tree), "after {killed_after} calls");
    }
}

/// Without rows for the squares of a king there is nothing to merge; the other candidates remain.
#[test]
fn king_squares_that_cannot_be_learned_are_said_to_be_so() {
    let folder = ExperimentFolder::new();
    let layouts = ("samples   = 1_000", "samples = 1_000\nking_buckets = [{ merged = 4 }]");
    let mut executor = FakeExecutor { diverges: Some(("square(K)", Seed(1))), ..executor() };
    let results = folder.run(&text(&[ONE_ROUND, layouts]), &mut executor).expect("done");
    let squares = called(tree(&results), 0, "king squares, to be merged");
    assert!(squares.why.starts_with("seed 1: training diverged"), "{squares:?}");
    assert_eq!(called(tree(&results), 0, "plus axis-v").stage, CandidateStage::Winner);
}

#[test]
fn a_plan_counts_merged_layouts() {
    let folder = ExperimentFolder::new();
    let layouts = ("samples   = 1_000", "samples = 1_000\nking_buckets = [{ merged = 4 }, { merged = 8 }]");
    let experiment = folder.experiment(&text(&[layouts])).expect("an experiment");
    let mut monitor = RecordingMonitor::default();
    let plan = Runner::estimate(&experiment, &mut executor(), &folder.options(), &mut monitor).expect("a plan");
    let search = plan.search.expect("a search");
    // Eight candidates and the control, and a network on king squares that learns three times as long.
    assert_eq!((search.candidates, search.samples), (8, 9_000 + 3_000));
}
