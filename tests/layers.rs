//! The module order: a module may use only modules before it. No module uses libtorch, and only `cli` prints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules, lowest first: the library's, then `cli`, the program's.
const ORDER: [&str; 26] = [
    "units",
    "json",
    "settings",
    "statistics",
    "text",
    "system",
    "output",
    "cpu",
    "chess",
    "features",
    "data",
    "pipeline",
    "service",
    "net",
    "engine",
    "train",
    "record",
    "alpha_beta",
    "play",
    "generate",
    "measure",
    "experiment",
    "report",
    "export",
    "python",
    "cli",
];

/// Lower modules that `report` must not use.
const HIDDEN_FROM_REPORT: [&str; 10] =
    ["data", "pipeline", "service", "net", "engine", "train", "alpha_beta", "play", "generate", "measure"];

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All Rust files of a module: `src/NAME.rs` and the files in `src/NAME/`.
fn files(module: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![source_folder().join(module)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("listed").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.extend(Some(source_folder().join(module).with_extension("rs")).filter(|path| path.is_file()));
    assert!(!files.is_empty(), "no file of module {module}");
    files
}

/// A file's code without comments and string literals.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("readable");
    text.lines().map(without_comments_and_strings).collect::<Vec<_>>().join("\n")
}

fn without_comments_and_strings(line: &str) -> String {
    let mut code = String::new();
    let mut in_string = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if in_string => drop(letters.next()),
            '"' => in_string = !in_string,
            '/' if !in_string && letters.peek() == Some(&'/') => break,
            _ if !in_string => code.push(letter),
            _ => {}
        }
    }
    code
}

/// The crate's modules that occur in code as `crate::X…` or as a member of `crate::{X, Y::…}`.
fn named_modules(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(first_names(group)),
            None => names.extend(first_name(rest)),
        }
    }
    names
}

/// Whether code contains `NAME::` as a whole word.
fn uses_crate(code: &str, krate: &str) -> bool {
    let is_whole_word = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    code.match_indices(&format!("{krate}::")).any(|(at, _)| is_whole_word(at))
}

/// The first name of each member of a brace group.
fn first_names(group: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut member = String::new();
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.extend(first_name(&std::mem::take(&mut member))),
            _ => {}
        }
        if letter != ',' || depth > 0 {
            member.push(letter);
        }
    }
    names.extend(first_name(&member));
    names
}

fn first_name(path: &str) -> Option<String> {
    let name: String = path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(name).filter(|name| !name.is_empty())
}

#[test]
fn modules_are_found_in_every_form() {
    let check = |code: &str, expected: &[&str]| {
        assert_eq!(named_modules(code), expected.iter().map(|&name| name.to_owned()).collect(), "{code}");
    };
    check("use crate::data::Fsd;", &["data"]);
    check("use crate::{data::{Fsd, Method},\n units::Seed};", &["data", "units"]);
    check("let x = crate::engine::new(); pub(crate) fn f() {}", &["engine"]);
    check("use mycrate::data; $crate::cli::x", &["cli"]);
    assert!(uses_crate("use tch::Tensor;", "tch") && !uses_crate("Scratch::new()", "tch"));
    assert_eq!(without_comments_and_strings("a(\"crate::x \\\" // y\") // crate::z"), "a() ");
}

#[test]
fn order_matches_the_crates() {
    let library = code(&source_folder().join("lib.rs"));
    let program = code(&source_folder().join("main.rs"));
    let modules = library
        .lines()
        .chain(program.lines())
        .filter_map(|line| line.trim().trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let modules: Vec<&str> = modules.filter(|module| *module != "skip").collect();
    assert_eq!(modules, ORDER);
}

#[test]
fn no_module_imports_upwards() {
    let mut violations = Vec::new();
    for (index, module) in ORDER.iter().enumerate() {
        for path in files(module) {
            for name in named_modules(&code(&path)) {
                let is_higher = ORDER.iter().position(|other| *other == name).is_some_and(|other| other > index);
                if is_higher {
                    violations.push(format!("{} ({module}) uses {name}", path.display()));
                }
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn the_report_uses_records_only() {
    for path in files("report") {
        for name in named_modules(&code(&path)) {
            assert!(!HIDDEN_FROM_REPORT.contains(&name.as_str()), "{} uses {name}", path.display());
        }
    }
}

/// But for tests, and for processors, only `system` asks for what it is compiled.
#[test]
fn only_system_names_systems() {
    let conditions = ["cfg(unix", "cfg(windows", "not(unix", "not(windows", "any(unix", "any(windows"];
    let named = [&conditions[..], &["target_os", "target_env", "std::os::", "libc::", "windows_sys"]].concat();
    for module in ORDER.into_iter().filter(|module| *module != "system") {
        for path in files(module) {
            let code = code(&path);
            let library = code.split("#[cfg(test)]").next().unwrap_or_default();
            let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
            let found = named.iter().find(|name| library.contains(*name));
            assert_eq!(found.filter(|_| !is_test), None, "{}", path.display());
        }
    }
}

/// The C library's functions round differently from system to system, and from CPU to CPU. What data, trainings and
/// engines are made of has the same bytes everywhere, so there they come from the crate `libm`.
#[test]
fn no_result_depends_on_the_c_librarys_rounding() {
    let functions = ["exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "sin", "cos", "tanh", "powf"];
    for module in ["units", "data", "features", "net", "engine", "alpha_beta", "train", "pipeline"] {
        for path in files(module) {
            let code = code(&path);
            let library = code.split("#[cfg(test)]").next().unwrap_or_default();
            let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
            let found = functions.iter().find(|name| library.contains(&format!(".{name}(")));
            assert_eq!(found.filter(|_| !is_test), None, "{}", path.display());
        }
    }
}

#[test]
fn no_module_uses_libtorch_and_only_cli_prints() {
    for module in ORDER {
        for path in files(module) {
            let code = code(&path);
            // It is linked into `fsbench-tch` alone, `src/bin/fsbench-tch`.
            let tch = uses_crate(&code, "tch") || uses_crate(&code, "torch_sys");
            assert!(!tch, "{} names libtorch", path.display());
            // Tests may print why they are skipped.
            let library = code.split("#[cfg(test)]").next().unwrap_or_default();
            let prints = ["println!", "print!(", "eprintln!", "eprint!("].iter().any(|print| library.contains(print));
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "coverage");
            assert!(!prints || is_test || module == "cli", "{} prints", path.display());
        }
    }
}
