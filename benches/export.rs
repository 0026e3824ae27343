//! How fast exported code encodes and follows moves beside fsbench's own encoder: one thread, both perspectives, moves
//! of the sample games. Needs rustc and gcc.
//!
//! `cargo bench --bench export` prints nanoseconds per board (`active`) and per move (`delta`), the least of 15 rounds.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops at the first error and prints")]

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use fsbench::chess::{Board, BoardChange, ByPerspective, Color, Perspective, PieceBoard, Role};
use fsbench::data::games;
use fsbench::export::{Export, Language};
use fsbench::features::{Delta, DeltaState, FeatureSet};
use shakmaty::Position;

const SETS: [&str; 8] =
    ["piece", "chess768-mirrored", "half-ka-v2-hm", "threats-v16", "compact", "all-ph-pv", "all-mb", "piece-move"];
const MOVES: usize = 10_000;
const ROUNDS: usize = 15;

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
    let mut active = Vec::new();
    let mut deltas = ByPerspective::<Delta>::default();
    let mut best = [f64::MAX; 2];
    let mut states = <[DeltaState; 2]>::default();
    let boards: Vec<[PieceBoard; 2]> =
        moves.iter().map(|played| [&played.before, &played.after].map(PieceBoard::of)).collect();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for played in moves {
            for pov in Perspective::ALL {
                set.encoder().encode(&played.after, pov, &mut active);
                black_box(&active);
            }
        }
        let middle = Instant::now();
        for (at, (PlayedMove { change, .. }, [before, after])) in moves.iter().zip(&boards).enumerate() {
            if at == 0 || boards[at - 1][1] != *before {
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
fn exported_times(set: &FeatureSet, language: Language, input: &[u8]) -> [f64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let (driver, compiler, main, flags): (&str, &str, &str, &[&str]) = match language {
        Language::Rust => (include_str!("export/driver.rs.txt"), "rustc", "main.rs", &["--edition", "2021", "-O"]),
        Language::C => (include_str!("export/driver.c.txt"), "gcc", "main.c", &["-std=c11", "-O2"]),
    };
    std::fs::write(folder.path().join(language.features_file()), Export::new(set, language).features().unwrap())
        .unwrap();
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

fn main() {
    let moves = played_moves();
    let input: Vec<u8> =
        moves.iter().flat_map(|played| [bytes(&played.before), bytes(&played.after)].concat()).collect();
    println!("{:20} {:>26} {:>26}", "", "ns per board: own Rust C", "ns per move: own Rust C");
    for name in SETS {
        let set = FeatureSet::resolve(name).unwrap();
        let own = own_times(&set, &moves);
        let [rust, c] = Language::ALL.map(|language| exported_times(&set, language, &input));
        let column = |at: usize| {
            let ratios = [rust[at], c[at]].map(|time| time / own[at]);
            format!("{:7.0} {:6.0} ({:.2}) {:6.0} ({:.2})", own[at], rust[at], ratios[0], c[at], ratios[1])
        };
        println!("{name:20} {} {}", column(0), column(1));
    }
}
