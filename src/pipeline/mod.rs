//! What is done with games and samples: building `.fsd` files from them, having an engine play games or score positions,
//! converting, verifying and counting.
//!
//! [`build()`] turns games into samples in a `.fsd` file; [`open_or_build`] does so once and finds the file the next
//! time. [`generate`] has engines play games; [`label`] has an engine score positions. Each writes a [`Manifest`] beside
//! its `.fsd` file.

pub mod build;
mod cache;
pub mod convert;
pub mod generate;
mod info;
mod inputs;
mod journal;
pub mod label;
pub mod manifest;
mod sample;
pub mod stats;
pub mod uci;
pub mod verify;

pub use build::{BuildError, BuildJob, BuildOptions, build};
pub use cache::{default_cache, open_or_build, open_or_build_with};
pub use info::{FileInfo, file_info};
pub use inputs::{WeightedInput, inputs};
pub use journal::{JournalError, journal_path};
pub use manifest::{Manifest, manifest_path};
pub use sample::sample_games;
