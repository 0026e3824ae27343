//! Text in the forms of other programs.

use std::fs;

use bulletformat::ChessBoard;
use fsbench::data::formats::Format;
use fsbench::data::{GameResult, Record, Sample};
use serde_json::json as value;
use tempfile::TempDir;

use crate::fixture::{check, fsbench, json, read, read_all, samples, write};

const FEN: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";

/// Samples that hold everything.
fn scored(games: u32, plies: usize) -> Vec<Record> {
    samples(games, plies).into_iter().filter(|record| record.score().is_some()).collect()
}

#[test]
fn plain_holds_whole_samples() {
    let folder = TempDir::new().unwrap();
    let records = scored(40, 90);
    write(&folder.path().join("x.plain"), Format::Plain, &records);
    assert_eq!(read_all(&folder.path().join("x.plain")), records);
    // As for a binpack, scores are internal units where nothing says otherwise.
    let info = json(&["dataset", "info", "x.plain"], folder.path());
    assert_eq!((&info["format"], &info["score_unit"]), (&value!("plain"), &value!({ "internal": { "pawn": 208 } })));
    for (from, to) in [("x.plain", "x.binpack"), ("x.binpack", "y.plain")] {
        check(&fsbench(&["dataset", "convert", from, to], folder.path()), 0, "");
    }
    assert_eq!(fs::read(folder.path().join("y.plain")).unwrap(), fs::read(folder.path().join("x.plain")).unwrap());
    // What the form cannot hold is left out and counted.
    let all = samples(40, 90);
    write(&folder.path().join("all.fsd"), Format::Fsd, &all);
    let converted = json(&["dataset", "convert", "all.fsd", "all.plain"], folder.path());
    assert_eq!(converted["left_out"], value!({ "no-score": all.len() - records.len() }));
}

#[test]
fn lines_of_bullet_agree_with_bulletformat() {
    let folder = TempDir::new().unwrap();
    let records = scored(40, 90);
    let path = folder.path().join("x.txt");
    write(&path, Format::BulletText, &records);
    let without_move = |record: &Record| Record::pack(&Sample { mv: None, ..record.unpack().unwrap() }).unwrap();
    let without_moves: Vec<Record> = records.iter().map(without_move).collect();
    assert_eq!(read_all(&path), without_moves);
    write(&folder.path().join("x.bullet"), Format::Bullet, &records);
    let entries = fs::read(folder.path().join("x.bullet")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for (line, entry) in text.lines().zip(entries.as_chunks::<32>().0) {
        let theirs: ChessBoard = line.parse().unwrap();
        assert_eq!(bytes_of(&theirs), *entry, "{line}");
    }
    assert_eq!(text.lines().count(), records.len());
}

fn bytes_of(board: &ChessBoard) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&board.occ.to_le_bytes());
    bytes[8..24].copy_from_slice(&board.pcs);
    bytes[24..26].copy_from_slice(&board.score.to_le_bytes());
    bytes[26..29].copy_from_slice(&[board.result, board.ksq, board.opp_ksq]);
    bytes[29..].copy_from_slice(&board.extra);
    bytes
}

/// Every form is found by its content, and read as the side to move sees it.
#[test]
fn forms_are_found_by_their_content() {
    let folder = TempDir::new().unwrap();
    let found = |name: &str, text: &str, format: &str, score: Option<i16>| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let info = json(&["dataset", "info", name], folder.path());
        assert_eq!(info["format"], format, "{text}");
        let samples = read_all(&path);
        let record = samples.first().unwrap();
        assert_eq!((record.score(), record.result()), (score, Some(GameResult::Loss)), "{text}");
        let build = ["dataset", "build", name, "--method", "eval", "--needs", "any", "--out", "x.fsd", "--force"];
        check(&fsbench(&build, folder.path()), 0, "");
    };
    for name in ["x.txt", "x.csv", "x", "x.epd", "x.data"] {
        found(name, &format!("{FEN} | 35 | 1.0\n"), "bullet-text", Some(-35));
        found(name, &format!("{FEN} [1.0] 35\r\n"), "bullet-text", Some(-35));
        found(name, &format!("{FEN} c9 \"1-0\";\n"), "epd", None);
        found(name, &format!("{FEN} [1.0]\n"), "epd", None);
        found(name, &format!("{FEN},-35,0\n"), "c-chess-cli", Some(-35));
        found(name, &format!("FEN,Eval,Result\n{FEN},-35,0\n"), "c-chess-cli", Some(-35));
        found(name, &format!("fen {FEN}\nmove e7e5\nscore -35\nply 1\nresult -1\ne\n"), "plain", Some(-35));
    }
}

/// A number that c-chess-cli's coding does not have shows that the others mean something else, too.
#[test]
fn results_of_another_coding_are_refused() {
    let folder = TempDir::new().unwrap();
    for result in ["0.5", "-1", "1.0", "3"] {
        let lines = format!("fen,score,result\n{FEN},35,1\n{FEN},-35,{result}\n");
        fs::write(folder.path().join("x.csv"), lines).unwrap();
        for command in [
            &["dataset", "info", "x.csv"][..],
            &["dataset", "stats", "x.csv"],
            &["dataset", "convert", "x.csv", "x.fsd"],
            &["dataset", "build", "x.csv", "--method", "eval", "--out", "x.fsd"],
        ] {
            let output = fsbench(command, folder.path());
            check(&output, 2, "x.csv");
            check(&output, 2, "line 3, column ");
            check(&output, 2, &format!("the result `{result}` is in another coding than c-chess-cli's"));
        }
        assert!(!folder.path().join("x.fsd").exists());
    }
}

#[test]
fn headers_are_no_broken_lines() {
    let folder = TempDir::new().unwrap();
    for (header, line, format) in [("fen,score,move", "35,e7e5", "text"), ("FEN,Eval,Result", "35,1", "c-chess-cli")] {
        fs::write(folder.path().join("x.csv"), format!("{header}\r\n{FEN},{line}\r\n")).unwrap();
        let info = json(&["dataset", "info", "x.csv"], folder.path());
        assert_eq!((&info["format"], &info["samples"]), (&value!(format), &value!(1)), "{header}");
        assert_eq!(info["skipped_samples"]["by_reason"], value!({}), "{header}");
        let build = ["dataset", "build", "x.csv", "--method", "eval", "--out", "x.fsd", "--force"];
        let output = fsbench(&build, folder.path());
        let note = format!("x.csv was read as {format}");
        check(&output, 0, if format == "text" { "" } else { &note });
    }
}

/// With any bit flipped, at most the samples of the lines that hold it change.
#[test]
fn a_flipped_bit_changes_one_sample() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x");
    let records = scored(1, 6);
    for format in [Format::BulletText, Format::Plain] {
        write(&path, format, &records);
        let (all, end) = read(&path, Some(format));
        end.unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // A byte that no text has ends the reading.
            let (found, end) = read(&path, Some(format));
            if end.is_err() {
                continue;
            }
            assert!(found.iter().all(|record| record.check().is_ok()), "{format:?}, bit {bit}");
            // A line's end that is lost joins two samples.
            let content = |record: &Record| record.with_game(0);
            let kept = all.iter().filter(|record| found.iter().any(|other| content(other) == content(record))).count();
            assert!(kept + 2 >= all.len(), "{format:?}, bit {bit}: {kept} of {}", all.len());
        }
    }
}
