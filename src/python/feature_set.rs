//! `fsbench.FeatureSet`: a definition, its encoder and its facts.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use shakmaty::Position;

use super::arrays::Indices;
use super::error;
use super::factors::PyFactors;
use super::interruptible::interruptible;
use crate::chess::{BoardChange, Chess, PackedBoard, Perspective, legal_move, parse_fen};
use crate::features::analysis::Budget;
use crate::features::{self, EncodeScratch, FeatureError, RowBuffer, SetSummary};
use crate::json;

/// A feature set: the name of a shipped one, the path of a TOML file, or an expression.
///
///     features = fsbench.FeatureSet("square(P) * role(P) * color(P) for P in pieces")
///     features.num_features     # 768
///
/// Sets of equal identity are equal. Raises RequestError with the place of the mistake.
#[pyclass(name = "FeatureSet", module = "fsbench", frozen)]
pub struct PyFeatureSet {
    pub set: Arc<features::FeatureSet>,
    factors: OnceLock<Option<Arc<features::Factors>>>,
}

/// The sets that have names, in alphabetical order, each a `fsbench.ShippedSet`, a dict: those that come with fsbench,
/// and those of the folders that `fsbench define` looks in.
#[pyfunction]
pub fn feature_sets(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut sets = Vec::new();
    for set in features::shipped_sets()? {
        let dict = PyDict::new(py);
        dict.set_item("name", set.name)?;
        dict.set_item("about", set.about)?;
        dict.set_item("num_features", set.num_features)?;
        sets.push(dict);
    }
    Ok(sets)
}

/// A summand of a set.
#[pyclass(name = "Block", module = "fsbench", frozen, get_all)]
pub struct PyBlock {
    /// Its name in the definition.
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

/// What a move changes for one perspective.
#[pyclass(name = "Delta", module = "fsbench", frozen, get_all)]
pub struct PyDelta {
    /// int32: features that become active, ascending.
    added: Py<PyArray1<i32>>,
    /// int32: features that were active before, ascending.
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
            Err(_) => match definition.extract::<PathBuf>() {
                Ok(path) => path_text(&path)?,
                Err(_) => return Err(wrong_type("a feature set is a name, a path or an expression", definition)),
            },
        };
        let set = definition.py().detach(|| features::FeatureSet::resolve(&text));
        let set = set.map_err(|problem| match problem {
            FeatureError::UnknownSet { .. } if text.ends_with(".toml") => {
                error::request(format!("there is no file `{text}`, and {problem}"))
            }
            other => other.into(),
        })?;
        if set.num_features() > i32::MAX as u32 {
            let name = set.name();
            let features = set.num_features();
            return Err(error::request(format!("{name} has {features} features, more than int32 indices reach")));
        }
        Ok(PyFeatureSet::new(Arc::new(set)))
    }

    /// Its name, or the expression.
    #[getter]
    fn name(&self) -> &str {
        self.set.name()
    }

    /// A line about it; None if the definition has none.
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

    /// The summands, each a `fsbench.Block`.
    #[getter]
    fn blocks(&self) -> Vec<PyBlock> {
        self.set.blocks().iter().map(PyBlock::of).collect()
    }

    /// The active features of a position: [stm, nstm], the side to move's and the other side's, int32, ascending.
    ///
    /// Takes a FEN or a `chess.Board`. Raises RequestError for what is no legal position.
    fn encode<'py>(&self, py: Python<'py>, fen: &Bound<'py, PyAny>) -> PyResult<[Indices<'py>; 2]> {
        let position = parse_fen(fen_of(fen)?.trim())?;
        let stm = Perspective::of(position.turn());
        Ok([stm, stm.other()].map(|pov| {
            let mut active = Vec::new();
            self.set.encoder().encode(position.board(), pov, &mut active);
            active.sort_unstable();
            indices(&active).into_pyarray(py)
        }))
    }

    /// The active features of many positions as in a batch: a dict of int32 arrays `stm_indices`, `stm_offsets`,
    /// `nstm_indices` and `nstm_offsets`. The features of position i are `indices[offsets[i]:offsets[i + 1]]`, ascending.
    ///
    /// `fens` is an iterable of FENs or `chess.Board` objects. Raises RequestError for one that is no legal position,
    /// with its place in `fens`.
    fn encode_many<'py>(&self, py: Python<'py>, fens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let fens = fens_of(fens)?;
        let mut sides = [(Vec::new(), vec![0]), (Vec::new(), vec![0])];
        for (part, fens) in fens.chunks(POSITIONS_BETWEEN_SIGNALS).enumerate() {
            py.check_signals()?;
            py.detach(|| self.encode_to(fens, part * POSITIONS_BETWEEN_SIGNALS, &mut sides))?;
        }
        let dict = PyDict::new(py);
        for (name, (indices, offsets)) in ["stm", "nstm"].into_iter().zip(sides) {
            dict.set_item(format!("{name}_indices"), indices.into_pyarray(py))?;
            dict.set_item(format!("{name}_offsets"), offsets.into_pyarray(py))?;
        }
        Ok(dict)
    }

    /// What a move changes: {"white": Delta, "black": Delta}; listed also where a refresh is needed.
    ///
    /// The move is in UCI notation, or a `chess.Move`. Raises RequestError for one that is not legal.
    fn delta<'py>(
        &self,
        py: Python<'py>,
        fen: &Bound<'py, PyAny>,
        uci: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let fen = fen_of(fen)?;
        let uci = text_or_method(uci, "uci", "expected a move in UCI notation or a chess.Move")?;
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

    /// Sizes, contexts, dead features, losslessness and cost: the dict that `fsbench define --format json` prints.
    ///
    /// Takes up to some seconds; `thorough` searches for proofs without a limit of time.
    #[pyo3(signature = (*, thorough = false))]
    fn define<'py>(&self, py: Python<'py>, thorough: bool) -> PyResult<Bound<'py, PyAny>> {
        let set = Arc::clone(&self.set);
        let text = interruptible(py, move || {
            let budget = if thorough { Budget::THOROUGH } else { Budget::brief() };
            let (summary, _) = SetSummary::within(&set, budget, |_, _| {})?;
            Ok::<String, FeatureError>(json::to_text(&summary).unwrap_or_default())
        })??;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The virtual inputs of the features, a `fsbench.Factors`; None if the definition has no factor.
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

    /// The meaning of a feature in words. Raises IndexError for an index that is no feature.
    fn describe(&self, index: &Bound<'_, PyAny>) -> PyResult<String> {
        let none = || {
            PyIndexError::new_err(format!("{} has {} features; there is no {index}", self.name(), self.num_features()))
        };
        let number: Option<u32> = match index.extract() {
            Ok(number) => Some(number),
            Err(error) if error.is_instance_of::<PyOverflowError>(index.py()) => None,
            Err(error) => return Err(error),
        };
        let text = number.and_then(|number| self.set.describe(number)).ok_or_else(none)?;
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
    /// Appends the indices and offsets of both sides in every position. The first position is called by its number
    /// `first`.
    fn encode_to(&self, fens: &[String], first: usize, sides: &mut [(Vec<i32>, Vec<i32>); 2]) -> PyResult<()> {
        let mut boards = Vec::with_capacity(fens.len());
        for (number, fen) in (first..).zip(fens) {
            let position = position(fen, number)?;
            let board = PackedBoard::pack(position.board());
            let board = board.map_err(|error| error::request(format!("position {number}: {error}")))?;
            boards.push((board, Perspective::of(position.turn())));
        }
        let boards = boards.iter().map(|(board, stm)| (board, *stm));
        let mut encoded = [RowBuffer::default(), RowBuffer::default()];
        self.set.encoder().append_batch(boards, &mut encoded, &mut EncodeScratch::default());
        for (side, (active, offsets)) in encoded.into_iter().zip(sides) {
            let before = active.len();
            active.extend(indices(side.rows()));
            for end in side.ends() {
                let end = before + *end as usize;
                active[offsets[offsets.len() - 1] as usize..end].sort_unstable();
                offsets.push(end as i32);
            }
        }
        Ok(())
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

/// Positions that are worked on between two looks at Python's signals.
pub const POSITIONS_BETWEEN_SIGNALS: usize = 4096;

/// The FENs of an iterable of FENs or `chess.Board` objects.
pub fn fens_of(iterable: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let expected = "expected an iterable of FENs or of chess.Board objects";
    if iterable.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("{expected}, found one string; put it into a list")));
    }
    let Ok(positions) = iterable.try_iter() else { return Err(wrong_type(expected, iterable)) };
    let mut fens = Vec::new();
    for (number, position) in positions.enumerate() {
        if number % POSITIONS_BETWEEN_SIGNALS == 0 {
            iterable.py().check_signals()?;
        }
        let expected = format!("position {number}: {A_FEN}");
        fens.push(text_or_method(&position?, "fen", &expected)?);
    }
    Ok(fens)
}

const A_FEN: &str = "expected a FEN or a chess.Board";

/// A position's FEN.
fn fen_of(position: &Bound<'_, PyAny>) -> PyResult<String> {
    text_or_method(position, "fen", A_FEN)
}

/// A string, or the string that a method without arguments returns, as `fen` of a `chess.Board`.
fn text_or_method(value: &Bound<'_, PyAny>, method: &str, expected: &str) -> PyResult<String> {
    if let Ok(text) = value.extract() {
        return Ok(text);
    }
    match value.getattr(method) {
        Ok(method) if method.is_callable() => method.call0()?.extract(),
        _ => Err(wrong_type(expected, value)),
    }
}

fn wrong_type(expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    match found.get_type().name() {
        Ok(found) => PyTypeError::new_err(format!("{expected}, found {found}")),
        Err(error) => error,
    }
}

/// A path as text, which the definition language needs.
fn path_text(path: &std::path::Path) -> PyResult<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| error::request(format!("{} is not UTF-8", path.display())))
}

/// Feature indices as torch takes them; [`FeatureSet`] refuses sets whose last feature `i32` does not reach.
fn indices(active: &[u32]) -> Vec<i32> {
    active.iter().map(|index| *index as i32).collect()
}
