//! `fsbench completions`: scripts for every shell, and bash's tried out.

use std::process::Command;

use super::workspace::Workspace;

const COMMANDS: [&str; 5] = ["completions", "dataset", "define", "man", "samples-service"];

#[test]
fn every_shell_has_a_script_with_all_commands() {
    let workspace = Workspace::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = workspace.stdout(&["completions", shell]);
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        // Elvish and PowerShell complete no values.
        assert_eq!(script.contains("half-ka-v2-hm"), ["bash", "fish", "zsh"].contains(&shell), "{shell}");
    }
    assert!(workspace.refused(&["completions", "tcl"], 2).contains("possible values: bash"));
}

/// Sources the script in bash and completes a command's name, an option and a value.
#[test]
#[cfg(unix)]
fn bash_completes_commands_options_and_values() {
    let workspace = Workspace::new();
    workspace.write("fsbench.bash", &workspace.stdout(&["completions", "bash"]));
    let check = |words: &[&str], expected: &str| {
        let completed = format!(
            "source fsbench.bash; COMP_WORDS=({0}); COMP_CWORD={1}; _fsbench fsbench '{2}' '{3}'; echo \
             \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2]
        );
        let output = Command::new("bash").arg("-c").arg(completed).current_dir(workspace.folder()).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), expected, "{words:?}");
    };
    check(&["fsbench", "def"], "define");
    check(&["fsbench", "define", "--tho"], "--thorough");
    check(&["fsbench", "define", "piece", "--format", "j"], "json");
    check(&["fsbench", "define", "half-ka-v2-h"], "half-ka-v2-hm");
    check(&["fsbench", "eval", "--bullet", "compac"], "compact");
}
