//! Where networks are, and what the work folder keeps.

use super::*;

fn run(bench: &Bench, text: &str, options: &Options) -> Quiet {
    let mut progress = Quiet::default();
    let experiment = bench.experiment(text).expect("an experiment");
    Runner::run(&experiment, &mut Fake::default(), options, &mut progress).expect("done");
    progress
}

#[test]
fn every_run_says_where_its_network_is() {
    let bench = Bench::new();
    let first = run(&bench, TEXT, &bench.options());
    assert!(first.trained.len() == 6 && first.trained.iter().all(|(_, before)| !before));
    let again = run(&bench, TEXT, &bench.options());
    assert!(again.trained.len() == 6 && again.trained.iter().all(|(_, before)| *before));
    for (trained, _) in &again.trained {
        assert!(trained.network.is_absolute() && trained.network.starts_with(&trained.folder), "{trained:?}");
        assert!(trained.folder.join("outcome.json").is_file(), "{trained:?}");
        let link = trained.link.as_ref().expect("a link");
        assert_eq!(std::fs::read_link(link).expect("a link"), trained.network);
    }
    assert!(bench.options().out.join("networks/eval-piece-seed1.safetensors").is_symlink());
    // Other settings, other runs, the same links.
    let other = run(&bench, &TEXT.replace("l1            = 8", "l1 = 16"), &bench.options());
    let (old, new) = (&again.trained[0].0, &other.trained[0].0);
    assert_ne!(old.network, new.network);
    assert_eq!(std::fs::read_link(new.link.as_ref().expect("a link")).expect("a link"), new.network);
}

/// The trainer leaves this in every run's folder; the workbench of these tests does not.
fn leave_configurations(work: &Path) {
    for entry in std::fs::read_dir(work).expect("listed").map(|entry| entry.expect("listed").path()) {
        if let Ok(text) = std::fs::read_to_string(entry.join("outcome.json")) {
            let outcome: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            std::fs::write(entry.join("config.json"), outcome["config"].to_string()).expect("written");
        }
    }
}

#[test]
fn runs_that_nobody_uses_can_be_removed() {
    let bench = Bench::new();
    let options = bench.options();
    run(&bench, TEXT, &options);
    let elsewhere = Options { out: bench.folder.path().join("other"), ..bench.options() };
    let text = TEXT.replace("seeds = [1, 2]", "seeds = [2, 3]").replace("seeds   = [1]", "seeds   = [2]");
    run(&bench, &text, &elsewhere);
    leave_configurations(&options.work);
    let used = || -> Vec<usize> {
        let runs = kept_runs(&options.work).expect("listed");
        let mut counts: Vec<usize> = runs.iter().map(|run| run.used_by.len()).collect();
        counts.sort_unstable();
        counts
    };
    // Seed 2 is common to both, seeds 1 and 3 to one each; three rows.
    assert_eq!(used(), [1, 1, 1, 1, 1, 1, 2, 2, 2]);
    assert_eq!(remove_unused_runs(&options.work).expect("removed"), []);
    std::fs::remove_dir_all(&elsewhere.out).expect("removed");
    assert_eq!(used(), [0, 0, 0, 1, 1, 1, 1, 1, 1]);
    let removed = remove_unused_runs(&options.work).expect("removed");
    assert!(removed.len() == 3 && removed.iter().all(|run| run.seed.0 == 3 && !run.path.exists()));
    assert_eq!(used(), [1; 6]);
    // What the first experiment has finished is still there.
    assert_eq!(run(&bench, TEXT, &options).reused, STEPS);
}

/// The data and the sets are known by what they hold: from another folder nothing is done again.
#[test]
fn another_folder_changes_nothing() {
    let bench = Bench::new();
    std::fs::write(bench.folder.path().join("own.toml"), "").expect("written");
    let text = TEXT.replace("\"compact\"", "\"own.toml\"");
    let read = |file: PathBuf| Experiment::parse(&file, text.clone()).expect("an experiment");
    let mut fake = Fake { any_set: true, ..Fake::default() };
    Runner::run(&read(bench.folder.path().join("e.toml")), &mut fake, &bench.options(), &mut Quiet::default())
        .expect("done");
    let trainings = |fake: &Fake| fake.calls.iter().filter(|(call, _)| call.starts_with("train")).count();
    assert_eq!(trainings(&fake), 6);
    let through = bench.folder.path().join("results/..").join("e.toml");
    Runner::run(&read(through), &mut fake, &bench.options(), &mut Quiet::default()).expect("done");
    assert_eq!(trainings(&fake), 6, "{:?}", fake.calls);
}
