//! The container of network files and checkpoints: safetensors with one metadata entry, written atomically.
//!
//! The entry is the header as JSON in an envelope ([`envelope`]) with the BLAKE3 hash of that JSON and of all tensors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensorError, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::file::Origin;
use super::other_kind::other_kind;
use super::{NetError, Scheme, Shape};
use crate::json;
use crate::output::OutputFile;
use crate::output::checked::{envelope, open_envelope};
use crate::units::sort_by_key;

const KEY: &str = "fsbench";
pub(super) const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(super) struct NetHeader {
    pub(super) version: u32,
    pub(super) kind: FileKind,
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// Free text, for networks converted from a file that had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) shape: Shape,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scheme: Option<Scheme>,
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub(super) training: serde_json::Value,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileKind {
    Network,
    Checkpoint,
}

impl FileKind {
    const fn name(self) -> &'static str {
        match self {
            FileKind::Network => "network",
            FileKind::Checkpoint => "checkpoint",
        }
    }
}

/// A tensor as bytes, to be written.
pub(super) struct TensorBytes {
    dtype: Dtype,
    pub(super) shape: Vec<usize>,
    data: Vec<u8>,
}

impl View for &TensorBytes {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        (&self.data).into()
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }
}

pub(super) fn vector<T: Copy, const N: usize>(
    name: &str,
    values: &[T],
    bytes: fn(T) -> [u8; N],
    dtype: Dtype,
) -> (String, TensorBytes) {
    let mut data = Vec::with_capacity(values.len() * N);
    for value in values {
        data.extend_from_slice(&bytes(*value));
    }
    (name.into(), TensorBytes { dtype, shape: vec![values.len()], data })
}

pub(super) fn matrix<T: Copy, const N: usize>(
    name: &str,
    values: &[T],
    bytes: fn(T) -> [u8; N],
    dtype: Dtype,
    columns: usize,
) -> (String, TensorBytes) {
    let (name, flat) = vector(name, values, bytes, dtype);
    (name, TensorBytes { shape: vec![values.len() / columns.max(1), columns], ..flat })
}

pub(super) fn write(path: &Path, header: &NetHeader, tensors: &[(String, TensorBytes)]) -> Result<(), NetError> {
    let json = json::to_text(header).map_err(|reason| NetError::Header { path: path.into(), reason: reason.into() })?;
    let sum = checksum(&json, tensors.iter().map(|(name, tensor)| (&name[..], tensor)));
    let metadata = HashMap::from([(KEY.to_owned(), envelope(&json, sum))]);
    let container = |reason| NetError::Container { path: path.into(), reason };
    let tensors = tensors.iter().map(|(name, tensor)| (name, tensor));
    let bytes = safetensors::serialize(tensors, Some(metadata)).map_err(container)?;
    let mut file = OutputFile::create(path)?;
    file.put(&bytes)?;
    Ok(file.finish()?)
}

/// BLAKE3 of a header's JSON, and of the tensors by name.
fn checksum<'a, V: View + 'a>(json: &str, tensors: impl Iterator<Item = (&'a str, V)>) -> blake3::Hash {
    let mut tensors: Vec<(&str, V)> = tensors.collect();
    sort_by_key(&mut tensors, &|(name, _)| *name);
    let mut hasher = blake3::Hasher::new();
    hasher.update(json.as_bytes());
    for (name, tensor) in &tensors {
        hasher.update(format!("\n{name} {:?} {:?}\n", tensor.dtype(), tensor.shape()).as_bytes());
        hasher.update(&tensor.data());
    }
    hasher.finalize()
}

/// Bytes of the number that a safetensors file begins with: the length of its header.
const LENGTH: u64 = 8;
/// The longest header that the library reads.
const MAX_HEADER: u64 = 100_000_000;

/// The bytes of a file. One whose header is broken or describes another length is not read beyond its header.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, NetError> {
    let failed = |reason| NetError::Read { path: path.into(), reason };
    let mut file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let mut bytes = Vec::new();
    if about.is_file() {
        file.by_ref().take(LENGTH).read_to_end(&mut bytes).map_err(failed)?;
        let header = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length)).min(MAX_HEADER);
        file.by_ref().take(header).read_to_end(&mut bytes).map_err(failed)?;
        let json = bytes.get(LENGTH as usize..).unwrap_or_default();
        // The caller, who gets the header alone, names the fault.
        let Ok(metadata) = json::from_bytes::<Metadata>(json) else { return Ok(bytes) };
        if (metadata.data_len() as u64).saturating_add(LENGTH + header) != about.len() {
            let reason = SafeTensorError::MetadataIncompleteBuffer;
            return Err(NetError::Container { path: path.into(), reason });
        }
        bytes.reserve_exact(metadata.data_len());
    }
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A file with a valid container and header.
pub(super) struct Container<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
    pub(super) header: NetHeader,
}

impl<'a> Container<'a> {
    pub(super) fn new(path: &'a Path, bytes: &'a [u8], kind: FileKind) -> Result<Container<'a>, NetError> {
        let container = |reason| NetError::Container { path: path.into(), reason };
        let unreadable = |reason| other_kind(path, bytes).unwrap_or_else(|| container(reason));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
        let foreign = || NetError::Foreign { path: path.into(), key: KEY, kind: kind.name() };
        let entry = metadata.metadata().as_ref().and_then(|entries| entries.get(KEY)).ok_or_else(foreign)?;
        let damaged = || NetError::Damaged { path: path.into() };
        let (json, stored) = open_envelope(entry).map_err(|_| damaged())?;
        let header: NetHeader =
            json::from_text(json).map_err(|reason| NetError::Header { path: path.into(), reason })?;
        if header.version != VERSION {
            return Err(NetError::Version { path: path.into(), found: header.version, known: VERSION });
        }
        if header.kind != kind {
            return Err(foreign());
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(container)?;
        if checksum(json, tensors.iter()).to_hex().as_str() != stored {
            return Err(damaged());
        }
        let file = Container { path, tensors, header };
        file.header.shape.validate().map_err(|error| file.content(error))?;
        Ok(file)
    }

    pub(super) fn foreign(&self) -> NetError {
        NetError::Foreign { path: self.path.into(), key: KEY, kind: self.header.kind.name() }
    }

    pub(super) fn content(&self, error: NetError) -> NetError {
        NetError::Content { path: self.path.into(), reason: Box::new(error) }
    }

    /// The numbers of a tensor. Type and dimensions are checked before anything is allocated.
    pub(super) fn tensor<T, const N: usize>(
        &self,
        name: &str,
        dtype: Dtype,
        dimensions: &[usize],
        number: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, NetError> {
        let mismatch = |found: String| NetError::Tensor {
            path: self.path.into(),
            name: name.into(),
            expected: format!("{dtype:?} {dimensions:?}"),
            found,
        };
        let view = self.tensors.tensor(name).map_err(|_| mismatch("missing".into()))?;
        if view.dtype() != dtype || view.shape() != dimensions {
            return Err(mismatch(format!("{:?} {:?}", view.dtype(), view.shape())));
        }
        let (numbers, _) = view.data().as_chunks::<N>();
        Ok(numbers.iter().map(|bytes| number(*bytes)).collect())
    }
}
