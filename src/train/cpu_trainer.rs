//! Training on the CPU by this library's own kernels.
//!
//! A batch is cut into micro-batches of a fixed number of positions ([`super::micro-batch`]). Each micro-batch computes
//! its accumulators, runs the dense layers forward and backward on one thread and returns its gradients. Micro-batches
//! share nothing, and their sums are added in order ([`super::gradient`]). Then each row of the feature transformer
//! takes its Adam step.
//!
//! Forward, dense weights are rounded to the scheme's grid; the gradient with respect to the rounded weight moves the
//! unrounded one (straight-through estimator: Bengio et al. 2013). So quantisation costs little even on a coarse grid.

use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::activity::Activity;
use super::adam::{Adam, ParameterSlice};
use super::batch::Batch;
use super::gradient::{BatchPosition, FtGradients};
use super::lookahead::SYNC_PERIOD;
use super::micro_batch::{MicroBatchGradients, MicroBatchPass, Workspace, samples_per_micro_batch};
use super::order::{ContextBlock, sample_order};
use super::row_limits::RowLimits;
use super::rows::PaddedRows;
use super::trainer::{
    SampleLosses, StepLosses, Sums, Trainer, TrainerSetup, TrainingRules, TrainingState, WeightedBatch,
};
use super::{TrainError, divergence};
use crate::cpu::BackEnd;

/// Rows of the feature transformer that one task updates.
const TASK_ROWS: usize = 8;

/// A network in training on the CPU.
pub struct CpuTrainer {
    /// After the first step or evaluation, only steps may change the network's rows.
    state: TrainingState,
    rules: TrainingRules,
    pool: ThreadPool,
    gradients: FtGradients,
    /// The network's rows as the kernels read them; empty before the first step or evaluation.
    rows: OnceLock<PaddedRows>,
    /// By which samples are sorted.
    context_block: Option<ContextBlock>,
    /// One for each thread that is at work.
    workspaces: Mutex<Vec<Workspace>>,
    back_end: BackEnd,
}

impl CpuTrainer {
    /// # Errors
    /// When no threads can be started.
    pub fn new(state: TrainingState, rules: TrainingRules, threads: usize) -> Result<CpuTrainer, TrainError> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| TrainError::Config(format!("cannot start {threads} threads: {error}")))?;
        let back_end = BackEnd::best();
        let shape = &state.net.shape;
        let gradients = FtGradients::new(shape.features as usize, shape.row_len(), back_end);
        Ok(CpuTrainer {
            state,
            rules,
            pool,
            gradients,
            rows: OnceLock::new(),
            context_block: None,
            workspaces: Mutex::default(),
            back_end,
        })
    }

    /// The trainer of a run.
    ///
    /// # Errors
    /// As [`CpuTrainer::new`].
    pub fn of_run(setup: TrainerSetup<'_>) -> Result<Box<dyn Trainer>, TrainError> {
        let TrainerSetup { state, rules, set, threads } = setup;
        let trainer = CpuTrainer::new(state, rules, threads)?;
        Ok(Box::new(trainer.sorted_by(ContextBlock::of(set))))
    }

    /// Lets steps visit samples of equal contexts together, which is faster if rows do not fit into a cache.
    #[must_use]
    fn sorted_by(self, context_block: Option<ContextBlock>) -> CpuTrainer {
        let context_block = context_block.filter(|_| !self.gradients.micro_batches_sum_rows());
        CpuTrainer { context_block, ..self }
    }

    /// See [`Trainer::train`]. Returns the losses of this step's batches.
    ///
    /// # Errors
    /// When a loss or gradient is not finite: then no step is taken.
    pub fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        let width = self.state.net.shape.row_len();
        let features = self.state.net.shape.features as usize;
        let order = |weighted: &WeightedBatch<'_>| sample_order(&weighted.batch, self.context_block.as_ref());
        let orders: Vec<Vec<u32>> = batches.iter().map(order).collect();
        let micro_batches: Vec<(usize, &[u32])> = orders
            .iter()
            .enumerate()
            .flat_map(|(number, order)| {
                order.chunks(samples_per_micro_batch(&batches[number].batch)).map(move |samples| (number, samples))
            })
            .collect();
        let each = |number: usize| batches[number].batch.positions_per_sample();
        let sizes: Vec<usize> = micro_batches.iter().map(|(number, samples)| samples.len() * each(*number)).collect();
        let CpuTrainer { state, rules, gradients, rows, pool, workspaces, .. } = self;
        let net = &state.net;
        let rows = rows.get_or_init(|| pool.install(|| PaddedRows::copied(&net.ft_weights, width)));
        let pass = MicroBatchPass::new(net, rows, rules, self.back_end);
        let sums_by_micro_batch = gradients.micro_batches_sum_rows();
        let (outputs, tiles) = gradients.prepare(&sizes);
        let forward_and_backward = || {
            let micro_batches = micro_batches.par_iter().zip(outputs).map(|((number, samples), output)| {
                let WeightedBatch { batch, weight } = &batches[*number];
                (*number, with_workspace(workspaces, |memory| pass.train(batch, *weight, samples, output, memory)))
            });
            micro_batches.collect::<Vec<(usize, MicroBatchGradients)>>()
        };
        let transpose = || {
            if !sums_by_micro_batch {
                let active: Vec<_> = batches.iter().map(|weighted| weighted.batch.active).collect();
                let positions = micro_batches.iter().flat_map(|(number, samples)| {
                    let each = each(*number) as u32;
                    let positions = samples.iter().flat_map(move |sample| sample * each..(sample + 1) * each);
                    positions.map(|position| (*number as u32, position))
                });
                tiles.fill(&active, &positions.collect::<Vec<BatchPosition>>(), width, features);
            }
        };
        let micro_batches = pool.install(|| rayon::join(forward_and_backward, transpose).0);
        let mut sums = vec![Sums::default(); batches.len()];
        micro_batches.iter().for_each(|(number, micro_batch)| sums[*number].add(micro_batch.sums));
        let mut micro_batches = micro_batches.into_iter().map(|(_, micro_batch)| micro_batch);
        let Some(first) = micro_batches.next() else { return Ok(sums) };
        let total = micro_batches.fold(first, |total, micro_batch| total.plus(&micro_batch));
        let losses: Vec<f64> = sums.iter().map(Sums::mean_loss).collect();
        if !divergence::all_finite(&losses, &total) {
            let cause = divergence::explain(&self.state.net, batches, &losses, &total);
            return Err(TrainError::NotFinite { step: self.state.step + 1, cause, learning_rate });
        }
        self.pool.install(|| self.gradients.sum_rows());
        self.state.step += 1;
        let step = self.state.step;
        let adam = self.rules.adam(learning_rate, step, || self.gradient_length(&total));
        self.update(adam, &total);
        let TrainingState { net, factored, lookahead, .. } = &mut self.state;
        if let Some(lookahead) = lookahead
            && step.is_multiple_of(SYNC_PERIOD)
        {
            let limits = RowLimits::new(&net.shape, &self.rules.scheme);
            lookahead.synchronise(net, factored.as_mut(), limits);
            self.rows.take();
        }
        Ok(sums)
    }

    /// See [`Trainer::evaluate`].
    pub fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> (Sums, SampleLosses) {
        let CpuTrainer { state, rules, rows, pool, .. } = self;
        let net = &state.net;
        let rows = rows.get_or_init(|| pool.install(|| PaddedRows::copied(&net.ft_weights, net.shape.row_len())));
        let pass = MicroBatchPass::new(net, rows, rules, self.back_end);
        let samples: Vec<u32> = (0..batch.samples as u32).collect();
        let evaluated: Vec<(Sums, SampleLosses, Activity)> = self.pool.install(|| {
            let micro_batches = samples.par_chunks(samples_per_micro_batch(batch));
            let evaluate = |samples| with_workspace(&self.workspaces, |memory| pass.evaluate(batch, samples, memory));
            micro_batches.map(evaluate).collect()
        });
        let mut sums = Sums::default();
        let mut each = SampleLosses::default();
        for (micro_batch_sums, micro_batch_each, micro_batch_activity) in evaluated {
            sums.add(micro_batch_sums);
            each.append(micro_batch_each);
            activity.add(&micro_batch_activity);
        }
        (sums, each)
    }

    /// √Σ g² over the network's parameters, factors merged.
    fn gradient_length(&self, total: &MicroBatchGradients) -> f64 {
        let square = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        let features = 0..self.state.net.shape.features as usize;
        let row = |feature| self.gradients.row(feature).map_or(0.0, square);
        let rows: Vec<f64> = self.pool.install(|| features.into_par_iter().map(row).collect());
        let layers: f64 = total.layers.iter().map(|values| square(values)).sum();
        (rows.iter().sum::<f64>() + square(&total.ft_biases) + layers).sqrt()
    }

    fn update(&mut self, adam: Adam, total: &MicroBatchGradients) {
        let CpuTrainer { state, rules, pool, gradients, rows, .. } = self;
        let TrainingState { net, factored, first_moments, second_moments, .. } = state;
        let width = net.shape.row_len();
        let limits = RowLimits::new(&net.shape, &rules.scheme);
        let Some(padded_rows) = rows.get_mut() else { return };
        pool.install(|| {
            if let Some(factored) = factored {
                let moments = [&mut first_moments.ft_weights[..], &mut second_moments.ft_weights[..]];
                return factored.update(adam, (&mut net.ft_weights, padded_rows), moments, gradients, limits);
            }
            let stride = padded_rows.stride();
            let zeros = vec![0.0; width];
            let rows = net
                .ft_weights
                .par_chunks_mut(width * TASK_ROWS)
                .zip(first_moments.ft_weights.par_chunks_mut(width * TASK_ROWS))
                .zip(second_moments.ft_weights.par_chunks_mut(width * TASK_ROWS))
                .zip(padded_rows.values_mut().par_chunks_mut(stride * TASK_ROWS));
            rows.enumerate().for_each(|(task, (((parameters, first), second), padded_rows))| {
                let rows = parameters.chunks_mut(width).zip(first.chunks_mut(width)).zip(second.chunks_mut(width));
                for (number, (((parameters, first), second), padded_row)) in
                    rows.zip(padded_rows.chunks_mut(stride)).enumerate()
                {
                    let feature = task * TASK_ROWS + number;
                    let gradient = gradients.row(feature).unwrap_or(&zeros);
                    let slice = ParameterSlice { parameters: &mut *parameters, first, second };
                    adam.update(slice, gradient, limits.all);
                    limits.clamp_narrow(feature, parameters);
                    padded_row[..width].copy_from_slice(parameters);
                }
            });
        });
        let rules = rules.updates(&net.shape);
        let gradients = std::iter::once(&total.ft_biases).chain(&total.layers);
        let moments = first_moments.tensors_mut().into_iter().zip(second_moments.tensors_mut());
        let all = net.tensors_mut().into_iter().zip(moments).zip(rules).skip(1).zip(gradients);
        for (((parameters, (first, second)), rule), gradient) in all {
            let adam = if rule.decays { adam } else { adam.without_decay() };
            adam.update(ParameterSlice { parameters, first, second }, gradient, rule.limit as f32);
        }
    }
}

impl Trainer for CpuTrainer {
    fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<StepLosses>, TrainError> {
        let batches = CpuTrainer::train(self, batches, learning_rate)?;
        Ok(vec![StepLosses { step: self.state.step, batches }])
    }

    fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<(Sums, SampleLosses), TrainError> {
        Ok(CpuTrainer::evaluate(self, batch, activity))
    }

    fn step(&self) -> u64 {
        self.state.step
    }

    fn state(&mut self) -> Result<&TrainingState, TrainError> {
        Ok(&self.state)
    }
}

/// Calls `work` with a workspace of which no other thread makes use.
fn with_workspace<T>(workspaces: &Mutex<Vec<Workspace>>, work: impl FnOnce(&mut Workspace) -> T) -> T {
    let lock = || workspaces.lock().unwrap_or_else(PoisonError::into_inner);
    let mut workspace = lock().pop().unwrap_or_default();
    let result = work(&mut workspace);
    lock().push(workspace);
    result
}

#[cfg(test)]
mod tests;
