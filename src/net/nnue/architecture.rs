//! The architectures of Stockfish's networks, as a table.

use std::fmt;
use std::str::FromStr;

use crate::net::{Activation, BucketRule, OutputBuckets, Scheme, Shape};

/// The Stockfish version that a `.nnue` file is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Stockfish 12 and 13.
    Sf12,
    Sf14,
    Sf14_1,
    Sf15,
    Sf15_1,
    Sf16,
    /// Stockfish 16.1's network for most positions.
    Sf16_1,
    /// Stockfish 16.1's network for positions with a large material difference.
    Sf16_1Small,
}

struct ArchitectureData {
    name: &'static str,
    version: u32,
    set: &'static str,
    features: u32,
    feature_hash: u32,
    l1: usize,
    hidden: [usize; 2],
    activation: Activation,
    hidden_activation: Activation,
    /// Whether there is a skip output.
    skip: bool,
    /// Whether there are 8 output buckets with PSQT outputs, rather than one without.
    buckets: bool,
    compressed: bool,
    /// Internal score units per pawn when that version prints scores.
    pawn_value: i32,
}

const HALF_KP: (&str, u32, u32) = ("half-kp", 41_024, 0x5D69_D5B8);
const HALF_KA_V2: (&str, u32, u32) = ("half-ka-v2", 45_056, 0x5F23_4CB8);
const HALF_KA_V2_HM: (&str, u32, u32) = ("half-ka-v2-hm", 22_528, 0x7F23_4CB8);

/// A table row.
const fn row(
    name: &'static str,
    (set, features, feature_hash): (&'static str, u32, u32),
    l1: usize,
    hidden: [usize; 2],
    pawn_value: i32,
) -> ArchitectureData {
    let (activation, hidden_activation) = (Activation::Crelu, Activation::Crelu);
    let (skip, buckets, compressed) = (false, true, false);
    let version = 0x7AF3_2F20;
    ArchitectureData {
        name,
        version,
        set,
        features,
        feature_hash,
        l1,
        hidden,
        activation,
        hidden_activation,
        skip,
        buckets,
        compressed,
        pawn_value,
    }
}

/// A table row of Stockfish 15 or later.
const fn row_since_15(
    name: &'static str,
    l1: usize,
    hidden_activation: Activation,
    compressed: bool,
    pawn: i32,
) -> ArchitectureData {
    let row = row(name, HALF_KA_V2_HM, l1, [15, 32], pawn);
    ArchitectureData { activation: Activation::Pairwise, hidden_activation, skip: true, compressed, ..row }
}

static ROWS: [ArchitectureData; 8] = [
    ArchitectureData { version: 0x7AF3_2F16, buckets: false, ..row("stockfish-12", HALF_KP, 256, [32, 32], 208) },
    row("stockfish-14", HALF_KA_V2, 512, [16, 32], 208),
    row("stockfish-14.1", HALF_KA_V2_HM, 1024, [8, 32], 208),
    row_since_15("stockfish-15", 1024, Activation::Crelu, false, 208),
    row_since_15("stockfish-15.1", 1024, Activation::Dual, false, 361),
    row_since_15("stockfish-16", 1536, Activation::Dual, true, 328),
    row_since_15("stockfish-16.1", 2560, Activation::Dual, true, 356),
    row_since_15("stockfish-16.1-small", 128, Activation::Dual, true, 356),
];

impl Architecture {
    pub const ALL: [Architecture; 8] = [
        Architecture::Sf12,
        Architecture::Sf14,
        Architecture::Sf14_1,
        Architecture::Sf15,
        Architecture::Sf15_1,
        Architecture::Sf16,
        Architecture::Sf16_1,
        Architecture::Sf16_1Small,
    ];

    fn row(self) -> &'static ArchitectureData {
        &ROWS[self as usize]
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The file's first four bytes.
    #[must_use]
    pub fn version(self) -> u32 {
        self.row().version
    }

    /// The name of the shipped feature set.
    #[must_use]
    pub fn set_name(self) -> &'static str {
        self.row().set
    }

    /// Whether the feature transformer is LEB128-compressed.
    #[must_use]
    pub fn compressed(self) -> bool {
        self.row().compressed
    }

    #[must_use]
    pub fn shape(self) -> Shape {
        let row = self.row();
        Shape {
            activation: row.activation,
            hidden_activation: row.hidden_activation,
            skip: row.skip,
            psqt: row.buckets,
            buckets: OutputBuckets { count: if row.buckets { 8 } else { 1 }, rule: BucketRule::Stockfish },
            ..Shape::plain(row.features, row.l1, row.hidden.to_vec())
        }
    }

    /// The scheme, with the pawn value of that version.
    #[must_use]
    pub fn scheme(self) -> Scheme {
        Scheme { pawn_value: self.row().pawn_value, ..Scheme::stockfish() }
    }

    #[must_use]
    pub fn transformer_hash(self) -> u32 {
        self.row().feature_hash ^ self.inputs()
    }

    /// The hash of the dense layers: each layer combines its number of outputs with the hash before it.
    #[must_use]
    pub fn layers_hash(self) -> u32 {
        let layers = self.shape().layer_sizes();
        let mut hash = 0xEC42_E90D ^ self.inputs();
        for (index, (_, outputs)) in layers.iter().enumerate() {
            hash = 0xCC03_DAE4u32.wrapping_add(*outputs as u32) ^ hash.rotate_right(1);
            if index + 1 < layers.len() {
                hash = hash.wrapping_add(0x538D_24C7);
            }
        }
        hash
    }

    #[must_use]
    pub fn hash(self) -> u32 {
        self.transformer_hash() ^ self.layers_hash()
    }

    /// The width of both accumulators together.
    fn inputs(self) -> u32 {
        2 * self.row().l1 as u32
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Architecture {
    type Err = String;

    /// Parses a name such as `stockfish-15.1`.
    fn from_str(text: &str) -> Result<Architecture, String> {
        let named = Architecture::ALL.into_iter().find(|architecture| architecture.name() == text);
        let names = || Architecture::ALL.map(Architecture::name).join(", ");
        named.ok_or_else(|| format!("unknown architecture `{text}`; known are {}", names()))
    }
}
