//! Comparisons from fixed records.

use super::*;
use crate::record::{LossFunction, RunKey};
use crate::report::{WIDTH, html, markdown, summary::Summary, test_records, text, write};
use crate::units::Seed;

/// Sums over 40 games: `factor` times the same losses, with differences between games and seeds.
fn losses(factor: f64, set: usize, seed: u64, method: Method) -> ValidationLosses {
    let sums = |game: u32| {
        let samples = 20 + game * 7 % 31;
        let uneven = |number: u32, of: u32| f64::from(number * 37 % of) / f64::from(of) - 0.5;
        let own =
            0.02 * uneven(game + 11 * set as u32, 17) + 0.002 * uneven(game + 5 * set as u32 + 3 * seed as u32, 13);
        let difficulty = 1.0 + uneven(game, 19);
        let loss = f64::from(samples) * 0.01 * factor * (difficulty + own);
        let preferred = if method == Method::Pqr { (f64::from(samples) * (0.7 - 0.1 * factor)) as u32 } else { 0 };
        LossSums { game, samples, loss: loss as f32, preferred }
    };
    let games: Vec<LossSums> = (0..40).map(sums).collect();
    let class = |by: &str, part: &str, games: &[LossSums]| ClassLosses {
        by: by.into(),
        part: part.into(),
        groups: games.to_vec(),
    };
    let classes = vec![
        class("pieces left", "25-28", &games[..20]),
        class("pieces left", "29-32", &games[20..]),
        class("ply", "120-", &games[..3]),
    ];
    ValidationLosses { has_preferred: method == Method::Pqr, games, classes }
}

/// The loss of a method, with its defaults but for the power.
fn function(method: Method, power: f64) -> LossFunction {
    let settings = match method {
        Method::Eval => serde_json::json!({ "eval": { "power": power } }),
        Method::Pqr => serde_json::json!({ "pqr": {} }),
    };
    serde_json::from_value(settings).expect("settings have defaults")
}

/// The fixed records with validations: each set 4% worse than the one before, but the third almost equal to the second.
fn results() -> Results {
    let mut results = test_records::results();
    let rows = results.study.rows.clone();
    for method in [Method::Eval, Method::Pqr] {
        for (set, row) in rows.iter().filter(|row| row.method == method).enumerate() {
            let factor = [1.0, 1.04, 1.041, 1.08, 1.12, 1.16, 1.2][set];
            for Seed(seed) in [Seed(1), Seed(2), Seed(3)] {
                let noise = 1.0 + 0.004 * ((seed * 5 + set as u64 * 3) % 7) as f64 / 7.0;
                let record = ValidationRecord::new(function(method, 2.6), losses(factor * noise, set, seed, method));
                let key = RunKey { set: row.set.clone(), method, seed: Seed(seed) };
                results.validation.push(NetResult { key, record });
            }
        }
    }
    results
}

#[test]
fn pairs_are_compared_and_reported() {
    let results = results();
    let summary = Summary::of(&results);
    let comparisons = &summary.methods[0].comparisons;
    assert_eq!((comparisons.pairs.len(), comparisons.parts.len()), (21, 2 * 6));
    let of = |set: &str, against: &str| {
        let pair = comparisons.pairs.iter().find(|pair| (&pair.set[..], &pair.against[..]) == (set, against));
        pair.expect("compared")
    };
    let clear = of("compact", "piece");
    assert_eq!((clear.difference.statement, clear.more_seeds, clear.more_games), (Statement::Worse, None, None));
    assert!(clear.difference.low > 0.0 && (3.0..5.0).contains(&clear.difference.difference), "{clear:?}");
    let close = of("king-piece", "compact");
    assert_eq!(close.difference.statement, Statement::NotDistinguished);
    assert!(close.difference.low < 0.0 && close.difference.high > 0.0, "{close:?}");

    // The difference is the mean over the seeds of the ratio of losses, and its interval is for the 21 together.
    let sums = |set: &str| -> SeedSums {
        let own = results.validation.iter().filter(|run| run.key.set == set && run.key.method == Method::Eval);
        own.map(|run| (run.key.seed.0, run.record.losses.games.iter().map(|game| f64::from(game.loss)).collect()))
            .collect()
    };
    let samples = sample_counts(&results.validation[0].record.losses.games);
    let sets: Vec<SeedSums> = results.study.rows[..7].iter().map(|row| sums(&row.set)).collect();
    let paired = PairedSets::new(&samples, &sets, Scale::Logarithmic).expect("forty games");
    let found = paired.difference(1, 0).expect("three seeds");
    let half = found.half_width(Level::together(21, 1));
    assert!((clear.difference.high - 100.0 * (found.value + half).exp_m1()).abs() < 1e-9);

    // By pqr, loss and accuracy are one family of comparisons.
    let pqr = &summary.methods[1].comparisons;
    let accuracy: Vec<_> =
        pqr.pairs.iter().filter(|pair| pair.difference.measure == ComparedMeasure::Accuracy).collect();
    assert_eq!((pqr.pairs.len(), accuracy.len()), (2, 1));
    assert!(accuracy[0].difference.difference < 0.0, "{accuracy:?}");

    let report = text(&summary, WIDTH);
    let start = report.find("  Pairs: loss").expect("a table");
    let end = report.find("Trained on chosen moves").expect("the next method");
    insta::assert_snapshot!("pairs", &report[start..end]);
    assert!(report.lines().all(|line| line.chars().count() <= WIDTH));
    let markdown = markdown(&summary);
    let html = html(&summary).expect("drawn");
    let matrix = report.find("All pairs: loss").expect("a matrix");
    assert!(matrix < start, "the matrix comes first");
    for part in ["Pairs: loss, %", "Pairs: accuracy, percentage points", "Where a set wins", "compact vs piece"] {
        assert!([&report, &markdown, &html].iter().all(|report| report.contains(part)), "{part}");
    }
    let out = tempfile::tempdir().expect("a folder");
    write(&summary, &results, out.path()).expect("written");
    let csv = std::fs::read_to_string(out.path().join("tables/pairs.csv")).expect("written");
    assert!(
        csv.starts_with("method,set,against,measure,difference,low,high,statement,seeds,games,more_seeds,more_games\n")
    );
    assert_eq!(csv.lines().count(), 1 + 21 + 2);
    let csv = std::fs::read_to_string(out.path().join("tables/parts.csv")).expect("written");
    assert_eq!(csv.lines().count(), 1 + 2 * 6 + 2 * 2);
}

#[test]
fn what_the_intervals_lack_is_said() {
    let note = |results: &Results| Comparisons::of(results, &results.study.rows[0]).note.expect("seven sets");
    let mut results = results();
    assert!(note(&results).contains("between games and between training seeds"), "{}", note(&results));
    results.validation[1].record.function = function(Method::Eval, 2.0);
    results.validation[3].record.losses.games.pop();
    results.validation.retain(|run| run.key.seed == Seed(1) || run.key.set != "piece-move");
    let text = note(&results);
    assert!(text.contains("lack the variation between trainings"), "{text}");
    assert!(text.contains("because of another loss or other samples: piece, compact."), "{text}");
    results.validation.retain(|run| run.key.seed == Seed(1));
    let text = note(&results);
    assert!(text.contains("One seed was trained") && text.contains("another seed may turn a result round"), "{text}");
    let pairs = Comparisons::of(&results, &results.study.rows[0]).pairs;
    assert!(pairs.iter().all(|pair| pair.difference.seeds == 1 && pair.more_seeds.is_none()), "{pairs:?}");
    results.validation.retain(|run| run.key.set == "piece");
    assert!(note(&results).contains("fewer than two sets"), "{}", note(&results));
    results.validation.clear();
    assert!(note(&results).contains("no validation losses by game"), "{}", note(&results));
    results.study.rows.truncate(1);
    assert!(Comparisons::of(&results, &results.study.rows[0]).note.is_none(), "nothing to compare");
}

/// More sets than can be compared pair by pair are compared with the first.
#[test]
fn many_sets_are_compared_with_the_first() {
    let mut results = results();
    let row = results.study.rows[1].clone();
    let runs = results.validation[3..6].to_vec();
    for number in 0..15 {
        let set = format!("set {number}");
        results.study.rows.push(PlannedRow { set: set.clone(), ..row.clone() });
        results.validation.extend(runs.iter().map(|run| {
            let key = RunKey { set: set.clone(), ..run.key.clone() };
            NetResult { key, record: run.record.clone() }
        }));
    }
    let comparisons = Comparisons::of(&results, &results.study.rows[0]);
    assert_eq!((comparisons.pairs.len(), comparisons.parts.len()), (21, 0));
    assert!(comparisons.pairs.iter().all(|pair| pair.against == "piece"));
    assert!(comparisons.note.expect("a note").contains("each is compared with the first"));
}
