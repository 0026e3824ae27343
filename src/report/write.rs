//! Writes a report's files, each atomically.

use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;
use thiserror::Error;

use super::data_frames::{self, DataFrames};
use super::figures::Figure;
use super::markdown::loop_page;
use super::plot::PlotError;
use super::{Summary, WIDTH, html, markdown, text};
use crate::record::{RecordFileError, Results, write_atomically};

/// Failure to write a report.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error(transparent)]
    File(#[from] RecordFileError),
    #[error(transparent)]
    Plot(#[from] PlotError),
    #[error("cannot make the table '{table}': {source}")]
    Frame { table: String, source: PolarsError },
}

/// Writes `report.txt`, `report.md`, `report.html`, `tables/*.csv|parquet` and `plots/*.svg|png` into `folder`, of a
/// loop also `loop.md`, and returns their paths.
///
/// # Errors
/// When a file cannot be written or a plot cannot be drawn. Files written before the error stay.
pub fn write(summary: &Summary, results: &Results, folder: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let mut written = Vec::new();
    let mut put = |name: String, bytes: &[u8]| -> Result<(), RecordFileError> {
        let path = folder.join(name);
        write_atomically(&path, bytes)?;
        written.push(path);
        Ok(())
    };
    put("report.txt".into(), text(summary, WIDTH).as_bytes())?;
    put("report.md".into(), markdown(summary).as_bytes())?;
    put("report.html".into(), html(summary)?.as_bytes())?;
    if summary.learning_loop.is_some() {
        put("loop.md".into(), loop_page(summary).as_bytes())?;
    }
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
