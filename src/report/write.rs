//! A report's files, each written as a whole.

use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;
use thiserror::Error;

use super::data_frames::{self, DataFrames};
use super::plot::{Figure, PlotError};
use super::{Summary, WIDTH, html, markdown, text};
use crate::record::{RecordFileError, Results, write_atomically};

/// Why a report is not complete.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error(transparent)]
    File(#[from] RecordFileError),
    #[error(transparent)]
    Plot(#[from] PlotError),
    #[error("cannot make the table '{table}': {source}")]
    Frame { table: String, source: PolarsError },
}

/// What was written, in order.
#[derive(Clone, Debug, Default)]
pub struct WrittenFiles {
    pub files: Vec<PathBuf>,
}

/// Writes `report.html`, `report.md`, `report.txt`, `tables/*.csv|parquet` and `plots/*.svg|png` into `folder`.
///
/// # Errors
/// When a file cannot be written or a plot not drawn; files written before that stay.
pub fn write(summary: &Summary, results: &Results, folder: &Path) -> Result<WrittenFiles, WriteError> {
    let mut written = WrittenFiles::default();
    let mut put = |name: String, bytes: &[u8]| -> Result<(), RecordFileError> {
        let path = folder.join(name);
        write_atomically(&path, bytes)?;
        written.files.push(path);
        Ok(())
    };
    put("report.txt".into(), text(summary, WIDTH).as_bytes())?;
    put("report.md".into(), markdown(summary).as_bytes())?;
    put("report.html".into(), html(summary)?.as_bytes())?;
    let failed = |table: &str| {
        let table = table.to_owned();
        move |source| WriteError::Frame { table, source }
    };
    let frames = DataFrames::of(summary, results).map_err(failed("summary"))?;
    for (name, frame) in frames.named() {
        put(format!("tables/{name}.csv"), &data_frames::csv(frame).map_err(failed(name))?)?;
        put(format!("tables/{name}.parquet"), &data_frames::parquet(frame).map_err(failed(name))?)?;
    }
    for figure in Figure::all(summary) {
        put(format!("plots/{}.svg", figure.name()), figure.svg()?.as_bytes())?;
        put(format!("plots/{}.png", figure.name()), &figure.png()?)?;
    }
    Ok(written)
}
