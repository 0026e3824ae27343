//! A quantised network laid out for the kernels: rows padded to whole vectors, tables on cache lines.

use super::aligned::{AlignedVec, HugePageTable};
use super::kernels::{AccumulatorUpdate, Forward, Observer, SMALL, TILE};
use super::simd::{BackEnd, NNZ_SLACK, WIDEST};
use crate::net::{Activation, QuantDense, QuantNet, RawScore, Scheme, Shape, WeightType};

/// A network ready to run. Padding is zero everywhere, so padded neurons stay zero and add nothing.
pub struct Model {
    pub(super) scheme: Scheme,
    pub(super) shape: Shape,
    /// Elements of an accumulator that are i16 numbers: `l1` padded (each half of it where halves are multiplied).
    words: usize,
    /// Elements of an accumulator and of a row, PSQT sums included.
    width: usize,
    /// What one accumulator puts into the first dense layer, padded.
    pub(super) half: usize,
    rows: FtRows,
    /// An accumulator of no features.
    biases: AlignedVec<i16>,
    /// The dense layers of every bucket.
    pub(super) stacks: Vec<Vec<DenseLayer>>,
    pub(super) one: u8,
    pub(super) product_shift: u32,
    pub(super) rescale_shift: u32,
    /// The output bucket of every number of pieces.
    buckets: Vec<u8>,
    /// The shift of a square, where squares of sums up to [`SMALL`] fit i32 and that of [`SMALL`] is 1.0 or more.
    pub(super) small_square: Option<u32>,
}

/// The feature transformer's weights, a row a feature.
enum FtRows {
    Wide(HugePageTable<i16>),
    /// Where all fit and there are no PSQT sums: half the memory to read at every move.
    Narrow(HugePageTable<i8>),
}

impl FtRows {
    fn of(net: &QuantNet, layout: RowLayout, buckets: usize) -> FtRows {
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

/// How a row's numbers stand: parts of `part` neurons, each padded to `half`, `words` together, in `width` elements.
#[derive(Copy, Clone)]
struct RowLayout {
    part: usize,
    half: usize,
    words: usize,
    width: usize,
}

impl RowLayout {
    fn place<W>(self, row: &mut [W], numbers: &[i16], element: impl Fn(i16) -> W) {
        for (to, from) in row[..self.words].chunks_exact_mut(self.half).zip(numbers.chunks_exact(self.part)) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = element(*from));
        }
    }

    /// All rows, without PSQT sums.
    fn table<W: bytemuck::Pod>(self, net: &QuantNet, element: impl Fn(i16) -> W) -> HugePageTable<W> {
        let mut table = HugePageTable::zeroed(net.shape.features as usize * self.width);
        for (row, weights) in table.chunks_exact_mut(self.width).zip(net.ft_weights.chunks_exact(net.shape.l1)) {
            self.place(row, weights, &element);
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
    /// An output's padded row after the other: for few outputs.
    PerOutput(AlignedVec<i8>),
    Grouped {
        /// For each group of four inputs, and for one of zeros behind them, the four weights of every padded output.
        groups: AlignedVec<i8>,
        /// The same in tiles; empty where they are never used.
        tiles: AlignedVec<i8>,
    },
    /// Of the one output of schemes with weights in i16.
    Direct(AlignedVec<i16>),
}

/// Up to so many outputs have a row each.
const FEW_OUTPUTS: usize = 4;

/// Room for one forward pass, reused from one to the next.
#[derive(Clone)]
pub struct Scratch {
    /// What comes from both accumulators, zeros behind.
    pub(super) input: AlignedVec<u8>,
    /// Which groups of four inputs are not all zero, and their numbers.
    pub(super) masks: AlignedVec<u16>,
    pub(super) found: AlignedVec<u16>,
    pub(super) sums: AlignedVec<i32>,
    /// What goes into every later layer, zeros behind.
    pub(super) hidden: Vec<AlignedVec<u8>>,
    /// Which way the last pass went through the first layer's tiles.
    pub(super) backwards: bool,
}

impl Model {
    #[must_use]
    pub fn new(net: &QuantNet) -> Model {
        let (shape, scheme) = (net.shape.clone(), net.scheme.clone());
        let half = shape.activation.outputs(shape.l1).next_multiple_of(WIDEST);
        let halves = if shape.activation == Activation::Pairwise { 2 } else { 1 };
        let words = halves * half;
        let buckets = if shape.psqt { shape.buckets.count } else { 0 };
        // Two i16 an i32, in whole vectors.
        let width = words + (2 * buckets).next_multiple_of(WIDEST / 2);
        let layout = RowLayout { part: shape.l1 / halves, half, words, width };
        let rows = FtRows::of(net, layout, buckets);
        let mut biases = AlignedVec::zeroed(width);
        layout.place(&mut biases, &net.ft_biases, |bias| bias);

        let stack = |layers: &Vec<QuantDense>| {
            let first = |index| if index == 0 { (shape.activation.outputs(shape.l1), half) } else { (0, 0) };
            layers
                .iter()
                .enumerate()
                .map(|(index, layer)| DenseLayer::new(layer, first(index), scheme.weights))
                .collect()
        };
        let square = 2 * scheme.rescale_shift() + scheme.product_shift();
        let fits = (i64::from(SMALL) * i64::from(SMALL)) >> square >= i64::from(scheme.one);
        Model {
            words,
            width,
            half,
            biases,
            stacks: net.stacks.iter().map(stack).collect(),
            one: scheme.crelu(i32::MAX),
            product_shift: scheme.product_shift(),
            rescale_shift: scheme.rescale_shift(),
            small_square: fits.then_some(square),
            buckets: (0..=64).map(|pieces| shape.buckets.of(pieces) as u8).collect(),
            rows,
            scheme,
            shape,
        }
    }

    /// A model of the same features without neurons: an evaluator on it does all but add rows and run the layers.
    #[must_use]
    pub fn without_neurons(&self) -> Model {
        Model {
            words: 0,
            width: 0,
            half: 0,
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

    /// FtRows of the feature transformer.
    #[must_use]
    pub const fn features(&self) -> u32 {
        self.shape.features
    }

    /// Bytes of a row.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        match self.rows {
            FtRows::Wide(_) => self.width * size_of::<i16>(),
            FtRows::Narrow(_) => self.width,
        }
    }

    /// The output bucket of a position with that many pieces.
    #[must_use]
    pub fn bucket(&self, pieces: usize) -> usize {
        usize::from(self.buckets[pieces.min(64)])
    }

    /// An accumulator of no active features.
    #[must_use]
    pub fn empty_accumulator(&self) -> AlignedVec<i16> {
        self.biases.clone()
    }

    /// Recomputes an accumulator from all active features (all below [`Model::features`]).
    pub fn refresh(&self, back_end: BackEnd, accumulator: &mut [i16], active: &[u32]) {
        self.run(back_end, Some(&self.biases), accumulator, active, &[]);
    }

    /// Makes `to` the sum of two accumulators, of which one has no biases.
    pub fn sum(&self, back_end: BackEnd, one: &[i16], other: &[i16], to: &mut [i16]) {
        back_end.run(AccumulatorUpdate {
            from: Some(one),
            to,
            table: other,
            words: self.words,
            added: &[0],
            removed: &[],
        });
    }

    /// Adds and subtracts changed rows.
    pub fn update(&self, back_end: BackEnd, accumulator: &mut [i16], added: &[u32], removed: &[u32]) {
        self.run(back_end, None, accumulator, added, removed);
    }

    /// Makes `to` of `from` with changed rows.
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

    /// An accumulator's PSQT sum of a bucket.
    #[inline(always)]
    pub(super) fn psqt(&self, accumulator: &[i16], bucket: usize) -> i32 {
        bytemuck::cast_slice::<i16, i32>(&accumulator[self.words..])[bucket]
    }

    #[must_use]
    pub fn scratch(&self) -> Scratch {
        let layers = || self.stacks.iter().flatten();
        let widest = layers().map(|layer| layer.biases.len()).max().unwrap_or(1);
        let later = self.stacks[0].iter().skip(1);
        Scratch {
            input: AlignedVec::zeroed(2 * self.half + WIDEST),
            masks: AlignedVec::zeroed(2 * self.half / 4),
            found: AlignedVec::zeroed(2 * self.half / 4 + NNZ_SLACK),
            sums: AlignedVec::zeroed(widest),
            hidden: later.map(|layer| AlignedVec::zeroed(layer.inputs)).collect(),
            backwards: false,
        }
    }

    /// A bucket's raw output.
    pub fn forward(
        &self,
        back_end: BackEnd,
        bucket: usize,
        [stm, nstm]: [&[i16]; 2],
        scratch: &mut Scratch,
        see: impl Observer,
    ) -> RawScore {
        back_end.run(Forward { model: self, bucket, stm, nstm, scratch, see })
    }
}

impl DenseLayer {
    /// `part` inputs come from each accumulator and are padded to `padded`; 0 for layers that read a hidden one.
    fn new(layer: &QuantDense, (part, padded): (usize, usize), weights: WeightType) -> DenseLayer {
        let (columns, stride) = match part {
            0 => (layer.inputs, layer.inputs.next_multiple_of(WIDEST)),
            _ => (part, padded),
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
            let tiles = if part == 0 { AlignedVec::zeroed(0) } else { tiled(&rows, inputs, outputs) };
            DenseWeights::Grouped { groups: grouped, tiles }
        };
        // A hidden layer's padding is zero: its groups need not be multiplied.
        let used = if part == 0 { layer.inputs.div_ceil(4) } else { groups };
        DenseLayer { inputs, outputs: layer.outputs, weights, biases, groups: used }
    }
}

/// FtRows of weights in tiles of [`TILE`] outputs and inputs: for each part of the inputs the tiles of all `outputs` (a
/// multiple of [`TILE`]), each four vectors, of which the r-th has in its quarter q the weights of output 4q + r.
fn tiled(rows: &[i8], inputs: usize, outputs: usize) -> AlignedVec<i8> {
    let mut tiles = AlignedVec::zeroed(inputs * outputs);
    for (output, row) in rows.chunks_exact(inputs).enumerate() {
        let (tile, inside) = (output / TILE, output % TILE);
        let (quarter, vector) = (inside / 4, inside % 4);
        for (part, weights) in row.chunks_exact(TILE).enumerate() {
            let at = TILE * (part * outputs + tile * TILE + vector * 4 + quarter);
            tiles[at..at + TILE].copy_from_slice(weights);
        }
    }
    tiles
}
