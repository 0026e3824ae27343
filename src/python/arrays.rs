//! A batch's arrays as numpy arrays: in the stream's own memory, or copied.

use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::service::{Array, Dtype, LocalBatch, SlotHeader};

/// Feature indices or offsets.
pub type Indices<'py> = Bound<'py, PyArray1<i32>>;

/// The base object of a batch's arrays. The slot goes back to the stream when the last of them is gone.
#[pyclass(module = "fsbench", name = "_BatchMemory", frozen)]
pub struct PyBatchMemory(LocalBatch);

/// A batch as a dict from names to numbers and arrays. With `copy` the arrays have memory of their own, and the slot
/// goes back at once.
pub fn batch_dict<'py>(
    py: Python<'py>,
    batch: LocalBatch,
    arrays: &[Array],
    copy: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let SlotHeader { samples, positions, epoch, batch: number, .. } = *batch.header();
    let memory = Bound::new(py, PyBatchMemory(batch))?;
    let dict = PyDict::new(py);
    dict.set_item("samples", samples)?;
    dict.set_item("positions", positions)?;
    dict.set_item("epoch", epoch)?;
    dict.set_item("batch", number)?;
    for array in arrays {
        let borrowed = match array.dtype {
            Dtype::U8 => borrow::<u8>(&memory, array, copy)?,
            Dtype::U16 => borrow::<u16>(&memory, array, copy)?,
            Dtype::U32 => borrow::<u32>(&memory, array, copy)?,
            Dtype::U64 => borrow::<u64>(&memory, array, copy)?,
            Dtype::I32 => borrow::<i32>(&memory, array, copy)?,
            Dtype::F32 => borrow::<f32>(&memory, array, copy)?,
        };
        dict.set_item(&array.name, borrowed)?;
    }
    Ok(dict)
}

/// One array of the batch.
fn borrow<'py, T: Element + Copy>(
    memory: &Bound<'py, PyBatchMemory>,
    array: &Array,
    copy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let batch = &memory.get().0;
    let (start, count) = batch
        .array(&array.name)
        .ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err(format!("the stream has no array {}", array.name)))?;
    assert_eq!(size_of::<T>(), array.dtype.bytes());
    // SAFETY: the slot holds `count` values of this type from `start` on, which is aligned to 64 bytes; they are
    // written, or mapped as zeros. The stream does not touch the slot before `memory` is dropped.
    let view = unsafe { ArrayView1::<T>::from_shape_ptr(count, start.cast::<T>().cast_const()) };
    // SAFETY: the memory stays in place while `memory` lives, which the array keeps alive.
    let array = unsafe { PyArray1::borrow_from_array(&view, memory.clone().into_any()) };
    if !copy {
        return Ok(array.into_any());
    }
    let copied = array.readonly().as_array().to_owned();
    Ok(PyArray1::from_owned_array(memory.py(), copied).into_any())
}
