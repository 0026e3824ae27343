//! The files of a folder in which a command ran, and the remains that a disturbed command may leave of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fsbench::output::checked::without_line_sum;
use fsbench::output::file_lock::FileLock;
use safetensors::SafeTensors;
use serde_json::Value;

/// The folder with links to networks, which an experiment makes where the file system lets it.
const LINKS: &str = ".out/networks/";

/// The folder in which commands run, below a temporary one.
pub const FOLDER: &str = "folder";

/// The system's folder for temporary files, while calls fail; in [`FOLDER`].
pub const TEMPORARY: &str = "tmp";

/// The journal of a match's games.
const JOURNAL: &str = "games.journal";

/// Contents of files by their paths.
pub type Files = BTreeMap<String, Vec<u8>>;

/// All files below a folder by their relative paths; a link's content is its target, games of matches lack their times,
/// and a folder is an empty file whose name ends with a slash.
pub fn files(folder: &Path) -> Files {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inner) = folders.pop() {
        for path in fs::read_dir(inner).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_symlink() {
                let target = fs::read_link(&path).unwrap().display().to_string();
                found.insert(name, target.replace(&folder.display().to_string(), "").into_bytes());
            } else if path.is_dir() {
                found.insert(name + "/", Vec::new());
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.insert(name, without_times(&path, bytes));
            }
        }
    }
    found
}

/// The games of a match without the times of their moves, its journal's in order; other files as they are.
fn without_times(path: &Path, bytes: Vec<u8>) -> Vec<u8> {
    let (Some(name), Ok(text)) = (path.file_name(), str::from_utf8(&bytes)) else { return bytes };
    let timeless = match name.to_str() {
        Some("games.pgn") => Some(text.split(' ').map(comment_without_time).collect::<Vec<_>>().join(" ")),
        Some(JOURNAL) => journal_without_times(text),
        _ => None,
    };
    timeless.map_or(bytes, String::into_bytes)
}

/// `0.007s}` is the end of a move's comment.
fn comment_without_time(word: &str) -> &str {
    let time = word.strip_prefix('{').unwrap_or(word).split_once("s}");
    if time.is_some_and(|(seconds, _)| seconds.parse::<f64>().is_ok()) { "}" } else { word }
}

/// `None` if a line is incomplete.
fn journal_without_times(text: &str) -> Option<String> {
    let mut lines: Vec<Value> = Vec::new();
    for line in text.lines() {
        lines.push(serde_json::from_str(without_line_sum(line).ok()?).ok()?);
    }
    for line in &mut lines {
        if let Some(moves) = line["moves"].as_str() {
            // The last field of a word is the time.
            let words = moves.split(' ').map(|word| word.rsplit_once('/').map_or(word, |(rest, _)| rest));
            line["moves"] = words.collect::<Vec<_>>().join(" ").into();
        }
    }
    lines.sort_by_key(|line| line["game"].as_u64());
    Some(lines.iter().map(|line| format!("{line}\n")).collect())
}

pub fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    fs::create_dir(to).unwrap();
    for path in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, copied).unwrap();
        }
    }
}

/// Whether this is the name of a journal, which grows while a command runs and stays when it fails.
pub fn is_journal(name: &str) -> bool {
    name.ends_with(".journal")
}

/// Whether this is the name of a folder's or a step's lock, which a killed process leaves and the next one takes.
fn is_lock(name: &str) -> bool {
    let path = Path::new(name);
    let is_of_step = path.parent().is_some_and(|folder| folder.ends_with("runs/locks"));
    is_of_step || path.file_name().is_some_and(|name| name == FileLock::IN_FOLDER)
}

/// Whether this is the name of a file or folder that no command leaves behind.
pub fn is_temporary(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some_and(|extension| extension == "part")
        || path.starts_with(TEMPORARY) && path != Path::new(TEMPORARY)
}

/// Fails if a JSON document or a network is incomplete.
fn check_whole(name: &str, bytes: &[u8], about: &str) {
    let is_whole = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        _ if name.contains(LINKS) => true,
        Some("json") => serde_json::from_slice::<Value>(bytes).is_ok(),
        Some("safetensors") => SafeTensors::deserialize(bytes).is_ok(),
        _ => true,
    };
    assert!(is_whole, "{about}: {name} is incomplete");
}

/// The files that a command makes when nothing disturbs it.
pub struct Undisturbed {
    /// The files before it.
    given: Files,
    whole: Files,
    /// Names of the files that are the same whenever the command is run; others have times in them.
    stable: BTreeSet<String>,
}

impl Undisturbed {
    /// `whole` and `other`: the files after two runs.
    pub fn new(given: Files, whole: Files, other: &Files) -> Undisturbed {
        let stable = whole.iter().filter(|(name, bytes)| other.get(*name) == Some(bytes));
        let stable: BTreeSet<String> = stable.map(|(name, _)| name.clone()).collect();
        Undisturbed { given, whole, stable }
    }

    /// Fails if every file that the command makes has times in it, because then comparing files proves nothing.
    pub fn with_stable_files(self) -> Undisturbed {
        assert!(self.made().any(|name| self.stable.contains(name)), "every file has times in it");
        self
    }

    /// Of the command's files, nothing is the same in every run, whatever two of them have in common by chance.
    pub fn with_times(mut self) -> Undisturbed {
        self.stable.retain(|name| self.given.contains_key(name));
        self
    }

    /// The files that the command makes.
    pub fn made(&self) -> impl Iterator<Item = &String> {
        self.whole.keys().filter(|name| !self.given.contains_key(*name) && !name.ends_with('/'))
    }

    /// The files after a command that succeeded: all are there, and are the same but for times.
    pub fn check_finished(&self, found: &Files, about: &str) {
        for (name, whole) in &self.whole {
            match found.get(name) {
                Some(bytes) if self.stable.contains(name) => assert!(bytes == whole, "{about}: {name} differs"),
                Some(bytes) => check_whole(name, bytes, about),
                None => assert!(name.contains(LINKS), "{about}: {name} is missing"),
            }
        }
    }

    /// The files after a command that failed or was killed: none is half-written under its name.
    pub fn check_unfinished(&self, found: &Files, changing: &[&str], about: &str) {
        for (name, bytes) in found {
            let is_whole = self.given.get(name) == Some(bytes)
                || self.stable.contains(name) && self.whole.get(name) == Some(bytes);
            let may_differ = is_temporary(name)
                || is_journal(name)
                || is_lock(name)
                || self.whole.contains_key(name) && !self.stable.contains(name)
                || changing.iter().any(|changing| name.ends_with(changing));
            assert!(is_whole || may_differ, "{about}: {name} is neither as before nor whole");
            check_whole(name, bytes, about);
        }
    }

    /// The message names a file or folder that the command makes, or the folder for temporary files: with a slash or a
    /// dot, so that no plain word passes for a name.
    pub fn check_message(&self, message: &str, about: &str) {
        let paths = self.made().map(Path::new).flat_map(|path| path.ancestors().chain(path.file_name().map(Path::new)));
        let mut names = paths.filter_map(Path::to_str).filter(|name| name.contains(['/', '.']));
        let temporary = format!("/{FOLDER}/{TEMPORARY}");
        // Before it stand lines about what went well, with names of their own.
        let (_, message) = message.rsplit_once("error: ").unwrap_or(("", message));
        assert!(names.any(|name| message.contains(name)) || message.contains(&temporary), "{about} names no file");
    }
}
