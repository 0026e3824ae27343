//! Errors of networks and their files.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::bullet::BulletError;
use super::nnue::NnueError;
use crate::features::{FeatureError, Identity};
use crate::json::JsonError;
use crate::output::OutputError;

#[derive(Debug, Error)]
pub enum NetError {
    #[error("cannot read {path}: {reason}")]
    Read { path: PathBuf, reason: io::Error },
    #[error(transparent)]
    Write(#[from] OutputError),
    #[error("{path} is not a complete safetensors file ({reason}); was it only partly copied?")]
    Container { path: PathBuf, reason: safetensors::SafeTensorError },
    #[error("{path} is {what}, not a network")]
    NotNetwork { path: PathBuf, what: String },
    #[error("{path} has no `{key}` in its metadata: it is not a {kind} written by fsbench")]
    Foreign { path: PathBuf, key: &'static str, kind: &'static str },
    #[error("{path}: the metadata entry is invalid: {reason}")]
    Header { path: PathBuf, reason: JsonError },
    #[error("{path} has format version {found}; this fsbench reads version {known}")]
    Version { path: PathBuf, found: u32, known: u32 },
    #[error("{path} is damaged: its contents do not match its checksum; copy it again from where it is whole")]
    Damaged { path: PathBuf },
    #[error("{path}: tensor `{name}` should be {expected}, but is {found}")]
    Tensor { path: PathBuf, name: String, expected: String, found: String },
    #[error("{path}: {reason}")]
    Content { path: PathBuf, reason: Box<NetError> },
    #[error("{path}: {reason}")]
    Nnue { path: PathBuf, reason: NnueError },
    #[error("{path}: {reason}")]
    Bullet { path: PathBuf, reason: BulletError },
    #[error("no Stockfish architecture has features {set} and shape {shape}; known are {known}")]
    NoArchitecture { set: String, shape: String, known: String },
    #[error("the feature-set definition stored in the file is invalid: {0}")]
    Definition(FeatureError),
    #[error("the file gives its feature set `{name}` the identity {stored}, but its definition has {rebuilt}")]
    Inconsistent { name: String, stored: Identity, rebuilt: Identity },
    #[error(
        "the network belongs to feature set `{name}` ({stored}), not to `{wanted}` ({identity}); use its own set or \
         another network"
    )]
    OtherSet { name: String, stored: Identity, wanted: String, identity: Identity },
    #[error("invalid network shape: {0}")]
    Shape(String),
    #[error("the rule of the output buckets is wrong: {0}")]
    BucketRule(FeatureError),
    #[error("quantisation scheme: {0}")]
    Scheme(String),
    #[error(
        "{place} is {value}, outside ±{limit}, the range of scheme `{scheme}`; train with the limits of that scheme"
    )]
    Range { place: String, value: f64, limit: f64, scheme: String },
}

impl NetError {
    /// Whether the request is wrong (a file or an option), rather than the work failed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        !matches!(self, NetError::Write(_) | NetError::Range { .. })
    }
}
