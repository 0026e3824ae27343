//! Games that begin with the openings of a book.

use super::*;

/// Moves the white rook and the black king to and fro in any position of the books below.
const ROOK: &str = r#"set -- $moves
    case $fen in *" w "*) n=$(($# % 4));; *) n=$((($# + 1) % 4));; esac
    case $n in 0) m=a1b1;; 1) m=h8g8;; 2) m=b1a1;; *) m=g8h8;; esac
    echo "info score cp $((100 + $#))"; echo "bestmove $m""#;

const BOOK: &str = "# three endings\n7k/8/8/8/8/8/P7/R3K3 w - - 0 1\n\n7k/8/8/8/8/8/1P6/R3K3 w - - hmvc 4; fmvn 20;\n\
    7k/8/8/8/8/8/2P5/1R2K3 b - - 6 30\n";

#[test]
fn games_begin_with_the_openings_of_a_book() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    engine(path, ROOK);
    fs::write(path.join("b.epd"), BOOK).unwrap();
    fs::write(path.join("b.epd.zst"), zstd::encode_all(BOOK.as_bytes(), 3).unwrap()).unwrap();
    let starts = |arguments: &str| -> Vec<u32> {
        let arguments = format!("--engine ./engine --nodes 5 --games 6 --force --out g.pgn {arguments}");
        check(&run(path, &arguments), 0, "");
        let games = read(path, "g.pgn");
        assert!(games.iter().all(|game| game.moves.len() == 8), "{games:?}");
        games.iter().map(|game| game.start.fullmoves().get() * 2 - u32::from(game.start.turn().is_white())).collect()
    };
    assert_eq!(starts("--book b.epd --book-order sequential"), [1, 39, 60, 1, 39, 60]);
    let text = fs::read_to_string(path.join("g.pgn")).unwrap();
    let expected = "[Round \"3\"]\n[Result \"1/2-1/2\"]\n[SetUp \"1\"]\n\
        [FEN \"7k/8/8/8/8/8/2P5/1R2K3 b - - 6 30\"]\n\n{ [%eval -1.00] } 30... Kg8 { [%eval 1.01] } 31. Ra1";
    assert!(text.contains(expected), "{text}");
    // Read back, every position has its score, the first ones too.
    let info = ["dataset", "info", "g.pgn", "--format", "json"];
    let info = Command::new(env!("CARGO_BIN_EXE_fsbench")).args(info).current_dir(path).output().unwrap();
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!((&info["samples"], &info["with_score"]), (&48.into(), &48.into()));
    let shuffled = starts("--book b.epd --seed 3");
    assert_eq!(shuffled, starts("--book b.epd.zst --seed 3 --concurrency 2"));
    for pass in shuffled.chunks(3) {
        let mut pass = pass.to_vec();
        pass.sort_unstable();
        assert_eq!(pass, [1, 39, 60]);
    }
}

#[test]
fn games_of_a_book_are_cut_and_continued() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    // Pawns move after the second game's opening, and at the end of the third.
    let pawns = "case $moves in f2f3*) m=a7a6;; *a2a3*) m=h2h3;; *) m=;; esac";
    engine(path, &format!("{pawns}; if [ $m ]; then echo info score cp 1; echo bestmove $m; else {SHUFFLE}; fi"));
    let book = "[Event \"a\"]\n\n1. Nf3 Nf6 2. Ng1 Ng8 *\n\n[Event \"b\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n\
        [Event \"c\"]\n\n1. Nf3 Nf6 2. Ng1 h6 3. a3 Ng8 *\n";
    fs::write(path.join("b.pgn"), book).unwrap();
    let arguments = "--engine ./engine --nodes 5 --games 2 --force --out g.pgn --format json --book b.pgn";
    // Uncut, the first game repeats its start position and the second ends in mate; cut to three moves, all are
    // playable, but the third is the first one again.
    let output = run(path, &format!("{arguments} --random-plies 0 --max-plies 4 --book-plies 3"));
    check(&output, 0, "");
    let counts = |output: &Output| {
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        ["openings", "skipped", "repeated"].map(|count| summary["book"][count].as_u64().unwrap_or(0))
    };
    assert_eq!(counts(&output), [2, 1, 1]);
    let output = run(path, &format!("{arguments} --max-plies 7"));
    check(&output, 0, "");
    assert_eq!(counts(&output), [1, 2, 0]);
    let expected = "1. Nf3 Nf6 2. Ng1 h6 3. a3 Ng8 { [%eval 0.01] } 4. h3 1/2-1/2";
    let pgn = fs::read_to_string(path.join("g.pgn")).unwrap();
    assert!(pgn.contains(expected), "{pgn}");
    // Games that end with their openings have no position.
    let message = "has 6 moves, and --max-plies 6 ends a game there: cut the openings with --book-plies";
    check(&run(path, &format!("{arguments} --max-plies 6")), 2, message);
    let message = "has 3 moves and 2 random ones, and --max-plies 5 ends a game there";
    check(&run(path, &format!("{arguments} --book-plies 3 --random-plies 1..2 --max-plies 5")), 2, message);
}

/// A position in which the game is over, or would be by the fifty-move rule, is left out and counted.
#[test]
fn ended_positions_of_a_book_are_left_out() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    engine(path, ROOK);
    let ended = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1\n7k/8/8/8/8/8/P7/R3K3 w - - 100 90\n";
    fs::write(path.join("b"), format!("7k/8/8/8/8/8/P7/R3K3 w - - id \"hmvc 100;\";\n{ended}")).unwrap();
    let output = run(path, "--engine ./engine --nodes 5 --games 2 --out g.pgn --format json --book b");
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["book"]["openings"], &summary["book"]["skipped"]), (&1.into(), &2.into()));
}

#[test]
fn books_that_cannot_be_used_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    engine(path, ROOK);
    let check = |book: &str, more: &str, message: &str| {
        fs::write(path.join("b"), book).unwrap();
        let arguments = format!("--engine ./engine --nodes 5 --games 2 --out g.pgn --book b{more}");
        check(&run(path, &arguments), 2, message);
    };
    check("7k/8/8/8/8/8/P7/R3K3 w - -\n7k/8/8/8/8/8/P7/R3K3 w\n", "", "the book b, line 2: it lacks the four fields");
    check("7k/6Q1/6K1/8/8/8/8/8 b - -\n", "", "it holds no playable opening (1 were skipped)");
    check("8/8/8/8/8/8/8/8 b - -\n", "", "empty board");
    check("# nothing\n", "", "it holds no playable opening");
    check("7k/8/8/8/8/8/P7/R3K3 w - -\n", " --book-plies 3", "leave the number of plies out");
    check("[Event \"x\"]\n\n1. e4 e4 *\n", "", "it holds no playable opening (1 were skipped)");
    check("banana\n", "", "it holds no playable opening");
    fs::remove_file(path.join("b")).unwrap();
    let output = run(path, "--engine ./engine --nodes 5 --games 2 --out g.pgn --book b");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read b"));
}
