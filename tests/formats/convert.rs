//! `fsbench dataset convert` and `dataset info` on every format.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use fsbench::data::formats::{FileUnit, Format, UnitOrigin};
use fsbench::data::{Fsd, GameResult, Method, Purpose, Record, ScoreUnit};
use fsbench::pipeline::Manifest;
use serde_json::{Value, json as value};
use tempfile::TempDir;

use crate::common::{pgn, random_game};
use crate::fixture::{check, fsbench, fsbench_with, json, names, read_all, samples, shared, write};

fn convert(folder: &Path, arguments: &[&str]) -> Value {
    json(&[&["dataset", "convert"], arguments].concat(), folder)
}

fn info(folder: &Path, file: &str) -> Value {
    json(&["dataset", "info", file], folder)
}

/// Checks that `.binpack` → `.fsd` → `.binpack` → `.fsd` keeps the samples and that the bytes do not depend on the
/// number of threads. Returns the report of the first conversion.
fn check_round_trip(folder: &Path, source: &Path) -> Value {
    let source = source.to_str().unwrap();
    let first = convert(folder, &[source, "a.fsd"]);
    convert(folder, &["a.fsd", "a.binpack"]);
    let second = convert(folder, &["a.binpack", "b.fsd"]);
    assert_eq!(first["hash"], second["hash"]);
    assert_eq!(read_all(&folder.join("a.fsd")), read_all(&folder.join("b.fsd")));
    for threads in ["1", "2", "5"] {
        for (from, to, expected) in [(source, "c.fsd", "a.fsd"), ("a.fsd", "c.binpack", "a.binpack")] {
            let output = fsbench_with(&["dataset", "convert", from, to, "--force"], folder, threads);
            check(&output, 0, "");
            assert!(fs::read(folder.join(to)).unwrap() == fs::read(folder.join(expected)).unwrap(), "{threads} {to}");
        }
    }
    first
}

#[test]
fn binpacks_survive_a_round_trip_through_fsd() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("source.binpack");
    // More than one batch of the encoder.
    let records = samples(900, 200);
    assert!(records.len() > 1 << 17, "{}", records.len());
    write(&source, Format::Binpack, &records);
    let converted = check_round_trip(folder.path(), &source);
    assert_eq!((&converted["samples"], &converted["games"]), (&records.len().into(), &900.into()));
    assert_eq!(read_all(&folder.path().join("a.fsd")), records);
}

#[test]
fn a_file_of_stockfish_survives_a_round_trip_through_fsd() {
    let Some(source) = shared("stockfish-small.binpack") else { return };
    let folder = TempDir::new().unwrap();
    let converted = check_round_trip(folder.path(), &source);
    assert_eq!(converted["samples"], 434_921);
    let info = info(folder.path(), "b.fsd");
    assert_eq!(value!([info["samples"], info["with_score"]]), value!([434_921, 434_921 - 10_200]));
}

/// Two of the 63,494 games look like continuations of the games before them.
#[test]
fn self_play_games_are_counted() {
    let Some(source) = shared("selfplay.binpack") else { return };
    let folder = TempDir::new().unwrap();
    let info = info(folder.path(), source.to_str().unwrap());
    assert_eq!(value!([info["samples"], info["games"]]), value!([6_468_871, 63_492]));
}

#[test]
fn info_agrees_between_lossless_formats() {
    let folder = TempDir::new().unwrap();
    let records = samples(40, 120);
    for (name, format) in [("x.fsd", Format::Fsd), ("x.binpack", Format::Binpack)] {
        write(&folder.path().join(name), format, &records);
    }
    let scored = records.iter().filter(|record| record.score().is_some()).count();
    let fsd = info(folder.path(), "x.fsd");
    let binpack = info(folder.path(), "x.binpack");
    for (info, format) in [(&fsd, "fsd"), (&binpack, "binpack")] {
        let fields = ["format", "samples", "games", "with_score", "with_result", "hash"].map(|field| &info[field]);
        assert_eq!(value!(fields), value!([format, records.len(), 40, scored, records.len(), fsd["hash"]]));
    }
    assert_eq!(fsd["method"], "any");
}

#[test]
fn losses_of_a_conversion_are_counted() {
    let folder = TempDir::new().unwrap();
    let records = samples(30, 120);
    let count = |what: fn(&&Record) -> bool| records.iter().filter(what).count();
    let scored: Vec<Record> = records.iter().filter(|record| record.score().is_some()).copied().collect();
    write(&folder.path().join("x.fsd"), Format::Fsd, &records);

    let bullet = convert(folder.path(), &["x.fsd", "x.bullet"]);
    assert_eq!(bullet["left_out"], value!({ "no-score": records.len() - scored.len() }));
    let count_scored = |what: fn(&&Record) -> bool| scored.iter().filter(what).count();
    let lost = value!({
        "side-to-move": count_scored(|record| record.turn().is_black()),
        "castling-rights": count_scored(|record| record.castling() != 0),
        "en-passant": count_scored(|record| record.ep_file().is_some()),
        "rule50": count_scored(|record| record.rule50() != 0),
        "ply": count_scored(|record| record.ply().0 != 0),
        "move": scored.len(),
        "game-number": scored.windows(2).filter(|pair| pair[0].game() == pair[1].game()).count(),
    });
    assert_eq!(bullet["lost"], lost);
    let output = fsbench(&["dataset", "convert", "x.fsd", "x.bullet", "--force"], folder.path());
    check(&output, 0, "samples without a score were left out: bullet cannot store them");

    let text = convert(folder.path(), &["x.fsd", "x.txt"]);
    assert_eq!((&text["left_out"], &text["lost"]), (&value!({}), &value!({ "result": records.len() })));
    convert(folder.path(), &["x.txt", "y.fsd"]);
    let without_results: Vec<Record> = records.iter().map(|record| record.with_result(None)).collect();
    assert_eq!(read_all(&folder.path().join("y.fsd")), without_results);

    let binpack = convert(folder.path(), &["x.fsd", "x.binpack"]);
    assert_eq!((&binpack["left_out"], &binpack["lost"]), (&value!({}), &value!({})));
    assert!(count(|record| record.score().is_none()) > 0);
    // Text stores no results; binpack needs one, so the samples are left out or count as draws.
    let output = fsbench(&["dataset", "convert", "x.txt", "y.binpack"], folder.path());
    check(&output, 2, &format!("holds no sample that binpack can hold ({} without a result)", records.len()));
    let draws = convert(folder.path(), &["x.txt", "y.binpack", "--unknown-result", "draw"]);
    assert_eq!((&draws["samples"], &draws["assumed_draws"]), (&records.len().into(), &records.len().into()));
    assert!(read_all(&folder.path().join("y.binpack")).iter().all(|r| r.result() == Some(GameResult::Draw)));
}

#[test]
fn scores_are_converted_between_units() {
    let folder = TempDir::new().unwrap();
    let records: Vec<Record> =
        [100, -1, 3, 20_000, 31_998].iter().zip(samples(1, 50)).map(|(s, r)| r.with_score(Some(*s))).collect();
    write(&folder.path().join("x.binpack"), Format::Binpack, &records);
    let scores = |name: &str| -> Vec<i16> {
        read_all(&folder.path().join(name)).iter().map(|record| record.score().unwrap()).collect()
    };
    let converted = convert(folder.path(), &["x.binpack", "x.fsd", "--from-unit", "cp", "--to-unit", "internal:208"]);
    assert_eq!((&converted["clamped"], scores("x.fsd")), (&1.into(), vec![208, -2, 6, 30_000, 31_998]));
    let header = *Fsd::open(&folder.path().join("x.fsd")).unwrap().header();
    assert_eq!((header.score_unit.pawn(), header.purpose), (208, Purpose::Any));
    // The .fsd file records its unit; text always stores centipawns.
    convert(folder.path(), &["x.fsd", "x.txt"]);
    assert_eq!(scores("x.txt"), [100, -1, 3, 14_423, 31_998]);
    let output = fsbench(&["dataset", "convert", "x.fsd", "y.fsd", "--from-unit", "cp"], folder.path());
    check(&output, 2, "x.fsd records 208 units per pawn for its scores, not 100");
    let output = fsbench(&["dataset", "convert", "x.fsd", "y.binpack", "--to-unit", "internal:361"], folder.path());
    check(&output, 0, "binpack records no score unit: read the file with --from-unit internal:361");
    let output = fsbench(&["dataset", "convert", "x.fsd", "z.fsd", "--to-unit", "internal:0"], folder.path());
    check(&output, 2, "give `cp`");
}

/// A unit that is neither recorded nor given is assumed (internal units in a binpack, else centipawns), and the
/// assumption is reported and recorded.
#[test]
fn every_reader_accepts_a_unit_and_reports_it() {
    let folder = TempDir::new().unwrap();
    let scores = [208, -104, 31_998, -3].into_iter().cycle();
    let records: Vec<Record> = samples(1, 50).into_iter().zip(scores).map(|(r, s)| r.with_score(Some(s))).collect();
    write(&folder.path().join("x.binpack"), Format::Binpack, &records);
    let stockfish = value!({ "internal": { "pawn": 208 } });
    let check_unit = |arguments: &[&str], unit: &Value, origin: &str| {
        let document = json(&[&["dataset"], arguments].concat(), folder.path());
        assert_eq!((&document["score_unit"], &document["unit_said_by"]), (unit, &origin.into()), "{arguments:?}");
        document
    };
    let document = check_unit(&["stats", "x.binpack"], &stockfish, "nobody");
    assert_eq!(document["scores"], value!({ "100": 13, "-50": 12, "0": 12 }));
    check_unit(&["stats", "x.binpack", "--from-unit", "cp"], &"centipawns".into(), "request");
    check_unit(&["info", "x.binpack"], &stockfish, "nobody");
    check_unit(&["info", "x.binpack", "--from-unit", "cp"], &"centipawns".into(), "request");
    let text = fsbench(&["dataset", "info", "x.binpack"], folder.path());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("internal units, 208 per pawn (assumed, because the file does not say; see --from-unit)"),
        "{text}"
    );

    let build = |more: &[&str]| {
        let arguments = ["dataset", "build", "--method", "eval", "--min-ply", "0", "--force", "--out"];
        let output = fsbench(&[&arguments, more].concat(), folder.path());
        check(&output, 0, "");
        let fsd = Fsd::open(&folder.path().join(more[0])).unwrap();
        let scores: Vec<i16> = fsd.records().iter().take(4).map(|record| record.score().unwrap()).collect();
        let recorded = (fsd.header().score_unit, Manifest::of(&fsd).unwrap().sources[0].score_unit);
        (scores, recorded.0, recorded.1, String::from_utf8(output.stderr).unwrap())
    };
    let (scores, unit, source, said) = build(&["a.fsd", "x.binpack"]);
    assert_eq!((scores, unit), (vec![208, -104, 31_998, -3], ScoreUnit::STOCKFISH));
    assert_eq!(source, FileUnit { unit: ScoreUnit::STOCKFISH, origin: UnitOrigin::FormatDefault });
    assert!(said.contains("the scores of x.binpack are assumed to be internal units, 208 per pawn"), "{said}");
    let (_, unit, source, said) = build(&["a.fsd", "x.binpack", "--from-unit", "cp"]);
    assert_eq!((unit, source.origin, said.as_str()), (ScoreUnit::Centipawns, UnitOrigin::Request, ""));
    // Files with different units are converted to one. `--from-unit` only applies to files that do not record theirs.
    let (scores, unit, ..) = build(&["b.fsd", "x.binpack", "a.fsd"]);
    assert_eq!((scores, unit), (vec![100, -50, 31_998, -1], ScoreUnit::Centipawns));
    let (scores, unit, ..) = build(&["b.fsd", "x.binpack", "a.fsd", "--from-unit", "internal:104"]);
    assert_eq!((scores, unit), (vec![200, -100, 31_998, -3], ScoreUnit::Centipawns));
    let output = fsbench(&["dataset", "info", "a.fsd", "--from-unit", "internal:104"], folder.path());
    check(&output, 2, "a.fsd records 100 units per pawn for its scores, not 104");
}

/// A format that records no unit is written in the unit that readers assume for it, so the user need not remember it.
#[test]
fn scores_survive_a_round_trip_through_formats_without_a_unit() {
    let folder = TempDir::new().unwrap();
    let records: Vec<Record> = samples(5, 80).into_iter().filter(|record| record.score().is_some()).collect();
    write(&folder.path().join("x.fsd"), Format::Fsd, &records);
    for name in ["x.binpack", "x.bullet", "x.txt"] {
        let output = fsbench(&["dataset", "convert", "x.fsd", name], folder.path());
        check(&output, 0, "");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("score unit"));
        convert(folder.path(), &[name, "y.fsd", "--to-unit", "cp", "--force"]);
        let scores = |records: &[Record]| records.iter().map(Record::score).collect::<Vec<_>>();
        let back = read_all(&folder.path().join("y.fsd"));
        assert_eq!(scores(&back), scores(&records), "{name}");
    }
}

#[test]
fn games_and_streams_can_be_converted() {
    let folder = TempDir::new().unwrap();
    let games: Vec<_> = (0..20).map(|game| random_game(game, 90)).collect();
    fs::write(folder.path().join("games.pgn"), pgn(&games)).unwrap();
    let converted = convert(folder.path(), &["games.pgn", "g.fsd"]);
    let plies: usize = games.iter().map(Vec::len).sum();
    assert_eq!(value!([converted["samples"], converted["games"], converted["from"]]), value!([plies, 20, "pgn"]));
    assert_eq!(converted["hash"], info(folder.path(), "games.pgn")["hash"]);

    write(&folder.path().join("x.binpack"), Format::Binpack, &samples(20, 90));
    let expected = convert(folder.path(), &["x.binpack", "x.fsd"])["hash"].clone();
    let streamed = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
        command.args(["dataset", "convert", "-", "s.fsd", "--force", "--format", "json"]).args(more);
        command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A refused input is not read to its end, so that writing fails.
        let _ = child.stdin.take().unwrap().write_all(&fs::read(folder.path().join("x.binpack")).unwrap());
        child.wait_with_output().unwrap()
    };
    let output = streamed(&["--from", "binpack"]);
    check(&output, 0, "");
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["hash"], expected);
    let manifest = Manifest::of(&Fsd::open(&folder.path().join("s.fsd")).unwrap()).unwrap();
    let bytes = fs::read(folder.path().join("x.binpack")).unwrap();
    assert_eq!(manifest.sources[0].blake3, blake3::hash(&bytes).to_hex().to_string());
    check(&streamed(&[]), 2, "cannot be read as a file of unknown format from a stream");
    check(&streamed(&["--from", "pgn"]), 2, "cannot be read as pgn from a stream");
}

#[test]
fn compressed_text_is_read_like_plain_text() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("x.txt"), Format::Text, &samples(20, 100));
    let text = fs::read(path("x.txt")).unwrap();
    let expected = read_all(&path("x.txt"));
    fs::write(path("x.txt.zst"), zstd::encode_all(text.as_slice(), 3).unwrap()).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).unwrap();
    // Detected by its first line, not by its name.
    fs::write(path("samples"), gzip.finish().unwrap()).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip2.write_all(&text).unwrap();
    fs::write(path("x.csv.bz2"), bzip2.finish().unwrap()).unwrap();
    for name in ["x.txt.zst", "samples", "x.csv.bz2"] {
        assert_eq!(read_all(&path(name)), expected, "{name}");
    }
    assert_eq!(info(folder.path(), "samples")["compression"], "gzip");
    assert_eq!(info(folder.path(), "samples")["format"], "text");
}

#[test]
fn a_converted_file_tells_where_it_comes_from_and_is_for_every_method() {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("x.binpack"), Format::Binpack, &samples(5, 60));
    convert(folder.path(), &["x.binpack", "x.fsd"]);
    let path = folder.path().join("x.fsd");
    let whole = Fsd::open(&path).unwrap();
    let manifest = Manifest::of(&whole).unwrap();
    assert_eq!((manifest.method, manifest.options), (Purpose::Any, None));
    assert_eq!(manifest.conversion.unwrap().from, Format::Binpack);
    assert!(manifest.command.contains(&"convert".to_owned()));
    for method in [Method::Eval, Method::Pqr] {
        assert_eq!(Fsd::open_for(&path, method).unwrap().records(), whole.records());
    }
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("x.binpack"), Format::Binpack, &samples(2, 40));
    fs::write(folder.path().join("empty.txt"), "").unwrap();
    let check = |arguments: &[&str], status, stderr: &str| {
        check(&fsbench(&[&["dataset", "convert"], arguments].concat(), folder.path()), status, stderr);
    };
    check(&["missing.binpack", "x.fsd"], 2, "cannot read missing.binpack");
    check(&["x.binpack", "x.binpack"], 2, "exists already");
    check(&["x.binpack", "./x.binpack", "--force"], 2, "is an input, too");
    check(&["x.binpack", "-", "--to", "text"], 2, "name a file");
    check(&["x.binpack", "x.pgn"], 2, "PGN holds games, not single samples");
    check(&["x.binpack", "x"], 2, "its name names no known format");
    check(&["x.binpack", "x.txt.zst"], 2, "fsbench does not write compressed files");
    check(&["x.binpack", "."], 2, "names no file");
    check(&["x.binpack", "no/x.fsd"], 1, "cannot write no/x.fsd");
    check(&["x.binpack", "x.fsd", "--from", "fsd"], 2, "is not a .fsd file");
    check(&["empty.txt", "x.fsd"], 2, "empty.txt holds no sample that fsd can hold");
    assert_eq!(names(folder.path()), ["empty.txt", "x.binpack"]);
}
