//! Tests of whole reports, from fixed records.

use super::{test_records, *};
use crate::record::{Method, Results, Timestamp};
use crate::statistics::differences_to_first;
use crate::units::{Seed, SortedMap};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn terminal_and_markdown() {
    let summary = Summary::of(&test_records::results());
    insta::assert_snapshot!("terminal", text(&summary, WIDTH));
    insta::assert_snapshot!("markdown", markdown(&summary));
}

/// Elo stands with its intervals, games and conditions, in every kind of report.
#[test]
fn strength_is_reported_with_its_conditions() {
    let results = test_records::results_with_matches();
    let summary = Summary::of(&results);
    let text = text(&summary, WIDTH);
    let start = text.find("  Playing strength").expect("a section");
    let end = text[start..].find("  Training").expect("the next section");
    insta::assert_snapshot!("strength", &text[start..start + end]);
    let markdown = markdown(&summary);
    let html = html(&summary).expect("drawn");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for report in [&text, &markdown, &html] {
        for part in [
            "Elo (equal nodes)",
            "Elo (equal cost)",
            "Equal cost: 300 nodes per move for the reference",
            "the 2,000 openings that come with fsbench",
            "16 MiB of hash; search fedcba9876543210",
            "3 trained seeds played: Elo is the mean over the seeds",
            "matches 1 min 15 s",
        ] {
            assert!(words(report).contains(part), "{part}\n{report}");
        }
    }
    let names: Vec<_> = Figure::all(&summary).iter().map(|figure| figure.name().to_owned()).collect();
    for name in ["elo-equal-cost-eval", "elo-eval", "loss-elo-eval"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("elo-pqr")), "no match by pqr");
    let out = folder();
    write(&summary, &results, out.path()).expect("written");
    let csv = std::fs::read_to_string(out.path().join("tables/matches.csv")).expect("written");
    assert_eq!(csv.lines().count(), 1 + 6 * 3 * 2);
    assert!(csv.starts_with("method,set,seed,reference,kind,elo,elo_low,elo_high,pairs_ll,"), "{csv}");
}

/// The set's Elo and its difference by cost are means over the seeds' matches, with the noise of all sets.
#[test]
fn elo_is_the_mean_over_the_seeds() {
    use crate::record::{MatchKind, MatchResult};
    use crate::statistics::{CONFIDENCE, EloBySeed, Level, elo_over_seeds};

    let mut results = test_records::results_with_matches();
    let summary = Summary::of(&results);
    let row = |summary: &Summary, index: usize| summary.methods[0].rows[index].strength.clone().expect("played");
    let of = |results: &Results, set: &str, kind: MatchKind| -> EloBySeed {
        let own = results.matches.iter().filter(|result| result.key.set == set && result.record.kind == kind);
        own.map(|result| (result.key.seed.0, result.record.pairs.elo_effect())).collect()
    };
    let sets: Vec<&str> = summary.methods[0].rows.iter().map(|row| row.set.as_str()).collect();
    let [nodes, cost] = MatchKind::ALL.map(|kind| sets.iter().map(|set| of(&results, set, kind)).collect::<Vec<_>>());
    let own = |table: &[EloBySeed]| elo_over_seeds(table)[3].expect("played").estimate(Level::SINGLE);
    let strength = row(&summary, 3);
    assert_eq!(strength.elo_equal_nodes, Some(own(&nodes)));
    let paired = cost
        .iter()
        .zip(&nodes)
        .map(|(cost, nodes)| cost.iter().map(|(seed, cost)| (*seed, cost.minus(nodes[seed]))).collect::<EloBySeed>());
    assert_eq!(strength.elo_by_cost, Some(own(&paired.collect::<Vec<_>>())));
    assert!(strength.elo_by_cost.expect("played").mean < 0.0, "it costs more");
    // At other nodes of the reference, Elo is another thing.
    let mut other = results.clone();
    let equal_nodes = |result: &&mut MatchResult| result.record.kind == MatchKind::EqualNodes;
    other.matches.iter_mut().filter(equal_nodes).for_each(|result| result.record.conditions.nodes += 1);
    assert_eq!(row(&Summary::of(&other), 3).elo_by_cost, None);
    // A set that loses nearly all its games is weaker than any other.
    let mut clear = results.clone();
    let is_lost = |result: &&mut MatchResult| result.key.set == "piece-move";
    clear.matches.iter_mut().filter(is_lost).for_each(|result| {
        let pairs = &mut result.record.pairs;
        (pairs.ll, pairs.ld, pairs.wl_dd, pairs.wd, pairs.ww) = (90, 5, 5, 0, 0);
    });
    let clear = Summary::of(&clear);
    let not_weaker = clear.methods[0].not_weaker_than("relative-king-h", MatchKind::EqualCost);
    assert!(not_weaker.contains(&"relative-king-v") && !not_weaker.contains(&"piece-move"), "{not_weaker:?}");
    assert!(clear.methods[0].not_weaker_than("piece-move", MatchKind::EqualCost).contains(&"relative-king-h"));
    let reference = row(&summary, 0);
    assert!(reference.elo_equal_nodes.is_none() && (reference.nps - 1e6).abs() < 1.0, "{reference:?}");
    // One seed: the games' interval only.
    results.matches.retain(|result| result.key.seed == Seed(1));
    results.matches.iter_mut().for_each(|result| result.record.conditions.half_width = Some(20.0));
    let summary = Summary::of(&results);
    let single = nodes[3][&1].interval(CONFIDENCE);
    let elo = row(&summary, 3).elo_equal_nodes.expect("played");
    assert_eq!((elo.mean, elo.count), (single.value, 1));
    assert!((elo.interval.expect("an interval") - (single.high - single.value)).abs() < 0.01);
    let conditions = summary.match_conditions.expect("matches");
    assert!(conditions.contains("cover the variation between games, not between trainings"), "{conditions}");
    assert!(conditions.contains("biases Elo slightly"), "{conditions}");
}

/// Intervals and differences equal those computed from the seeds by hand.
#[test]
fn rows_have_intervals_and_paired_differences() {
    let results = test_records::results();
    let summary = Summary::of(&results);
    let [piece, compact, ..] = &summary.methods[0].rows[..] else { panic!("two rows") };
    let losses = |set: &str| {
        let runs = results.runs.iter().filter(|run| run.key.set == set && run.key.method == Method::Eval);
        runs.map(|run| run.validation_loss).collect::<Vec<_>>()
    };
    let pairs: Vec<f64> = losses("compact").iter().zip(losses("piece")).map(|(a, b)| a - b).collect();
    let difference = compact.difference.expect("paired");
    let plain = Estimate::over(&pairs).expect("three seeds");
    assert!((difference.mean - plain.mean).abs() < 1e-12 && difference.count == plain.count, "{difference:?}");
    // The interval holds for all the sets' differences together.
    let by_seed = |set: &SummaryRow| -> SortedMap<u64, f64> { (1..).zip(losses(&set.set)).collect() };
    let all: Vec<_> = summary.methods[0].rows.iter().map(by_seed).collect();
    assert_eq!(compact.difference, differences_to_first(&all)[1]);
    assert_eq!(piece.validation_loss, Estimate::over(&losses("piece")));
    assert_eq!(piece.difference, None);
    assert_eq!(piece.back_end.as_deref(), Some("avx2"), "the fastest back end");
    assert!(!summary.is_partial());
}

/// A sweep has a comparison per grid point, each with its own reference, and one front over all of them.
#[test]
fn a_sweep_is_compared_point_by_point() {
    let results = test_records::results_of_sweep();
    let summary = Summary::of(&results);
    let groups: Vec<_> = summary.methods.iter().map(|method| method.group.as_deref()).collect();
    assert_eq!(groups, [Some("l1 64"), Some("l1 128")]);
    for method in &summary.methods {
        let names: Vec<&str> = method.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["piece", "compact", "king-piece", "piece-move"]);
        assert_eq!(method.reference, method.rows[0].set);
        assert!(method.rows[0].difference.is_none() && method.rows[1].difference.is_some());
    }
    // By definition: on the front if no row is at least as good in both and better in one.
    let rows: Vec<_> = summary.methods.iter().flat_map(|method| &method.rows).collect();
    let facts = |row: &SummaryRow| (row.speed.expect("timed").mean, row.validation_loss.expect("trained").mean);
    let mut count = 0;
    for row in &rows {
        let (speed, loss) = facts(row);
        let is_beaten = rows.iter().any(|other| {
            let (other_speed, other_loss) = facts(other);
            (other_speed >= speed && other_loss < loss) || (other_speed > speed && other_loss <= loss)
        });
        assert_eq!(row.on_front, Some(!is_beaten), "{}", row.set);
        count += u32::from(!is_beaten);
    }
    assert!((2..8).contains(&count), "{count}");
    let figures = Figure::all(&summary);
    let names: Vec<&str> = figures.iter().map(Figure::name).collect();
    assert!(names.contains(&"loss-eval-l1-64") && names.contains(&"loss-eval-l1-128"), "{names:?}");
    let front = figures.iter().find(|figure| figure.name() == "front-eval").expect("a figure");
    let figures::Chart::Series { series, .. } = &front.chart else { panic!("series") };
    assert_eq!((series.len(), series[4].points.len()), (5, count as usize), "four sets and the front");
    let text = text(&summary, WIDTH);
    for part in ["Trained on evaluations (eval), l1 64", "Trained on evaluations (eval), l1 128"] {
        assert!(text.contains(part), "{text}");
    }
    write(&summary, &results, folder().path()).expect("written");
}

/// The overview shows the fastest strategy of each set, and loss is plotted against its time.
#[test]
fn the_fastest_strategy_is_shown() {
    let mut results = test_records::results();
    let summary = Summary::of(&results);
    let strategies: Vec<_> =
        summary.methods[0].rows.iter().map(|row| row.speed_way.clone().expect("timed").strategy).collect();
    assert_eq!((&strategies[0][..], &strategies[3][..]), ("lazy", "refresh"), "piece-move is faster from scratch");
    let row = &summary.methods[0].rows[3];
    let speed = row.speed.expect("timed");
    let refresh = row.speed_refresh.expect("timed");
    assert!(speed == refresh && speed.mean > row.speed_incremental.expect("timed").mean);
    let time = row.nanoseconds.expect("timed");
    assert!((time.total() - 1e9 / speed.mean).abs() < 1e-6);
    let figure = |summary: &Summary| Figure::all(summary).into_iter().find(|figure| figure.name() == "tradeoff-eval");
    let figures::Chart::Scatter { points, x_axis, .. } = figure(&summary).expect("drawn").chart else {
        panic!("points")
    };
    assert!(x_axis.contains("evaluations per second") && points[3].x == speed);

    assert!(!text(&summary, WIDTH).contains("(noisy)\n") && !row.speed_noisy);
    test_records::make_noisy(&mut results.speed[3].record, 0.8);
    let summary = Summary::of(&results);
    assert!(summary.methods[0].rows[3].speed_noisy);
    let text = text(&summary, 300);
    let line = text.lines().find(|line| line.trim_start().starts_with("piece-move ")).expect("a row");
    assert!(line.contains("(noisy)"), "{line}");

    results.speed.clear();
    assert_eq!(figure(&Summary::of(&results)).expect("drawn").title(), "Loss by rows (eval)");
}

/// The verdict comes first, then what decides, in a picture; then tables, the other pictures, and all pairs.
#[test]
fn what_decides_stands_under_the_verdict() {
    let mut results = test_records::results_with_matches();
    results.speed.iter_mut().filter(|timed| timed.key.set == "compact").for_each(|timed| {
        test_records::make_noisy(&mut timed.record, 0.3);
    });
    let summary = Summary::of(&results);
    let verdict = summary.methods[0].verdict.clone();
    insta::assert_snapshot!("verdict", verdict.join("\n"));
    let markdown = markdown(&summary);
    let page = html(&summary).expect("drawn");
    let order = |report: &str, parts: &[&str]| {
        let places: Vec<usize> =
            parts.iter().map(|part| report.find(part).unwrap_or_else(|| panic!("{part}"))).collect();
        assert!(places.is_sorted(), "{parts:?} at {places:?}");
    };
    order(
        &markdown,
        &[
            "- No set is shown",
            "](plots/elo-equal-cost-eval.svg)",
            "](plots/tradeoff-eval.svg)",
            "| set |",
            "](plots/loss-eval.svg)",
        ],
    );
    let figures = ["aria-label=\"Playing strength at equal cost (eval)\"", "aria-label=\"Loss by speed (eval)\""];
    order(
        &page,
        &["class=\"verdict\"", figures[0], figures[1], "At a glance", "aria-label=\"Validation loss (eval)\""],
    );
    // JSON has the same words, and the facts that they are made of.
    let json = serde_json::to_value(&summary).expect("serialisable");
    let row = &json["methods"][0]["rows"][2];
    assert_eq!(json["methods"][0]["verdict"].as_array().map(Vec::len), Some(verdict.len()));
    assert_eq!(row["training_data"]["best_epochs"], serde_json::json!([2, 2, 2]));
    assert_eq!((&row["training_data"]["scarce"], &row["l1"]), (&true.into(), &64.into()));
}

/// No line is wider than the given width, and every column is printed at every width.
#[test]
fn tables_are_split_at_the_width() {
    let summary = Summary::of(&test_records::results());
    for width in [60, 80, 100, 142] {
        let text = text(&summary, width);
        let widest = text.lines().map(|line| line.chars().count()).max().expect("lines");
        assert!(widest <= width, "{widest} at {width}");
        for heading in [
            "validation loss",
            "evaluations/s",
            "samples/parameter",
            "best epoch",
            "about",
            "rows refresh",
            "forward ns",
            "bookkeeping ns",
            "integer error",
        ] {
            let rows = text.lines().filter(|line| line.trim_start().starts_with("set ") && line.contains(heading));
            assert!(rows.count() >= 1, "{heading} at {width}");
        }
    }
    assert!(text(&summary, 60).lines().count() > text(&summary, 142).lines().count());
}

#[test]
fn a_partial_folder_says_how_many_seeds_each_row_has() {
    let mut results = test_records::results();
    results.runs.retain(|run| run.key.set == "piece" || run.key.seed == Seed(1));
    results.runs.retain(|run| run.key.set != "compact");
    let summary = Summary::of(&results);
    let text = text(&summary, WIDTH);
    let line = |set: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(&format!("{set} ")));
        found.unwrap_or_default().to_owned()
    };
    assert!(summary.is_partial() && text.replace('\n', " ").contains("is not finished"));
    // A loss over several seeds has an interval, and so has every speed.
    let intervals = |set: &str| line(set).matches('±').count();
    assert!(line("piece").contains(" 3 ") && intervals("piece") == 2, "{text}");
    assert!(line("king-piece").contains("1 of 3") && intervals("king-piece") == 1, "{text}");
    assert!(line("compact").contains("0 of 3"), "{text}");
    let written = folder();
    write(&summary, &results, written.path()).expect("a partial report is a report");
}

#[test]
fn an_empty_study_still_gives_a_report() {
    let results = test_records::empty();
    let written = folder();
    write(&Summary::of(&results), &results, written.path()).expect("an empty report");
}

#[test]
fn all_files_are_written_and_the_page_loads_nothing() {
    let results = test_records::results();
    let summary = Summary::of(&results);
    let out = folder();
    let written = write(&summary, &results, out.path()).expect("written");
    for path in &written {
        assert!(std::fs::metadata(path).expect("listed files exist").len() > 100, "{}", path.display());
    }
    let page = html(&summary).expect("drawn");
    for reference in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert_eq!(page.matches("<svg").count(), Figure::all(&summary).len());
    assert!(page.contains("Test CPU @ 2.0GHz"));
    let csv = std::fs::read_to_string(out.path().join("tables/summary.csv")).expect("written");
    assert_eq!(csv.lines().count(), 1 + 9);
    assert!(csv.starts_with("method,set,seeds_done,"));
    let png = std::fs::read(out.path().join("plots/loss-eval.png")).expect("written");
    assert_eq!(&png[1..4], b"PNG");
    let parquet = std::fs::read(out.path().join("tables/runs.parquet")).expect("written");
    assert_eq!((&parquet[..4], &parquet[parquet.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let results = test_records::results();
    let summary = Summary::of(&results);
    let one = folder();
    let two = folder();
    let first = write(&summary, &results, one.path()).expect("written");
    let second = write(&summary, &results, two.path()).expect("written");
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(std::fs::read(a).expect("written"), std::fs::read(b).expect("written"), "{}", a.display());
    }
}

#[test]
fn results_survive_saving_and_the_newest_is_by_time() {
    let root = folder();
    let mut results = test_records::results();
    for (name, seconds) in [("b-older", 1_000), ("c-newest", 3_000), ("a-middle", 2_000)] {
        results.environment.recorded = Timestamp::from_unix(seconds);
        results.save(&root.path().join(name)).expect("saved");
    }
    std::fs::create_dir(root.path().join("zzz-no-results")).expect("made");
    results.environment.recorded = Timestamp::from_unix(2_500);
    results.save(&root.path().join("local/deeper")).expect("saved");
    let newest = Results::newest(root.path()).expect("three results");
    assert_eq!(newest, root.path().join("c-newest"));
    results.environment.recorded = Timestamp::from_unix(3_000);
    assert_eq!(Results::load(&newest).expect("saved"), results);
    results.environment.recorded = Timestamp::from_unix(4_000);
    results.save(&root.path().join("local/deeper")).expect("saved");
    assert_eq!(Results::newest(root.path()).expect("four results"), root.path().join("local/deeper"));
}

#[test]
fn folders_without_results_are_named() {
    let root = folder();
    let path = root.path();
    let load = Results::load(path).expect_err("empty").to_string();
    assert!(load.contains("no results here") && load.contains(&path.display().to_string()), "{load}");
    let newest = Results::newest(path).expect_err("empty").to_string();
    assert!(newest.contains("fsbench run"), "{newest}");
    let missing = Results::load(&path.join("none")).expect_err("missing").to_string();
    assert!(missing.contains("no such folder"), "{missing}");
    test_records::results().save(path).expect("saved");
    std::fs::write(path.join("runs.json"), "[{]").expect("written");
    let broken = Results::load(path).expect_err("broken").to_string();
    assert!(broken.contains("runs.json: not a valid record: key must be a string at line 1 column 3"), "{broken}");
}

/// The committed reports are what `fsbench report results/NAME` makes of the committed records. PNG and Parquet files
/// are not compared: their bytes may differ between versions of a library.
#[test]
fn the_committed_reports_are_up_to_date() {
    let folder_of_all = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let entries = std::fs::read_dir(folder_of_all).expect("results").map(|entry| entry.expect("listed").path());
    let committed: Vec<_> = entries.filter(|path| path.join("study.json").is_file()).collect();
    assert!(committed.iter().any(|path| path.ends_with("quickstart")), "{committed:?}");
    for committed in committed {
        let results = Results::load(&committed).expect("results");
        let made = folder();
        let written = write(&Summary::of(&results), &results, made.path()).expect("written");
        for path in written {
            let name = path.strip_prefix(made.path()).expect("inside");
            if name.extension().is_some_and(|ending| ending == "png" || ending == "parquet") {
                continue;
            }
            let old = std::fs::read(committed.join(name)).unwrap_or_default();
            let is_same = old == std::fs::read(&path).expect("written");
            let name = name.display();
            let folder = committed.display();
            assert!(is_same, "{name} is out of date: run `fsbench report {folder}`");
        }
    }
}
