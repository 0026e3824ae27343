//! `[search]`: rounds, halving, finals, the change of incumbents, and the last comparison.

use super::*;
use crate::features::FeatureSet;
use crate::record::{CandidateStage, SearchCandidate, SearchRecord};

const SEARCH: &str = r#"
[match]
equal_cost = 100
pairs      = 40
[search]
hours     = 1
samples   = 1_000
finalists = 2
blocks    = ["axis-h", "axis-v", "axis-d1", "axis-d2", "pairs-h", "mobility-count"]
"#;

/// One row, and a search.
pub fn text(changes: &[(&str, &str)]) -> String {
    let (rows, _) = TEXT.split_once("[[runs]]").expect("rows");
    let text = format!("{rows}[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n{SEARCH}");
    changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// Ranks help most, then files, then neighbours; diagonals harm, and mobility changes nothing.
pub fn executor() -> FakeExecutor {
    let merits = vec![
        (["axis-v", "rank(P) * role(P) * color(P) for"], 0.95),
        (["axis-h", "file(P) * role(P) * color(P) for"], 0.96),
        (["pairs-h", "next(P, east)"], 0.97),
        (["compact", "compact"], 0.97),
        (["axis-d", "diagonal(P)"], 1.02),
        (["mobility", "count("], 1.001),
    ];
    FakeExecutor { any_definition: true, games: 40, merits, ..FakeExecutor::default() }
}

pub fn tree(results: &Results) -> &SearchRecord {
    results.search.as_ref().expect("a search")
}

pub fn called<'a>(tree: &'a SearchRecord, round: usize, change: &str) -> &'a SearchCandidate {
    tree.rounds[round].candidates.iter().find(|candidate| candidate.change == change).expect(change)
}

/// The tree without what the clock says.
pub fn timeless(tree: &SearchRecord) -> SearchRecord {
    let mut tree = SearchRecord { seconds: 0.0, ..tree.clone() };
    tree.rounds.iter_mut().for_each(|round| round.seconds = 0.0);
    tree
}

#[test]
fn each_winner_becomes_the_incumbent_until_none_is_better() {
    let folder = ExperimentFolder::new();
    let mut executor = executor();
    let results = folder.run(&text(&[]), &mut executor).expect("done");
    let tree = tree(&results);
    let incumbents: Vec<&str> = tree.rounds.iter().map(|round| round.incumbent.as_str()).collect();
    let first = "piece plus axis-v";
    let second = "piece plus axis-v plus axis-h";
    let third = "piece plus axis-v plus axis-h plus pairs-h";
    assert_eq!(incumbents, ["piece", first, second, third]);
    assert_eq!(tree.stopped.as_deref(), Some(&format!("no candidate of round 4 beat {third}")[..]));

    let stage = |change: &str| called(tree, 0, change).stage;
    assert_eq!(stage("plus axis-v"), CandidateStage::Winner);
    assert_eq!((stage("plus axis-h"), stage("plus axis-d1")), (CandidateStage::Finalist, CandidateStage::Lifted));
    let ahead = &called(tree, 0, "plus axis-h").why;
    assert_eq!(ahead, "piece plus axis-v was ahead by loss and games");
    let lifted = &called(tree, 0, "plus pairs-h").liftings;
    assert_eq!((lifted.len(), lifted[0].samples, lifted[0].seconds), (1, 1_000, 2.0));
    assert!((lifted[0].loss.value - 0.97_f64.ln()).abs() < 1e-6, "{lifted:?}");
    assert_eq!(called(tree, 0, "plus pairs-h").why, "not among the best 2 after 1,000 samples");
    let full = called(tree, 0, "plus axis-v").full.as_ref().expect("trained");
    assert!(full.seeds == 2 && (full.loss.value - 0.95_f64.ln()).abs() < 1e-6, "{full:?}");
    // Two finalists of each round have played; the prediction has learned from them.
    let prior = crate::record::SearchPrediction::default();
    assert!(tree.prediction.matches == 8 && tree.prediction.loss < prior.loss, "{:?}", tree.prediction);

    // Short trainings begin with the incumbent's network of the first seed.
    let from_piece = executor.starts.values().filter(|start| *start == "eval-piece-seed1").count();
    assert_eq!(from_piece, 6, "five candidates and the control; the winner's set is the control of the next round");
    let trainings = |change: &str, seed: u32| {
        executor.calls.get(&format!("train {} Eval {seed}", called(tree, 0, change).set)).copied()
    };
    assert_eq!([trainings("plus axis-d1", 1), trainings("plus axis-d1", 2)], [Some(1), None], "only lifted");
    let of_winner = [trainings("plus axis-v", 1), trainings("plus axis-v", 2)];
    assert_eq!(of_winner, [Some(3), Some(1)], "lifted, from scratch, and as the control of the next round");

    let winner = tree.winner.as_ref().expect("a winner");
    assert_eq!(winner.label, third);
    let definition = std::fs::read_to_string(folder.options().out.join("winner.toml")).expect("written");
    assert_eq!(definition, winner.definition);
    let expected = FeatureSet::resolve("piece + axis-v + axis-h + pairs-h").expect("a set");
    assert_eq!(FeatureSet::resolve(&definition).expect("a set").identity(), expected.identity());
    let labels: Vec<&str> = results.study.rows.iter().map(|row| row.set.as_str()).collect();
    assert_eq!(labels, ["piece", first, second, third]);
    assert_eq!(Results::load(&folder.options().out).expect("saved").search, results.search);
}

/// The games and openings of the last comparison have decided nothing before.
#[test]
fn the_last_comparison_has_games_of_its_own() {
    let folder = ExperimentFolder::new();
    let mut executor = executor();
    let results = folder.run(&text(&[("hours     = 1", "hours = 1\nrounds = 1")]), &mut executor).expect("done");
    let tree = tree(&results);
    assert_eq!(tree.stopped.as_deref(), Some("round 1 was the last"));
    let last = tree.winner.as_ref().and_then(|winner| winner.last.as_ref()).expect("compared");
    assert!(last.games > 0 && last.games < 20, "{last:?}");
    let loss = last.loss.expect("compared").value;
    assert!((loss - 0.95_f64.ln()).abs() < 1e-6, "{loss}");
    assert_eq!(last.played.as_ref().map(|played| played.games), Some(36), "18 games of each seed");
    let played: Vec<(&str, &str)> =
        results.matches.iter().map(|result| (result.key.set.as_str(), result.reference.as_str())).collect();
    assert_eq!(played, [("piece plus axis-v", "piece"); 2]);
    // Two finalists, two seeds; the last race and the last comparison of the winner, each with two seeds.
    let matches = executor.calls.iter().filter(|(name, _)| name.starts_with("match"));
    assert_eq!(matches.map(|(_, count)| count).sum::<u32>(), 2 * 2 + 2 + 2);
    let experiment = folder.experiment(&text(&[])).expect("an experiment");
    assert!((experiment.rows[0].settings.validation - 0.3).abs() < 1e-12, "0.2 and the games kept");
}

#[test]
fn the_best_third_goes_on_with_three_times_the_samples() {
    let folder = ExperimentFolder::new();
    let changes = [("finalists = 2", "finalists = 1\nkeep = 0.5"), ("hours     = 1", "hours = 1\nrounds = 1")];
    let results = folder.run(&text(&changes), &mut executor()).expect("done");
    let tree = tree(&results);
    let samples =
        |change: &str| -> Vec<u64> { called(tree, 0, change).liftings.iter().map(|lifted| lifted.samples).collect() };
    assert_eq!((samples("plus axis-v"), samples("plus axis-h")), (vec![1_000, 3_000], vec![1_000, 3_000]));
    assert_eq!((samples("plus pairs-h"), samples("plus axis-d2")), (vec![1_000, 3_000], vec![1_000]));
    assert_eq!(called(tree, 0, "plus axis-h").why, "not among the best 1 after 3,000 samples");
}

#[test]
fn sets_beyond_the_limits_are_not_trained() {
    let folder = ExperimentFolder::new();
    let mut executor = executor();
    let changes = [("hours     = 1", "hours = 1\nrounds = 1\nmax_features = 1_800")];
    let results = folder.run(&text(&changes), &mut executor).expect("done");
    let pairs = called(tree(&results), 0, "plus pairs-h");
    assert_eq!((pairs.stage, pairs.why.as_str()), (CandidateStage::Screened, "1920 features, more than 1800"));
    let training = format!("train {}", pairs.set);
    assert!(executor.calls.keys().all(|name| !name.starts_with(&training)), "{:?}", executor.calls);
}

#[test]
fn rows_of_the_experiment_are_compared_first() {
    let folder = ExperimentFolder::new();
    let changes = [("[\"piece\"]", "[\"piece\", \"compact\"]"), ("hours     = 1", "hours = 1\nrounds = 1")];
    let results = folder.run(&text(&changes), &mut executor()).expect("done");
    let tree = tree(&results);
    let rounds: Vec<(u32, &str)> = tree.rounds.iter().map(|round| (round.number, &round.incumbent[..])).collect();
    assert_eq!(rounds, [(0, "piece"), (1, "compact")]);
    assert_eq!(called(tree, 0, "compact").stage, CandidateStage::Winner);
}

/// It is one row of the results, and its games count once.
#[test]
fn a_row_of_the_experiment_may_win() {
    let folder = ExperimentFolder::new();
    let (_, blocks) = SEARCH.trim_end().rsplit_once('\n').expect("blocks");
    let changes = [("[\"piece\"]", "[\"piece\", \"compact\"]"), (blocks, "blocks = [\"axis-d1\"]")];
    let results = folder.run(&text(&changes), &mut executor()).expect("done");
    let winner = tree(&results).winner.as_ref().expect("a winner");
    assert_eq!(winner.label, "compact");
    let labels: Vec<&str> = results.study.rows.iter().map(|row| row.set.as_str()).collect();
    assert_eq!(labels, ["piece", "compact"]);
    let played = winner.last.as_ref().and_then(|last| last.played.as_ref()).expect("games");
    assert_eq!((played.games, results.matches.len()), (36, 2), "18 games of each seed");
}

/// Finalists are trained at the width at which they are as fast as the incumbent.
#[test]
fn finalists_have_the_width_of_equal_speed() {
    let folder = ExperimentFolder::new();
    let changes = [("[search]", "[equal_speed]\n[search]"), ("hours     = 1", "hours = 1\nrounds = 2")];
    let results = folder.run(&text(&changes), &mut executor()).expect("done");
    let tree = tree(&results);
    assert_eq!(called(tree, 0, "plus axis-v").full.as_ref().map(|full| full.l1), Some(32));
    let winner = tree.winner.as_ref().expect("a winner");
    assert_eq!(tree.rounds[1].incumbent, "piece plus axis-v, l1 32");
    assert_eq!(winner.label, "piece plus axis-v plus axis-h, l1 32");
}

#[test]
fn no_round_begins_when_the_hours_are_over() {
    let folder = ExperimentFolder::new();
    // Two trainings of 2 s, then six candidates, the control and two finalists with two seeds: 26 s.
    let results = folder.run(&text(&[("hours     = 1", "hours = 0.005")]), &mut executor()).expect("done");
    let tree = tree(&results);
    assert_eq!((tree.rounds.len(), tree.stopped.as_deref()), (1, Some("the 0.005 hours are over")));
}

/// After a kill at any step, the next run does the rest, and chooses the same.
#[test]
fn a_resumed_search_makes_the_same_choices() {
    let text = text(&[("hours     = 1", "hours = 1\nrounds = 2")]);
    let whole = ExperimentFolder::new();
    let mut uninterrupted = executor();
    let results = whole.run(&text, &mut uninterrupted).expect("done");
    let calls = uninterrupted.calls.clone();
    let again = whole.run(&text, &mut uninterrupted).expect("done");
    assert_eq!((&uninterrupted.calls, &again.search), (&calls, &results.search), "a rerun does nothing");
    for killed_after in (0..calls.values().sum::<u32>()).step_by(9) {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor { calls_left: Some(killed_after), ..executor() };
        folder.run(&text, &mut executor).expect_err("killed");
        executor.calls_left = None;
        let resumed = folder.run(&text, &mut executor).expect("done");
        assert_eq!(executor.calls, calls, "after {killed_after} calls");
        assert_eq!(timeless(tree(&resumed)), timeless(tree(&results)), "after {killed_after} calls");
        let games = |results: &Results| -> Vec<_> {
            results.matches.iter().map(|result| (result.key.clone(), result.record.pairs)).collect()
        };
        assert_eq!(games(&resumed), games(&results));
    }
}

#[test]
fn a_plan_says_how_much_a_round_tries() {
    let folder = ExperimentFolder::new();
    let experiment = folder.experiment(&text(&[("hours     = 1", "hours = 1e-6")])).expect("an experiment");
    let mut monitor = RecordingMonitor::default();
    let plan = Runner::estimate(&experiment, &mut executor(), &folder.options(), &mut monitor).expect("a plan");
    let search = plan.search.expect("a search");
    assert_eq!((search.candidates, search.samples, search.trainings), (6, 7_000, 4));
    assert!(search.seconds.is_some_and(|seconds| seconds > search.budget_seconds));
    assert!(plan.warnings.iter().any(|warning| warning.contains("too small for one round")), "{:?}", plan.warnings);
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let check = |changes: &[(&str, &str)], expected: &str| {
        let folder = ExperimentFolder::new();
        let mut executor = executor();
        let error = folder.run(&text(changes), &mut executor).map(|_| ()).expect_err(expected);
        assert!(error.is_request() && error.to_string().contains("e.toml:"), "{error}");
        assert!(executor.calls.is_empty() && error.to_string().contains(expected), "{error}");
    };
    let with = |line: &'static str| [("samples   = 1_000", line)];
    check(&[("hours     = 1", "hours = 0")], "hours must be above 0");
    check(&with("samples = 0"), "samples must be at least 1");
    check(&with("rounds = 0"), "rounds must be at least 1");
    check(&with("keep = 1.0"), "keep must lie between 0 and 1");
    check(&with("final = 0.5"), "final must lie between 0 and 0.5");
    check(&with("final = 0.0"), "final must lie between 0 and 0.5");
    check(&with("learning_rate = -1.0"), "learning_rate must be above 0");
    check(&with("sample = 5"), "unknown field `sample`");
    check(&with("max_features = 0"), "max_features must be at least 1");
    check(&with("king_buckets = [{ merged = 1 }]"), "king squares are merged into 2 to 63 buckets, not 1");
    check(&with("king_buckets = [{ merges = 4 }]"), "or { merged = 8 }");
    check(&[("finalists = 2", "finalists = 0")], "finalists must be at least 1");
    check(&[("hours     = 1", "hours = 1e-12")], "hours = 0.000000000001 is too small for one round");
    check(&[("\"axis-h\", ", "\"axis-x\", ")], "the block axis-x cannot be added");
    let pairs = "\"square(K) * pair(square(P) * role(P) * color(P), square(Q) * role(Q) * color(Q)) for P in pieces, \
                 Q in pieces if square(P) < square(Q)\", ";
    check(&[("\"axis-h\", ", pairs)], "cannot be added: this product is too large for `reach` or `pair`");
    check(&[("[\"piece\"]", "[\"pieces\"]")], "the feature set 'pieces' cannot be used");
    check(&[("equal_cost = 100", "nodes = 100")], "decided by matches at equal cost");
    for unused in ["nodes = 50", "seeds = [1]", "sets = [\"piece\"]", "reference = \"piece\""] {
        check(&[("equal_cost = 100", &format!("equal_cost = 100\n{unused}"))], "at equal cost: leave reference,");
    }
    check(
        &[("validation    = 0.2", "validation = 0.95"), ("finalists = 2", "finalists = 2\nfinal = 0.1")],
        "final = 0.1 and [train] validation = 0.95 leave no games to learn from",
    );
    check(&[("[search]", "[sweep]\nl1 = [8, 16]\n[search]")], "cannot stand together");
    check(&[("sets = [\"piece\"]", "sets = [\"piece\"]\ntrain = { validation = 0.5 }")], "other validation games");
    check(&[("[search]", "[measure.speed]\nown_features_ns = { piece = 30 }\n[search]")], "piece has own figures");
    let row = |settings: &'static str| [("sets = [\"piece\"]", settings)];
    check(
        &row("sets = [\"piece\"]\ntrain = { design = { bucket_rule = \"rank(K)\" } }"),
        "bucket_rule of piece goes by an expression",
    );
    let compact = "sets = [\"piece\"]\ntrain = { compact_dead = true }";
    check(&[("finalists = 2", "finalists = 2\nselect = [64]"), row(compact)[0]], "but piece has compact_dead = true");
    let merged = ("finalists = 2", "finalists = 2\nking_buckets = [{ merged = 4 }]");
    check(
        &[merged, row(compact)[0]],
        "a merged layout needs the rows of all features, but piece has compact_dead = true",
    );
    check(&[("validation    = 0.2", "validation = 0.0")], "give [train] validation above 0");
    let folder = ExperimentFolder::new();
    let mut executor = executor();
    let error =
        folder.run(&text(&[("pairs      = 40", "pairs = 3000")]), &mut executor).map(|_| ()).expect_err("a small book");
    let expected = "[match] has 3000 pairs, but the book 2000 openings that [search] final does not keep";
    assert!(error.to_string().contains(expected) && executor.calls.is_empty(), "{error}");
    let (all, _) = SEARCH.split_once("blocks").expect("blocks");
    let none = text(&[(SEARCH, all)]);
    let error = ExperimentFolder::new().experiment(&none).expect_err("no blocks").to_string();
    assert!(error.contains("nothing to try: list blocks to add"), "{error}");
}
