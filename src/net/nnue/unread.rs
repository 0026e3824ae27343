//! Networks that Stockfish had in development between the releases 18 and 19. fsbench has no definitions of their
//! features, and names them.
//!
//! Several have the same header. They differ in the number of threats, whose weights of one byte each stand between the
//! biases and a compressed array, and in the inputs of the last layer. SFNNv11 and SFNNv12 have the header of
//! Stockfish 18.

use super::architecture::{HALF_KA_V2_HM, THREATS_HASH, dense_hash};
use super::{Architecture, leb128};

/// A network that is known and not read.
struct UnreadNetwork {
    name: &'static str,
    /// When it was Stockfish's own.
    period: &'static str,
    version: u32,
    /// The hash of its features.
    feature_hash: u32,
    /// The number of threats.
    threats: usize,
    /// Outputs of the first dense layer.
    outputs: u32,
    /// Inputs of the last one, with padding.
    last_inputs: usize,
}

const L1: usize = 1024;
const HIDDEN: usize = 32;

/// Threats and half-ka-v2-hm, each hash rotated by one bit more than the next.
const COMBINED_HASH: u32 = THREATS_HASH.rotate_left(1) ^ HALF_KA_V2_HM.2;

const V11: UnreadNetwork = UnreadNetwork {
    name: "SFNNv11",
    period: "4 to 13 February 2026",
    version: 0x7AF3_2F20,
    feature_hash: THREATS_HASH,
    threats: 66_864,
    outputs: 16,
    last_inputs: 32,
};
const V12: UnreadNetwork = UnreadNetwork { name: "SFNNv12", period: "13 to 18 February 2026", threats: 60_144, ..V11 };
const V13: UnreadNetwork = UnreadNetwork { name: "SFNNv13", period: "18 February to 7 March 2026", outputs: 32, ..V12 };
const V13_COMBINED: UnreadNetwork =
    UnreadNetwork { period: "7 March to 2 April 2026", feature_hash: COMBINED_HASH, ..V13 };
const V14: UnreadNetwork =
    UnreadNetwork { name: "SFNNv14", period: "2 April to 27 May 2026", threats: 60_720, ..V13_COMBINED };
const V14_BY_RANGE: UnreadNetwork = UnreadNetwork { period: "27 May to 3 July 2026", version: 0x6A44_8AFA, ..V14 };
const V15: UnreadNetwork =
    UnreadNetwork { name: "SFNNv15", period: "3 to 20 July 2026", last_inputs: 128, ..V14_BY_RANGE };

static UNREAD: [UnreadNetwork; 7] = [V11, V12, V13, V13_COMBINED, V14, V14_BY_RANGE, V15];

impl UnreadNetwork {
    fn layers_hash(&self) -> u32 {
        dense_hash(2 * L1 as u32, &[self.outputs, HIDDEN as u32, 1])
    }

    fn hash(&self) -> u32 {
        self.feature_hash ^ (2 * L1 as u32) ^ self.layers_hash()
    }

    /// Whether the parts of a whole file stand where this network has them.
    fn fits(&self, bytes: &[u8]) -> bool {
        let outputs = self.outputs as usize;
        let stack = 4 + outputs * (4 + L1) + HIDDEN * (4 + 2 * outputs) + 4 + self.last_inputs;
        let stands = |at: Option<usize>, part: &[u8]| {
            at.and_then(|at| bytes.get(at..)).is_some_and(|rest| rest.starts_with(part))
        };
        stands(threats_start(bytes).map(|start| start + L1 * self.threats), leb128::MAGIC)
            && stands(bytes.len().checked_sub(stack), &self.layers_hash().to_le_bytes())
    }
}

/// Where the weights of threats begin: behind the header, the description, the transformer's hash and its biases.
fn threats_start(bytes: &[u8]) -> Option<usize> {
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let biases = 12 + number(8)? + 4;
    let length = biases + leb128::MAGIC.len();
    Some(length + 4 + number(length)?)
}

/// What a file is that is none of the networks that fsbench reads, by its header; where that is a network's that
/// fsbench reads, or several networks', by its parts, as far as they are there.
pub fn describe(bytes: &[u8], version: u32, hash: u32) -> Option<String> {
    let by_header: Vec<_> = UNREAD.iter().filter(|one| one.version == version && one.hash() == hash).collect();
    let fitting: Vec<_> = by_header.iter().copied().filter(|one| one.fits(bytes)).collect();
    let is_read = Architecture::ALL.iter().any(|one| one.version() == version && one.hash() == hash);
    let found = if fitting.is_empty() && !is_read { by_header } else { fitting };
    let names: Vec<String> = found.iter().map(|one| format!("{} ({})", one.name, one.period)).collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::nnue::{Nnue, NnueError};

    /// A file with these parts and nothing but zeros between them.
    fn file(network: &UnreadNetwork) -> Vec<u8> {
        let mut bytes = [network.version, network.hash(), 4].map(u32::to_le_bytes).concat();
        bytes.extend(b"text");
        bytes.extend((network.feature_hash ^ (2 * L1 as u32)).to_le_bytes());
        let array = |bytes: &mut Vec<u8>, count: usize| {
            bytes.extend(leb128::MAGIC);
            bytes.extend((count as u32).to_le_bytes());
            bytes.resize(bytes.len() + count, 0);
        };
        array(&mut bytes, L1);
        bytes.resize(bytes.len() + L1 * network.threats, 0);
        array(&mut bytes, 8);
        array(&mut bytes, 8);
        let outputs = network.outputs as usize;
        for _ in 0..8 {
            bytes.extend(network.layers_hash().to_le_bytes());
            let layers = [(L1, outputs), (2 * outputs, HIDDEN), (network.last_inputs, 1)];
            let size: usize = layers.iter().map(|(inputs, outputs)| outputs * (4 + inputs)).sum();
            bytes.resize(bytes.len() + size, 0);
        }
        bytes
    }

    #[test]
    fn networks_between_the_releases_are_named() {
        for network in &UNREAD {
            let error = Nnue::parse(&file(network), None).expect_err("not read");
            let name = format!("{} ({})", network.name, network.period);
            assert_eq!(error, NnueError::Unread { network: name.clone() });
            assert!(error.to_string().contains(&format!("a network of {name}, when Stockfish")), "{error}");
        }
    }

    /// By a header alone, all that have it are named. Stockfish 18's is not in doubt.
    #[test]
    fn headers_tell_as_much_as_they_can() {
        let named = |network: &UnreadNetwork, bytes: usize| match Nnue::parse(&file(network)[..bytes], None) {
            Err(NnueError::Unread { network }) => network,
            other => format!("{:?}", other.map(|nnue| nnue.architecture)),
        };
        assert_eq!(named(&V13, 8), "SFNNv13 (18 February to 7 March 2026)");
        let both = "SFNNv13 (7 March to 2 April 2026) or SFNNv14 (2 April to 27 May 2026)";
        assert_eq!(named(&V14, 5000), both);
        assert_eq!(named(&V15, 8), "SFNNv14 (27 May to 3 July 2026) or SFNNv15 (3 to 20 July 2026)");
        assert!(named(&V11, 5000).contains("Truncated"));
    }

    /// Of the files that Stockfish's development version had in these months.
    #[test]
    fn hashes_are_those_of_stockfish() {
        assert_eq!(V11.hash(), Architecture::Sf18.hash());
        assert_eq!(V12.hash(), V11.hash());
        assert_eq!(V13.feature_hash ^ (2 * L1 as u32), Architecture::Sf18.transformer_hash());
        assert_eq!(V14.feature_hash, 0x6165_D5C9);
        assert_eq!(V15.layers_hash(), Architecture::Sf19.layers_hash());
    }
}
