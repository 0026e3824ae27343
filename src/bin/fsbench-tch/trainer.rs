//! A network in training as tensors on a device. It takes the same steps as the library's kernels, by embedding bags
//! and automatic differentiation, up to rounding: a device adds in its own order.

use fsbench::features::Factors;
use fsbench::train::TrainError;
use fsbench::train::trainer::{
    ALPHA, ActiveFeatures, Activity, Adam, Batch, SYNC_PERIOD, SampleLosses, StepLosses, Sums, Trainer, TrainingRules,
    TrainingState, UpdateRule, WeightedBatch, broken_target, explain_losses, saturation,
};
use tch::{Device, Kind, TchError, Tensor};

use crate::adam::{self, TensorParameters};
use crate::bucket_order::BucketOrder;
use crate::dense::{DenseInput, DenseLayers, activate};
use crate::loss::{self, Losses, losses_of, minimised_loss};
use crate::tensor_values::{copy_values, with_values};
use crate::torch_error;

/// A parameter with its moments.
struct Parameter {
    value: Tensor,
    first_moment: Tensor,
    second_moment: Tensor,
    /// Lookahead's slow weights.
    slow: Option<Tensor>,
    rule: UpdateRule,
}

/// A network in training on a device.
pub struct TchTrainer {
    /// As of the last [`TchTrainer::download`].
    state: TrainingState,
    rules: TrainingRules,
    device: Device,
    step: u64,
    /// In the order of the network's tensors; with factors, the first holds the features' own rows.
    parameters: Vec<Parameter>,
    /// Rows of virtual inputs, and the virtual inputs of each feature.
    virtual_rows: Option<(Parameter, IndexLists)>,
}

/// Lists of row indices, as embedding bags take them.
struct IndexLists {
    indices: Tensor,
    offsets: Tensor,
}

impl IndexLists {
    fn of_virtual_inputs(factors: &Factors, features: u32, device: Device) -> Result<IndexLists, TchError> {
        let mut indices = Vec::new();
        let mut offsets = vec![0i32];
        for feature in 0..features {
            indices.extend(factors.inputs(feature).iter().map(|input| *input as i32));
            offsets.push(indices.len() as i32);
        }
        Ok(IndexLists {
            indices: Tensor::f_from_slice(&indices)?.f_to_device(device)?,
            offsets: Tensor::f_from_slice(&offsets)?.f_to_device(device)?,
        })
    }

    fn of_features(active: ActiveFeatures<'_>, device: Device) -> Result<IndexLists, TchError> {
        Ok(IndexLists {
            indices: Tensor::f_from_slice(active.indices())?.f_to_device(device)?,
            offsets: Tensor::f_from_slice(active.offsets())?.f_to_device(device)?,
        })
    }

    /// The sum of `table`'s rows over each list.
    fn sum_rows(&self, table: &Tensor) -> Result<Tensor, TchError> {
        let weights = None::<Tensor>;
        let (sums, ..) = Tensor::f_embedding_bag(table, &self.indices, &self.offsets, false, 0, false, weights, true)?;
        Ok(sums)
    }
}

/// The result of a forward pass.
struct ForwardPass {
    losses: Losses,
    /// The activated accumulators.
    activations: Tensor,
}

impl TchTrainer {
    /// # Errors
    /// When libtorch fails.
    pub fn new(state: TrainingState, rules: TrainingRules, device: Device) -> Result<TchTrainer, TrainError> {
        TchTrainer::uploaded(state, rules, device).map_err(torch_error)
    }

    fn uploaded(state: TrainingState, rules: TrainingRules, device: Device) -> Result<TchTrainer, TchError> {
        let upload = |values: &[f32], dimensions: &[usize]| -> Result<Tensor, TchError> {
            let size: Vec<i64> = dimensions.iter().map(|size| *size as i64).collect();
            Tensor::f_from_slice(values)?.f_view(&size[..])?.f_to_device(device)
        };
        let leaf = |values: &[f32], dimensions: &[usize]| {
            Ok::<_, TchError>(upload(values, dimensions)?.set_requires_grad(true))
        };
        let updates = rules.updates(&state.net.shape);
        let mut parameters = Vec::new();
        let arrays =
            state.net.tensors().into_iter().zip(state.first_moments.tensors()).zip(state.second_moments.tensors());
        let slow = state.lookahead.as_ref().map(|lookahead| lookahead.net.tensors());
        for (number, (((values, first), second), (_, size))) in arrays.zip(state.net.shape.tensors()).enumerate() {
            let values = match (&state.factored, number) {
                (Some(factored), 0) => &factored.own[..],
                _ => values,
            };
            parameters.push(Parameter {
                value: leaf(values, &size)?,
                first_moment: upload(first, &size)?,
                second_moment: upload(second, &size)?,
                slow: slow.as_ref().map(|slow| upload(slow[number], &size)).transpose()?,
                rule: updates[number],
            });
        }
        let virtual_rows = state.factored.as_ref().map(|factored| -> Result<_, TchError> {
            let row = state.net.shape.row_len();
            let size = [factored.virtual_rows.len() / row, row];
            let slow = state.lookahead.as_ref().map(|lookahead| upload(&lookahead.virtual_rows, &size)).transpose()?;
            let parameter = Parameter {
                value: leaf(&factored.virtual_rows, &size)?,
                first_moment: upload(&factored.first_moments, &size)?,
                second_moment: upload(&factored.second_moments, &size)?,
                slow,
                rule: updates[0],
            };
            Ok((parameter, IndexLists::of_virtual_inputs(factored.factors(), state.net.shape.features, device)?))
        });
        let virtual_rows = virtual_rows.transpose()?;
        Ok(TchTrainer { step: state.step, state, rules, device, parameters, virtual_rows })
    }

    /// The gradients of the batches' weighted losses, and each batch's losses.
    fn backward(&self, batches: &[WeightedBatch<'_>]) -> Result<Vec<Sums>, TchError> {
        let mut all_sums = Vec::with_capacity(batches.len());
        for WeightedBatch { batch, weight } in batches {
            let ForwardPass { losses, activations } = self.forward(batch)?;
            let sparsity = self.rules.optimisation.sparsity;
            minimised_loss(&losses.each, &activations, sparsity, batch, *weight)?.f_backward()?;
            all_sums.push(loss::sums(&losses)?);
        }
        Ok(all_sums)
    }

    /// The gradient's length. It counts the network's own parameters, without virtual rows.
    fn gradient_length(&self) -> Result<f64, TchError> {
        let mut squares = Vec::with_capacity(self.parameters.len());
        for parameter in &self.parameters {
            squares.push(parameter.gradient()?.f_square()?.f_sum(Kind::Double)?);
        }
        Ok(Tensor::f_stack(&squares, 0)?.f_sum(Kind::Double)?.f_double_value(&[])?.sqrt())
    }

    fn clear_gradients(&self) -> Result<(), TchError> {
        for parameter in self.parameters.iter().chain(self.virtual_rows.iter().map(|(parameter, _)| parameter)) {
            let _ = parameter.gradient()?.f_zero_()?;
        }
        Ok(())
    }

    fn update(&mut self, adam: Adam, synchronise: bool) -> Result<(), TchError> {
        for parameter in &mut self.parameters {
            parameter.update(adam, synchronise)?;
        }
        if let Some((parameter, _)) = &mut self.virtual_rows {
            return parameter.update(adam, synchronise);
        }
        // Of a sum with virtual rows, the sum is clamped.
        self.parameters[0].clamp_narrow(&self.parameters[0].value)
    }

    /// Copies the state from the device.
    fn download(&mut self) -> Result<&TrainingState, TchError> {
        let merged = self.merged_rows()?;
        let state = &mut self.state;
        state.step = self.step;
        let arrays = state.net.tensors_mut().into_iter().zip(state.first_moments.tensors_mut());
        for ((parameter, (values, first)), second) in
            self.parameters.iter().zip(arrays).zip(state.second_moments.tensors_mut())
        {
            copy_values(&parameter.value, values)?;
            copy_values(&parameter.first_moment, first)?;
            copy_values(&parameter.second_moment, second)?;
        }
        copy_values(&merged, &mut state.net.ft_weights)?;
        if let (Some(factored), Some((parameter, _))) = (&mut state.factored, &self.virtual_rows) {
            copy_values(&self.parameters[0].value, &mut factored.own)?;
            copy_values(&parameter.value, &mut factored.virtual_rows)?;
            copy_values(&parameter.first_moment, &mut factored.first_moments)?;
            copy_values(&parameter.second_moment, &mut factored.second_moments)?;
        }
        if let Some(lookahead) = &mut state.lookahead {
            for (parameter, values) in self.parameters.iter().zip(lookahead.net.tensors_mut()) {
                parameter.slow.as_ref().map(|slow| copy_values(slow, values)).transpose()?;
            }
            if let Some((Parameter { slow: Some(rows), .. }, _)) = &self.virtual_rows {
                copy_values(rows, &mut lookahead.virtual_rows)?;
            }
        }
        Ok(&self.state)
    }

    /// The feature transformer's rows, factors merged.
    fn merged_rows(&self) -> Result<Tensor, TchError> {
        let own = &self.parameters[0];
        match &self.virtual_rows {
            None => Ok(own.value.shallow_clone()),
            Some((parameter, lists)) => {
                let sums = own.value.f_add(&lists.sum_rows(&parameter.value)?)?;
                // Clamped forward; backward the clamping is ignored.
                let limit = own.rule.limit;
                let excess = tch::no_grad(|| {
                    let clamped = sums.f_clamp(-limit, limit)?;
                    own.clamp_narrow(&clamped)?;
                    clamped.f_sub(&sums)
                })?;
                sums.f_add(&excess)
            }
        }
    }

    fn forward(&self, batch: &Batch<'_>) -> Result<ForwardPass, TchError> {
        let shape = &self.state.net.shape;
        let scheme = &self.rules.scheme;
        let l1 = shape.l1 as i64;
        let order = BucketOrder::new(batch, &shape.buckets);
        let table = self.merged_rows()?;
        let mut sides = Vec::with_capacity(2);
        for active in batch.active {
            sides.push(IndexLists::of_features(active, self.device)?.sum_rows(&table)?);
        }
        let activated = |side: &Tensor| {
            let neurons = side.f_narrow(1, 0, l1)?.f_add(&self.parameters[1].value)?;
            activate(shape.activation, &neurons, scheme.accumulator_product_scale())
        };
        let mut activations = Tensor::f_cat(&[activated(&sides[0])?, activated(&sides[1])?], 1)?;
        let mut psqt = if shape.psqt {
            let columns = |side: &Tensor| side.f_narrow(1, l1, shape.buckets.count as i64);
            Some(columns(&sides[0])?.f_sub(&columns(&sides[1])?)?.f_mul_scalar(0.5)?)
        } else {
            None
        };
        if shape.buckets.count > 1 {
            let positions: Vec<i64> = order.positions.iter().map(|position| i64::from(*position)).collect();
            let positions = Tensor::f_from_slice(&positions)?.f_to_device(self.device)?;
            activations = activations.f_index_select(0, &positions)?;
            psqt = psqt.map(|psqt| psqt.f_index_select(0, &positions)).transpose()?;
        }
        let buckets: Vec<i64> = order.buckets.iter().map(|bucket| i64::from(*bucket)).collect();
        let psqt = psqt.map(|psqt| {
            let buckets = Tensor::f_from_slice(&buckets)?.f_to_device(self.device)?;
            psqt.f_gather(1, &buckets.f_unsqueeze(1)?, false)?.f_squeeze_dim(1)
        });
        let psqt = psqt.transpose()?;
        let layers = self.parameters[2..].chunks(2).map(|pair| {
            let weights = &pair[0].value;
            // Rounded to the grid forward; backward the rounding is ignored.
            let rounded = pair[0].rule.grid.map_or_else(
                || Ok(weights.shallow_clone()),
                |scale| {
                    let rounding =
                        tch::no_grad(|| weights.f_mul_scalar(scale)?.f_round()?.f_div_scalar(scale)?.f_sub(weights))?;
                    weights.f_add(&rounding)
                },
            )?;
            Ok((rounded, pair[1].value.shallow_clone()))
        });
        let layers = layers.collect::<Result<Vec<_>, TchError>>()?;
        let dense = DenseLayers::from_tensors(&self.state.net, layers, scheme);
        let out =
            dense.forward(&DenseInput { activations: &activations, psqt: psqt.as_ref(), counts: &order.counts })?;
        let losses = losses_of(&self.rules.loss, &order.restore(out)?, batch.labels)?;
        Ok(ForwardPass { losses, activations })
    }
}

impl Trainer for TchTrainer {
    fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<StepLosses>, TrainError> {
        let sums = self.backward(batches).map_err(torch_error)?;
        let losses: Vec<f64> = sums.iter().map(Sums::mean_loss).collect();
        let length = self.gradient_length().map_err(torch_error)?;
        if !length.is_finite() || losses.iter().any(|loss| !loss.is_finite()) {
            self.clear_gradients().map_err(torch_error)?;
            let step = self.step + 1;
            let cause = explain_losses(&self.state()?.net, broken_target(batches), &losses);
            return Err(TrainError::NotFinite { step, cause, learning_rate });
        }
        self.step += 1;
        let adam = self.rules.adam(learning_rate, self.step, || length);
        let synchronise = self.step.is_multiple_of(SYNC_PERIOD);
        tch::no_grad(|| self.update(adam, synchronise)).map_err(torch_error)?;
        Ok(vec![StepLosses { step: self.step, batches: sums }])
    }

    fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<(Sums, SampleLosses), TrainError> {
        let shape = &self.state.net.shape;
        let width = shape.activation.outputs(shape.l1);
        let saturation = saturation(shape.activation, &self.rules.scheme);
        let evaluate = || {
            let ForwardPass { losses, activations } = self.forward(batch)?;
            with_values(&activations, |values| activity.count(values.chunks_exact(2 * width), width, saturation))?;
            Ok((loss::sums(&losses)?, losses.copied()?))
        };
        tch::no_grad(evaluate).map_err(torch_error)
    }

    fn step(&self) -> u64 {
        self.step
    }

    fn state(&mut self) -> Result<&TrainingState, TrainError> {
        self.download().map_err(torch_error)
    }
}

impl Parameter {
    /// Clamps the neurons' weights of narrow rows; `rows` are this parameter's, or sums of them: [features, columns].
    fn clamp_narrow(&self, rows: &Tensor) -> Result<(), TchError> {
        if let Some(limits) = self.rule.rows.filter(|limits| limits.narrow_rows > 0) {
            let limit = f64::from(limits.narrow);
            let narrow = rows.f_narrow(0, 0, limits.narrow_rows as i64)?;
            let _ = narrow.f_narrow(1, 0, limits.neurons as i64)?.f_clamp_(-limit, limit)?;
        }
        Ok(())
    }

    /// The gradient; zero before the first one, as for the layers of a bucket without positions.
    fn gradient(&self) -> Result<Tensor, TchError> {
        let gradient = self.value.f_grad()?;
        if gradient.defined() { Ok(gradient) } else { self.value.f_detach()?.f_zeros_like() }
    }

    /// See [`adam::update`]. Clears the gradient; `synchronise` says whether Lookahead's weights meet.
    fn update(&mut self, adam: Adam, synchronise: bool) -> Result<(), TchError> {
        let adam = if self.rule.decays { adam } else { adam.without_decay() };
        let mut gradient = self.gradient()?;
        let Parameter { value, first_moment, second_moment, .. } = self;
        let slice = TensorParameters { parameters: value, first: first_moment, second: second_moment };
        adam::update(adam, slice, &gradient, self.rule.limit)?;
        let _ = gradient.f_zero_()?;
        if let Some(slow) = self.slow.as_mut().filter(|_| synchronise) {
            let _ = slow.f_lerp_(&self.value, f64::from(ALPHA))?;
            self.value.f_copy_(slow)?;
        }
        Ok(())
    }
}
