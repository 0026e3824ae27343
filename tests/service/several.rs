//! Several files are served as the one file that holds the samples of all.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use fsbench::data::{DataFiles, Method, Split};
use fsbench::pipeline::{self, BuildJob, BuildOptions, WeightedInput};
use fsbench::service::{Layout, Request};

use super::failures::check_refusal;
use super::fixture::{Fixture, all_batches, games, read_in};

/// Three `.fsd` files with game counts and sample counts that are no round numbers, and one of all their games.
fn files(method: Method) -> (tempfile::TempDir, DataFiles, DataFiles) {
    let folder = tempfile::tempdir().unwrap();
    let all = games(40);
    let starts: Vec<usize> = all.match_indices("[Event").map(|(at, _)| at).collect();
    let bounds = [0, starts[7], starts[18], all.len()];
    let options = BuildOptions::new(method);
    let build = |inputs: &[WeightedInput], name: &str| {
        let output = folder.path().join(name);
        pipeline::build(&BuildJob::new(inputs, &output, &options), &mut |_| {}).unwrap();
        output
    };
    let mut inputs = Vec::new();
    let mut several = Vec::new();
    for (number, bounds) in bounds.windows(2).enumerate() {
        let path = folder.path().join(format!("{number}.pgn"));
        fs::write(&path, &all[bounds[0]..bounds[1]]).unwrap();
        inputs.push(WeightedInput::file(&path));
        several.push(build(&inputs[number..], &format!("{number}.fsd")));
    }
    let one = build(&inputs, "one.fsd");
    (folder, several.into(), one.into())
}

#[test]
fn several_files_are_served_as_one() {
    for (method, layout) in [(Method::Eval, Layout::Csr), (Method::Pqr, Layout::Bitset)] {
        let (_folder, several, one) = files(method);
        for split in [Split::All, Split::Train, Split::Validation] {
            for shuffle in [true, false] {
                let request =
                    Request { layout, epochs: 2, split, shuffle, validation: 0.3, ..Fixture::new(method).request() };
                let batches = |data: &DataFiles| all_batches(&Request { data: data.clone(), ..request.clone() });
                let expected = batches(&one);
                assert!(!expected.is_empty());
                assert!(batches(&several) == expected, "{method:?} {split:?} {shuffle}");
            }
        }
    }
}

#[test]
fn several_binpacks_are_served_as_one() {
    let fixture = Fixture::new(Method::Eval);
    let a = fixture.binpack();
    let b = fixture.path.with_file_name("b.binpack");
    fs::copy(&a, &b).unwrap();
    let one = fixture.path.with_file_name("one.binpack");
    fs::write(&one, [fs::read(&a).unwrap(), fs::read(&b).unwrap()].concat()).unwrap();
    let request = Request { epochs: 2, ..fixture.request() };
    let batches = |data: DataFiles| all_batches(&Request { data, ..request.clone() });
    assert!(batches(vec![a.clone(), b].into()) == batches(one.into()));
    let mixed = Request { data: vec![a, fixture.path.clone()].into(), ..request };
    check_refusal(&mixed, 2, "samples.fsd` cannot be used: it cannot be decoded while it is served");
}

#[test]
fn files_in_different_units_are_refused() {
    let fixture = Fixture::new(Method::Eval);
    let other = fixture.path.with_file_name("other.fsd");
    let arguments = ["dataset", "build", "samples.fsd", "--method", "eval", "--min-ply", "0", "--out", "half.fsd"];
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(super::fixture::program());
        let output = command.args(arguments).current_dir(fixture.path.parent().unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["dataset", "convert", "samples.fsd", "any.fsd", "--to-unit", "internal:208"]);
    run(&[&arguments[..2], &["any.fsd"], &arguments[3..8], &["other.fsd"]].concat());
    let data = vec![fixture.path.clone(), other].into();
    let request = Request { data, reading: read_in(None), ..fixture.request() };
    check_refusal(&request, 2, "other.fsd has scores in another unit");
}
