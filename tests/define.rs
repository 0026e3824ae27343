//! The JSON document of `fsbench define`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use serde_json::{Value, json};

fn define(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_fsbench"))
        .arg("define")
        .args(arguments)
        .args(["--format", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_document_of_compact() {
    let set = define(&["compact", "--list-dead", "--witnesses"]);
    assert_eq!(set["num_features"], 192);
    assert_eq!(set["dead"], json!({ "dead": 4, "live": 188, "unresolved": 0 }));
    assert_eq!(set["blocks"][0]["dead"], json!({ "dead": 0, "live": 96, "unresolved": 0 }));
    assert_eq!(set["blocks"][1]["axes"][0], json!({ "name": "rank(P)", "size": 8, "stride": 12 }));
    // Pawns of both colours on the first and last rank.
    assert_eq!(set["dead_indices"], json!([96, 97, 180, 181]));
    assert_eq!(set["witnesses"].as_object().unwrap().len(), 188);
    assert_eq!(set["lossless"], "no");
    assert_eq!(set["counterexample"].as_array().unwrap().len(), 2);
    assert_eq!((&set["contexts"], &set["contexts_bound"]), (&json!(1), &json!(false)));
    let mean = set["active"]["mean"].as_f64().unwrap();
    assert!((set["density"].as_f64().unwrap() - mean / 192.0).abs() < 1e-12);
}

#[test]
fn lists_are_printed_only_on_request() {
    let set = define(&["piece"]);
    assert_eq!(set["lossless"], "yes");
    assert_eq!(set["dead"]["dead"], 32);
    for field in ["dead_indices", "witnesses", "counterexample"] {
        assert!(set.get(field).is_none(), "{field}");
    }
}
