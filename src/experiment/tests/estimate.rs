//! What `--plan` says.

use super::*;

#[test]
fn a_plan_counts_the_steps_to_do_and_does_none() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let text = TEXT.replace("[measure.error]", "[measure.error]\n[match]\nnodes = 100");
    let experiment = folder.experiment(&text).expect("an experiment");
    let options = folder.options();
    let estimate = |executor: &mut FakeExecutor| {
        Runner::estimate(&experiment, executor, &options, &mut RecordingMonitor::default()).expect("estimated")
    };
    let first = estimate(&mut executor);
    // Matches of compact against piece with both seeds.
    assert_eq!((first.steps, first.to_do), (STEPS + 2, STEPS + 2));
    let stages: Vec<(&str, usize)> = first.stages.iter().map(|stage| (stage.stage, stage.steps)).collect();
    assert_eq!(stages, [("training", 6), ("measures", STEPS - 6), ("matches", 2)]);
    assert_eq!(first.rows.len(), 3, "one rehearsal per row");
    assert!(first.rows.iter().all(|row| row.training_samples == 160 && row.parameters == 1000));
    assert!(first.seconds > 0.0 && first.disk_bytes > 0);
    let warned = |part: &str| first.warnings.iter().any(|warning| warning.contains(part));
    assert!(warned("0.2 per parameter") && warned("l1 is below 64 for piece, compact"), "{:?}", first.warnings);
    assert!(warned("two seeds decide nothing") && warned("12.7") && warned("give 3 or more"), "{:?}", first.warnings);
    let rehearsed = executor.calls.keys().filter(|call| call.starts_with("train")).count();
    assert_eq!((rehearsed, executor.calls.len()), (3, 4), "{:?}", executor.calls);
    let left = std::fs::read_dir(&options.work).expect("the folder").flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().starts_with("rehearsal")));

    folder.run(&text, &mut executor).expect("done");
    let last = estimate(&mut executor);
    assert_eq!((last.to_do, last.seconds, last.rows.len()), (0, 0.0, 0));
}

/// Before the widths are found, trainings at them are counted by the rows' own; then the plan has their rows.
#[test]
fn a_plan_counts_trainings_at_equal_speed() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let text = TEXT.replace("[measure.error]", "[equal_speed]\n[measure.error]");
    let experiment = folder.experiment(&text).expect("an experiment");
    let estimate = |executor: &mut FakeExecutor| {
        let mut monitor = RecordingMonitor::default();
        Runner::estimate(&experiment, executor, &folder.options(), &mut monitor).expect("estimated")
    };
    let of = |stages: &[StageEstimate], name: &str| {
        stages.iter().find(|stage| stage.stage == name).map_or((0, 0.0), |stage| (stage.steps, stage.seconds))
    };
    let first = estimate(&mut executor);
    // Compact by two seeds and by the first once more; pqr has no other set.
    let (steps, seconds) = of(&first.stages, "training at equal speed");
    assert_eq!(steps, 3);
    let all = first.stages.iter().map(|stage| stage.seconds).sum::<f64>();
    assert!(seconds > 0.0 && (first.seconds - all).abs() < 1e-9, "{seconds} {}", first.seconds);
    assert!(first.warnings.iter().any(|warning| warning.contains("widths of equal speed")), "{:?}", first.warnings);

    folder.run(&text, &mut executor).expect("done");
    let last = estimate(&mut executor);
    assert_eq!((last.to_do, last.stages.len()), (0, 0), "{:?}", last.stages);
    assert!(last.steps > first.steps && last.warnings.iter().all(|warning| !warning.contains("widths of equal speed")));
}
