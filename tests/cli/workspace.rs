//! A temporary folder with its own cache, in which tests run the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A temporary working folder and cache.
pub struct Workspace {
    root: TempDir,
}

impl Workspace {
    pub fn new() -> Workspace {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Workspace { root }
    }

    /// The folder in which commands run.
    pub fn folder(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The program's cache.
    pub fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Writes a file and creates its folder.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The program with arguments, ready to start.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_fsbench")), arguments)
    }

    pub fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder()).env("FSBENCH_CACHE", self.cache());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed and returns its stdout.
    pub fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with this exit status and returns its stderr.
    pub fn refused(&self, arguments: &[&str], status: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
