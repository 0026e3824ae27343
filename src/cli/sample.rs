//! The option `--data` of commands that fall back on the sample games.

use std::path::PathBuf;

use super::Failure;
use crate::data::DataError;
use crate::pipeline::sample_games;

/// Games or samples in any format; without `--data`, the sample games that come with fsbench.
#[derive(Clone, Debug, clap::Args)]
pub struct Data {
    /// Games or samples: PGN (also .zst, .gz, .bz2), .fsd and the other formats [default: the sample games that come
    /// with fsbench]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

impl Data {
    /// The data file. The file of the sample games is created if it is missing.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        let failed = |error: DataError| if error.is_request() { Failure::request(error) } else { Failure::work(error) };
        self.data.clone().map_or_else(|| sample_games().map_err(failed), Ok)
    }
}
