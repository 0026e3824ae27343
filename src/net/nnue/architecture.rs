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
    /// The network of Stockfish 17 and 17.1 for most positions; the other one is Stockfish 18's.
    Sf17_1,
    /// Stockfish 18's network for most positions.
    Sf18,
    /// Stockfish 18's network for positions with a large material difference: as in 16.1 except the sum of its parts.
    Sf18Small,
    /// The network of the small build of Stockfish 18 for browsers.
    Sf18Lite,
    Sf19,
    /// The network of the small build of Stockfish 19 for browsers.
    Sf19Lite,
}

/// How a file stores the feature transformer's weights and PSQT values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As they are: weights i16, PSQT i32.
    Plain,
    /// Each array compressed.
    Compressed,
    /// The weights by ranges of features, threats' weights as i8, and PSQT values compressed.
    ByRange {
        ranges: &'static [WeightRange],
        /// Whether each range's PSQT values follow its weights, rather than all PSQT values all weights.
        psqt_by_range: bool,
    },
}

/// The weights of the next `features` features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightRange {
    pub features: u32,
    /// i8 as they are, rather than i16 compressed.
    pub is_narrow: bool,
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
    /// Whether there is a skip difference, and the output layer reads all hidden layers.
    concatenated: bool,
    /// Whether there are 8 output buckets with PSQT outputs, rather than one without.
    buckets: bool,
    encoding: Encoding,
    /// Internal score units per pawn when that version prints scores.
    pawn_value: i32,
}

const HALF_KP: (&str, u32, u32) = ("half-kp", 41_024, 0x5D69_D5B8);
const HALF_KA_V2: (&str, u32, u32) = ("half-ka-v2", 45_056, 0x5F23_4CB8);
const CHESS768_HM: (&str, u32, u32) = ("chess768-hm", 768, 0x6F23_4CB8);
pub(super) const HALF_KA_V2_HM: (&str, u32, u32) = ("half-ka-v2-hm", 22_528, 0x7F23_4CB8);

/// Threats, then pairs of pawns, then half-ka-v2-hm: their hashes, each rotated by one bit more than the next.
const SFNNV16: (&str, u32, u32) = {
    let [threats, pairs, half_ka] = [0x2E6B_9D04u32, 0x86F2_B1DD, HALF_KA_V2_HM.2];
    let hash = (threats.rotate_left(1) ^ pairs).rotate_left(1) ^ half_ka;
    ("sfnnv16", THREATS_V16 + PAWN_PAIRS + HALF_KA_V2_HM.1, hash)
};

/// The hash of threats up to SFNNv15, whichever they are.
pub(super) const THREATS_HASH: u32 = 0x8F23_4CB8;
const THREATS_V10: u32 = 79_856;
const THREATS_V16: u32 = 59_808;
const PAWN_PAIRS: u32 = 4_560;

static RANGES_V10: [WeightRange; 2] = [
    WeightRange { features: THREATS_V10, is_narrow: true },
    WeightRange { features: HALF_KA_V2_HM.1, is_narrow: false },
];

static RANGES_V16: [WeightRange; 3] = [
    WeightRange { features: THREATS_V16, is_narrow: true },
    WeightRange { features: PAWN_PAIRS, is_narrow: true },
    WeightRange { features: HALF_KA_V2_HM.1, is_narrow: false },
];

/// A table row.
const fn row(
    name: &'static str,
    (set, features, feature_hash): (&'static str, u32, u32),
    l1: usize,
    hidden: [usize; 2],
    pawn_value: i32,
) -> ArchitectureData {
    let activation = Activation::Crelu;
    let hidden_activation = Activation::Crelu;
    let skip = false;
    let concatenated = false;
    let buckets = true;
    let encoding = Encoding::Plain;
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
        concatenated,
        buckets,
        encoding,
        pawn_value,
    }
}

/// A table row of Stockfish 15 or later.
const fn row_since_15(
    name: &'static str,
    l1: usize,
    hidden_activation: Activation,
    encoding: Encoding,
    pawn: i32,
) -> ArchitectureData {
    let row = row(name, HALF_KA_V2_HM, l1, [15, 32], pawn);
    ArchitectureData { activation: Activation::Pairwise, hidden_activation, skip: true, encoding, ..row }
}

/// A table row of Stockfish 19 or later.
const fn row_since_19(name: &'static str, set: (&'static str, u32, u32), encoding: Encoding) -> ArchitectureData {
    ArchitectureData {
        version: 0x6A44_8AFA,
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        concatenated: true,
        encoding,
        ..row(name, set, 1024, [32, 32], 356)
    }
}

static ROWS: [ArchitectureData; 14] = [
    ArchitectureData { version: 0x7AF3_2F16, buckets: false, ..row("stockfish-12", HALF_KP, 256, [32, 32], 208) },
    row("stockfish-14", HALF_KA_V2, 512, [16, 32], 208),
    row("stockfish-14.1", HALF_KA_V2_HM, 1024, [8, 32], 208),
    row_since_15("stockfish-15", 1024, Activation::Crelu, Encoding::Plain, 208),
    row_since_15("stockfish-15.1", 1024, Activation::Dual, Encoding::Plain, 361),
    row_since_15("stockfish-16", 1536, Activation::Dual, Encoding::Compressed, 328),
    row_since_15("stockfish-16.1", 2560, Activation::Dual, Encoding::Compressed, 356),
    row_since_15("stockfish-16.1-small", 128, Activation::Dual, Encoding::Compressed, 356),
    row_since_15("stockfish-17.1", 3072, Activation::Dual, Encoding::Compressed, 377),
    ArchitectureData {
        set: "sfnnv10",
        features: THREATS_V10 + HALF_KA_V2_HM.1,
        feature_hash: THREATS_HASH,
        ..row_since_15(
            "stockfish-18",
            1024,
            Activation::Dual,
            Encoding::ByRange { ranges: &RANGES_V10, psqt_by_range: false },
            356,
        )
    },
    row_since_15("stockfish-18-small", 128, Activation::Dual, Encoding::Compressed, 356),
    row_since_15("stockfish-18-lite", 256, Activation::Dual, Encoding::Compressed, 356),
    row_since_19("stockfish-19", SFNNV16, Encoding::ByRange { ranges: &RANGES_V16, psqt_by_range: true }),
    row_since_19("stockfish-19-lite", CHESS768_HM, Encoding::Compressed),
];

impl Architecture {
    pub const ALL: [Architecture; 14] = [
        Architecture::Sf12,
        Architecture::Sf14,
        Architecture::Sf14_1,
        Architecture::Sf15,
        Architecture::Sf15_1,
        Architecture::Sf16,
        Architecture::Sf16_1,
        Architecture::Sf16_1Small,
        Architecture::Sf17_1,
        Architecture::Sf18,
        Architecture::Sf18Small,
        Architecture::Sf18Lite,
        Architecture::Sf19,
        Architecture::Sf19Lite,
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

    /// How the feature transformer is stored.
    #[must_use]
    pub fn encoding(self) -> &'static Encoding {
        &self.row().encoding
    }

    #[must_use]
    pub fn shape(self) -> Shape {
        let row = self.row();
        Shape {
            activation: row.activation,
            hidden_activation: row.hidden_activation,
            skip: row.skip,
            skip_difference: row.concatenated,
            concatenated: row.concatenated,
            narrow: self.narrow_features(),
            psqt: row.buckets,
            buckets: OutputBuckets { count: if row.buckets { 8 } else { 1 }, rule: BucketRule::Stockfish },
            ..Shape::plain(row.features, row.l1, row.hidden.to_vec())
        }
    }

    /// The number of features, from the first, whose weights have eight bits.
    fn narrow_features(self) -> u32 {
        match self.encoding() {
            Encoding::ByRange { ranges, .. } => {
                ranges.iter().take_while(|range| range.is_narrow).map(|range| range.features).sum()
            }
            Encoding::Plain | Encoding::Compressed => 0,
        }
    }

    /// The scheme, with the pawn value of that version.
    #[must_use]
    pub fn scheme(self) -> Scheme {
        let scheme = match self {
            Architecture::Sf18 => Scheme::stockfish_18(),
            Architecture::Sf19 | Architecture::Sf19Lite => Scheme::stockfish_19(),
            Architecture::Sf17_1 | Architecture::Sf18Small | Architecture::Sf18Lite => {
                Scheme { truncates_parts: true, ..Scheme::stockfish() }
            }
            _ => Scheme::stockfish(),
        };
        Scheme { pawn_value: self.row().pawn_value, ..scheme }
    }

    #[must_use]
    pub fn transformer_hash(self) -> u32 {
        self.row().feature_hash ^ self.inputs()
    }

    /// The hash of the dense layers.
    #[must_use]
    pub fn layers_hash(self) -> u32 {
        let outputs: Vec<u32> = self.shape().layer_sizes().iter().map(|(_, outputs)| *outputs as u32).collect();
        dense_hash(self.inputs(), &outputs)
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

/// The hash of dense layers: each layer combines its number of outputs with the hash before it.
pub(super) fn dense_hash(inputs: u32, outputs: &[u32]) -> u32 {
    let mut hash = 0xEC42_E90D ^ inputs;
    for (index, count) in outputs.iter().enumerate() {
        hash = 0xCC03_DAE4u32.wrapping_add(*count) ^ hash.rotate_right(1);
        if index + 1 < outputs.len() {
            hash = hash.wrapping_add(0x538D_24C7);
        }
    }
    hash
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
