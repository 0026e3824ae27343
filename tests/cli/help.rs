//! `fsbench help`: topics, commands, and names that are neither.

use std::path::Path;

use super::workspace::Workspace;

const TOPICS: [(&str, &str); 9] = [
    ("data", "src/data/DATA.md"),
    ("training", "src/train/TRAINING.md"),
    ("experiments", "src/experiment/EXPERIMENTS.md"),
    ("results", "src/report/RESULTS.md"),
    ("columns", "src/report/COLUMNS.md"),
    ("migration", "src/net/MIGRATION.md"),
    ("language", "src/features/LANGUAGE.md"),
    ("protocol", "src/service/PROTOCOL.md"),
    ("sizes", "src/data/SIZES.md"),
];

#[test]
fn topics_are_printed_and_listed() {
    let workspace = Workspace::new();
    let list = workspace.stdout(&["--help"]);
    for (topic, file) in TOPICS {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert_eq!(workspace.stdout(&["help", topic]), text, "{topic}");
        assert!(list.lines().any(|line| line.starts_with(&format!("  {topic} "))), "{topic}: {list}");
    }
    assert_eq!(workspace.stdout(&["help"]), list);
}

#[test]
fn commands_are_explained_as_by_themselves() {
    let workspace = Workspace::new();
    for command in [&["train"][..], &["define"], &["net"], &["net", "info"], &["help"]] {
        let help = [&["help"], command].concat();
        let own = [command, &["--help"]].concat();
        assert_eq!(workspace.stdout(&help), workspace.stdout(&own), "{command:?}");
    }
}

#[test]
fn near_names_are_suggested() {
    let workspace = Workspace::new();
    let check = |words: &[&str], expected: &str| {
        assert_eq!(workspace.refused(words, 2).trim_end(), format!("error: {expected}"), "{words:?}");
    };
    check(&["help", "langage"], "there is no topic or command `langage`; did you mean `language`?");
    check(&["help", "trian"], "there is no topic or command `trian`; did you mean `train`?");
    check(&["help", "net", "inof"], "there is no command of `net` `inof`; did you mean `info`?");
    check(&["help", "bishop"], "there is no topic or command `bishop`; `fsbench help` lists topics and commands");
    check(&["help", "language", "define"], "`language` is a topic and has no commands");
}
