//! Engines for integration tests: shell scripts, and Stockfish where it is installed.
#![allow(dead_code, clippy::unwrap_used, reason = "each test uses a part of it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::skip::skip;

/// An engine written as a shell script. Each field except `name` is shell code; `$fen` and `$moves` come from the last
/// `position` command.
pub struct Script<'a> {
    pub name: &'a str,
    /// Runs before `uciok`, for example to offer options.
    pub on_uci: &'a str,
    pub on_ready: &'a str,
    pub on_new_game: &'a str,
    pub on_go: &'a str,
}

impl<'a> Script<'a> {
    /// A well-behaved engine that runs `on_go` for each search.
    pub fn new(on_go: &'a str) -> Script<'a> {
        Script { name: "Fake 1", on_uci: ":", on_ready: "echo readyok", on_new_game: ":", on_go }
    }

    /// Writes the script to `path`.
    pub fn write(&self, path: &Path) -> PathBuf {
        let Script { name, on_uci, on_ready, on_new_game, on_go } = self;
        let script = format!(
            r#"#!/bin/sh
moves=
while read -r line; do
  case "$line" in
    uci) echo "id name {name}"; {on_uci}; echo uciok;;
    isready) {on_ready};;
    ucinewgame) {on_new_game};;
    position*moves*) moves=${{line#* moves }}; fen=${{line#* fen }}; fen=${{fen% moves *}};;
    position*) moves=; fen=${{line#* fen }};;
    go*) {on_go};;
    quit) exit 0;;
  esac
done
"#
        );
        // Written under another name first: a file that is still open for writing cannot be executed.
        let fresh = path.with_extension("new");
        fs::write(&fresh, script).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&fresh, path).unwrap();
        path.to_path_buf()
    }
}

/// Stockfish, at its path in Debian or by name.
pub fn stockfish() -> Option<PathBuf> {
    let path = ["/usr/games/stockfish", "stockfish"]
        .into_iter()
        .find(|path| Command::new(path).arg("quit").output().is_ok_and(|output| output.status.success()));
    if path.is_none() {
        skip("stockfish", "there is no stockfish here");
    }
    path.map(PathBuf::from)
}
