//! The data pipeline: builds, converts, verifies and describes `.fsd` files, and has engines score positions.
//!
//! [`build()`] turns games into the samples of a `.fsd` file, and can have an engine score them ([`label`]);
//! [`open_or_build`] builds once and finds the file in the cache afterwards.
//! Whatever writes a `.fsd` file writes a [`Manifest`] beside it.

pub mod build;
mod cache;
pub mod convert;
mod embedded_files;
pub mod generation;
mod info;
mod inputs;
mod journal;
pub mod label;
pub mod manifest;
mod scorer_identity;
pub mod stats;
pub mod uci;
pub mod verify;

pub(crate) use cache::{CacheEvent, OpenedData, open_unchecked_or_build};

pub use build::{BuildError, BuildJob, BuildOptions, build};
pub use cache::{DataOrigin, check_applied, default_cache, open_or_build, open_or_build_all, open_or_build_with};
pub use embedded_files::{sample_games, sample_openings};
pub use info::{FileInfo, file_info};
pub use inputs::{WeightedInput, inputs, split_weight};
pub use journal::{Journal, JournalError, journal_path};
pub use manifest::{Manifest, manifest_path};
pub use scorer_identity::{NetworkIdentity, NetworkSearch, ScorerIdentity};
