//! `fsbench.Batches`: the batches of samples-service, made in this process.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use serde_json::{Map, Value, json};

use super::arrays::batch_dict;
use super::error;
use super::feature_set::PyFeatureSet;
use super::interruptible::{SIGNAL_INTERVAL, interruptible};
use crate::data::formats::{FileUnit, SkippedSamples, UnitOrigin};
use crate::data::{DataFiles, ScoreUnit};
use crate::json::from_value;
use crate::pipeline::{Manifest, sample_games};
use crate::service::{
    LocalStream, MAX_SLOTS, NextBatch, PrepareObserver, PreparedStream, ProcessBound, Request, ServedFile,
    ServiceError, Shard, prepare,
};

/// Slots beyond the threads: the number that a consumer can hold before batches are copied for it.
const SPARE_SLOTS: usize = 4;

/// The training batches of a data file: what `fsbench samples-service` gives for the same options, byte for byte, made
/// by threads of this process. `iter()` starts from the beginning each time.
///
///     batches = fsbench.Batches("games.binpack", "half-ka-v2-hm", batch_size=16384, epochs=0)
///     for batch in batches:
///         torch.from_numpy(batch["stm_indices"])
#[pyclass(module = "fsbench", frozen)]
pub struct Batches {
    request: Request,
    features: Py<PyFeatureSet>,
    /// The findings of the data's preparation.
    notes: Vec<String>,
    /// As given, for copies in other processes.
    arguments: (Py<PyAny>, Py<PyDict>),
    prepared: Mutex<ProcessBound<Arc<PreparedStream>>>,
}

/// A path, or a list of paths.
#[derive(IntoPyObject)]
enum DataArgument {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

/// The iterator of a `Batches` object: its threads make batches ahead. It belongs to the process that called `iter()`,
/// whose threads may share it: each batch goes to one of them. `close()` ends it from any thread.
#[pyclass(module = "fsbench", frozen)]
pub struct BatchIterator {
    /// `None` at the end.
    stream: Mutex<Option<Arc<LocalStream>>>,
    prepared: ProcessBound<Arc<PreparedStream>>,
}

#[pymethods]
impl Batches {
    #[new]
    #[pyo3(
        signature = (data = None, features = None, **options),
        text_signature = "(data, features, *, batch_size=4096, method='eval', seed=0, threads=None, epochs=1, \
                          shard=None, read='auto', min_ply=None, filter=None, needs=None, from_unit=None, \
                          eval_unit=None, eval_view=None, layout='csr', bucket_rule=None, slots=None, epoch_samples=None, split='all', \
                          validation=0.1, split_seed=0, start_batch=0, shuffle=True)"
    )]
    fn new(
        py: Python<'_>,
        data: Option<Bound<'_, PyAny>>,
        features: Option<Bound<'_, PyAny>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Batches> {
        let data = data.map(|data| DataArgument::of(&data)).transpose()?;
        let features = match features {
            Some(features) => PyFeatureSet::of_argument(&features)?,
            None => return Err(PyTypeError::new_err("Batches needs features: a FeatureSet, or what names one")),
        };
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let files = match &data {
            None => sample_games()?.into(),
            Some(DataArgument::One(file)) => file.into(),
            Some(DataArgument::Several(files)) => DataFiles::new(files.clone())
                .ok_or_else(|| error::request("data is an empty list; leave it out for the sample games"))?,
        };
        let request = request(features.get().set.definition(), files, &options)?;
        let found = Arc::new(PreparationMessages::default());
        let prepared = prepared(py, &request, &found)?;
        for warning in found.warnings.take() {
            let category = py.get_type::<PyUserWarning>();
            let text = CString::new(warning).map_err(|error| PyValueError::new_err(error.to_string()))?;
            PyErr::warn(py, &category, &text, 1)?;
        }
        let data = data.into_pyobject(py)?.into_any().unbind();
        let notes = found.notes.take();
        let arguments = (data, options.unbind());
        Ok(Batches { request, features, notes, arguments, prepared: Mutex::new(prepared) })
    }

    #[getter]
    fn features(&self, py: Python<'_>) -> Py<PyFeatureSet> {
        self.features.clone_ref(py)
    }

    /// Number of features of one perspective.
    #[getter]
    fn num_features(&self) -> u32 {
        self.features.get().set.num_features()
    }

    #[getter]
    fn batch_size(&self) -> usize {
        self.request.batch_size
    }

    /// Positions of a sample: 1, or 3 for pqr.
    #[getter]
    fn positions_per_sample(&self) -> usize {
        self.request.positions_per_sample()
    }

    /// The samples built and left out, with their numbers: the lines that samples-service prints.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[getter]
    fn samples_per_epoch(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stream(py)?.samples_per_epoch())
    }

    /// Batches of an epoch, of all shards.
    #[getter]
    fn batches_per_epoch(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stream(py)?.batches_per_epoch())
    }

    /// Number of batches that iteration gives; a TypeError for `epochs=0`, which is without end.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let start = self.request.start_batch;
        let shard = self.request.shard;
        let end = self.stream(py)?.batches();
        let end = end.ok_or_else(|| PyTypeError::new_err("batches of epochs=0 are without end"))?;
        Ok(end.saturating_sub(shard.first(start)).div_ceil(shard.of.into()) as usize)
    }

    /// These batches as a `torch.utils.data.IterableDataset`, for PyTorch's DataLoader with `batch_size=None`.
    fn dataset<'py>(this: Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("fsbench._torch")?.call_method1("Dataset", (this,))
    }

    /// Starts a stream. In a worker of a PyTorch DataLoader, the worker's share of it.
    fn __iter__(&self, py: Python<'_>) -> PyResult<BatchIterator> {
        let shard = worker_shard(py, self.request.shard)?;
        let start_batch = self.request.start_batch;
        let prepared = self.stream(py)?;
        let stream = Arc::new(LocalStream::start(&prepared, start_batch, shard)?);
        Ok(BatchIterator { stream: Mutex::new(Some(stream)), prepared: ProcessBound::new(prepared) })
    }

    fn __repr__(&self) -> String {
        let set = self.features.get().set.name();
        format!("Batches({}, {set}, batch_size={})", self.request.data, self.request.batch_size)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Py<PyDict>)> {
        let (data, options) = &self.arguments;
        let arguments = PyTuple::new(py, [data.clone_ref(py), self.features.clone_ref(py).into_any()])?;
        Ok((arguments, options.clone_ref(py)))
    }
}

impl Batches {
    /// The prepared data, which a forked process prepares anew.
    fn stream(&self, py: Python<'_>) -> PyResult<Arc<PreparedStream>> {
        // The lock is held for short: another thread may wait for it with the GIL.
        if let Some(prepared) = lock(&self.prepared).get() {
            return Ok(Arc::clone(prepared));
        }
        let prepared = prepared(py, &self.request, &Arc::default())?;
        *lock(&self.prepared) = prepared;
        self.stream(py)
    }
}

impl DataArgument {
    fn of(data: &Bound<'_, PyAny>) -> PyResult<DataArgument> {
        let wrong = |found: &Bound<'_, PyAny>| {
            let found = found.get_type().name()?;
            Ok::<_, PyErr>(PyTypeError::new_err(format!(
                "data is a path, a list of paths, or None for the sample games; found {found}"
            )))
        };
        if let Ok(path) = data.extract::<PathBuf>() {
            return Ok(DataArgument::One(path));
        }
        let Ok(paths) = data.try_iter() else { return Err(wrong(data)?) };
        let mut several = Vec::new();
        for path in paths {
            let path = path?;
            let Ok(path) = path.extract::<PathBuf>() else { return Err(wrong(&path)?) };
            several.push(path);
        }
        Ok(DataArgument::Several(several))
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl BatchIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let (held, batch) = loop {
            // Asked for anew each time: another thread may have closed it.
            let Some(stream) = lock(&self.stream).clone() else { return Ok(None) };
            let next = py.detach(|| stream.next(SIGNAL_INTERVAL));
            let held = stream.held();
            // The last to drop it waits for its threads.
            py.detach(|| drop(stream));
            match next? {
                NextBatch::Ready(batch) => break (held, batch),
                NextBatch::Pending => py.check_signals()?,
                NextBatch::End => *lock(&self.stream) = None,
            }
        };
        let prepared = self.prepared.get().ok_or(ServiceError::Forked { owner: self.prepared.process() })?;
        let request = prepared.request();
        let slots = request.slots();
        // Every thread keeps a slot to fill, and the stream at least one, however many batches the consumer holds.
        let copy = held > slots.saturating_sub(request.threads).max(1).min(slots - 1);
        batch_dict(py, batch, prepared.arrays(), copy).map(Some)
    }

    /// Ends the stream's threads. Batches that were handed out stay valid. In a thread that waits for a batch, iteration
    /// ends.
    fn close(&self, py: Python<'_>) {
        let stream = lock(&self.stream).take();
        py.detach(|| {
            if let Some(stream) = stream {
                stream.stop();
            }
        });
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// The findings of the data's preparation, in words.
#[derive(Default)]
struct PreparationMessages {
    warnings: Messages,
    notes: Messages,
}

#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Messages {
    fn add(&self, line: String) {
        self.extend([line]);
    }

    fn extend(&self, lines: impl IntoIterator<Item = String>) {
        lock(&self.0).extend(lines);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl PrepareObserver for PreparationMessages {
    fn score_unit(&self, data: &Path, FileUnit { unit, origin }: FileUnit) {
        if origin == UnitOrigin::FormatDefault && unit != ScoreUnit::Centipawns {
            self.warnings.add(format!(
                "the scores of {} are assumed to be {}, as in Stockfish's training data; say from_unit=\"{unit}\", or \
                 from_unit=\"cp\" if they are centipawns",
                data.display(),
                unit.describe()
            ));
        }
    }

    fn skipped(&self, data: &Path, skipped: &SkippedSamples) {
        if !skipped.is_empty() {
            self.warnings.add(format!("broken entries of {} are left out{}", data.display(), skipped.describe()));
        }
    }

    fn opened(&self, opened: &ServedFile<'_>) {
        self.notes.extend(opened.summary());
        for source in opened.manifest.into_iter().flat_map(Manifest::without_plies) {
            self.warnings.add(format!(
                "{} records no games: each sample counts as a game of its own, so neighbouring positions of a game can \
                 be on both sides of a split into training and validation",
                source.path
            ));
        }
        let sources = opened.manifest.into_iter().flat_map(|manifest| &manifest.sources);
        for source in sources.filter(|source| source.notes.concerns_scores()) {
            self.warnings.add(format!("{}: {}", source.path, source.notes.lines().join("; ")));
        }
    }

    fn left_out(&self, samples: usize, required: &str) {
        self.notes.add(format!("left out {samples} samples without {required}"));
    }
}

fn prepared(
    py: Python<'_>,
    request: &Request,
    found: &Arc<PreparationMessages>,
) -> PyResult<ProcessBound<Arc<PreparedStream>>> {
    let request = request.clone();
    let found = Arc::clone(found);
    Ok(ProcessBound::new(Arc::new(interruptible(py, move || prepare(request, &*found))??)))
}

/// The request of the keyword arguments: the keys of a request's JSON document.
fn request(set: &str, data: DataFiles, options: &Bound<'_, PyDict>) -> PyResult<Request> {
    let schema = schemars::schema_for!(Request).to_value();
    let mut document = Map::new();
    for (name, value) in options {
        let name: String = name.extract()?;
        let is_option = schema["properties"].get(&name).is_some();
        if !is_option || ["set", "data", "shm"].contains(&name.as_str()) {
            return Err(PyTypeError::new_err(format!("Batches has no option {name}")));
        }
        if value.is_none() {
            continue;
        }
        let wrong = |why: String| error::request(format!("{name} cannot be {value}{why}"));
        let value = as_json(&name, &value).map_err(wrong)?;
        // One at a time, so that the error names the option.
        from_value::<Request>(&json!({ &name: &value }), "").map_err(|error| wrong(format!(": {}", error.message)))?;
        document.insert(name, value);
    }
    let mut request: Request = from_value(&document.into(), "").map_err(error::request)?;
    request.slots.get_or_insert(MAX_SLOTS.min(request.threads.saturating_add(SPARE_SLOTS)));
    Ok(Request { set: set.into(), data, ..request })
}

/// An option's value in a request's JSON document, or why there is none.
fn as_json(name: &str, value: &Bound<'_, PyAny>) -> Result<Value, String> {
    if let Ok(text) = value.extract::<String>() {
        return match name {
            "from_unit" => text.parse::<ScoreUnit>().map(|unit| json!(unit)),
            "shard" => text.parse::<Shard>().map(|shard| json!(shard)),
            _ => Ok(text.into()),
        }
        .map_err(|why| format!(": {why}"));
    }
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(yes.is_true().into());
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number.into());
    }
    value.extract::<f64>().map(Value::from).map_err(|_| String::new())
}

/// The part of a shard that a worker of PyTorch's DataLoader makes; the whole shard elsewhere. Together the workers
/// make all of it.
fn worker_shard(py: Python<'_>, shard: Shard) -> PyResult<Shard> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(data) = modules.get_item("torch.utils.data") else { return Ok(shard) };
    let worker = data.call_method0("get_worker_info")?;
    if worker.is_none() {
        return Ok(shard);
    }
    let id: u32 = worker.getattr("id")?.extract()?;
    let count: u32 = worker.getattr("num_workers")?.extract()?;
    let of = shard.of.checked_mul(count).ok_or_else(|| error::request("there are more than 2^32 shards"))?;
    Ok(Shard { index: shard.index + id * shard.of, of })
}
