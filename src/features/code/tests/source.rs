//! The sources of random programs, compiled by rustc and gcc, do what the interpreter does.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rand::RngExt;

use super::{Case, Outcome, outcome, random_cases, random_program};
use crate::features::code::{Executable, Function, Parameter, Program, SourceLanguage};
use crate::units::Seed;

const CASES: usize = 4;

fn random_programs(count: u64) -> Vec<Program> {
    (0..count)
        .map(|number| {
            let mut rng = Seed(2).stream("random programs", number);
            let length = rng.random_range(1..120);
            random_program(&mut rng, length)
        })
        .collect()
}

/// A case as the drivers read it.
fn bytes(case: &Case) -> Vec<u8> {
    let mut bytes = Vec::new();
    for board in &case.boards {
        let bit = |bit: u8| {
            let has = |square: &usize| board.squares()[*square] >> bit & 1 == 1;
            (0..64).filter(has).fold(0u64, |bits, square| bits | 1 << square)
        };
        let code_bits = [0, 1, 2, 3].map(bit);
        for bitboard in board.by_code().iter().chain(board.by_color()).chain([&board.occupied()]).chain(&code_bits) {
            bytes.extend(bitboard.to_le_bytes());
        }
    }
    for state in case.change.states().as_flattened() {
        bytes.extend(state.to_le_bytes());
    }
    for word in &case.state {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// Which of the driver's lists, by kind and perspective, an argument is. `run`: the perspective.
fn list(parameter: Parameter, run: usize) -> Option<usize> {
    match parameter {
        Parameter::Active | Parameter::Added => Some(run),
        Parameter::Removed => Some(2 + run),
        _ => None,
    }
}

/// The calls of each program, for both perspectives. `write`: a call from its number, perspective and parameters.
fn calls(functions: &[Function], write: &dyn Fn(usize, usize, &[Parameter]) -> String) -> Vec<String> {
    let of =
        |(number, function): (usize, &Function)| [0, 1].map(|run| write(number, run, &function.parameters)).concat();
    functions.iter().enumerate().map(of).collect()
}

/// The text of programs, and their functions.
fn text(language: SourceLanguage, programs: &[Program]) -> (String, Vec<Function>) {
    let mut text = language.prelude().to_owned();
    text += match language {
        SourceLanguage::C => include_str!("list.c.txt"),
        SourceLanguage::Rust => include_str!("list.rs.txt"),
    };
    let mut functions = Vec::new();
    for (number, program) in programs.iter().enumerate() {
        let names: Vec<String> = (0..program.tables.len()).map(|table| format!("TABLE_{number}_{table}")).collect();
        for (name, table) in names.iter().zip(&program.tables) {
            text += &language.table(name, table);
        }
        let function = language.function(program, &format!("program_{number}"), false, &names);
        text += &function.text;
        functions.push(function);
    }
    (text, functions)
}

fn check(programs: &[Program], executable: &Path) {
    let mut child =
        Command::new(executable).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the compiled program");
    let mut stdin = child.stdin.take().unwrap();
    let mut input = Vec::new();
    let mut expected: Vec<Outcome> = Vec::new();
    for (number, program) in programs.iter().enumerate() {
        let interpreted = Executable::interpreted(program.clone());
        for case in random_cases(CASES, number as u64) {
            input.extend((number as u64).to_le_bytes());
            input.extend(bytes(&case));
            expected.push(outcome(&interpreted, &case));
        }
    }
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let mut words = output.stdout.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    for (number, expected) in expected.iter().enumerate() {
        let about = format!("program {}", number / CASES);
        for (kind, lists) in expected.lists.iter().enumerate() {
            for (perspective, list) in lists.iter().enumerate() {
                let found: Vec<u32> = match words.next() {
                    Some(len) => words.by_ref().take(len as usize).map(|word| word as u32).collect(),
                    None => panic!("{about} says nothing"),
                };
                assert_eq!(&found, list, "{about}, list {kind} of perspective {perspective}");
            }
        }
        let state: Vec<u64> = words.by_ref().take(expected.state.len()).collect();
        assert_eq!(state, expected.state, "{about}");
        assert_eq!(words.next(), Some(0), "{about} leaves its scratch in use");
    }
    assert_eq!(words.next(), None);
}

fn compile(command: &mut Command) {
    let output = command.output().expect("the compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Random programs compute much that they do not use.
fn check_c(programs: &[Program]) {
    let (text, functions) = text(SourceLanguage::C, programs);
    let calls = calls(&functions, &|number, run, parameters| {
        let argument = |parameter: &Parameter| match (list(*parameter, run), parameter) {
            (Some(list), _) => format!("&lists[{list}]"),
            (_, Parameter::Perspective) => run.to_string(),
            (_, Parameter::Before) => "&boards[0]".to_owned(),
            (_, Parameter::After) => "&boards[1]".to_owned(),
            (_, other) => other.name().to_owned(),
        };
        let arguments: Vec<String> = parameters.iter().map(argument).collect();
        format!("program_{number}({}); ", arguments.join(", "))
    });
    let mut arms = String::new();
    for (number, call) in calls.iter().enumerate() {
        writeln!(arms, "case {number}: lens = {}; {call} break;", programs[number].lists * 2).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut source = "#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n".to_owned();
    source += &text;
    source += &include_str!("driver.c.txt").replace("ARMS", &arms);
    std::fs::write(folder.path().join("main.c"), source).unwrap();
    for (name, flags) in
        [("plain", &["-O2"][..]), ("checked", &["-O1", "-fsanitize=undefined", "-fno-sanitize-recover"])]
    {
        let mut command = Command::new("gcc");
        command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "-o", name]);
        command.args(["-Wno-unused", "-Wno-tautological-compare"]);
        compile(command.args(flags).current_dir(folder.path()));
        check(programs, &folder.path().join(name));
    }
}

fn check_rust(programs: &[Program]) {
    let (text, functions) = text(SourceLanguage::Rust, programs);
    let calls = calls(&functions, &|number, run, parameters| {
        let mut constant = String::new();
        let mut arguments = Vec::new();
        for parameter in parameters {
            match (list(*parameter, run), parameter) {
                (Some(list), _) => arguments.push(["a", "b", "c", "d"][list]),
                (_, Parameter::Perspective) => constant = format!("::<{run}>"),
                (_, Parameter::Before) => arguments.push("&before"),
                (_, Parameter::After) => arguments.push("&after"),
                (_, Parameter::Change) => arguments.push("&change"),
                (_, Parameter::StateBefore) => arguments.push("&state_before"),
                (_, Parameter::StateAfter) => arguments.push("&mut state_after"),
                (_, _) => arguments.push("&mut scratch"),
            }
        }
        format!("program_{number}{constant}({}); ", arguments.join(", "))
    });
    let mut arms = String::new();
    for (number, call) in calls.iter().enumerate() {
        writeln!(arms, "{number} => {{ {call} {} }}", programs[number].lists * 2).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut source = "#![allow(dead_code, unused_variables)]\n".to_owned();
    source += &text;
    source += &include_str!("driver.rs.txt").replace("ARMS", &arms);
    std::fs::write(folder.path().join("main.rs"), source).unwrap();
    let mut command = Command::new("rustc");
    // Overflows and indices are checked, too.
    command.args(["--edition", "2021", "-O", "-C", "overflow-checks=on", "-D", "warnings", "main.rs", "-o", "main"]);
    compile(command.current_dir(folder.path()));
    check(programs, &folder.path().join("main"));
}

#[test]
fn random_programs_in_c_do_what_the_interpreter_does() {
    check_c(&random_programs(60));
}

#[test]
fn random_programs_in_rust_do_what_the_interpreter_does() {
    check_rust(&random_programs(60));
}
