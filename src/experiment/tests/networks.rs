//! Links to networks, and the runs kept in the work folder.

use super::*;
use crate::output::checked::in_envelope;

fn run(folder: &ExperimentFolder, text: &str, options: &RunnerOptions) -> RecordingMonitor {
    let mut monitor = RecordingMonitor::default();
    let experiment = folder.experiment(text).expect("an experiment");
    Runner::run(&experiment, &mut FakeExecutor::default(), options, &mut monitor).expect("done");
    monitor
}

#[test]
fn every_run_says_where_its_network_is() {
    let folder = ExperimentFolder::new();
    let first = run(&folder, TEXT, &folder.options());
    assert!(first.trained.len() == 6 && first.trained.iter().all(|(_, when)| *when == FinishedWhen::Now));
    let again = run(&folder, TEXT, &folder.options());
    assert!(again.trained.len() == 6 && again.trained.iter().all(|(_, when)| *when == FinishedWhen::Before));
    for (trained, _) in &again.trained {
        assert!(trained.network.is_absolute() && trained.network.starts_with(&trained.folder), "{trained:?}");
        assert!(trained.folder.join("outcome.json").is_file(), "{trained:?}");
        let link = trained.link.as_ref().expect("a link");
        assert_eq!(std::fs::read_link(link).expect("a link"), trained.network);
    }
    assert!(folder.options().out.join("networks/eval-piece-seed1.safetensors").is_symlink());
    // With other settings the runs are other ones, and the links lead to them.
    let other = run(&folder, &TEXT.replace("l1            = 8", "l1 = 16"), &folder.options());
    let old = &again.trained[0].0;
    let new = &other.trained[0].0;
    assert_ne!(old.network, new.network);
    assert_eq!(std::fs::read_link(new.link.as_ref().expect("a link")).expect("a link"), new.network);
}

/// Writes the configuration that the real trainer leaves in every run's folder.
fn write_configurations(work: &Path) {
    for entry in std::fs::read_dir(work).expect("listed").map(|entry| entry.expect("listed").path()) {
        if let Ok(text) = std::fs::read_to_string(entry.join("outcome.json")) {
            let outcome: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let config = in_envelope(&outcome["content"]["config"].to_string());
            std::fs::write(entry.join("config.json"), config).expect("written");
        }
    }
}

fn used_by_elsewhere(options: &RunnerOptions) -> usize {
    let runs = kept_runs(&options.work).expect("listed");
    runs.iter().map(|run| run.used_by.len()).sum::<usize>() - runs.len()
}

#[test]
fn unused_runs_can_be_removed() {
    let folder = ExperimentFolder::new();
    let options = folder.options();
    run(&folder, TEXT, &options);
    let elsewhere = RunnerOptions { out: folder.folder.path().join("other"), ..folder.options() };
    let text = TEXT.replace("seeds = [1, 2]", "seeds = [2, 3]").replace("seeds   = [1]", "seeds   = [2]");
    run(&folder, &text, &elsewhere);
    write_configurations(&options.work);
    let used = || -> Vec<usize> {
        let runs = kept_runs(&options.work).expect("listed");
        let mut counts: Vec<usize> = runs.iter().map(|run| run.used_by.len()).collect();
        counts.sort_unstable();
        counts
    };
    // Three rows. Both experiments use seed 2; one uses seed 1, the other seed 3.
    assert_eq!(used(), [1, 1, 1, 1, 1, 1, 2, 2, 2]);
    assert_eq!(remove_unused_runs(&options.work).expect("removed"), []);
    std::fs::remove_dir_all(&elsewhere.out).expect("removed");
    assert_eq!(used(), [0, 0, 0, 1, 1, 1, 1, 1, 1]);
    let removed = remove_unused_runs(&options.work).expect("removed");
    assert!(removed.len() == 3 && removed.iter().all(|run| run.seed.0 == 3 && !run.path.exists()));
    assert_eq!(used(), [1; 6]);
    // A note of another machine counts if its results folder is nowhere to be seen.
    let run_name = kept_runs(&options.work).expect("listed")[0].path.file_name().expect("a name").to_owned();
    let note = options.work.join("experiments/elsewhere.json");
    let elsewhere = |host: &str, results: &std::path::Path| {
        let used = serde_json::json!({ "name": "x", "host": host, "results": results, "runs": [run_name.to_str()] });
        std::fs::write(&note, in_envelope(&used.to_string())).expect("written");
        used_by_elsewhere(&options)
    };
    let nowhere = std::path::Path::new("/no such folder/results");
    assert_eq!(elsewhere("another machine", nowhere), 1);
    assert_eq!(elsewhere("another machine", &folder.folder.path().join("removed")), 0);
    // With a damaged note nothing is removed.
    std::fs::write(&note, "{\"name\":\"x\"").expect("written");
    for error in [kept_runs(&options.work).err(), remove_unused_runs(&options.work).err()] {
        let message = error.expect("refused").to_string();
        assert!(message.contains("elsewhere.json") && message.contains("run its experiment again"), "{message}");
    }
    std::fs::remove_file(&note).expect("removed");
    // The first experiment's results are still there.
    assert_eq!(run(&folder, TEXT, &options).skipped, STEPS);
}

/// Data and sets are identified by their content: from another folder, no step is done again.
#[test]
fn another_folder_changes_nothing() {
    let folder = ExperimentFolder::new();
    std::fs::write(folder.folder.path().join("own.toml"), "").expect("written");
    let text = TEXT.replace("\"compact\"", "\"own.toml\"");
    let read = |file: PathBuf| Experiment::parse(&file, text.clone(), None).expect("an experiment");
    let mut executor = FakeExecutor { any_set: true, ..FakeExecutor::default() };
    Runner::run(
        &read(folder.folder.path().join("e.toml")),
        &mut executor,
        &folder.options(),
        &mut RecordingMonitor::default(),
    )
    .expect("done");
    let trainings =
        |executor: &FakeExecutor| executor.calls.iter().filter(|(call, _)| call.starts_with("train")).count();
    assert_eq!(trainings(&executor), 6);
    let through = folder.folder.path().join("results/..").join("e.toml");
    Runner::run(&read(through), &mut executor, &folder.options(), &mut RecordingMonitor::default()).expect("done");
    assert_eq!(trainings(&executor), 6, "{:?}", executor.calls);
}

/// Speeds that are measured one after another are compared by turns with the first row's network of the same seed,
/// which is timed whatever sets were chosen.
#[test]
fn networks_are_timed_beside_the_first_rows() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let text = TEXT.replace("seeds   = [1]\n", "seeds   = [2]\nsets = [\"compact\"]\n");
    let results = folder.run(&text, &mut executor).expect("done");
    let timed: Vec<&str> = results.speed.iter().map(|result| result.key.set.as_str()).collect();
    assert_eq!(timed, ["piece", "compact"]);
    let calls: Vec<&String> = executor.calls.keys().filter(|call| call.starts_with("speed")).collect();
    let beside: Vec<usize> = calls.iter().map(|call| call.matches(" beside ").count()).collect();
    assert_eq!(beside, [1, 0], "compact beside piece: {calls:?}");
}
