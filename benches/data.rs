//! The speed of reading, decoding, writing and converting samples. Throughput is in samples (elements) per second.
//!
//! `FSBENCH_DATA=… RAYON_NUM_THREADS=2 cargo bench --bench data` (a filter such as `binpack` may follow) measures on
//! `selfplay.binpack` in that folder. Benchmarks with `thread` in their name run on one thread, the others on rayon's
//! pool. The limit of those on one thread is to copy the records that they read or write. viriformat is compared with
//! its crate, by processor time, which other work on the machine changes least.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a benchmark stops at the first surprise")]

mod limits;

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fsbench::data::formats::binpack::{ChunkDecoder, ChunkEncoder, Chunks, Segments, Triplet, UsableSamples};
use fsbench::data::formats::{Format, SampleReader, SampleWriter};
use fsbench::data::{Fsd, Needs, Record};
use fsbench::pipeline::convert::{ConvertJob, ConvertOptions, convert};
use fsbench::units::Seed;
use limits::{Limit, bench_wall, by_turns};
use tempfile::TempDir;
use viriformat::dataformat::Game;

fn selfplay() -> Option<PathBuf> {
    let path = std::env::var_os("FSBENCH_DATA").map(|data| Path::new(&data).join("selfplay.binpack"));
    let found = path.filter(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: FSBENCH_DATA names no folder with selfplay.binpack");
    }
    found
}

fn converted(source: &Path, folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    let job = ConvertJob { output: &path, options: &ConvertOptions::default(), command: &[] };
    convert(source, &job, &mut |_| {}).unwrap();
    path
}

/// Binpack: decoding chunk by chunk with reused buffers, scanning, and encoding.
fn binpack(criterion: &mut Criterion) {
    limits::announce();
    let Some(path) = selfplay() else { return };
    let bytes = std::fs::read(&path).unwrap();
    let decode = || {
        let mut chunks = Chunks::new(bytes.as_slice());
        let mut block = Vec::new();
        let mut samples = 0;
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            let mut decoder = ChunkDecoder::new(chunk.bytes);
            loop {
                block.clear();
                match decoder.read(1 << 14, &mut block).unwrap() {
                    0 => break,
                    count => samples += count,
                }
                black_box(&block);
            }
        }
        samples
    };
    let samples = decode();
    let mut group = criterion.benchmark_group("binpack");
    group.throughput(Throughput::Elements(samples as u64));
    let limit = Limit::copying((size_of::<Record>() * samples) as f64, samples);
    bench_wall(&mut group, "decode, thread", samples, &limit, || {
        black_box(decode());
    });
    let scan = || Segments::scan(&path, UsableSamples::Eval(Needs::Any), 1, &|_, _| {}).unwrap();
    bench_wall(&mut group, "scan, thread", samples, &limit, || {
        black_box(scan());
    });
    let segments = scan();
    let mut segment_bytes = Vec::new();
    let mut decoded = Vec::new();
    bench_wall(&mut group, "decode what was scanned, thread", samples, &limit, || {
        for segment in 0..segments.segments().len() {
            segments.decode(segment, &mut segment_bytes, &mut decoded).unwrap();
            black_box(&decoded);
        }
    });
    bench_wall(&mut group, "decode by sfbinpack, thread", samples, &limit, || {
        let mut reader = sfbinpack::CompressedTrainingDataEntryReader::from_slice(&bytes).unwrap();
        let mut count = 0;
        while reader.has_next() {
            black_box(reader.next());
            count += 1;
        }
        assert_eq!(count, samples);
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let mut reader = SampleReader::open(&path, None, None).unwrap();
            while let Some(block) = reader.next_block().unwrap() {
                black_box(&block);
            }
        });
    });
    let records = read(&path);
    let draws = Seed(0).draws("bench");
    bench_wall(&mut group, "triplets, thread", samples, &limit, || {
        for (number, record) in records.iter().enumerate() {
            let _ = black_box(Triplet::draw(record, draws, number as u64));
        }
    });
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            let mut encoder = ChunkEncoder::default();
            let mut written = Vec::new();
            for block in records.chunks(1 << 16) {
                written.clear();
                encoder.push(block, &mut written).unwrap();
                black_box(&written);
            }
            encoder.finish(&mut written).unwrap();
        });
    });
    group.finish();
}

/// The records of a file, read to its end.
fn read(path: &Path) -> Vec<Record> {
    let mut reader = SampleReader::open(path, None, None).unwrap();
    let mut records = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        records.extend(block);
    }
    records
}

/// viriformat by turns with its crate. A position is read when it is a record, or a board of the crate's that the moves
/// were played on; the crate does not check a move of a release build. It writes games from its own moves, without
/// boards.
fn viriformat_by_turns(_: &mut Criterion) {
    let Some(source) = selfplay() else { return };
    let folder = TempDir::new().unwrap();
    let path = converted(&source, &folder, "s.vf");
    let records = read(&path);
    let bytes = std::fs::read(&path).unwrap();
    let mut by_us = || {
        let mut reader = SampleReader::open(&path, None, None).unwrap();
        while let Some(block) = reader.next_block().unwrap() {
            black_box(&block);
        }
    };
    let mut buffer = Vec::new();
    let mut by_crate = || {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let game = Game::deserialise_from(&mut rest, std::mem::take(&mut buffer)).unwrap();
            game.visit_positions(|board, score| {
                black_box((board, score));
            });
            buffer = game.into_move_buffer();
        }
    };
    by_turns("viriformat, read", records.len(), &mut [("fsbench", &mut by_us), ("its crate", &mut by_crate)]);

    let games: Vec<Game> = {
        let mut rest = bytes.as_slice();
        let next = || (!rest.is_empty()).then(|| Game::deserialise_from(&mut rest, Vec::new()).unwrap());
        std::iter::from_fn(next).collect()
    };
    let again = folder.path().join("again.vf");
    let mut by_us = || {
        let mut writer = SampleWriter::create(&again, Format::Viriformat, false).unwrap();
        for block in records.chunks(1 << 16) {
            writer.push(block).unwrap();
        }
        black_box(writer.samples());
    };
    let crates = folder.path().join("crate.vf");
    let mut by_crate = || {
        let mut file = BufWriter::new(File::create(&crates).unwrap());
        for game in &games {
            game.serialise_into(&mut file).unwrap();
        }
        file.flush().unwrap();
    };
    by_turns("viriformat, write", records.len(), &mut [("fsbench", &mut by_us), ("its crate", &mut by_crate)]);
}

fn conversions(criterion: &mut Criterion) {
    let Some(path) = selfplay() else { return };
    let folder = TempDir::new().unwrap();
    let fsd = converted(&path, &folder, "s.fsd");
    let samples = Fsd::open(&fsd).unwrap().header().samples;
    let mut group = criterion.benchmark_group("convert");
    group.throughput(Throughput::Elements(samples));
    let text = converted(&fsd, &folder, "s.txt");
    let bullet = converted(&fsd, &folder, "s.bullet");
    let pairs = [
        ("binpack to fsd", &path, "a.fsd"),
        ("fsd to binpack", &fsd, "a.binpack"),
        ("fsd to bullet", &fsd, "a.bullet"),
        ("bullet to fsd", &bullet, "b.fsd"),
        ("fsd to text", &fsd, "a.txt"),
        ("text to fsd", &text, "c.fsd"),
    ];
    for (name, source, target) in pairs {
        group.bench_function(name, |bencher| bencher.iter(|| converted(source, &folder, target)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("fsd");
    group.throughput(Throughput::Elements(samples));
    group.bench_function("open and read", |bencher| {
        bencher.iter(|| {
            let fsd = Fsd::open(&fsd).unwrap();
            let sum: i64 = fsd.records().iter().map(|record| i64::from(record.score().unwrap_or(0))).sum();
            black_box(sum)
        });
    });
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let bytes = size_of::<Record>() * samples as usize;
    let limit = Limit::reading(bytes as f64, bytes, samples as usize);
    bench_wall(&mut group, "open and read, thread", samples as usize, &limit, || {
        one_thread.install(|| {
            let fsd = Fsd::open(&fsd).unwrap();
            let sum: i64 = fsd.records().iter().map(|record| i64::from(record.score().unwrap_or(0))).sum();
            black_box(sum);
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = binpack, viriformat_by_turns, conversions
}
criterion_main!(benches);
