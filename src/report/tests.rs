//! The report as a whole, from fixed records.

use super::{samples, *};
use crate::record::{Method, Results, Timestamp};
use crate::units::Seed;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn terminal_and_markdown() {
    let summary = Summary::of(&samples::results());
    insta::assert_snapshot!("terminal", text(&summary));
    insta::assert_snapshot!("markdown", markdown(&summary));
}

/// Intervals and differences are those of the seeds, by hand.
#[test]
fn rows_carry_intervals_and_paired_differences() {
    let results = samples::results();
    let summary = Summary::of(&results);
    let [piece, compact, ..] = &summary.methods[0].rows[..] else { panic!("two rows") };
    let losses = |set: &str| {
        let runs = results.runs.iter().filter(|run| run.key.set == set && run.key.method == Method::Eval);
        runs.map(|run| run.validation_loss).collect::<Vec<_>>()
    };
    let pairs: Vec<f64> = losses("compact").iter().zip(losses("piece")).map(|(a, b)| a - b).collect();
    assert_eq!(compact.difference, Estimate::over(&pairs));
    assert_eq!(piece.validation_loss, Estimate::over(&losses("piece")));
    assert_eq!(piece.difference, None);
    assert_eq!(piece.back_end.as_deref(), Some("avx2"), "the fastest incremental back end");
    assert!(!summary.is_partial());
}

#[test]
fn a_partial_folder_says_how_many_seeds_each_row_has() {
    let mut results = samples::results();
    results.runs.retain(|run| run.key.set == "piece" || run.key.seed == Seed(1));
    results.runs.retain(|run| run.key.set != "compact");
    let summary = Summary::of(&results);
    let text = text(&summary);
    let line = |set: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(&format!("{set} ")));
        found.unwrap_or_default().to_owned()
    };
    assert!(summary.is_partial() && text.contains("Not finished"));
    assert!(line("piece").contains(" 3 ") && line("piece").contains('±'), "{text}");
    assert!(line("king-piece").contains("1 of 3") && !line("king-piece").contains('±'), "{text}");
    assert!(line("compact").contains("0 of 3"), "{text}");
    let written = folder();
    write(&summary, &results, written.path()).expect("a partial report is a report");
}

#[test]
fn an_empty_study_still_gives_a_report() {
    let results = samples::empty();
    let written = folder();
    write(&Summary::of(&results), &results, written.path()).expect("an empty report");
}

#[test]
fn every_file_is_there_and_the_page_needs_no_network() {
    let results = samples::results();
    let summary = Summary::of(&results);
    let out = folder();
    let written = write(&summary, &results, out.path()).expect("written");
    for path in &written.files {
        assert!(std::fs::metadata(path).expect("listed files exist").len() > 100, "{}", path.display());
    }
    let page = html(&summary).expect("drawn");
    for foreign in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
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
    let results = samples::results();
    let summary = Summary::of(&results);
    let (one, two) = (folder(), folder());
    let first = write(&summary, &results, one.path()).expect("written");
    let second = write(&summary, &results, two.path()).expect("written");
    for (a, b) in first.files.iter().zip(&second.files) {
        assert_eq!(std::fs::read(a).expect("written"), std::fs::read(b).expect("written"), "{}", a.display());
    }
}

#[test]
fn results_survive_saving_and_the_newest_is_by_time() {
    let root = folder();
    let mut results = samples::results();
    for (name, seconds) in [("b-older", 1_000), ("c-newest", 3_000), ("a-middle", 2_000)] {
        results.environment.recorded = Timestamp::from_unix(seconds);
        results.save(&root.path().join(name)).expect("saved");
    }
    std::fs::create_dir(root.path().join("zzz-no-results")).expect("made");
    let newest = Results::newest(root.path()).expect("three results");
    assert_eq!(newest, root.path().join("c-newest"));
    results.environment.recorded = Timestamp::from_unix(3_000);
    assert_eq!(Results::load(&newest).expect("saved"), results);
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
    samples::results().save(path).expect("saved");
    std::fs::write(path.join("runs.json"), "[{]").expect("written");
    let broken = Results::load(path).expect_err("broken").to_string();
    assert!(broken.contains("runs.json: line 1, column 3"), "{broken}");
}
