//! Reports: records become a [`Summary`] with intervals, and that becomes text, Markdown, HTML, plots, CSV and Parquet.
//!
//! The tables that all reports share are in `tables`. This module depends on `record` only, so it builds and
//! runs without libtorch and without the engine. All functions return text or bytes; only [`write()`] writes files.

mod comparisons;
mod data_frames;
mod dataset_figures;
mod diagram;
mod equal_speed;
mod figures;
mod gallery;
mod html;
mod learning_loop;
mod markdown;
mod measured;
mod numbers;
mod own_figures;
mod pareto;
mod plain_table;
mod plot;
mod published;
mod scaling;
mod search;
mod strength;
mod summary;
mod table_document;
mod tables;
mod text;
mod training_data;
mod verdict;
mod write;

#[cfg(test)]
mod joined_tests;
#[cfg(test)]
mod test_records;
#[cfg(test)]
mod tests;

pub use crate::statistics::{Estimate, student_t_quantile};
pub use comparisons::{ComparedMeasure, Comparisons, Difference, PairComparison, PartComparison, Statement};
pub use data_frames::DataFrames;
pub use dataset_figures::dataset_figures;
pub use diagram::{Diagram, Highlight, HighlightKind, diagrams_svg};
pub use equal_speed::{EqualSpeed, EqualSpeedRow};
pub use figures::Figure;
pub use gallery::gallery;
pub use html::html;
pub use markdown::markdown;
pub use measured::MeasuredNumbers;
pub use plot::PlotError;
pub use published::{Agreement, PublishedComparison, PublishedElo, PublishedLoss};
pub use scaling::{ScalingSummary, SetCrossing, SetScaling, ShareLoss};
pub use strength::{DoublingElo, Strength};
pub use summary::{Curve, MethodSummary, Summary, SummaryRow};
pub use table_document::{COLUMNS, TableDocument};
pub use text::{WIDTH, text};
pub use training_data::TrainingData;
pub use write::{WriteError, write};
