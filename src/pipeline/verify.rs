//! Verifies a whole file: checksums, positions, moves, and the manifest.

use std::path::Path;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::Manifest;
use crate::data::formats::{Format, SampleReader, detect};
use crate::data::{DataError, EvalOptions, Fsd, PgnNotes, Record, RecordError};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifyReport {
    pub format: Format,
    /// Readable samples.
    pub samples: u64,
    /// Its games.
    pub games: u64,
    /// blake3 of the samples as records, in hexadecimal.
    pub hash: String,
    /// Whether the manifest agrees; `None` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<bool>,
    /// The unusual features of the games of PGN; none of them is a problem of the file.
    #[serde(skip_serializing_if = "PgnNotes::is_empty")]
    pub notes: PgnNotes,
    /// Number of problems.
    pub problems: u64,
    /// The first problems.
    pub first: Vec<Problem>,
}

/// A problem and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Where in the file.
    pub place: String,
    /// What is wrong there.
    #[serde(rename = "what")]
    pub message: String,
}

/// Problems described in the report.
const EXAMPLES: usize = 10;

/// Records of a `.fsd` file read at once.
const BLOCK: usize = 1 << 16;

/// Reads a whole file and checks that its checksums match, every position and move is legal, every record is well
/// formed, and the manifest agrees. A file of another format than `.fsd` that holds nothing has a problem, too.
///
/// # Errors
/// When the file cannot be read at all. The report describes the problems of the file.
pub fn verify(
    path: &Path,
    format: Option<Format>,
    evals: EvalOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<VerifyReport, DataError> {
    let format = format.map_or_else(|| detect(path), Ok)?;
    let mut problems = Problems::default();
    let mut notes = PgnNotes::default();
    let (samples, games, hash, manifest) = if format == Format::Fsd {
        verify_fsd(path, &mut problems, progress)?
    } else {
        let mut reader = SampleReader::open_with(path, Some(format), None, evals)?;
        let facts = verify_stream(&mut reader, &mut problems, progress);
        notes = reader.notes();
        facts
    };
    Ok(VerifyReport { format, samples, games, hash, manifest, notes, problems: problems.count, first: problems.first })
}

#[derive(Default)]
struct Problems {
    count: u64,
    first: Vec<Problem>,
}

impl Problems {
    fn add(&mut self, place: impl Into<String>, message: &impl ToString) {
        self.count += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(Problem { place: place.into(), message: message.to_string() });
        }
    }
}

/// The facts common to all formats: samples, games, hash, whether the manifest agrees.
type FileFacts = (u64, u64, String, Option<bool>);

fn verify_fsd(path: &Path, problems: &mut Problems, progress: &mut dyn FnMut(u64)) -> Result<FileFacts, DataError> {
    let fsd = match Fsd::open_unchecked(path) {
        Ok(fsd) => fsd,
        Err(error @ DataError::Read { .. }) => return Err(error),
        Err(error) => {
            problems.add("the file", &error);
            return Ok((0, 0, String::new(), None));
        }
    };
    for damage in fsd.damage_errors() {
        problems.add("checksum", &damage);
    }
    let games = fsd.header().games;
    let mut hasher = blake3::Hasher::new();
    let mut first = 0;
    fsd.for_each_chunk(BLOCK, |block| {
        hasher.update(bytemuck::cast_slice(block));
        for (index, problem) in broken_records(block) {
            let record = first + index;
            problems.add(format!("record {record} (byte {})", Fsd::record_offset(record)), &problem);
        }
        if let Some(index) = block.iter().position(|record| record.game() >= games) {
            let record = first + index;
            let problem = format!("game {} of {games}", block[index].game());
            problems.add(format!("record {record} (byte {})", Fsd::record_offset(record)), &problem);
        }
        first += block.len();
        progress(first as u64);
        Ok::<(), DataError>(())
    })?;
    let hash = hasher.finalize().to_hex().to_string();
    if hash != fsd.hash() {
        problems.add("the header (byte 48)", &format!("the samples' hash is {hash}, not {}", fsd.hash()));
    }
    let manifest = match Manifest::of(&fsd) {
        Ok(manifest) => Some(disagreements(&manifest, &fsd)),
        Err(DataError::Read { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(vec![error.to_string()]),
    };
    for difference in manifest.iter().flatten() {
        problems.add("the manifest", difference);
    }
    Ok((fsd.header().samples, u64::from(games), hash, manifest.map(|differences| differences.is_empty())))
}

/// Where the manifest contradicts the file.
fn disagreements(manifest: &Manifest, fsd: &Fsd) -> Vec<String> {
    let header = fsd.header();
    let mut differences = Vec::new();
    let mut compare = |field: &str, manifest: String, file: String| {
        if manifest != file {
            differences.push(format!("{field}: it says {manifest}, the file {file}"));
        }
    };
    compare("samples", manifest.kept.to_string(), header.samples.to_string());
    compare("games", manifest.games.to_string(), header.games.to_string());
    compare("method", manifest.method.name().into(), header.purpose.name().into());
    compare("units per pawn", manifest.score_unit.pawn().to_string(), header.score_unit.pawn().to_string());
    differences
}

fn verify_stream(reader: &mut SampleReader, problems: &mut Problems, progress: &mut dyn FnMut(u64)) -> FileFacts {
    let mut hasher = blake3::Hasher::new();
    let mut samples = 0;
    loop {
        match reader.next_block() {
            Ok(Some(block)) => {
                hasher.update(bytemuck::cast_slice(&block));
                for (index, problem) in broken_records(&block) {
                    problems.add(format!("sample {}", samples + index as u64), &problem);
                }
                samples += block.len() as u64;
                progress(samples);
            }
            Ok(None) => break,
            Err(error) => {
                problems.add(format!("after sample {samples}"), &error);
                break;
            }
        }
    }
    let skipped = reader.skipped();
    for example in &skipped.examples {
        problems.add(example.location.clone(), &example.message);
    }
    problems.count += skipped.total() - skipped.examples.len() as u64;
    if problems.count == 0 && samples == 0 && reader.games() == 0 {
        problems.add("the file", &"it holds no game and no sample");
    }
    (samples, reader.games(), hasher.finalize().to_hex().to_string(), None)
}

/// The records that are not well formed, with their indices in the block.
fn broken_records(block: &[Record]) -> Vec<(usize, RecordError)> {
    let check = |(index, record): (usize, &Record)| record.check().err().map(|problem| (index, problem));
    block.par_iter().enumerate().with_min_len(1024).filter_map(check).collect()
}
