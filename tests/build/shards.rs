//! A build in shards and their merge give what one build gives; other shards are refused.

use std::fs;
use std::path::{Path, PathBuf};

use fsbench::data::{Method, Speed, Split};
use fsbench::pipeline::build::{
    Balance, BalanceBy, Dedup, Filter, GameSplit, MergeJob, PerGame, ShardJob, build_shard, merge_shards,
};
use fsbench::pipeline::convert::{ConvertJob, ConvertOptions, convert};
use fsbench::pipeline::{BuildJob, BuildOptions, Manifest, WeightedInput, build, manifest_path};
use fsbench::units::{Seed, Shard};
use proptest::prelude::*;
use tempfile::TempDir;

use super::common::content_as;
use super::{engines, everything, fsbench, games};

/// Five inputs: PGN plain and compressed, with broken games and repeated ones, a binpack in other units, and a `.fsd`
/// file.
struct Inputs {
    folder: TempDir,
    inputs: Vec<WeightedInput>,
}

impl Inputs {
    fn new() -> Inputs {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let text = games(30);
        let (first, rest) = text.split_at(text.match_indices("[Event").nth(12).unwrap().0);
        fs::write(path("a.pgn"), format!("{first}[Event \"broken\"]\n\n1. e4 e5 2. Ke3 *\n\n")).unwrap();
        fs::write(path("b.pgn.zst"), zstd::encode_all(rest.as_bytes(), 3).unwrap()).unwrap();
        fs::write(path("c.pgn"), &text[..text.len() / 3]).unwrap();
        for name in ["d.binpack", "e.fsd"] {
            let options = ConvertOptions { unknown_is_draw: true, ..ConvertOptions::default() };
            let job = ConvertJob { output: &path(name), options: &options, command: &[] };
            convert(&path("a.pgn"), &job, &mut |_| {}).unwrap();
        }
        let weights = [("a.pgn", 1.0), ("b.pgn.zst", 0.5), ("c.pgn", 2.5), ("d.binpack", 1.0), ("e.fsd", 0.75)];
        let input = |(name, weight): (&str, f64)| WeightedInput { weight, ..WeightedInput::file(&path(name)) };
        Inputs { inputs: weights.map(input).to_vec(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Runs `work` with so many threads.
fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// The manifest, without the command.
fn manifest(fsd: &Path) -> Manifest {
    let manifest = content_as(&fs::read(manifest_path(fsd)).unwrap());
    Manifest { command: Vec::new(), ..manifest }
}

fn options() -> impl Strategy<Value = BuildOptions> {
    let eval = prop::bool::ANY;
    let game = (prop::option::of(1u32..20), prop::bool::ANY, 0u16..30, prop::option::of(40u16..80), prop::bool::ANY);
    let position = (prop::bool::ANY, prop::option::of(0.01..0.5), prop::option::of(100u16..900), prop::bool::ANY);
    let all = (0u8..3, 0u8..3, prop::option::of(1u64..2000), prop::bool::ANY, 0u8..3, 0u64..100);
    (eval, game, position, all).prop_map(|(eval, game, position, all)| {
        let (per_game, rated, min_ply, max_ply, blitz) = game;
        let (quiet, min_moves_quantile, max_score, skip_unlikely) = position;
        let (dedup, balance, samples, shuffle, split, seed) = all;
        let side = |split| GameSplit { split, validation: 0.3, seed: Seed(seed / 2) };
        BuildOptions {
            seed: Seed(seed),
            per_game: per_game.map_or(PerGame::All, PerGame::AtMost),
            min_rating: rated.then_some(2050),
            speeds: if blitz { vec![Speed::Blitz, Speed::Rapid] } else { Vec::new() },
            min_ply,
            max_ply,
            filter: if quiet { Filter::Quiet } else { Filter::None },
            min_moves_quantile,
            max_score,
            skip_unlikely,
            dedup: [None, Some(Dedup::Position), Some(Dedup::Move)][usize::from(dedup)],
            balance: [None, Some(BalanceBy::Ply), Some(BalanceBy::Pieces)][usize::from(balance)]
                .map(|by| Balance { by, weights: None }),
            samples,
            shuffle,
            split: [None, Some(side(Split::Train)), Some(side(Split::Validation))][usize::from(split)],
            ..BuildOptions::new(if eval { Method::Eval } else { Method::Pqr })
        }
    })
}

/// Builds all shards into `folder`, and returns their files.
fn shards(inputs: &Inputs, options: &BuildOptions, of: u32) -> Vec<PathBuf> {
    let build = |index| {
        let output = inputs.path(&format!("{index}.shard"));
        let shard = Shard { index, of };
        let job = ShardJob { inputs: &inputs.inputs, output: &output, options, shard, scores_later: false };
        build_shard(&job, &mut |_| {}).unwrap();
        output
    };
    (0..of).map(build).collect()
}

#[test]
fn merged_shards_are_what_one_build_makes() {
    let inputs = Inputs::new();
    let config = ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() };
    let mut kept = 0;
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(prop::test_runner::RngAlgorithm::ChaCha),
    );
    let mut compare = |options: BuildOptions, of: u32, threads: [usize; 3]| {
        let one = inputs.path("one.fsd");
        let merged = inputs.path("merged.fsd");
        let job = BuildJob::new(&inputs.inputs, &one, &options);
        let built = with_threads(threads[0], || build(&job, &mut |_| {}));
        let mut files = with_threads(threads[1], || shards(&inputs, &options, of));
        files.rotate_left(1);
        let job = MergeJob { shards: &files, output: &merged, labels: None, command: &["other".into()] };
        let found = with_threads(threads[2], || merge_shards(&job, &mut |_| {}));
        match (built, found) {
            (Ok(_), Ok(_)) => {
                prop_assert!(fs::read(&one).unwrap() == fs::read(&merged).unwrap(), "other samples");
                prop_assert_eq!(manifest(&one), manifest(&merged));
                kept += 1;
            }
            // Too few samples are left.
            (Err(built), Err(merged)) => prop_assert_eq!(built.to_string(), merged.to_string()),
            (built, merged) => prop_assert!(false, "{:?} but {:?}", built.map(drop), merged.map(drop)),
        }
        Ok(())
    };
    let strategy = (options(), 1u32..=5, prop::array::uniform3(1usize..4));
    // `run` wants a closure without state.
    let compare = std::cell::RefCell::new(&mut compare);
    runner.run(&strategy, |(options, of, threads)| (compare.borrow_mut())(options, of, threads)).unwrap();
    assert!(kept > 50, "only {kept} of 100 builds kept samples");
}

/// The message with which a merge is refused.
fn refusal(inputs: &Inputs, files: &[&str]) -> String {
    let paths: Vec<PathBuf> = files.iter().map(|name| inputs.path(name)).collect();
    let job = MergeJob { shards: &paths, output: &inputs.path("x.fsd"), labels: None, command: &[] };
    let error = merge_shards(&job, &mut |_| {}).map(drop).unwrap_err();
    assert!(error.is_request(), "{error}");
    assert!(!inputs.path("x.fsd").exists());
    error.to_string()
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let mut inputs = Inputs::new();
    let copy = |inputs: &Inputs, from: &str, to: &str| fs::copy(inputs.path(from), inputs.path(to)).unwrap();
    shards(&inputs, &BuildOptions { seed: Seed(1), ..everything() }, 3);
    copy(&inputs, "1.shard", "seed.shard");
    inputs.inputs[3].weight = 0.5;
    shards(&inputs, &everything(), 3);
    copy(&inputs, "1.shard", "weight.shard");
    inputs.inputs[3].weight = 1.0;
    shards(&inputs, &everything(), 2);
    copy(&inputs, "1.shard", "half.shard");
    let a = inputs.inputs.remove(0);
    shards(&inputs, &everything(), 3);
    copy(&inputs, "1.shard", "fewer.shard");
    inputs.inputs.insert(0, a);
    shards(&inputs, &everything(), 3);
    copy(&inputs, "1.shard", "again.shard");
    let check = |files: &[&str], expected: &[&str]| {
        let message = refusal(&inputs, files);
        assert!(expected.iter().all(|part| message.contains(part)), "{files:?}: {message}");
    };
    check(
        &["0.shard", "seed.shard", "2.shard"],
        &["seed.shard belongs to another build than", "options.seed is 1, not 0"],
    );
    check(&["0.shard", "weight.shard", "2.shard"], &["weight.shard belongs", "input 4 has weight 0.5, not 1.0"]);
    check(&["0.shard", "half.shard"], &["half.shard belongs", "one of 2 shards, not of 3"]);
    check(&["0.shard", "fewer.shard"], &["fewer.shard belongs", "4 inputs, not 5"]);
    check(&["2.shard", "1.shard", "0.shard", "again.shard"], &["are both shard 1/3", "1.shard", "again.shard"]);
    check(&["2.shard", "0.shard"], &["shard 1/3 is missing", "b.pgn.zst", "e.fsd", "--shard 1/3", "2.shard"]);
    check(&["0.shard", "a.pgn", "2.shard"], &["a.pgn is not a shard", "--shard I/N"]);
    check(&[], &["no shard"]);
    let merge = |arguments: &[&str]| {
        let output = fsbench(
            &[&["dataset", "merge", "0.shard", "1.shard", "2.shard", "--out", "y.fsd"], arguments].concat(),
            inputs.folder.path(),
            b"",
        );
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, message) = merge(&["--engine", "none", "--depth", "3"]);
    assert!(status == Some(2) && message.contains("leave out --engine"), "{message}");
    assert_eq!(merge(&[]).0, Some(0));
    let built = fsbench(&["dataset", "info", "0.shard"], inputs.folder.path(), b"");
    assert!(String::from_utf8_lossy(&built.stderr).contains("dataset merge"));
}

/// A shard with any bit flipped, or cut off anywhere, is refused.
#[test]
fn damaged_shards_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.pgn"), games(2)).unwrap();
    let inputs = Inputs { inputs: vec![WeightedInput::file(&folder.path().join("a.pgn"))], folder };
    let options = BuildOptions { min_ply: 60, ..everything() };
    shards(&inputs, &options, 1);
    let whole = fs::read(inputs.path("0.shard")).unwrap();
    let check = |bytes: &[u8], what: &str| {
        fs::write(inputs.path("0.shard"), bytes).unwrap();
        let message = refusal(&inputs, &["0.shard"]);
        assert!(
            message.contains("0.shard is damaged") || message.contains("0.shard is not a shard"),
            "{what}: {message}"
        );
    };
    for bit in (0..8 * whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        check(&bytes, &format!("bit {bit}"));
    }
    for length in (0..whole.len()).step_by(11) {
        check(&whole[..length], &format!("{length} bytes"));
    }
    check(&[&whole[..], b"x"].concat(), "a byte more");
}

/// On the command line, with an engine that scores the merged samples.
#[cfg(unix)]
#[test]
fn an_engine_scores_merged_shards() {
    let folder = tempfile::tempdir().unwrap();
    let answer = r#"set -- $fen; echo "info depth 1 score cp $(($5 * 7))"; echo "bestmove e2e3""#;
    engines::Script::new(answer).write(&folder.path().join("engine"));
    for (name, from) in [("a.pgn", 1), ("b.pgn", 9), ("c.pgn", 2)] {
        let game = format!("[FEN \"7k/8/8/8/8/8/4P3/K7 w - - {from} 1\"]\n\n1. Kb1 Kg8 2. Ka1 Kh8 3. Kb1 Kg8 1-0\n\n");
        fs::write(folder.path().join(name), game).unwrap();
    }
    let run = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = fsbench(&arguments, folder.path(), b"");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let engine = "--engine ./engine --nodes 1";
    let build =
        format!("dataset build a.pgn b.pgn c.pgn --method eval --min-ply 1 --per-game 3 --shuffle --seed 3 {engine}");
    assert_eq!(run(&format!("{build} --out one.fsd")), (Some(0), String::new()));
    for index in 0..2 {
        assert_eq!(run(&format!("{build} --shard {index}/2 --out {index}.shard")).0, Some(0));
    }
    let (status, message) = run("dataset merge 1.shard 0.shard --out merged.fsd");
    assert!(status == Some(2) && message.contains("give --engine"), "{message}");
    assert_eq!(run(&format!("dataset merge 1.shard 0.shard --out merged.fsd {engine}")), (Some(0), String::new()));
    let path = |name: &str| folder.path().join(name);
    assert!(fs::read(path("one.fsd")).unwrap() == fs::read(path("merged.fsd")).unwrap());
    assert_eq!(manifest(&path("one.fsd")), manifest(&path("merged.fsd")));
}
