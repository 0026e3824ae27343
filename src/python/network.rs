//! `fsbench.Network`: a quantised network, and the integer scores it gives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use shakmaty::Position;

use super::error;
use super::feature_set::{POSITIONS_BETWEEN_SIGNALS, PyFeatureSet, fens_of, position};
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::net::nnue::Architecture;
use crate::net::{LoadOptions, Shape, load};
use crate::train::run_dir;

/// A network from a file: fsbench's, Stockfish's (.nnue), a checkpoint, which is quantised, or a run's folder.
///
///     network = fsbench.Network("nn.nnue")
///     network.evaluate(["rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"])
///
/// `arch` names the architecture of a .nnue file whose header fits two, such as "stockfish-15.1"; `last` takes the last
/// epoch of a run instead of its best. Raises RequestError for a file that is no network.
#[pyclass(name = "Network", module = "fsbench", frozen)]
pub struct PyNetwork {
    path: PathBuf,
    /// "nnue", "fsbench", or "checkpoint, quantised".
    #[pyo3(get)]
    format: &'static str,
    /// Of .nnue files, such as "stockfish-15.1"; None of others.
    #[pyo3(get)]
    architecture: Option<&'static str>,
    /// The set of the network's inputs.
    #[pyo3(get)]
    features: Py<PyFeatureSet>,
    shape: Shape,
    model: Arc<Model>,
    arguments: (Option<String>, bool),
}

#[pymethods]
impl PyNetwork {
    #[new]
    #[pyo3(signature = (path, arch = None, *, last = false))]
    fn new(py: Python<'_>, path: PathBuf, arch: Option<String>, last: bool) -> PyResult<PyNetwork> {
        let architecture = arch.as_deref().map(str::parse::<Architecture>).transpose().map_err(error::request)?;
        let (loaded, set, model) = py.detach(|| -> PyResult<_> {
            let file = if path.is_dir() { of_folder(&path, last)? } else { path.clone() };
            let loaded = load(&file, &LoadOptions { architecture, ..LoadOptions::default() })?;
            let set = loaded.file.origin.feature_set()?;
            let model = Model::new(&loaded.file.net);
            // Whether the set fits the network is known from now on.
            Evaluator::new(&set, &model, Strategy::Refresh, BackEnd::best())?;
            Ok((loaded, set, model))
        })?;
        Ok(PyNetwork {
            path,
            format: loaded.format,
            architecture: loaded.architecture.map(Architecture::name),
            features: Py::new(py, PyFeatureSet::new(Arc::new(set)))?,
            shape: loaded.file.net.shape.clone(),
            model: Arc::new(model),
            arguments: (arch, last),
        })
    }

    /// The shape in words, such as "(768 → 256) × 2 → 32 → 1".
    #[getter]
    fn shape(&self) -> String {
        self.shape.to_string()
    }

    /// The scores of positions from the side to move's view, int32 [positions]: centipawns, or with `internal` the
    /// network's own units. The integers are those of `fsbench eval`.
    ///
    /// `fens` is an iterable of FENs or `chess.Board` objects. Raises RequestError for one that is no legal position,
    /// with its place in `fens`.
    #[pyo3(signature = (fens, *, internal = false))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        fens: &Bound<'py, PyAny>,
        internal: bool,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let fens = fens_of(fens)?;
        let set = &self.features.get().set;
        let mut evaluator = Evaluator::new(set, &self.model, Strategy::Refresh, BackEnd::best())?;
        let mut scores: Vec<i32> = Vec::with_capacity(fens.len());
        for fens in fens.chunks(POSITIONS_BETWEEN_SIGNALS) {
            py.check_signals()?;
            py.detach(|| -> PyResult<()> {
                for fen in fens {
                    let position = position(fen, scores.len())?;
                    evaluator.set(position.board());
                    let evaluation = evaluator.evaluate(position.turn());
                    scores.push(if internal { evaluation.score_internal } else { evaluation.score_cp.0 });
                }
                Ok(())
            })?;
        }
        Ok(scores.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        format!("Network({}, {})", self.path.display(), self.shape)
    }

    fn __getnewargs_ex__(&self) -> ((PathBuf, Option<String>), std::collections::BTreeMap<&str, bool>) {
        let (arch, last) = &self.arguments;
        ((self.path.clone(), arch.clone()), [("last", *last)].into())
    }
}

/// The network of a run's folder, or of one that `save_network` wrote, which has no epochs.
fn of_folder(folder: &Path, last: bool) -> PyResult<PathBuf> {
    match run_dir::network(folder, last) {
        Err(_) if last && run_dir::network(folder, false).is_ok() => {
            let folder = folder.display();
            Err(error::request(format!("{folder} has one network and no last epoch; leave last out")))
        }
        found => Ok(found?),
    }
}
