//! The commands of README and of the help topics run as they stand and in their order, each page in a fresh copy of the
//! tracked files; what README shows of their output is what they print; links lead somewhere.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

const PAGES: [&str; 6] = [
    "README.md",
    "src/data/DATA.md",
    "src/train/TRAINING.md",
    "src/experiment/EXPERIMENTS.md",
    "src/report/RESULTS.md",
    "src/net/MIGRATION.md",
];

/// Commands that are not run: a part of their text, and why.
const LEFT_OUT: [(&str, &str); 17] = [
    ("sh.rustup.rs", "installs Rust"),
    ("pip install torch", "2 GB"),
    ("FSBENCH_LIBTORCH_CUDA", "needs PyTorch"),
    ("--device cuda", "a GPU; tests of fsbench-tch emulate one"),
    ("cargo install", "builds the program again"),
    ("scripts/quickstart.sh", "fetches and builds"),
    ("--engine stockfish", "another program, for minutes; tests of labels and generated games run it"),
    ("uci:stockfish", "another program; tests of matches play against it"),
    ("nn-ad9b42354671.nnue", "a network of another program; tests/openings.rs runs the command"),
    ("run experiments/mine.toml     ", "takes hours; its scale `try` runs"),
    ("--on slurm", "a scheduler; tests/cli/slurm.rs submits to one"),
    ("sbatch", "a scheduler; tests of matches play shards"),
    ("--sprt 0,5 --out m ", "counts the games of the shards above"),
    ("qsub", "a scheduler"),
    ("parallel --nonall", "other machines"),
    ("fsbench work experiments ", "takes days"),
    ("fastchess -engine", "another program"),
];

/// Options that make a command short: of commands that contain a text, the option and its value. A value in brackets
/// replaces the one that is given; any other is added.
const SHORTER: [(&str, &[(&str, &str)]); 8] = [
    ("fsbench train", &[("--epochs", "1"), ("--epoch-samples", "4096")]),
    ("--engine mine", &[("--soft-nodes", "[50]"), ("--positions", "[300]")]),
    ("fsbench match", &[("--pairs", "2"), ("--nodes", "[100]"), ("--equal-cost", "[100]")]),
    ("fsbench openings", &[("--count", "[4]")]),
    ("fsbench measure speed", &[("--seconds", "0.01"), ("--repetitions", "2"), ("--positions", "200")]),
    ("fsbench measure error", &[("--games", "50")]),
    ("fsbench measure importance", &[("--positions", "200")]),
    ("experiments/mine.toml --plan", &[("--scale", "try")]),
];

/// Games of the sample that the copies have.
const GAMES: usize = 400;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A command of a page.
struct ShellCommand {
    line: usize,
    text: String,
    /// Lines that the page shows of the command's output, in order.
    shown: Vec<String>,
}

/// The commands of a page's blocks `sh`. A block `text` behind one shows what its last command prints.
fn commands(page: &str) -> Vec<ShellCommand> {
    let mut commands: Vec<ShellCommand> = Vec::new();
    let mut language: Option<&str> = None;
    let mut follows_commands = false;
    let mut open = false;
    for (number, line) in page.lines().enumerate() {
        let line = line.trim_end();
        if let Some(name) = line.trim_start().strip_prefix("```") {
            if language.take().is_none() {
                language = Some(name);
            } else {
                open = false;
            }
            continue;
        }
        match language {
            Some("sh") if open => {
                let command = commands.last_mut().unwrap();
                command.text += "\n";
                command.text += line;
                open = is_open(&command.text);
            }
            Some("sh") => {
                commands.push(ShellCommand { line: number + 1, text: line.to_owned(), shown: Vec::new() });
                open = is_open(line);
                follows_commands = true;
            }
            Some("text") if follows_commands => commands.last_mut().unwrap().shown.push(line.to_owned()),
            None if line.is_empty() => {}
            Some(_) | None => follows_commands = false,
        }
    }
    commands
}

/// Whether a command goes on in the next line.
fn is_open(text: &str) -> bool {
    let (text, _) = split_comment(text);
    text.ends_with('\\') || text.ends_with('|') || text.matches('\'').count() % 2 == 1
}

/// The command, and the comment behind it.
fn split_comment(command: &str) -> (&str, &str) {
    let (code, comment) = command.split_at(command.find("  # ").unwrap_or(command.len()));
    (code.trim_end(), comment)
}

/// The command with the options that make it short.
fn shortened(command: &str) -> String {
    let (command, comment) = split_comment(command);
    let mut command = command.to_owned();
    for (part, options) in SHORTER {
        if !command.contains(part) {
            continue;
        }
        for (option, value) in options {
            let replaced = value.trim_matches(['[', ']']);
            if let Some(at) = command.find(&format!("{option} ")) {
                let from = at + option.len() + 1;
                let end = command[from..].find(char::is_whitespace).map_or(command.len(), |length| from + length);
                command.replace_range(from..end, replaced);
            } else if !value.starts_with('[') {
                assert!(!command.contains(['|', '<', '>']), "options go before these: {command}");
                command += &format!(" {option} {replaced}");
            }
        }
    }
    command + comment
}

/// The tracked files, as they are in the checkout; `None` outside a checkout.
fn tracked_files() -> Option<Vec<PathBuf>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().ok()?;
    let list = String::from_utf8(output.stdout).unwrap();
    let files: Vec<PathBuf> = list.split_terminator('\0').map(PathBuf::from).collect();
    (output.status.success() && !files.is_empty()).then_some(files)
}

/// A copy of the tracked files that commands need, with fewer games in the sample.
fn checkout() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let Some(files) = tracked_files() else {
        common::skip::skip("git", "the sources are no git checkout");
        return None;
    };
    for file in files {
        let is_needed = ["experiments", "feature_sets", "scripts", "results/quickstart"];
        // A file that is deleted, but not yet committed, is still listed.
        if is_needed.iter().any(|needed| file.starts_with(needed)) && root().join(&file).is_file() {
            let target = folder.path().join(&file);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(root().join(&file), target).unwrap();
        }
    }
    shorten_games(&folder.path().join("experiments/quickstart/games.pgn.zst"));
    Some(folder)
}

/// Keeps the first games of a file.
fn shorten_games(path: &Path) {
    let text = String::from_utf8(zstd::decode_all(fs::File::open(path).unwrap()).unwrap()).unwrap();
    let (end, _) = text.match_indices("[Event ").nth(GAMES).unwrap();
    let mut file = zstd::Encoder::new(fs::File::create(path).unwrap(), 1).unwrap();
    file.write_all(&text.as_bytes()[..end]).unwrap();
    file.finish().unwrap();
}

/// Runs the commands of a page.
fn run(page: &str) {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let Some(folder) = checkout() else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_fsbench"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut done = 0;
    for command in commands(&text) {
        if LEFT_OUT.iter().any(|(part, _)| command.text.contains(part)) {
            continue;
        }
        let mut bash = Command::new("bash");
        bash.args(["-e", "-o", "pipefail", "-c", &shortened(&command.text)]).current_dir(folder.path());
        bash.env("PATH", &path).env("FSBENCH_CACHE", folder.path().join("cache")).stdin(Stdio::null());
        let output = bash.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let place = format!("{page}:{}: {}", command.line, command.text);
        assert!(output.status.success(), "{place}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
        check_shown(&command, &printed, &place);
        done += 1;
    }
    assert!(done > 0);
}

/// The lines that the page shows stand in the output in this order; `…` stands for left-out ones.
fn check_shown(command: &ShellCommand, printed: &str, place: &str) {
    let mut lines = printed.lines().map(str::trim_end);
    for shown in &command.shown {
        let is_printed = shown.trim() == "…" || lines.any(|line| line == shown);
        assert!(is_printed, "{place}\ndoes not print this line, or not behind those above it:\n{shown}\n\n{printed}");
    }
}

#[test]
fn readme() {
    run(PAGES[0]);
}

#[test]
fn data() {
    run(PAGES[1]);
}

#[test]
fn training() {
    run(PAGES[2]);
}

#[test]
fn experiments() {
    run(PAGES[3]);
}

#[test]
fn results() {
    run(PAGES[4]);
}

#[test]
fn migration() {
    run(PAGES[5]);
}

#[test]
fn lists_of_exceptions_are_needed() {
    let texts: Vec<String> = PAGES.iter().map(|page| fs::read_to_string(root().join(page)).unwrap()).collect();
    let all: Vec<String> = texts.iter().flat_map(|text| commands(text)).map(|command| command.text).collect();
    let parts = LEFT_OUT.iter().map(|(part, _)| part).chain(SHORTER.iter().map(|(part, _)| part));
    for part in parts {
        assert!(all.iter().any(|command| command.contains(part)), "no command has `{part}`");
    }
}

/// README's definition is the file that it names, and the page is short enough to be read.
#[test]
fn readme_shows_a_shipped_set() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, block) = readme.split_once("```toml\n# feature_sets/attackers.toml\n").unwrap();
    let (shown, _) = block.split_once("```").unwrap();
    let file = fs::read_to_string(root().join("feature_sets/attackers.toml")).unwrap();
    assert!(file.ends_with(shown), "{shown}");
    assert!(readme.lines().count() <= 200);
}

/// Every link of the pages to a file leads to a tracked one.
#[test]
fn links_lead_somewhere() {
    let Some(files) = tracked_files() else { return };
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    for file in &files {
        known.extend(file.ancestors().map(Path::to_owned));
    }
    let mut checked = 0;
    for page in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        if page.starts_with("results") || !root().join(page).is_file() {
            continue;
        }
        let text = fs::read_to_string(root().join(page)).unwrap();
        for (_, rest) in text.match_indices("](").map(|(at, _)| text.split_at(at + 2)) {
            let target = rest.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let mut path = page.parent().unwrap().to_owned();
            for part in target.split('/') {
                match part {
                    ".." => assert!(path.pop(), "{}: {target}", page.display()),
                    part => path.push(part),
                }
            }
            assert!(known.contains(&path), "{}: {target}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The files that the map of the code names exist.
#[test]
fn the_map_names_existing_files() {
    let map = fs::read_to_string(root().join("src/README.md")).unwrap();
    let mut checked = 0;
    for name in map.split('`').skip(1).step_by(2) {
        let is_file = name.contains('/') && (name.ends_with(".rs") || name.ends_with(".md"));
        if is_file {
            let exists = root().join("src").join(name).is_file() || root().join(name).is_file();
            assert!(exists, "src/README.md names {name}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}
