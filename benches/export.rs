//! How fast exported code encodes and follows moves beside fsbench's own encoder: one thread, both perspectives, moves
//! of the sample games. Needs rustc and gcc.
//!
//! `cargo bench --bench export` prints nanoseconds per board (`active`) and per move (`delta`), the least of 15 rounds,
//! and by how much the encoder is faster. Names of sets may follow, and `generated`: the definitions that
//! `FSBENCH_DEFINITIONS` names, such as 0..100, in Rust only.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops at the first error and prints")]

#[path = "../tests/generator/mod.rs"]
#[allow(dead_code, reason = "shared with tests/generated.rs")]
mod generator;

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use fsbench::chess::{Board, BoardChange, ByPerspective, Color, Perspective, PieceBoard, Role};
use fsbench::data::games;
use fsbench::export::{Export, Language};
use fsbench::features::{Delta, DeltaState, FeatureSet, RowList};
use fsbench::units::Seed;
use generator::Limits;
use shakmaty::Position;

const SETS: [&str; 8] =
    ["piece", "chess768-mirrored", "half-ka-v2-hm", "threats-v16", "compact", "all-ph-pv", "all-mb", "piece-move"];
const MOVES: usize = 10_000;
const ROUNDS: usize = 15;

/// Bytes of exported code that are compiled.
const MOST_CODE: usize = 1 << 20;

struct PlayedMove {
    before: Board,
    change: BoardChange,
    after: Board,
}

fn played_moves() -> Vec<PlayedMove> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/quickstart/games.pgn.zst");
    let mut moves = Vec::with_capacity(MOVES);
    for game in games(&path).unwrap() {
        let game = game.unwrap();
        let mut position = game.start;
        for played in game.moves {
            let before = position.board().clone();
            let change = BoardChange::of(played.mv, position.turn());
            position.play_unchecked(played.mv);
            moves.push(PlayedMove { before, change, after: position.board().clone() });
            if moves.len() == MOVES {
                return moves;
            }
        }
    }
    moves
}

fn bytes(board: &Board) -> Vec<u8> {
    let bitboards = [Color::White, Color::Black]
        .into_iter()
        .flat_map(|color| Role::ALL.into_iter().map(move |role| board.by_color(color) & board.by_role(role)));
    bitboards.flat_map(|bits| u64::from(bits).to_le_bytes()).collect()
}

/// Nanoseconds per board and per move of fsbench's encoder.
fn own_times(set: &FeatureSet, moves: &[PlayedMove]) -> [f64; 2] {
    let mut active = RowList::default();
    let mut deltas = ByPerspective::<Delta>::default();
    let mut best = [f64::MAX; 2];
    let mut states = <[DeltaState; 2]>::default();
    let boards: Vec<[PieceBoard; 2]> =
        moves.iter().map(|played| [&played.before, &played.after].map(PieceBoard::of)).collect();
    let begins: Vec<bool> = (0..boards.len()).map(|at| at == 0 || boards[at - 1][1] != boards[at][0]).collect();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for [_, after] in &boards {
            // Finds both perspectives' rows.
            set.encoder().encode_board(after, Perspective::White, &mut active);
            black_box(&active);
        }
        let middle = Instant::now();
        for ((PlayedMove { change, .. }, [before, after]), begins) in moves.iter().zip(&boards).zip(&begins) {
            if *begins {
                states[0].clear();
            }
            let [old, new] = &mut states;
            set.encoder().diff_both([before, after], change, [old, new], &mut deltas);
            states.swap(0, 1);
            black_box(&deltas);
        }
        let times = [middle - start, middle.elapsed()].map(|time| time.as_nanos() as f64 / moves.len() as f64);
        best = [best[0].min(times[0]), best[1].min(times[1])];
    }
    best
}

/// The same of exported code, by its driver.
fn exported_times(features: &str, language: Language, input: &[u8]) -> [f64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let (driver, compiler, main, flags): (&str, &str, &str, &[&str]) = match language {
        Language::Rust => (include_str!("export/driver.rs.txt"), "rustc", "main.rs", &["--edition", "2021", "-O"]),
        Language::C => (include_str!("export/driver.c.txt"), "gcc", "main.c", &["-std=c11", "-O2"]),
    };
    std::fs::write(folder.path().join(language.features_file()), features).unwrap();
    std::fs::write(folder.path().join(main), driver).unwrap();
    let status =
        Command::new(compiler).args(flags).args([main, "-o", "driver"]).current_dir(folder.path()).status().unwrap();
    assert!(status.success(), "{compiler} failed");
    let mut child = Command::new(folder.path().join("driver"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// Compares the encoder with exported Rust for definitions of the generator: how often it takes more than 1.5 times as
/// long.
fn compare_generated(moves: &[PlayedMove], input: &[u8]) {
    let [mut compared, mut left_out] = [0; 2];
    let mut slower = [0; 2];
    for number in generator::wanted(0..20) {
        let definition = generator::definition(&mut Seed(31).stream("export", number), Limits::FULL);
        let set = FeatureSet::from_definition(&definition.text()).unwrap();
        let code = Export::new(&set, Language::Rust).features().ok().filter(|code| code.len() <= MOST_CODE);
        let Some(code) = code else {
            left_out += 1;
            continue;
        };
        compared += 1;
        let own = own_times(&set, moves);
        let rust = exported_times(&code, Language::Rust, input);
        for at in 0..2 {
            slower[at] += usize::from(own[at] > 1.5 * rust[at]);
        }
        let column = |at: usize| format!("{:9.0} {:9.0} ({:.2})", own[at], rust[at], rust[at] / own[at]);
        println!("{number:<20} {} {}", column(0), column(1));
    }
    println!(
        "{compared} definitions, {left_out} more without code below 1 MB: {} of boards and {} of moves take more than 1.5 \
         times as long as exported Rust",
        slower[0], slower[1]
    );
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let moves = played_moves();
    let input: Vec<u8> =
        moves.iter().flat_map(|played| [bytes(&played.before), bytes(&played.after)].concat()).collect();
    if named.iter().any(|name| name == "generated") {
        return compare_generated(&moves, &input);
    }
    println!("{:20} {:>26} {:>26}", "", "ns per board: own Rust C", "ns per move: own Rust C");
    let sets = if named.is_empty() { SETS.map(String::from).to_vec() } else { named };
    for name in sets {
        let set = FeatureSet::resolve(&name).unwrap();
        let own = own_times(&set, &moves);
        let [rust, c] = Language::ALL
            .map(|language| exported_times(&Export::new(&set, language).features().unwrap(), language, &input));
        let column = |at: usize| {
            let ratios = [rust[at], c[at]].map(|time| time / own[at]);
            format!("{:7.0} {:6.0} ({:.2}) {:6.0} ({:.2})", own[at], rust[at], ratios[0], c[at], ratios[1])
        };
        println!("{name:20} {} {}", column(0), column(1));
    }
}
