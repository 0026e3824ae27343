//! A copy of the program works in an empty folder, without its source tree.

use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Command, Stdio};
use std::time::Duration;

use fsbench::features::FeatureSet;
use fsbench::net::nnue::Nnue;
use fsbench::net::{NetFile, Origin, Scheme, quantise};

use super::common::random_net;
use super::workspace::{Workspace, stderr};

/// A workspace, and a copy of the program outside the source tree.
fn copied_program() -> (Workspace, std::path::PathBuf) {
    let workspace = Workspace::new();
    let program = workspace.cache().with_file_name("fsbench-copy");
    std::fs::copy(env!("CARGO_BIN_EXE_fsbench"), &program).unwrap();
    // A program that another test starts meanwhile holds the file open for writing, until it runs.
    while let Err(error) = Command::new(&program).arg("--version").output() {
        assert_eq!(error.kind(), ErrorKind::ExecutableFileBusy, "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
    (workspace, program)
}

#[test]
fn shipped_sets_are_in_the_program() {
    let (workspace, program) = copied_program();
    let features = |request: &str| -> u64 {
        let output = workspace.command_of(&program, &["define", request, "--format", "json"]).output().unwrap();
        assert!(output.status.success(), "{request}: {}", stderr(&output));
        let described: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        described["num_features"].as_u64().unwrap()
    };
    // By name with and without extension, a set that names another, a set with an index file, an expression.
    let expected = [("compact.toml", 192), ("piece", 768), ("h-v", 192), ("top-pp", 64), ("piece + axis-h", 864)];
    for (request, size) in expected {
        assert_eq!(features(request), size, "{request}");
    }
    // The user's folder `feature_sets` takes precedence over the shipped sets, also in folders below it.
    workspace.write("feature_sets/piece.toml", "features = \"file(P) for P in pieces\"\n");
    assert_eq!(features("piece"), 8);
    assert_eq!(features("piece + axis-h"), 104);
    let below = workspace.path("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let mut command = workspace.command_of(&program, &["define", "piece", "--format", "json"]);
    let output = command.current_dir(below).output().unwrap();
    let described: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(described["num_features"], 8);
    let output = workspace.command_of(&program, &["define", "peice"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `piece`?"), "{}", stderr(&output));
    assert!(stderr(&output).contains("the shipped sets"), "{}", stderr(&output));
}

#[test]
fn the_sample_games_are_in_the_program() {
    let (workspace, program) = copied_program();
    let mut command = workspace.command_of(&program, &["samples-service", "--method", "pqr"]);
    let mut service = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(service.stdout.take().unwrap()).read_line(&mut line).unwrap();
    drop(service.stdin.take());
    service.wait().unwrap();
    let described: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!((described["method"].as_str(), described["num_features"].as_u64()), (Some("pqr"), Some(768)));
}

/// A `.nnue` file is read with the shipped definition, even if the user has another set of that name.
#[test]
fn networks_of_stockfish_are_read() {
    let (workspace, program) = copied_program();
    let set = FeatureSet::shipped("half-kp").unwrap();
    let float = random_net(set.num_features(), 256, &[32, 32], 12);
    let file = NetFile { origin: Origin::of(&set), net: quantise(&float, &Scheme::stockfish()).unwrap() };
    Nnue::from_file(file, "A network of random numbers.").unwrap().save(&workspace.path("random.nnue")).unwrap();
    workspace.write("feature_sets/half-kp.toml", "features = \"file(P) for P in pieces\"\n");
    let output = workspace.command_of(&program, &["net", "info", "random.nnue", "--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(info["architecture"], "stockfish-12");
    assert_eq!(info["identity"], set.identity().to_string());
}
