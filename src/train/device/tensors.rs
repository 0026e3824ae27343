//! A model in training as tensors of a device: the same steps as [`Model`] takes, by embedding bags and automatic
//! differentiation. Sums are rounded as the device rounds them, so that not every bit is the same.

use tch::{Device, Kind, TchError, Tensor};

use super::super::accumulators;
use super::super::activity::Activity;
use super::super::adam::{Adam, TensorSlice};
use super::super::batch::{Batch, Rows};
use super::super::dense::{Head, Input, activate};
use super::super::lookahead::{FOLLOW, LOOKAHEAD_STEPS};
use super::super::memory::{copy_numbers, with_numbers};
use super::super::model::{Bound, Model, Part, Sums, bounds};
use super::super::shard::{Grouped, objective, sums};
use super::super::{TrainError, divergence, threads};
use crate::features::Factors;

/// A parameter with its moments.
struct Parameter {
    value: Tensor,
    first: Tensor,
    second: Tensor,
    slow: Option<Tensor>,
    bound: Bound,
}

/// See the module.
pub struct Tensors {
    /// Settings, and the state as of the last time it was asked for.
    model: Model,
    device: Device,
    step: u64,
    /// In the order of the network's tensors; with factors, the first are the features' own rows.
    parameters: Vec<Parameter>,
    /// Rows of virtual inputs, and which of them each feature has.
    factor: Option<(Parameter, Lists)>,
}

/// Lists of numbers, as embedding bags take them.
struct Lists {
    indices: Tensor,
    offsets: Tensor,
}

impl Lists {
    fn of(factors: &Factors, features: u32, device: Device) -> Result<Lists, TchError> {
        let (mut indices, mut offsets) = (Vec::new(), vec![0i32]);
        for feature in 0..features {
            indices.extend(factors.inputs(feature).iter().map(|input| *input as i32));
            offsets.push(indices.len() as i32);
        }
        Ok(Lists {
            indices: Tensor::f_from_slice(&indices)?.f_to_device(device)?,
            offsets: Tensor::f_from_slice(&offsets)?.f_to_device(device)?,
        })
    }

    fn rows(rows: Rows<'_>, device: Device) -> Result<Lists, TchError> {
        Ok(Lists {
            indices: Tensor::f_from_slice(rows.indices())?.f_to_device(device)?,
            offsets: Tensor::f_from_slice(rows.offsets())?.f_to_device(device)?,
        })
    }

    /// Sums of `table`'s rows, a list each.
    fn sums(&self, table: &Tensor) -> Result<Tensor, TchError> {
        let weights = None::<Tensor>;
        let (sums, ..) = Tensor::f_embedding_bag(table, &self.indices, &self.offsets, false, 0, false, weights, true)?;
        Ok(sums)
    }
}

/// What forwards gives: the losses and, for whoever looks, the activated accumulators.
struct Forwards {
    sums: Sums,
    each: Tensor,
    activations: Tensor,
}

impl Tensors {
    /// # Errors
    /// When libtorch fails.
    pub fn new(model: Model, device: Device) -> Result<Tensors, TrainError> {
        threads::alone();
        let put = |values: &[f32], dimensions: &[usize]| -> Result<Tensor, TchError> {
            let size: Vec<i64> = dimensions.iter().map(|size| *size as i64).collect();
            Tensor::f_from_slice(values)?.f_view(&size[..])?.f_to_device(device)
        };
        let leaf =
            |values: &[f32], dimensions: &[usize]| Ok::<_, TchError>(put(values, dimensions)?.set_requires_grad(true));
        let bounds = bounds(&model.net.shape, model.scheme());
        let mut parameters = Vec::new();
        let arrays = model.net.tensors().into_iter().zip(model.first.tensors()).zip(model.second.tensors());
        let slow = model.lookahead.as_ref().map(|slow| slow.net.tensors());
        for (number, (((values, first), second), (_, size))) in arrays.zip(model.net.shape.tensors()).enumerate() {
            let values = match (&model.factored, number) {
                (Some(factored), 0) => &factored.own[..],
                _ => values,
            };
            parameters.push(Parameter {
                value: leaf(values, &size)?,
                first: put(first, &size)?,
                second: put(second, &size)?,
                slow: slow.as_ref().map(|slow| put(slow[number], &size)).transpose()?,
                bound: bounds[number],
            });
        }
        let factor = model.factored.as_ref().map(|factored| -> Result<_, TchError> {
            let row = model.net.shape.row_len();
            let size = [factored.rows.len() / row, row];
            let slow = model.lookahead.as_ref().map(|slow| put(&slow.factor_rows, &size)).transpose()?;
            let parameter = Parameter {
                value: leaf(&factored.rows, &size)?,
                first: put(&factored.first, &size)?,
                second: put(&factored.second, &size)?,
                slow,
                bound: bounds[0],
            };
            Ok((parameter, Lists::of(factored.factors(), model.net.shape.features, device)?))
        });
        let factor = factor.transpose()?;
        Ok(Tensors { step: model.step, model, device, parameters, factor })
    }

    /// See [`Model::train`].
    ///
    /// # Errors
    /// As there.
    pub fn train(&mut self, parts: &[Part<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        threads::alone();
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            let Forwards { sums, each, activations } = self.forwards(&part.batch)?;
            let Part { batch, weight } = part;
            objective(&each, &activations, self.model.sparsity(), batch, *weight)?.f_backward()?;
            all.push(sums);
        }
        let losses: Vec<f64> = all.iter().map(Sums::mean_loss).collect();
        let every = || self.parameters.iter().chain(self.factor.iter().map(|(parameter, _)| parameter));
        let square = |parameter: &Parameter| parameter.gradient()?.f_square()?.f_sum(Kind::Double);
        // The length is that over the network's parameters, of which the virtual rows are no part.
        let squares = self.parameters.iter().map(square).collect::<Result<Vec<_>, TchError>>()?;
        let length = Tensor::f_stack(&squares, 0)?.f_sum(Kind::Double)?.f_double_value(&[])?.sqrt();
        if !length.is_finite() || losses.iter().any(|loss| !loss.is_finite()) {
            for parameter in every() {
                let _ = parameter.gradient()?.f_zero_()?;
            }
            let step = self.step + 1;
            let cause = divergence::explain_losses(&self.model()?.net, parts, &losses);
            return Err(TrainError::NotFinite { step, cause, learning_rate });
        }
        self.step += 1;
        let adam = self.model.adam(learning_rate, self.step, || length);
        let meet = self.step.is_multiple_of(LOOKAHEAD_STEPS);
        tch::no_grad(|| {
            let every = self.parameters.iter_mut().chain(self.factor.iter_mut().map(|(parameter, _)| parameter));
            every.into_iter().try_for_each(|parameter| parameter.update(adam, meet))
        })?;
        Ok(all)
    }

    /// See [`Model::observe`].
    ///
    /// # Errors
    /// As there.
    pub fn observe(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<Sums, TrainError> {
        threads::alone();
        tch::no_grad(|| {
            let Forwards { sums, activations, .. } = self.forwards(batch)?;
            let shape = &self.model.net.shape;
            let width = shape.activation.outputs(shape.l1);
            let one = accumulators::one(shape.activation, self.model.scheme());
            with_numbers(&activations, |values| activity.add(&Activity::of(values, width, one)))?;
            Ok(sums)
        })
    }

    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The model, its state brought up to date.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn model(&mut self) -> Result<&Model, TrainError> {
        threads::alone();
        let merged = self.table()?;
        let model = &mut self.model;
        model.step = self.step;
        let arrays = model.net.tensors_mut().into_iter().zip(model.first.tensors_mut());
        for ((parameter, (values, first)), second) in self.parameters.iter().zip(arrays).zip(model.second.tensors_mut())
        {
            copy_numbers(&parameter.value, values)?;
            copy_numbers(&parameter.first, first)?;
            copy_numbers(&parameter.second, second)?;
        }
        copy_numbers(&merged, &mut model.net.ft_weights)?;
        if let (Some(factored), Some((parameter, _))) = (&mut model.factored, &self.factor) {
            copy_numbers(&self.parameters[0].value, &mut factored.own)?;
            copy_numbers(&parameter.value, &mut factored.rows)?;
            copy_numbers(&parameter.first, &mut factored.first)?;
            copy_numbers(&parameter.second, &mut factored.second)?;
        }
        if let Some(slow) = &mut model.lookahead {
            for (parameter, values) in self.parameters.iter().zip(slow.net.tensors_mut()) {
                parameter.slow.as_ref().map(|slow| copy_numbers(slow, values)).transpose()?;
            }
            if let Some((Parameter { slow: Some(rows), .. }, _)) = &self.factor {
                copy_numbers(rows, &mut slow.factor_rows)?;
            }
        }
        Ok(&self.model)
    }

    /// The feature transformer's rows, factors merged.
    fn table(&self) -> Result<Tensor, TchError> {
        let own = &self.parameters[0];
        match &self.factor {
            None => Ok(own.value.shallow_clone()),
            Some((parameter, lists)) => {
                let sums = own.value.f_add(&lists.sums(&parameter.value)?)?;
                // Backwards as if there were no bounds.
                let away = tch::no_grad(|| sums.f_clamp(-own.bound.limit, own.bound.limit)?.f_sub(&sums))?;
                sums.f_add(&away)
            }
        }
    }

    fn forwards(&self, batch: &Batch<'_>) -> Result<Forwards, TrainError> {
        let (shape, scheme) = (&self.model.net.shape, self.model.scheme());
        let l1 = shape.l1 as i64;
        let grouped = Grouped::new(batch, &(0..batch.samples), shape.buckets);
        let table = self.table()?;
        let mut sides = Vec::with_capacity(2);
        for rows in batch.rows {
            sides.push(Lists::rows(rows, self.device)?.sums(&table)?);
        }
        let activated = |side: &Tensor| -> Result<Tensor, TchError> {
            let neurons = side.f_narrow(1, 0, l1)?.f_add(&self.parameters[1].value)?;
            activate(shape.activation, &neurons, scheme.product_scale())
        };
        let mut activations = Tensor::f_cat(&[activated(&sides[0])?, activated(&sides[1])?], 1)?;
        let mut psqt = match shape.psqt {
            false => None,
            true => {
                let columns = |side: &Tensor| side.f_narrow(1, l1, shape.buckets.count as i64);
                Some(columns(&sides[0])?.f_sub(&columns(&sides[1])?)?.f_mul_scalar(0.5)?)
            }
        };
        if shape.buckets.count > 1 {
            let order: Vec<i64> = grouped.positions.iter().map(|position| i64::from(*position)).collect();
            let order = Tensor::f_from_slice(&order)?.f_to_device(self.device)?;
            activations = activations.f_index_select(0, &order)?;
            psqt = psqt.map(|psqt| psqt.f_index_select(0, &order)).transpose()?;
        }
        let buckets: Vec<i64> = grouped.buckets.iter().map(|bucket| i64::from(*bucket)).collect();
        let psqt = psqt.map(|psqt| {
            let buckets = Tensor::f_from_slice(&buckets)?.f_to_device(self.device)?;
            psqt.f_gather(1, &buckets.f_unsqueeze(1)?, false)?.f_squeeze_dim(1)
        });
        let psqt = psqt.transpose()?;
        let layers = self.parameters[2..].chunks(2).map(|pair| {
            let weights = &pair[0].value;
            // Forwards on the grid, backwards as if there were none.
            let rounded = pair[0].bound.grid.map_or_else(
                || Ok(weights.shallow_clone()),
                |scale| {
                    let away =
                        tch::no_grad(|| weights.f_mul_scalar(scale)?.f_round()?.f_div_scalar(scale)?.f_sub(weights))?;
                    weights.f_add(&away)
                },
            )?;
            Ok((rounded, pair[1].value.shallow_clone()))
        });
        let layers = layers.collect::<Result<Vec<_>, TchError>>()?;
        let head = Head::of_layers(&self.model.net, layers, scheme);
        let out = head.forward(&Input { activations: &activations, psqt: psqt.as_ref(), counts: &grouped.counts })?;
        let (sums, each) = sums(self.model.loss(), &grouped.back(out)?, batch.labels, batch.samples)?;
        Ok(Forwards { sums, each, activations })
    }
}

impl Parameter {
    /// Zeros where none has come yet, as to the layers of a bucket that no position fell into.
    fn gradient(&self) -> Result<Tensor, TchError> {
        let gradient = self.value.f_grad()?;
        if gradient.defined() { Ok(gradient) } else { self.value.f_detach()?.f_zeros_like() }
    }

    /// See [`Adam::update`]. Takes the gradient away.
    fn update(&mut self, adam: Adam, meet: bool) -> Result<(), TchError> {
        let adam = if self.bound.decays { adam } else { adam.without_decay() };
        let mut gradient = self.gradient()?;
        let Parameter { value: parameters, first, second, .. } = self;
        adam.step_of_tensors(TensorSlice { parameters, first, second }, &gradient, self.bound.limit)?;
        let _ = gradient.f_zero_()?;
        if let Some(slow) = self.slow.as_mut().filter(|_| meet) {
            let _ = slow.f_lerp_(&self.value, f64::from(FOLLOW))?;
            self.value.f_copy_(slow)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
