//! `fsbench.FeatureSet`: a definition, its encoder and its facts.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use shakmaty::Position;

use super::arrays::Indices;
use super::error;
use super::factors::PyFactors;
use super::interruptible::interruptible;
use crate::chess::{BoardChange, Chess, PackedBoard, Perspective, legal_move, parse_fen};
use crate::features::analysis::Budget;
use crate::features::{self, EncodeScratch, RowBuffer, SetSummary};
use crate::json;

/// A feature set: the name of a shipped one, the path of a TOML file, or an expression.
///
///     features = fsbench.FeatureSet("square(P) * role(P) * color(P) for P in pieces")
///     features.num_features     # 768
#[pyclass(name = "FeatureSet", module = "fsbench", frozen)]
pub struct PyFeatureSet {
    pub set: Arc<features::FeatureSet>,
    factors: OnceLock<Option<Arc<features::Factors>>>,
}

/// A summand of a set.
#[pyclass(name = "Block", module = "fsbench", frozen, get_all)]
pub struct PyBlock {
    name: String,
    /// Lowest index.
    offset: u32,
    /// Number of features.
    size: u32,
    /// Number of contexts; a move into another one needs a refresh.
    contexts: u32,
    /// The block as it is written.
    expression: String,
    /// (name, size, stride) of every axis.
    axes: Vec<(String, u32, u32)>,
}

/// The changes of a move for one perspective.
#[pyclass(name = "Delta", module = "fsbench", frozen, get_all)]
pub struct PyDelta {
    /// Features that become active, ascending: int32.
    added: Py<PyArray1<i32>>,
    /// Features that were active before: int32.
    removed: Py<PyArray1<i32>>,
    /// Whether a context changes, so that an engine recomputes the accumulator.
    refresh: bool,
}

impl PyFeatureSet {
    pub const fn new(set: Arc<features::FeatureSet>) -> PyFeatureSet {
        PyFeatureSet { set, factors: OnceLock::new() }
    }

    /// The set of an argument: a `FeatureSet`, or an argument of its constructor.
    pub fn of_argument(argument: &Bound<'_, PyAny>) -> PyResult<Py<PyFeatureSet>> {
        match argument.cast::<PyFeatureSet>() {
            Ok(set) => Ok(set.clone().unbind()),
            Err(_) => Py::new(argument.py(), PyFeatureSet::resolve(argument)?),
        }
    }
}

#[pymethods]
impl PyFeatureSet {
    #[new]
    fn resolve(definition: &Bound<'_, PyAny>) -> PyResult<PyFeatureSet> {
        let text = match definition.extract::<String>() {
            Ok(text) => text,
            Err(_) => path_text(&definition.extract::<PathBuf>()?)?,
        };
        let set = definition.py().detach(|| features::FeatureSet::resolve(&text))?;
        if set.num_features() > i32::MAX as u32 {
            let name = set.name();
            let features = set.num_features();
            return Err(error::request(format!("{name} has {features} features, more than int32 indices reach")));
        }
        Ok(PyFeatureSet::new(Arc::new(set)))
    }

    #[getter]
    fn name(&self) -> &str {
        self.set.name()
    }

    #[getter]
    fn about(&self) -> Option<&str> {
        self.set.about()
    }

    /// Number of features of one perspective.
    #[getter]
    fn num_features(&self) -> u32 {
        self.set.num_features()
    }

    /// A hash of the set's meaning: sets of equal identity number the same features in the same way.
    #[getter]
    fn identity(&self) -> String {
        self.set.identity().to_string()
    }

    /// The definition as TOML that needs no other file.
    #[getter]
    fn definition(&self) -> &str {
        self.set.definition()
    }

    /// An upper bound on the active features of a legal position, per perspective.
    #[getter]
    fn max_active(&self) -> usize {
        self.set.max_active()
    }

    #[getter]
    fn blocks(&self) -> Vec<PyBlock> {
        self.set.blocks().iter().map(PyBlock::of).collect()
    }

    /// The active features of a position: (stm, nstm), the side to move's and the other side's, ascending int32.
    fn encode<'py>(&self, py: Python<'py>, fen: &str) -> PyResult<[Indices<'py>; 2]> {
        let position = parse_fen(fen.trim())?;
        let stm = Perspective::of(position.turn());
        Ok([stm, stm.other()].map(|pov| {
            let mut active = Vec::new();
            self.set.encoder().encode(position.board(), pov, &mut active);
            active.sort_unstable();
            indices(&active).into_pyarray(py)
        }))
    }

    /// The active features of many positions as in a batch: a dict of int32 arrays `stm_indices`, `stm_offsets`,
    /// `nstm_indices` and `nstm_offsets`. The features of position i are `indices[offsets[i]:offsets[i + 1]]`.
    fn encode_many<'py>(&self, py: Python<'py>, fens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let fens = texts(fens)?;
        let sides = py.detach(|| self.encoded(&fens))?;
        let dict = PyDict::new(py);
        for (name, (indices, offsets)) in ["stm", "nstm"].into_iter().zip(sides) {
            dict.set_item(format!("{name}_indices"), indices.into_pyarray(py))?;
            dict.set_item(format!("{name}_offsets"), offsets.into_pyarray(py))?;
        }
        Ok(dict)
    }

    /// The changes of a move in UCI notation: {"white": Delta, "black": Delta}. The changes are listed also where a
    /// refresh is needed.
    fn delta<'py>(&self, py: Python<'py>, fen: &str, uci: &str) -> PyResult<Bound<'py, PyDict>> {
        let position = parse_fen(fen.trim())?;
        let mv = legal_move(uci.trim(), &position);
        let mv = mv.ok_or_else(|| error::request(format!("`{uci}` is not a legal move in {fen}, in UCI notation")))?;
        let change = BoardChange::of(mv, position.turn());
        let after = change.applied_to(position.board());
        let dict = PyDict::new(py);
        for (name, pov) in [("white", Perspective::White), ("black", Perspective::Black)] {
            let mut delta = features::Delta::default();
            self.set.encoder().diff(position.board(), &change, &after, pov, &mut delta);
            let [added, removed] = [&delta.added, &delta.removed].map(|list| indices(list).into_pyarray(py).unbind());
            dict.set_item(name, PyDelta { added, removed, refresh: delta.refresh })?;
        }
        Ok(dict)
    }

    /// Sizes, contexts, dead features, losslessness and cost as a dict, which `fsbench define --format json` prints.
    /// `thorough` searches for proofs without a limit of time.
    #[pyo3(signature = (*, thorough = false))]
    fn define<'py>(&self, py: Python<'py>, thorough: bool) -> PyResult<Bound<'py, PyAny>> {
        let set = Arc::clone(&self.set);
        let text = interruptible(py, move || {
            let budget = if thorough { Budget::THOROUGH } else { Budget::brief() };
            let (summary, _) = SetSummary::within(&set, budget, |_, _| {})?;
            Ok::<String, features::FeatureError>(json::to_text(&summary).unwrap_or_default())
        })??;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The virtual inputs of the features; None if the definition has no factor.
    fn factors(&self, py: Python<'_>) -> PyResult<Option<PyFactors>> {
        let found = match self.factors.get() {
            Some(found) => found.clone(),
            None => {
                let set = Arc::clone(&self.set);
                let found = interruptible(py, move || features::Factors::of(&set))??.map(Arc::new);
                self.factors.get_or_init(|| found).clone()
            }
        };
        Ok(found.map(|factors| PyFactors::new(factors, self.set.num_features())))
    }

    /// The meaning of a feature in words.
    fn describe(&self, index: u32) -> PyResult<String> {
        let text = self.set.describe(index);
        let text = text.ok_or_else(|| {
            PyIndexError::new_err(format!("{} has {} features; there is no {index}", self.name(), self.num_features()))
        })?;
        Ok(format!("{}: {}", text.block, text.values))
    }

    fn __len__(&self) -> usize {
        self.set.num_features() as usize
    }

    fn __eq__(&self, other: &PyFeatureSet) -> bool {
        self.set.identity() == other.set.identity()
    }

    fn __hash__(&self) -> u64 {
        let identity = blake3::hash(self.identity().as_bytes());
        u64::from_le_bytes(*identity.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }

    fn __repr__(&self) -> String {
        format!("FeatureSet({}, {} features)", self.name(), self.num_features())
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, [self.definition()])
    }
}

impl PyFeatureSet {
    /// Indices and offsets of both sides.
    fn encoded(&self, fens: &[String]) -> PyResult<[(Vec<i32>, Vec<i32>); 2]> {
        let mut boards = Vec::with_capacity(fens.len());
        for (number, fen) in fens.iter().enumerate() {
            let position = position(fen, number)?;
            let board = PackedBoard::pack(position.board());
            let board = board.map_err(|error| error::request(format!("position {number}: {error}")))?;
            boards.push((board, Perspective::of(position.turn())));
        }
        let mut sides = [RowBuffer::default(), RowBuffer::default()];
        let boards = boards.iter().map(|(board, stm)| (board, *stm));
        self.set.encoder().append_batch(boards, &mut sides, &mut EncodeScratch::default());
        Ok(sides.map(|side| {
            let ends = side.ends().iter().map(|end| *end as i32);
            (indices(side.rows()), std::iter::once(0).chain(ends).collect())
        }))
    }
}

impl PyBlock {
    fn of(block: &features::Block) -> PyBlock {
        PyBlock {
            name: block.name.clone(),
            offset: block.offset,
            size: block.size,
            contexts: block.contexts(),
            expression: block.spec().as_written.clone(),
            axes: block.axes().iter().map(|axis| (axis.name.clone(), axis.size, axis.stride)).collect(),
        }
    }
}

#[pymethods]
impl PyBlock {
    fn __repr__(&self) -> String {
        format!("Block({}, {} features from {})", self.name, self.size, self.offset)
    }
}

#[pymethods]
impl PyDelta {
    fn __repr__(&self, py: Python<'_>) -> String {
        let [added, removed] = [&self.added, &self.removed].map(|list| list.bind(py).to_string());
        let refresh = if self.refresh { "True" } else { "False" };
        format!("Delta(added={added}, removed={removed}, refresh={refresh})")
    }
}

/// The position of a FEN, which errors name by its number.
pub fn position(fen: &str, number: usize) -> PyResult<Chess> {
    parse_fen(fen.trim()).map_err(|error| error::request(format!("position {number}: {error}")))
}

/// The strings of an iterable.
pub fn texts(iterable: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if iterable.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("expected an iterable of FENs, found one string; put it into a list"));
    }
    iterable.try_iter()?.map(|text| text?.extract()).collect()
}

/// A path as text, which the definition language needs.
fn path_text(path: &std::path::Path) -> PyResult<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| error::request(format!("{} is not UTF-8", path.display())))
}

/// Feature indices as torch takes them; [`FeatureSet`] refuses sets whose last feature `i32` does not reach.
fn indices(active: &[u32]) -> Vec<i32> {
    active.iter().map(|index| *index as i32).collect()
}
