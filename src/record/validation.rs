//! The losses of a network's validation by game and by class of sample, as comparisons between networks need them, and
//! their Parquet file.
//! The record of a validation has the file's hash, which is compared before polars sees the file.

use std::io::{self, Cursor};
use std::path::Path;

use polars::prelude::{
    Column, DataFrame, NamedFrom, ParquetCompression, ParquetReader, ParquetWriter, PolarsError, PolarsResult,
    SerReader, Series,
};
use serde::{Deserialize, Serialize};

use super::{RecordFileError, write_atomically};
use crate::train::{EvalLoss, PqrLoss};

/// A network's validation: the float network of the run's best epoch, dense weights rounded to the scheme's grid, as
/// training validates it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationRecord {
    pub samples: u64,
    pub games: u64,
    /// Mean over the samples.
    pub loss: f64,
    /// pqr: share of samples in which the network prefers the move played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Losses by different functions cannot be compared.
    pub function: LossFunction,
    /// BLAKE3 hash of the Parquet file with the losses, in hexadecimal.
    pub digest: String,
    /// In a file of their own.
    #[serde(skip)]
    pub losses: ValidationLosses,
}

/// The loss that was computed, with its settings.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossFunction {
    Eval(EvalLoss),
    Pqr(PqrLoss),
}

/// Sums of a validation's losses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationLosses {
    /// Whether the sums have `preferred` (pqr).
    pub has_preferred: bool,
    /// One per game, in ascending order.
    pub games: Vec<LossSums>,
    /// One per class of sample that occurs.
    pub classes: Vec<ClassLosses>,
}

/// The samples of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassLosses {
    /// The breakdown to which the class belongs: `pieces left`, `ply`, `material`, `score`, …
    pub by: String,
    pub part: String,
    /// One per group of games with such samples, in ascending order: game g is in group g % [`ClassLosses::GROUPS`]. If
    /// games are independent, so are groups (random groups; Wolter, Introduction to Variance Estimation, chapter 2).
    pub groups: Vec<LossSums>,
}

impl ClassLosses {
    /// Enough for the variance between games to be known to about a tenth.
    pub const GROUPS: u32 = 256;
}

/// Sums over some samples.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LossSums {
    /// The game's number in the data, or the group's.
    pub game: u32,
    pub samples: u32,
    pub loss: f32,
    /// pqr: samples in which the network prefers the move played.
    pub preferred: u32,
}

impl ValidationRecord {
    #[must_use]
    pub fn new(function: LossFunction, losses: ValidationLosses) -> ValidationRecord {
        let samples: u64 = losses.games.iter().map(|game| u64::from(game.samples)).sum();
        let loss: f64 = losses.games.iter().map(|game| f64::from(game.loss)).sum();
        let preferred: u64 = losses.games.iter().map(|game| u64::from(game.preferred)).sum();
        let share = |sum: f64| sum / samples.max(1) as f64;
        ValidationRecord {
            samples,
            games: losses.games.len() as u64,
            loss: share(loss),
            accuracy: losses.has_preferred.then(|| share(preferred as f64)),
            function,
            digest: blake3::hash(&losses.to_parquet()).to_hex().to_string(),
            losses,
        }
    }

    /// The record with the losses from its file.
    ///
    /// # Errors
    /// When the file cannot be read or is not the one that the record describes.
    pub fn with_losses_of(self, path: &Path) -> Result<ValidationRecord, RecordFileError> {
        let failed = |source| RecordFileError::Read { path: path.into(), source };
        let bytes = std::fs::read(path).map_err(failed)?;
        // Before it is parsed: polars panics on some damaged files, and on some asks for more memory than there is.
        if blake3::hash(&bytes).to_hex().as_str() != self.digest {
            return Err(RecordFileError::Digest(path.to_path_buf()));
        }
        let losses = ValidationLosses::of_parquet(&bytes).map_err(|error| failed(io::Error::other(error)))?;
        Ok(ValidationRecord { losses, ..self })
    }
}

impl ValidationLosses {
    /// The games, and the groups of each class.
    fn tables(&self) -> impl Iterator<Item = (&str, &str, &[LossSums])> {
        let classes = self.classes.iter().map(|class| (&class.by[..], &class.part[..], &class.groups[..]));
        std::iter::once((GAME, "", &self.games[..])).chain(classes)
    }

    /// Writes a Parquet file with the columns `by` (`game`, or the class's breakdown), `part`, `game` (or group),
    /// `samples`, `loss` and, for pqr, `preferred`; the last three are sums.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RecordFileError> {
        write_atomically(path, &self.to_parquet())
    }

    fn to_parquet(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let writer = ParquetWriter::new(&mut bytes).with_compression(ParquetCompression::Zstd(None));
        let written = self.frame().and_then(|mut frame| writer.finish(&mut frame));
        written.expect("columns of one length fit into memory");
        bytes
    }

    fn frame(&self) -> PolarsResult<DataFrame> {
        let rows = || self.tables().flat_map(|(by, part, sums)| sums.iter().map(move |sums| (by, part, sums)));
        let numbers = |name: &str, of: fn(&LossSums) -> u32| -> Column {
            Series::new(name.into(), rows().map(|(.., sums)| of(sums)).collect::<Vec<u32>>()).into()
        };
        let mut columns: Vec<Column> = vec![
            Series::new("by".into(), rows().map(|(by, ..)| by).collect::<Vec<&str>>()).into(),
            Series::new("part".into(), rows().map(|(_, part, _)| part).collect::<Vec<&str>>()).into(),
            numbers("game", |sums| sums.game),
            numbers("samples", |sums| sums.samples),
            Series::new("loss".into(), rows().map(|(.., sums)| sums.loss).collect::<Vec<f32>>()).into(),
        ];
        if self.has_preferred {
            columns.push(numbers("preferred", |sums| sums.preferred));
        }
        DataFrame::new(rows().count(), columns)
    }

    fn of_parquet(bytes: &[u8]) -> PolarsResult<ValidationLosses> {
        ValidationLosses::of_frame(&ParquetReader::new(Cursor::new(bytes)).set_rechunk(true).finish()?)
    }

    fn of_frame(frame: &DataFrame) -> PolarsResult<ValidationLosses> {
        let texts = |name: &str| Ok::<_, PolarsError>(frame.column(name)?.as_materialized_series().str()?.clone());
        let numbers = |name: &str| {
            let column = frame.column(name)?.as_materialized_series().u32()?.clone();
            Ok::<Vec<u32>, PolarsError>(column.iter().map(Option::unwrap_or_default).collect())
        };
        let by = texts("by")?;
        let part = texts("part")?;
        let games = numbers("game")?;
        let samples = numbers("samples")?;
        let loss = frame.column("loss")?.as_materialized_series().f32()?.clone();
        let has_preferred = frame.column("preferred").is_ok();
        let preferred = if has_preferred { numbers("preferred")? } else { vec![0; games.len()] };
        let mut losses = ValidationLosses { has_preferred, ..ValidationLosses::default() };
        let names = by.iter().zip(part.iter()).map(|(by, part)| (by.unwrap_or(GAME), part.unwrap_or_default()));
        let numbers = games.into_iter().zip(samples).zip(loss.iter()).zip(preferred);
        for ((by, part), (((game, samples), loss), preferred)) in names.zip(numbers) {
            let sums = LossSums { game, samples, loss: loss.unwrap_or(f32::NAN), preferred };
            if by == GAME {
                losses.games.push(sums);
                continue;
            }
            match losses.classes.last_mut().filter(|class| (&class.by[..], &class.part[..]) == (by, part)) {
                Some(class) => class.groups.push(sums),
                None => losses.classes.push(ClassLosses { by: by.into(), part: part.into(), groups: vec![sums] }),
            }
        }
        Ok(losses)
    }
}

/// In the column `by`: the row is a game.
const GAME: &str = "game";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn losses(has_preferred: bool) -> ValidationLosses {
        let sums = |game: u32| LossSums {
            game,
            samples: 10 + game % 7,
            loss: (f64::from(game).sqrt() / 7.0) as f32,
            preferred: if has_preferred { game % 5 } else { 0 },
        };
        let class =
            |by: &str, part: &str| ClassLosses { by: by.into(), part: part.into(), groups: (0..3).map(sums).collect() };
        let classes = vec![class("ply", "0-19"), class("ply", "20-39"), class("score", "0-49")];
        ValidationLosses { has_preferred, games: (5..105).map(sums).collect(), classes }
    }

    #[test]
    fn losses_are_read_as_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("losses.parquet");
        for has_preferred in [false, true] {
            let losses = losses(has_preferred);
            losses.write(&path).expect("written");
            let record = ValidationRecord::new(LossFunction::Eval(EvalLoss::default()), losses.clone());
            assert_eq!((record.games, record.accuracy.is_some()), (100, has_preferred));
            let samples: u32 = losses.games.iter().map(|game| game.samples).sum();
            assert_eq!(record.samples, u64::from(samples));
            let json = json::to_text(&record).expect("JSON");
            let read: ValidationRecord = json::from_text(&json).expect("a record");
            assert_eq!(read.clone().with_losses_of(&path).expect("the same losses"), record);
            let mut other = losses;
            other.games[3].loss += 0.5;
            other.write(&path).expect("written");
            let error = read.with_losses_of(&path).expect_err("other losses").to_string();
            assert!(error.contains("not what its record describes"), "{error}");
        }
    }

    #[test]
    fn a_damaged_file_of_losses_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("losses.parquet");
        let record = ValidationRecord::new(LossFunction::Eval(EvalLoss::default()), losses(true));
        record.losses.write(&path).expect("written");
        let stored = std::fs::read(&path).expect("written");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            matches!(record.clone().with_losses_of(&path), Err(RecordFileError::Digest(_)))
        };
        for at in 0..stored.len() {
            let mut bytes = stored.clone();
            bytes[at] ^= 4;
            assert!(refused(&bytes) && refused(&stored[..at]), "byte {at}");
        }
    }

    /// A hundred thousand games take less than a megabyte.
    #[test]
    fn files_are_small() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("losses.parquet");
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let sums = |game: u32, random: u32| LossSums {
            game,
            samples: 40 + random % 120,
            loss: random as f32 / 1e6,
            preferred: 0,
        };
        let games = (0..100_000).map(|game| sums(10 * game + game % 7, next())).collect();
        let class = |number: u32| ClassLosses {
            by: "ply".into(),
            part: number.to_string(),
            groups: (0..ClassLosses::GROUPS).map(|group| sums(group, group * 7_919 * (number + 1))).collect(),
        };
        let classes = (0..30).map(class).collect();
        ValidationLosses { has_preferred: false, games, classes }.write(&path).expect("written");
        let bytes = std::fs::metadata(&path).expect("written").len();
        assert!(bytes < 1_000_000, "{bytes}");
    }
}
