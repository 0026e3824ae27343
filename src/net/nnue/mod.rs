//! Stockfish's `.nnue` files, for the architectures of Stockfish 12 to 19.
//!
//! Little-endian throughout (Stockfish, `nnue/evaluate_nnue.cpp` and the layers' headers):
//!
//! | bytes | content |
//! |---|---|
//! | 4 | version: 7AF32F16 up to Stockfish 13, 7AF32F20 since 14, 6A448AFA since 19 |
//! | 4 | hash of the architecture: the feature transformer's hash xor the dense layers' |
//! | 4 + n | length n of a description, the description |
//! | 4 | the feature transformer's hash |
//! | 2·l1 | its biases, i16 |
//! | 2·l1·features | its weights, i16, feature by feature |
//! | 4·buckets·features | since 14: PSQT weights, i32, feature by feature |
//! | | then for each bucket: |
//! | 4 | the dense layers' hash |
//! | 4·outputs | for each layer: biases, i32 |
//! | outputs·⌈inputs⌉ | and weights, i8, output by output, each row padded with zeros to a multiple of 32 |
//!
//! Since Stockfish 16 each of the transformer's three arrays is compressed: 17 bytes `COMPRESSED_LEB128`, a length in
//! bytes as u32, then that many bytes of signed LEB128. Stockfish 18 compresses biases, the weights of HalfKAv2_hm and
//! the PSQT values; the weights of threats, which come first, are i8 and not compressed. Stockfish 19 has threats,
//! pairs of pawns (i8 likewise) and HalfKAv2_hm, the PSQT values of each after its weights.

mod architecture;
mod error;
mod leb128;
mod read;
#[cfg(test)]
mod tests;
mod unread;
mod write;

pub use architecture::Architecture;
use architecture::{Encoding, WeightRange};
pub use error::NnueError;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{NetError, NetFile, Origin, QuantNet, Scheme, Shape};
use crate::features::FeatureSet;
use crate::output::OutputFile;

/// Larger files are refused without reading them; the largest known network has 109 million bytes.
const MAX_FILE: u64 = 1 << 28;

/// Dense rows are padded to a multiple of this many inputs.
const PADDING: usize = 32;

/// A network with its architecture and description.
#[derive(Clone, Debug, PartialEq)]
pub struct Nnue {
    pub architecture: Architecture,
    /// Free text, usually English.
    pub description: Vec<u8>,
    pub net: QuantNet,
}

/// Whether a file starts with the version of a `.nnue` file.
///
/// # Errors
/// When the file cannot be read.
pub fn is_nnue(path: &Path) -> Result<bool, NetError> {
    let read = |reason| NetError::Read { path: path.into(), reason };
    let mut start = Vec::with_capacity(4);
    File::open(path).map_err(read)?.take(4).read_to_end(&mut start).map_err(read)?;
    Ok(Architecture::ALL.iter().any(|architecture| start == architecture.version().to_le_bytes()))
}

impl Nnue {
    /// Loads a file. Some architectures have the same header: Stockfish 15 and 15.1, and the small networks of 16.1 and
    /// 18. Without `wanted`, a file is taken for 15.1 if a weight of the second layer that 15 does not use is not zero,
    /// and a small one for 16.1's.
    ///
    /// # Errors
    /// When the file cannot be read, is too short or too long, is of an unknown architecture or not of `wanted`, or
    /// contains a wrong hash or number; the error names the byte.
    pub fn load(path: &Path, wanted: Option<Architecture>) -> Result<Nnue, NetError> {
        let read = |reason| NetError::Read { path: path.into(), reason };
        let file = File::open(path).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        let invalid = |reason| NetError::Nnue { path: path.into(), reason };
        if size > MAX_FILE {
            return Err(invalid(NnueError::TooLarge { size, limit: MAX_FILE }));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(read)?;
        Nnue::parse(&bytes, wanted).map_err(invalid)
    }

    /// Reads a network from the bytes of a file.
    ///
    /// # Errors
    /// As [`Nnue::load`].
    pub fn parse(bytes: &[u8], wanted: Option<Architecture>) -> Result<Nnue, NnueError> {
        read::parse(bytes, wanted)
    }

    /// The file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        write::bytes(self)
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), NetError> {
        let mut file = OutputFile::create(path)?;
        file.put(&self.to_bytes())?;
        Ok(file.finish()?)
    }

    /// The network with the shipped definition of its features.
    ///
    /// # Errors
    /// As [`Architecture::feature_set`].
    pub fn into_file(self) -> Result<NetFile, NetError> {
        let set = self.architecture.feature_set()?;
        Ok(NetFile { origin: Origin::of(&set), net: self.net })
    }

    /// Converts an fsbench network to the `.nnue` file of a matching architecture.
    ///
    /// # Errors
    /// When no architecture has the network's features, shape and scales; lists the architectures.
    pub fn from_file(file: NetFile, description: &str) -> Result<Nnue, NetError> {
        let scales = |scheme: &Scheme| Scheme { name: String::new(), pawn_value: 1, ..scheme.clone() };
        let widths = |shape: &Shape| Shape { narrow: 0, ..shape.clone() };
        for architecture in Architecture::ALL {
            let fits = widths(&architecture.shape()) == widths(&file.net.shape)
                && scales(&architecture.scheme()) == scales(&file.net.scheme)
                && *architecture.feature_set()?.identity() == file.origin.identity;
            if fits {
                architecture.check_narrow(&file.net)?;
                return Ok(Nnue { architecture, description: description.into(), net: file.net });
            }
        }
        let known = Architecture::ALL.map(|one| format!("{one}: {} {}", one.set_name(), one.shape())).join("; ");
        Err(NetError::NoArchitecture { set: file.origin.name, shape: file.net.shape.to_string(), known })
    }
}

impl Architecture {
    /// # Errors
    /// When a weight does not fit the i8 that the file has for its feature.
    fn check_narrow(self, net: &QuantNet) -> Result<(), NetError> {
        let Encoding::ByRange { ranges, .. } = self.encoding() else { return Ok(()) };
        let mut first = 0;
        for WeightRange { features, is_narrow } in *ranges {
            let start = first as usize * net.shape.l1;
            let end = (first + features) as usize * net.shape.l1;
            let is_too_large = |weight: &i16| *is_narrow && i8::try_from(*weight).is_err();
            if let Some(at) = net.ft_weights[start..end].iter().position(is_too_large) {
                let feature = first as usize + at / net.shape.l1;
                let neuron = at % net.shape.l1;
                return Err(NetError::Range {
                    place: format!("ft: the integer weight of neuron {neuron}, feature {feature}"),
                    value: f64::from(net.ft_weights[start + at]),
                    limit: f64::from(i8::MAX),
                    scheme: net.scheme.name.clone(),
                });
            }
            first += features;
        }
        Ok(())
    }

    /// The shipped definition of its features.
    ///
    /// # Errors
    /// When the definition is missing, does not compile or has another number of features.
    pub fn feature_set(self) -> Result<FeatureSet, NetError> {
        let set = FeatureSet::shipped(self.set_name()).map_err(NetError::Definition)?;
        if set.num_features() == self.shape().features {
            Ok(set)
        } else {
            Err(NetError::Shape(format!(
                "{self} has {} features, but the definition {} has {}; use the shipped definition",
                self.shape().features,
                self.set_name(),
                set.num_features()
            )))
        }
    }
}
