//! What benchmarks are compared with, measured in the same run: how fast one thread reads memory of a given size and
//! copies it, and another program's way to do the same work ([`by_turns`]).
#![allow(clippy::expect_used, clippy::print_stdout, dead_code, reason = "a benchmark prints, and uses a part of this")]

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use criterion::BenchmarkGroup;
use criterion::measurement::WallTime;
use fsbench::engine::BackEnd;

/// Prints the CPU and the engine's back end, once per program.
pub fn announce() {
    println!("{}, {} cores, back end {}", fsbench::cpu::model_name(), cores(), BackEnd::best().name());
}

/// The number of cores that the program may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes per second that one thread reads of `bytes` bytes that it has read before, by the C library's comparison of
/// two halves: from the cache that holds them, or from memory.
pub fn reading(bytes: usize) -> f64 {
    let half = (bytes / 2).max(64);
    let halves = [0, 1].map(|_| vec![1u8; half]);
    half as f64 * 2.0 / best(|| assert!(black_box(&halves[0]) == black_box(&halves[1])))
}

/// Bytes per second that one thread copies within `bytes` bytes.
pub fn copying(bytes: usize) -> f64 {
    let from = vec![1u8; (bytes / 2).max(64)];
    let mut to = from.clone();
    from.len() as f64 / best(|| black_box(&mut to).copy_from_slice(black_box(&from)))
}

/// Seconds of the fastest of many runs.
fn best(mut run: impl FnMut()) -> f64 {
    let mut repeats = 1u32;
    loop {
        let begun = Instant::now();
        (0..repeats).for_each(|_| run());
        if begun.elapsed() > Duration::from_millis(5) {
            break;
        }
        repeats *= 2;
    }
    let time = |_| {
        let begun = Instant::now();
        (0..repeats).for_each(|_| run());
        begun.elapsed().as_secs_f64() / f64::from(repeats)
    };
    (0..7).map(time).fold(f64::INFINITY, f64::min)
}

/// The least time that a benchmark's work can take.
pub struct Limit {
    /// Of one pass over the benchmark's elements.
    pub seconds: f64,
    /// The work that takes it, such as `copying its 128 bytes`.
    pub work: String,
}

impl Limit {
    /// The time in which `bytes` are copied, in portions that stay in the first cache.
    pub fn copying(bytes: f64, elements: usize) -> Limit {
        const FIRST_CACHE: usize = 16 << 10;
        let work = format!("copying its {:.0} bytes", bytes / elements as f64);
        Limit { seconds: bytes / copying(FIRST_CACHE), work }
    }

    /// The time in which `bytes` are read of a table of `table` bytes.
    pub fn reading(bytes: f64, table: usize, elements: usize) -> Limit {
        let work = format!("reading its {:.0} bytes of a table of {} KB", bytes / elements as f64, table >> 10);
        Limit { seconds: bytes / reading(table), work }
    }
}

/// Runs one benchmark on the clock `now` and prints what share of its time the limit is.
pub fn bench<T>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    elements: usize,
    limit: &Limit,
    now: impl Fn() -> T,
    elapsed: impl Fn(&T) -> Duration,
    mut pass: impl FnMut(),
) {
    let fastest = Cell::new(f64::INFINITY);
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|passes| {
            let start = now();
            (0..passes).for_each(|_| pass());
            let taken = elapsed(&start);
            fastest.set(fastest.get().min(taken.as_secs_f64() / passes as f64));
            taken
        });
    });
    if fastest.get().is_finite() {
        println!(
            "{:24}limit:  {:.1} ns of {:.1} ns ({:.0}%), {}",
            "",
            1e9 * limit.seconds / elements as f64,
            1e9 * fastest.get() / elements as f64,
            100.0 * limit.seconds / fastest.get(),
            limit.work
        );
    }
}

/// [`bench`] on the wall clock.
pub fn bench_wall(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    elements: usize,
    limit: &Limit,
    pass: impl FnMut(),
) {
    bench(group, name, elements, limit, Instant::now, Instant::elapsed, pass);
}

/// Work that is compared with other work: its name, and one pass over the elements.
pub type Work<'a> = (&'a str, &'a mut dyn FnMut());

/// Rounds of [`by_turns`].
const ROUNDS: usize = 9;

/// Runs works by turns, so that whatever else the machine does slows all of them. Prints for each the elements per
/// second of processor time, of all threads together, in its fastest round, and how many times as many those of the
/// first work are, in the middle one of the rounds' ratios. A filter among the program's arguments that `group` does
/// not contain leaves them out.
pub fn by_turns(group: &str, elements: usize, works: &mut [Work<'_>]) {
    let mut filters = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    if filters.next().is_some_and(|filter| !group.contains(&filter)) {
        return;
    }
    let mut rounds = vec![Vec::with_capacity(ROUNDS); works.len()];
    for round in 0..=ROUNDS {
        for ((_, work), seconds) in works.iter_mut().zip(&mut rounds) {
            let begun = ProcessTime::now();
            work();
            // The first round warms up.
            if round > 0 {
                seconds.push(begun.elapsed().as_secs_f64());
            }
        }
    }
    println!("{group}: {elements} elements, {ROUNDS} rounds by turns");
    for ((name, _), seconds) in works.iter().zip(&rounds) {
        let fastest = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let mut ratios: Vec<f64> = seconds.iter().zip(&rounds[0]).map(|(seconds, first)| seconds / first).collect();
        ratios.sort_by(f64::total_cmp);
        let rate = elements as f64 / fastest / 1e6;
        println!(
            "{:24}{name}: {rate:.2} million per second of a core, the first has {:.2} times as many",
            "",
            ratios[ROUNDS / 2]
        );
    }
}
