//! The language as authors meet it: its reference, keys without effect, bucket tables, limits, and how `define`,
//! `encode`, `delta` and `explain` print features.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod reference;

use std::fs;
use std::process::{Command, Output};

use fsbench::chess::{Board, Perspective};
use fsbench::features::analysis::{Analysis, Budget, Lossless};
use fsbench::features::{FeatureSet, available_names, shipped_sets};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Resolves a definition file with this text.
fn file(text: &str) -> Result<FeatureSet, String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mine.toml");
    fs::write(&path, text).unwrap();
    FeatureSet::resolve(path.to_str().unwrap()).map_err(|error| error.to_string())
}

fn set(text: &str) -> FeatureSet {
    FeatureSet::resolve(text).unwrap_or_else(|error| panic!("{error}"))
}

fn fsbench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench")).args(arguments).output().unwrap()
}

fn document(arguments: &[&str]) -> Value {
    let output = fsbench(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = fsbench(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn block_keys_without_a_block_are_errors() {
    for key in ["mirror = \"king-left\"", "mirror = \"none\"", "black = \"rotate\"", "multiplicity = \"bag\""] {
        let message = file(&format!("features = \"piece\"\n{key}\n")).unwrap_err();
        let name = key.split(' ').next().unwrap();
        assert!(message.contains(&format!("`{name}` has no effect here")), "{message}");
        assert!(message.contains("mine.toml:2"), "{message}");
        assert!(message.contains("`piece` keeps its own settings; write the block out"), "{message}");
    }
    let message = file("features = \"piece + axis-h\"\nfactor = \"role(P)\"\n").unwrap_err();
    assert!(message.contains("`factor`"), "{message}");
    assert!(file("features = \"piece + axis-h\"\n").is_ok());
}

#[test]
fn blocks_that_block_keys_do_not_affect_are_named() {
    let features = "features = \"piece + file(P) for P in pieces + axis-h\"\n";
    let remarks = |keys: &str| file(&format!("{features}{keys}")).unwrap().remarks().to_vec();
    assert_eq!(
        remarks("mirror = \"king-left\"\n"),
        ["mine: `mirror` applies only to the blocks written in this file; these keep their own settings: piece, \
             axis-h"]
    );
    let several = remarks("black = \"rotate\"\nmultiplicity = \"bag\"\n");
    assert!(several[0].contains("`black`, `multiplicity` apply only to"), "{several:?}");
    assert_eq!(remarks(""), [] as [&str; 0]);
    let set = file(&format!("{features}mirror = \"king-left\"\n")).unwrap();
    let warnings = set.warnings(&Analysis::of(&set, |_, _| {}), Budget::STEPS);
    assert_eq!(warnings[..1], set.remarks()[..]);
}

/// A table may be for output buckets alone, or a mistake.
#[test]
fn bucket_tables_that_no_block_reads_are_named() {
    let table = [0; 64];
    let remarks = |keys: &str| {
        let text = format!("{keys}\n[buckets]\nhome = {table:?}\nzones = {table:?}\n");
        let set = file(&text).unwrap();
        let names = ["home", "zones"].into_iter();
        let named = names.filter(|name| set.remarks().iter().any(|remark| remark.contains(&format!("`{name}`"))));
        named.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(remarks("features = \"file(P) for P in pieces\""), "home, zones");
    assert_eq!(remarks("features = \"bucket(K, zones) * file(P) for P in pieces\""), "home");
    let counted = "count(3 for Q in pieces if bucket(Q, zones) == 0)";
    assert_eq!(remarks(&format!("features = \"file(P) * {counted} for P in pieces if bucket(P, home) == 0\"")), "");
    let factor = "factor = \"bucket(P, home)\"";
    assert_eq!(remarks(&format!("features = \"square(P) for P in pieces\"\n{factor}")), "zones");
    // The tables of a set that the file names are another's.
    assert_eq!(remarks("features = \"chess768-buckets + bucket(K, home)\""), "zones");
    let unread = file(&format!("features = \"file(P) for P in pieces\"\nbuckets.home = {table:?}\n")).unwrap();
    assert_eq!(unread.remarks(), ["mine: no block reads the bucket table `home`; only a network's bucket rule may"]);
}

/// No key of a shipped set is without effect, and the definitions that checkpoints store resolve with any keys.
#[test]
fn shipped_sets_and_stored_definitions_have_no_remarks() {
    for name in available_names() {
        let set = set(&name);
        assert_eq!(set.remarks(), [] as [&str; 0], "{name}");
        let stored = FeatureSet::from_definition(set.definition()).unwrap();
        assert_eq!(stored.identity(), set.identity(), "{name}");
    }
    assert!(FeatureSet::from_definition("features = \"piece\"\nmirror = \"king-left\"\n").is_ok());
}

/// All spellings of a bucket table give the same set.
#[test]
fn bucket_tables_have_several_spellings() {
    let text = |mirror: &str, table: &str| {
        format!(
            "features = \"bucket(P, t) * color(P) for P in pieces\"\nmirror = \"{mirror}\"\n[buckets]\nt = {table}\n"
        )
    };
    let identity = |mirror: &str, table: &str| file(&text(mirror, table)).unwrap().identity().clone();
    let number = |square: i64| if square == 9 { 11 } else { square / 8 };
    let flat: Vec<i64> = (0..64).map(number).collect();
    let rows: Vec<Vec<i64>> = flat.chunks(8).map(<[i64]>::to_vec).collect();
    let drawn: Vec<String> =
        rows.iter().rev().map(|row| row.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")).collect();
    let expected = identity("none", &format!("{flat:?}"));
    assert_eq!(identity("none", &format!("{rows:?}")), expected);
    assert_eq!(identity("none", &format!("{drawn:?}")), expected);
    // Digits without spaces; a dot leaves a square out.
    let digits = ["........", "77777777", "66666666", "55555555", "44444444", "3333.333", "22222222", "01111110"];
    let number = |square: i64| match square {
        56.. | 20 => -1,
        0 | 7 => 0,
        square => square / 8 + 1,
    };
    let flat: Vec<i64> = (0..64).map(number).collect();
    assert_eq!(identity("none", &format!("{digits:?}")), identity("none", &format!("{flat:?}")));
    // Half a board: the own king's half, rank by rank.
    let half: Vec<i64> = (0..32).collect();
    let whole_board = |first: i64| -> Vec<i64> {
        let number = |square: i64| {
            let file = square % 8 - first;
            if (0..4).contains(&file) { square / 8 * 4 + file } else { -1 }
        };
        (0..64).map(number).collect()
    };
    for (mirror, first) in [("king-left", 0), ("king-right", 4)] {
        assert_eq!(
            identity(mirror, &format!("{half:?}")),
            identity(mirror, &format!("{:?}", whole_board(first))),
            "{mirror}"
        );
    }
    let refused = |mirror: &str, table: &str, expected: &str| {
        let message = file(&text(mirror, table)).unwrap_err();
        assert!(message.contains(expected), "{message}");
    };
    refused("none", &format!("{half:?}"), "has 32 numbers; it needs 64: half a board");
    refused("none", "[[0, 1], [2]]", "has rows of 2, 1 numbers; it needs eight rows of eight, rank 1 first");
    refused("none", "[\"01\"]", "has 1 strings; it needs eight, rank 8 first");
    refused("none", &format!("{:?}", ["0123456"; 8]), "has 7 squares in \"0123456\"");
    refused("none", &format!("{:?}", ["0123x567"; 8]), "has `x` in \"0123x567\"");
    refused("none", "3", "expected 64 numbers, eight rows of eight numbers, eight strings");
}

/// Every limit of the language is accepted, and one more is an error.
#[test]
fn limits() {
    let refused = |text: &str, expected: &str| {
        let message = FeatureSet::resolve(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    assert_eq!(set("reserved(4294967295)").num_features(), u32::MAX);
    refused("reserved(4294967296)", "too large");
    refused("reserved(4294967295) + file(K)", "more than 2^32 − 1 features");
    refused("reserved(0)", "`reserved` needs at least 1 index");
    refused("count(4294967295 for P in pieces)", "too large");
    let table = |most: i64| {
        let numbers = (0..64).map(|square| if square == 0 { most } else { 0 }).collect::<Vec<_>>();
        file(&format!("features = \"bucket(K, t)\"\n[buckets]\nt = {numbers:?}\n"))
    };
    assert_eq!(table(1 << 24).unwrap().num_features(), (1 << 24) + 1);
    assert!(table((1 << 24) + 1).unwrap_err().contains("numbers run from −1 to 2^24"));
    assert!(table(-1).is_ok());
    assert!(table(-2).unwrap_err().contains("numbers run from −1 to 2^24"));
    // Numbers in an `if` have 32 bits, so sums of as many as a text can hold do not overflow.
    let start = Board::default();
    let active = |text: &str| set(text).reference(&start, Perspective::White);
    assert_eq!(active("file(K) if file(K) < 4294967295"), [4]);
    assert_eq!(active("file(K) if -4294967295 < file(K)"), [4]);
    refused("file(K) if file(K) < 4294967296", "numbers in an `if` have 32 bits");
    let sum = |terms: usize| format!("({})", vec!["4294967295"; terms].join(" + "));
    let sums = format!("({})", vec![sum(30); 30].join(" + "));
    assert_eq!(active(&format!("file(K) if {sums} > 4294967295 and -{sums} < 0 and abs(-{sums}) == {sums}")), [4]);
}

/// A set that reads only differences cannot tell a position from the same position shifted on the board.
#[test]
fn shifted_positions_are_tried_as_counterexamples() {
    let text = "(file(K) - file(P)) * (rank(K) - rank(P)) * role(P) * color(P) for P in pieces \
                + (file(E) - file(P)) * (rank(E) - rank(P)) * role(P) * color(P) for P in pieces";
    let Lossless::No(pair) = Lossless::of(&set(text)) else { panic!("no counterexample found") };
    assert_ne!(pair[0].board(), pair[1].board());
    for pov in Perspective::ALL {
        assert_eq!(set(text).reference(pair[0].board(), pov), set(text).reference(pair[1].board(), pov));
    }
}

/// `define` prints the author's letters, ranges and value names.
#[test]
fn define_prints_the_expression_as_written() {
    let text = "role(T, pawn..queen) * square(T, a2..h7) * rank(T, 2, 3) * color(T) for T in pieces, U in moves(T) \
                if role(T) == pawn and color(T) != their";
    let printed = printed(&["define", text]);
    for expected in [
        "role(T, pawn..queen) × square(T, a2..h7) × rank(T, 2, 3) × color(T) for T ∈ pieces, U ∈ moves(T)",
        "if (role(T) == pawn) and (color(T) ≠ their)",
        "\n    square(T, a2..h7)  ",
    ] {
        assert!(printed.contains(expected), "{printed}");
    }
    assert!(!printed.contains("b2, c2"), "{printed}");
    let warned = String::from_utf8(fsbench(&["define", text]).stderr).unwrap();
    assert!(warned.contains("nothing reads the variable U"), "{warned}");
}

#[test]
fn sums_without_brackets_get_a_hint() {
    for text in
        ["file(P) for P in pieces if rank(P) + 1 == rank(K)", "file(P) for P in pieces if rank(K) == rank(P) + 1"]
    {
        let message = FeatureSet::resolve(text).unwrap_err().to_string();
        assert!(message.contains("a sum in a condition needs brackets"), "{message}");
    }
    assert!(FeatureSet::resolve("file(P) for P in pieces if (rank(P) + 1) == rank(K)").is_ok());
}

const FEN: &str = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";

#[test]
fn features_are_explained() {
    let explained = document(&["explain", "axis-h + square(P) * role(P) for P in pieces", "51", "96"]);
    assert_eq!(explained["features"]["51"]["values"], "file(P) = e, role(P) = knight, color(P) = their");
    assert_eq!(explained["features"]["96"]["values"], "square(P) = a1, role(P) = pawn");
    let lines = printed(&["explain", "axis-h", "51"]);
    assert_eq!(lines, "        51  AXIS-H: file(P) = e, role(P) = knight, color(P) = their\n");
    let beyond = fsbench(&["explain", "axis-h", "96"]);
    assert_eq!(beyond.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&beyond.stderr).contains("its indices run from 0 to 95"));

    let encoded = document(&["encode", "axis-h", "--fen", FEN, "--explain"]);
    let set = set("axis-h");
    for index in encoded["white"].as_array().unwrap().iter().chain(encoded["black"].as_array().unwrap()) {
        let index = index.as_u64().unwrap() as u32;
        assert_eq!(encoded["features"][index.to_string()]["values"], set.describe(index).unwrap().values);
    }
    assert!(document(&["encode", "axis-h", "--fen", FEN]).get("features").is_none());
    let text = printed(&["encode", "axis-h", "--fen", FEN, "--explain"]);
    assert!(text.contains("AXIS-H: file(P) = e, role(P) = pawn, color(P) = own\n"), "{text}");

    let changed = document(&["delta", "piece", "--fen", FEN, "--move", "e2e4", "--explain"]);
    let added = changed["white"]["added"][0].to_string();
    assert_eq!(changed["features"][&added]["values"], "square(P) = e4, role(P) = pawn, color(P) = own");
    let text = printed(&["delta", "piece", "--fen", FEN, "--move", "e2e4", "--explain"]);
    assert!(text.contains("square(P) = e2, role(P) = pawn, color(P) = own\n"), "{text}");
}

/// A selection's features keep their meaning under their new indices.
#[test]
fn selected_features_are_explained() {
    let whole = set("axis-h");
    let kept = whole.select(&[51, 3]).unwrap();
    assert_eq!(kept.describe(0).unwrap().values, whole.describe(51).unwrap().values);
    assert_eq!(kept.describe(1).unwrap().values, whole.describe(3).unwrap().values);
    assert_eq!(kept.describe(2), None);
}

#[test]
fn shipped_sets_are_listed() {
    let listed = document(&["define", "--list"]);
    let sets = listed["sets"].as_array().unwrap();
    assert_eq!(sets.len(), available_names().len());
    for (listed, of) in sets.iter().zip(shipped_sets().unwrap()) {
        assert_eq!(listed["num_features"], json!(set(&of.name).num_features()), "{}", of.name);
        assert!(of.about.is_some() && of.source.is_some(), "{of:?}");
    }
    let text = printed(&["define", "--list"]);
    assert!(text.lines().any(|line| line.starts_with("half-kp ") && line.contains("  41,024  ")), "{text}");
    assert_eq!(fsbench(&["define", "--list", "piece"]).status.code(), Some(2));
    assert_eq!(fsbench(&["define"]).status.code(), Some(2));
}
