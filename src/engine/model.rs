//! A quantised network laid out for the kernels: rows are padded to whole vectors, tables start on cache lines.

use super::aligned::{AlignedVec, HugePageTable};
use super::kernels::{AccumulatorUpdate, Forward, Observer, SMALL_SUM, TILE};
use super::simd::{BackEnd, NNZ_SLACK, WIDEST};
use crate::net::{Activation, QuantDense, QuantNet, RawScore, Scheme, Shape, WeightType};

/// A network ready to run. All padding is zero, so padded neurons stay zero and add nothing.
///
/// ```
/// use fsbench::engine::Model;
/// use fsbench::net::{FloatNet, Scheme, Shape, quantise};
///
/// // Or the `net` of a file: `NetFile::load(path)?.net`.
/// let net = quantise(&FloatNet::zeros(&Shape::plain(768, 256, vec![32])), &Scheme::stockfish())?;
/// let model = Model::new(&net);
/// // The weights of this network fit i8.
/// assert_eq!((model.features(), model.row_bytes()), (768, 256));
/// # Ok::<(), fsbench::net::NetError>(())
/// ```
pub struct Model {
    pub(super) scheme: Scheme,
    pub(super) shape: Shape,
    /// The i16 elements of an accumulator: `l1` padded. With pairwise each half is padded.
    words: usize,
    /// Length of an accumulator and of a row in elements, PSQT sums included.
    width: usize,
    /// First-layer inputs per accumulator, padded.
    pub(super) side_inputs: usize,
    rows: FtRows,
    /// The accumulator of no active features.
    biases: AlignedVec<i16>,
    /// The dense layers of every bucket.
    pub(super) stacks: Vec<Vec<DenseLayer>>,
    /// The largest activation.
    pub(super) one: u8,
    /// The largest neuron of an accumulator, and the shift of a product of two.
    pub(super) clip: u8,
    pub(super) product_shift: u32,
    pub(super) rescale_shift: u32,
    /// The output bucket by number of pieces.
    buckets: Vec<u8>,
    /// The right shift of a squared sum; only present if the square of [`SMALL_SUM`] is at least 1.0, so that clamping
    /// sums to it, and squaring in i32, is exact.
    pub(super) small_square: Option<u32>,
}

/// The feature transformer's weights, one row per feature.
enum FtRows {
    Wide(HugePageTable<i16>),
    /// If all weights fit and there are no PSQT sums: half the memory traffic per move.
    Narrow(HugePageTable<i8>),
}

impl FtRows {
    fn new(net: &QuantNet, layout: RowLayout, buckets: usize) -> FtRows {
        if buckets == 0 && net.ft_weights.iter().all(|weight| i8::try_from(*weight).is_ok()) {
            return FtRows::Narrow(layout.table(net, |weight| weight as i8));
        }
        let mut table = layout.table(net, |weight| weight);
        if buckets > 0 {
            for (row, sums) in table.chunks_exact_mut(layout.width).zip(net.psqt_weights.chunks_exact(buckets)) {
                bytemuck::cast_slice_mut(&mut row[layout.words..])[..buckets].copy_from_slice(sums);
            }
        }
        FtRows::Wide(table)
    }
}

/// The layout of a row: parts of `part` neurons, each padded to `stride`, make `words` elements of the row's `width`.
#[derive(Copy, Clone)]
struct RowLayout {
    part: usize,
    stride: usize,
    words: usize,
    width: usize,
}

impl RowLayout {
    fn write<W>(self, row: &mut [W], numbers: &[i16], element: impl Fn(i16) -> W) {
        for (to, from) in row[..self.words].chunks_exact_mut(self.stride).zip(numbers.chunks_exact(self.part)) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = element(*from));
        }
    }

    /// The table of all rows, without PSQT sums.
    fn table<W: bytemuck::Pod>(self, net: &QuantNet, element: impl Fn(i16) -> W) -> HugePageTable<W> {
        let mut table = HugePageTable::zeroed(net.shape.features as usize * self.width);
        for (row, weights) in table.chunks_exact_mut(self.width).zip(net.ft_weights.chunks_exact(net.shape.l1)) {
            self.write(row, weights, &element);
        }
        table
    }
}

pub(super) struct DenseLayer {
    /// Padded.
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) weights: DenseWeights,
    /// Padded to whole vectors.
    pub(super) biases: AlignedVec<i32>,
    /// Groups of four inputs that are not padding.
    pub(super) groups: usize,
}

pub(super) enum DenseWeights {
    /// One padded row per output: for few outputs.
    PerOutput(AlignedVec<i8>),
    Grouped {
        /// For each group of four inputs, the four weights of every padded output. A last group is all zero.
        groups: AlignedVec<i8>,
        /// The same weights in tiles; empty for layers that read a hidden layer.
        tiles: AlignedVec<i8>,
    },
    /// The i16 weights of a direct output.
    Direct(AlignedVec<i16>),
}

/// Layers of at most this many outputs have one row per output.
const FEW_OUTPUTS: usize = 4;

/// Buffers of the forward pass, reused between passes.
#[derive(Clone)]
pub struct Scratch {
    /// The activations of both accumulators, then zeros.
    pub(super) input: AlignedVec<u8>,
    /// One bit per group of four inputs: set if the group is not all zero.
    pub(super) masks: AlignedVec<u16>,
    /// The indices of those groups.
    pub(super) nnz: AlignedVec<u16>,
    pub(super) sums: AlignedVec<i32>,
    /// The inputs of each later layer, then zeros.
    pub(super) hidden: Vec<AlignedVec<u8>>,
    /// Whether the last pass read the first layer's tiles from the end.
    pub(super) backwards: bool,
}

impl Model {
    #[must_use]
    pub fn new(net: &QuantNet) -> Model {
        let (shape, scheme) = (net.shape.clone(), net.scheme.clone());
        let side_inputs = shape.activation.outputs(shape.l1).next_multiple_of(WIDEST);
        let parts = if shape.activation == Activation::Pairwise { 2 } else { 1 };
        let words = parts * side_inputs;
        let buckets = if shape.psqt { shape.buckets.count } else { 0 };
        // An i32 takes two i16, and the sums take whole vectors.
        let width = words + (2 * buckets).next_multiple_of(WIDEST / 2);
        let layout = RowLayout { part: shape.l1 / parts, stride: side_inputs, words, width };
        let rows = FtRows::new(net, layout, buckets);
        let mut biases = AlignedVec::zeroed(width);
        layout.write(&mut biases, &net.ft_biases, |bias| bias);

        let stack = |layers: &Vec<QuantDense>| {
            let first = |index| if index == 0 { (shape.activation.outputs(shape.l1), side_inputs) } else { (0, 0) };
            layers
                .iter()
                .enumerate()
                .map(|(index, layer)| DenseLayer::new(layer, first(index), scheme.weights))
                .collect()
        };
        let square = 2 * scheme.rescale_shift() + scheme.product_shift();
        let fits = (i64::from(SMALL_SUM) * i64::from(SMALL_SUM)) >> square >= i64::from(scheme.one);
        Model {
            words,
            width,
            side_inputs,
            biases,
            stacks: net.stacks.iter().map(stack).collect(),
            one: scheme.crelu(i32::MAX),
            clip: scheme.clip(i32::MAX),
            product_shift: scheme.accumulator().shift,
            rescale_shift: scheme.rescale_shift(),
            small_square: fits.then_some(square),
            buckets: (0..=64).map(|pieces| shape.buckets.of(pieces) as u8).collect(),
            rows,
            scheme,
            shape,
        }
    }

    /// A model of the same features without neurons. An evaluator with it finds features, but adds no rows and runs no
    /// layers.
    #[must_use]
    pub fn without_neurons(&self) -> Model {
        Model {
            words: 0,
            width: 0,
            side_inputs: 0,
            rows: FtRows::Narrow(HugePageTable::zeroed(0)),
            biases: AlignedVec::zeroed(0),
            stacks: vec![Vec::new()],
            buckets: self.buckets.clone(),
            scheme: self.scheme.clone(),
            shape: self.shape.clone(),
            ..*self
        }
    }

    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Inputs per perspective.
    #[must_use]
    pub const fn features(&self) -> u32 {
        self.shape.features
    }

    /// Bytes per row of the feature transformer.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        match self.rows {
            FtRows::Wide(_) => self.width * size_of::<i16>(),
            FtRows::Narrow(_) => self.width,
        }
    }

    /// The output bucket for a number of pieces.
    #[must_use]
    pub fn bucket(&self, pieces: usize) -> usize {
        usize::from(self.buckets[pieces.min(64)])
    }

    /// The accumulator of no active features: the biases.
    #[must_use]
    pub fn empty_accumulator(&self) -> AlignedVec<i16> {
        self.biases.clone()
    }

    /// Recomputes an accumulator from all active features. Indices are below [`Model::features`].
    pub fn refresh(&self, back_end: BackEnd, accumulator: &mut [i16], active: &[u32]) {
        self.run(back_end, Some(&self.biases), accumulator, active, &[]);
    }

    /// Writes the sum of two accumulators to `to`. Only one of them may include the biases.
    pub fn sum(&self, back_end: BackEnd, first: &[i16], second: &[i16], to: &mut [i16]) {
        back_end.run(AccumulatorUpdate {
            from: Some(first),
            to,
            table: second,
            words: self.words,
            added: &[0],
            removed: &[],
        });
    }

    /// Adds and subtracts rows in place.
    pub fn update(&self, back_end: BackEnd, accumulator: &mut [i16], added: &[u32], removed: &[u32]) {
        self.run(back_end, None, accumulator, added, removed);
    }

    /// Writes `from` to `to`, with rows added and subtracted.
    pub fn update_from(&self, back_end: BackEnd, from: &[i16], to: &mut [i16], added: &[u32], removed: &[u32]) {
        self.run(back_end, Some(from), to, added, removed);
    }

    fn run(&self, back_end: BackEnd, from: Option<&[i16]>, to: &mut [i16], added: &[u32], removed: &[u32]) {
        let words = self.words;
        match &self.rows {
            FtRows::Wide(table) => back_end.run(AccumulatorUpdate { from, to, table, words, added, removed }),
            FtRows::Narrow(table) => back_end.run(AccumulatorUpdate { from, to, table, words, added, removed }),
        }
    }

    /// The PSQT sum of a bucket in an accumulator.
    #[inline(always)]
    pub(super) fn psqt(&self, accumulator: &[i16], bucket: usize) -> i32 {
        bytemuck::cast_slice::<i16, i32>(&accumulator[self.words..])[bucket]
    }

    /// Buffers for [`Model::forward`].
    #[must_use]
    pub fn scratch(&self) -> Scratch {
        let layers = || self.stacks.iter().flatten();
        let widest = layers().map(|layer| layer.biases.len()).max().unwrap_or(1);
        let later = self.stacks[0].iter().skip(1);
        Scratch {
            input: AlignedVec::zeroed(2 * self.side_inputs + WIDEST),
            masks: AlignedVec::zeroed(2 * self.side_inputs / 4),
            nnz: AlignedVec::zeroed(2 * self.side_inputs / 4 + NNZ_SLACK),
            sums: AlignedVec::zeroed(widest),
            hidden: later.map(|layer| AlignedVec::zeroed(layer.inputs)).collect(),
            backwards: false,
        }
    }

    /// The raw output of a bucket.
    pub fn forward(
        &self,
        back_end: BackEnd,
        bucket: usize,
        [stm, nstm]: [&[i16]; 2],
        scratch: &mut Scratch,
        observer: impl Observer,
    ) -> RawScore {
        back_end.run(Forward { model: self, bucket, stm, nstm, scratch, observer })
    }
}

impl DenseLayer {
    /// `side` inputs come from each accumulator and are padded to `padded`; 0 for layers that read a hidden layer.
    fn new(layer: &QuantDense, (side, padded): (usize, usize), weights: WeightType) -> DenseLayer {
        let (columns, stride) = match side {
            0 => (layer.inputs, layer.inputs.next_multiple_of(WIDEST)),
            _ => (side, padded),
        };
        let inputs = layer.inputs / columns * stride;
        let bytes = || layer.weights.iter().map(|weight| *weight as i8).collect::<Vec<_>>();
        let mut biases = AlignedVec::zeroed(layer.outputs.next_multiple_of(WIDEST / size_of::<i32>()));
        biases[..layer.outputs].copy_from_slice(&layer.biases);
        let groups = inputs / 4;
        let weights = if weights == WeightType::I16 {
            DenseWeights::Direct(AlignedVec::padded(&layer.weights, columns, stride))
        } else if layer.outputs <= FEW_OUTPUTS {
            DenseWeights::PerOutput(AlignedVec::padded(&bytes(), columns, stride))
        } else {
            let rows = AlignedVec::padded(&bytes(), columns, stride);
            let outputs = biases.len();
            let mut grouped = AlignedVec::zeroed((groups + 1) * outputs * 4);
            for (output, row) in rows.chunks_exact(inputs).enumerate() {
                for (group, weights) in row.chunks_exact(4).enumerate() {
                    grouped[4 * (group * outputs + output)..][..4].copy_from_slice(weights);
                }
            }
            let tiles = if side == 0 { AlignedVec::zeroed(0) } else { tiled(&rows, inputs, outputs) };
            DenseWeights::Grouped { groups: grouped, tiles }
        };
        // The padding of hidden layers is zero: those groups are never multiplied.
        let used = if side == 0 { layer.inputs.div_ceil(4) } else { groups };
        DenseLayer { inputs, outputs: layer.outputs, weights, biases, groups: used }
    }
}

/// Rearranges rows of weights into tiles of [`TILE`] outputs by [`TILE`] inputs. The tiles of the first [`TILE`] inputs
/// come first, for all `outputs` (a multiple of [`TILE`]). A tile is four vectors; quarter q of vector r has the
/// weights of output 4q + r.
fn tiled(rows: &[i8], inputs: usize, outputs: usize) -> AlignedVec<i8> {
    let mut tiles = AlignedVec::zeroed(inputs * outputs);
    for (output, row) in rows.chunks_exact(inputs).enumerate() {
        let (tile, inside) = (output / TILE, output % TILE);
        let (quarter, vector) = (inside / 4, inside % 4);
        for (column, weights) in row.chunks_exact(TILE).enumerate() {
            let at = TILE * (column * outputs + tile * TILE + vector * 4 + quarter);
            tiles[at..at + TILE].copy_from_slice(weights);
        }
    }
    tiles
}
