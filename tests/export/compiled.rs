//! Exported sources, compiled and run on boards: their answers are compared with fsbench's encoder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fsbench::chess::{Board, Perspective, Role};
use fsbench::export::{Export, Language};
use fsbench::features::FeatureSet;

/// Boards before and after a move.
pub type Step = [Board; 2];

/// What generated code says of a step, for one perspective. Lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub active: Vec<u32>,
    pub added: Vec<u32>,
    pub removed: Vec<u32>,
    pub refresh: bool,
}

/// A program that answers for one set.
pub struct Program {
    path: PathBuf,
    argument: Option<String>,
}

/// Whether a compiler can be started.
pub fn has(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn run(command: &mut Command, about: &str) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{about}: {}", text.chars().take(4000).collect::<String>());
    assert!(text.is_empty(), "{about} warns: {}", text.chars().take(4000).collect::<String>());
}

/// One Rust program for all sets.
pub fn rust_programs(sets: &[FeatureSet], folder: &Path) -> Vec<Program> {
    let mut modules = String::new();
    let mut arms = String::new();
    for (at, set) in sets.iter().enumerate() {
        let file = format!("set_{at}.rs");
        std::fs::write(folder.join(&file), Export::new(set, Language::Rust).features().unwrap()).unwrap();
        modules += &format!("mod set_{at};\n");
        arms += &format!("{at} => run!(set_{at}),\n");
    }
    let driver = include_str!("driver.rs.txt").replace("MODULES", &modules).replace("ARMS", &arms);
    std::fs::write(folder.join("main.rs"), driver).unwrap();
    let path = folder.join("all");
    run(
        Command::new("rustc")
            .args(["--edition", "2021", "-O", "-D", "warnings", "main.rs", "-o"])
            .arg(&path)
            .current_dir(folder),
        "rustc",
    );
    (0..sets.len()).map(|at| Program { path: path.clone(), argument: Some(at.to_string()) }).collect()
}

/// A C program for a set.
pub fn c_program(set: &FeatureSet, folder: &Path, flags: &[&str]) -> Program {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("feature_set.h"), Export::new(set, Language::C).features().unwrap()).unwrap();
    std::fs::write(folder.join("main.c"), include_str!("driver.c.txt")).unwrap();
    let path = folder.join("driver");
    run(
        Command::new("gcc")
            .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "main.c", "-o"])
            .arg(&path)
            .args(flags)
            .current_dir(folder),
        &format!("gcc, {}", set.definition().chars().take(2000).collect::<String>()),
    );
    Program { path, argument: None }
}

impl Program {
    /// The answers for every step and perspective.
    pub fn answers(&self, steps: &[Step]) -> Vec<[Answer; 2]> {
        let mut command = Command::new(&self.path);
        command.args(&self.argument).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input: Vec<u8> = steps.iter().flatten().flat_map(board_bytes).collect();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        let _ = writer.join().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{}: {errors}", self.path.display());
        let mut numbers =
            output.stdout.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let mut answer = || {
            let mut list = || {
                let len = numbers.next().unwrap();
                let mut list: Vec<u32> = numbers.by_ref().take(len as usize).collect();
                list.sort_unstable();
                list
            };
            let active = list();
            let added = list();
            let removed = list();
            let refresh = numbers.next().unwrap() != 0;
            numbers.next().unwrap();
            Answer { active, added, removed, refresh }
        };
        let mut answers: Vec<[Answer; 2]> = steps.iter().map(|_| [answer(), answer()]).collect();
        for (_, answers) in steps.iter().zip(&mut answers).filter(|([before, _], _)| before.occupied().is_empty()) {
            answers.iter_mut().for_each(|answer| answer.refresh = false);
        }
        assert_eq!(numbers.next(), None);
        answers
    }
}

/// Twelve bitboards by colour and role, little-endian.
pub fn board_bytes(board: &Board) -> Vec<u8> {
    let colors = [fsbench::chess::Color::White, fsbench::chess::Color::Black];
    let boards = colors.into_iter().flat_map(|color| {
        Role::ALL.into_iter().map(move |role| u64::from(board.by_color(color) & board.by_role(role)))
    });
    boards.flat_map(u64::to_le_bytes).collect()
}

/// fsbench's own answers.
pub fn expected(set: &FeatureSet, steps: &[Step]) -> Vec<[Answer; 2]> {
    let sorted = |board: &Board, pov| {
        let mut active = Vec::new();
        set.encoder().encode(board, pov, &mut active);
        active.sort_unstable();
        active
    };
    let contexts = |board: &Board, pov| {
        (0..set.blocks().len()).map(|block| set.encoder().context(block, board, pov)).collect::<Vec<_>>()
    };
    let answer = |[before, after]: &Step, pov| {
        let old = sorted(before, pov);
        let new = sorted(after, pov);
        Answer {
            added: difference(&new, &old),
            removed: difference(&old, &new),
            // An empty board has no contexts; neither has the answer about it a meaning.
            refresh: before.occupied().any() && contexts(before, pov) != contexts(after, pov),
            active: new,
        }
    };
    steps.iter().map(|step| Perspective::ALL.map(|pov| answer(step, pov))).collect()
}

/// The multiset difference of ascending lists.
fn difference(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut right = right.iter().peekable();
    let mut out = Vec::new();
    for index in left {
        while right.next_if(|other| *other < index).is_some() {}
        if right.next_if(|other| *other == index).is_none() {
            out.push(*index);
        }
    }
    out
}

/// Asserts that a program agrees with fsbench.
pub fn check(set: &FeatureSet, program: &Program, steps: &[Step], expected: &[[Answer; 2]], language: &str) {
    let answers = program.answers(steps);
    for ((step, answer), expected) in steps.iter().zip(&answers).zip(expected) {
        assert_eq!(answer, expected, "{language} [White, Black] {step:?}\n{}", set.definition());
    }
}
