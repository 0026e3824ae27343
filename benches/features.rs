//! How fast feature sets encode, follow moves and compile: one thread, both perspectives, positions of real games.
//!
//! `cargo bench --bench features` (a filter such as `encode/piece` may follow). Throughput is in positions (elements)
//! per second for `encode` and `append`, in moves per second for `delta`; `compile` gives the time for one set. The
//! limit of the others is to copy the board that they read and the indices that they write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark stops at the first error")]

mod limits;

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fsbench::chess::{Board, BoardChange, ByPerspective, PackedBoard, Perspective, PieceBoard};
use fsbench::data::games;
use fsbench::features::{Delta, DeltaState, EncodeScratch, FeatureSet, RowBuffer, RowList, available_names};
use limits::{Limit, bench_wall};
use shakmaty::Position;

/// Positions taken from the start of the games.
const POSITIONS: usize = 20_000;

/// Name and text of definitions that may not be shipped.
fn definitions() -> Vec<(&'static str, String)> {
    let inline = |features: &str| format!("features = \"{features}\"\n");
    let halves: Vec<String> = (0..64i32)
        .map(|square| (square & 7, square >> 3))
        .map(|(file, rank)| if file < 4 { "-1".into() } else { (4 * (7 - rank) + 7 - file).to_string() })
        .collect();
    let half_ka = format!(
        "features = \"bucket(K, half) * (role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in \
         pieces\"\n\
         mirror = \"king-right\"\n[buckets]\nhalf = [{}]\n",
        halves.join(", ")
    );
    let counted: Vec<String> = ["own", "their"]
        .into_iter()
        .flat_map(|color| {
            let roles = [("pawn", 8), ("knight", 15), ("bishop", 16), ("rook", 25), ("queen", 25), ("king", 8)];
            roles.map(|(role, most)| {
                format!("count({most} for P in pieces, M in moves(P) if role(P) == {role} and color(P) == {color})")
            })
        })
        .collect();
    vec![
        ("piece", inline("piece")),
        ("king-piece", inline("king-piece")),
        ("half-ka-v2-hm", half_ka),
        ("compact", inline("compact")),
        ("piece-move", inline("piece-move")),
        ("top-pp", inline("top-pp")),
        ("threats-v16", inline("threats-v16")),
        ("sfnnv16", inline("sfnnv16")),
        ("mobility-bitset", inline("square(M) * role(P) * color(P) for P in pieces, M in moves(P)")),
        ("pairs-h", inline("rank(P) * role(P) * color(P) * role(Q) * color(Q) for P in pieces, Q in next(P, east)")),
        ("mobility-count", inline(&counted.join(" + "))),
    ]
}

fn sets() -> Vec<(&'static str, FeatureSet)> {
    let parse = |text: &str| FeatureSet::from_definition(text).unwrap_or_else(|error| panic!("{error}"));
    definitions().into_iter().map(|(name, text)| (name, parse(&text))).collect()
}

/// A move with the boards before and after it.
struct PlayedMove {
    before: Board,
    change: BoardChange,
    after: Board,
}

fn played_moves() -> Vec<PlayedMove> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/quickstart/games.pgn.zst");
    let mut played_moves = Vec::with_capacity(POSITIONS);
    for game in games(&path).unwrap() {
        let game = game.unwrap();
        let mut position = game.start;
        for played in game.moves {
            let before = position.board().clone();
            let change = BoardChange::of(played.mv, position.turn());
            position.play_unchecked(played.mv);
            played_moves.push(PlayedMove { before, change, after: position.board().clone() });
            if played_moves.len() == POSITIONS {
                return played_moves;
            }
        }
    }
    played_moves
}

/// Copying the boards and all active features.
fn index_limit(set: &FeatureSet, boards: &[PackedBoard]) -> Limit {
    let mut active = ByPerspective::<RowList>::default();
    let indices: usize = boards
        .iter()
        .map(|board| {
            set.encoder().encode_packed(board, &mut active);
            Perspective::ALL.map(|pov| active[pov].len()).iter().sum::<usize>()
        })
        .sum();
    Limit::copying((size_of_val(boards) + size_of::<u32>() * indices) as f64, boards.len())
}

fn encode(criterion: &mut Criterion) {
    limits::announce();
    let boards: Vec<PackedBoard> =
        played_moves().iter().map(|played| PackedBoard::pack(&played.before).unwrap()).collect();
    let mut group = criterion.benchmark_group("encode");
    group.throughput(Throughput::Elements(boards.len() as u64));
    for (name, set) in sets() {
        let mut active = ByPerspective::<RowList>::default();
        let limit = index_limit(&set, &boards);
        bench_wall(&mut group, name, boards.len(), &limit, || {
            for board in &boards {
                set.encoder().encode_packed(board, &mut active);
                black_box(&active);
            }
        });
    }
}

/// Batches as training streams them, the side to move first.
fn append(criterion: &mut Criterion) {
    let boards: Vec<PackedBoard> =
        played_moves().iter().map(|played| PackedBoard::pack(&played.before).unwrap()).collect();
    let mut group = criterion.benchmark_group("append");
    group.throughput(Throughput::Elements(boards.len() as u64));
    for (name, set) in sets() {
        let mut sides = <[RowBuffer; 2]>::default();
        let mut scratch = EncodeScratch::default();
        let limit = index_limit(&set, &boards);
        bench_wall(&mut group, name, boards.len(), &limit, || {
            for boards in boards.chunks(64) {
                sides.iter_mut().for_each(RowBuffer::clear);
                let turns = Perspective::ALL.into_iter().cycle();
                set.encoder().append_batch(boards.iter().zip(turns), &mut sides, &mut scratch);
                black_box(&sides);
            }
        });
    }
}

/// Finds the changes of moves one after the other.
fn follow(
    set: &FeatureSet,
    moves: &[PlayedMove],
    boards: &[[PieceBoard; 2]],
    delta: &mut ByPerspective<Delta>,
    mut each: impl FnMut(&ByPerspective<Delta>),
) {
    let mut states = <[DeltaState; 2]>::default();
    for (at, (played, [before, after])) in moves.iter().zip(boards).enumerate() {
        if at == 0 || boards[at - 1][1] != *before {
            states[0].clear();
        }
        let [old, new] = &mut states;
        set.encoder().diff_both([before, after], &played.change, [old, new], delta);
        states.swap(0, 1);
        each(delta);
    }
}

fn delta(criterion: &mut Criterion) {
    let played_moves = played_moves();
    let boards: Vec<[PieceBoard; 2]> =
        played_moves.iter().map(|played| [&played.before, &played.after].map(PieceBoard::of)).collect();
    let mut group = criterion.benchmark_group("delta");
    group.throughput(Throughput::Elements(played_moves.len() as u64));
    for (name, set) in sets() {
        let mut delta = ByPerspective::<Delta>::default();
        let mut indices = 0;
        follow(&set, &played_moves, &boards, &mut delta, |delta| {
            indices +=
                Perspective::ALL.map(|pov| delta[pov].added.len() + delta[pov].removed.len()).iter().sum::<usize>();
        });
        let bytes = size_of::<PackedBoard>() * played_moves.len() + size_of::<u32>() * indices;
        let limit = Limit::copying(bytes as f64, played_moves.len());
        bench_wall(&mut group, name, played_moves.len(), &limit, || {
            follow(&set, &played_moves, &boards, &mut delta, |delta| {
                black_box(delta);
            });
        });
    }
}

fn compile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    let shipped = available_names().into_iter().map(|name| {
        let text = FeatureSet::resolve(&name).unwrap_or_else(|error| panic!("{error}")).definition().to_owned();
        (name, text)
    });
    let inline = definitions().into_iter().map(|(name, text)| (name.to_owned(), text));
    let mut all: Vec<(String, String)> = shipped.chain(inline).collect();
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    for (name, text) in all {
        group.bench_function(name, |bencher| bencher.iter(|| FeatureSet::from_definition(black_box(&text)).unwrap()));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = encode, append, delta, compile
}
criterion_main!(benches);
