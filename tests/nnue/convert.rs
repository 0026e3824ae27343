//! `fsbench net convert`: what it keeps, what it changes and what it says.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use fsbench::net::nnue::{Architecture, Nnue};
use fsbench::net::{NetFile, Origin, Scheme};
use serde_json::{Value, json};

use super::ours::random_integers;

const SMALL: Architecture = Architecture::Sf16_1Small;

/// The first two arguments are files of `folder`.
fn convert(folder: &Path, arguments: &[&str]) -> Output {
    let at = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(["net", "convert", &at(arguments[0]), &at(arguments[1])]).args(&arguments[2..]);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&said(output)).unwrap()
}

fn ours(pawn_value: i32) -> NetFile {
    let net = random_integers(SMALL);
    let origin = Origin::of(&SMALL.feature_set().unwrap());
    NetFile { origin, net: fsbench::net::QuantNet { scheme: Scheme { pawn_value, ..Scheme::stockfish() }, ..net } }
}

#[test]
fn a_nnue_file_comes_back_byte_for_byte() {
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
    let renamed = said(&convert(folder.path(), &["b.safetensors", "d.nnue", "--description", "mine"]));
    assert!(renamed.contains("a pawn is 356 internal units, as before") && !renamed.contains("times"), "{renamed}");
    assert_eq!(Nnue::load(&folder.path().join("d.nnue"), None).unwrap().description, b"mine");
}

#[test]
fn what_exists_is_replaced_by_force_only() {
    let folder = tempfile::tempdir().unwrap();
    ours(100).save(&folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("b"), "mine").unwrap();
    let refused = convert(folder.path(), &["a", "b"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("exists already; give --force to replace it"));
    assert_eq!(std::fs::read(folder.path().join("b")).unwrap(), b"mine");
    said(&convert(folder.path(), &["a", "b", "--force"]));
    assert_eq!(NetFile::load(&folder.path().join("b")).unwrap(), ours(100));
}

#[test]
fn another_pawn_is_told_and_can_be_had() {
    let folder = tempfile::tempdir().unwrap();
    ours(100).save(&folder.path().join("a")).unwrap();
    let text = said(&convert(folder.path(), &["a", "b.nnue"]));
    assert!(text.contains("a pawn is 100 internal units, as before"), "{text}");
    assert!(
        text.contains("takes 356 of them for a pawn: there the network's scores count 0.28 times as much"),
        "{text}"
    );
    let kept = Nnue::load(&folder.path().join("b.nnue"), None).unwrap();
    assert_eq!(kept.net.stacks, ours(100).net.stacks);

    let text = said(&convert(folder.path(), &["a", "c.nnue", "--pawn", "356"]));
    assert!(text.contains("a pawn is 356 internal units: the last layer was scaled, it was 100"), "{text}");
    let scaled = Nnue::load(&folder.path().join("c.nnue"), None).unwrap();
    let (before, after) = (&ours(100).net, &scaled.net);
    assert!(before.ft_weights == after.ft_weights && before.stacks[0][1] == after.stacks[0][1]);
    let times = |before: i32, after: i32| (f64::from(after) - 3.56 * f64::from(before)).abs() <= 0.51;
    assert!(before.psqt_weights.iter().zip(&after.psqt_weights).all(|(a, b)| times(*a, *b)));
    for (a, b) in before.stacks[3][2].weights.iter().zip(&after.stacks[3][2].weights) {
        assert!(times((*a).into(), (*b).into()), "{a} {b}");
    }
    // Twenty times as much does not fit the last layer's bytes.
    let refused = convert(folder.path(), &["a", "d.nnue", "--pawn", "2000"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("cannot be scaled to a pawn of 2000: train it with --pawn 2000"), "{error}");
    assert!(!folder.path().join("d.nnue").exists());
}
