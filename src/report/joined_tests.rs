//! Tests of joined results, from fixed records.

use super::Summary;
use super::test_records::results_with_matches;
use crate::record::{Results, RunKey, Scaling, ScalingBy};
use crate::units::Seed;

fn labels(results: &Results) -> Vec<&str> {
    results.study.rows.iter().map(|row| row.set.as_str()).collect()
}

#[test]
fn an_experiment_with_itself_is_itself() {
    let one = results_with_matches();
    let two = Results::joined(vec![one.clone(), one.clone()]).expect("two");
    assert_eq!(labels(&two), labels(&one));
    assert_eq!((two.runs, two.matches, two.speed), (one.runs, one.matches, one.speed));
    assert!(Results::joined(Vec::new()).is_none());
}

#[test]
fn further_seeds_and_sets_are_added() {
    let all = results_with_matches();
    let part = |seeds: &[u64], sets: usize| {
        let mut part = all.clone();
        part.study.rows.truncate(sets);
        part.study.rows.iter_mut().for_each(|row| row.seeds = seeds.iter().map(|seed| Seed(*seed)).collect());
        let rows = part.study.rows.clone();
        let is_own = |key: &RunKey| {
            rows.iter().any(|row| (&row.set, row.method) == (&key.set, key.method) && row.seeds.contains(&key.seed))
        };
        part.runs.retain(|run| is_own(&run.key));
        part.matches.retain(|result| is_own(&result.key));
        part
    };
    let joined = Results::joined(vec![part(&[1, 2], 2), part(&[2, 3], 4)]).expect("two");
    assert_eq!(labels(&joined), labels(&part(&[1], 4)));
    assert_eq!(joined.study.rows[0].seeds, [Seed(1), Seed(2), Seed(3)]);
    assert_eq!((joined.study.rows[2].seeds.len(), joined.runs.len()), (2, 2 * 3 + 2 * 2));
}

#[test]
fn rows_that_differ_get_their_experiments_names() {
    let one = results_with_matches();
    let mut two = one.clone();
    two.study.name = "slower".into();
    two.study.train = serde_json::json!({ "l1": 128 });
    let joined = Results::joined(vec![one.clone(), two]).expect("two");
    assert_eq!(joined.study.rows.len(), 2 * one.study.rows.len());
    assert_eq!((labels(&joined)[0], labels(&joined)[one.study.rows.len()]), ("sample: piece", "slower: piece"));
    assert!(joined.matches.iter().all(|result| result.reference.ends_with(": piece")));
    let widths: Vec<_> = Summary::of(&joined).methods[0].rows.iter().map(|row| row.l1).collect();
    assert_eq!((widths[0], widths[7]), (Some(64), Some(128)), "each row keeps its experiment's settings");
    let keys: std::collections::BTreeSet<_> = joined.runs.iter().map(|run| format!("{}", run.key)).collect();
    assert_eq!(keys.len(), 2 * one.runs.len(), "every run has its own name");
}

/// Trainings on shares follow their row's name; experiments with other shares have no curves together.
#[test]
fn trainings_on_shares_follow_their_rows() {
    let with_shares = |shares: &[f64]| {
        let mut one = results_with_matches();
        let scaling = Scaling { shares: shares.to_vec(), by: ScalingBy::Steps, seeds: None };
        for run in one.runs.clone() {
            for share in shares.iter().filter(|share| **share < 1.0) {
                let key = RunKey { set: Scaling::label(&run.key.set, *share), ..run.key.clone() };
                one.runs.push(crate::record::RunRecord { key, ..run.clone() });
            }
        }
        one.study.scaling = Some(scaling);
        one
    };
    let one = with_shares(&[0.25, 0.5, 1.0]);
    let twice = Results::joined(vec![one.clone(), one.clone()]).expect("two");
    assert_eq!(twice.runs, one.runs, "the same seeds once");
    let mut other = one.clone();
    other.study.name = "slower".into();
    other.study.train = serde_json::json!({ "l1": 128 });
    let joined = Results::joined(vec![one.clone(), other]).expect("two");
    let named = |name: &str| joined.runs.iter().filter(|run| run.key.set == name).count();
    assert_eq!((named("sample: piece, share 0.25"), named("slower: piece, share 0.25")), (6, 6));
    assert_eq!(named("piece, share 0.25"), 0);
    let joined = Results::joined(vec![one, with_shares(&[0.125, 0.5, 1.0])]).expect("two");
    assert!(joined.study.scaling.is_none() && joined.runs == results_with_matches().runs);
}
