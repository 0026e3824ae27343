//! Building samples from games, compared with a bare replay of the same file, in which pgn-reader and shakmaty play
//! every move and store nothing: the limit of one thread.
//!
//! Reads `lichess-evals.pgn.zst` in the folder that `FSBENCH_DATA` names.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

mod limits;

use std::fs::File;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fsbench::data::Method;
use fsbench::pipeline::{BuildJob, BuildOptions, WeightedInput, build};
use limits::{Limit, bench_wall};
use pgn_reader::{RawTag, Reader, SanPlus, Skip, Visitor};
use rayon::ThreadPoolBuilder;
use shakmaty::{Chess, Position};

/// Plays the moves and counts them.
struct Replay {
    moves: u64,
}

impl Visitor for Replay {
    type Tags = ();
    type Movetext = Chess;
    type Output = ();

    fn begin_tags(&mut self) -> ControlFlow<(), ()> {
        ControlFlow::Continue(())
    }

    fn tag(&mut self, (): &mut (), _: &[u8], _: RawTag<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, (): ()) -> ControlFlow<(), Chess> {
        ControlFlow::Continue(Chess::default())
    }

    fn begin_variation(&mut self, _: &mut Chess) -> ControlFlow<(), Skip> {
        ControlFlow::Continue(Skip(true))
    }

    fn san(&mut self, position: &mut Chess, san: SanPlus) -> ControlFlow<()> {
        let Ok(mv) = san.san.to_move(position) else { return ControlFlow::Break(()) };
        position.play_unchecked(mv);
        self.moves += 1;
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, position: Chess) {
        black_box(position);
    }
}

fn replay(path: &Path) -> u64 {
    let decoder = zstd::Decoder::new(File::open(path).unwrap()).unwrap();
    let mut reader = Reader::new(decoder);
    let mut replay = Replay { moves: 0 };
    while reader.read_game(&mut replay).unwrap().is_some() {}
    replay.moves
}

fn samples(path: &Path, output: &Path) -> u64 {
    let inputs = [WeightedInput::file(path)];
    let options = BuildOptions::new(Method::Eval);
    build(&BuildJob::new(&inputs, output, &options), &mut |_| {}).unwrap().positions
}

fn games(criterion: &mut Criterion) {
    let Some(data) = std::env::var_os("FSBENCH_DATA").map(PathBuf::from) else {
        println!("skipped: FSBENCH_DATA is not set");
        return;
    };
    limits::announce();
    let path = data.join("lichess-evals.pgn.zst");
    // In memory, so that the disk's speed does not count.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = folder.path().join("x.fsd");
    let positions = replay(&path);
    assert_eq!(samples(&path, &output), positions);
    let mut group = criterion.benchmark_group("games");
    group.throughput(Throughput::Elements(positions)).sample_size(10);
    group.bench_function("bare replay", |bencher| bencher.iter(|| replay(&path)));
    let replayed = (0..3).map(|_| {
        let begun = Instant::now();
        black_box(replay(&path));
        begun.elapsed().as_secs_f64()
    });
    let replayed = replayed.fold(f64::INFINITY, f64::min);
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let limit = Limit { seconds: replayed / threads as f64, work: format!("the replay by {threads} threads") };
        bench_wall(&mut group, &format!("samples, {threads} threads"), positions as usize, &limit, || {
            black_box(pool.install(|| samples(&path, &output)));
        });
    }
    group.finish();
}

criterion_group!(benches, games);
criterion_main!(benches);
