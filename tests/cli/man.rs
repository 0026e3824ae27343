//! `fsbench man`: one page per command.

use super::workspace::Workspace;

#[test]
fn every_command_has_a_page() {
    let workspace = Workspace::new();
    assert_eq!(workspace.stdout(&["man", "--out", "share/man1"]), "");
    let mut names: Vec<String> = std::fs::read_dir(workspace.path("share/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in ["fsbench.1", "fsbench-define.1", "fsbench-dataset.1", "fsbench-dataset-build.1", "fsbench-man.1"] {
        assert!(names.iter().any(|other| other == name), "{name} is missing: {names:?}");
    }
    for name in &names {
        let page = std::fs::read_to_string(workspace.path("share/man1").join(name)).unwrap();
        let title = format!(".TH {} 1", name.strip_suffix(".1").unwrap());
        assert!(page.contains(&title) && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let page = std::fs::read_to_string(workspace.path("share/man1/fsbench-define.1")).unwrap();
    assert!(page.contains("thorough") && page.contains(env!("CARGO_PKG_VERSION")), "{page}");
}

#[test]
fn pages_are_replaced_only_with_force() {
    let workspace = Workspace::new();
    workspace.write("man1/fsbench-net-info.1", "mine");
    let complaint = workspace.refused(&["man", "--out", "man1"], 2);
    assert!(complaint.contains("fsbench-net-info.1 exists already; give --force"), "{complaint}");
    assert!(!workspace.path("man1/fsbench.1").exists(), "nothing is written before the check");
    workspace.stdout(&["man", "--out", "man1", "--force"]);
    assert_ne!(std::fs::read_to_string(workspace.path("man1/fsbench-net-info.1")).unwrap(), "mine");
}
