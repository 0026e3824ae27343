//! Rows at the widths of equal speed.

use super::*;
use crate::record::{EQUAL_SPEED, PlannedRow};

fn text() -> String {
    let rows = "[[runs]]\nmethod = \"pqr\"\nsets   = [\"piece\"]\n";
    TEXT.replace(rows, "").replace("[measure.error]\n", "[measure.error]\n[equal_speed]\n[match]\nnodes = 100\n")
}

#[test]
fn every_set_is_trained_once_more_at_its_width() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let results = folder.run(&text(), &mut executor).expect("done");
    let labels: Vec<(&str, &str, Option<&str>)> =
        results.study.rows.iter().map(|row| (row.set.as_str(), row.name(), row.group.as_deref())).collect();
    let expected = [
        ("piece", "piece", None),
        ("compact", "compact", None),
        ("piece, l1 8, equal speed", "piece, l1 8", Some(EQUAL_SPEED)),
        ("compact, l1 32, equal speed", "compact, l1 32", Some(EQUAL_SPEED)),
    ];
    assert_eq!(labels, expected);
    // The reference at equal speed is the reference's own run; compact is trained at both widths.
    let count = |kind: &str| executor.calls.keys().filter(|name| name.starts_with(kind)).count();
    assert_eq!((results.runs.len(), count("train")), (8, 4), "{:?}", executor.calls);
    let widths: Vec<(&str, usize)> =
        results.equal_speed.iter().map(|result| (result.key.set.as_str(), result.record.l1)).collect();
    assert_eq!(widths, [("compact", 32), ("compact, l1 32, equal speed", 64)], "found, and timed as trained");
    // Each comparison plays by itself.
    let played: Vec<(&str, &str)> =
        results.matches.iter().map(|result| (result.key.set.as_str(), result.reference.as_str())).collect();
    let pair = ("compact", "piece");
    let faster = ("compact, l1 32, equal speed", "piece, l1 8, equal speed");
    assert_eq!(played, [pair, faster, pair, faster]);

    let calls: u32 = executor.calls.values().sum();
    let files = folder.files();
    let again = folder.run(&text(), &mut executor).expect("done");
    assert_eq!((executor.calls.values().sum::<u32>(), folder.files()), (calls, files), "a rerun does nothing");
    let saved = Results::load(&folder.options().out).expect("saved");
    for other in [again, saved] {
        assert_eq!(
            (&other.study, &other.runs, &other.equal_speed),
            (&results.study, &results.runs, &results.equal_speed)
        );
        assert_eq!((&other.matches, &other.validation), (&results.matches, &results.validation));
    }
}

/// A network trained at the width found that is slower than expected gives way to a narrower one; the trial with the
/// first seed does not show among the results, but its network is kept, because the next run looks at it again.
#[test]
fn the_speed_of_the_trained_network_decides() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor { trained: 0.5, ..FakeExecutor::default() };
    let results = folder.run(&text(), &mut executor).expect("done");
    let names: Vec<&str> = results.study.rows.iter().map(PlannedRow::name).collect();
    // At 32 half as fast as expected; half of the time is taken to grow with the width, which cannot be narrower.
    assert_eq!(names, ["piece", "compact", "piece, l1 8", "compact, l1 32"]);

    executor.found = 96;
    let options = RunnerOptions { fresh: true, ..folder.options() };
    let experiment = folder.experiment(&text()).expect("an experiment");
    executor.calls = SortedMap::new();
    let mut monitor = RecordingMonitor::default();
    let results = Runner::run(&experiment, &mut executor, &options, &mut monitor).expect("done");
    let names: Vec<&str> = results.study.rows.iter().map(PlannedRow::name).collect();
    assert_eq!(names, ["piece", "compact", "piece, l1 8", "compact, l1 32"]);
    let trained = |seed: u32| executor.calls[&format!("train compact Eval {seed}")];
    assert_eq!((trained(1), trained(2)), (3, 2), "at its own width, the one found, and the corrected one");
    assert!(monitor.trained.iter().all(|(run, _)| !run.key.set.contains("l1 96")), "{:?}", monitor.trained);
    assert!(results.runs.iter().all(|run| !run.key.set.contains("l1 96")));
    let kept = kept_runs(&options.work).expect("read");
    let unused: Vec<_> = kept.iter().filter(|run| run.used_by.is_empty()).collect();
    assert!(kept.len() == 7 && unused.is_empty(), "the trial's network is used, too: {kept:?}");
    let calls = executor.calls.clone();
    folder.run(&text(), &mut executor).expect("done");
    assert_eq!(executor.calls, calls, "a rerun does nothing");
}

/// A command interrupted before it comes to the rows at equal speed still uses their runs.
#[test]
fn an_interrupted_run_keeps_the_runs_of_later_passes() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    folder.run(&text(), &mut executor).expect("done");
    let more = text().replace("seeds = [1, 2]", "seeds = [1, 2, 3]");
    assert_ne!(more, text());
    executor.calls_left = Some(0);
    folder.run(&more, &mut executor).expect_err("killed");
    let kept = kept_runs(&folder.options().work).expect("read");
    assert!(kept.len() > 4 && kept.iter().all(|run| !run.used_by.is_empty()), "{kept:?}");
}

/// `--force` repeats every step once, not the steps of the first rows once more.
#[test]
fn force_repeats_every_step_once() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    folder.run(&text(), &mut executor).expect("done");
    let once = executor.calls.clone();
    let options = RunnerOptions { fresh: true, ..folder.options() };
    let experiment = folder.experiment(&text()).expect("an experiment");
    Runner::run(&experiment, &mut executor, &options, &mut RecordingMonitor::default()).expect("done");
    for (name, count) in &executor.calls {
        assert_eq!(*count, 2 * once[name], "{name}");
    }
}

#[test]
fn an_interruption_anywhere_changes_no_result() {
    let whole = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let whole_results = whole.run(&text(), &mut executor).expect("done");
    let total: u32 = executor.calls.values().sum();
    for calls in (0..total).step_by(3) {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor { calls_left: Some(calls), ..FakeExecutor::default() };
        folder.run(&text(), &mut executor).expect_err("killed");
        executor.calls_left = None;
        let results = folder.run(&text(), &mut executor).expect("done");
        // Compact is trained at two widths.
        let expected = |name: &str| if name.starts_with("train compact") { 2 } else { 1 };
        assert!(executor.calls.iter().all(|(name, count)| *count == expected(name)), "{calls}: {:?}", executor.calls);
        assert_eq!((&results.equal_speed, &results.study), (&whole_results.equal_speed, &whole_results.study));
    }
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let problem = |lines: &str| {
        let text = text().replace("[equal_speed]\n", &format!("[equal_speed]\n{lines}\n"));
        ExperimentFolder::new().experiment(&text).expect_err(lines).to_string()
    };
    assert!(problem("reference = \"pieces\"").contains("no run by eval uses the set 'pieces'"));
    assert!(problem("tolerance = 0.0").contains("between 0 and 0.5"));
    assert!(problem("repetitions = 1").contains("at least 2"));
    assert!(problem("[sweep]\nl1 = [8, 16]").contains("cannot stand together"));
    let alone = text().replace(", \"compact\"", "").replace("[match]\nnodes = 100\n", "");
    let error = ExperimentFolder::new().experiment(&alone).expect_err("one set").to_string();
    assert!(error.contains("no set beside the reference"), "{error}");
}
