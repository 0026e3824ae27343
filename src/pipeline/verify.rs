//! Reading a whole file to see whether all in it is as it should be.

use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;

use super::Manifest;
use crate::data::formats::{Format, SampleReader, detect};
use crate::data::{DataError, Fsd, Record, RecordError};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    pub format: Format,
    /// Samples that could be read.
    pub samples: u64,
    pub games: u64,
    /// blake3 of the samples as records, in hexadecimal.
    pub hash: String,
    /// Whether the manifest agrees; none where there is no manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<bool>,
    /// Number of problems, and the first of them.
    pub problems: u64,
    pub first: Vec<Problem>,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub place: String,
    pub what: String,
}

const EXAMPLES: usize = 10;

/// Records of a `.fsd` file read at once.
const BLOCK: usize = 1 << 16;

/// Reads all of a file: its checksums, whether every position and move is legal and every record written as it should
/// be, whether the manifest agrees.
///
/// # Errors
/// When the file cannot be read at all. What is wrong in it stands in the verdict.
pub fn verify(path: &Path, format: Option<Format>, progress: &mut dyn FnMut(u64)) -> Result<VerifyReport, DataError> {
    let format = format.map_or_else(|| detect(path), Ok)?;
    let mut findings = Findings::default();
    let (samples, games, hash, manifest) = match format {
        Format::Fsd => of_fsd(path, &mut findings, progress)?,
        _ => of_stream(path, format, &mut findings, progress)?,
    };
    Ok(VerifyReport { format, samples, games, hash, manifest, problems: findings.count, first: findings.first })
}

#[derive(Default)]
struct Findings {
    count: u64,
    first: Vec<Problem>,
}

impl Findings {
    fn add(&mut self, place: impl Into<String>, what: &impl ToString) {
        self.count += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(Problem { place: place.into(), what: what.to_string() });
        }
    }
}

type Found = (u64, u64, String, Option<bool>);

fn of_fsd(path: &Path, findings: &mut Findings, progress: &mut dyn FnMut(u64)) -> Result<Found, DataError> {
    let fsd = match Fsd::open_unchecked(path) {
        Ok(fsd) => fsd,
        Err(error @ DataError::Read { .. }) => return Err(error),
        Err(error) => {
            findings.add("the file", &error);
            return Ok((0, 0, String::new(), None));
        }
    };
    for damage in fsd.damages() {
        findings.add("checksum", &damage);
    }
    let games = fsd.header().games;
    let mut hasher = blake3::Hasher::new();
    let mut first = 0;
    fsd.each_chunk(BLOCK, |block| {
        hasher.update(bytemuck::cast_slice(block));
        for (index, problem) in broken(block) {
            let record = first + index;
            findings.add(format!("record {record} (byte {})", Fsd::offset(record)), &problem);
        }
        if let Some(index) = block.iter().position(|record| record.game() >= games) {
            let record = first + index;
            let what = format!("game {} of {games}", block[index].game());
            findings.add(format!("record {record} (byte {})", Fsd::offset(record)), &what);
        }
        first += block.len();
        progress(first as u64);
        Ok::<(), DataError>(())
    })?;
    let hash = hasher.finalize().to_hex().to_string();
    if hash != fsd.hash() {
        findings.add("the header (byte 48)", &format!("the samples' hash is {hash}, not {}", fsd.hash()));
    }
    let manifest = match Manifest::of(&fsd) {
        Ok(manifest) => Some(disagreements(&manifest, &fsd)),
        Err(DataError::Read { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(vec![error.to_string()]),
    };
    for what in manifest.iter().flatten() {
        findings.add("the manifest", what);
    }
    Ok((fsd.header().samples, u64::from(games), hash, manifest.map(|wrong| wrong.is_empty())))
}

/// What a manifest of these samples says otherwise than the file.
fn disagreements(manifest: &Manifest, fsd: &Fsd) -> Vec<String> {
    let header = fsd.header();
    let mut wrong = Vec::new();
    let mut compare = |what: &str, manifest: String, file: String| {
        if manifest != file {
            wrong.push(format!("{what}: it says {manifest}, the file {file}"));
        }
    };
    compare("samples", manifest.kept.to_string(), header.samples.to_string());
    compare("games", manifest.games.to_string(), header.games.to_string());
    compare("method", manifest.method.name().into(), header.purpose.name().into());
    compare("units a pawn", manifest.score_unit.pawn().to_string(), header.score_unit.pawn().to_string());
    wrong
}

fn of_stream(
    path: &Path,
    format: Format,
    findings: &mut Findings,
    progress: &mut dyn FnMut(u64),
) -> Result<Found, DataError> {
    let mut reader = SampleReader::open(path, Some(format), None)?;
    let mut hasher = blake3::Hasher::new();
    let mut samples = 0;
    loop {
        match reader.next_block() {
            Ok(Some(block)) => {
                hasher.update(bytemuck::cast_slice(&block));
                for (index, problem) in broken(&block) {
                    findings.add(format!("sample {}", samples + index as u64), &problem);
                }
                samples += block.len() as u64;
                progress(samples);
            }
            Ok(None) => break,
            Err(error) => {
                findings.add(format!("after sample {samples}"), &error);
                break;
            }
        }
    }
    let skipped = reader.skipped();
    for example in &skipped.examples {
        findings.add(example.place.clone(), &example.why);
    }
    findings.count += skipped.total() - skipped.examples.len() as u64;
    Ok((samples, reader.games(), hasher.finalize().to_hex().to_string(), None))
}

/// The records that are not as they should be.
fn broken(block: &[Record]) -> Vec<(usize, RecordError)> {
    let check = |(index, record): (usize, &Record)| record.check().err().map(|problem| (index, problem));
    block.par_iter().enumerate().with_min_len(1024).filter_map(check).collect()
}
