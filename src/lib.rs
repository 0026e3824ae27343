//! fsbench: which feature set should an NNUE network use?
//!
//! A feature set is a few lines of TOML; from that one definition come the encoder, the training batches, the quantised
//! network, the incremental engine and the comparison. Modules below stand in import order: each may use those above it
//! and never those below (`tests/layers.rs` checks).
//!
//! `report` sees neither libtorch nor the engine; `train` alone sees libtorch; only `cli` prints.

pub mod units;

pub mod statistics;

pub mod text;

pub mod output;

pub mod chess;

pub mod features;

pub mod data;

pub mod pipeline;

pub mod service;

pub mod net;

pub mod engine;

pub mod train;

pub mod record;

pub mod search;

pub mod measure;

pub mod play;

pub mod experiment;

pub mod report;

pub mod cli;

#[cfg(test)]
#[path = "../tests/common/skip.rs"]
mod skip;
