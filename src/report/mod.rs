//! Reports: records → summaries with intervals → tables, plots, Markdown, CSV, Parquet and one HTML page.
//!
//! Reads `record` only: it builds and runs without libtorch and without the engine. Everything here returns text or
//! bytes; [`write`] alone touches files.

mod board;
mod dataset;
mod figures;
mod frames;
mod html;
mod markdown;
mod numbers;
mod plot;
mod summary;
mod table;
mod text;
mod write;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use crate::statistics::{Estimate, student_t_quantile};
pub use board::{Mark, MarkedBoard, Tone, board_svg};
pub use dataset::dataset_figures;
pub use frames::Frames;
pub use html::html;
pub use markdown::markdown;
pub use plot::{Figure, PlotError};
pub use summary::{Curve, MethodSummary, Summary, SummaryRow};
pub use text::{WIDTH, text};
pub use write::{WriteError, Written, write};
