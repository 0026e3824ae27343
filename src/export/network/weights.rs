//! The raw file of an exported network's weights: which numbers stand at which byte.
//!
//! The file is little-endian. It starts with [`HEADER`] bytes: [`MAGIC`], the number of the architecture as u64, the
//! file's size as u64, zeros. Sections follow, each at a multiple of [`ALIGNMENT`] bytes with zeros before it: the
//! feature transformer's, then the dense layers', stack by stack.

use crate::net::{QuantNet, WeightType};

pub(super) const MAGIC: &[u8; 8] = b"fsbnet01";
pub(super) const HEADER: usize = 64;
pub(super) const ALIGNMENT: usize = 64;

/// The integers of a section.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Integer {
    I8,
    I16,
    I32,
}

impl Integer {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Integer::I8 => 1,
            Integer::I16 => 2,
            Integer::I32 => 4,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Integer::I8 => "i8",
            Integer::I16 => "i16",
            Integer::I32 => "i32",
        }
    }
}

/// A matrix of integers, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatrixSection {
    /// The name of the field that holds it in the generated sources.
    pub(super) name: &'static str,
    /// The first byte: of the file, or of a stack's sections.
    pub(super) at: usize,
    pub(super) integer: Integer,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// The meaning of a row and a column, in words.
    pub(super) content: &'static str,
}

impl MatrixSection {
    pub(super) fn size(&self) -> usize {
        self.rows * self.columns * self.integer.bytes()
    }
}

/// The sections of a network's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SectionLayout {
    /// Features below this have rows of eight bits.
    pub(super) narrow: usize,
    pub(super) transformer: Vec<MatrixSection>,
    /// The first byte of the first stack.
    pub(super) stacks_at: usize,
    /// The sections of one stack, from its first byte.
    pub(super) stack: Vec<MatrixSection>,
    pub(super) stack_size: usize,
    /// Bytes of the whole file.
    pub(super) size: usize,
}

/// The names of a dense layer's weights and biases, by the number of hidden layers and the layer.
const LAYERS: [&[[&str; 2]]; 3] = [
    &[["output_weights", "output_biases"]],
    &[["hidden1_weights", "hidden1_biases"], ["output_weights", "output_biases"]],
    &[
        ["hidden1_weights", "hidden1_biases"],
        ["hidden2_weights", "hidden2_biases"],
        ["output_weights", "output_biases"],
    ],
];

impl SectionLayout {
    pub(super) fn of(net: &QuantNet) -> SectionLayout {
        let features = net.shape.features as usize;
        let l1 = net.shape.l1;
        let buckets = net.shape.buckets.count;
        let narrow = narrow_features(net);
        let mut at = HEADER;
        let section = |name, integer, rows: usize, columns, content| {
            let section = MatrixSection { name, at: 0, integer, rows, columns, content };
            (section.size() > 0).then_some(section)
        };
        let transformer = [
            section("ft_biases", Integer::I16, 1, l1, "the feature transformer's biases, one per neuron"),
            section("ft_narrow_weights", Integer::I8, narrow, l1, "its weights, a row per feature from the first"),
            section(
                "ft_weights",
                Integer::I16,
                features - narrow,
                l1,
                match narrow {
                    0 => "its weights, a row per feature",
                    _ => "its weights, a row per feature after those",
                },
            ),
            section(
                "psqt_weights",
                Integer::I32,
                if net.shape.psqt { features } else { 0 },
                buckets,
                "the PSQT values, a row per feature, one value per output bucket",
            ),
        ];
        let transformer = transformer.into_iter().flatten().map(|section| place(section, &mut at)).collect();
        let stacks_at = at;
        let weight = if net.scheme.weights == WeightType::I8 { Integer::I8 } else { Integer::I16 };
        let mut at = 0;
        let layers = net.shape.layer_sizes().into_iter().zip(LAYERS[net.shape.hidden.len()]);
        let stack = layers.flat_map(|((inputs, outputs), [weights, biases])| {
            [
                section(biases, Integer::I32, 1, outputs, "biases, one per output"),
                section(weights, weight, outputs, inputs, "weights, a row per output, one weight per input"),
            ]
        });
        let stack = stack.flatten().map(|section| place(section, &mut at)).collect();
        SectionLayout { narrow, transformer, stacks_at, stack, stack_size: at, size: stacks_at + buckets * at }
    }

    /// The file of a network: the layout is the network's own.
    pub(super) fn file(&self, net: &QuantNet, architecture: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&architecture.to_le_bytes());
        out.extend_from_slice(&(self.size as u64).to_le_bytes());
        out.resize(HEADER, 0);
        let (narrow, wide) = net.ft_weights.split_at(self.narrow * net.shape.l1);
        append(&mut out, &net.ft_biases, i16::to_le_bytes);
        append(&mut out, narrow, |value| [value as u8]);
        append(&mut out, wide, i16::to_le_bytes);
        append(&mut out, &net.psqt_weights, i32::to_le_bytes);
        for layer in net.stacks.iter().flatten() {
            append(&mut out, &layer.biases, i32::to_le_bytes);
            match net.scheme.weights {
                WeightType::I8 => append(&mut out, &layer.weights, |value| [value as u8]),
                WeightType::I16 => append(&mut out, &layer.weights, i16::to_le_bytes),
            }
        }
        debug_assert_eq!(out.len(), self.size, "every section is written");
        out
    }
}

/// The features that the shape calls narrow, or none if a weight of theirs does not fit eight bits. It depends on the
/// weights no further, so that networks of one architecture have one layout.
fn narrow_features(net: &QuantNet) -> usize {
    let narrow = net.shape.narrow as usize;
    let fits = |weight: &i16| i8::try_from(*weight).is_ok();
    if net.ft_weights[..narrow * net.shape.l1].iter().all(fits) { narrow } else { 0 }
}

/// The section at byte `at`, which moves to the next one.
fn place(mut section: MatrixSection, at: &mut usize) -> MatrixSection {
    section.at = *at;
    *at += section.size().next_multiple_of(ALIGNMENT);
    section
}

/// Appends a section with the zeros after it.
fn append<T: Copy, const BYTES: usize>(out: &mut Vec<u8>, values: &[T], bytes: impl Fn(T) -> [u8; BYTES]) {
    for value in values {
        out.extend_from_slice(&bytes(*value));
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}
