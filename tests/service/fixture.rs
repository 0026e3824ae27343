//! Random games as a data set, and batches copied out of a client.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fsbench::data::formats::{Format, SampleWriter};
use fsbench::data::{Fsd, Method, Provenance, Purpose, ScoreUnit};
use fsbench::pipeline::{self, BuildJob, BuildOptions, WeightedInput};
use fsbench::service::{Client, ClientBatch, ReadOptions, Request};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Position};

/// The program under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_fsbench"))
}

/// A `.fsd` file in a folder of its own.
pub struct Fixture {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub method: Method,
}

impl Fixture {
    /// 40 random games of up to 120 plies, most positions scored.
    pub fn new(method: Method) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let games = folder.path().join("games.pgn");
        let path = folder.path().join("samples.fsd");
        std::fs::write(&games, self::games(40)).expect("the folder is writable");
        let inputs = [WeightedInput::file(&games)];
        let options = BuildOptions::new(method);
        pipeline::build(&BuildJob::new(&inputs, &path, &options), &mut |_| {}).expect("the games are good");
        Fixture { _folder: folder, path, method }
    }

    /// The same samples as a binpack.
    pub fn binpack(&self) -> PathBuf {
        let path = self.path.with_extension("binpack");
        let mut writer = SampleWriter::create(&path, Format::Binpack, true).expect("the folder is writable");
        writer.push(self.open().records()).expect("the samples are good");
        writer.finish(Fixture::provenance(Purpose::Any)).expect("the disk has room");
        path
    }

    pub fn provenance(purpose: Purpose) -> Provenance {
        let score_unit = ScoreUnit::Centipawns;
        Provenance { purpose, score_unit, seed: Seed(0), games: 40, sources: [0; 32] }
    }

    pub fn open(&self) -> Fsd {
        Fsd::open(&self.path).expect("just built")
    }

    /// Small batches by two threads.
    pub fn request(&self) -> Request {
        Request {
            batch_size: 100,
            slots: Some(3),
            seed: Seed(9),
            threads: 2,
            reading: read_in(Some(ScoreUnit::Centipawns)),
            ..Request::new("piece", &self.path, self.method)
        }
    }
}

/// Scores in this unit where the data do not record it.
pub fn read_in(from_unit: Option<ScoreUnit>) -> ReadOptions {
    ReadOptions { from_unit, ..ReadOptions::default() }
}

/// Random games as PGN.
pub fn games(count: u64) -> String {
    (0..count).map(random_game).collect()
}

fn random_game(number: u64) -> String {
    let mut rng = Seed(21).stream("service test", number);
    let mut position = Chess::default();
    let result = ["1-0", "0-1", "1/2-1/2", "*"][rng.random_range(0..4)];
    let mut text = format!("[Event \"test\"]\n[Result \"{result}\"]\n\n");
    for ply in 0..120 {
        let moves = position.legal_moves();
        if moves.is_empty() {
            break;
        }
        if ply % 2 == 0 {
            write!(text, "{}. ", ply / 2 + 1).expect("a string grows");
        }
        let san = SanPlus::from_move_and_play_unchecked(&mut position, moves[rng.random_range(0..moves.len())]);
        let eval = f64::from(rng.random_range(-900..900)) / 100.0;
        write!(text, "{san} {{ [%eval {eval:.2}] }} ").expect("a string grows");
    }
    text + result + "\n\n"
}

/// A copy of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct CopiedBatch {
    pub number: u64,
    pub epoch: u32,
    pub samples: usize,
    pub positions: usize,
    /// Offsets and indices, stm then nstm.
    pub csr: [(Vec<i32>, Vec<i32>); 2],
    pub bits: [Vec<u64>; 2],
    pub scores: Vec<u32>,
    pub results: Vec<u32>,
    pub plies: Vec<u16>,
    pub piece_counts: Vec<u8>,
    pub sample_indices: Vec<u32>,
}

impl CopiedBatch {
    pub fn of(batch: &ClientBatch<'_>) -> CopiedBatch {
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect();
        CopiedBatch {
            number: batch.number(),
            epoch: batch.epoch(),
            samples: batch.samples(),
            positions: batch.positions(),
            csr: [batch.stm(), batch.nstm()].map(|side| (side.offsets.to_vec(), side.indices.to_vec())),
            bits: [batch.stm_bits().to_vec(), batch.nstm_bits().to_vec()],
            // As bit patterns, because NaN does not equal NaN.
            scores: bits(batch.scores()),
            results: bits(batch.results()),
            plies: batch.plies().to_vec(),
            piece_counts: batch.piece_counts().to_vec(),
            sample_indices: batch.sample_indices().to_vec(),
        }
    }

    /// The active features of a position, ascending; side 0 is stm.
    pub fn active(&self, side: usize, position: usize) -> Vec<u32> {
        let (offsets, indices) = &self.csr[side];
        let range = offsets[position] as usize..offsets[position + 1] as usize;
        let mut active: Vec<u32> = indices[range].iter().map(|&index| index as u32).collect();
        active.sort_unstable();
        active
    }
}

/// Every batch that a service delivers.
pub fn all_batches(request: &Request) -> Vec<CopiedBatch> {
    let mut client = Client::spawn(program(), request).expect("the service starts");
    let mut batches = Vec::new();
    while let Some(batch) = client.next().expect("the service runs") {
        batches.push(CopiedBatch::of(&batch));
    }
    assert!(client.ended());
    batches
}
