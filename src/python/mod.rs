//! The Python module `fsbench`: feature sets, batches and evaluations for trainers in Python.
//!
//! scripts/python builds it with maturin (feature `python`); its fsbench.pyi is the interface with types, and its tests
//! run the module. Work that takes long runs without the GIL and can be interrupted by Ctrl-C.
#![allow(unsafe_code, reason = "pyo3's macros, and numpy arrays that borrow a batch's memory")]

mod arrays;
mod batches;
mod error;
mod factors;
mod feature_set;
mod interruptible;
mod network;

use pyo3::prelude::*;

/// Feature sets for NNUE chess networks: definitions, training batches and evaluations.
///
///     import fsbench
///
///     features = fsbench.FeatureSet("half-ka-v2-hm")
///     for batch in fsbench.Batches("games.binpack", features, batch_size=16384):
///         batch["stm_indices"], batch["stm_offsets"], batch["score"]   # numpy arrays
///
///     fsbench.Network("nn.nnue").evaluate(["8/8/8/4k3/8/8/4P3/4K3 w - - 0 1"])
#[pymodule]
fn fsbench(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interruptible::remember_process();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add("RequestError", module.py().get_type::<error::RequestError>())?;
    module.add_class::<feature_set::PyFeatureSet>()?;
    module.add_class::<feature_set::PyBlock>()?;
    module.add_class::<feature_set::PyDelta>()?;
    module.add_class::<factors::PyFactors>()?;
    module.add_class::<batches::Batches>()?;
    module.add_class::<batches::BatchIterator>()?;
    module.add_class::<network::PyNetwork>()
}
