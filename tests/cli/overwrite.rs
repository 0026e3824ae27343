//! All commands replace existing files only with `--force`.

use super::workspace::Workspace;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

#[test]
fn existing_files_are_replaced_only_with_force() {
    let workspace = Workspace::new();
    workspace.write("one.pgn", "[Event \"one\"]\n[Result \"*\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n");
    std::fs::create_dir(workspace.path("folder")).unwrap();
    let commands: [(&str, Vec<&str>); 5] = [
        ("out.svg", vec!["show", "piece", "--fen", START, "--out", "out.svg"]),
        ("out.idx", vec!["select", "piece", "--top", "4", "--data", "one.pgn", "--out", "out.idx"]),
        ("out.fsd", vec!["dataset", "build", "one.pgn", "--method", "pqr", "--out", "out.fsd"]),
        ("folder/stats.json", vec!["dataset", "stats", "one.pgn", "--out", "folder"]),
        ("out.binpack", vec!["dataset", "convert", "one.pgn", "out.binpack", "--unknown-result", "draw"]),
    ];
    for (file, command) in commands {
        workspace.write(file, "mine");
        let complaint = workspace.refused(&command, 2);
        assert!(complaint.contains(&format!("{file} exists already; give --force")), "{command:?}: {complaint}");
        assert_eq!(std::fs::read_to_string(workspace.path(file)).unwrap(), "mine", "{command:?}");
        workspace.stdout(&[&command[..], &["--force"]].concat());
        assert_ne!(std::fs::read(workspace.path(file)).unwrap(), b"mine", "{command:?}");
    }
}

/// Nor does the manifest beside a `.fsd` file, but for one that an interrupted command left without its file.
#[test]
fn manifests_replace_files_only_with_force() {
    let workspace = Workspace::new();
    workspace.write("one.pgn", "[Event \"one\"]\n[Result \"*\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n");
    let commands: [&[&str]; 2] = [
        &["dataset", "build", "one.pgn", "--method", "pqr", "--out", "out.fsd"],
        &["dataset", "convert", "one.pgn", "out.fsd"],
    ];
    for command in commands {
        workspace.write("out.fsd.json", "mine");
        let complaint = workspace.refused(command, 2);
        assert!(complaint.contains("out.fsd.json exists already; give --force"), "{command:?}: {complaint}");
        assert_eq!(std::fs::read_to_string(workspace.path("out.fsd.json")).unwrap(), "mine", "{command:?}");
        assert!(!workspace.path("out.fsd").exists(), "{command:?}");
        workspace.stdout(&[command, &["--force"]].concat());
        std::fs::remove_file(workspace.path("out.fsd")).unwrap();
        workspace.stdout(command);
        std::fs::remove_file(workspace.path("out.fsd")).unwrap();
    }
}
