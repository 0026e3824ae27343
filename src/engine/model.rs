//! A quantised network laid out for the kernels: rows are padded to whole vectors, tables start on cache lines.

use super::aligned::{AlignedVec, HugePageTable};
use super::dense_layer::DenseLayer;
use super::ft_rows::{FtRows, RowLayout};
use super::kernels::{
    AccumulatorSums, AccumulatorUpdate, BLOCK, Forward, LineChanges, LinePass, LineSum, MixedRows, NarrowRows,
    Observer, SMALL_SUM, WideRows,
};
use super::simd::{NNZ_SLACK, VectorKernel, WIDEST};
use crate::chess::ByPerspective;
use crate::cpu;
use crate::cpu::BackEnd;
use crate::features::Delta;
use crate::net::{Activation, QuantDense, QuantNet, RawScore, Scheme, Shape};

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
    /// Whether the rows take more room than the CPU's near caches have.
    rows_are_far: bool,
    /// The accumulator of no active features.
    biases: AlignedVec<i16>,
    /// The dense layers of every bucket.
    pub(super) stacks: Vec<Vec<DenseLayer>>,
    /// The largest activation.
    pub(super) one: u8,
    /// The largest neuron of an accumulator, and the shift of a product of two.
    pub(super) clip: u8,
    pub(super) product_shift: u32,
    pub(super) hidden: [HiddenShifts; 2],
    /// [`Shape::skip_outputs`]
    pub(super) skip_outputs: Option<(usize, Option<usize>)>,
    /// Number of activations of each hidden layer.
    pub(super) hidden_outputs: Vec<usize>,
}

/// The right shifts of a hidden layer's sums.
#[derive(Copy, Clone)]
pub(super) struct HiddenShifts {
    pub(super) rescale: u32,
    /// Of a squared sum; only present if the square of [`SMALL_SUM`] is at least 1.0, so that clamping sums to it, and
    /// squaring in i32, is exact.
    pub(super) small_square: Option<u32>,
}

/// Bytes that a CPU's second-level cache is taken to hold.
const NEAR_CACHE: usize = 1 << 20;

/// Buffers of the forward pass, reused between passes.
#[derive(Clone)]
pub struct Scratch {
    /// The activations of both accumulators, then zeros.
    pub(super) input: AlignedVec<u8>,
    /// One bit per group of four inputs: set if the group is not all zero.
    pub(super) masks: AlignedVec<u16>,
    pub(super) layers: LayerScratch,
}

/// Buffers of the dense layers.
#[derive(Clone)]
pub struct LayerScratch {
    /// The indices of the first layer's groups that are not all zero.
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
        let shape = net.shape.clone();
        let scheme = net.scheme.clone();
        let side_inputs = shape.activation.outputs(shape.l1).next_multiple_of(WIDEST);
        let parts = if shape.activation == Activation::Pairwise { 2 } else { 1 };
        let words = parts * side_inputs;
        let buckets = if shape.psqt { shape.buckets.count } else { 0 };
        // An i32 takes two i16, and the sums take whole vectors.
        let width = words + (2 * buckets).next_multiple_of(WIDEST / 2);
        let layout = RowLayout { neurons: shape.l1, part: shape.l1 / parts, padded: side_inputs, words, width };
        let rows = FtRows::new(net, layout, buckets);
        let mut biases = AlignedVec::zeroed(width);
        layout.write(&mut biases, &net.ft_biases, |bias| bias);

        let stack = |layers: &Vec<QuantDense>| {
            let first = |index| if index == 0 { (shape.activation.outputs(shape.l1), side_inputs) } else { (0, 0) };
            layers.iter().enumerate().map(|(index, layer)| DenseLayer::new(layer, first(index), &scheme)).collect()
        };
        let one = scheme.crelu(i32::MAX);
        let hidden = |layer| {
            let rescale = scheme.rescale_shift(layer);
            let largest = i64::from(SMALL_SUM) * i64::from(SMALL_SUM);
            let square = 2 * rescale + scheme.product_shift();
            HiddenShifts { rescale, small_square: (largest >> square >= i64::from(one)).then_some(square) }
        };
        Model {
            words,
            width,
            side_inputs,
            biases,
            stacks: net.stacks.iter().map(stack).collect(),
            one,
            clip: scheme.clip(i32::MAX),
            product_shift: scheme.accumulator().shift,
            hidden: [0, 1].map(hidden),
            skip_outputs: shape.skip_outputs(),
            hidden_outputs: shape.activation_widths().split_off(1),
            rows_are_far: rows.bytes() > NEAR_CACHE,
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
            rows: FtRows {
                narrow: HugePageTable::zeroed(0),
                narrow_rows: self.shape.features,
                wide: HugePageTable::zeroed(0),
            },
            biases: AlignedVec::zeroed(0),
            rows_are_far: false,
            stacks: vec![Vec::new()],
            hidden_outputs: self.hidden_outputs.clone(),
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

    /// Bytes per row of the feature transformer, PSQT sums included; the mean over all rows.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        let [features, narrow] = [self.shape.features as usize, self.rows.narrow_rows as usize];
        (narrow * self.narrow_stride() + (features - narrow) * self.width * size_of::<i16>()) / features
    }

    /// Bytes of a row with weights of eight bits.
    const fn narrow_stride(&self) -> usize {
        self.words + (self.width - self.words) * size_of::<i16>()
    }

    /// The accumulator of no active features: the biases.
    #[must_use]
    pub fn empty_accumulator(&self) -> AlignedVec<i16> {
        self.biases.clone()
    }

    pub(super) fn biases(&self) -> &[i16] {
        &self.biases
    }

    /// Recomputes an accumulator from all active features. Indices are below [`Model::features`].
    pub fn refresh(&self, back_end: BackEnd, accumulator: &mut [i16], active: &[u32]) {
        self.run(back_end, Some(&self.biases), accumulator, active, &[]);
    }

    /// Writes the sum of two accumulators to `to`. Only one of them may include the biases.
    pub fn sum(&self, back_end: BackEnd, first: &[i16], second: &[i16], to: &mut [i16]) {
        let rows = WideRows { table: second, stride: self.width, first: 0 };
        let words = self.words;
        AccumulatorUpdate { from: Some(first), to, rows, words, added: &[0], removed: &[] }.run_on(back_end);
    }

    /// Adds and subtracts rows in place.
    pub fn update(&self, back_end: BackEnd, accumulator: &mut [i16], added: &[u32], removed: &[u32]) {
        self.run(back_end, None, accumulator, added, removed);
    }

    /// Writes `from` to `to`, with rows added and subtracted.
    pub fn update_from(&self, back_end: BackEnd, from: &[i16], to: &mut [i16], added: &[u32], removed: &[u32]) {
        self.run(back_end, Some(from), to, added, removed);
    }

    /// Asks for rows to be loaded into the CPU's second-level cache, unless all rows have room there. All of them may
    /// be in flight at once there, which took a fifth off the time of an evaluation with rows in no near cache; the
    /// first-level cache has no room for so many.
    #[inline]
    pub fn prefetch(&self, features: &[u32]) {
        if self.rows_are_far {
            self.prefetch_rows(features);
        }
    }

    /// Asks for the rows that a move changes, of both perspectives.
    #[inline]
    pub(super) fn prefetch_deltas(&self, deltas: &ByPerspective<Delta>) {
        if self.rows_are_far {
            for delta in [&deltas.white, &deltas.black] {
                self.prefetch_rows(&delta.removed);
                self.prefetch_rows(&delta.added);
            }
        }
    }

    fn prefetch_rows(&self, features: &[u32]) {
        let FtRows { narrow, narrow_rows, wide } = &self.rows;
        for &feature in features {
            let row: &[u8] = match feature.checked_sub(*narrow_rows) {
                None => {
                    bytemuck::cast_slice(&narrow[feature as usize * self.narrow_stride()..][..self.narrow_stride()])
                }
                Some(feature) => bytemuck::cast_slice(&wide[feature as usize * self.width..][..self.width]),
            };
            row.chunks_exact(cpu::CACHE_LINE).for_each(|line| cpu::prefetch_far(&line[0]));
        }
    }

    // Inlined: tables that go through memory take ten nanoseconds per update.
    #[inline(always)]
    fn narrow_table(&self) -> NarrowRows<'_> {
        NarrowRows { table: &self.rows.narrow, words: self.words, stride: self.narrow_stride() }
    }

    #[inline(always)]
    fn wide_table(&self) -> WideRows<'_> {
        WideRows { table: &self.rows.wide, stride: self.width, first: self.rows.narrow_rows }
    }

    fn run(&self, back_end: BackEnd, from: Option<&[i16]>, to: &mut [i16], added: &[u32], removed: &[u32]) {
        let words = self.words;
        let first_wide = self.rows.narrow_rows;
        let all_are = |is_narrow: bool| added.iter().chain(removed).all(|feature| (*feature < first_wide) == is_narrow);
        // Blocks are often updated apart, and rows of one kind need no choice each.
        if first_wide == self.shape.features || (first_wide > 0 && all_are(true)) {
            AccumulatorUpdate { from, to, rows: self.narrow_table(), words, added, removed }.run_on(back_end);
        } else if first_wide == 0 || all_are(false) {
            AccumulatorUpdate { from, to, rows: self.wide_table(), words, added, removed }.run_on(back_end);
        } else {
            let rows = MixedRows { narrow: self.narrow_table(), wide: self.wide_table() };
            AccumulatorUpdate { from, to, rows, words, added, removed }.run_on(back_end);
        }
    }

    /// Length of the PSQT part of an accumulator in elements.
    pub(super) const fn psqt_width(&self) -> usize {
        self.width - self.words
    }

    /// Follows one perspective's accumulator along a line of positions; see [`LinePass`]. `second` is the other summand
    /// of an accumulator with partial refresh.
    pub(super) fn follow_line(
        &self,
        back_end: BackEnd,
        first: LineSummand<'_>,
        second: Option<LineSummand<'_>>,
        buffers: LineBuffers<'_>,
    ) {
        let narrow = self.narrow_table();
        let wide = self.wide_table();
        let mixed = MixedRows { narrow, wide };
        let LineBuffers { fresh, sides, activations, masks, psqt } = buffers;
        let is_narrow = |part: &LineSummand<'_>| part.steps.rows().iter().all(|feature| *feature < wide.first);
        let is_wide = |part: &LineSummand<'_>| part.steps.rows().iter().all(|feature| *feature >= wide.first);
        macro_rules! pass {
            ($first:expr, $second:expr) => {
                LinePass { model: self, first: $first, second: $second, fresh, sides, activations, masks, psqt }
                    .run_on(back_end)
            };
        }
        match second {
            None if is_wide(&first) => pass!(first.over(wide), None::<LineSum<'_, WideRows<'_>>>),
            None if is_narrow(&first) => pass!(first.over(narrow), None::<LineSum<'_, NarrowRows<'_>>>),
            Some(second) if is_narrow(&first) && is_wide(&second) => {
                pass!(first.over(narrow), Some(second.over(wide)));
            }
            _ => pass!(first.over(mixed), second.map(|part| part.over(mixed))),
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
        Scratch {
            input: AlignedVec::zeroed(self.input_bytes()),
            masks: AlignedVec::zeroed(self.input_masks()),
            layers: self.layer_scratch(),
        }
    }

    /// Bytes of the activations of both accumulators, and of the zeros after them.
    pub(super) const fn input_bytes(&self) -> usize {
        2 * self.side_inputs + WIDEST
    }

    /// A bound on the masks of the activations' groups.
    pub(super) const fn input_masks(&self) -> usize {
        2 * self.side_inputs / 4
    }

    pub(super) fn layer_scratch(&self) -> LayerScratch {
        let layers = || self.stacks.iter().flatten();
        let widest = layers().map(|layer| layer.biases.len()).max().unwrap_or(1);
        let later = self.stacks[0].iter().skip(1);
        LayerScratch {
            nnz: AlignedVec::zeroed(2 * self.side_inputs / 4 + NNZ_SLACK),
            sums: AlignedVec::zeroed(widest),
            // Activations are written in whole blocks.
            hidden: later.map(|layer| AlignedVec::zeroed(layer.inputs + BLOCK)).collect(),
            backwards: false,
        }
    }

    /// The raw output of a bucket from the accumulators of stm and nstm.
    pub fn forward(
        &self,
        back_end: BackEnd,
        bucket: usize,
        accumulators: [AccumulatorSums<'_>; 2],
        scratch: &mut Scratch,
        observer: impl Observer,
    ) -> RawScore {
        Forward { model: self, bucket, accumulators, scratch, observer }.run_on(back_end)
    }
}

/// A sum of rows along a line; see [`LineSum`].
pub(super) struct LineSummand<'a> {
    pub steps: &'a LineChanges,
    pub accumulator: &'a mut [i16],
}

impl<'a> LineSummand<'a> {
    fn over<R>(self, rows: R) -> LineSum<'a, R> {
        LineSum { rows, steps: self.steps, accumulator: self.accumulator }
    }
}

/// What [`LinePass`] reads and writes beside the summands.
pub(super) struct LineBuffers<'a> {
    pub fresh: &'a [AlignedVec<i16>],
    pub sides: &'a [usize],
    pub activations: &'a mut [u8],
    pub masks: &'a mut [u16],
    pub psqt: &'a mut [i16],
}
