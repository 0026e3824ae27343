//! The module order: a module may use those before it, never those after; libtorch and printing each have one home.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// From the bottom up.
const ORDER: [&str; 19] = [
    "units",
    "statistics",
    "text",
    "output",
    "chess",
    "features",
    "data",
    "pipeline",
    "service",
    "net",
    "engine",
    "train",
    "record",
    "search",
    "measure",
    "play",
    "experiment",
    "report",
    "cli",
];

/// What `report` never sees, though it comes after them.
const HIDDEN_FROM_REPORT: [&str; 9] =
    ["data", "pipeline", "service", "net", "engine", "train", "search", "measure", "play"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file of a module: `src/NAME.rs` and all under `src/NAME/`.
fn files(module: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![source().join(module)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("listed").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.extend(Some(source().join(module).with_extension("rs")).filter(|path| path.is_file()));
    assert!(!found.is_empty(), "no file of module {module}");
    found
}

/// A file's code: no comments, no texts in quotes.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("readable");
    text.lines().map(without_comments_and_texts).collect::<Vec<_>>().join("\n")
}

fn without_comments_and_texts(line: &str) -> String {
    let mut code = String::new();
    let mut in_text = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if in_text => drop(letters.next()),
            '"' => in_text = !in_text,
            '/' if !in_text && letters.peek() == Some(&'/') => break,
            _ if !in_text => code.push(letter),
            _ => {}
        }
    }
    code
}

/// The crate's modules a piece of code names: `crate::X…` and each X of `crate::{X, Y::…}`.
fn named_modules(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(heads(group)),
            None => names.extend(head(rest)),
        }
    }
    names
}

/// Whether code uses a path of that crate: `NAME::` as a whole word.
fn names(code: &str, krate: &str) -> bool {
    let whole = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    code.match_indices(&format!("{krate}::")).any(|(at, _)| whole(at))
}

/// The first name of each member of a brace group.
fn heads(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let (mut depth, mut member) = (0, String::new());
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.extend(head(&std::mem::take(&mut member))),
            _ => {}
        }
        if letter != ',' || depth > 0 {
            member.push(letter);
        }
    }
    heads.extend(head(&member));
    heads
}

fn head(path: &str) -> Option<String> {
    let name: String = path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(name).filter(|name| !name.is_empty())
}

#[test]
fn names_are_found_in_every_form() {
    let check = |code: &str, expected: &[&str]| {
        assert_eq!(named_modules(code), expected.iter().map(|&name| name.to_owned()).collect(), "{code}");
    };
    check("use crate::data::Fsd;", &["data"]);
    check("use crate::{data::{Fsd, Method},\n units::Seed};", &["data", "units"]);
    check("let x = crate::engine::new(); pub(crate) fn f() {}", &["engine"]);
    check("use mycrate::data; $crate::cli::x", &["cli"]);
    assert!(names("use tch::Tensor;", "tch") && !names("Scratch::new()", "tch"));
    assert_eq!(without_comments_and_texts("a(\"crate::x \\\" // y\") // crate::z"), "a() ");
}

#[test]
fn the_order_is_the_one_of_the_crate() {
    let root = code(&source().join("lib.rs"));
    let modules: Vec<&str> =
        root.lines().filter_map(|line| line.trim().strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(modules, ORDER);
}

#[test]
fn no_module_imports_upwards() {
    let mut wrong = Vec::new();
    for (place, module) in ORDER.iter().enumerate() {
        for path in files(module) {
            for name in named_modules(&code(&path)) {
                let above = ORDER.iter().position(|other| *other == name).is_some_and(|other| other > place);
                if above {
                    wrong.push(format!("{} ({module}) uses {name}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_report_sees_records_only() {
    for path in files("report") {
        for name in named_modules(&code(&path)) {
            assert!(!HIDDEN_FROM_REPORT.contains(&name.as_str()), "{} uses {name}", path.display());
        }
    }
}

#[test]
fn libtorch_and_printing_have_one_home_each() {
    for module in ORDER {
        for path in files(module) {
            let code = code(&path);
            let tch = names(&code, "tch") || names(&code, "torch_sys");
            assert!(!tch || module == "train", "{} names libtorch", path.display());
            // Tests may say why they are skipped.
            let library = code.split("#[cfg(test)]").next().unwrap_or_default();
            let prints = ["println!", "print!(", "eprintln!", "eprint!("].iter().any(|print| library.contains(print));
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            assert!(!prints || is_test || module == "cli", "{} prints", path.display());
        }
    }
}

/// Whoever calls libtorch does so alone on its thread: threads that may are made in one place.
#[test]
fn the_trainer_makes_its_threads_in_one_place() {
    for path in files("train") {
        let code = code(&path);
        let makes = ["ThreadPoolBuilder", "set_num_threads", "thread::spawn"].iter().any(|name| code.contains(name));
        assert!(!makes || path.ends_with("train/threads.rs"), "{} makes threads", path.display());
    }
}
