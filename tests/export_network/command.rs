//! `fsbench export NET`: the folder, its golden evaluations, and refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fsbench::chess::parse_fen;
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::features::FeatureSet;
use fsbench::net::{Checkpoint, FloatNet, Origin, Scheme, Shape, save_float};
use serde_json::Value;
use shakmaty::Position;

use crate::common::networks::shapes;
use crate::common::skip::skip;

fn fsbench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench")).current_dir(folder).args(arguments).output().expect("ran")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("listed");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_folder_has_the_network_and_its_evaluations() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let set = FeatureSet::resolve("half-ka-v2-hm").expect("shipped");
    let file = crate::file(&set, shapes()[2].clone(), Scheme { pawn_value: 361, ..Scheme::stockfish() }, 1);
    file.save(&folder.join("net.safetensors")).expect("saved");
    for (language, sources) in [("rust", ["feature_set.rs", "network.rs"]), ("c", ["feature_set.h", "network.h"])] {
        let output = fsbench(folder, &["export", "net.safetensors", "--lang", language, "--out", language]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut expected = vec!["README.md", "golden.jsonl", "weights.bin"];
        expected.extend(sources);
        expected.sort_unstable();
        assert_eq!(names(&folder.join(language)), expected);
        let readme = fs::read_to_string(folder.join(language).join("README.md")).expect("read");
        assert!(readme.contains("## The network") && readme.contains("361 are a pawn"), "{readme}");
    }
    assert!(fs::read(folder.join("rust/weights.bin")).ok() == fs::read(folder.join("c/weights.bin")).ok());

    let model = Model::new(&file.net);
    let mut evaluator = Evaluator::new(&set, &model, Strategy::Refresh, BackEnd::best()).expect("its set");
    let golden = fs::read_to_string(folder.join("c/golden.jsonl")).expect("read");
    for line in golden.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let position = parse_fen(line["fen"].as_str().expect("a FEN")).expect("legal");
        evaluator.set(position.board());
        let expected = evaluator.evaluate(position.turn());
        assert_eq!(line["eval_internal"], expected.score_internal, "{line}");
        assert_eq!(line["eval_cp"], expected.score_cp.0, "{line}");
    }
    assert!(golden.lines().count() > 2_000);
}

/// An engine in another folder that uses both headers, and a system's header after them.
const ENGINE: &str = r#"
#include "network.h"
#include "feature_set.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    static fsb_board board;
    fsb_list active;
    fsb_network *net = (fsb_network *)calloc(1, sizeof *net);
    board.pieces[FSB_WHITE][5] = 1u << 4;
    board.pieces[FSB_BLACK][5] = (uint64_t)1 << 60;
    fsb_active(&board, FSB_WHITE, &active);
    printf("%u %d\n", (unsigned)active.len, net != NULL && strlen(FSB_NAME) > 0);
    free(net);
    return 0;
}
"#;

/// The names of the headers shadow none of the system's, which themselves include others by name.
#[test]
fn the_headers_compile_from_another_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let set = FeatureSet::resolve("half-ka-v2-hm").expect("shipped");
    let file = crate::file(&set, shapes()[2].clone(), Scheme::stockfish(), 1);
    file.save(&folder.join("net.safetensors")).expect("saved");
    assert!(fsbench(folder, &["export", "net.safetensors", "--lang", "c", "--out", "exported"]).status.success());
    let elsewhere = folder.join("engine/src");
    fs::create_dir_all(&elsewhere).expect("made");
    for (source, compiler, options) in
        [("main.c", "gcc", &["-std=c11"][..]), ("main.cpp", "g++", &["-std=c++17"]), ("gnu.c", "gcc", &["-std=gnu11"])]
    {
        fs::write(elsewhere.join(source), ENGINE).expect("written");
        let mut command = Command::new(compiler);
        command.current_dir(&elsewhere).args(options).args(["-O2", "-Wall", "-Wextra", "-Werror"]);
        let Ok(output) = command.args(["-I", "../../exported", source, "-o", "engine"]).output() else {
            skip(compiler, &format!("there is no {compiler}"));
            continue;
        };
        assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
        let output = Command::new(elsewhere.join("engine")).output().expect("ran");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2 1\n", "{source}");
    }
}

/// A checkpoint is quantised by the scheme that is asked for.
#[test]
fn checkpoints_are_quantised() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let set = FeatureSet::resolve("piece").expect("shipped");
    let origin = Origin::of(&set);
    let float = FloatNet::zeros(&Shape::plain(set.num_features(), 8, vec![]));
    save_float(&folder.join("c"), &Checkpoint { origin, training: Value::Null }, &float, &[]).expect("saved");
    for scheme in ["simple", "stockfish"] {
        let output = fsbench(folder, &["export", "c", "--lang", "c", "--out", scheme, "--scheme", scheme]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let source = fs::read_to_string(folder.join(scheme).join("network.h")).expect("read");
        assert!(source.contains(&format!("quantised by scheme `{scheme}`")), "{source}");
    }
}

#[test]
fn wrong_requests_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let set = FeatureSet::resolve("piece").expect("shipped");
    let file = crate::file(&set, shapes()[0].clone(), Scheme::stockfish(), 1);
    file.save(&folder.join("net.safetensors")).expect("saved");
    let whole = fs::read(folder.join("net.safetensors")).expect("read");
    fs::write(folder.join("cut.safetensors"), &whole[..whole.len() / 2]).expect("written");
    fs::write(folder.join("raw.bin"), vec![7; 4096]).expect("written");
    fs::create_dir(folder.join("empty-run")).expect("made");
    fs::create_dir(folder.join("full")).expect("made");
    fs::write(folder.join("full/mine"), "mine").expect("written");
    let check = |arguments: &[&str], expected: &str| {
        let out = if arguments.contains(&"--out") { &[][..] } else { &["--out", "out"] };
        let output = fsbench(folder, &[&["export"], arguments, out].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(expected), "{arguments:?}: {error}");
        assert!(!folder.join("out").exists(), "{arguments:?}");
    };
    check(&["cut.safetensors", "--lang", "c"], "was it only partly copied?");
    check(&["raw.bin", "--lang", "c"], "needs the definition of the network's features");
    check(&["raw.bin", "--lang", "c"], "fsbench net convert --bullet SET");
    check(&["missing.nnue", "--lang", "rust"], "cannot read missing.nnue");
    check(&["empty-run", "--lang", "rust"], "empty-run");
    check(&["net.safetensors", "--lang", "rust", "--scheme", "simple"], "already quantised by scheme `stockfish`");
    check(&["net.safetensors", "--lang", "rust", "--last"], "--last needs a run folder");
    check(&["net.safetensors", "--lang", "java"], "java");
    check(&["piece", "--lang", "rust", "--scheme", "simple"], "--scheme needs a network, but `piece` is a feature set");
    check(&["net.safetensors", "--lang", "c", "--bullet"], "--lang rust");
    check(&["net.safetensors", "--lang", "c", "--out", "full"], "full is not empty");
    assert_eq!(names(&folder.join("full")), ["mine"]);
}
