//! Definitions with mistakes get the expected messages, and hostile ones neither panic nor hang.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;
use std::fs;

use fsbench::features::FeatureSet;
use proptest::prelude::*;
use tempfile::TempDir;

/// Names and texts of files. The last file is the definition under test.
type Files = &'static [(&'static str, &'static str)];

const EXPRESSIONS: [&str; 43] = [
    "",
    "square(P)",
    "square(P) for P in pices",
    "square(P) for P in pieces,",
    "square(P) for PP in pieces",
    "square(P) for K in pieces",
    "square(P) * square(Q) for P in pieces, P in pieces",
    "sqare(P) for P in pieces",
    "square(P * role(P) for P in pieces",
    "square(P) role(P) for P in pieces",
    "square(P) * for P in pieces",
    "square(P) * role(Q) for P in pieces",
    "role(M) for P in pieces, M in moves(P)",
    "square(N) for P in pieces, M in moves(P), N in moves(M)",
    "square(Q) for P in pieces, Q in next(P, south)",
    "square(P, a1, i9) for P in pieces",
    "square(P, a1, a1) for P in pieces",
    "role(P, queen..pawn) for P in pieces",
    "rank(P, 0..7) for P in pieces",
    "color(P, white) for P in pieces",
    "file(P) - file(K) for P in pieces",
    "(file(K) - rank(P)) for P in pieces",
    "(file(K, a..d) - file(P)) for P in pieces",
    "(role(P) - 1) for P in pieces",
    "bucket(K, home) * square(P) for P in pieces",
    "reserved(0) * square(P) for P in pieces",
    "reserved(5000000000) for P in pieces",
    "square(P) * count(3 for P in pieces) for P in pieces",
    "square(P) for P in pieces if file(P) < ",
    "square(P) for P in pieces if file(P)",
    "square(P) for P in pieces if file(P) < rank(P) < 3",
    "square(P)*square(Q)*square(R)*square(S)*square(T)*square(U) for P in pieces, Q in pieces, R in pieces, S in \
     pieces, T in pieces, U in pieces",
    "piece + compakt",
    "square(P) for P in pieces if role(P) == Pawn",
    "square(P) for P in pieces if role(P) == knigth",
    "square(P) for P in pieces if color(P) == White",
    "square(P) for P in pieces if square(P) == E4",
    "square(P) for P in pieces if role(P) is pawn",
    "square(P) for P in pieces if role(P) = pawn",
    "square(P) for P in pieces if role(P) in pawn, knight",
    "square(P) for P in pieces if role(P) == P",
    "./piece.toml",
    "./nowhere/set.toml",
];

const DEFINITIONS: [Files; 16] = [
    &[("a.toml", "name = \"A\"\n")],
    &[("a.toml", "features = \"square(P) for P in pieces\"\nfeature = 1\n")],
    &[("a.toml", "features = \"square(P) for P in pieces\n")],
    &[("a.toml", "features = \"piece\"\nblack = \"mirror\"\n")],
    &[("a.toml", "features = \"bucket(K, b) * square(P) for P in pieces\"\n[buckets]\nb = [0, 1, 2]\n")],
    &[(
        "a.toml",
        "features = \"bucket(K, b)\"\n[buckets]\nb = [-2, 0, 0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0, \
         0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0]\n",
    )],
    &[("a.toml", "features = \"b\"\n"), ("b.toml", "features = \"\"\"\npiece\n  + a\n\"\"\"\n")],
    &[("b.toml", "features = \"square(P) for P in pieces * 2\"\n"), ("a.toml", "features = \"piece + b\"\n")],
    &[("a.toml", "features = \"piece\"\nselect = \"nowhere.idx\"\n")],
    &[("a.idx", "1\n2\n\n768\n"), ("a.toml", "features = \"piece\"\nselect = \"a.idx\"\n")],
    &[("a.idx", "1\n2 # kept\n1\n"), ("a.toml", "features = \"piece\"\nselect = \"a.idx\"\n")],
    &[("a.idx", "1\n-2\n"), ("a.toml", "features = \"piece\"\nselect = \"a.idx\"\n")],
    &[("a.idx", "# nothing\n"), ("a.toml", "features = \"piece\"\nselect = \"a.idx\"\n")],
    &[("a.toml", "features = \"square(K) * square(P) for P in pieces\"\nfactor = \"square(Q)\"\n")],
    &[("a.toml", "features = \"square(K) * square(P) for P in pieces\"\nfactor = [\"square(P)\", \"\"]\n")],
    &[("a.toml", "features = \"square(P) for P in pieces\"\nfactor = \"count(2 for Q in pieces)\"\n")],
];

fn message(request: &str) -> String {
    match FeatureSet::resolve(request) {
        Ok(set) => format!("no error: {} features", set.num_features()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages_about_mistakes() {
    let mut messages = String::new();
    for expression in EXPRESSIONS {
        // The searched folders depend on the machine.
        let message = message(expression);
        let message = message.split(" (looked in ").next().unwrap_or_default();
        writeln!(messages, "▶ {expression}\n{message}\n").unwrap();
    }
    for files in DEFINITIONS {
        let folder = TempDir::new().unwrap();
        let mut requested = String::new();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            requested = path.display().to_string();
            writeln!(messages, "▶ {name}: {}", text.replace('\n', "⏎ ")).unwrap();
        }
        let root = folder.path().canonicalize().unwrap().display().to_string();
        let message =
            message(&requested).replace(&root, "FOLDER").replace(&folder.path().display().to_string(), "FOLDER");
        writeln!(messages, "{message}\n").unwrap();
    }
    assert_eq!(messages.matches("no error").count(), 0, "{messages}");
    insta::assert_snapshot!("mistakes", messages);
}

#[test]
fn hostile_definitions_are_errors() {
    let deep =
        |open: &str, close: &str| format!("{}square(P){} for P in pieces", open.repeat(5000), close.repeat(5000));
    let check = |text: &str| {
        let error = FeatureSet::resolve(text).expect_err("hostile").to_string();
        assert!(error.len() < 4000, "{} bytes of message", error.len());
    };
    check(&deep("(", ")"));
    check(&deep("(reserved(1) + ", ")"));
    check(&format!("square(P) for P in pieces if {}file(P) == 1{}", "(".repeat(9000), ")".repeat(9000)));
    check(&format!("square(P) for P in pieces if {}file(P) == 1", "not ".repeat(9000)));
    check(&format!("square(P) for P in pieces if {}file(P) == 1", "- ".repeat(9000)));
    check(&format!("square(P){} for P in pieces", " * square(P)".repeat(100_000)));
    check(&"piece + ".repeat(200_000));
    check(&format!("reserved(1){}", " + reserved(1)".repeat(5000)));
    check(&vec!["piece"; 5000].join(" + "));
    check(&format!("square(P) for P in {}", "pieces, P in ".repeat(1000)));
    check("reserved(4294967295) + reserved(4294967295)");
    check("(reserved(65536) + reserved(1)) * (reserved(65536) + reserved(1))");
    check(&"(".repeat(1 << 20));
    check(&"é".repeat(1 << 20));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(text in "\\PC{0,80}") {
        let _ = FeatureSet::resolve(&text);
        let _ = FeatureSet::from_definition(&text);
        let _ = FeatureSet::from_definition(&format!("features = {text:?}"));
    }

    #[test]
    fn random_words_never_panic(words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..40)) {
        let _ = FeatureSet::resolve(&words.join(" "));
    }
}

const WORDS: [&str; 38] = [
    "square",
    "file",
    "role",
    "color",
    "bucket",
    "count",
    "reserved",
    "(",
    ")",
    "(",
    ")",
    "P",
    "K",
    "E",
    "M",
    ",",
    "*",
    "+",
    "-",
    "for",
    "in",
    "pieces",
    "if",
    "moves",
    "(P)",
    "(K)",
    "next",
    "east",
    "==",
    "<",
    "3",
    "own",
    "pawn",
    "..",
    "and",
    "not",
    "abs",
    "for P in pieces",
];
