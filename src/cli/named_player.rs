//! What the command line names as a player or as a judge: a network, or a UCI engine.

use std::path::{Path, PathBuf};

use super::engine_command;
use crate::pipeline::uci::EngineSpec;
use crate::train::run_dir;

/// A network's file or run folder, or a UCI engine.
#[derive(Debug, PartialEq, Eq)]
pub enum NamedPlayer {
    Network(PathBuf),
    Engine(EngineSpec),
}

impl NamedPlayer {
    /// Parses a player of a match: `uci:COMMAND` is an engine, all else a network.
    pub fn of_match(text: &str) -> Result<NamedPlayer, String> {
        match text.strip_prefix("uci:") {
            Some(command) => engine_command::parse(command).map(NamedPlayer::Engine),
            None => Ok(NamedPlayer::Network(text.into())),
        }
    }

    /// Parses the engine of a command for data, where a bare command line is an engine too: a network is named by a file
    /// ending in .safetensors or .nnue, by a run folder, or by any file if files are read as bullet's.
    pub fn of_data(text: &str, is_bullet: bool) -> Result<NamedPlayer, String> {
        let path = Path::new(text);
        if text.starts_with("uci:") || names_network(path) || (is_bullet && path.is_file()) {
            NamedPlayer::of_match(text)
        } else {
            engine_command::parse(text).map(NamedPlayer::Engine)
        }
    }

    pub const fn as_engine(&mut self) -> Option<&mut EngineSpec> {
        match self {
            NamedPlayer::Engine(spec) => Some(spec),
            NamedPlayer::Network(_) => None,
        }
    }
}

fn names_network(path: &Path) -> bool {
    // A file that is missing is then said to be missing, and not to be no program. An argument or an option of a
    // command may end as a network's file does.
    let is_command = !path.exists() && path.to_string_lossy().contains(|c: char| c == '|' || c.is_whitespace());
    let is_file = !is_command && path.extension().is_some_and(|ending| ending == "safetensors" || ending == "nnue");
    is_file || [false, true].into_iter().any(|last| run_dir::network(path, last).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_networks_or_engines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir_all(path("run")).expect("a folder");
        std::fs::create_dir_all(path("tools")).expect("a folder");
        std::fs::write(path("run/best.safetensors"), "").expect("written");
        let check = |text: &str, in_match: bool, in_data: bool| {
            let is_network = |player: Result<NamedPlayer, String>| matches!(player, Ok(NamedPlayer::Network(_)));
            assert_eq!(is_network(NamedPlayer::of_match(text)), in_match, "{text}");
            assert_eq!(is_network(NamedPlayer::of_data(text, false)), in_data, "{text}");
        };
        check("stockfish", true, false);
        check("stockfish|Hash=3", true, false);
        check("stockfish|EvalFile=a.nnue", true, false);
        check("fsbench uci --net a.safetensors", true, false);
        check("uci:my.nnue", false, false);
        check("missing.nnue", true, true);
        check(&path("run"), true, true);
        check(&path("run/best.safetensors"), true, true);
        check(&path("tools"), true, false);
        let engine = NamedPlayer::of_data("uci:sf 'a b'|Style=x", false).expect("an engine");
        assert_eq!(engine, NamedPlayer::of_match("uci:sf 'a b'|Style=x").expect("an engine"));
        assert_eq!(NamedPlayer::of_data("sf 'a b'|Style=x", false), Ok(engine));
        assert!(NamedPlayer::of_data("uci:", false).is_err_and(|why| why.contains("names no program")));
    }
}
