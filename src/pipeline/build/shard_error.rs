//! Why shards cannot be merged.

use std::path::PathBuf;

use thiserror::Error;

use crate::data::DataError;
use crate::units::Shard;

/// Why shards cannot be built or merged.
#[derive(Debug, Error)]
pub enum ShardError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("{} is not a shard; build shards with `fsbench dataset build … --shard I/N`", path.display())]
    NotShard { path: PathBuf },
    #[error(
        "{} was built by fsbench {found}, this is {}: build the shards and merge them with the same version",
        path.display(), env!("CARGO_PKG_VERSION")
    )]
    Version { path: PathBuf, found: String },
    #[error("{} is damaged (byte {at}: {reason}): build this shard again", path.display())]
    Damaged { path: PathBuf, at: u64, reason: String },
    #[error(
        "{} belongs to another build than {} ({}); merge the shards of one command, which differ in --shard and --out \
         only",
        path.display(), other.display(), differences.join("; ")
    )]
    Foreign { path: PathBuf, other: PathBuf, differences: Vec<String> },
    #[error("{} and {} are both shard {shard}: give one of them", path.display(), other.display())]
    Repeated { path: PathBuf, other: PathBuf, shard: Shard },
    #[error(
        "{}; give their files too, or build them with the command of {} and --shard {}",
        missing.iter().map(describe).collect::<Vec<_>>().join(", "), other.display(), missing[0].0
    )]
    /// The missing shards with their inputs.
    Missing { missing: Vec<(Shard, Vec<String>)>, other: PathBuf },
    #[error(
        "{} was built for scores by an engine: give --engine and its limit here, or build the shards without --engine",
        path.display()
    )]
    NeedsEngine { path: PathBuf },
    #[error(
        "{} holds the scores of its inputs, not positions for an engine: leave out --engine here, or give it when the \
         shards are built",
        path.display()
    )]
    HasScores { path: PathBuf },
    #[error("standard input cannot be one of several shards' inputs; write it to a file first")]
    Stdin,
    #[error("there is no shard to merge")]
    None,
}

impl ShardError {
    /// Whether the request was wrong; otherwise the work failed on the way.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        match self {
            ShardError::Data(error) => error.is_request(),
            _ => true,
        }
    }
}

/// The most inputs that a message names.
const NAMED_INPUTS: usize = 3;

fn describe((shard, inputs): &(Shard, Vec<String>)) -> String {
    let named = inputs[..inputs.len().min(NAMED_INPUTS)].join(", ");
    match inputs.len() {
        0 => format!("shard {shard} is missing (it has no input, but its file is needed)"),
        count if count > NAMED_INPUTS => {
            format!("shard {shard} is missing (with {named} and {} more)", count - NAMED_INPUTS)
        }
        _ => format!("shard {shard} is missing (with {named})"),
    }
}
