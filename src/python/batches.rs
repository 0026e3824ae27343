//! `fsbench.Batches`: the batches of samples-service, made in this process.

use std::ffi::CString;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use shakmaty::Position;

use super::arrays::batch_dict;
use super::error;
use super::feature_set::PyFeatureSet;
use super::interruptible::{SIGNAL_INTERVAL, interruptible};
use super::preparation::{PreparationMessages, StreamSource, lock};
use super::request::source;
use crate::chess::{fen_of, uci_move};
use crate::data::GameResult;
use crate::service::{DataSample, LocalStream, NextBatch, PreparedStream, ProcessBound, ServiceError, Shard};

/// The training batches of a data file: what `fsbench samples-service` gives for the same options, byte for byte, made
/// by threads of this process. Each is a `fsbench.Batch`, a dict of numpy arrays.
///
///     batches = fsbench.Batches("games.binpack", "half-ka-v2-hm", batch_size=16384, epochs=0)
///     for batch in batches:
///         torch.from_numpy(batch["stm_indices"])
///
/// `iter()` starts a stream from the beginning each time. Objects can be pickled, and used in forked processes: there the
/// data are opened anew. In a worker of PyTorch's DataLoader a stream is the worker's share; together the workers give
/// every batch once: `DataLoader(batches.dataset(), batch_size=None, num_workers=4)`.
///
/// data: games or samples in any format that fsbench reads, or a list of files, which are read as one; None = the sample
///     games that come with it. A name may be a glob, "games/*.pgn.zst", whose files are read by name. With a weight,
///     "games.pgn@0.25" or "games.pgn@2", that part of its games is taken, or all of them so often: the files are built
///     into one data set.
/// features: a FeatureSet, or what names one.
/// batch_size: samples of a batch; a sample of pqr is three positions.
/// method: "eval": positions with their scores and results; "pqr": a position, the one after its move, and the one after
///     another move.
/// seed: of the order of the samples, and of the other move of pqr.
/// threads: those that make batches; by default as many as the machine has.
/// epochs: 0 = without end.
/// shard: "I/N" gives every N-th batch from batch I on.
/// read: "auto" decodes a binpack as it is, "built" builds it first, which gives the same samples; `min_ply` and `filter`
///     leave out some.
/// min_ply: leaves out positions before this ply, when the data are built.
/// filter: "quiet" leaves out positions that are not quiet, when the data are built.
/// training_share: the share of the training games that is read; games of a share are in every larger one.
/// needs: "score", "result", "both" or "any": what a sample of eval must have; by default a score, in data that are built
///     already what they were built for.
/// from_unit: the unit of scores that the data do not record: "cp", or "internal:PAWN" with an engine's units per pawn.
/// eval_unit: the unit of the scores in PGN comments: "cp" or "pawns".
/// eval_view: whose view those scores are: "white" or "mover".
/// layout: "csr": indices and offsets; "bitset": one bit per feature.
/// bucket_rule: an expression with exactly one value in every position, which batches then have in `bucket`.
/// slots: batches that the memory holds, 1 to 200. With more than `slots - threads` of them kept, further ones are copies.
/// epoch_samples: samples of an epoch; by default all.
/// split: "all", "train" or "validation".
/// validation: the share of the games that are validation.
/// split_seed: which games are validation.
/// start_batch: the number of the first batch; that of the last one plus 1 goes on after it.
/// shuffle: whether each epoch has an order of its own; False gives the data's order.
/// progress: a function of (done, total), both in bytes, which hears how far a binpack is scanned, or games are built, at
///     most ten times a second; True shows a bar of tqdm.
///
/// Raises RequestError for wrong options and data, and warns of what it had to assume or to leave out.
#[pyclass(module = "fsbench", frozen)]
pub struct Batches {
    source: StreamSource,
    features: Py<PyFeatureSet>,
    /// The findings of the data's preparation.
    notes: Vec<String>,
    /// As given, for copies in other processes.
    arguments: (Py<PyAny>, Py<PyDict>),
    prepared: Mutex<ProcessBound<Arc<PreparedStream>>>,
}

/// A running stream. It belongs to the process that called `iter()`; in a forked one it raises Error. Threads may share
/// it: each batch goes to one of them.
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
                          shard=None, read='auto', min_ply=None, filter=None, training_share=None, needs=None, \
                          from_unit=None, eval_unit=None, eval_view=None, layout='csr', bucket_rule=None, \
                          slots=None, epoch_samples=None, split='all', validation=0.1, split_seed=0, \
                          start_batch=0, shuffle=True, progress=None)"
    )]
    fn new(
        py: Python<'_>,
        data: Option<&Bound<'_, PyAny>>,
        features: Option<Bound<'_, PyAny>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Batches> {
        let features = match features {
            Some(features) => PyFeatureSet::of_argument(&features)?,
            None => return Err(PyTypeError::new_err("Batches needs features: a FeatureSet, or what names one")),
        };
        let options = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
        let progress = progress_of(&options)?;
        let source = source(features.get().set.definition(), data, &options)?;
        let found = Arc::new(PreparationMessages::default());
        let prepared = source.prepare(py, &found, progress.as_ref());
        if let Some(progress) = progress.filter(|progress| progress.hasattr("close").unwrap_or(false)) {
            progress.call_method0("close")?;
        }
        let prepared = prepared?;
        let start = source.request.start_batch;
        if let Some(end) = prepared.get().and_then(|stream| stream.batches()).filter(|end| start > *end) {
            return Err(error::request(format!("start_batch is {start}, and the epochs have {end} batches")));
        }
        for warning in found.warnings.take() {
            let category = py.get_type::<PyUserWarning>();
            let text = CString::new(warning).map_err(|error| PyValueError::new_err(error.to_string()))?;
            PyErr::warn(py, &category, &text, 1)?;
        }
        // The files as they were found: the caller's list, glob or iterator may name others later.
        let data = match data {
            Some(_) => source.request.data.files().to_vec().into_pyobject(py)?.into_any().unbind(),
            None => py.None(),
        };
        let notes = found.notes.take();
        let arguments = (data, options.unbind());
        Ok(Batches { source, features, notes, arguments, prepared: Mutex::new(prepared) })
    }

    /// The set that encodes the positions.
    #[getter]
    fn features(&self, py: Python<'_>) -> Py<PyFeatureSet> {
        self.features.clone_ref(py)
    }

    /// Number of features of one perspective.
    #[getter]
    fn num_features(&self) -> u32 {
        self.features.get().set.num_features()
    }

    /// Samples of a batch.
    #[getter]
    fn batch_size(&self) -> usize {
        self.source.request.batch_size
    }

    /// Positions of a sample: 1, or 3 for pqr.
    #[getter]
    fn positions_per_sample(&self) -> usize {
        self.source.request.positions_per_sample()
    }

    /// What was built and what was left out, with its number: the lines that `fsbench samples-service` prints.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Samples of an epoch, of all shards.
    #[getter]
    fn samples_per_epoch(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stream(py)?.samples_per_epoch())
    }

    /// Batches of an epoch, of all shards.
    #[getter]
    fn batches_per_epoch(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stream(py)?.batches_per_epoch())
    }

    /// The samples with these numbers, which batches have in `sample_index`: the positions behind their rows. Each is a
    /// `fsbench.Sample`, a dict.
    ///
    ///     batches.samples(batch["sample_index"][:3])
    ///
    /// Raises RequestError for a number that the data do not have.
    fn samples<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let Ok(given) = indices.try_iter() else {
            let found = indices.get_type().name()?;
            let message =
                format!("indices is an iterable of numbers of samples, as a batch's sample_index; found {found}");
            return Err(PyTypeError::new_err(message));
        };
        let mut numbers: Vec<u32> = Vec::new();
        for (place, number) in given.enumerate() {
            let number = number?;
            let wrong =
                |_| PyTypeError::new_err(format!("indices[{place}] is {number}, not a number of a sample from 0 on"));
            numbers.push(number.extract().map_err(wrong)?);
        }
        let stream = self.stream(py)?;
        let looked_up = (Arc::clone(&stream), numbers.clone());
        let found = interruptible(py, move || looked_up.0.samples(&looked_up.1))??;
        numbers.iter().zip(&found).map(|(number, sample)| sample_dict(py, &stream, *number, sample)).collect()
    }

    /// Number of batches that iteration gives; a TypeError for `epochs=0`, which is without end.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let start = self.source.request.start_batch;
        let shard = self.source.request.shard;
        let end = self.stream(py)?.batches();
        let end = end.ok_or_else(|| PyTypeError::new_err("batches of epochs=0 are without end"))?;
        Ok(end.saturating_sub(shard.first(start)).div_ceil(shard.of.into()) as usize)
    }

    /// These batches as a `torch.utils.data.IterableDataset`, which PyTorch's DataLoader takes with `batch_size=None`.
    /// Imports torch.
    fn dataset<'py>(this: Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("fsbench._torch")?.call_method1("Dataset", (this,))
    }

    /// Starts a stream. In a worker of a PyTorch DataLoader, the worker's share of it.
    fn __iter__(&self, py: Python<'_>) -> PyResult<BatchIterator> {
        let shard = worker_shard(py, self.source.request.shard)?;
        let start_batch = self.source.request.start_batch;
        let prepared = self.stream(py)?;
        let stream = Arc::new(LocalStream::start(&prepared, start_batch, shard)?);
        Ok(BatchIterator { stream: Mutex::new(Some(stream)), prepared: ProcessBound::new(prepared) })
    }

    /// Says what to do in place of taking single batches, as PyTorch's DataLoader would.
    fn __getitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("batches come one after the other; PyTorch's DataLoader takes batches.dataset()"))
    }

    fn __repr__(&self) -> String {
        let set = self.features.get().set.name();
        format!("Batches({}, {set}, batch_size={})", self.source.request.data, self.source.request.batch_size)
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
        let prepared = self.source.prepare(py, &Arc::default(), None)?;
        *lock(&self.prepared) = prepared;
        self.stream(py)
    }
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

    fn __repr__(&self) -> String {
        let state = if lock(&self.stream).is_some() { "running" } else { "ended" };
        format!("BatchIterator({state})")
    }

    /// Ends the stream, from any thread; iteration ends. Batches that were handed out stay valid.
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

/// What the option `progress` stands for, which is taken out of the options: a bar of tqdm for True.
fn progress_of<'py>(options: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(progress) = options.get_item("progress")? else { return Ok(None) };
    options.del_item("progress")?;
    if progress.is_none() || progress.is(PyBool::new(options.py(), false)) {
        return Ok(None);
    }
    if progress.is(PyBool::new(options.py(), true)) {
        return options.py().import("fsbench._progress")?.call_method0("Bar").map(Some);
    }
    if progress.is_callable() {
        return Ok(Some(progress));
    }
    Err(PyTypeError::new_err("progress is True, or a function of (done, total), both in bytes"))
}

fn sample_dict<'py>(
    py: Python<'py>,
    stream: &PreparedStream,
    number: u32,
    sample: &DataSample,
) -> PyResult<Bound<'py, PyDict>> {
    let DataSample { record, game } = sample;
    let failed = |source| ServiceError::Record { index: number, source };
    let position = record.position().map_err(failed)?;
    let played = match record.has_move() {
        false => None,
        true => {
            let played = position.legal_moves().into_iter().find(|mv| record.is_move(*mv));
            Some(uci_move(played.ok_or_else(|| failed(record.no_such_move()))?))
        }
    };
    let dict = PyDict::new(py);
    dict.set_item("fen", fen_of(&position))?;
    dict.set_item("move", played)?;
    dict.set_item("score", record.score().map(|score| stream.score_unit().in_centipawns(score)))?;
    dict.set_item("result", record.result().map(GameResult::points))?;
    dict.set_item("ply", record.ply().0)?;
    dict.set_item("game", game)?;
    Ok(dict)
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
