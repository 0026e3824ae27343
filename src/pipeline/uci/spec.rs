//! Which engine to start and how it searches, and the identity recorded of a running engine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::Color;

use crate::data::hash_file;
use crate::units::SortedMap;

/// Debian installs engines here, and the folder is not always in PATH.
pub(super) const GAMES_FOLDER: &str = "/usr/games";

/// An engine to start. Engines always run with one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSpec {
    /// A path, or a name to look up in PATH.
    pub path: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// Further options by name and value, in the order given; the engine must offer them.
    pub options: Vec<(String, String)>,
    /// The hash table in MiB.
    pub hash: u32,
}

impl EngineSpec {
    const LONGEST_OPTION: usize = 4096;

    /// An engine without arguments and further options and with 8 MiB of hash.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> EngineSpec {
        EngineSpec { path: path.into(), arguments: Vec::new(), options: Vec::new(), hash: 8 }
    }

    /// Parses `Name=Value`, or `Name` for a button.
    ///
    /// # Errors
    /// When the name is missing, or is `Threads`, `Hash` or `UCI_Chess960`, which are always set.
    pub fn parse_option(text: &str) -> Result<(String, String), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let name = name.trim();
        let value = value.trim();
        if name.is_empty() || text.contains(char::is_control) {
            return Err("give an option as Name=Value".into());
        }
        if text.len() > Self::LONGEST_OPTION {
            return Err(format!("an option may be {} bytes long", Self::LONGEST_OPTION));
        }
        match name.to_ascii_lowercase().as_str() {
            "threads" => Err("searches run on one thread, so that they can be repeated; use --concurrency".into()),
            "uci_chess960" => Err("it is set where a game's castling rights need it".into()),
            "hash" => Err("give the size of the hash table with --hash".into()),
            _ => Ok((name.into(), value.into())),
        }
    }
}

/// The facts about an engine that its answers depend on, as journals and manifests record them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineIdentity {
    /// The name that the engine gives itself.
    pub name: String,
    /// BLAKE3 hash of its program's file, in hexadecimal; `None` where the file was not found or not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The arguments of its program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// BLAKE3 hashes, in hexadecimal, of the files that its arguments and the values of its options name.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub files: SortedMap<String, String>,
    /// Options by name, in the engine's spelling.
    pub options: SortedMap<String, String>,
    /// MiB; `None` where the engine has no such option.
    pub hash: Option<u32>,
}

impl EngineIdentity {
    /// Whether the same position gets the same answer every time under `limit`. This is false when the clock ends a
    /// search, and for an engine of limited strength, which chooses moves at random.
    #[must_use]
    pub fn reproducible(&self, limit: SearchLimit) -> bool {
        let weakened = self.options.iter().any(|(name, value)| match name.to_ascii_lowercase().as_str() {
            "uci_limitstrength" => value == "true",
            "skill level" => value != "20",
            _ => false,
        });
        limit.reproducible() && !weakened
    }

    /// Adds the hashes of the engine's files. A file that cannot be read is left out, and so is a log, which changes
    /// while the engine runs.
    pub(super) fn with_files(mut self, program: &Path) -> EngineIdentity {
        let hash = |path: &Path| Some(hash_file(path).ok()?.1.to_hex().to_string());
        self.program = program_file(program).and_then(|path| hash(&path));
        let is_log = |option: &str| option.to_ascii_lowercase().contains("log");
        let values = self.options.iter().filter(|(option, _)| !is_log(option)).map(|(_, value)| value);
        let named = self.arguments.iter().chain(values).filter(|text| Path::new(text).is_file());
        self.files = named.filter_map(|text| Some((text.clone(), hash(Path::new(text))?))).collect();
        self
    }
}

/// The file of a program: a name without a folder is looked up as [`super::Engine`] does when it starts it.
fn program_file(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain([GAMES_FOLDER.into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// When a search ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchLimit {
    /// Nodes.
    Nodes(u64),
    /// Nodes after which no iteration begins; fsbench's own search only.
    SoftNodes(u64),
    /// Depth in plies.
    Depth(u32),
    /// Milliseconds.
    MoveTime(u64),
    /// A game's clock, in milliseconds: the time left to both sides, and the increment per move.
    Clock {
        /// White's time left.
        white: u64,
        /// Black's time left.
        black: u64,
        /// Added after every move.
        increment: u64,
    },
}

impl SearchLimit {
    /// Whether one thread with a fixed hash gives the same answer every time.
    #[must_use]
    pub const fn reproducible(self) -> bool {
        !matches!(self, SearchLimit::MoveTime(_) | SearchLimit::Clock { .. })
    }

    /// Whether the limit allows no search at all.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        matches!(
            self,
            SearchLimit::Nodes(0) | SearchLimit::SoftNodes(0) | SearchLimit::Depth(0) | SearchLimit::MoveTime(0)
        )
    }

    /// The most time that the side to move may use.
    pub(super) const fn time(self, turn: Color) -> Duration {
        match (self, turn) {
            (SearchLimit::Nodes(_) | SearchLimit::SoftNodes(_) | SearchLimit::Depth(_), _) => Duration::ZERO,
            (SearchLimit::MoveTime(time), _)
            | (SearchLimit::Clock { white: time, .. }, Color::White)
            | (SearchLimit::Clock { black: time, .. }, Color::Black) => Duration::from_millis(time),
        }
    }

    /// The UCI command that starts a search.
    pub(super) fn go(self) -> String {
        match self {
            SearchLimit::Nodes(nodes) | SearchLimit::SoftNodes(nodes) => format!("go nodes {nodes}"),
            SearchLimit::Depth(depth) => format!("go depth {depth}"),
            SearchLimit::MoveTime(time) => format!("go movetime {time}"),
            SearchLimit::Clock { white, black, increment } => {
                format!("go wtime {white} btime {black} winc {increment} binc {increment}")
            }
        }
    }
}

/// How many engine processes run at once, and how long each may take to answer. Results do not depend on either.
#[derive(Copy, Clone, Debug)]
pub struct Workers {
    pub concurrency: usize,
    /// Longest wait for an engine's answer.
    pub answer_timeout: Duration,
}

impl Workers {
    /// Upper bound of `concurrency`.
    pub const MOST: usize = 1024;
}

impl Default for Workers {
    fn default() -> Workers {
        Workers { concurrency: 1, answer_timeout: Duration::from_secs(60) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_names_and_values() {
        let check = |text: &str, expected: Result<(&str, &str), &str>| {
            let found = EngineSpec::parse_option(text);
            let found = found.as_ref().map(|(name, value)| (name.as_str(), value.as_str())).map_err(String::as_str);
            assert_eq!(found, expected, "{text}");
        };
        check("EvalFile=a=b.nnue", Ok(("EvalFile", "a=b.nnue")));
        check("Clear Hash", Ok(("Clear Hash", "")));
        check("=3", Err("give an option as Name=Value"));
        check("Style=x\nquit", Err("give an option as Name=Value"));
        check("threads=2", Err("searches run on one thread, so that they can be repeated; use --concurrency"));
        check("Hash=2", Err("give the size of the hash table with --hash"));
    }

    fn identity() -> EngineIdentity {
        EngineIdentity {
            name: "x".into(),
            program: None,
            arguments: Vec::new(),
            files: SortedMap::new(),
            options: SortedMap::new(),
            hash: Some(1),
        }
    }

    #[test]
    fn files_of_an_engine_are_hashed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["program", "net", "book", "log"] {
            std::fs::write(path(name), name).expect("written");
        }
        let options = [("Book", "book"), ("Debug Log File", "log"), ("Style", "none")];
        let identity = EngineIdentity {
            arguments: vec!["--net".into(), path("net"), path("")],
            options: options.map(|(name, value)| (name.to_owned(), path(value))).into(),
            ..identity()
        };
        let found = identity.clone().with_files(Path::new(&path("program")));
        let hash = |content: &str| blake3::hash(content.as_bytes()).to_hex().to_string();
        assert_eq!(found.program, Some(hash("program")));
        assert_eq!(found.files, SortedMap::from(["net", "book"].map(|name| (path(name), hash(name)))));
        // What fsbench recorded earlier, and what cannot be found.
        let text = serde_json::to_string(&identity).expect("JSON");
        assert!(!text.contains("program") && !text.contains("files"), "{text}");
        assert_eq!(serde_json::from_str::<EngineIdentity>(&text).expect("JSON"), identity);
        assert_eq!(identity.clone().with_files(Path::new("no such program")).program, None);
        assert_eq!(identity.with_files(Path::new(&path("missing"))).program, None);
    }

    #[test]
    fn reproducibility() {
        let check = |options: &[(&str, &str)], limit, expected| {
            let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let identity = EngineIdentity { options, ..identity() };
            assert_eq!(identity.reproducible(limit), expected, "{identity:?}");
        };
        check(&[], SearchLimit::Depth(9), true);
        check(&[], SearchLimit::MoveTime(9), false);
        check(&[("Skill Level", "20"), ("UCI_LimitStrength", "false")], SearchLimit::Nodes(9), true);
        check(&[("Skill Level", "3")], SearchLimit::Nodes(9), false);
        check(&[("UCI_LimitStrength", "true")], SearchLimit::Nodes(9), false);
    }
}
