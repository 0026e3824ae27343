//! Tests `fsbench net convert`: descriptions, pawn values and messages.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use fsbench::net::nnue::{Architecture, Nnue};
use fsbench::net::{NetFile, Origin, Scheme};
use serde_json::{Value, json};

use super::ours::random_integers;

const SMALL: Architecture = Architecture::Sf16_1Small;

/// Runs the command; the first two arguments are files in `folder`.
fn convert(folder: &Path, arguments: &[&str]) -> Output {
    let at = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(["net", "convert", &at(arguments[0]), &at(arguments[1])]).args(&arguments[2..]);
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

fn network(pawn_value: i32) -> NetFile {
    let net = random_integers(SMALL);
    let origin = Origin::of(&SMALL.feature_set().unwrap());
    NetFile { origin, net: fsbench::net::QuantNet { scheme: Scheme { pawn_value, ..Scheme::stockfish() }, ..net } }
}

#[test]
fn a_nnue_file_round_trips_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let description = b"Features=HalfKAv2_hm(Friend)[22528->128x2], by hand".to_vec();
    let nnue = Nnue { architecture: SMALL, description, net: random_integers(SMALL) };
    nnue.save(&folder.path().join("a.nnue")).unwrap();
    let first = document(&convert(folder.path(), &["a.nnue", "b.safetensors", "--format", "json"]));
    assert_eq!(
        (&first["format"], &first["pawn"]),
        (&json!("fsbench"), &json!({ "from": 356, "to": 356, "engine": null }))
    );
    let second = document(&convert(folder.path(), &["b.safetensors", "c.nnue", "--format", "json"]));
    assert_eq!(second["description"], "Features=HalfKAv2_hm(Friend)[22528->128x2], by hand");
    assert_eq!((&second["architecture"], &second["pawn"]["engine"]), (&json!("stockfish-16.1-small"), &json!(356)));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("a.nnue") == read("c.nnue"));
    let renamed = stdout(&convert(folder.path(), &["b.safetensors", "d.nnue", "--description", "mine"]));
    assert!(renamed.contains("a pawn is 356 internal units, as before") && !renamed.contains("times"), "{renamed}");
    assert_eq!(Nnue::load(&folder.path().join("d.nnue"), None).unwrap().description, b"mine");
}

#[test]
fn existing_files_are_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    network(100).save(&folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("b"), "mine").unwrap();
    let refused = convert(folder.path(), &["a", "b"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("exists already; give --force to replace it"));
    assert_eq!(std::fs::read(folder.path().join("b")).unwrap(), b"mine");
    stdout(&convert(folder.path(), &["a", "b", "--force"]));
    assert_eq!(NetFile::load(&folder.path().join("b")).unwrap(), network(100));
}

#[test]
fn the_pawn_value_is_reported_and_can_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    network(100).save(&folder.path().join("a")).unwrap();
    let text = stdout(&convert(folder.path(), &["a", "b.nnue"]));
    assert!(text.contains("a pawn is 100 internal units, as before"), "{text}");
    assert!(text.contains("expects 356 units per pawn, so its scores are 0.28 times as large"), "{text}");
    let kept = Nnue::load(&folder.path().join("b.nnue"), None).unwrap();
    assert_eq!(kept.net.stacks, network(100).net.stacks);

    let text = stdout(&convert(folder.path(), &["a", "c.nnue", "--pawn", "356"]));
    assert!(text.contains("a pawn is 356 internal units; it was 100, and the last layer was scaled"), "{text}");
    let scaled = Nnue::load(&folder.path().join("c.nnue"), None).unwrap();
    let before = &network(100).net;
    let after = &scaled.net;
    assert!(before.ft_weights == after.ft_weights && before.stacks[0][1] == after.stacks[0][1]);
    let times = |before: i32, after: i32| (f64::from(after) - 3.56 * f64::from(before)).abs() <= 0.51;
    assert!(before.psqt_weights.iter().zip(&after.psqt_weights).all(|(a, b)| times(*a, *b)));
    for (a, b) in before.stacks[3][2].weights.iter().zip(&after.stacks[3][2].weights) {
        assert!(times((*a).into(), (*b).into()), "{a} {b}");
    }
    // A factor of 20 does not fit the i8 weights of the last layer.
    let refused = convert(folder.path(), &["a", "d.nnue", "--pawn", "2000"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("cannot be scaled to a pawn of 2000 units; train it with --pawn 2000"), "{error}");
    assert!(!folder.path().join("d.nnue").exists());
}
