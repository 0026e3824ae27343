//! A network's parameters on a device, each array with its moments, and their way there and back.

use std::ffi::c_int;
use std::ptr;

use fsbench::features::Factors;
use fsbench::net::FloatNet;
use fsbench::train::trainer::{TrainingRules, TrainingState, UpdateRule};
use tch::{Device, Kind, TchError, Tensor};

use super::arguments::{Array, Memory};
use crate::kernels::{DenseLayout, KernelLayout};
use crate::tensor_values::copy_values;

/// An array of parameters: [rows, stride].
pub struct Parameters {
    pub values: Tensor,
    first: Tensor,
    second: Tensor,
    pub gradient: Tensor,
    slow: Option<Tensor>,
    /// What the forward pass reads, if not the values.
    copy: Option<Tensor>,
    rows: usize,
    stride: usize,
    rule: UpdateRule,
    bias_column: Option<usize>,
    listed: Option<Listed>,
}

/// Lists of rows of another array, by row of this one.
struct Listed {
    starts: Tensor,
    list: Tensor,
    /// The other array's rows: see `listed` in kernels.cu.
    rows: Tensor,
    sums_gradients: bool,
}

/// Values of an array with its moments and slow weights, in the library's layout or the device's.
struct ArrayValues {
    values: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    slow: Option<Vec<f32>>,
}

impl Parameters {
    fn new(values: &ArrayValues, stride: usize, rule: UpdateRule, device: Device) -> Result<Parameters, TchError> {
        let rows = values.values.len() / stride;
        let upload =
            |values: &Vec<f32>| Tensor::f_from_slice(values)?.f_view([rows as i64, stride as i64])?.f_to_device(device);
        let rounded = rule.grid.is_some();
        let zeros = || Tensor::f_zeros([rows as i64, stride as i64], (Kind::Float, device));
        Ok(Parameters {
            values: upload(&values.values)?,
            first: upload(&values.first)?,
            second: upload(&values.second)?,
            gradient: zeros()?,
            slow: values.slow.as_ref().map(upload).transpose()?,
            copy: if rounded { Some(zeros()?) } else { None },
            rows,
            stride,
            rule,
            bias_column: None,
            listed: None,
        })
    }

    /// What the forward pass reads.
    pub fn read(&self) -> &Tensor {
        self.copy.as_ref().unwrap_or(&self.values)
    }

    pub fn has_copy(&self) -> bool {
        self.copy.is_some()
    }

    pub fn fours(&self) -> usize {
        self.rows * self.stride / 4
    }

    /// As the kernels take it.
    pub fn array(&self) -> Array {
        let pointer = |tensor: &Option<Tensor>| tensor.as_ref().map_or(ptr::null_mut(), Tensor::data_ptr);
        let of_list = |choose: fn(&Listed) -> &Tensor| -> Memory {
            self.listed.as_ref().map_or(ptr::null_mut(), |listed| choose(listed).data_ptr())
        };
        let limits = self.rule.rows;
        Array {
            values: self.values.data_ptr(),
            first: self.first.data_ptr(),
            second: self.second.data_ptr(),
            gradient: self.gradient.data_ptr(),
            slow: pointer(&self.slow),
            copy: pointer(&self.copy),
            half_copy: ptr::null_mut(),
            starts: of_list(|listed| &listed.starts),
            list: of_list(|listed| &listed.list),
            listed: of_list(|listed| &listed.rows),
            sums_gradients: self.listed.as_ref().is_some_and(|listed| listed.sums_gradients).into(),
            rows: self.rows as c_int,
            stride: self.stride as c_int,
            limit: self.rule.limit as f32,
            narrow: limits.map_or(0.0, |limits| limits.narrow),
            narrow_rows: limits.map_or(0, |limits| limits.narrow_rows as c_int),
            narrow_columns: limits.map_or(0, |limits| limits.neurons as c_int),
            bias_column: self.bias_column.map_or(-1, |column| column as c_int),
            decays: self.rule.decays.into(),
            grid: self.rule.grid.unwrap_or(0.0),
        }
    }

    fn download(&self) -> Result<ArrayValues, TchError> {
        let copied = |tensor: &Tensor| {
            let mut values = vec![0.0; self.rows * self.stride];
            copy_values(tensor, &mut values)?;
            Ok::<_, TchError>(values)
        };
        Ok(ArrayValues {
            values: copied(&self.values)?,
            first: copied(&self.first)?,
            second: copied(&self.second)?,
            slow: self.slow.as_ref().map(copied).transpose()?,
        })
    }
}

/// All parameters of a network.
pub struct Network {
    /// The features' own rows.
    pub table: Parameters,
    pub biases: Parameters,
    pub layers: Vec<Parameters>,
    pub virtual_rows: Option<Parameters>,
}

impl Network {
    /// # Errors
    /// When libtorch fails.
    pub fn upload(
        state: &TrainingState,
        rules: &TrainingRules,
        layout: &KernelLayout,
        device: Device,
    ) -> Result<Network, TchError> {
        let row = state.net.shape.row_len();
        let stride = layout.stride;
        let updates = rules.updates(&state.net.shape);
        let slow = state.lookahead.as_ref().map(|lookahead| &lookahead.net);
        let of_nets = |choose: &dyn Fn(&FloatNet) -> Vec<f32>| ArrayValues {
            values: choose(&state.net),
            first: choose(&state.first_moments),
            second: choose(&state.second_moments),
            slow: slow.map(choose),
        };
        let mut rows = of_nets(&|net| with_stride(&net.ft_weights, row, stride));
        if let Some(factored) = &state.factored {
            rows.values = with_stride(&factored.own, row, stride);
        }
        let mut table = Parameters::new(&rows, stride, updates[0], device)?;
        // With a row for the biases, then rows that only fill up.
        let size = [active_columns(layout.features) as i64, stride as i64];
        table.gradient = Tensor::f_zeros(size, (Kind::Float, device))?;
        let of_biases = of_nets(&|net| with_stride(&net.ft_biases, net.ft_biases.len(), stride));
        let mut biases = Parameters::new(&of_biases, stride, updates[1], device)?;
        biases.gradient = table.gradient.f_narrow(0, layout.features as i64, 1)?;
        let mut layers = Vec::with_capacity(layout.layers.len());
        for (index, layer) in layout.layers.iter().enumerate() {
            let values = of_nets(&|net| of_stacks(net, index, *layer));
            let mut parameters = Parameters::new(&values, layer.stride, updates[2 + 2 * index], device)?;
            parameters.bias_column = Some(layer.inputs);
            layers.push(parameters);
        }
        let mut virtual_rows = None;
        if let Some(factored) = &state.factored {
            let slow = state.lookahead.as_ref().map(|lookahead| &lookahead.virtual_rows);
            let values = ArrayValues {
                values: with_stride(&factored.virtual_rows, row, stride),
                first: with_stride(&factored.first_moments, row, stride),
                second: with_stride(&factored.second_moments, row, stride),
                slow: slow.map(|rows| with_stride(rows, row, stride)),
            };
            // Of a sum with own rows, the sum has narrower limits.
            let rule = UpdateRule { rows: None, ..updates[0] };
            let mut parameters = Parameters::new(&values, stride, rule, device)?;
            let [by_feature, by_input] = lists(factored.factors(), layout.features);
            let listed = |(starts, list): &(Vec<i32>, Vec<i32>), rows: &Tensor, sums_gradients| {
                let [starts, list] = [starts, list].map(|list| Tensor::f_from_slice(list)?.f_to_device(device));
                Ok::<_, TchError>(Listed { starts: starts?, list: list?, rows: rows.shallow_clone(), sums_gradients })
            };
            parameters.listed = Some(listed(&by_input, &table.gradient, true)?);
            table.listed = Some(listed(&by_feature, &parameters.values, false)?);
            table.copy = Some(table.values.f_zeros_like()?);
            virtual_rows = Some(parameters);
        }
        Ok(Network { table, biases, layers, virtual_rows })
    }

    /// Everything but virtual rows.
    pub fn own(&self) -> impl Iterator<Item = &Parameters> {
        [&self.table, &self.biases].into_iter().chain(&self.layers)
    }

    /// Copies the parameters to `state`.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn download(&self, state: &mut TrainingState, layout: &KernelLayout) -> Result<(), TchError> {
        let row = state.net.shape.row_len();
        let compact = |values: &[f32]| without_stride(values, row, layout.stride);
        let table = self.table.download()?;
        let biases = self.biases.download()?;
        state.first_moments.ft_weights = compact(&table.first);
        state.second_moments.ft_weights = compact(&table.second);
        let mut merged = vec![0.0; table.values.len()];
        copy_values(self.table.read(), &mut merged)?;
        state.net.ft_weights = compact(&merged);
        if let (Some(lookahead), Some(slow)) = (&mut state.lookahead, &table.slow) {
            lookahead.net.ft_weights = compact(slow);
        }
        let virtual_rows = self.virtual_rows.as_ref().map(Parameters::download).transpose()?;
        if let (Some(factored), Some(rows)) = (&mut state.factored, virtual_rows) {
            factored.own = compact(&table.values);
            factored.virtual_rows = compact(&rows.values);
            factored.first_moments = compact(&rows.first);
            factored.second_moments = compact(&rows.second);
            if let (Some(lookahead), Some(slow)) = (&mut state.lookahead, &rows.slow) {
                lookahead.virtual_rows = compact(slow);
            }
        }
        let layers = self.layers.iter().map(Parameters::download).collect::<Result<Vec<_>, TchError>>()?;
        let slow = state.lookahead.as_mut().map(|lookahead| &mut lookahead.net);
        let nets: [(Option<&mut FloatNet>, Choice); 4] = [
            (Some(&mut state.net), |values| Some(&values.values)),
            (Some(&mut state.first_moments), |values| Some(&values.first)),
            (Some(&mut state.second_moments), |values| Some(&values.second)),
            (slow, |values| values.slow.as_ref()),
        ];
        for (net, choose) in nets {
            let Some(net) = net else { continue };
            if let Some(values) = choose(&biases) {
                let neurons = net.ft_biases.len();
                net.ft_biases.copy_from_slice(&values[..neurons]);
            }
            for (index, (values, layer)) in layers.iter().zip(&layout.layers).enumerate() {
                if let Some(values) = choose(values) {
                    to_stacks(net, index, *layer, values);
                }
            }
        }
        Ok(())
    }
}

/// Which of an array's values go to a network.
type Choice = fn(&ArrayValues) -> Option<&Vec<f32>>;

/// Columns of the rows of active features, in which a column of ones follows the features, and rows of the table's
/// gradient, in which that of the biases does.
#[must_use]
pub const fn active_columns(features: usize) -> usize {
    (features + 1).next_multiple_of(8)
}

fn with_stride(values: &[f32], row: usize, stride: usize) -> Vec<f32> {
    let mut padded = vec![0.0; values.len() / row * stride];
    for (to, from) in padded.chunks_exact_mut(stride).zip(values.chunks_exact(row)) {
        to[..row].copy_from_slice(from);
    }
    padded
}

fn without_stride(values: &[f32], row: usize, stride: usize) -> Vec<f32> {
    values.chunks_exact(stride).flat_map(|values| &values[..row]).copied().collect()
}

/// A layer of all stacks.
fn of_stacks(net: &FloatNet, index: usize, layer: DenseLayout) -> Vec<f32> {
    let mut values = vec![0.0; layer.outputs * layer.stride];
    let mut rows = values.chunks_exact_mut(layer.stride);
    for dense in net.stacks.iter().map(|stack| &stack[index]) {
        for (weights, bias) in dense.weights.chunks_exact(layer.inputs).zip(&dense.biases) {
            if let Some(row) = rows.next() {
                row[..layer.inputs].copy_from_slice(weights);
                row[layer.inputs] = *bias;
            }
        }
    }
    values
}

fn to_stacks(net: &mut FloatNet, index: usize, layer: DenseLayout, values: &[f32]) {
    let mut rows = values.chunks_exact(layer.stride);
    for dense in net.stacks.iter_mut().map(|stack| &mut stack[index]) {
        for (weights, bias) in dense.weights.chunks_exact_mut(layer.inputs).zip(&mut dense.biases) {
            if let Some(row) = rows.next() {
                weights.copy_from_slice(&row[..layer.inputs]);
                *bias = row[layer.inputs];
            }
        }
    }
}

/// The virtual inputs of every feature, and the features of every virtual input.
fn lists(factors: &Factors, features: usize) -> [(Vec<i32>, Vec<i32>); 2] {
    let mut by_input: Vec<Vec<i32>> = vec![Vec::new(); factors.size as usize];
    let mut starts = vec![0];
    let mut inputs = Vec::new();
    for feature in 0..features {
        for input in factors.inputs(feature as u32) {
            inputs.push(*input as i32);
            by_input[*input as usize].push(feature as i32);
        }
        starts.push(inputs.len() as i32);
    }
    let mut starts_by_input = vec![0];
    for features in &by_input {
        starts_by_input.push(starts_by_input[starts_by_input.len() - 1] + features.len() as i32);
    }
    [(starts, inputs), (starts_by_input, by_input.concat())]
}
