//! Several mapped `.fsd` files as one sequence of records and games: the samples, batches and splits equal a single
//! file's that holds the records of all, one file after another.

use std::ops::Range;

use super::ServiceError;
use super::mapped_batches::Paging;
use crate::data::formats::{Format, detect};
use crate::data::{DataFiles, Fsd, Method, Record, ScoreUnit, Split};
use crate::pipeline::build::GameSplit;
use crate::pipeline::{BuildOptions, Manifest};
use crate::units::Seed;

/// Mapped files in the order of their records.
#[derive(Debug)]
pub struct MappedFiles {
    files: Vec<MappedFile>,
    records: u32,
}

#[derive(Debug)]
pub(super) struct MappedFile {
    pub(super) file: Fsd,
    /// The options with which it was built, if its manifest tells.
    built_with: Option<BuildOptions>,
    /// Records of the files before.
    pub(super) first_record: u32,
    /// Games of the files before.
    pub(super) first_game: u32,
}

impl MappedFile {
    /// Whether every record has a played move and another legal one, since the build left out the others.
    pub(super) fn has_triplets(&self) -> bool {
        self.built_with.as_ref().is_some_and(|options| options.method == Method::Pqr && options.min_moves() >= 2)
    }

    /// Why the file has no game of a request's split, if it was built from the other side's games.
    pub(super) fn why_none_in(&self, wanted: &GameSplit) -> Option<String> {
        let built = self.built_with.as_ref()?.split.filter(|built| built.excludes(wanted))?;
        let name = |split: Split| if split == Split::Train { "training" } else { "validation" };
        Some(format!(
            "{} has no {} games: it was built from the {} games of the same split (--split-seed {}); give another \
             --split-seed, such as {}, to split its games anew",
            self.file.path().display(),
            name(wanted.split),
            name(built.split),
            built.seed.0,
            built.seed.0.wrapping_add(1)
        ))
    }
}

/// Refuses data that were built from the training games of the split that a run validates with: without this check, the
/// run would learn that after its first epoch.
///
/// # Errors
/// When that is so, or a file cannot be read.
pub fn check_validation(data: &DataFiles, validation: f64, seed: Seed) -> Result<(), ServiceError> {
    let [path] = data.files() else { return Ok(()) };
    if detect(path)? != Format::Fsd {
        return Ok(());
    }
    let file = Fsd::open_unchecked(path)?;
    let built_with = Manifest::of(&file).ok().and_then(|manifest| manifest.options);
    let file = MappedFile { file, built_with, first_record: 0, first_game: 0 };
    let wanted = GameSplit { split: Split::Validation, validation, seed };
    file.why_none_in(&wanted).map_or(Ok(()), |why| Err(ServiceError::Request(why)))
}

/// Refuses data whose samples have no plies, by which `option` skips samples.
///
/// # Errors
/// When a file cannot be read or has no plies.
pub fn check_plies(data: &DataFiles, option: &str) -> Result<(), ServiceError> {
    for path in data.files() {
        let has_plies = match detect(path)? {
            Format::Fsd => {
                let manifest = Manifest::of(&Fsd::open_unchecked(path)?);
                manifest.map_or(true, |manifest| manifest.without_plies().next().is_none())
            }
            format => format.has_ply(),
        };
        if !has_plies {
            let why = format!("the samples of {} have no plies, which {option} goes by; leave it out", path.display());
            return Err(ServiceError::Request(why));
        }
    }
    Ok(())
}

impl MappedFiles {
    /// `files`: each with its manifest, if there is one.
    ///
    /// # Errors
    /// When there is no file, the files' scores have different units, or there are 2^32 records or games.
    pub fn new(files: Vec<(Fsd, Option<Manifest>)>) -> Result<MappedFiles, ServiceError> {
        let refused = |text: String| Err(ServiceError::Request(text));
        let Some(unit) = files.first().map(|(file, _)| file.header().score_unit) else {
            return refused("there is no data file".into());
        };
        let mut mapped = Vec::with_capacity(files.len());
        let mut records = 0u64;
        let mut games = 0u64;
        for (file, manifest) in files {
            if file.header().score_unit != unit {
                return refused(format!(
                    "{} has scores in another unit than the files before it; convert it (`dataset convert --to-unit`), \
                     or make one file of all (`dataset build`)",
                    file.path().display()
                ));
            }
            let first_record = records as u32;
            let first_game = games as u32;
            records += file.records().len() as u64;
            games += u64::from(file.header().games);
            if records > u64::from(u32::MAX) || games > u64::from(u32::MAX) {
                return refused(format!(
                    "the data have {records} samples of {games} games up to {}; one service reads 2^32-1 of either at \
                     most",
                    file.path().display()
                ));
            }
            let built_with = manifest.and_then(|manifest| manifest.options);
            mapped.push(MappedFile { file, built_with, first_record, first_game });
        }
        Ok(MappedFiles { files: mapped, records: records as u32 })
    }

    pub(super) fn files(&self) -> &[MappedFile] {
        &self.files
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.records as usize
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    #[must_use]
    pub fn score_unit(&self) -> ScoreUnit {
        self.files[0].file.header().score_unit
    }

    /// The number of games that some record belongs to.
    pub(super) fn games(&self) -> u64 {
        self.files.iter().map(|file| file.file.count_games()).sum()
    }

    /// The records of all files.
    pub(super) fn records(&self) -> MappedRecords<'_> {
        MappedRecords(self.files.iter().map(|file| (file.first_record, file.file.records())).collect())
    }

    /// The record with this number, and the number of its game in the data; `None` if there is no such record.
    pub(super) fn sample(&self, number: u32) -> Option<(Record, u32)> {
        let files = self.files.partition_point(|file| file.first_record <= number);
        let MappedFile { file, first_record, first_game, .. } = &self.files[..files].last()?;
        let record = file.records().get((number - first_record) as usize)?;
        Some((*record, first_game.wrapping_add(record.game())))
    }

    /// Visits each file that holds some of the records, with their range in it.
    fn for_each_file(&self, records: &Range<usize>, mut visit: impl FnMut(&Fsd, Range<usize>)) {
        for MappedFile { file, first_record, .. } in &self.files {
            let in_file = |record: usize| record.saturating_sub(*first_record as usize).min(file.records().len());
            let range = in_file(records.start)..in_file(records.end);
            if !range.is_empty() {
                visit(file, range);
            }
        }
    }
}

/// The records of mapped files, each file's with the number of its first.
pub(super) struct MappedRecords<'a>(Vec<(u32, &'a [Record])>);

impl<'a> MappedRecords<'a> {
    /// The record with this number.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &'a Record {
        let (first, records) = match &self.0[..] {
            [only] => only,
            files => &files[files.partition_point(|(first, _)| *first <= number) - 1],
        };
        &records[(number - first) as usize]
    }
}

impl Paging for MappedFiles {
    fn fetch(&self, records: Range<usize>) {
        self.for_each_file(&records, Fsd::prefetch);
    }

    fn release(&self, records: Range<usize>) {
        self.for_each_file(&records, Fsd::release);
    }
}
