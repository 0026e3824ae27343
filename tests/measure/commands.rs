//! `fsbench net convert --arrange` and `fsbench eval` from outside.

use fsbench::chess::{Chess, Perspective};
use fsbench::net::forward_integer;
use shakmaty::Position;

use super::{Nets, games, nets, write_pgn};

/// `net convert --arrange` writes another file with the same scores.
#[test]
fn the_command_arranges_networks() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let data = write_pgn(folder.path(), &games());
    nets("piece", &[8]).file.save(&path("net")).unwrap();
    let fsbench = || std::process::Command::new(env!("CARGO_BIN_EXE_fsbench"));
    let convert = |data: &std::path::Path| {
        let mut command = fsbench();
        command.args(["net", "convert"]).args([path("net"), path("arranged")]).arg("--arrange").arg(data);
        command.output().unwrap()
    };
    assert_eq!(convert(&path("nowhere")).status.code(), Some(2));
    assert!(!path("arranged").exists());
    let output = convert(&data);
    assert!(output.status.success(), "{output:?}");
    assert_ne!(std::fs::read(path("net")).unwrap(), std::fs::read(path("arranged")).unwrap());
    let score = |net: &str| {
        let fen = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3";
        let output = fsbench().arg("eval").arg("--net").arg(path(net)).args(["--fen", fen]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    assert_eq!(score("net"), score("arranged"));
}

/// `fsbench eval` prints the reference's score, one document per line.
#[test]
fn the_command_scores_positions() {
    let folder = tempfile::tempdir().unwrap();
    let net = folder.path().join("net");
    let Nets { file, .. } = nets("piece", &[8]);
    file.save(&net).unwrap();
    let set = file.origin.feature_set().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fsbench"));
        command.arg("eval").arg("--net").arg(&net).args(arguments).output().unwrap()
    };
    let fens = ["rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "4k3/8/8/8/8/8/4P3/4K3 b - - 0 1"];
    let list = folder.path().join("fens");
    std::fs::write(&list, fens.join("\n")).unwrap();
    let output = run(&["--fens", list.to_str().unwrap(), "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 2);
    for (line, fen) in text.lines().zip(fens) {
        let position: Chess =
            fen.parse::<shakmaty::fen::Fen>().unwrap().into_position(shakmaty::CastlingMode::Standard).unwrap();
        let stm = Perspective::of(position.turn());
        let active = |pov| set.reference(position.board(), pov);
        let internal = forward_integer(&file.net, 0, &active(stm), &active(stm.other())).sum() / 16;
        let expected = serde_json::json!({
            "fen": fen, "score_internal": internal, "score_cp": internal, "bucket": 0,
            "buckets": [{ "psqt": 0, "positional": internal }],
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap(), expected);
    }
    // A line without an answer is reported, and the others are answered.
    std::fs::write(&list, [fens[0], "nonsense", fens[1]].join("\n")).unwrap();
    let output = run(&["--fens", list.to_str().unwrap(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(2));
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!([answers[0], answers[2]].join("\n"), text.trim_end());
    let refused: serde_json::Value = serde_json::from_str(answers[1]).unwrap();
    assert_eq!(refused["line"], 2);
    assert!(refused["error"].as_str().unwrap().starts_with("\"nonsense\" is not a FEN"), "{refused}");
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(messages.contains("line 2") && messages.contains("1 of 3 lines"), "{messages}");
    let in_text = String::from_utf8(run(&["--fens", list.to_str().unwrap()]).stdout).unwrap();
    assert!(fens.iter().all(|fen| in_text.contains(fen)) && !in_text.contains("nonsense"), "{in_text}");
    assert!(run(&["--fen", fens[0]]).status.success());
    assert_eq!(run(&["--fen", "nonsense"]).status.code(), Some(2));
    assert_eq!(run(&["--fens", "/nonexistent"]).status.code(), Some(2));
    assert_eq!(run(&[]).status.code(), Some(2));
    std::fs::write(&net, b"no network").unwrap();
    assert_eq!(run(&["--fen", fens[0]]).status.code(), Some(2));
}
