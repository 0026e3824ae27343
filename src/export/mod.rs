//! Export: a definition as plain source for an engine or a trainer, with the vectors that prove it.
//!
//! [`Export::files`] writes all files in memory: `feature_set.rs` or `feature_set.h` (`features`), an input type for
//! the trainer bullet (`bullet`), `golden.jsonl` (`golden`) and a README. [`Export::write`] makes a new folder of them.

mod bullet;
mod features;
mod files;
mod golden;
pub mod network;
mod readme;
mod template;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use crate::data::DataError;
use crate::features::FeatureSet;
use crate::output::OutputError;

pub use files::ExportFile;
pub use golden::{GoldenEval, GoldenEvaluator};

/// A language that exports are written in.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Edition 2021, without `std`.
    Rust,
    /// C11, header only.
    C,
}

impl Language {
    pub const ALL: [Language; 2] = [Language::Rust, Language::C];

    /// The file with the encoder.
    pub const fn features_file(self) -> &'static str {
        match self {
            Language::Rust => "feature_set.rs",
            Language::C => "feature_set.h",
        }
    }
}

/// What to export.
///
/// ```
/// use fsbench::export::{Export, Language};
/// use fsbench::features::FeatureSet;
///
/// let set = FeatureSet::resolve("chess768-mirrored")?;
/// let source = Export::new(&set, Language::C).features()?;
/// assert!(source.contains("#define FSB_NUM_FEATURES 768u"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Export<'a> {
    set: &'a FeatureSet,
    language: Language,
    bullet: bool,
    evaluator: Option<&'a GoldenEvaluator<'a>>,
    network: Vec<ExportFile>,
    /// The network's chapter of the README.
    chapter: String,
}

/// Why an export was refused or failed.
#[derive(Debug, Error)]
pub enum ExportError {
    #[error("{} is not empty; an export goes into a new or empty folder", .0.display())]
    NotEmpty(PathBuf),
    #[error("{} is a file; --out takes a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("--bullet writes Rust; add --lang rust")]
    BulletIsRust,
    #[error(
        "{name} may have up to {active} active features, too many for the lists of fixed length in exported code (at \
         most {most})"
    )]
    TooManyActive { name: String, active: usize, most: usize },
    #[error(
        "{name} needs tables of {entries} numbers, and exported source has at most {most}; `fsbench select` finds the \
         features of a set that matter"
    )]
    LargeTables { name: String, entries: usize, most: usize },
    #[error(
        "--bullet: bullet takes features in pairs, one for each perspective, but in {name} the perspectives can have \
         different numbers of features ({white} and {black} in {fen})"
    )]
    Unpaired { name: String, white: usize, black: usize, fen: String },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Data(#[from] DataError),
}

impl ExportError {
    /// Whether the request was wrong, not the work.
    pub const fn is_request(&self) -> bool {
        match self {
            ExportError::NotEmpty(_)
            | ExportError::NotAFolder(_)
            | ExportError::BulletIsRust
            | ExportError::TooManyActive { .. }
            | ExportError::LargeTables { .. }
            | ExportError::Unpaired { .. } => true,
            ExportError::Output(_) | ExportError::Data(_) => false,
        }
    }
}

/// Longest list of exported code: 16 MiB.
const MAX_ACTIVE: usize = 1 << 22;

/// Most numbers in the tables of an encoder: about 4 MB of source.
const MAX_TABLE_ENTRIES: usize = 1 << 19;

impl<'a> Export<'a> {
    pub fn new(set: &'a FeatureSet, language: Language) -> Export<'a> {
        Export { set, language, bullet: false, evaluator: None, network: Vec::new(), chapter: String::new() }
    }

    /// Adds `bullet.rs`.
    #[must_use]
    pub fn with_bullet(mut self, bullet: bool) -> Export<'a> {
        self.bullet = bullet;
        self
    }

    /// Adds a network's files, their chapter of the README, and the network's evaluations to the golden file.
    #[must_use]
    pub fn with_network(
        mut self,
        files: Vec<ExportFile>,
        chapter: String,
        evaluator: &'a GoldenEvaluator<'a>,
    ) -> Export<'a> {
        self.network = files;
        self.chapter = chapter;
        self.evaluator = Some(evaluator);
        self
    }

    /// The text of `feature_set.rs` or `feature_set.h`.
    ///
    /// # Errors
    /// When the definition needs large tables.
    pub fn features(&self) -> Result<String, ExportError> {
        features::source(self.set, self.language)
    }

    /// All files.
    ///
    /// # Errors
    /// When the request cannot be written in the language, or the sample games cannot be read.
    pub fn files(&self) -> Result<Vec<ExportFile>, ExportError> {
        if self.bullet && self.language != Language::Rust {
            return Err(ExportError::BulletIsRust);
        }
        let active = self.set.max_active();
        if active > MAX_ACTIVE {
            let name = self.set.name().to_owned();
            return Err(ExportError::TooManyActive { name, active, most: MAX_ACTIVE });
        }
        let mut files = vec![ExportFile::new(self.language.features_file(), self.features()?)];
        if self.bullet {
            files.push(ExportFile::new("bullet.rs", bullet::source(self.set)?));
        }
        files.extend(self.network.iter().cloned());
        files.push(ExportFile::new("golden.jsonl", golden::lines(self.set, self.evaluator)?));
        files.push(ExportFile::new("README.md", readme::text(self.set, self.language, &files, &self.chapter)));
        Ok(files)
    }

    /// Writes all files into a new or empty folder, which appears whole or not at all.
    ///
    /// # Errors
    /// When the folder is not empty or cannot be written, or as [`Export::files`].
    pub fn write(&self, folder: &Path) -> Result<Vec<ExportFile>, ExportError> {
        files::check(folder)?;
        let files = self.files()?;
        files::write(folder, &files)?;
        Ok(files)
    }
}
