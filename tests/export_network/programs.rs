//! Exported networks built as programs by rustc and gcc, and run on positions.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fsbench::chess::{Board, Chess, Color, Move, Role};
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::features::FeatureSet;
use fsbench::net::{NetFile, forward_integer};
use shakmaty::Position;

use crate::common::networks::ReferenceBuckets;
use crate::common::skip::skip;

/// How a program is compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Build {
    Rust,
    C,
    /// C with the sanitizers of addresses and undefined behaviour.
    Sanitized,
    /// The header as C++, which most engines are written in.
    Cpp,
}

/// Compiles `source` in the folder of an export. `None` and a skipped test if there is no compiler.
pub fn compile(folder: &Path, source: &str, build: Build, defines: &[&str]) -> Option<PathBuf> {
    let name = Path::new(source).file_stem().expect("a name").to_string_lossy().into_owned();
    let program = folder.join(format!("{name}-{build:?}"));
    let (compiler, options): (_, &[&str]) = match build {
        Build::Rust => ("rustc", &["--edition", "2021", "-O", "-D", "warnings"]),
        Build::C => ("gcc", &["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]),
        Build::Sanitized => (
            "gcc",
            &[
                "-std=c11",
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
            ],
        ),
        Build::Cpp => ("g++", &["-x", "c++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror"]),
    };
    let mut command = Command::new(compiler);
    command.current_dir(folder).args(options).args(defines.iter().map(|name| format!("-D{name}")));
    let Ok(output) = command.arg("-o").arg(&program).arg(source).output() else {
        skip(compiler, &format!("there is no {compiler}"));
        return None;
    };
    assert!(output.status.success(), "{build:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Runs a program in its folder with standard input.
pub fn run(program: &Path, arguments: &[String], input: &str) -> String {
    let mut command = Command::new(program);
    command.current_dir(program.parent().expect("a folder")).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        // A program that fails early closes its input; its error says more.
        scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
        child.wait_with_output().expect("ran")
    });
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The lines that the driver programs read for games from the initial position, and those that they should print.
#[derive(Default)]
pub struct Lines {
    pub input: String,
    pub expected: String,
    pub count: usize,
}

impl Lines {
    /// With the scores of the engine; every 50th equals the plain forward pass's, too.
    pub fn of(file: &NetFile, set: &FeatureSet, games: &[Vec<Move>]) -> Lines {
        let model = Model::new(&file.net);
        let mut evaluator =
            Evaluator::new(set, &model, Strategy::Refresh, BackEnd::best()).expect("belongs to the set");
        let buckets = ReferenceBuckets::new(&file.net.shape.buckets, set);
        let mut lines = Lines::default();
        for game in games {
            let mut position = Chess::default();
            lines.add('s', &position, file, (set, &buckets), &mut evaluator);
            for mv in game {
                position.play_unchecked(*mv);
                lines.add('m', &position, file, (set, &buckets), &mut evaluator);
            }
        }
        lines
    }

    fn add(
        &mut self,
        mode: char,
        position: &Chess,
        file: &NetFile,
        (set, buckets): (&FeatureSet, &ReferenceBuckets),
        evaluator: &mut Evaluator<'_>,
    ) {
        let board = position.board();
        let turn = position.turn();
        evaluator.set(board);
        let score = evaluator.score(turn);
        if self.count.is_multiple_of(50) {
            let bucket = buckets.of(board, turn);
            let active = |color| set.reference(board, fsbench::chess::Perspective::of(color));
            let raw = forward_integer(&file.net, bucket, &active(turn), &active(turn.other()));
            assert_eq!(score, file.net.scheme.score(raw), "{board:?}");
        }
        let side = u8::from(turn == Color::Black);
        let _ = writeln!(self.input, "{mode} {side}{}", bitboards(board));
        let _ = writeln!(self.expected, "{score} {}", file.net.scheme.centipawns(score));
        self.count += 1;
    }
}

/// Twelve bitboards in hexadecimal: White's, then Black's, pawns to king.
fn bitboards(board: &Board) -> String {
    let colors = [Color::White, Color::Black];
    let pieces = colors.into_iter().flat_map(|color| Role::ALL.into_iter().map(move |role| (color, role)));
    pieces.fold(String::new(), |mut text, (color, role)| {
        let _ = write!(text, " {:x}", (board.by_color(color) & board.by_role(role)).0);
        text
    })
}

/// Fails at the first line that differs.
pub fn compare(found: &str, expected: &str, what: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{what}, line {number}");
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{what}");
}
