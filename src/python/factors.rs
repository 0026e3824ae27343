//! `fsbench.Factors`: which virtual inputs every feature of a set has.

use std::sync::Arc;

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;

use super::arrays::Indices;
use super::error;
use crate::features;

/// The virtual inputs of a set's features: coarser features that a trainer adds and merges on export. Feature i has the
/// inputs `inputs[offsets[i]:offsets[i + 1]]`; the exported row of i is its own row plus its inputs' rows.
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

    /// The start of every feature's inputs, and the end of the last one's: int32, num_features + 1 elements.
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

    /// The inputs of all features, one after the other: int32.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> Indices<'py> {
        let inputs = (0..self.features).flat_map(|feature| self.factors.inputs(feature));
        inputs.map(|input| *input as i32).collect::<Vec<i32>>().into_pyarray(py)
    }

    /// The virtual inputs of positions, from their active features: (indices, offsets) as in a batch, for an
    /// `embedding_bag` over `num_inputs` rows. An input counts once for every feature that has it.
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 passes arrays by value")]
    fn expand<'py>(
        &self,
        py: Python<'py>,
        indices: PyReadonlyArray1<'py, i32>,
        offsets: PyReadonlyArray1<'py, i32>,
    ) -> PyResult<(Indices<'py>, Indices<'py>)> {
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
        Ok(expanded)
    }
}
