//! One rule for all verbs: what stands is replaced with `--force` alone.

use super::program::Bench;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

#[test]
fn what_stands_is_replaced_with_force_alone() {
    let bench = Bench::new();
    bench.write("one.pgn", "[Event \"one\"]\n[Result \"*\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n");
    let commands: [(&str, Vec<&str>); 4] = [
        ("out.svg", vec!["show", "piece", "--fen", START, "--out", "out.svg"]),
        ("out.idx", vec!["select", "piece", "--top", "4", "--data", "one.pgn", "--out", "out.idx"]),
        ("out.fsd", vec!["dataset", "build", "one.pgn", "--method", "pqr", "--out", "out.fsd"]),
        ("out.binpack", vec!["dataset", "convert", "one.pgn", "out.binpack", "--unknown-result", "draw"]),
    ];
    for (file, command) in commands {
        bench.write(file, "mine");
        let complaint = bench.refused(&command, 2);
        assert!(complaint.contains(&format!("{file} exists already; give --force")), "{command:?}: {complaint}");
        assert_eq!(std::fs::read_to_string(bench.path(file)).unwrap(), "mine", "{command:?}");
        bench.stdout(&[&command[..], &["--force"]].concat());
        assert_ne!(std::fs::read(bench.path(file)).unwrap(), b"mine", "{command:?}");
    }
}
