//! `fsbench elo`: its document, and the requests it refuses.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Output};

use serde_json::{Value, json};

fn elo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench")).arg("elo").args(arguments).output().unwrap()
}

#[test]
fn document() {
    let output = elo(&["--pairs", "276,7522,15797,7795,322", "--sprt", "0,2", "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["pairs"], json!({ "ll": 276, "ld": 7522, "wl_dd": 15797, "wd": 7795, "ww": 322 }));
    assert_eq!(format!("{:.2}", document["sprt"]["llr"].as_f64().unwrap()), "2.93");
    assert_eq!(document["sprt"]["model"], "normalised");
    assert_eq!(document["sprt"]["state"], "continue");
    for estimate in ["elo", "nelo"] {
        let end = |name: &str| document[estimate][name].as_f64().unwrap();
        assert!(end("low") < end("value") && end("value") < end("high"), "{document}");
    }
}

/// One pair, or pairs that are all alike, leave doubt: no width of zero, and no certainty.
#[test]
fn few_pairs_are_uncertain() {
    let estimate = |pairs: &str| {
        let output = elo(&["--pairs", pairs, "--format", "json"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let width = |of: &str| document[of]["high"].as_f64().unwrap() - document[of]["low"].as_f64().unwrap();
        (width("elo"), width("nelo"), document["los"].as_f64().unwrap())
    };
    for pairs in ["1,0,0,0,0", "0,1,0,0,0", "0,0,1,0,0", "0,0,0,1,0", "0,0,0,0,1"] {
        let (elo, nelo, los) = estimate(pairs);
        assert!(elo > 1_400.0 && nelo > 1_400.0 && (0.2..0.8).contains(&los), "{pairs}: {elo} {nelo} {los}");
    }
    for (pairs, least) in [("0,0,0,10,0", 100.0), ("0,0,20,0,0", 45.0), ("0,0,0,0,20", 400.0)] {
        let (elo, _, los) = estimate(pairs);
        assert!(elo > least && (0.5 - 1e-9..1.0).contains(&los), "{pairs}: {elo} {los}");
    }
}

/// Where a test has decided, Elo is labelled as biased.
#[test]
fn a_decided_test_biases_elo() {
    let decided = ["--pairs", "100,500,1000,900,300", "--sprt", "0,5"];
    let output = elo(&[&decided[..], &["--format", "json"]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["sprt"]["state"], &document["sprt"]["elo_is_biased"]), (&json!("accept_elo1"), &json!(true)));
    let text = String::from_utf8(elo(&decided).stdout).unwrap();
    assert!(text.contains("Elo after a sequential stop is biased"), "{text}");
}

/// Normalised and logistic LLR have the same sign but different values.
#[test]
fn models() {
    let llr = |model: &str| {
        let pairs = ["--pairs", "246,10037,21279,9863,223", "--sprt", "-2,2"];
        let output = elo(&[&pairs[..], &["--model", model, "--format", "json"]].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["sprt"]["llr"].as_f64().unwrap()
    };
    let normalised = llr("normalised");
    let logistic = llr("logistic");
    assert!(normalised < 0.0 && logistic < 0.0 && (normalised - logistic).abs() > 0.1, "{normalised} {logistic}");
}

#[test]
fn bad_requests() {
    let refused = |arguments: &[&str], message: &str| {
        let output = elo(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    };
    refused(&["--pairs", "1,2,3"], "five counts");
    refused(&["--pairs", "1,2,x,4,5"], "\"x\"");
    refused(&["--pairs", "0,0,0,0,0"], "no pair has been played");
    refused(&["--pairs", "1,2,3,4,5", "--sprt", "2,0"], "elo0 must be below elo1");
    refused(&["--pairs", "1,2,3,4,5", "--sprt", "2"], "two Elo values");
    refused(&["--pairs", "1,2,3,4,5", "--model", "logistic"], "--sprt");
}
