//! `fsbench.Factors`: which virtual inputs every feature of a set has.

use std::sync::Arc;

use numpy::{IntoPyArray, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arrays::Indices;
use super::error;
use crate::features;

/// The virtual inputs of a set's features: coarser features that a trainer adds and merges on export.
///
/// Feature i has the inputs `inputs[offsets[i]:offsets[i + 1]]`; the exported row of i is its own row plus those of its
/// inputs.
#[pyclass(name = "Factors", module = "fsbench", frozen)]
pub struct PyFactors {
    factors: Arc<features::Factors>,
    features: u32,
}

impl PyFactors {
    pub const fn new(factors: Arc<features::Factors>, features: u32) -> PyFactors {
        PyFactors { factors, features }
    }
}

#[pymethods]
impl PyFactors {
    /// Number of virtual inputs, all blocks' factors side by side.
    #[getter]
    fn num_inputs(&self) -> u32 {
        self.factors.size
    }

    /// int32, num_features + 1 elements: the start of every feature's inputs, and the end of the last one's.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> Indices<'py> {
        let mut offsets = vec![0i32];
        let mut end = 0;
        for feature in 0..self.features {
            end += self.factors.inputs(feature).len() as i32;
            offsets.push(end);
        }
        offsets.into_pyarray(py)
    }

    /// int32: the inputs of all features, one after the other.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> Indices<'py> {
        let inputs = (0..self.features).flat_map(|feature| self.factors.inputs(feature));
        inputs.map(|input| *input as i32).collect::<Vec<i32>>().into_pyarray(py)
    }

    /// The virtual inputs of positions from their active features: (indices, offsets), both int32, as in a batch, for an
    /// `embedding_bag` over `num_inputs` rows. An input counts once for every feature that has it.
    ///
    /// Takes arrays, tensors or lists of integers. Raises RequestError for an index that is no feature, and for offsets
    /// that do not ascend from 0 to the number of indices.
    fn expand<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        offsets: &Bound<'py, PyAny>,
    ) -> PyResult<(Indices<'py>, Indices<'py>)> {
        let indices = integers("indices", indices)?;
        let offsets = integers("offsets", offsets)?;
        let indices = indices.as_slice()?;
        let offsets = offsets.as_slice()?;
        let (indices, offsets) = py.detach(|| self.expanded(indices, offsets)).map_err(error::request)?;
        Ok((indices.into_pyarray(py), offsets.into_pyarray(py)))
    }

    fn __repr__(&self) -> String {
        format!("Factors({} virtual inputs of {} features)", self.factors.size, self.features)
    }
}

impl PyFactors {
    fn expanded(&self, indices: &[i32], offsets: &[i32]) -> Result<(Vec<i32>, Vec<i32>), String> {
        let mut expanded = (Vec::with_capacity(indices.len()), Vec::with_capacity(offsets.len()));
        for (number, end) in offsets.iter().enumerate() {
            let start = if number == 0 { 0 } else { offsets[number - 1] as usize };
            let active = usize::try_from(*end).ok().and_then(|end| indices.get(start..end));
            let wrong = || format!("offsets[{number}] is {end}: offsets ascend from 0 to the number of indices");
            if number == 0 && *end != 0 {
                return Err(wrong());
            }
            for index in active.ok_or_else(wrong)? {
                let feature = u32::try_from(*index).ok().filter(|feature| *feature < self.features);
                let feature = feature.ok_or_else(|| format!("{index} is no feature of {}", self.features))?;
                expanded.0.extend(self.factors.inputs(feature).iter().map(|input| *input as i32));
            }
            expanded.1.push(expanded.0.len() as i32);
        }
        match offsets.last() {
            Some(end) if *end as usize == indices.len() => Ok(expanded),
            Some(end) => Err(format!("offsets end at {end}, and there are {} indices", indices.len())),
            None => Err("offsets is empty; without positions it is [0]".into()),
        }
    }
}

/// A one-dimensional array of integers; those of other widths are copied.
fn integers<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, i32>> {
    if let Ok(array) = value.extract::<PyReadonlyArray1<'py, i32>>()
        && array.is_contiguous()
    {
        return Ok(array);
    }
    let text = format!("{name} is not a one-dimensional array of int32 numbers");
    let wrong = |found| error::unless_interrupt(value.py(), found, || PyTypeError::new_err(text.clone()));
    let numpy = value.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (value,)).map_err(wrong)?;
    let converted = numpy.call_method1("ascontiguousarray", (&array, "int32")).map_err(wrong)?;
    // They differ where a number does not fit, or has a fraction.
    match numpy.call_method1("array_equal", (&array, &converted))?.extract::<bool>()? {
        true => converted.extract().map_err(|_| PyTypeError::new_err(text)),
        false => Err(PyTypeError::new_err(text)),
    }
}
