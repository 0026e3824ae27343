//! The Python module `fsbench`: feature sets, batches and evaluations for trainers in Python.
//!
//! scripts/python builds it with maturin (feature `python`); its _fsbench.pyi is the interface with types, and its tests
//! run the package. Work that takes long runs without the GIL and can be interrupted by Ctrl-C.
#![allow(unsafe_code, reason = "pyo3's macros, and numpy arrays that borrow a batch's memory")]

mod arrays;
mod batches;
mod error;
mod factors;
mod feature_set;
mod interruptible;
mod network;
mod preparation;
mod request;
mod save_network;
mod weights;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// What the package `fsbench` is made of; scripts/python/fsbench puts it together.
#[pymodule]
#[pyo3(name = "_fsbench")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    interruptible::remember_process();
    // Loads numpy and its interface now. Later, the interface would answer a signal in the import by a panic, or not at all.
    py.import("numpy")?;
    PyArray1::<i32>::zeros(py, 0, false).readonly();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(interruptible::at_exit, module)?,))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", py.get_type::<error::Error>())?;
    module.add("RequestError", py.get_type::<error::RequestError>())?;
    module.add_function(wrap_pyfunction!(feature_set::feature_sets, module)?)?;
    module.add_function(wrap_pyfunction!(save_network::save_network, module)?)?;
    module.add_function(wrap_pyfunction!(save_network::schemes, module)?)?;
    module.add_class::<feature_set::PyFeatureSet>()?;
    module.add_class::<feature_set::PyBlock>()?;
    module.add_class::<feature_set::PyDelta>()?;
    module.add_class::<factors::PyFactors>()?;
    module.add_class::<batches::Batches>()?;
    module.add_class::<batches::BatchIterator>()?;
    module.add_class::<network::PyNetwork>()
}
