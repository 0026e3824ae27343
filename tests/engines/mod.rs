//! Engines for integration tests: shell scripts that behave or do not, and the real one where it is installed.
#![allow(dead_code, clippy::unwrap_used, reason = "shared by tests that use a part each")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::skip::skip;

/// An engine as a shell script. Each text is shell; `$fen` is the last position's start, `$moves` what follows `moves`.
pub struct Script<'a> {
    pub name: &'a str,
    /// Before it says `uciok`: what else it offers.
    pub on_uci: &'a str,
    pub on_ready: &'a str,
    pub on_new_game: &'a str,
    pub on_go: &'a str,
}

impl<'a> Script<'a> {
    /// Answers as it should, and does `on_go` when asked to search.
    pub fn new(on_go: &'a str) -> Script<'a> {
        Script { name: "Fake 1", on_uci: ":", on_ready: "echo readyok", on_new_game: ":", on_go }
    }

    /// Writes it to `path`.
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
        // Another name first: a file that is still open for writing cannot be run.
        let fresh = path.with_extension("new");
        fs::write(&fresh, script).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&fresh, path).unwrap();
        path.to_path_buf()
    }
}

/// Stockfish, by its place in Debian or by name.
pub fn stockfish() -> Option<PathBuf> {
    let found = ["/usr/games/stockfish", "stockfish"]
        .into_iter()
        .find(|path| Command::new(path).arg("quit").output().is_ok_and(|output| output.status.success()));
    if found.is_none() {
        skip("stockfish", "there is no stockfish here");
    }
    found.map(PathBuf::from)
}
