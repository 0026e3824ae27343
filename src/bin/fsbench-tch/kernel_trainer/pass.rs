//! The parts of a step: which kernel runs on which memory, in which order.
#![allow(unsafe_code, reason = "kernels take pointers")]

use std::ffi::{CStr, c_int};
use std::ptr;

use fsbench::train::TrainError;
use fsbench::train::trainer::{Labels, TrainingRules};
use tch::{Device, Kind, TchError, Tensor};

use super::arguments::{Arrays, Head, Loss, Memory, Step};
use super::device_batch::DeviceBatch;
use super::parameters::{Network, Parameters, active_columns};
use crate::kernels::{Argument, KernelLayout, Kernels, argument};
use crate::torch_error;

/// Batches of a step whose losses the state has room for.
pub const MOST_BATCHES: usize = 2;
/// Doubles in the state.
pub const STATE_LEN: usize = 3 * MOST_BATCHES + 3;

/// Threads in a block.
const THREADS: usize = 256;
/// Threads that a multiprocessor runs at once.
const RESIDENT: usize = 2048;
/// Entries that one thread adds up: `part_size` of `add_sorted`.
const PART: usize = 32;
/// Fours of columns that blocks which run at once read: their rows of a large table, or of a batch's gradients, stay in
/// the cache (`results/gpu/kernels/README.md`).
const SLICE: usize = 16;
/// `SCANNED` in kernels.cu.
const SCANNED: usize = 64;

/// One step in the making.
pub struct Pass<'a> {
    pub rules: &'a TrainingRules,
    pub layout: &'a KernelLayout,
    pub kernels: &'a dyn Kernels,
    pub device: Device,
    pub network: &'a Network,
    /// `State` in kernels.cu.
    pub left: Memory,
    pub step: Step,
}

/// Activated accumulators.
pub struct PassActivations {
    /// Sums of neurons that are multiplied; else empty.
    sums: Option<Tensor>,
    /// [positions, out_stride]
    out: Tensor,
}

/// Gradients that the dense layers leave.
pub struct DenseGradients {
    /// [positions, out_stride]
    of_out: Tensor,
    /// [positions]
    of_outputs: Tensor,
}

/// Losses of samples on the device.
pub struct DeviceLosses {
    pub each: Tensor,
    pub preferred: Tensor,
}

impl Pass<'_> {
    fn launch(
        &self,
        kernel: &CStr,
        grid: [usize; 2],
        block: [usize; 2],
        arguments: &[Argument<'_>],
    ) -> Result<(), TrainError> {
        // SAFETY: each call in this file passes what kernels.cu declares, in its order, with tensors of the sizes that
        // its comments give. The tensors live on the stream on which the kernel runs: libtorch reuses their memory for
        // later work of the same stream only.
        unsafe { self.kernels.launch(kernel, grid, block, arguments) }
    }

    fn empty(&self, size: &[usize], kind: Kind) -> Result<Tensor, TrainError> {
        let size: Vec<i64> = size.iter().map(|size| *size as i64).collect();
        Tensor::f_empty(&size[..], (kind, self.device)).map_err(torch_error)
    }

    fn zeros(&self, size: &[usize], kind: Kind) -> Result<Tensor, TrainError> {
        let size: Vec<i64> = size.iter().map(|size| *size as i64).collect();
        Tensor::f_zeros(&size[..], (kind, self.device)).map_err(torch_error)
    }

    /// Begins the step's state with what the step before it left.
    ///
    /// # Errors
    /// When the device fails.
    pub fn begin(&self, before: Option<Memory>) -> Result<(), TrainError> {
        let before = before.unwrap_or(ptr::null_mut());
        self.launch(c"begin_step", [1, 1], [1, 1], &[argument(&before), argument(&self.left)])
    }

    /// Makes the forward pass's copies of parameters.
    ///
    /// # Errors
    /// When the device fails.
    pub fn copy_parameters(&self) -> Result<(), TrainError> {
        for parameters in self.network.own().filter(|parameters| parameters.has_copy()) {
            let grid = [parameters.fours().div_ceil(THREADS), 1];
            self.launch(c"copy_parameters", grid, [THREADS, 1], &[argument(&parameters.array())])?;
        }
        Ok(())
    }

    /// Threads over so many fours of columns, and over rows.
    fn block(fours: usize) -> [usize; 2] {
        let across = if fours > 16 { fours.next_multiple_of(32).min(THREADS) } else { fours };
        [across, THREADS / across]
    }

    /// Threads over the fours of a slice of columns, and over rows; and how many slices so many fours have.
    fn sliced(fours: usize) -> ([usize; 2], usize) {
        let across = fours.min(SLICE);
        ([across, THREADS / across], fours.div_ceil(across))
    }

    /// # Errors
    /// When the device fails.
    pub fn accumulate(&self, batch: &DeviceBatch<'_>) -> Result<PassActivations, TrainError> {
        let positions = batch.batch.positions();
        let stride = self.layout.sums_stride;
        let sums = stride.map(|stride| self.empty(&[2 * positions, stride], Kind::Float)).transpose()?;
        let out = self.empty(&[positions, self.layout.out_stride], Kind::Float)?;
        let (block, slices) = Self::sliced(self.layout.width.div_ceil(4));
        self.launch(
            c"accumulate",
            [positions.div_ceil(block[1]), 2 * slices],
            block,
            &[
                argument(&self.network.table.read().data_ptr()),
                argument(&self.network.biases.read().data_ptr()),
                argument(&batch.lists),
                argument(&pointer(sums.as_ref())),
                argument(&out.data_ptr()),
                argument(&(positions as c_int)),
            ],
        )?;
        Ok(PassActivations { sums, out })
    }

    /// Counts the positive and the saturated activations of every neuron.
    ///
    /// # Errors
    /// When the device fails.
    pub fn activity(
        &self,
        batch: &DeviceBatch<'_>,
        activations: &PassActivations,
        saturation: f32,
    ) -> Result<[Tensor; 2], TrainError> {
        let counts = [self.zeros(&[self.layout.width], Kind::Int)?, self.zeros(&[self.layout.width], Kind::Int)?];
        let positions = batch.batch.positions();
        let across = self.layout.width.min(THREADS);
        let block = [across, THREADS / across];
        let grid = positions.div_ceil(block[1]).min(self.kernels.multiprocessors() * RESIDENT / THREADS);
        self.launch(
            c"count_activity",
            [grid, 1],
            block,
            &[
                argument(&counts[0].data_ptr()),
                argument(&counts[1].data_ptr()),
                argument(&activations.out.data_ptr()),
                argument(&saturation),
                argument(&(positions as c_int)),
            ],
        )?;
        Ok(counts)
    }

    /// The losses of every sample.
    ///
    /// # Errors
    /// When the device fails.
    pub fn losses(&self, batch: &DeviceBatch<'_>, activations: &PassActivations) -> Result<DeviceLosses, TrainError> {
        let samples = batch.batch.samples;
        let each = self.empty(&[samples], Kind::Float)?;
        let preferred = self.empty(&[samples], Kind::Uint8)?;
        let z1 = self.first_sums(activations)?;
        let mut head = self.head(batch, &z1);
        head.losses = each.data_ptr();
        head.preferred = preferred.data_ptr();
        self.launch_head(batch, &head, 0, 1.0)?;
        Ok(DeviceLosses { each, preferred })
    }

    /// The dense layers forward and backward, of the batch with this number in its step; adds their gradients.
    ///
    /// # Errors
    /// When the device fails.
    pub fn train_dense(
        &self,
        batch: &DeviceBatch<'_>,
        activations: &PassActivations,
        number: usize,
        weight: f64,
    ) -> Result<DenseGradients, TrainError> {
        let positions = batch.batch.positions();
        let z1 = self.first_sums(activations)?;
        let mut head = self.head(batch, &z1);
        // Of several stacks, a position's head writes the gradients of its own.
        let gradients = |outputs: usize| {
            let size = [positions, outputs];
            if self.layout.buckets == 1 { self.empty(&size, Kind::Float) } else { self.zeros(&size, Kind::Float) }
        };
        let layers = &self.layout.layers;
        let mut factors = vec![(gradients(layers[0].outputs)?, activations.out.shallow_clone())];
        for layer in &layers[1..] {
            factors.push((gradients(layer.outputs)?, self.empty(&[positions, layer.stride], Kind::Float)?));
        }
        head.gradients_1 = factors[0].0.data_ptr();
        let last = layers.len() - 1;
        if last > 0 {
            head.gradients_3 = factors[last].0.data_ptr();
            head.inputs_3 = factors[last].1.data_ptr();
        }
        if last > 1 {
            head.gradients_2 = factors[1].0.data_ptr();
            head.inputs_2 = factors[1].1.data_ptr();
        }
        let of_outputs = self.empty(&[positions], Kind::Float)?;
        head.output_gradients = of_outputs.data_ptr();
        self.launch_head(batch, &head, number, weight / batch.batch.samples as f64)?;
        let products = || {
            for (layer, (gradients, inputs)) in self.network.layers.iter().zip(&factors) {
                let _ = layer.gradient.shallow_clone().f_addmm_(&gradients.f_tr()?, inputs)?;
            }
            factors[0].0.f_mm(self.network.layers[0].read())
        };
        let of_out = products().map_err(torch_error)?;
        Ok(DenseGradients { of_out, of_outputs })
    }

    /// The sums of the first dense layer of all stacks.
    fn first_sums(&self, activations: &PassActivations) -> Result<Tensor, TrainError> {
        let product = || activations.out.f_mm(&self.network.layers[0].read().f_tr()?);
        product().map_err(torch_error)
    }

    fn head(&self, batch: &DeviceBatch<'_>, z1: &Tensor) -> Head {
        let table = self.network.table.read().data_ptr();
        let mut head = Head::new(z1.data_ptr(), table, batch.lists, batch.pieces);
        let layers = &self.network.layers;
        if layers.len() > 1 {
            head.weights_3 = layers[layers.len() - 1].read().data_ptr();
        }
        if layers.len() > 2 {
            head.weights_2 = layers[1].read().data_ptr();
        }
        head
    }

    /// `weight`: of a sample's loss.
    fn launch_head(&self, batch: &DeviceBatch<'_>, head: &Head, number: usize, weight: f64) -> Result<(), TrainError> {
        let samples = batch.batch.samples;
        let rules = &self.rules.loss;
        let centipawns = self.rules.scheme.float_centipawns();
        let loss = match batch.batch.labels {
            Labels::Eval(_) => Loss::eval(&rules.eval, centipawns, weight),
            Labels::Pqr => Loss::pqr(&rules.pqr, centipawns, weight),
        };
        let numbers = [samples as c_int, number as c_int];
        let ends = [argument(&numbers[0]), argument(&numbers[1]), argument(&self.left), argument(&self.step)];
        // A warp's threads, so that many blocks share the multiprocessors.
        let grid = [samples.div_ceil(32), 1];
        let block = [32, 1];
        match &batch.targets {
            Some(targets) => {
                let mut arguments = vec![argument(head), argument(targets), argument(&loss)];
                arguments.extend(ends);
                self.launch(c"head_eval", grid, block, &arguments)
            }
            None => {
                let mut arguments = vec![argument(head), argument(&loss)];
                arguments.extend(ends);
                self.launch(c"head_pqr", grid, block, &arguments)
            }
        }
    }

    /// Adds the gradients of the table and the biases.
    ///
    /// # Errors
    /// When the device fails.
    pub fn add_table_gradient(
        &self,
        batch: &DeviceBatch<'_>,
        activations: &PassActivations,
        gradients: &DenseGradients,
        weight: f64,
    ) -> Result<(), TrainError> {
        let values = (batch.batch.positions() * 2 * self.layout.width) as f64;
        let sparsity = (weight * self.rules.optimisation.sparsity / values) as f32;
        if self.layout.by_product {
            self.add_by_product(batch, activations, gradients, sparsity)
        } else {
            self.add_by_feature(batch, activations, gradients, sparsity)
        }
    }

    fn add_by_product(
        &self,
        batch: &DeviceBatch<'_>,
        activations: &PassActivations,
        gradients: &DenseGradients,
        sparsity: f32,
    ) -> Result<(), TrainError> {
        let positions = batch.batch.positions();
        let columns = active_columns(self.layout.features);
        let active = self.empty(&[2 * positions, columns], Kind::BFloat16)?;
        let block = Self::block(columns / 8);
        self.launch(
            c"active_rows",
            [positions.div_ceil(block[1]), 2],
            block,
            &[
                argument(&active.data_ptr()),
                argument(&batch.lists),
                argument(&(self.layout.features as c_int)),
                argument(&(columns as c_int)),
                argument(&(positions as c_int)),
            ],
        )?;
        let parts = [
            self.empty(&[2 * positions, self.layout.stride], Kind::BFloat16)?,
            self.empty(&[2 * positions, self.layout.stride], Kind::BFloat16)?,
        ];
        let block = Self::block(self.layout.width.div_ceil(4));
        let memory = [parts[0].data_ptr(), parts[1].data_ptr()];
        let mut arguments: Vec<Argument<'_>> = memory.iter().map(argument).collect();
        let rest = self.gradient_arguments(batch, activations, gradients, sparsity);
        arguments.extend(rest.pointers(&self.step));
        self.launch(c"differentiate_split", [positions.div_ceil(block[1]), 2], block, &arguments)?;
        for part in &parts {
            self.add_product(&active, part).map_err(torch_error)?;
        }
        Ok(())
    }

    /// Adds activeᵀ · part, of numbers in bfloat16, to the table's gradient.
    fn add_product(&self, active: &Tensor, part: &Tensor) -> Result<(), TchError> {
        let mut sum = self.network.table.gradient.shallow_clone();
        match self.device {
            // In tests: libtorch's CPU half has no such product.
            Device::Cpu => {
                let _ = sum.f_addmm_(&active.f_to_kind(Kind::Float)?.f_tr()?, &part.f_to_kind(Kind::Float)?)?;
            }
            _ => {
                let _ = sum.f_addmm_dtype_out(&sum, &active.f_tr()?, part, Kind::Float)?;
            }
        }
        Ok(())
    }

    fn add_by_feature(
        &self,
        batch: &DeviceBatch<'_>,
        activations: &PassActivations,
        gradients: &DenseGradients,
        sparsity: f32,
    ) -> Result<(), TrainError> {
        let positions = batch.batch.positions();
        let stride = self.layout.stride;
        let of_sums = self.empty(&[2 * positions, stride], Kind::Float)?;
        let block = Self::block(self.layout.width.div_ceil(4));
        // One wave of blocks: every thread adds to the biases, which is slow.
        let lanes = self.kernels.multiprocessors() * RESIDENT / (2 * block[0]);
        let blocks = positions.div_ceil(block[1]).min(lanes / block[1]).max(1);
        let memory = [of_sums.data_ptr(), self.network.biases.gradient.data_ptr()];
        let mut arguments: Vec<Argument<'_>> = memory.iter().map(argument).collect();
        let rest = self.gradient_arguments(batch, activations, gradients, sparsity);
        arguments.extend(rest.pointers(&self.step));
        self.launch(c"differentiate", [blocks, 2], block, &arguments)?;
        let entries = self.sorted(batch)?;
        let (block, slices) = Self::sliced(stride / 4);
        let parts = batch.active.div_ceil(PART).max(1);
        self.launch(
            c"add_sorted",
            [parts.div_ceil(block[1]), slices],
            block,
            &[
                argument(&self.network.table.gradient.data_ptr()),
                argument(&of_sums.data_ptr()),
                argument(&entries.data_ptr()),
                argument(&batch.lists),
                argument(&(positions as c_int)),
                argument(&(PART as c_int)),
            ],
        )
    }

    /// The batch's active features, each with its position and side, by feature.
    fn sorted(&self, batch: &DeviceBatch<'_>) -> Result<Tensor, TrainError> {
        let positions = batch.batch.positions() as c_int;
        let features = self.layout.features as c_int;
        let counts = self.zeros(&[self.layout.features], Kind::Int)?;
        let sums = self.empty(&[self.layout.features.div_ceil(SCANNED)], Kind::Int)?;
        let entries = self.empty(&[batch.active.max(1), 2], Kind::Int)?;
        let memory = [counts.data_ptr(), sums.data_ptr(), entries.data_ptr()];
        let [counts, sums, places] = memory.each_ref().map(argument);
        let lists = argument(&batch.lists);
        let features = argument(&features);
        let by_position = |kernel, arguments: &[Argument<'_>]| {
            self.launch(kernel, [batch.batch.positions().div_ceil(128), 2], [128, 1], arguments)
        };
        let by_part = |kernel, arguments: &[Argument<'_>]| {
            self.launch(kernel, [self.layout.features.div_ceil(SCANNED * 128), 1], [128, 1], arguments)
        };
        by_position(c"count_features", &[counts, lists, argument(&positions)])?;
        by_part(c"sum_counts", &[sums, counts, features])?;
        by_part(c"start_features", &[counts, sums, features])?;
        by_position(c"place_features", &[places, counts, lists, argument(&positions)])?;
        Ok(entries)
    }

    fn gradient_arguments(
        &self,
        batch: &DeviceBatch<'_>,
        activations: &PassActivations,
        gradients: &DenseGradients,
        sparsity: f32,
    ) -> GradientArguments {
        GradientArguments {
            memory: [
                pointer(activations.sums.as_ref()),
                activations.out.data_ptr(),
                gradients.of_out.data_ptr(),
                gradients.of_outputs.data_ptr(),
                batch.pieces,
            ],
            sparsity,
            positions: batch.batch.positions() as c_int,
            left: self.left,
        }
    }

    /// Takes the step and clears the gradients.
    ///
    /// # Errors
    /// When the device fails.
    pub fn update(&self) -> Result<(), TrainError> {
        if self.rules.optimisation.gradient_clip.is_some() {
            let arrays: Vec<_> = self.network.own().map(Parameters::array).collect();
            let blocks = self.kernels.multiprocessors() * RESIDENT / THREADS;
            self.launch(
                c"gradient_squares",
                [blocks, 1],
                [THREADS, 1],
                &[argument(&Arrays::new(&arrays)), argument(&self.left)],
            )?;
        }
        // First what reads the table's gradient.
        let small: Vec<&Parameters> = self.network.virtual_rows.iter().chain(self.network.own().skip(1)).collect();
        for parameters in [&small[..], &[&self.network.table]] {
            let arrays: Vec<_> = parameters.iter().map(|parameters| parameters.array()).collect();
            let fours: usize = parameters.iter().map(|parameters| parameters.fours()).sum();
            self.launch(
                c"update",
                [fours.div_ceil(THREADS), 1],
                [THREADS, 1],
                &[argument(&Arrays::new(&arrays)), argument(&self.left), argument(&self.step)],
            )?;
        }
        Ok(())
    }
}

/// What both kernels take that differentiate activations, after their outputs.
struct GradientArguments {
    memory: [Memory; 5],
    sparsity: f32,
    positions: c_int,
    left: Memory,
}

impl GradientArguments {
    fn pointers<'a>(&'a self, step: &'a Step) -> Vec<Argument<'a>> {
        let mut pointers: Vec<Argument<'a>> = self.memory.iter().map(argument).collect();
        pointers.extend([argument(&self.sparsity), argument(&self.positions), argument(&self.left), argument(step)]);
        pointers
    }
}

fn pointer(tensor: Option<&Tensor>) -> Memory {
    tensor.map_or(ptr::null_mut(), Tensor::data_ptr)
}
