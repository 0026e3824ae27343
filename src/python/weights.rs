//! The float arrays that `fsbench.save_network` is given, and the shape that they make.

use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use super::error;
use crate::features::{Factors, FeatureSet};
use crate::net::{BucketChooser, FloatNet, OutputBuckets, Shape};
use crate::train::ShapeOptions;

/// The rows of virtual inputs, in the order of [`Factors`].
pub const FACTOR_ROWS: &str = "factor.weight";
/// Layers of a network are looked for up to this number.
const MOST_LAYERS: usize = 99;
/// PSQT values as an array of their own.
const PSQT: &str = "psqt.weight";

/// The arrays that were given and not used yet.
pub struct Arrays(Vec<(String, Array)>);

struct Array {
    sizes: Vec<usize>,
    values: Vec<f32>,
}

impl Arrays {
    /// The arrays of a dict; tensors of PyTorch are taken, too.
    pub fn of(weights: &Bound<'_, PyAny>) -> PyResult<Arrays> {
        let named = |name: &str, problem: &str| PyTypeError::new_err(format!("weights[\"{name}\"] {problem}"));
        let Ok(weights) = weights.cast::<PyMapping>() else {
            let found = weights.get_type().name()?;
            return Err(PyTypeError::new_err(format!("weights is a dict from names to arrays, found {found}")));
        };
        let py = weights.py();
        let numpy = py.import("numpy")?;
        // Refuses complex numbers and texts, which other casts take.
        let keywords = PyDict::new(py);
        keywords.set_item("casting", "same_kind")?;
        keywords.set_item("order", "C")?;
        let mut arrays = Vec::with_capacity(weights.len()?);
        for item in weights.items()? {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let Ok(name) = name.extract::<String>() else {
                return Err(PyTypeError::new_err(format!("weights has the name {name}, which is not a string")));
            };
            let array = detached(value).and_then(|value| numpy.call_method1("asarray", (value,)));
            let array = array.and_then(|array| array.call_method("astype", ("float32",), Some(&keywords)));
            let array = array.map_err(|why| {
                let text = format!("is not an array of real numbers: {why}");
                error::unless_interrupt(py, why, || named(&name, &text))
            })?;
            let array = array.cast_into::<PyArrayDyn<f32>>().map_err(|_| named(&name, "is not an array of numbers"))?;
            let array = array.readonly();
            let values = array.as_slice()?.to_vec();
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let problem = format!("weights[\"{name}\"] is {} at {at}: training has diverged", values[at]);
                return Err(error::request(problem));
            }
            arrays.push((name, Array { sizes: array.shape().to_vec(), values }));
        }
        Ok(Arrays(arrays))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    fn get(&self, name: &str) -> PyResult<&Array> {
        let found = self.0.iter().find(|(other, _)| other == name);
        let missing = || {
            error::request(format!(
                "weights has no {name}, which the network needs; help(fsbench.save_network) lists the names"
            ))
        };
        Ok(&found.ok_or_else(missing)?.1)
    }

    /// The shape of a network of these arrays: widths by their sizes, the rest by the options.
    pub fn shape(&mut self, set: &FeatureSet, design: &ShapeOptions) -> PyResult<Shape> {
        let bias = self.get("ft.bias")?;
        let [l1] = bias.sizes[..] else { return Err(wrong_sizes("ft.bias", &bias.sizes, "[l1]")) };
        let rows = self.get("ft.weight")?;
        let [_, columns] = rows.sizes[..] else {
            return Err(wrong_sizes("ft.weight", &rows.sizes, "[features, l1]"));
        };
        let of_stack = |(name, _): &(String, Array)| name.strip_prefix("stacks.")?.split('.').next()?.parse().ok();
        let buckets = 1 + self.0.iter().filter_map(of_stack).max().unwrap_or(0usize);
        let psqt = self.has(PSQT) || columns == l1 + buckets;
        let design = ShapeOptions { buckets, psqt, ..design.clone() }.for_set(set)?;
        // Names follow from the number of buckets.
        let one =
            Shape { buckets: OutputBuckets { count: buckets, ..Default::default() }, ..Shape::plain(1, 1, vec![]) };
        let mut widths = Vec::new();
        let of_layer = |layer: usize| {
            let prefix = format!("{}.", one.layer_name(0, layer));
            self.0.iter().any(|(name, _)| name.starts_with(&prefix))
        };
        // One beyond the first that is missing is reported, not passed over.
        let last = (0..=MOST_LAYERS).rfind(|layer| of_layer(*layer)).unwrap_or(0);
        for layer in 0..=last {
            let name = format!("{}.weight", one.layer_name(0, layer));
            let array = self.get(&name)?;
            let [outputs, _] = array.sizes[..] else {
                return Err(wrong_sizes(&name, &array.sizes, "[outputs, inputs]"));
            };
            widths.push(outputs);
        }
        widths.pop();
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(usize::from(design.skip));
        }
        let shape = design.shape(set.num_features(), l1, &widths)?;
        let default = ShapeOptions::default();
        if shape.buckets.count == 1 && design.bucket_rule != default.bucket_rule {
            return Err(error::request("bucket_rule has no effect: weights has one bucket, not stacks.B.layers.N"));
        }
        if shape.hidden.is_empty() && design.hidden_activation != default.hidden_activation {
            return Err(error::request("hidden_activation has no effect: weights has no hidden layer"));
        }
        BucketChooser::new(&shape.buckets, set)?;
        self.join_psqt(&shape)?;
        Ok(shape)
    }

    /// Appends PSQT values that are an array of their own to the rows of `ft.weight`.
    fn join_psqt(&mut self, shape: &Shape) -> PyResult<()> {
        if !self.has(PSQT) {
            return Ok(());
        }
        let features = shape.features as usize;
        let rows = self.take("ft.weight", &[features, shape.l1])?;
        let values = self.take(PSQT, &[features, shape.buckets.count])?;
        let parts = rows.chunks_exact(shape.l1).zip(values.chunks_exact(shape.buckets.count));
        let values: Vec<f32> = parts.flat_map(|(row, values)| row.iter().chain(values)).copied().collect();
        self.0.push(("ft.weight".into(), Array { sizes: vec![features, shape.row_len()], values }));
        Ok(())
    }

    /// Takes out the values of an array that has these sizes.
    pub fn take(&mut self, name: &str, sizes: &[usize]) -> PyResult<Vec<f32>> {
        let array = self.get(name)?;
        if array.sizes != sizes {
            return Err(wrong_sizes(name, &array.sizes, &format!("{sizes:?}")));
        }
        let place = self.0.iter().position(|(other, _)| other == name);
        Ok(place.map_or_else(Vec::new, |place| self.0.swap_remove(place).1.values))
    }

    /// Refuses arrays that the network has no place for.
    pub fn check_empty(&self, shape: &Shape) -> PyResult<()> {
        match self.0.iter().find(|(name, _)| name != FACTOR_ROWS) {
            None => Ok(()),
            Some((name, _)) => Err(error::request(format!("a network of shape {shape} has no weights {name}"))),
        }
    }

    /// Adds the rows of virtual inputs to the rows of their features.
    pub fn merge(&mut self, factors: &Factors, net: &mut FloatNet) -> PyResult<()> {
        let row = net.shape.row_len();
        let virtual_rows = self.take(FACTOR_ROWS, &[factors.size as usize, row])?;
        for (feature, sum) in (0..net.shape.features).zip(net.ft_weights.chunks_exact_mut(row)) {
            for input in factors.inputs(feature) {
                let from = &virtual_rows[*input as usize * row..][..row];
                sum.iter_mut().zip(from).for_each(|(sum, weight)| *sum += weight);
            }
        }
        Ok(())
    }
}

/// A tensor of PyTorch as numpy takes it: without gradient, in the CPU's memory, of a type that numpy has.
fn detached(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if !value.hasattr("detach")? {
        return Ok(value);
    }
    let value = value.call_method0("detach")?.call_method0("cpu")?;
    match value.call_method0("is_floating_point")?.extract()? {
        true => value.call_method0("float"),
        false => Ok(value),
    }
}

fn wrong_sizes(name: &str, found: &[usize], expected: &str) -> PyErr {
    error::request(format!("weights[\"{name}\"] has the shape {found:?}, not {expected}"))
}
