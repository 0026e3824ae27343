//! Several processes, here threads, that share the steps of an experiment.

use super::*;
use crate::output::file_lock::FileLock;
use crate::record::{StageSeconds, Timestamp};

impl ExperimentFolder {
    fn shared(&self) -> RunnerOptions {
        RunnerOptions { share: Share::Free, ..self.options() }
    }

    pub(super) fn list(&self, text: &str) -> Vec<ListedStep> {
        let experiment = self.experiment(text).expect("an experiment");
        Runner::list_steps(&experiment, &mut FakeExecutor::default(), &self.options()).expect("listed")
    }
}

/// Results without the parts that differ from one time to the next.
fn timeless(mut results: Results) -> Results {
    results.environment.recorded = Timestamp::from_unix(0);
    results.environment.seconds = StageSeconds::default();
    results
}

#[test]
fn workers_do_every_step_once_and_find_what_one_process_finds() {
    let alone = ExperimentFolder::new();
    let expected = alone.run(TEXT, &mut FakeExecutor::default()).expect("done");
    let folder = ExperimentFolder::new();
    let work = || {
        let mut executor = FakeExecutor::default();
        let experiment = folder.experiment(TEXT).expect("an experiment");
        let results = Runner::run(&experiment, &mut executor, &folder.shared(), &mut RecordingMonitor::default());
        (results.expect("done"), executor.calls)
    };
    let all = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect::<Vec<_>>()
    });
    let mut calls = SortedMap::<String, u32>::new();
    for (results, done) in all {
        assert_eq!(timeless(results), timeless(expected.clone()));
        for (step, count) in done {
            *calls.get_or_default(step) += count;
        }
    }
    assert_eq!((calls.len(), calls.values().sum::<u32>() as usize), (STEPS, STEPS), "{calls:?}");
    let left = std::fs::read_dir(folder.options().work.join("locks")).expect("locks");
    let left: Vec<_> = left.map(|entry| entry.expect("listed").file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("machine ")), "{left:?}");
    // A run alone finds everything done.
    let mut executor = FakeExecutor::default();
    assert_eq!(timeless(folder.run(TEXT, &mut executor).expect("done")), timeless(expected));
    assert!(executor.calls.is_empty());
}

/// Results that are damaged, cut off or empty count as not done: they alone are made again, with the same records.
#[test]
fn damaged_results_are_made_again() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let expected = folder.run(TEXT, &mut executor).expect("done");
    let stored = std::fs::read_dir(folder.options().work.join("finished")).expect("results");
    let mut stored: Vec<PathBuf> = stored.map(|entry| entry.expect("listed").path()).collect();
    stored.retain(|path| !path.to_string_lossy().contains("/data-") && !path.to_string_lossy().contains("/train-"));
    stored.sort();
    for (number, path) in stored.iter().step_by(4).enumerate() {
        let mut bytes = std::fs::read(path).expect("a result");
        let middle = bytes.len() / 2;
        match number % 3 {
            0 => bytes[middle] ^= 4,
            1 => bytes.truncate(middle),
            _ => bytes.clear(),
        }
        std::fs::write(path, bytes).expect("written");
    }
    let damaged = stored.len().div_ceil(4);
    assert_eq!(timeless(folder.run(TEXT, &mut executor).expect("done")), timeless(expected));
    assert_eq!(executor.calls.values().sum::<u32>() as usize, STEPS + damaged, "{:?}", executor.calls);
}

/// Of an experiment of more than two hundred steps, none is done twice or left.
#[test]
fn workers_share_many_steps() {
    let folder = ExperimentFolder::new();
    let seeds = (1..=17).map(|seed: u32| seed.to_string()).collect::<Vec<_>>().join(", ");
    let text = TEXT.replace("seeds = [1, 2]", &format!("seeds = [{seeds}]"));
    let work = || {
        let mut executor = FakeExecutor::default();
        let experiment = folder.experiment(&text).expect("an experiment");
        Runner::run(&experiment, &mut executor, &folder.shared(), &mut RecordingMonitor::default()).expect("done");
        executor.calls
    };
    let calls = std::thread::scope(|scope| {
        let workers = [(); 3].map(|()| scope.spawn(work));
        workers.map(|worker| worker.join().expect("no panic"))
    });
    let all: Vec<(String, u32)> = calls.into_iter().flatten().collect();
    assert_eq!(all.len(), 2 + 3 * 17 * 4 + 2);
    assert!(all.iter().all(|(_, count)| *count == 1), "{all:?}");
}

#[test]
fn steps_can_be_done_one_by_one() {
    let folder = ExperimentFolder::new();
    let experiment = folder.experiment(TEXT).expect("an experiment");
    let steps = folder.list(TEXT);
    assert_eq!((steps.len(), steps.iter().filter(|step| step.done).count()), (STEPS, 0));
    let mut executor = FakeExecutor::default();
    let mut run = |key: &str| {
        let options = folder.options();
        let mut monitor = RecordingMonitor::default();
        Runner::run_step(key, &experiment, &mut executor, &options, &mut monitor)
    };
    let dependent = steps.iter().find(|step| !step.needs.is_empty()).expect("a measure");
    let error = run(&dependent.key).expect_err("not ready").to_string();
    assert!(error.contains(&dependent.name) && error.contains("which is not done"), "{error}");
    let unknown = run("0123").expect_err("no such step");
    assert!(unknown.is_request() && unknown.to_string().contains("no step 0123"), "{unknown}");
    for step in &steps {
        run(&step.key).expect("its needs are done");
        run(&step.key).expect("done already");
    }
    assert_eq!(executor.calls.values().copied().collect::<Vec<_>>(), [1; STEPS]);
    let done = folder.list(TEXT);
    assert!(done.iter().all(|step| step.done && step.estimated_seconds.is_some()));
    assert!(steps.iter().zip(&done).all(|(before, after)| before.key == after.key));
}

/// A failed step stops those that need it, and no others.
#[test]
fn a_worker_goes_on_after_a_failure() {
    let folder = ExperimentFolder::new();
    let experiment = folder.experiment(TEXT).expect("an experiment");
    let mut executor = FakeExecutor { fails: Some("train compact Eval 1".into()), ..FakeExecutor::default() };
    let failed = Runner::run(&experiment, &mut executor, &folder.shared(), &mut RecordingMonitor::default());
    let error = failed.expect_err("a step failed").to_string();
    assert!(error.contains("1 of the experiment's steps failed, and 4 that need them"), "{error}");
    // All but the training, its validation, activity, error and speed.
    assert_eq!(executor.calls.len(), STEPS - 5);
    executor.fails = None;
    Runner::run(&experiment, &mut executor, &folder.shared(), &mut RecordingMonitor::default()).expect("done");
    assert_eq!(executor.calls.values().copied().collect::<Vec<_>>(), [1; STEPS]);
}

/// A worker of several experiments, which comes back while others work, does not try again what failed, and says it
/// once.
#[test]
fn a_failed_step_is_not_done_again_at_the_next_look() {
    let folder = ExperimentFolder::new();
    let experiment = folder.experiment(TEXT).expect("an experiment");
    let mut executor = FakeExecutor { fails: Some("train compact Eval 1".into()), ..FakeExecutor::default() };
    let options = folder.shared();
    let mut monitor = RecordingMonitor::default();
    let mut earlier = Earlier::default();
    // Another process does a step all the time.
    let is_other = |step: &ListedStep| step.kind == "train" && !step.name.contains("compact");
    let key = folder.list(TEXT).into_iter().find(is_other).expect("a training").key;
    let lock = FileLock::alone(&options.work.join("locks").join(&key)).expect("free");
    for _ in 0..3 {
        let results = Runner::run_free(&experiment, &mut executor, &options, &mut monitor, &mut earlier);
        assert!(results.expect("others work").is_none());
    }
    drop(lock);
    let results = Runner::run_free(&experiment, &mut executor, &options, &mut monitor, &mut earlier);
    let error = results.expect_err("a step failed").to_string();
    assert!(error.contains("1 of the experiment's steps failed"), "{error}");
    assert_eq!(monitor.failures.len(), 1, "{:?}", monitor.failures);
}

#[test]
fn a_run_and_a_worker_exclude_each_other() {
    let folder = ExperimentFolder::new();
    let work = folder.options().work;
    let busy = |share: Share| {
        let experiment = folder.experiment(TEXT).expect("an experiment");
        let options = RunnerOptions { share, ..folder.options() };
        let run = Runner::run(&experiment, &mut FakeExecutor::default(), &options, &mut RecordingMonitor::default());
        matches!(run, Err(ExperimentError::Busy(_)))
    };
    let worker = lock::folder_shared(&work).expect("free");
    assert!(busy(Share::All) && !busy(Share::Free));
    drop(worker);
    let _run = lock::folder_alone(&work).expect("free");
    assert!(busy(Share::All) && busy(Share::Free));
    // Steps can be looked at all the same.
    let steps = folder.list(TEXT);
    assert!(!steps.is_empty() && steps.iter().all(|step| step.done));
}
