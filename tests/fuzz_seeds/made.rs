//! Small inputs for every fuzz target, made by fsbench.

use std::io::Write;
use std::path::Path;

use fsbench::chess::{Board, Perspective};
use fsbench::data::formats::{Format, SampleWriter};
use fsbench::data::{GameResult, Provenance, Purpose, Record, Sample, ScoreUnit, games};
use fsbench::features::{FeatureSet, available_names};
use fsbench::net::nnue::Architecture;
use fsbench::net::{
    Activation, BucketRule, Checkpoint, FloatNet, NetFile, Origin, OutputBuckets, Scheme, Shape, bullet, load_float,
    quantise, save_float,
};
use fsbench::output::checked::{in_envelope, open_envelope};
use fsbench::pipeline::convert::{ConvertJob, ConvertOptions, convert};
use fsbench::pipeline::{Journal, manifest_path};
use fsbench::service::{Description, Dtype, Layout};
use fsbench::train::run_dir::{METRICS, RunDir};
use fsbench::units::{Ply, Seed};
use serde_json::json;
use shakmaty::fen::Fen;
use shakmaty::{Chess, EnPassantMode, Move, Position};
use tempfile::TempDir;

use super::common::castlings::every_castling;
use super::common::{pgn, random_game, random_net};

/// Names and bytes, by target.
pub type Seeds = Vec<(&'static str, Vec<(String, Vec<u8>)>)>;

pub fn seeds() -> Seeds {
    let folder = TempDir::new().unwrap();
    #[allow(unused_mut, reason = "without the feature `report` nothing follows")]
    let mut all = vec![
        ("definition", definitions()),
        ("pgn", compressed(annotated_pgn().as_bytes(), "pgn")),
        ("pgn", vec![named("chess960", CHESS960_PGN.into())]),
        ("binpack", vec![named("games", written(&folder, Format::Binpack)), named("one", one_sample(&folder))]),
        ("bulletformat", vec![named("games", written(&folder, Format::Bullet))]),
        ("viriformat", vec![named("games", written(&folder, Format::Viriformat))]),
        ("viriformat", vec![named("chess960", castlings(&folder, Format::Viriformat))]),
        ("text", compressed(&written(&folder, Format::Text), "text")),
        ("text", vec![named("chess960", castlings(&folder, Format::Text))]),
        ("foreign_text", foreign_text(&folder)),
        ("fsd", fsd(&folder)),
        ("nnue", nnue()),
        ("bullet_raw", bullet_raw(&folder)),
        ("safetensors", safetensors(&folder)),
        ("service_client", service()),
        ("uci", uci()),
        ("uci", vec![named("chess960", CHESS960_UCI.into())]),
        ("journal", journal(&folder)),
    ];
    #[cfg(feature = "report")]
    all.extend([("experiment", experiments()), ("record", records(&folder))]);
    all
}

fn named(name: &str, bytes: Vec<u8>) -> (String, Vec<u8>) {
    (name.into(), bytes)
}

/// Whether the format's own reader takes the whole input.
pub fn is_accepted(target: &str, bytes: &[u8]) -> bool {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, bytes).unwrap();
    let reads = |format: Format| {
        let mut reader = fsbench::data::formats::SampleReader::open(&path, Some(format), None).unwrap();
        let mut samples = 0;
        while let Some(block) = reader.next_block().unwrap() {
            samples += block.len();
        }
        samples > 0 && reader.skipped().total() == 0
    };
    match target {
        "definition" => FeatureSet::from_definition(std::str::from_utf8(bytes).unwrap()).is_ok(),
        "pgn" => games(&path).unwrap().all(|game| game.is_ok()),
        "binpack" => reads(Format::Binpack),
        "bulletformat" => reads(Format::Bullet),
        "viriformat" => reads(Format::Viriformat),
        "text" => reads(Format::Text),
        "foreign_text" => reads(fsbench::data::formats::detect(&path).unwrap()),
        #[cfg(feature = "report")]
        "journal" if bytes.starts_with(br#"{"journal":"match""#) => {
            let lines = std::str::from_utf8(bytes).unwrap().lines().skip(1);
            // The cut-off line is no game.
            let is_game = |line: &&str| {
                let line = fsbench::output::checked::without_line_sum(line);
                line.is_ok_and(|line| fsbench::play::PlayedGame::from_journal(line).is_ok())
            };
            lines.filter(is_game).count() == MATCH_GAMES.len()
        }
        "safetensors" => NetFile::load(&path).is_ok() || load_float(&path).is_ok(),
        _ => true,
    }
}

/// The definitions of all shipped sets except sets with long lists of indices, and sets of engines' threats, whose
/// tables take seconds in an instrumented program.
fn definitions() -> Vec<(String, Vec<u8>)> {
    let set = |name: &str| FeatureSet::shipped(name).unwrap().definition().as_bytes().to_vec();
    let all = available_names().into_iter().map(|name| (name.clone(), set(&name)));
    let takes_long = |name: &str| name.starts_with("sfnnv") || name.starts_with("threats-v");
    all.filter(|(name, text)| text.len() < 4096 && !takes_long(name)).collect()
}

/// The bytes, plain and in every compression.
fn compressed(bytes: &[u8], name: &str) -> Vec<(String, Vec<u8>)> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(bytes).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip2.write_all(bytes).unwrap();
    vec![
        named(name, bytes.to_vec()),
        named(&format!("{name}.zst"), zstd::encode_all(bytes, 3).unwrap()),
        named(&format!("{name}.gz"), gzip.finish().unwrap()),
        named(&format!("{name}.bz2"), bzip2.finish().unwrap()),
    ]
}

/// Two plain games, and one with everything that PGN allows.
fn annotated_pgn() -> String {
    let plain = pgn(&[random_game(1, 30), random_game(2, 12)]);
    plain
        + r#"[Event "annotated"]
[FEN "r3k2r/1P6/8/8/8/8/6p1/R3K2R w KQkq - 3 20"]
[SetUp "1"]
[Result "1-0"]
[WhiteElo "2000"]
[TimeControl "300+3"]

{ before } 20. O-O $1 { [%eval 0.35] [%clk 0:01:00] } (20. bxa8=Q+! Kd7 (20... Ke7 { nested }) 21. Qa4+) 20... g1=N??
; to the end of the line
21. b8=Q+ { [%eval #3] } Ke7 22. Qb4+ 1-0
"#
}

/// A game of Chess960 by its tag, and one by its castling rights.
const CHESS960_PGN: &str = r#"[FEN "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"]
[Variant "fischerandom"]
[Result "1-0"]

1. O-O {+0.31/9 0.1s} O-O-O {-0.20/8 0.1s} 2. e4 e5 1-0

[FEN "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w KQkq - 0 1"]

1. f1b1 Ke8 2. e4 e5 1-0
"#;

const CHESS960_UCI: &str = "setoption name UCI_Chess960 value true
position fen 1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1 moves f1g1 f8b8
go depth 2
position fen 6kr/pppppppp/8/8/8/8/PPPPPPPP/6KR w KQkq - 0 1
go depth 2 searchmoves g1h1
d
";

/// Samples that castle in Chess960.
fn castlings(folder: &TempDir, format: Format) -> Vec<u8> {
    let sample = |(number, (position, mv)): (usize, (Chess, Move))| {
        let ply = Ply(u16::from(position.turn().is_black()));
        Record::of(&position, number as u32, ply, Some(mv), Some(7), Some(GameResult::Draw)).unwrap()
    };
    let records: Vec<Record> = every_castling().into_iter().step_by(7).enumerate().map(sample).collect();
    write_samples(&folder.path().join("samples"), format, &records)
}

/// The samples of random games, each with a score and a result.
fn samples(game_count: u32, plies: usize) -> Vec<Record> {
    let of_game = |game: u32| {
        let mut position = Chess::default();
        let mut records = Vec::new();
        for (ply, mv) in random_game(u64::from(game), plies).into_iter().enumerate() {
            let sample = Sample {
                position: position.clone(),
                game,
                ply: Ply(ply as u16),
                mv: Some(mv),
                score: Some((ply as i16) * 37 - 200),
                result: Some([GameResult::Win, GameResult::Draw, GameResult::Loss][(game as usize + ply) % 3]),
            };
            records.push(Record::pack(&sample).unwrap());
            position.play_unchecked(mv);
        }
        records
    };
    (0..game_count).flat_map(of_game).collect()
}

fn write_samples(path: &Path, format: Format, records: &[Record]) -> Vec<u8> {
    let mut writer = SampleWriter::create(path, format, true).unwrap();
    writer.push(records).unwrap();
    let purpose = Purpose::Any;
    let score_unit = ScoreUnit::Centipawns;
    writer.finish(Provenance { purpose, score_unit, seed: Seed(0), games: 2, sources: [0; 32] }).unwrap();
    std::fs::read(path).unwrap()
}

fn written(folder: &TempDir, format: Format) -> Vec<u8> {
    write_samples(&folder.path().join("samples"), format, &samples(2, 12))
}

/// Samples in the forms of other programs.
fn foreign_text(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    let mut epd = String::new();
    let mut c_chess_cli = String::from("FEN,Eval,Result\n");
    for (number, record) in samples(1, 12).iter().enumerate() {
        let fen = Fen::from_position(&record.position().unwrap(), EnPassantMode::Legal);
        epd += &format!("{fen} {}\n", ["c9 \"1-0\";", "[0.5]", "bm e4; c9 \"0-1\"; id \"a, b\";"][number % 3]);
        c_chess_cli += &format!("{fen},{},{}\n", 7 * number, number % 3);
    }
    vec![
        named("bullet", written(folder, Format::BulletText)),
        named("plain", written(folder, Format::Plain)),
        named("epd", epd.into_bytes()),
        named("c-chess-cli", c_chess_cli.into_bytes()),
    ]
}

fn one_sample(folder: &TempDir) -> Vec<u8> {
    write_samples(&folder.path().join("samples"), Format::Binpack, &samples(1, 1))
}

/// A file with its manifest, without and with repairs of their checksums.
fn fsd(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    let source = folder.path().join("samples.txt");
    let path = folder.path().join("samples.fsd");
    write_samples(&source, Format::Text, &samples(2, 5));
    let job = ConvertJob { output: &path, options: &ConvertOptions::default(), command: &[] };
    convert(&source, &job, &mut |_| {}).unwrap();
    let manifest = std::fs::read_to_string(manifest_path(&path)).unwrap();
    // A seed must not name the folder in which it happened to be made.
    let (described, _) = open_envelope(manifest.trim_end()).unwrap();
    let anywhere = described.replace(source.to_str().unwrap(), "samples.txt");
    let manifest = in_envelope(&anywhere) + "\n";
    let content = std::fs::read(&path).unwrap();
    let input = |repairs: u8| [&[repairs], manifest.as_bytes(), &[0], &content[..]].concat();
    vec![named("as-written", input(0)), named("repaired", input(7))]
}

/// The beginnings of files of every architecture, and edits of a whole one.
fn nnue() -> Vec<(String, Vec<u8>)> {
    let beginning = |(number, architecture): (usize, &Architecture)| {
        let header = [architecture.version(), architecture.hash(), 4].map(u32::to_le_bytes).concat();
        let transformer = architecture.transformer_hash().to_le_bytes();
        let array = [&b"COMPRESSED_LEB128"[..], &8u32.to_le_bytes(), &[1, 0x7f, 0x80, 1, 2, 3, 4, 5]].concat();
        let bytes = [&[2 * number as u8], &header[..], b"text", &transformer[..], &array[..]].concat();
        (architecture.name().to_owned(), bytes)
    };
    let mut all: Vec<_> = Architecture::ALL.iter().enumerate().map(beginning).collect();
    let edit = |start: u8, offset: i16, action: u8, value: u8, count: u8| {
        let [low, high] = offset.to_le_bytes();
        [start, low, high, action, value, count]
    };
    let edits: [(&str, Vec<[u8; 6]>); 6] = [
        ("whole", vec![]),
        ("biases", vec![edit(2, 21, 0, 0x35, 9)]),
        ("dense", vec![edit(1, -200, 0, 0x7f, 150)]),
        ("longer", vec![edit(1, 0, 1, 0, 7)]),
        ("shorter", vec![edit(3, 40, 2, 0, 3)]),
        ("cut", vec![edit(4, 3, 3, 0, 1), edit(0, 8, 0, 0xff, 4)]),
    ];
    all.extend(edits.map(|(name, edits)| named(name, [&[1][..], edits.as_flattened()].concat())));
    all
}

fn bullet_raw(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    let path = folder.path().join("quantised.bin");
    let input = |activation: u8, shape: Shape, width: u8| {
        let count = shape.buckets.count as u8;
        let net = quantise(&FloatNet::zeros(&shape), &Scheme::simple()).unwrap();
        bullet::save(&path, &net).unwrap();
        [&[activation, count, width], &std::fs::read(&path).unwrap()[..]].concat()
    };
    let plain = |activation, l1| Shape { activation, ..Shape::plain(64, l1, vec![]) };
    let buckets = OutputBuckets { count: 4, rule: BucketRule::Cpw };
    vec![
        named("relu", input(0, plain(Activation::Relu, 1), 0)),
        named("screlu", input(2, plain(Activation::Screlu, 3), 3)),
        named("pairwise", input(3, Shape { buckets, ..plain(Activation::Pairwise, 2) }, 0)),
    ]
}

/// Networks of all kinds of shapes, and a checkpoint.
fn safetensors(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    let set = FeatureSet::resolve("color(P) * role(P) for P in pieces").unwrap();
    let features = set.num_features();
    let path = folder.path().join("net.safetensors");
    let network = |net: &FloatNet, scheme: &Scheme| {
        NetFile { origin: Origin::of(&set), net: quantise(net, scheme).unwrap() }.save(&path).unwrap();
        std::fs::read(&path).unwrap()
    };
    let buckets = OutputBuckets { count: 2, rule: BucketRule::Stockfish };
    let large = Shape {
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        skip: true,
        psqt: true,
        buckets,
        ..Shape::plain(features, 4, vec![2, 2])
    };
    let concatenated = Shape {
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        skip_difference: true,
        concatenated: true,
        narrow: features / 2,
        ..Shape::plain(features, 4, vec![3, 2])
    };
    let small = random_net(features, 2, &[], 1);
    let checkpoint = Checkpoint { origin: Origin::of(&set), training: json!({ "step": 17, "scheme": "stockfish" }) };
    save_float(&path, &checkpoint, &small, &[("adam.m.ft.bias".into(), vec![2], &[0.5, 1.0])]).unwrap();
    vec![
        named("checkpoint", std::fs::read(&path).unwrap()),
        named("small", network(&random_net(features, 3, &[2], 3), &Scheme::stockfish())),
        named("simple", network(&small, &Scheme::simple())),
        named("psqt", network(&FloatNet::zeros(&large), &Scheme::stockfish())),
        named("concatenated", network(&FloatNet::zeros(&concatenated), &Scheme::stockfish_19())),
    ]
}

/// The line and the memory of a service with one batch of two positions, in both layouts.
fn service() -> Vec<(String, Vec<u8>)> {
    vec![
        named("csr", service_stream(Layout::Csr, &[])),
        named("bitset", service_stream(Layout::Bitset, &[])),
        named("array-twice", service_stream(Layout::Csr, &[("piece_count", Dtype::U8, "words", &[])])),
    ]
}

/// `more`: name, type, count and bytes of further arrays.
fn service_stream(layout: Layout, more: &[(&str, Dtype, &str, &[u8])]) -> Vec<u8> {
    let set = FeatureSet::resolve("color(P) * role(P) for P in pieces").unwrap();
    let mut arrays = Vec::new();
    let mut memory = vec![0u8; 4096];
    let numbers = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let mut add = |name: &str, dtype: Dtype, count: &str, bytes: &[u8]| {
        let offset = 64 * (arrays.len() + 1);
        memory[offset..offset + bytes.len()].copy_from_slice(bytes);
        arrays.push(json!({ "name": name, "dtype": dtype, "offset": offset, "len": bytes.len() / dtype.bytes(), "count": count }));
    };
    let side = set.reference(&Board::default(), Perspective::White);
    let side: Vec<i32> = side.into_iter().take(4).map(|index| index as i32).collect();
    let words = if layout == Layout::Bitset { 1 } else { 0 };
    match layout {
        Layout::Csr => {
            for name in ["stm", "nstm"] {
                let indices = format!("{name}_indices");
                add(&format!("{name}_offsets"), Dtype::I32, "offsets", &numbers(&[0, 2, 4]));
                add(&indices, Dtype::I32, &indices, &numbers(&side));
            }
        }
        Layout::Bitset => {
            for name in ["stm_bits", "nstm_bits"] {
                add(name, Dtype::U64, "words", &[7; 16]);
            }
        }
    }
    add("score", Dtype::F32, "samples", &numbers(&[0, 1]));
    add("result", Dtype::F32, "samples", &numbers(&[0, 0]));
    add("piece_count", Dtype::U8, "positions", &[32, 2]);
    add("ply", Dtype::U16, "samples", &[1, 0, 2, 0]);
    add("sample_index", Dtype::U32, "samples", &numbers(&[5, 6]));
    more.iter().for_each(|(name, dtype, count, bytes)| add(name, *dtype, count, bytes));
    let counts = if layout == Layout::Csr { [2, 2, 3, 4, 4, 0] } else { [2, 2, 3, 0, 0, 2] };
    memory[..24].copy_from_slice(&numbers(&counts));
    let description = json!({
        "shm": "@", "slots": 1, "slot_bytes": 4096, "batch_size": 2, "positions_per_sample": 1, "layout": layout,
        "method": "eval", "identity": set.identity(), "num_features": set.num_features(), "arrays": arrays,
        "header": fsbench::service::SlotHeader::fields(), "version": Description::VERSION, "set": "x",
        "words_per_position": words, "samples": 2, "samples_of_split": 2, "samples_per_epoch": 2,
        "batches_per_epoch": 1, "batches": 1, "start_batch": 0,
        "score_unit": "centipawns", "shard": { "index": 0, "of": 1 },
    });
    serde_json::from_value::<Description>(description.clone()).unwrap();
    [description.to_string().as_bytes(), &[0, 3, 0, 0, 255], &memory].concat()
}

fn uci() -> Vec<(String, Vec<u8>)> {
    let dialogues = [
        (
            "handshake",
            "uci\nisready\nucinewgame\nsetoption name Hash value 4\nsetoption name Move Overhead value 20\nquit\n",
        ),
        (
            "game",
            "position startpos moves e2e4 e7e5 g1f3\ngo depth 2\nd\neval\n\
             position fen 8/8/4k3/8/8/4P3/4K3/8 w - - 0 1\ngo nodes 50\n",
        ),
        (
            "clock",
            "go wtime 100 btime 100 winc 1 binc 1 movestogo 2\nstop\ngo movetime 1 searchmoves e2e4 d2d4\ngo mate 1\n",
        ),
        ("ponder", "position startpos moves e2e4\ngo ponder wtime 50 btime 50\nponderhit\nstop\ngo infinite\nstop\n"),
        (
            "options",
            "setoption name EvalFile value net\nsetoption name SoftNodes value true\nsetoption name Hash\nbench 1\n\
             go depth x\nfoo\n",
        ),
    ];
    dialogues.map(|(name, text)| named(name, text.as_bytes().to_vec())).to_vec()
}

/// Journals of generated games, of labels and of a match, all cut off in their last line, and the metrics of a run.
fn journal(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    let head = json!({ "journal": "generate", "version": 1, "settings": { "seed": 7 } });
    let with = |name: &str, head: &serde_json::Value, lines: &[String]| {
        let path = folder.path().join(name);
        let mut journal = Journal::open(&path, "games", head, &mut |_, _| Ok(())).unwrap();
        for line in lines {
            journal.append(line).unwrap();
        }
        named(name, [&std::fs::read(path).unwrap()[..], b"{\"game\":2,\"whi"].concat())
    };
    let match_head = json!({ "journal": "match", "version": 1, "about": { "seed": 7 } });
    vec![
        with("games", &head, &GENERATED_GAMES.map(str::to_owned)),
        with("labels", &head, &["0 -31 e2e4".into(), "0 #2 g1f3".into()]),
        with("match", &match_head, &MATCH_GAMES.map(str::to_owned)),
        named("metrics", metrics(folder)),
    ]
}

/// Lines of a match's journal: the first as a match of two networks wrote it, shortened; the second with everything
/// that a line can hold, the largest mate distance included.
const MATCH_GAMES: [&str; 2] = [
    r#"{"game":0,"white":0,"black":1,"fen":"rnbqkbnr/pp1p1ppp/2p5/4p3/2PP4/8/PP2PPPP/RNBQKBNR w KQkq - 0 3","result":"draw","termination":"rules","moves":"d4e5@88/3/412/1032 d8a5@-21/3/377/940 b1c3@#3/4/500/1188"}"#,
    r#"{"game":5,"white":1,"black":0,"result":"win","termination":"adjudication","moves":"e2e4 e7e5@?/0/5/9 g1f3@#-2147483648/7/100/80 b8c6@-2147483648/1/2/3"}"#,
];

/// Lines of a journal of generated games: an opening of random moves; a random move in place of the best one, and a
/// game that is dropped.
const GENERATED_GAMES: [&str; 2] = [
    r##"{"game":0,"white":1,"black":0,"fen":"8/8/4k3/8/8/4P3/4K3/8 w - - 0 1","result":"win","termination":"adjudication","moves":"e2d3 e6d6 d3e4@31/2/40/9>d3c4 d6e6@-30/1/9/2 e4f4@#5/3/100/30"}"##,
    r#"{"game":1,"white":0,"black":0,"result":"loss","termination":"forfeit","forfeit":{"reason":"silent","message":"gave no answer within 1 s"},"moves":"e2e4"}"#,
];

/// Two epochs: one of a short run, one with everything that is measured.
fn metrics(folder: &TempDir) -> Vec<u8> {
    let run_dir = RunDir::create(&folder.path().join("run"), true).unwrap();
    let plain = json!({
        "epoch": 1, "step": 10, "samples": 640, "learning_rate": 0.01, "train_loss": 0.03125, "validation_loss": 0.0321,
        "seconds": 0.75,
    });
    let whole = json!({
        "epoch": 2, "step": 20, "samples": 1280, "learning_rate": 0.005, "train_loss": 0.03, "validation_loss": 0.031,
        "validation_accuracy": 0.625,
        "second": { "method": "pqr", "train_loss": 0.5, "validation_loss": 0.6, "validation_accuracy": 0.5 },
        "neurons": { "positive": 0.5, "saturated": 0.01, "dead": 0.0 },
        "weights": [{ "name": "ft.weight", "min": -1.0, "max": 1.0, "sum": 0.1, "sum_of_squares": 2.5, "counts": [1, 2] }],
        "samples_per_second": 1706.7, "seconds": 0.8,
    });
    for epoch in [plain, whole] {
        run_dir.append_metrics(&serde_json::from_value(epoch).unwrap()).unwrap();
    }
    std::fs::read(run_dir.path(METRICS)).unwrap()
}

#[cfg(feature = "report")]
fn experiments() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

/// The results in the repository, with one record of each list, together, and each document alone; then the other
/// records.
#[cfg(feature = "report")]
fn records(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    let more = super::records::all(folder);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/quickstart");
    let document = |name: &str| {
        let text = std::fs::read(folder.join(name).with_extension("json")).unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        if let Some(list) = value.as_array_mut() {
            list.truncate(1);
        }
        value.to_string().into_bytes()
    };
    let names = ["study", "environment", "runs", "updates", "activity", "error", "match", "speed", "validation"];
    let mut all: Vec<_> = names.map(|name| named(name, document(name))).to_vec();
    all.push(named("results", names.map(document).join(&0)));
    all.extend(more);
    all
}
