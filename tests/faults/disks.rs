//! Full, read-only and slow disks. Full and read-only ones are mounted in a namespace of their own, in which the
//! process is root: nothing but the disk refuses it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::common::skip::skip;
use super::folder::{FOLDER, Files, Undisturbed, copy, files};
use super::shim::shim;
use super::{Case, PROGRAM, inputs, run, stderr};

/// The folder on the disk, into which the commands write.
const DISK: &str = "disk";

/// Commands whose outputs are on the disk.
fn cases() -> Vec<Case> {
    #[allow(unused_mut, reason = "without the trainer there are no more")]
    let mut cases = [
        "dataset build games.pgn --method eval --min-ply 0 --out disk/x.fsd",
        "dataset build samples.fsd --method eval --min-ply 0 --dedup move --shuffle --samples 100 --out disk/x.fsd",
        "dataset convert samples.fsd disk/x.binpack",
        "dataset generate --engine ./engine --nodes 5 --games 3 --random-plies 0 --out disk/g.pgn",
        "dataset generate --engine a.safetensors --nodes 20 --max-plies 30 --games 3 --out disk/g.binpack",
        "match a.safetensors b.safetensors --nodes 40 --pairs 2 --out disk/played.out",
        "export compact --lang c --out disk/exported.out",
        "net convert a.safetensors disk/c.safetensors",
    ]
    .map(Case::new)
    .to_vec();
    let training = super::training(2);
    cases.push(Case { arguments: training.arguments.replace("--out run.out", "--out disk/run.out"), ..training });
    let experiment = super::experiment();
    let arguments = experiment.arguments.replace("--out made.out", "--out disk/made.out");
    cases.push(Case { arguments, cache: "disk/cache", ..experiment });
    cases
}

/// Runs the command with something mounted on its folder [`DISK`]; the files that are in it afterwards. `None` where
/// there are no namespaces.
fn run_on(mount: &str, folder: &Path, arguments: &str, cache: &str) -> Option<(Output, Files)> {
    let after = folder.join("after");
    fs::create_dir_all(&after).unwrap();
    let script = format!("{mount} || exit 99\n\"$0\" \"$@\"; status=$?; cp -a {DISK}/. after/; exit $status");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, PROGRAM]).args(arguments.split(' '));
    command.current_dir(folder).env("FSBENCH_CACHE", folder.join(cache)).env("RAYON_NUM_THREADS", "2");
    let output = command.output().ok().filter(|output| output.status.code() != Some(99) && !is_refused(output));
    let Some(output) = output else {
        skip("namespaces", "unshare cannot mount a disk here");
        return None;
    };
    // Links lead to places below `folder`, so their targets are read from there.
    let name_on_disk = |name: &str| {
        let name = name.strip_prefix("after/").filter(|name| !name.is_empty())?;
        Some(format!("{DISK}/{name}"))
    };
    let found = files(folder).into_iter().filter_map(|(name, bytes)| Some((name_on_disk(&name)?, bytes))).collect();
    fs::remove_dir_all(after).unwrap();
    Some((output, found))
}

fn is_refused(output: &Output) -> bool {
    stderr(output).starts_with("unshare: ")
}

fn is_on_disk(name: &str) -> bool {
    name.strip_prefix(DISK).is_some_and(|name| name.len() > 1)
}

/// A fresh folder with the inputs and an empty [`DISK`].
fn prepare(inputs: &Path, folder: &Path) {
    copy(inputs, folder);
    fs::create_dir(folder.join(DISK)).unwrap();
}

fn undisturbed(case: &Case, inputs: &Path, folder: &Path) -> Undisturbed {
    let clean = || {
        prepare(inputs, folder);
        let output = run(folder, &case.arguments, &[("FSBENCH_CACHE", folder.join(case.cache).to_str().unwrap())]);
        assert!(output.status.success(), "{}: {}", case.arguments, stderr(&output));
        let made = files(folder).into_iter().filter(|(name, _)| is_on_disk(name));
        made.collect::<Files>()
    };
    Undisturbed::new(Files::new(), clean(), &clean()).with_stable_files()
}

/// From a disk that holds next to nothing to one that holds everything.
#[test]
fn full_disks() {
    let inputs = inputs();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join(FOLDER);
    let mut failures = 0;
    for case in cases() {
        let undisturbed = undisturbed(&case, inputs.path(), &folder);
        for kilobytes in [4, 8, 16, 32, 64, 128, 256, 65536] {
            prepare(inputs.path(), &folder);
            let mount = format!("mount -t tmpfs -o size={kilobytes}k tmpfs {DISK}");
            let Some((output, found)) = run_on(&mount, &folder, &case.arguments, case.cache) else { return };
            let about = format!("{} on {kilobytes} kB: {}", case.arguments, stderr(&output));
            if output.status.success() {
                undisturbed.check_finished(&found, &about);
                continue;
            }
            failures += 1;
            assert_eq!(output.status.code(), Some(1), "{about}");
            assert!(stderr(&output).contains("No space left"), "{about}");
            assert!(kilobytes < 65536, "{about}");
            undisturbed.check_message(&stderr(&output), &about);
            undisturbed.check_unfinished(&found, case.changing, &about);
            assert!(!found.keys().any(|name| super::is_temporary(name)), "{about}: a part is left");
        }
    }
    assert!(failures > cases().len(), "only {failures} disks were too small");
}

/// Nothing can be written, not even by root; the message names the place. Everything can be read.
#[test]
fn read_only_disks() {
    let inputs = inputs();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join(FOLDER);
    let mount = format!("mount --bind {DISK} {DISK} && mount -o remount,bind,ro {DISK}");
    for case in cases() {
        let undisturbed = undisturbed(&case, inputs.path(), &folder);
        prepare(inputs.path(), &folder);
        let Some((output, found)) = run_on(&mount, &folder, &case.arguments, case.cache) else { return };
        let about = format!("{}: {}", case.arguments, stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{about}");
        assert!(stderr(&output).contains("Read-only"), "{about}");
        undisturbed.check_message(&stderr(&output), &about);
        assert!(found.is_empty(), "{about}: {:?}", found.keys());
    }
    for arguments in ["dataset info disk/samples.fsd", "dataset verify disk/samples.fsd", "net info disk/a.safetensors"]
    {
        prepare(inputs.path(), &folder);
        copy(inputs.path(), &folder.join(DISK));
        let (output, _) = run_on(&mount, &folder, arguments, "cache").unwrap();
        assert!(output.status.success(), "{arguments}: {}", stderr(&output));
    }
}

/// Each write and each sync takes 20 ms longer: the outputs are the same.
#[test]
fn slow_disks() {
    let inputs = inputs();
    let scratch = tempfile::tempdir().unwrap();
    let Some(shim) = shim(scratch.path()) else { return };
    let folder = scratch.path().join(FOLDER);
    for case in cases() {
        let undisturbed = undisturbed(&case, inputs.path(), &folder);
        prepare(inputs.path(), &folder);
        let cache = folder.join(case.cache);
        let preload = [
            ("FSBENCH_CACHE", cache.to_str().unwrap()),
            ("LD_PRELOAD", shim.to_str().unwrap()),
            ("FAULT_FOLDER", folder.to_str().unwrap()),
            ("FAULT_DELAY", "20000"),
        ];
        let output = run(&folder, &case.arguments, &preload);
        assert!(output.status.success(), "{}: {}", case.arguments, stderr(&output));
        let found = files(&folder).into_iter().filter(|(name, _)| is_on_disk(name)).collect();
        undisturbed.check_finished(&found, &case.arguments);
    }
}
