//! fsbench: which feature set should an NNUE network use?
//!
//! A feature set is defined in a few lines of TOML. The encoder, the training batches, the quantised network, the
//! incremental engine and the comparison all follow from that definition.
//!
//! The modules are listed in import order: each may use only modules above it. `report` uses neither libtorch nor the
//! engine. The program `fsbench` (`main.rs`) adds `cli`, and only `cli` prints. libtorch is used by the program
//! `fsbench-tch` alone, `src/bin/fsbench-tch`. `tests/layers.rs` checks these rules.

/// The package's version and, if it was built in a checkout, the commit.
pub const VERSION: &str = if env!("FSBENCH_COMMIT").is_empty() {
    env!("CARGO_PKG_VERSION")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("FSBENCH_COMMIT"), ")")
};

pub mod units;

pub mod json;

pub mod settings;

pub mod statistics;

pub mod text;

pub mod system;

pub mod output;

pub mod cpu;

pub mod chess;

pub mod features;

pub mod data;

pub mod pipeline;

pub mod service;

pub mod net;

pub mod engine;

pub mod train;

#[cfg(feature = "report")]
pub mod record;

pub mod alpha_beta;

#[cfg(feature = "report")]
pub mod play;

#[cfg(feature = "report")]
pub mod generate;

#[cfg(feature = "report")]
pub mod measure;

#[cfg(feature = "report")]
pub mod experiment;

#[cfg(feature = "report")]
pub mod report;

pub mod export;

#[cfg(feature = "python")]
mod python;

#[cfg(test)]
#[path = "../tests/common/skip.rs"]
mod skip;
