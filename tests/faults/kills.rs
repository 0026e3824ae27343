//! Processes killed (-9) at drawn moments: what stands under an output's name is whole, and the command given again
//! makes the files that an undisturbed command makes.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use fsbench::units::Seed;
use rand::RngExt;

use super::folder::{FOLDER, Undisturbed, copy, files};
use super::{Case, command, inputs, run, stderr};

/// Kills of each command; the variable FSBENCH_KILLS gives another number.
const KILLS: usize = 8;

/// Kills the command so many times, each at a moment drawn from the time that it takes undisturbed. It continues from
/// kill to kill, and begins anew once it has finished.
fn kill(case: &Case, inputs: &Path) {
    let most = std::env::var("FSBENCH_KILLS").map_or(KILLS, |number| number.parse().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join(FOLDER);
    let mut duration = Duration::ZERO;
    let mut clean = || {
        copy(inputs, &folder);
        let start = Instant::now();
        let output = run(&folder, &case.arguments, &[]);
        duration = start.elapsed();
        assert!(output.status.success(), "{}: {}", case.arguments, stderr(&output));
        files(&folder)
    };
    let undisturbed = Undisturbed::new(files(inputs), clean(), &clean()).with_stable_files();

    let mut rng = Seed(17).stream(&case.arguments, 0);
    let mut kills = 0;
    let mut is_begun = false;
    copy(inputs, &folder);
    loop {
        let arguments = if is_begun { &case.again } else { &case.arguments };
        let mut child = command(&folder, arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
        if kills == most {
            let output = child.wait().unwrap();
            assert!(output.success(), "{arguments} after {kills} kills: {output:?}");
        } else {
            std::thread::sleep(duration.mul_f64(rng.random_range(0.0..1.1)));
        }
        let ended = child.try_wait().unwrap();
        if ended.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        is_begun = true;
        let found = files(&folder);
        let about = format!("{arguments} after {kills} kills");
        if let Some(status) = ended {
            assert!(status.success(), "{about}: {status:?}");
            undisturbed.check_finished(&found, &about);
            if kills == most {
                let _ = writeln!(std::io::stderr(), "{}: {kills} kills", case.arguments);
                return;
            }
            copy(inputs, &folder);
            is_begun = false;
            continue;
        }
        undisturbed.check_unfinished(&found, case.changing, &about);
    }
}

#[test]
fn killed_builds() {
    // A finished file without its manifest, or the reverse, is replaced.
    kill(&Case::new("dataset build games.pgn --method eval --min-ply 0 --out x.fsd --force"), inputs().path());
}

#[test]
fn killed_generations() {
    let case = Case::new("dataset generate --engine ./engine --nodes 5 --games 12 --random-plies 0 --out g.pgn");
    kill(&Case { again: format!("{} --force", case.arguments), ..case }, inputs().path());
}

#[test]
fn killed_generations_of_networks() {
    let arguments = "dataset generate --engine a.safetensors --nodes 40 --max-plies 40 --positions 400 --out g.binpack";
    let case = Case::new(arguments);
    kill(&Case { again: format!("{} --force", case.arguments), ..case }, inputs().path());
}

#[test]
fn killed_matches() {
    kill(&Case::new("match a.safetensors b.safetensors --nodes 200 --pairs 6 --out played"), inputs().path());
}

#[test]
fn killed_experiments() {
    kill(&super::experiment(), inputs().path());
}

#[test]
fn killed_trainings() {
    kill(&super::training(3), inputs().path());
}
