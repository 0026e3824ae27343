//! Figures of the user's own engine: which rows they belong to, what they change, and which are refused.

use super::*;
use crate::record::{MatchKind, OwnFigures};

/// The experiment with figures of these lines in `[measure.speed]` and in `[match]`.
fn text(speed: &str, matches: &str) -> String {
    format!("{TEXT}{speed}\n[match]\nnodes = 100\nequal_cost = 100\nmethods = [\"eval\"]\n{matches}\n")
}

#[test]
fn figures_reach_the_matches_at_equal_cost() {
    let own = |text: &str| {
        let experiment = ExperimentFolder::new().experiment(text).expect("an experiment");
        let plan = Plan::new(&experiment, &FakeExecutor::default()).expect("a plan");
        let nodes: Vec<_> = plan.matches.iter().filter(|planned| planned.kind == MatchKind::EqualNodes).collect();
        assert!(nodes.iter().all(|planned| planned.own == [OwnFigures::default(); 2]));
        plan.matches.iter().find(|planned| planned.kind == MatchKind::EqualCost).expect("planned").own
    };
    let features = |features_ns| OwnFigures { features_ns, node_cost: None };
    let cost = |cost| OwnFigures { features_ns: None, node_cost: Some(cost) };
    assert_eq!(own(&text("", "")), [features(None), features(None)]);
    let both = text("own_features_ns = { compact = 45, piece = 30.5 }", "");
    assert_eq!(own(&both), [features(Some(45.0)), features(Some(30.5))]);
    assert_eq!(own(&text("", "cost = { compact = 1.15 }")), [cost(1.15), cost(1.0)]);
    // A cost replaces the reference's time of finding features, too.
    assert_eq!(own(&text("own_features_ns = { piece = 30 }", "cost = { compact = 1.15 }")), [cost(1.15), cost(1.0)]);
    // A label counts before the set.
    let labelled = TEXT.replacen(
        "sets   = [\"piece\", \"compact\"]",
        "sets = [\"piece\"]\n[[runs]]\nmethod = \"eval\"\n\
        sets = [\"compact\"]\nlabel = \"mine\"",
        1,
    );
    let by = |figures: &str| own(&text(figures, "").replace(TEXT, &labelled))[0];
    assert_eq!(by("own_features_ns = { compact = 45 }"), features(Some(45.0)));
    assert_eq!(by("own_features_ns = { compact = 45, mine = 50 }"), features(Some(50.0)));
}

/// A changed figure plays again what goes by it, and measures nothing else; the results of before are found again.
#[test]
fn a_changed_figure_redoes_only_what_goes_by_it() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let count = |executor: &FakeExecutor, kind: &str| -> u32 {
        let own = executor.calls.iter().filter(|(name, _)| name.starts_with(kind));
        own.map(|(_, count)| count).sum()
    };
    let mut check = |speed: &str, matches: &str, played: u32, why: &str| {
        let results = folder.run(&text(speed, matches), &mut executor).expect("done");
        let at = |nodes: &str| executor.calls.iter().filter(|(name, _)| name.ends_with(nodes)).map(|(_, n)| n).sum();
        let equal_nodes: u32 = at("equal nodes");
        assert_eq!((count(&executor, "match") - equal_nodes, equal_nodes), (played, 2), "{why}");
        assert_eq!((count(&executor, "train"), count(&executor, "speed")), (6, 2), "{why}");
        results
    };
    check("", "", 2, "one match of each kind per seed");
    check("own_features_ns = { compact = 45 }", "", 4, "a time of finding features");
    check("own_features_ns = { compact = 40 }", "", 6, "another time");
    let results = check("own_features_ns = { compact = 40 }", "", 6, "nothing changed");
    let own: Vec<OwnFigures> = results.study.rows.iter().map(|row| row.own).collect();
    let compact = OwnFigures { features_ns: Some(40.0), node_cost: None };
    assert_eq!(own, [OwnFigures::default(), compact, OwnFigures::default()]);
    check("", "cost = { compact = 1.15 }", 8, "a cost of a node");
    check("", "cost = { compact = 1.15, piece = 1 }", 8, "the first set costs 1");
    check("", "", 8, "the first results are still stored");
}

/// With a cost of a node nothing is measured: shards need no measurement before them, and the match need not be alone.
#[test]
fn a_cost_of_a_node_is_not_measured() {
    let folder = ExperimentFolder::new();
    let steps = folder.list(&text("", "cost = { compact = 1.15 }\npairs = 4\nshard_pairs = 2"));
    assert!(steps.iter().all(|step| step.kind != "match cost"));
    let shards = steps.iter().filter(|step| step.kind == "match shard");
    assert!(shards.clone().count() == 8 && shards.into_iter().all(|step| step.needs.len() == 2));
    let whole = folder.list(&text("", "cost = { compact = 1.15 }"));
    assert!(whole.iter().filter(|step| step.kind == "match").all(|step| !step.alone));
    let measured = folder.list(&text("own_features_ns = { compact = 45 }", "pairs = 4\nshard_pairs = 2"));
    assert_eq!(measured.iter().filter(|step| step.kind == "match cost").count(), 2);
}

#[test]
fn widths_of_equal_speed_go_by_figures() {
    let equal_speed = |speed: &str, cost: &str| {
        let rows = "[[runs]]\nmethod = \"pqr\"\nsets   = [\"piece\"]\n";
        text(speed, cost).replace(rows, "").replace("[measure.error]\n", "[measure.error]\n[equal_speed]\n")
    };
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let measured = folder.run(&equal_speed("", ""), &mut executor).expect("done");
    assert!(measured.equal_speed.iter().all(|result| !result.record.is_by_figures()));
    let by_features = folder.run(&equal_speed("own_features_ns = { compact = 45 }", ""), &mut executor).expect("done");
    let own: Vec<_> = by_features.equal_speed.iter().map(|result| result.record.own_features_ns).collect();
    assert_eq!(own, [[Some(45.0), None]; 2], "found, and timed as trained");
    // The made-up factor is the cost itself; what is trained at the width found is timed with it.
    let by_cost = folder.run(&equal_speed("", "cost = { compact = 1.15 }"), &mut executor).expect("done");
    let scales: Vec<_> = by_cost.equal_speed.iter().map(|result| result.record.own_scale).collect();
    assert_eq!(scales, [Some(1.15); 2]);
    // At that width the network costs what its speed says.
    let trained = by_cost.equal_speed[1].record.speed.ratio;
    let own: Vec<_> = by_cost.study.rows.iter().map(|row| row.own.node_cost).collect();
    assert_eq!(own, [None, Some(1.15), None, Some(1.0 / trained)]);
    let searches = executor.calls.iter().filter(|(name, _)| name.starts_with("equal speed"));
    assert_eq!(searches.map(|(_, count)| count).sum::<u32>(), 6, "{:?}", executor.calls);
    let calls = executor.calls.clone();
    folder.run(&equal_speed("", "cost = { compact = 1.15 }"), &mut executor).expect("done");
    assert_eq!(executor.calls, calls, "a rerun does nothing");
}

#[test]
fn a_plan_names_the_figures() {
    let folder = ExperimentFolder::new();
    let experiment = folder.experiment(&text("own_features_ns = { piece = 30 }", "")).expect("an experiment");
    let mut executor = FakeExecutor::default();
    let estimate = Runner::estimate(&experiment, &mut executor, &folder.options(), &mut RecordingMonitor::default());
    let figures = estimate.expect("estimated").own_figures;
    let rows: Vec<_> = figures.iter().map(|row| (row.set.as_str(), row.method, row.own.features_ns)).collect();
    assert_eq!(rows, [("piece", "eval", Some(30.0)), ("piece", "pqr", Some(30.0))]);
}

#[test]
fn wrong_figures_are_refused_where_they_are_written() {
    let check = |speed: &str, matches: &str, written: &str, message: &str| {
        let text = text(speed, matches);
        let error = ExperimentFolder::new().experiment(&text).expect_err(message);
        let shown = error.to_string();
        let byte = text.rfind(written).expect("in the file");
        let line = text[..byte].matches('\n').count() + 1;
        assert!(error.is_request() && shown.contains(&format!("e.toml:{line}:")), "{shown}");
        assert!(shown.contains(message), "{shown}");
    };
    let known = "the experiment has piece, compact, piece";
    check("own_features_ns = { pice = 30 }", "", "pice", "no run is called 'pice'");
    check("own_features_ns = { pice = 30 }", "", "pice", known);
    check("", "cost = { compct = 1.15 }", "compct", known);
    check("own_features_ns = { piece = -1 }", "", "own_f", "at least 0, not -1");
    check("own_features_ns = { piece = \"x\" }", "", "own_f", "expected f64");
    check("", "cost = { compact = 0.0 }", "cost = {", "a cost above 0");
    check("", "cost = { piece = 1.2 }", "cost = {", "it costs 1, not 1.2");
    let both = "the cost of a node replaces all";
    check("own_features_ns = { compact = 45 }", "cost = { compact = 1.15 }", "cost = {", both);
    let without = text("", "cost = { compact = 1.15 }").replace("equal_cost = 100\n", "");
    let error = ExperimentFolder::new().experiment(&without).expect_err("no equal cost").to_string();
    assert!(error.contains("cost has no effect without equal_cost"), "{error}");
    let opponent = text("", "cost = { king-piece = 1.15 }\nreference = \"compact\"");
    let opponent = opponent.replace("[\"piece\", \"compact\"]", "[\"piece\", \"compact\", \"king-piece\"]");
    let error = ExperimentFolder::new().experiment(&opponent).expect_err("no cost").to_string();
    assert!(error.contains("plays 'compact', which is not the first set and has no cost"), "{error}");
    let widths = text("", "cost = { compact = 1.15 }\n[equal_speed]\nreference = \"compact\"");
    let widths = widths.replace("[[runs]]\nmethod = \"pqr\"\nsets   = [\"piece\"]\n", "");
    let error = ExperimentFolder::new().experiment(&widths).expect_err("another reference").to_string();
    assert!(error.contains("against the first set's"), "{error}");
}
