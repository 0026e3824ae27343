//! The same positions make the same samples, whatever file they stand in: only what cannot be a sample is left out, and
//! every command says how many that were.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fsbench::data::{Fsd, Method, Needs, Record};
use fsbench::pipeline::open_or_build;
use fsbench::service::{PrepareObserver, ReadMode, ReadOptions, Request, ServedFile, prepare};
use fsbench::train::TrainOutcome;

use super::fixture::{PROGRAM, Workspace, error_of, games};

/// So many that a binpack of them has several segments, by which it is split.
const GAMES: u64 = 200;

/// The games in several formats that record plies.
const FILES: [&str; 5] = ["games.pgn", "games.fsd", "games.binpack", "games.binpack.zst", "games.txt"];

fn fsbench(workspace: &Workspace, arguments: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split(' ')).current_dir(workspace.path(""));
    command.env("FSBENCH_CACHE", workspace.path("cache")).output().expect("runs")
}

fn must(workspace: &Workspace, arguments: &str) -> Output {
    let output = fsbench(workspace, arguments);
    assert!(output.status.success(), "{arguments}: {}", error_of(&output));
    output
}

/// A workspace with all [`FILES`] and one in bulletformat, and the records of its games.
fn workspace() -> (Workspace, Vec<Record>) {
    let workspace = Workspace::new();
    fs::write(workspace.path("games.pgn"), games(GAMES)).expect("written");
    for file in ["games.fsd", "games.binpack", "games.txt", "games.bullet"] {
        must(&workspace, &format!("dataset convert games.pgn {file} --to-unit cp"));
    }
    let binpack = fs::read(workspace.path("games.binpack")).expect("written");
    fs::write(workspace.path("games.binpack.zst"), zstd::encode_all(&binpack[..], 1).expect("packed"))
        .expect("written");
    let records = Fsd::open(&workspace.path("games.fsd")).expect("a conversion").records().to_vec();
    (workspace, records)
}

/// The samples of both sides of a training's split, and its messages.
fn trained(workspace: &Workspace, options: &str) -> (u64, String) {
    let settings = "--l1 8 --batch-size 512 --epochs 1 --threads 1 --device cpu --from-unit cp --force --format json";
    let output = must(workspace, &format!("train piece --out run {settings} {options}"));
    let outcome: TrainOutcome = serde_json::from_slice(&output.stdout).expect("an outcome");
    (outcome.training_samples + outcome.validation_samples, error_of(&output))
}

/// The samples that a service has.
fn served(workspace: &Workspace, options: &str) -> u64 {
    let output = must(workspace, &format!("samples-service piece --from-unit cp --batch-size 64 {options}"));
    let end = output.stdout.iter().position(|byte| *byte == b'\n').expect("a line");
    let line: serde_json::Value = serde_json::from_slice(&output.stdout[..end]).expect("a description");
    line["samples_per_epoch"].as_u64().expect("a number")
}

#[test]
fn every_source_gives_the_same_number_of_samples() {
    let (workspace, records) = workspace();
    let scored = records.iter().filter(|record| Needs::Score.met_by(record));
    let late = scored.clone().filter(|record| record.ply().0 >= 20).count() as u64;
    let scored = scored.count() as u64;
    assert!(late < scored && scored < records.len() as u64, "{late} {scored} {}", records.len());
    for file in FILES {
        for read in ["auto", "built"] {
            let options = format!("--data {file} --read {read}");
            assert_eq!(served(&workspace, &options), scored, "the service, {options}");
        }
        let options = format!("--data {file} --read auto --validation 0.5");
        assert_eq!(trained(&workspace, &options).0, scored, "the trainer, {options}");
        let options = format!("--data {file} --read built --min-ply 20");
        assert_eq!(served(&workspace, &options), late, "the service, {options}");
        assert_eq!(trained(&workspace, &options).0, late, "the trainer, {options}");
        must(&workspace, &format!("dataset build {file} --method eval --from-unit cp --out built.fsd --force"));
        assert_eq!(served(&workspace, "--data built.fsd"), scored, "{file}, built");
    }
    assert_eq!(served(&workspace, "--data games.bullet"), scored);
}

/// The messages of the data's preparation about them.
#[derive(Default)]
struct Told(std::sync::Mutex<Vec<String>>);

impl PrepareObserver for Told {
    fn building(&self, _: &Path, _: &Path) {
        self.0.lock().expect("whole").push("building".into());
    }

    fn opened(&self, file: &ServedFile<'_>) {
        self.0.lock().expect("whole").push(format!("{:?}", file.origin));
    }
}

/// A conversion is used as it is: nothing is built, nothing is left out twice.
#[test]
fn a_conversion_is_not_built_again() {
    let (workspace, _) = workspace();
    for method in [Method::Eval, Method::Pqr] {
        let told = Told::default();
        let request = Request {
            reading: ReadOptions { mode: ReadMode::Built, ..ReadOptions::default() },
            threads: 1,
            ..Request::new("piece", workspace.path("games.fsd"), method)
        };
        let stream = prepare(request, &told).expect("served");
        assert_eq!(told.0.into_inner().expect("whole"), ["Input"]);
        let cache = workspace.path("cache");
        let built = open_or_build(&workspace.path("games.pgn"), method, Some(&cache)).expect("built");
        assert_eq!(stream.samples_per_epoch(), built.records().len() as u64, "{method:?}");
    }
}

#[test]
fn what_is_left_out_is_counted_where_the_data_are_named() {
    let (workspace, records) = workspace();
    let late = records.iter().filter(|record| record.ply().0 >= 20);
    let early = records.iter().filter(|record| record.ply().0 < 20).count();
    let kept = late.clone().count();
    let positions = records.len();
    let unscored = GAMES as usize;
    assert_eq!(late.filter(|record| record.score().is_none()).count(), 0);
    let grouped = |count: usize| fsbench::text::grouped(&count.to_string());
    let whole = format!(
        "games.pgn: {} of {} positions of {GAMES} games: {unscored} without a score; ",
        grouped(positions - unscored),
        grouped(positions)
    );
    let part = format!(
        "games.pgn: {} of {} positions of {GAMES} games: {} before ply 20; ",
        grouped(kept),
        grouped(positions),
        grouped(early)
    );
    let (_, first) = trained(&workspace, "--data games.pgn");
    let cache = workspace.path("cache/data").display().to_string();
    assert!(first.starts_with("building games.pgn into "), "{first}");
    assert!(first.contains(&format!("{whole}built into {cache}")) && first.contains(" MB)\n"), "{first}");
    assert_eq!(first.matches("games.pgn: ").count(), 1, "{first}");
    let (_, second) = trained(&workspace, "--data games.pgn");
    // The service's lines are passed on while the trainer writes its own.
    assert!(second.contains(&format!("{whole}built before into")), "{second}");
    assert!(!second.contains("building"), "{second}");
    let (_, filtered) = trained(&workspace, "--data games.pgn --min-ply 20");
    assert!(filtered.contains(&part), "{filtered}");
    // Samples of a file as it is that the method cannot use are counted, too.
    let converted = error_of(&must(&workspace, "samples-service piece --batch-size 64 --data games.fsd"));
    assert!(converted.contains(&format!("left out {unscored} samples without a score")), "{converted}");
}

/// Whoever names no data is told which are taken.
#[test]
fn the_sample_games_are_named() {
    let workspace = Workspace::new();
    let output = fsbench(&workspace, "train piece --out run --learning-rate 0");
    assert_eq!(output.status.code(), Some(2));
    let text = error_of(&output);
    assert!(text.starts_with("without --data: the sample games that come with fsbench, "), "{text}");
    assert_eq!(text.matches("without --data").count(), 1, "{text}");
    assert!(text.contains("/cache/sample/games-"), "{text}");
}

/// A shuffled file has as many games as `dataset info` says; one that was built from one side of the split cannot be
/// split again by the same seed.
#[test]
fn an_empty_split_is_explained() {
    let workspace = Workspace::new();
    must(&workspace, "dataset build games.pgn --method eval --shuffle --split train --validation 0.2 --out train.fsd");
    let info = must(&workspace, "dataset info train.fsd --format json").stdout;
    let info: serde_json::Value = serde_json::from_slice(&info).expect("JSON");
    let games = info["games"].as_u64().expect("a number");
    assert!(games < 40, "{info}");
    let refused = |options: &str| {
        let output = fsbench(&workspace, &format!("{options} --data train.fsd"));
        assert_eq!(output.status.code(), Some(2), "{}", error_of(&output));
        error_of(&output)
    };
    let explained = "train.fsd has no validation games: it was built from the training games of the same split \
                     (--split-seed 0); give another --split-seed, such as 1";
    for command in
        ["train piece --out run --validation 0.2", "samples-service piece --split validation --validation 0.2"]
    {
        let text = refused(command);
        assert!(text.contains(explained), "{command}: {text}");
    }
    assert!(!workspace.path("run").exists());
    // Another seed, or a larger share, splits it.
    let (samples, _) = trained(&workspace, "--data train.fsd --split-seed 1 --validation 0.2");
    assert_eq!(samples, info["samples"].as_u64().expect("a number"));
    trained(&workspace, "--data train.fsd --validation 0.6");
    let text = refused("samples-service piece --split validation --validation 0 --split-seed 1");
    assert!(text.contains(&format!("({samples} samples of {games} games, validation share 0)")), "{text}");
}

/// Data without plies cannot be skipped by ply: refused before the run's folder is touched, also after a conversion.
#[test]
fn samples_without_plies_are_not_skipped_by_ply() {
    let (workspace, _) = workspace();
    must(&workspace, "dataset convert games.bullet again.fsd --to-unit cp");
    for (file, option, is_refused) in [
        ("games.bullet", "--skip-before-ply 8", true),
        ("again.fsd", "--skip-before-ply 8", true),
        ("games.bullet", "--skip-unlikely", true),
        ("games.bullet", "--skip-random 0.5", false),
        ("games.fsd", "--skip-before-ply 8", false),
    ] {
        let settings = "--l1 8 --batch-size 512 --epochs 1 --threads 1 --device cpu --from-unit cp --force";
        let output = fsbench(&workspace, &format!("train piece --out skipped {settings} --data {file} {option}"));
        assert_eq!(!output.status.success(), is_refused, "{file} {option}: {}", error_of(&output));
        if is_refused {
            let name = option.split(' ').next().unwrap_or_default();
            let wanted = format!("the samples of {file} have no plies, which {name} goes by; leave it out");
            assert!(error_of(&output).contains(&wanted), "{}", error_of(&output));
            assert!(!workspace.path("skipped").exists());
        }
    }
}

/// A file that records its unit and one that does not are data together, where both have the same; `--from-unit` is that
/// of the second.
#[test]
fn a_unit_is_for_the_files_that_record_none() {
    let (workspace, _) = workspace();
    let settings = "--read built --l1 8 --batch-size 512 --epochs 1 --threads 1 --device cpu --force --format json";
    let run = |options: &str| fsbench(&workspace, &format!("train piece --out run {settings} {options}"));
    let trained = |options: &str| {
        let output = run(options);
        assert!(output.status.success(), "{options}: {}", error_of(&output));
        let outcome: TrainOutcome = serde_json::from_slice(&output.stdout).expect("an outcome");
        (outcome.training_samples, outcome.baseline_loss)
    };
    let (samples, loss) = trained("--data games.pgn");
    // Twice the same games, whose scores mean the same; by other ones the loss of a constant is twice as large.
    let (both, other) = trained("--data games.pgn --data games.binpack --from-unit cp");
    assert!(both > 3 * samples / 2 && (other / loss - 1.0).abs() < 0.4, "{both} {other}, {samples} {loss}");
    let wrong = error_of(&run("--data games.pgn --from-unit internal:208"));
    assert!(wrong.contains("records 100 units per pawn"), "{wrong}");
}
