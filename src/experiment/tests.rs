//! Order, resumption and messages, with an executor that only counts its calls.

mod equal_speed;
mod estimate;
mod fake_executor;
mod key_help;
mod learning_loop;
mod match_shards;
mod matches;
mod networks;
mod own_figures;
mod rows;
mod scales;
mod scaling;
mod search;
mod search_candidates;
mod shared_steps;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fake_executor::FakeExecutor;

use super::plan::{Plan, PlannedMatch, PlannedStart};
use super::steps::PlanStep;
use super::*;
use crate::data::{DataFiles, Method};
use crate::net::{Activation, BucketRule};
use crate::play::MatchProgress;
use crate::record::{ActivityRecord, ErrorRecord, Results};
use crate::train::{
    DeviceChoice, EpochMetrics, EvalLoss, LearningRateSchedule, Optimisation, Optimiser, PqrLoss, ShapeOptions,
    TrainerChoice,
};
use crate::units::SortedMap;

const TEXT: &str = r#"
name  = "small"
data  = "games.pgn"
seeds = [1, 2]
[train]
l1            = 8
hidden        = [4]
batch_size    = 16
epochs        = 2
learning_rate = 0.01
decay         = 0.5
validation    = 0.2
[[runs]]
method = "eval"
sets   = ["piece", "compact"]
[[runs]]
method = "pqr"
sets   = ["piece"]
[measure.updates]
[measure.activity]
games = 10
[measure.error]
[measure.speed]
methods = ["eval"]
seeds   = [1]
"#;

/// 2 updates; for each of 3 rows and 2 seeds a training, a validation, an activity and an error; 2 speeds.
const STEPS: usize = 2 + 3 * 2 * 4 + 2;

/// Remembers the skipped steps and finished runs, and stops after some epochs.
#[derive(Default)]
struct RecordingMonitor {
    skipped: usize,
    epochs: AtomicU32,
    stop_after: Option<u32>,
    games: AtomicU32,
    /// Stops in the match that plays this game.
    stop_after_games: Option<u32>,
    trained: Vec<(TrainedRun, FinishedWhen)>,
    failures: Vec<String>,
}

impl ExperimentMonitor for RecordingMonitor {
    fn step(&mut self, _number: usize, _total: usize, _name: &str, _remaining: Option<Duration>) {}

    fn epoch(&mut self, _metrics: &EpochMetrics, _epochs: u32) {
        self.epochs.fetch_add(1, Ordering::Relaxed);
    }

    fn skipped(&mut self, steps: usize) {
        self.skipped = steps;
    }

    fn games(&self, _progress: &MatchProgress) {
        self.games.fetch_add(1, Ordering::Relaxed);
    }

    fn failed(&mut self, error: &ExperimentError) {
        self.failures.push(error.to_string());
    }

    fn trained(&mut self, run: &TrainedRun, when: FinishedWhen) {
        self.trained.push((run.clone(), when));
    }

    fn stop_requested(&self) -> bool {
        let reached =
            |count: &AtomicU32, most: Option<u32>| most.is_some_and(|most| count.load(Ordering::Relaxed) >= most);
        reached(&self.epochs, self.stop_after) || reached(&self.games, self.stop_after_games)
    }
}

/// A folder with games and an experiment.
struct ExperimentFolder {
    folder: tempfile::TempDir,
}

impl ExperimentFolder {
    fn new() -> ExperimentFolder {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("games.pgn"), "1. e4 *").expect("written");
        ExperimentFolder { folder }
    }

    fn options(&self) -> RunnerOptions {
        let at = |name: &str| self.folder.path().join(name);
        RunnerOptions {
            out: at("results"),
            work: at("work"),
            only: None,
            fresh: false,
            share: Share::All,
            timed_on: None,
        }
    }

    fn experiment(&self, text: &str) -> Result<Experiment, ExperimentError> {
        Experiment::parse(&self.folder.path().join("e.toml"), text.to_owned(), None)
    }

    fn run(&self, text: &str, executor: &mut FakeExecutor) -> Result<Results, ExperimentError> {
        Runner::run(&self.experiment(text)?, executor, &self.options(), &mut RecordingMonitor::default())
    }

    fn files(&self) -> SortedMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.folder.path().join("results")).expect("results");
        let paths = entries.map(|entry| entry.expect("listed").path());
        paths
            .map(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                (name, std::fs::read(&path).unwrap_or_default())
            })
            .collect()
    }
}

#[test]
fn every_step_is_done_once_and_a_rerun_changes_no_byte() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let results = folder.run(TEXT, &mut executor).expect("done");
    assert_eq!((executor.calls.len(), executor.calls.values().sum::<u32>() as usize), (STEPS, STEPS));
    let activity = results.networks.of::<ActivityRecord>();
    let errors = results.networks.of::<ErrorRecord>();
    assert_eq!((results.runs.len(), results.updates.len(), activity.len()), (6, 2, 6));
    assert_eq!((results.validation.len(), errors.len(), results.speed.len()), (6, 6, 2));
    assert_eq!(results.environment.seconds.training, 12.0);
    let files = folder.files();
    assert_eq!(files["experiment.toml"], TEXT.as_bytes());
    let again = folder.run(TEXT, &mut executor).expect("done");
    assert_eq!(executor.calls.values().sum::<u32>() as usize, STEPS);
    assert_eq!((again, folder.files()), (results.clone(), files));
    assert_eq!(Results::load(&folder.options().out).expect("saved"), results);
}

/// After a kill at any step, the next run does the remaining steps, once.
#[test]
fn after_a_kill_the_rest_is_done_once() {
    for calls in 0..STEPS as u32 {
        let folder = ExperimentFolder::new();
        let mut executor = FakeExecutor { calls_left: Some(calls), ..FakeExecutor::default() };
        let error = folder.run(TEXT, &mut executor).expect_err("killed");
        assert!(error.to_string().contains("killed"), "{error}");
        Results::load(&folder.options().out).expect("finished results can be read");
        executor.calls_left = None;
        folder.run(TEXT, &mut executor).expect("done");
        assert!(executor.calls.values().all(|&count| count == 1), "after {calls} steps: {:?}", executor.calls);
        assert_eq!(executor.calls.len(), STEPS);
    }
}

#[test]
fn an_interrupted_experiment_is_resumed() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let experiment = folder.experiment(TEXT).expect("an experiment");
    let mut monitor = RecordingMonitor { stop_after: Some(2), ..RecordingMonitor::default() };
    let stopped = Runner::run(&experiment, &mut executor, &folder.options(), &mut monitor).expect_err("stopped");
    assert!(matches!(stopped, ExperimentError::Interrupted), "{stopped}");
    assert!(stopped.to_string().contains("the same command"), "{stopped}");
    let mut monitor = RecordingMonitor::default();
    Runner::run(&experiment, &mut executor, &folder.options(), &mut monitor).expect("done");
    // Two updates, a training, its validation and three measures were finished; the second training was cut short.
    assert_eq!(monitor.skipped, 7);
}

/// A network whose losses by game are lost, or another network's, is validated again, without a training.
#[test]
fn lost_validations_are_repeated_without_training() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let results = folder.run(TEXT, &mut executor).expect("done");
    let runs = std::fs::read_dir(folder.options().work).expect("runs").map(|entry| entry.expect("listed").path());
    let mut losses: Vec<PathBuf> =
        runs.map(|run| run.join("validation.parquet")).filter(|path| path.exists()).collect();
    losses.sort();
    assert_eq!(losses.len(), 6);
    std::fs::remove_file(&losses[0]).expect("removed");
    std::fs::copy(&losses[2], &losses[3]).expect("copied");
    std::fs::remove_file(folder.options().out.join("validation/eval-piece-seed1.parquet")).expect("in the results");
    let again = folder.run(TEXT, &mut executor).expect("done");
    assert_eq!(again.validation, results.validation);
    let count = |kind: &str| executor.calls.iter().filter(|(name, _)| name.starts_with(kind)).map(|(_, n)| n).sum();
    let trainings: u32 = count("train");
    let validations: u32 = count("validation");
    assert_eq!((trainings, validations), (6, 8));
    assert_eq!(Results::load(&folder.options().out).expect("saved").validation, results.validation);
}

/// A network that is trained again: what was measured of the same one is found, another one is measured anew.
#[test]
fn results_belong_to_the_network_that_they_were_made_of() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    folder.run(TEXT, &mut executor).expect("done");
    let runs = std::fs::read_dir(folder.options().work).expect("runs").map(|entry| entry.expect("listed").path());
    let is_one = |path: &PathBuf| path.to_string_lossy().contains("eval-compact-seed1-");
    let run = runs.into_iter().find(is_one).expect("a run");
    // The training and the validation, whose losses stood beside it; then activity, error and speed, too.
    for (network, more) in [("", 2), ("another", 2 + 5)] {
        std::fs::remove_dir_all(&run).expect("removed");
        executor.network = network.into();
        folder.run(TEXT, &mut executor).expect("done");
        assert_eq!(executor.calls.values().sum::<u32>() as usize, STEPS + more, "{:?}", executor.calls);
    }
}

/// A key changes with the step's kind, its inputs and the steps that it needs, and with nothing else.
#[test]
fn keys_follow_from_inputs_and_needs() {
    let folder = ExperimentFolder::new();
    let keys = |text: &str| -> SortedMap<String, String> {
        folder.list(text).into_iter().map(|step| (step.name, step.key)).collect()
    };
    let before = keys(TEXT);
    assert_eq!(before.values().collect::<std::collections::BTreeSet<_>>().len(), STEPS, "each step has its own");
    let changed = |text: &str| -> Vec<String> {
        let after = keys(text);
        before
            .iter()
            .filter(|(name, key)| after.get(name.as_str()) != Some(*key))
            .map(|(name, _)| name.clone())
            .collect()
    };
    assert_eq!(changed(&TEXT.replace("\"small\"", "\"other\"")), Vec::<String>::new());
    let activity = changed(&TEXT.replace("games = 10", "games = 20"));
    assert!(activity.len() == 6 && activity.iter().all(|name| name.starts_with("activity of ")), "{activity:?}");
    // All but the updates of the two sets.
    assert_eq!(changed(&TEXT.replace("epochs        = 2", "epochs = 3")).len(), STEPS - 2);
}

#[test]
fn a_change_redoes_only_the_steps_it_affects() {
    let trainings = |executor: &FakeExecutor| {
        executor.calls.iter().filter(|(name, _)| name.starts_with("train")).map(|(_, n)| n).sum()
    };
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    folder.run(TEXT, &mut executor).expect("done");
    let check = |executor: &mut FakeExecutor, text: &str, expected: u32, why: &str| {
        folder.run(text, executor).expect("done");
        let count: u32 = trainings(executor);
        assert_eq!(count, expected, "{why}");
    };
    check(&mut executor, &TEXT.replace("games = 10", "games = 20"), 6, "the limit of a measure affects no training");
    check(&mut executor, &TEXT.replace("seeds = [1, 2]", "seeds = [1, 2, 3]"), 9, "three trainings of a new seed");
    check(&mut executor, &TEXT.replace("l1            = 8", "l1 = 16"), 15, "another width changes every network");
    check(&mut executor, TEXT, 15, "the results of the first settings are still stored");
    let unit = TEXT.replace("seeds = [1, 2]", "seeds = [1, 2]\nfrom_unit = \"internal:208\"");
    check(&mut executor, &unit, 19, "scores in another unit: the four trainings of eval");
    std::fs::write(folder.folder.path().join("games.pgn"), "1. d4 *").expect("written");
    check(&mut executor, TEXT, 25, "other games");
    let fresh = RunnerOptions { fresh: true, ..folder.options() };
    Runner::run(
        &folder.experiment(TEXT).expect("an experiment"),
        &mut executor,
        &fresh,
        &mut RecordingMonitor::default(),
    )
    .expect("done");
    let count: u32 = trainings(&executor);
    assert_eq!(count, 31, "fresh: every training again");
}

#[test]
fn only_keeps_the_results_of_other_sets() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    let experiment = folder.experiment(TEXT).expect("an experiment");
    let only = |set: &str| RunnerOptions { only: Some(set.into()), ..folder.options() };
    let run = |executor: &mut FakeExecutor, set: &str| {
        Runner::run(&experiment, executor, &only(set), &mut RecordingMonitor::default())
    };
    let first = run(&mut executor, "compact").expect("done");
    assert!(first.runs.iter().all(|run| run.key.set == "compact") && first.runs.len() == 2);
    let both = run(&mut executor, "piece").expect("done");
    assert_eq!(both.runs.len(), 6);
    // Repeated steps are the set's.
    let trained = |executor: &FakeExecutor| -> u32 {
        executor.calls.iter().filter(|(name, _)| name.starts_with("train")).map(|(_, count)| count).sum()
    };
    let before = trained(&executor);
    let fresh = RunnerOptions { fresh: true, ..only("compact") };
    let again = Runner::run(&experiment, &mut executor, &fresh, &mut RecordingMonitor::default()).expect("done");
    assert_eq!((again.runs.len(), trained(&executor) - before), (6, 2));
    let unknown = run(&mut executor, "nothing").expect_err("unknown").to_string();
    assert!(unknown.contains("'nothing'") && unknown.contains("piece, compact"), "{unknown}");
}

#[test]
fn a_second_experiment_in_the_work_folder_is_refused() {
    let folder = ExperimentFolder::new();
    let work = folder.options().work;
    std::fs::create_dir_all(&work).expect("made");
    let held = std::fs::File::create(work.join("lock")).expect("made");
    held.try_lock().expect("free");
    let busy = folder.run(TEXT, &mut FakeExecutor::default()).expect_err("busy");
    assert!(matches!(busy, ExperimentError::Busy(_)), "{busy}");
    drop(held);
    folder.run(TEXT, &mut FakeExecutor::default()).expect("free again");
}

#[test]
fn errors_name_the_position_in_the_file() {
    let check = |from: &str, to: &str, place: &str, message: &str| {
        let folder = ExperimentFolder::new();
        let error = folder.run(&TEXT.replacen(from, to, 1), &mut FakeExecutor::default()).expect_err(to);
        let text = error.to_string();
        assert!(error.is_request(), "{text}");
        assert!(text.contains(&format!("e.toml:{place}: ")) && text.contains(message), "{text}");
    };
    check("decay", "decoy", "11:1", "unknown field `decoy`");
    check("[train]", "[train", "5:7", "unclosed table");
    check("\"compact\"", "\"cmpact\"", "15:20", "no set `cmpact`");
    check("games.pgn", "gamse.pgn", "3:9", "gamse.pgn");
    check("\"small\"", "\"a b\"", "2:1", "letters, digits");
    check("seeds = [1, 2]", "seeds = [1, 1]", "4:1", "appears twice");
    check("seeds = [1, 2]", "seeds = []", "4:1", "no seeds");
    check("epochs        = 2", "epochs = 0", "9:1", "epochs must be");
    check("learning_rate = 0.01", "learning_rate = -0.01", "10:1", "the learning rate must be above 0");
    let loss = "epochs = 2\neval_loss = { power = 2.0, lambda = 7 }";
    check("epochs        = 2", loss, "10:28", "λ must lie between 0 and 1, not at 7");
    check("hidden        = [4]", "hidden = \"wide\"", "7:10", "[] for no hidden layers");
    check("hidden        = [4]", "hidden = [0]", "7:1", "a hidden layer is 1 to 65536 wide, not 0");
    check(
        "epochs        = 2",
        "epochs = 2\nrecipe = { weight_decay = 0.5 }",
        "10:12",
        "weight_decay (0.5) has no effect",
    );
    check(
        "method = \"eval\"",
        "method = \"eval\"\ntrain = { decay = 1.5 }",
        "15:11",
        "decay must be above 0 and at most 1",
    );
    let own = "method = \"eval\"\ntrain = { pqr_loss = { kappa = 0.5 } }";
    check("method = \"eval\"", own, "15:24", "this run does not learn by pqr");
    check("\"piece\", \"compact\"", "\"piece\", \"piece\"", "15:20", "twice");
    check("method = \"eval\"", "method = \"evil\"", "14:10", "evil");
    check("l1            = 8\n", "", "5:1", "l1");
    check("sets   = [\"piece\"]", "sets = [\"piece\"]\ntrain = { epoch = 3 }", "19:11", "epoch");
}

#[test]
fn a_row_may_have_its_own_settings() {
    let text = TEXT.replacen("method = \"pqr\"", "method = \"pqr\"\ntrain = { epochs = 7 }", 1);
    let experiment = ExperimentFolder::new().experiment(&text).expect("an experiment");
    let epochs: Vec<u32> = experiment.rows.iter().map(|row| row.settings.epochs).collect();
    assert_eq!(epochs, [2, 2, 7]);
}

/// Every setting reaches the training's configuration; a row's tables override single values of the shared ones.
#[test]
fn settings_reach_the_configuration() {
    let shared = "compact_dead  = true\nfactor = false\nthreads = 3\ndevice = \"cpu\"\nepoch_samples = 77\n\
        design = { activation = \"pairwise\", hidden_activation = \"dual\", skip = true, psqt = true, buckets = 4, \
        bucket_rule = \"cpw\" }\nrecipe = { schedule = \"cosine\", warm_up = 100 }\n\
        eval_loss = { lambda = 0.5, power = 2.0 }\npqr_loss = { kappa = 0.25 }\nhidden        = [4]\n";
    let own = "method = \"pqr\"\ntrain = { recipe = { optimiser = \"ranger\" }, design = { buckets = 2 }, epochs = 9 }";
    let text = TEXT.replace("hidden        = [4]\n", shared).replacen("method = \"pqr\"", own, 1);
    let experiment = ExperimentFolder::new().experiment(&text).expect("an experiment");
    let plan = Plan::new(&experiment, &FakeExecutor::default()).expect("a plan");
    let config = |method: Method| {
        let run = plan.runs.iter().find(|run| run.key.method == method).expect("a run");
        run.config(&plan.sets[run.set], "data.fsd".into(), PathBuf::new())
    };
    let data = config(Method::Pqr).data;
    let eval = config(Method::Eval).settings;
    let pqr = config(Method::Pqr).settings;
    let design = ShapeOptions {
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        skip: true,
        psqt: true,
        buckets: 4,
        bucket_rule: BucketRule::Cpw,
        ..ShapeOptions::default()
    };
    assert_eq!(eval.shape_options, design);
    assert_eq!(pqr.shape_options, ShapeOptions { buckets: 2, ..design });
    let recipe = Optimisation { schedule: LearningRateSchedule::Cosine, warm_up: 100, ..Optimisation::default() };
    assert_eq!(eval.optimisation, recipe);
    assert_eq!(pqr.optimisation, Optimisation { optimiser: Optimiser::Ranger, ..recipe });
    assert_eq!((eval.eval_loss.lambda, eval.eval_loss.power, pqr.pqr_loss.kappa), (0.5, 2.0, 0.25));
    // The loss of one method does not belong to the runs of the other.
    assert_eq!((pqr.eval_loss, eval.pqr_loss), (EvalLoss::default(), PqrLoss::default()));
    assert!(eval.compact_dead && !eval.factor() && eval.device == DeviceChoice::Cpu);
    assert_eq!((eval.threads, eval.epoch_samples, eval.scheme.as_deref()), (Some(3), Some(77), Some("stockfish")));
    assert_eq!((eval.epochs, pqr.epochs, data), (2, 9, DataFiles::from("data.fsd")));
    let simple = text.replace("compact_dead  = true", "scheme = \"simple\"");
    let error = ExperimentFolder::new().experiment(&simple).expect_err("hidden layers").to_string();
    assert!(error.contains("does not support hidden layers; use scheme `stockfish`"), "{error}");
    let wrong = text.replace("power = 2.0", "power = 0.5");
    let error = ExperimentFolder::new().experiment(&wrong).expect_err("a power below 1").to_string();
    assert!(error.contains("the loss's power must be at least 1, not 0.5"), "{error}");
}

#[test]
fn rules_of_output_buckets_are_checked_before_anything_runs() {
    let plan = |rule: &str| {
        let design = format!("hidden        = [4]\ndesign = {{ bucket_rule = \"{rule}\" }}\n");
        let text = TEXT.replace("hidden        = [4]\n", &design);
        Plan::new(&ExperimentFolder::new().experiment(&text).expect("an experiment"), &FakeExecutor::default())
    };
    let rule = plan("rank(K)").expect("a plan").runs[0].settings.shape_options.bucket_rule.clone();
    assert_eq!(rule, BucketRule::Expression("rank(K)".into()));
    let error = plan("rank(P) for P in pieces").expect_err("refused").to_string();
    assert!(error.contains("cannot be used: ") && error.contains("gives 4 buckets in the position"), "{error}");
}

/// The experiments of the repository that run in minutes are valid.
#[test]
fn the_example_experiments_are_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/quickstart.toml");
    let experiment = Experiment::read(&path, None).expect("an experiment");
    assert_eq!((experiment.rows.len(), experiment.seeds.len()), (10, 3));
    // The row of which `scripts/quickstart.sh --without-tch` says that it is left out.
    let mut without = experiment.clone();
    without.leave_out("piece by tch").expect("a row");
    assert!(without.rows.iter().all(|row| row.settings.trainer() != Some(TrainerChoice::Tch)));
    assert!(without.leave_out("piece by tch").expect_err("it is gone").to_string().contains("piece by tch"));
    let small = Experiment::read(&path.with_file_name("small-data.toml"), None).expect("an experiment");
    assert_eq!((small.rows.len(), small.seeds.len()), (4, 2));
    // So that a repetition does not overwrite the committed results.
    assert_eq!(experiment.results, Path::new("results/local"));
    let ignored = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".gitignore")).expect("readable");
    assert!(ignored.lines().any(|line| line == "results/local/"), "{ignored}");
    let own = ExperimentFolder::new().experiment(TEXT).expect("an experiment");
    assert_eq!(own.results, Path::new(Results::DEFAULT_FOLDER), "others have theirs in results/");
}
