//! Games that networks play in this process.

use super::*;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fsbench");

/// Short games of short searches.
const SHORT: &str = "--nodes 40 --max-plies 40 --seed 3 --force";

/// A folder with the network `net.safetensors`.
fn with_network() -> TempDir {
    let folder = TempDir::new().unwrap();
    network(&folder.path().join("net.safetensors"), 3);
    folder
}

fn network(path: &Path, seed: u64) {
    let set = FeatureSet::shipped("piece").unwrap();
    let net = quantise(&common::random_net(set.num_features(), 16, &[8], seed), &Scheme::stockfish()).unwrap();
    NetFile { origin: Origin::of(&set), net }.save(path).unwrap();
}

fn summary(output: &Output) -> serde_json::Value {
    check(output, 0, "");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn bytes(folder: &Path, arguments: &str, name: &str) -> Vec<u8> {
    check(&run(folder, &format!("{arguments} --out {name}")), 0, "");
    fs::read(folder.join(name)).unwrap()
}

#[test]
fn networks_play_the_same_games_in_process_and_through_uci() {
    let folder = with_network();
    let path = folder.path();
    let direct = format!("--engine net.safetensors {SHORT} --games 5");
    for name in ["g.pgn", "g.pgn.zst", "g.binpack", "g.vf", "g.fsd"] {
        let one = bytes(path, &format!("{direct} --concurrency 1"), name);
        assert_eq!(one, bytes(path, &format!("{direct} --concurrency 3"), name), "{name}");
    }
    let manifest = Manifest::of(&Fsd::open(&path.join("g.fsd")).unwrap()).unwrap();
    let hash = NetFile::load(&path.join("net.safetensors")).unwrap().hash();
    let manifest = serde_json::to_value(&manifest.generated.unwrap().engines).unwrap();
    assert_eq!(manifest[0]["network"], hash.as_str());
    let compare = |limit: &str, option: &str| {
        let limit = format!("{} --games 5", SHORT.replace("--nodes", limit));
        bytes(path, &format!("--engine net.safetensors {limit}"), "inside.fsd");
        let mut command = Command::new(PROGRAM);
        let engine = format!("uci:{PROGRAM} uci --net net.safetensors|SoftNodes={option}");
        command.args(["dataset", "generate", "--engine", &engine, "--out", "outside.fsd"]);
        let limit = limit.replace("--soft-nodes", "--nodes");
        check(&command.args(limit.split(' ')).current_dir(path).output().unwrap(), 0, "");
        assert_eq!(samples(&path.join("inside.fsd")), samples(&path.join("outside.fsd")), "{limit}");
        samples(&path.join("inside.fsd"))
    };
    assert_ne!(compare("--nodes", "false"), compare("--soft-nodes", "true"));
}

#[test]
fn a_number_of_positions_ends_with_the_game_that_reaches_it() {
    let folder = with_network();
    let path = folder.path();
    let arguments = format!("--engine net.safetensors {SHORT} --format json");
    let by_positions = format!("{arguments} --positions 120");
    let output = run(path, &format!("{by_positions} --concurrency 1 --out p.binpack"));
    let document = summary(&output);
    let positions = document["positions"].as_u64().unwrap();
    let phases = ["opening", "middlegame", "endgame"].map(|phase| document["phases"][phase].as_u64().unwrap());
    assert_eq!((phases.iter().sum::<u64>(), document["samples"].as_u64()), (positions, Some(positions)));
    assert!(document["speed"]["nodes"].as_u64().unwrap() >= positions, "{document}");
    let one = fs::read(path.join("p.binpack")).unwrap();
    assert_eq!(one, bytes(path, &format!("{by_positions} --concurrency 4"), "p.binpack"));
    assert!(!path.join("p.binpack.journal").exists());
    // One game fewer has too few positions, and so many games are the same file.
    let games = document["games"].as_u64().unwrap();
    assert_eq!(one, bytes(path, &format!("{arguments} --games {games}"), "p.binpack"));
    let output = run(path, &format!("{arguments} --games {} --out p.binpack", games - 1));
    assert!(positions >= 120 && summary(&output)["positions"].as_u64().unwrap() < 120, "{document}");
}

/// Openings beyond the bound are dropped, counted by name, and not among the samples.
#[test]
fn unequal_openings_are_dropped() {
    let folder = with_network();
    let path = folder.path();
    let arguments = format!("--engine net.safetensors {SHORT} --games 12 --format json");
    let of = |bound: u16| {
        let output = run(path, &format!("{arguments} --opening-bound {bound} --out b.fsd"));
        let document = summary(&output);
        let number = |name: &str| document[name].as_u64().unwrap_or(0);
        (number("games"), number("dropped_openings"), samples(&path.join("b.fsd")))
    };
    let (games, dropped, all) = of(30_000);
    assert_eq!((games, dropped), (12, 0));
    let first_scores: BTreeMap<u32, u16> =
        all.iter().rev().map(|((game, _), record)| (*game, record.score().unwrap().unsigned_abs())).collect();
    let mut scores: Vec<u16> = first_scores.values().copied().collect();
    scores.sort_unstable();
    let bound = scores[7];
    let within = scores.iter().filter(|score| **score <= bound).count() as u64;
    let (games, dropped, kept) = of(bound);
    assert_eq!((games, dropped), (within, 12 - within));
    let expected: BTreeMap<_, _> = all.into_iter().filter(|((game, _), _)| first_scores[game] <= bound).collect();
    assert_eq!(kept, expected);
    let manifest = Manifest::of(&Fsd::open(&path.join("b.fsd")).unwrap()).unwrap();
    assert_eq!((manifest.games, manifest.games_used()), (12, within));
    let lopsided = "7k/8/8/8/8/8/PPP5/QQQ4K w - - 0 1\n";
    fs::write(path.join("lost.epd"), lopsided).unwrap();
    let lost = "--engine net.safetensors --nodes 1 --book lost.epd --opening-bound 1 --out c.binpack";
    check(&run(path, &format!("{lost} --games 3")), 2, "3 games were dropped, as their openings lie beyond");
    let pgn = lost.replace("c.binpack", "c.pgn.zst");
    check(&run(path, &format!("{pgn} --games 3")), 2, "3 games were dropped, as their openings lie beyond");
    assert!(!path.join("c.pgn.zst").exists());
    fs::remove_file(path.join("c.binpack.journal")).unwrap();
    check(&run(path, &format!("{lost} --positions 3")), 2, "none of the first 1000 games has a position to keep");
}

#[test]
fn games_of_chess960_begin_with_random_moves() {
    let folder = with_network();
    let path = folder.path();
    for start in ["--chess960", "--double-chess960"] {
        bytes(path, &format!("--engine net.safetensors {SHORT} --games 4 {start}"), "g.pgn");
        let pgn = fs::read_to_string(path.join("g.pgn")).unwrap();
        // Castling may be as in standard chess.
        assert!(pgn.matches("[Variant \"Chess960\"]").count() >= 3, "{pgn}");
        let random = |game: &PgnGame| game.moves.iter().take_while(|played| played.eval.is_none()).count();
        // The last random move has the score of the first search.
        assert!(read(path, "g.pgn").iter().all(|game| (7..=8).contains(&random(game))), "{pgn}");
    }
}

#[test]
fn engines_and_networks_are_told_apart() {
    let folder = with_network();
    let path = folder.path();
    engine(path, SHUFFLE);
    fs::create_dir(path.join("run")).unwrap();
    fs::copy(path.join("net.safetensors"), path.join("run/best.safetensors")).unwrap();
    fs::write(path.join("bad.safetensors"), "nothing").unwrap();
    let plays = |engine: &str, expected: &str| {
        let output = run(path, &format!("--engine {engine} {SHORT} --games 2 --out g.pgn --random-plies 4..4"));
        check(&output, 0, "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(&format!("games by {expected}\n")), "{text}");
    };
    plays("net.safetensors", "net");
    plays("run", "run");
    // The engine knows how to move from the initial position only.
    let fixed = format!("{SHORT} --games 2 --out g.pgn --random-plies 0..0");
    for engine in ["./engine", "uci:./engine"] {
        check(&run(path, &format!("--engine {engine} {fixed}")), 0, "");
    }
    let refused = |arguments: &str, message: &str| {
        let output = run(path, &format!("{arguments} --games 2 --out x.pgn"));
        check(&output, 2, message);
        assert!(!path.join("x.pgn").exists() && !path.join("x.pgn.journal").exists());
    };
    refused("--engine none.nnue --nodes 5", "none.nnue");
    refused("--engine bad.safetensors --nodes 5", "bad.safetensors");
    refused("--engine uci:none --nodes 5", "cannot start the engine none");
    refused("--engine net.safetensors --nodes 5 --engine-option A=b", "a network has no options");
    refused("--engine ./engine --soft-nodes 5", "--soft-nodes limits networks");
    refused("--engine net.safetensors --nodes 0", "at least one node");
    refused("--engine net.safetensors --nodes 5 --genfens ./none", "cannot start the engine ./none");
    refused("--engine net.safetensors", "--nodes");
    // A network and an engine play each other.
    let pair = "--engine net.safetensors --engine uci:./engine --engine-option 2:Style=x";
    refused(&format!("{pair} --nodes 5"), "has no option \"Style\"");
}

/// Openings come from engines that know `genfens`, fsbench among them.
#[test]
fn engines_supply_openings() {
    let folder = with_network();
    let path = folder.path();
    let with = |genfens: &str, more: &str| {
        let mut command = Command::new(PROGRAM);
        let arguments = format!("dataset generate --engine net.safetensors {SHORT} --out g.pgn {more}");
        command.args(arguments.split(' ')).args(["--genfens", genfens]).current_dir(path).output().unwrap()
    };
    check(&with(&format!("{PROGRAM} uci"), "--games 4"), 0, "");
    let games = read(path, "g.pgn");
    let drawn = Command::new(PROGRAM).args(["uci", "genfens 4 seed 3 book None", "quit"]).output().unwrap();
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    let mut drawn: Vec<&str> = drawn.lines().filter_map(|line| line.strip_prefix("info string genfens ")).collect();
    let mut starts: Vec<String> = games.iter().map(|game| fsbench::chess::fen_of(&game.start)).collect();
    starts.sort_unstable();
    drawn.sort_unstable();
    assert_eq!(starts, drawn);
    let fens = |lines: &str| {
        let script = format!("#!/bin/sh\ncase \"$1\" in genfens*) {lines};; esac\n");
        fs::write(path.join("fens"), script).unwrap();
        fs::set_permissions(path.join("fens"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        with("./fens", "--games 2")
    };
    check(&fens("echo info string genfens banana"), 1, "answered \"banana\" while drawing openings");
    check(&fens("echo nothing"), 1, "ended while drawing openings by its command genfens");
    check(&with("./fens", "--positions 9"), 2, "--genfens draws an opening for each game");
    engine(path, SHUFFLE);
    check(&with("./engine", "--games 2"), 1, "./engine ended while drawing openings by its command genfens");
}

/// Killed in its games, a run goes on where it was and ends with the same file.
#[test]
fn a_killed_run_of_a_network_goes_on() {
    let folder = with_network();
    let path = folder.path();
    let arguments = format!("--engine net.safetensors {} --positions 1000", SHORT.replace("--nodes 40", "--nodes 200"));
    let whole = bytes(path, &arguments, "whole.binpack");
    let journal = path.join("k.binpack.journal");
    let is_killed = |games: usize| {
        let mut command = Command::new(PROGRAM);
        command.args(format!("dataset generate {arguments} --out k.binpack").split(' ')).current_dir(path);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if fs::read_to_string(&journal).unwrap_or_default().lines().count() > games {
                child.kill().unwrap();
                child.wait().unwrap();
                return journal.exists();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    };
    let killed = [1, 3].map(is_killed);
    let output = run(path, &format!("{arguments} --out k.binpack --format json"));
    // A machine that is busy may let a run end before it is killed.
    assert_eq!(summary(&output)["resumed"].as_u64().unwrap() > 0, killed[1], "{killed:?}");
    assert_eq!(fs::read(path.join("k.binpack")).unwrap(), whole);
    assert!(!journal.exists());
}
