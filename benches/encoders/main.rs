//! How fast fsbench's encoders follow moves and encode positions beside encoders written by hand for the same sets: one
//! thread, both perspectives, moves of real games.
//!
//! `cargo bench --bench encoders` prints a table; names of sets may follow, `delta` or `encode`, and `--rounds N`. In
//! every round both encoders take the same games by turns, each game's boards having been read just before, as an
//! engine has them in its cache. fsbench encodes packed boards, as it streams them; those encoded by hand were unpacked
//! before. Times are nanoseconds a position, best and median; the ratio is that of the medians.
#![allow(
    clippy::needless_range_loop,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark stops at the first error"
)]

mod hand;

use std::hint::black_box;
use std::mem::swap;
use std::path::Path;
use std::time::{Duration, Instant};

use fsbench::chess::{BoardChange, ByPerspective, PackedBoard, PieceBoard};
use fsbench::data::games;
use fsbench::features::{Delta, DeltaState, Encoder, FeatureSet, RowList};
use hand::{Changes, HandEncoder, Lists, Played, Visitor};
use shakmaty::Position;

const POSITIONS: usize = 20_000;

/// A game: the boards of its positions, and the moves between them.
struct Line {
    packed: Vec<PackedBoard>,
    piece_boards: Vec<PieceBoard>,
    changes: Vec<BoardChange>,
}

/// The first games of the quickstart.
fn lines(positions: usize) -> Vec<Line> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/quickstart/games.pgn.zst");
    let mut lines = Vec::new();
    let mut missing = positions;
    for game in games(&path).unwrap() {
        let game = game.unwrap();
        let mut position = game.start;
        let mut boards = vec![position.board().clone()];
        let mut changes = Vec::new();
        for played in game.moves.iter().take(missing) {
            changes.push(BoardChange::of(played.mv, position.turn()));
            position.play_unchecked(played.mv);
            boards.push(position.board().clone());
        }
        missing -= changes.len();
        let packed = boards.iter().map(|board| PackedBoard::pack(board).unwrap()).collect();
        let piece_boards = boards.iter().map(PieceBoard::of).collect();
        lines.push(Line { packed, piece_boards, changes });
        if missing == 0 {
            break;
        }
    }
    lines
}

/// Brings a game's boards into the cache.
fn touch<T>(boards: &[T], first_byte: impl Fn(&T) -> u64) {
    black_box(boards.iter().fold(0, |sum, board| sum ^ first_byte(board)));
}

#[inline(always)]
fn follow<E: HandEncoder>(encoder: &E, line: &Line, states: [&mut E::State; 2], changes: &mut Changes) {
    let [mut old, mut new] = states;
    for ([before, after], change) in line.piece_boards.array_windows().zip(&line.changes) {
        encoder.delta(Played { before, change, after }, old, new, changes);
        black_box(&*changes);
        swap(&mut old, &mut new);
    }
}

#[inline(always)]
fn encode<E: HandEncoder>(encoder: &E, line: &Line, active: &mut Lists) {
    for board in &line.piece_boards[1..] {
        encoder.encode(board, active);
        black_box(&*active);
    }
}

/// The same for CPUs with the instructions that engines are compiled for.
#[cfg(target_arch = "x86_64")]
mod with_instructions {
    use super::{Changes, HandEncoder, Line, Lists};

    pub fn are_there() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub fn follow<E: HandEncoder>(encoder: &E, line: &Line, states: [&mut E::State; 2], changes: &mut Changes) {
        super::follow(encoder, line, states, changes);
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub fn encode<E: HandEncoder>(encoder: &E, line: &Line, active: &mut Lists) {
        super::encode(encoder, line, active);
    }
}

#[allow(unsafe_code, reason = "calls what is compiled for instructions that not every CPU has")]
fn follow_by_hand<E: HandEncoder>(encoder: &E, line: &Line, states: [&mut E::State; 2], changes: &mut Changes) {
    #[cfg(target_arch = "x86_64")]
    if with_instructions::are_there() {
        // SAFETY: the CPU has them.
        return unsafe { with_instructions::follow(encoder, line, states, changes) };
    }
    follow(encoder, line, states, changes);
}

#[allow(unsafe_code, reason = "calls what is compiled for instructions that not every CPU has")]
fn encode_by_hand<E: HandEncoder>(encoder: &E, line: &Line, active: &mut Lists) {
    #[cfg(target_arch = "x86_64")]
    if with_instructions::are_there() {
        // SAFETY: the CPU has them.
        return unsafe { with_instructions::encode(encoder, line, active) };
    }
    encode(encoder, line, active);
}

/// Not inlined, as what [`follow_by_hand`] calls is not.
#[inline(never)]
fn follow_compiled(encoder: &Encoder, line: &Line, states: [&mut DeltaState; 2], deltas: &mut ByPerspective<Delta>) {
    let [mut old, mut new] = states;
    old.clear();
    for ([before, after], change) in line.piece_boards.array_windows().zip(&line.changes) {
        encoder.diff_both([before, after], change, [&mut *old, &mut *new], deltas);
        black_box(&*deltas);
        swap(&mut old, &mut new);
    }
}

/// By game and encoder, by hand and fsbench's: the time of every round.
struct Times(Vec<[Vec<Duration>; 2]>);

impl Times {
    fn new(lines: &[Line]) -> Times {
        Times(lines.iter().map(|_| [Vec::new(), Vec::new()]).collect())
    }

    /// Best and median, each summed over the games, so that what interrupts a round costs one game's time.
    fn print(mut self, set: &str, what: &str, positions: usize) {
        let mut sums = [[0.0; 2]; 2];
        for game in &mut self.0 {
            for (times, [best, median]) in game.iter_mut().zip(&mut sums) {
                times.sort_unstable();
                *best += times[0].as_secs_f64();
                *median += times[times.len() / 2].as_secs_f64();
            }
        }
        let [[hand_best, hand], [own_best, own]] = sums.map(|sums| sums.map(|sum| 1e9 * sum / positions as f64));
        let ratio = own / hand;
        println!("{set:28}{what:8}{hand_best:8.1}{hand:8.1}{own_best:10.1}{own:8.1}{ratio:8.2}");
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

struct Bench {
    lines: Vec<Line>,
    rounds: usize,
    /// Names of sets, `delta` and `encode`; all where none of a kind is named.
    only: Vec<String>,
}

impl Bench {
    fn asks_for(&self, name: &str, is_kind: bool) -> bool {
        let mut named =
            self.only.iter().filter(|word| ["delta", "encode"].contains(&word.as_str()) == is_kind).peekable();
        named.peek().is_none() || named.any(|word| word == name)
    }

    fn positions(&self) -> usize {
        self.lines.iter().map(|line| line.changes.len()).sum()
    }

    fn deltas<E: HandEncoder>(&self, encoder: &E, set: &FeatureSet) -> Times {
        let mut second = E::State::default();
        let mut changes = Changes::new();
        let [mut kept, mut next] = <[DeltaState; 2]>::default();
        let mut deltas = ByPerspective::<Delta>::default();
        let mut times = Times::new(&self.lines);
        for _ in 0..self.rounds {
            for (line, times) in self.lines.iter().zip(&mut times.0) {
                let mut first = encoder.state(&line.piece_boards[0]);
                touch(&line.piece_boards, |board| board.occupied() ^ board.by_code()[4] ^ board.by_code()[12]);
                times[0].push(timed(|| follow_by_hand(encoder, line, [&mut first, &mut second], &mut changes)));
                touch(&line.piece_boards, |board| board.occupied() ^ board.by_code()[4] ^ board.by_code()[12]);
                times[1].push(timed(|| follow_compiled(set.encoder(), line, [&mut kept, &mut next], &mut deltas)));
            }
        }
        times
    }

    fn encodings<E: HandEncoder>(&self, encoder: &E, set: &FeatureSet) -> Times {
        let mut active = Box::new(Lists::new());
        let mut lists = ByPerspective::<RowList>::default();
        let mut times = Times::new(&self.lines);
        for _ in 0..self.rounds {
            for (line, times) in self.lines.iter().zip(&mut times.0) {
                touch(&line.piece_boards, |board| board.occupied() ^ board.by_code()[4] ^ board.by_code()[12]);
                times[0].push(timed(|| encode_by_hand(encoder, line, &mut active)));
                touch(&line.packed, |board| u64::from(board.count()));
                times[1].push(timed(|| {
                    for board in &line.packed[1..] {
                        set.encoder().encode_packed(board, &mut lists);
                        black_box(&lists);
                    }
                }));
            }
        }
        times
    }
}

impl Visitor for Bench {
    fn visit<E: HandEncoder + Sync>(&mut self, name: &str, encoder: &E) {
        if !self.asks_for(name, false) {
            return;
        }
        let set = FeatureSet::resolve(name).unwrap_or_else(|error| panic!("{error}"));
        if self.asks_for("delta", true) {
            self.deltas(encoder, &set).print(name, "delta", self.positions());
        }
        if self.asks_for("encode", true) {
            self.encodings(encoder, &set).print(name, "encode", self.positions());
        }
    }
}

/// The instruction sets of the CPU that matter here.
fn instructions() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let sets = [
            ("popcnt", is_x86_feature_detected!("popcnt")),
            ("bmi2", is_x86_feature_detected!("bmi2")),
            ("avx2", is_x86_feature_detected!("avx2")),
            ("avx512bw", is_x86_feature_detected!("avx512bw")),
            ("avx512vbmi2", is_x86_feature_detected!("avx512vbmi2")),
        ];
        let there = sets.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name);
        there.collect::<Vec<&str>>().join(" ")
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::env::consts::ARCH.to_owned()
}

fn main() {
    let mut only = Vec::new();
    let mut is_bench = false;
    let mut asked = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => is_bench = true,
            "--rounds" => asked = arguments.next().and_then(|rounds| rounds.parse().ok()),
            flag if flag.starts_with("--") => {}
            _ => only.push(argument),
        }
    }
    // Without cargo's `--bench`, as under `cargo test --benches`, the benchmark is only tried.
    let positions = if is_bench { POSITIONS } else { 200 };
    let rounds = asked.unwrap_or(if is_bench { 31 } else { 1 });
    let lines = lines(positions);
    println!("instructions: {}; {rounds} rounds by turns; ns a position, both perspectives", instructions());
    println!("{:28}{:8}{:>8}{:>8}{:>10}{:>8}{:>8}", "set", "", "hand", "median", "fsbench", "median", "ratio");
    hand::each(&mut Bench { lines, rounds, only });
}
