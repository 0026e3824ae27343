//! `[scaling]`: trainings on shares of the training games.

use super::*;
use crate::units::Seed;

const SHARES: &str = "[scaling]\nshares = [0.25, 0.5, 1]\n";

#[test]
fn shares_are_trained_and_validated_and_nothing_else() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    folder.run(TEXT, &mut executor).expect("done");
    let calls = |executor: &FakeExecutor| executor.calls.values().sum::<u32>() as usize;
    let text = format!("{TEXT}\n{SHARES}");
    let results = folder.run(&text, &mut executor).expect("done");
    // Of two shares, three rows and two seeds.
    assert_eq!(calls(&executor), STEPS + 2 * 3 * 2 * 2);
    assert_eq!((results.runs.len(), results.validation.len(), results.study.rows.len()), (18, 18, 3));
    assert_eq!(results.runs.iter().filter(|run| run.key.set == "piece, share 0.25").count(), 4);
    assert_eq!(Results::load(&folder.options().out).expect("saved"), results);
    let listed = folder.list(&text);
    let is_listed = |name: &str| listed.iter().any(|step| step.name == name && step.done);
    assert!(is_listed("training compact, share 0.5 by eval, seed 2"));
    assert!(is_listed("validation of piece, share 0.25 by pqr, seed 1 by game"));
    // As many passes are other trainings than as many steps.
    folder.run(&format!("{text}by = \"epochs\"\n"), &mut executor).expect("done");
    assert_eq!(calls(&executor), STEPS + 2 * (2 * 3 * 2 * 2));
}

#[test]
fn shares_may_be_those_of_some_seeds() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let results = folder.run(&format!("{TEXT}\n{SHARES}seeds = [2]\n"), &mut executor).expect("done");
    let of_shares = || results.runs.iter().filter(|run| run.key.set.contains("share"));
    assert_eq!((of_shares().count(), results.runs.len()), (6, 12));
    assert!(of_shares().all(|run| run.key.seed == Seed(2)));
}

#[test]
fn runs_read_their_share_and_begin_with_a_network_of_it() {
    let folder = ExperimentFolder::new();
    let row = "[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\nlabel = \"again\"\nstart_row = \"piece\"\n";
    let planned = |more: &str| {
        let experiment = folder.experiment(&format!("{TEXT}\n{row}{SHARES}{more}")).expect("an experiment");
        Plan::new(&experiment, &FakeExecutor::default()).expect("a plan")
    };
    for (more, repeats) in [("", true), ("by = \"epochs\"", false)] {
        let plan = planned(more);
        for run in &plan.runs {
            let config = run.config(&plan.sets[run.set], PathBuf::new(), PathBuf::new());
            let share = run.share.map(|share| share.share);
            assert_eq!((config.reading.training_share, config.repeat_share), (share, share.is_some() && repeats));
            if let Some(PlannedStart::Run(start)) = run.start {
                let start = &plan.runs[start];
                assert_eq!((start.share, start.key.seed), (run.share, run.key.seed), "{}", run.key);
            }
        }
    }
}

#[test]
fn wrong_shares_are_refused_where_they_are_written() {
    let refused = |shares: &str, expected: &str| {
        let text = format!("{TEXT}\n[scaling]\nshares = {shares}\n");
        let line = text.lines().position(|line| line.starts_with("shares")).expect("written") + 1;
        let found = Experiment::parse(Path::new("e.toml"), text, None).expect_err("a mistake").to_string();
        assert!(found.starts_with(&format!("e.toml:{line}:1")) && found.contains(expected), "{found}");
    };
    refused("[0.25, 0.5, 2]", "the share 2 must be above 0 and at most 1");
    refused("[0, 0.5, 1]", "the share 0 must be above 0");
    refused("[0.5, 0.25, 1]", "must ascend");
    refused("[0.5, 1]", "at least 3 shares");
    refused("[0.25, 0.5, 0.75]", "the last of them 1");
    let seeds = |seeds: &str| {
        let text = format!("{TEXT}\n{SHARES}seeds = {seeds}\n");
        Experiment::parse(Path::new("e.toml"), text, None).expect_err("a mistake").to_string()
    };
    assert!(seeds("[1, 9]").contains("no run has the seed 9"), "{}", seeds("[1, 9]"));
    assert!(seeds("[]").contains("no training learns from shares"), "{}", seeds("[]"));
}
