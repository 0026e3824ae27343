//! The option `--data` of commands that fall back on the sample games, and say so.

use std::path::PathBuf;

use super::Failure;
use crate::data::{DataError, DataFiles};
use crate::pipeline::sample_games;

/// Games or samples in any format; without `--data`, the sample games that come with fsbench.
#[derive(Clone, Debug, clap::Args)]
pub struct Data {
    /// Games or samples: PGN (also .zst, .gz, .bz2), .fsd and the other formats [default: the sample games that come
    /// with fsbench]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

/// As [`Data`], for several files.
#[derive(Clone, Debug, clap::Args)]
pub struct SeveralData {
    /// Games or samples: PGN (also .zst, .gz, .bz2), .fsd and the other formats; given several times, the files are read
    /// as one, in this order [default: the sample games that come with fsbench]
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
}

impl SeveralData {
    /// The data files. The file of the sample games is created if it is missing.
    pub fn files(&self) -> Result<DataFiles, Failure> {
        match DataFiles::new(self.data.clone()) {
            Some(files) => Ok(files),
            None => Ok(Data { data: None }.path()?.into()),
        }
    }
}

impl Data {
    /// The data file. The file of the sample games is created if it is missing.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        let failed = |error: DataError| if error.is_request() { Failure::request(error) } else { Failure::work(error) };
        if let Some(data) = &self.data {
            return Ok(data.clone());
        }
        let games = sample_games().map_err(failed)?;
        note!("without --data: the sample games that come with fsbench, {}", games.display());
        Ok(games)
    }
}
