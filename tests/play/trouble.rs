//! Matches with engines that fail or answer oddly.

use super::*;

/// An engine that makes one move from any position of [`quiet_book`], and then runs `trouble`; a file `broken` ends it.
fn troubled(folder: &Path, name: &str, trouble: &str) {
    let plays = format!(
        "[ -e broken ] && exit 9; set -- $moves; case $# in 0) m=g1f3;; 1) m=g8f6;; *) m=;; esac; \
         if [ -n \"$m\" ]; then echo info depth 1 score cp 0; echo bestmove $m; else {trouble}; fi"
    );
    Script::new(&plays).write(&folder.join(name));
}

/// Replaces the book by 35 openings: the initial position without a pawn of each side. No first move is a check.
fn quiet_book(folder: &Path) {
    let black = ["1ppppppp", "p1pppppp", "pp1ppppp", "pppppp1p", "ppppppp1"];
    let fens = black.iter().flat_map(|black| {
        [0, 1, 2, 4, 5, 6, 7].into_iter().map(move |file| {
            let white = format!("{}1{}", "P".repeat(file), "P".repeat(7 - file));
            format!("rnbqkbnr/{black}/8/8/8/8/{white}/RNBQKBNR w KQkq - 0 30\n")
        })
    });
    fs::write(folder.join("book.epd"), fens.collect::<String>()).unwrap();
}

/// An odd answer costs the game in which it was given, with the reason in PGN, journal and document; the match goes on.
#[test]
fn an_odd_answer_forfeits_its_game() {
    let folder = bench();
    quiet_book(folder.path());
    let check = |trouble: &str, reason: &str, tag: &str, message: &str| {
        troubled(folder.path(), "odd", trouble);
        let out = folder.path().join("odd-games");
        let arguments =
            "a.safetensors uci:./odd --nodes 20 --pairs 2 --hash 1 --patience 5 --concurrency 2 --out odd-games";
        let document = json(folder.path(), arguments);
        assert_eq!((&document["games"]["wins"], &document["games"]["losses"]), (&4.into(), &0.into()), "{trouble}");
        assert_eq!(document["players"][0]["forfeits"], serde_json::json!({}));
        assert_eq!(document["players"][1]["forfeits"], serde_json::json!({ reason: 4 }), "{trouble}");
        let forfeits = serde_json::json!({ "termination": "forfeit", "games": 4 });
        assert!(document["terminations"].as_array().unwrap().contains(&forfeits), "{document}");
        let pgn = fs::read_to_string(out.join("games.pgn")).unwrap();
        assert_eq!(pgn.matches(&format!("[Termination \"{tag}\"]")).count(), 4, "{pgn}");
        assert_eq!(pgn.matches(&format!("{{odd forfeits the game: it {message}")).count(), 4, "{pgn}");
        // Forfeits stay in the journal: the same command only counts them.
        let broken = folder.path().join("broken");
        fs::write(&broken, "").unwrap();
        let mut again = json(folder.path(), arguments);
        assert_eq!((&document["resumed"], &again["resumed"]), (&0.into(), &4.into()));
        again["resumed"] = 0.into();
        again["players"] = document["players"].clone();
        assert_eq!(again, document);
        let text = String::from_utf8(run(folder.path(), arguments).stdout).unwrap();
        assert!(text.contains("odd lost 4 games by forfeit: "), "{text}");
        assert!(text.contains("4 games were played before, by an interrupted match or its shards"), "{text}");
        fs::remove_file(broken).unwrap();
        fs::remove_dir_all(out).unwrap();
    };
    let illegal = "answered \"bestmove h8a7\": that move is illegal}";
    check("echo bestmove h8a7", "nonsense", "rules infraction", illegal);
    check(
        "echo 'bestmove (none)'",
        "nonsense",
        "rules infraction",
        "answered \"bestmove (none)\": that is not a move}",
    );
    check("echo bestmove 0000", "nonsense", "rules infraction", "answered \"bestmove 0000\": that move is illegal}");
    check("echo bestmove NULL", "nonsense", "rules infraction", "answered \"bestmove NULL\": that is not a move}");
    check("exit 3", "ended", "abandoned", "ended (exit status: 3)}");
    check("echo '{no memory}' >&2; exit 3", "ended", "abandoned", "ended (exit status: 3): no memory}");
    check(":", "silent", "abandoned", "gave no answer within 5 s}");
}

/// A program that was built again is another engine: the games of the old one are not taken for its own.
#[test]
fn a_program_that_has_changed_is_another_engine() {
    let folder = bench();
    let path = folder.path();
    quiet_book(path);
    let arguments = "a.safetensors uci:./odd --nodes 20 --pairs 1 --hash 1 --out games";
    troubled(path, "odd", "exit 3");
    json(path, arguments);
    troubled(path, "odd", "exit 4");
    let changed = "(about.players.1.engine.engine.program: the program's file has changed)";
    refused(path, arguments, 2, changed);
    troubled(path, "odd", "exit 3");
    assert_eq!(json(path, arguments)["resumed"], 2);
}

/// Only where time limits the moves, the overhead is one of a match's settings.
#[test]
fn games_with_another_overhead_are_not_mixed() {
    let folder = bench();
    let with = |limit: &str, overhead: u32| {
        format!("a.safetensors b.safetensors {limit} --pairs 1 --hash 1 --out {} --overhead {overhead}", &limit[2..5])
    };
    json(folder.path(), &with("--movetime 12", 10));
    let message = "about.overhead_ms was 10, is now 11";
    refused(folder.path(), &with("--movetime 12", 11), 2, message);
    json(folder.path(), &with("--nodes 20", 10));
    assert_eq!(json(folder.path(), &with("--nodes 20", 11))["resumed"], 2);
}

/// A match for large hash tables between two sets that are trained before.
#[cfg(target_os = "linux")]
const LARGE: &str = r#"
name = "large"
data = "games.pgn"
seeds = [1]
[train]
l1 = 8
hidden = [4]
batch_size = 16
epochs = 1
learning_rate = 0.01
decay = 0.5
validation = 0.2
[[runs]]
method = "pqr"
sets = ["piece", "compact"]
[match]
nodes = 20
pairs = 1
hash = 65536
"#;

/// A table that the system has no memory for ends no command without a word.
#[cfg(target_os = "linux")]
#[test]
fn a_hash_table_beyond_the_memory_is_refused() {
    let folder = bench();
    let run = |arguments: &str| {
        let script = format!("ulimit -v 16000000; exec '{PROGRAM}' {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(folder.path()).env("FSBENCH_CACHE", folder.path().join("cache"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), out, error)
    };
    let told = "there is no memory for a hash table of 65536 MiB: take a smaller one";
    let players = "a.safetensors b.safetensors --openings book.epd --pairs 1 --concurrency 1 --hash 65536";
    for limit in ["--nodes 20", "--equal-cost 20"] {
        let (code, _, error) = run(&format!("match {players} {limit}"));
        assert!(code == Some(2) && error.contains(told), "{code:?} {error}");
    }
    let generate = "dataset generate --engine a.safetensors --nodes 20 --games 1 --out g.pgn --hash";
    let (code, _, error) = run(&format!("{generate} 65536"));
    assert!(code == Some(2) && error.contains(told), "{code:?} {error}");
    let (code, _, error) = run(&format!("{generate} 65537"));
    assert!(code == Some(2) && error.contains("1..=65536"), "{code:?} {error}");
    let (code, _, error) = run("bench --net a.safetensors --depth 1 --hash 65536");
    assert!(code == Some(2) && error.contains(told), "{code:?} {error}");
    // An experiment ends before its trainings.
    fs::write(folder.path().join("games.pgn"), "1. e4 e5 2. Nf3 Nc6 1-0\n").unwrap();
    fs::write(folder.path().join("large.toml"), LARGE).unwrap();
    let (code, _, error) = run("run large.toml");
    assert!(code == Some(2) && error.contains(&format!("large.toml:19:8: {told}")), "{code:?} {error}");
    assert!(!error.contains("training"), "{error}");
    // The engine keeps the table that it has.
    let (code, out, _) = run("uci --net a.safetensors 'setoption name Hash value 65536' 'go depth 2'");
    assert!(out.contains(&format!("info string error: {told}\n")), "{out}");
    assert!(code == Some(2) && out.contains("\nbestmove ") && !out.contains("(none)"), "{code:?} {out}");
}

/// Won by White at the first move: games of one ply.
const MATES: &str = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1\n6k1/5ppp/8/8/8/8/5PPP/1R4K1 w - - 0 1\n\
    6k1/5ppp/8/8/8/8/5PPP/2R3K1 w - - 0 1\n6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1\n";

/// An engine that fails in its first search of all, and then works.
#[test]
fn an_engine_that_fails_once_loses_one_game() {
    let folder = bench();
    fs::write(folder.path().join("book.epd"), MATES).unwrap();
    let mates = r#"[ -e once ] || { echo x > once; exit 3; }
        set -- $fen; rook=${1##*/}; case $rook in R*) m=a;; 1*) m=b;; 2*) m=c;; *) m=d;; esac
        echo "info score mate 1"; echo "bestmove ${m}1${m}8""#;
    Script::new(mates).write(&folder.path().join("once-bad"));
    let arguments = "uci:./once-bad a.safetensors --nodes 60 --pairs 4 --hash 1 --concurrency 1 --out games";
    let document = json(folder.path(), arguments);
    assert_eq!(document["players"][0]["forfeits"], serde_json::json!({ "ended": 1 }));
    assert_eq!((&document["games"]["wins"], &document["games"]["losses"]), (&3.into(), &5.into()), "{document}");
    let pgn = fs::read_to_string(folder.path().join("games/games.pgn")).unwrap();
    assert!(pgn.contains("\n\n{once-bad forfeits the game: it ended (exit status: 3)} 0-1\n"), "{pgn}");
}

/// An engine that never makes a move ends the match, and its forfeits are not kept as results.
#[test]
fn an_engine_that_never_works_ends_the_match() {
    let folder = bench();
    let path = folder.path();
    quiet_book(path);
    let arguments = "a.safetensors uci:./bad --nodes 20 --pairs 20 --hash 1 --concurrency 1 --out games";
    Script::new("exit 3").write(&path.join("bad"));
    refused(path, arguments, 1, "it lost 8 games in a row by forfeit; these games are not kept");
    let journal = || fs::read_to_string(path.join("games/games.journal")).unwrap();
    assert_eq!(journal().lines().count(), 1, "the head only");
    // One that makes moves is given more games; a journal without games is begun again for it.
    troubled(path, "bad", "echo bestmove");
    refused(path, arguments, 1, "it lost 32 games in a row by forfeit; these games are not kept");
    assert_eq!(journal().lines().count(), 1, "the head only");
    let few = arguments.replace("--pairs 20", "--pairs 2");
    json(path, &few);
    assert_eq!(journal().lines().count(), 5);
    // Its handshake.
    Script { on_uci: "exit 4", ..Script::new(":") }.write(&path.join("bad"));
    refused(path, arguments, 1, "the engine ./bad ended while starting (exit status: 4)");
}

/// ^C reaches the engines, too: they end, and that is no forfeit.
#[test]
fn an_interrupted_match_has_no_forfeits() {
    let folder = bench();
    let path = folder.path();
    let plays = format!(
        "echo x >> searches; sleep 0.05; {PROGRAM} uci --net b.safetensors \
         \"position fen $fen${{moves:+ moves $moves}}\" 'go nodes 20'"
    );
    Script::new(&plays).write(&path.join("slow"));
    let arguments = "a.safetensors uci:./slow --nodes 20 --pairs 100 --hash 1 --concurrency 2 --out games";
    for _ in 0..3 {
        let _ = fs::remove_file(path.join("searches"));
        let mut command = command(path, arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(path.join("searches")).unwrap_or_default().is_empty() {
            assert!(Instant::now() < deadline, "no search began");
            std::thread::sleep(Duration::from_millis(5));
        }
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
                panic!("it goes on: are these tests run with SIGINT ignored, as by nohup?");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{text}");
        assert!(text.contains("interrupted; games keeps the finished games"), "{text}");
        let journal = fs::read_to_string(path.join("games/games.journal")).unwrap();
        assert!(!journal.contains("forfeit"), "{journal}");
    }
}
