//! What can be wrong with a network or its file.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::bullet::BulletError;
use super::nnue::NnueError;
use crate::features::{FeatureError, Identity};
use crate::output::OutputError;

#[derive(Debug, Error)]
pub enum NetError {
    #[error("cannot read {path}: {reason}")]
    Read { path: PathBuf, reason: io::Error },
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] OutputError),
    /// The container is broken: truncated, or not a safetensors file at all.
    #[error("{path} is no whole safetensors file ({reason}); was the copy cut short?")]
    Container { path: PathBuf, reason: safetensors::SafeTensorError },
    #[error("{path} has no `{key}` in its metadata: it was not written by fsbench as a {kind}")]
    Foreign { path: PathBuf, key: &'static str, kind: &'static str },
    #[error("{path}: its metadata are broken: {reason}")]
    Header { path: PathBuf, reason: serde_json::Error },
    #[error("{path} is version {found} of the format; this fsbench reads version {known}")]
    Version { path: PathBuf, found: u32, known: u32 },
    #[error("{path}: tensor `{name}` should be {expected}, but is {found}")]
    Tensor { path: PathBuf, name: String, expected: String, found: String },
    #[error("{path}: {reason}")]
    Content { path: PathBuf, reason: Box<NetError> },
    #[error("{path}: {reason}")]
    Nnue { path: PathBuf, reason: NnueError },
    #[error("{path}: {reason}")]
    Bullet { path: PathBuf, reason: BulletError },
    #[error("no architecture of Stockfish's has {set} and {shape}; there are {known}")]
    NoArchitecture { set: String, shape: String, known: String },
    #[error("the definition stored in the file is broken: {0}")]
    Definition(FeatureError),
    #[error("the file says its feature set `{name}` has identity {stored}, but the definition in it gives {rebuilt}")]
    Inconsistent { name: String, stored: Identity, rebuilt: Identity },
    #[error(
        "the network was made for `{name}` ({stored}), not for `{wanted}` ({identity}); use its own set or another network"
    )]
    OtherSet { name: String, stored: Identity, wanted: String, identity: Identity },
    #[error("the network's shape is wrong: {0}")]
    Shape(String),
    #[error("the quantisation scheme is wrong: {0}")]
    Scheme(String),
    #[error("{place} is {value}, outside ±{limit} which scheme `{scheme}` can hold; train with the scheme's limits")]
    Range { place: String, value: f64, limit: f64, scheme: String },
}

impl NetError {
    /// Whether a file or a wish is wrong, rather than the work.
    #[must_use]
    pub fn is_request(&self) -> bool {
        !matches!(self, NetError::Write(_) | NetError::Range { .. })
    }
}
