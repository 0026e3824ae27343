//! `fsbench.save_network`: a network trained elsewhere, from float arrays to a folder with its weights and its integers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use serde_json::{Map, Value, json};
use shakmaty::Position;

use super::error;
use super::feature_set::{PyFeatureSet, fens_of, position};
use super::interruptible::interruptible;
use crate::chess::Chess;
use crate::data::{Method, ScoreUnit};
use crate::engine::{BackEnd, Differences, Evaluator, Model, NetworkPair, Strategy};
use crate::features::{Factors, FeatureSet};
use crate::json::from_value;
use crate::net::{
    BucketChooser, Checkpoint, FloatNet, NetFile, Origin, OutputBuckets, Scheme, Shape, quantise, save_float,
};
use crate::pipeline::{open_or_build, sample_games};
use crate::service::ServiceError;
use crate::train::run_dir::{self, RunDir};
use crate::train::{EvalLoss, ShapeOptions, TrainError};

/// Positions of the sample games in which the quantisation error is measured.
const SAMPLE_POSITIONS: usize = 4096;

/// Writes a network that was trained elsewhere into a folder: its float weights (`best.safetensors`) and its integers
/// (`network.safetensors`), as `fsbench train` leaves them. `fsbench.Network`, `fsbench match` and all others take the
/// folder. Returns the quantisation error.
#[pyfunction]
#[pyo3(
    signature = (path, features, weights, *, scheme = None, score_unit = "cp", score_per_output = None,
                 positions = None, force = false, **design),
    text_signature = "(path, features, weights, *, scheme=None, score_unit='cp', score_per_output=None, \
                      positions=None, force=False, activation='crelu', hidden_activation='crelu', skip=False, \
                      skip_difference=False, concatenated=False, narrow=0, bucket_rule='stockfish')"
)]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn save_network<'py>(
    py: Python<'py>,
    path: PathBuf,
    features: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    scheme: Option<&str>,
    score_unit: &str,
    score_per_output: Option<f64>,
    positions: Option<&Bound<'py, PyAny>>,
    force: bool,
    design: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let set = PyFeatureSet::of_argument(features)?;
    let set = &set.get().set;
    let mut arrays = Arrays::of(weights)?;
    let factors = if arrays.has(FACTOR_ROWS) {
        let none = || error::request(format!("weights has {FACTOR_ROWS}, and {} has no factor", set.name()));
        let set = Arc::clone(set);
        Some(interruptible(py, move || Factors::of(&set))??.ok_or_else(none)?)
    } else {
        None
    };
    let shape = arrays.shape(set, &design_options(design)?)?;
    let unit: ScoreUnit = score_unit
        .parse()
        .map_err(|why: String| error::request(format!("score_unit cannot be {score_unit}: {why}")))?;
    let scheme = match scheme {
        None => Scheme::first_admitting(&shape),
        Some(name) => Scheme::named(name).ok_or_else(|| {
            let known: Vec<String> = Scheme::all().into_iter().map(|scheme| scheme.name).collect();
            error::request(format!("there is no scheme {name}; known are {}", known.join(", ")))
        })?,
    };
    let scheme = Scheme { pawn_value: unit.pawn().into(), ..scheme };
    let mut net = FloatNet::filled(&shape, |name, sizes| arrays.take(name, sizes))?;
    arrays.check_empty(&shape)?;
    if let Some(factors) = &factors {
        arrays.merge(factors, &mut net)?;
    }
    if let Some(score) = score_per_output {
        scale_output(&mut net, score / f64::from(scheme.nnue2score))?;
    }
    let positions = positions.map(|positions| positions_of(positions)).transpose()?;
    let set = Arc::clone(set);
    let saved = interruptible(py, move || save(&path, force, &set, &net, &scheme, positions))?;
    let Saved { differences, shape, scheme } = saved?;
    let dict = PyDict::new(py);
    dict.set_item("shape", shape)?;
    dict.set_item("scheme", scheme)?;
    dict.set_item("positions", differences.positions())?;
    dict.set_item("mean", differences.mean())?;
    dict.set_item("p99", f64::from(differences.p99()))?;
    dict.set_item("max", f64::from(differences.max()))?;
    dict.set_item("within_tolerance", differences.within_tolerance())?;
    dict.set_item("tolerance", differences.tolerance())?;
    dict.set_item("accumulator_overflows", differences.accumulator_overflows())?;
    Ok(dict)
}

/// The quantisation schemes: a list of dicts of `name`, `score_per_output` (the score of output 1.0) and the largest
/// absolute weights, to which a training clips: `ft` (the feature transformer's), `hidden` (a list of two: by hidden
/// layer) and `output`.
#[pyfunction]
pub fn schemes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut schemes = Vec::new();
    for scheme in Scheme::all() {
        let limits = scheme.limits();
        let dict = PyDict::new(py);
        dict.set_item("name", &scheme.name)?;
        dict.set_item("score_per_output", scheme.nnue2score)?;
        dict.set_item("ft", limits.feature_transformer)?;
        dict.set_item("hidden", PyList::new(py, limits.hidden)?)?;
        dict.set_item("output", limits.output)?;
        schemes.push(dict);
    }
    Ok(schemes)
}

/// The rows of virtual inputs, in the order of [`Factors`].
const FACTOR_ROWS: &str = "factor.weight";
/// PSQT values as an array of their own.
const PSQT: &str = "psqt.weight";

/// The arrays that were given and not used yet.
struct Arrays(Vec<(String, Array)>);

struct Array {
    sizes: Vec<usize>,
    values: Vec<f32>,
}

impl Arrays {
    /// The arrays of a dict; tensors of PyTorch are taken, too.
    fn of(weights: &Bound<'_, PyAny>) -> PyResult<Arrays> {
        let named = |name: &str, problem: &str| PyTypeError::new_err(format!("weights[\"{name}\"] {problem}"));
        let Ok(weights) = weights.cast::<PyDict>() else {
            let found = weights.get_type().name()?;
            return Err(PyTypeError::new_err(format!("weights is a dict from names to arrays, found {found}")));
        };
        let numpy = weights.py().import("numpy")?;
        // Refuses complex numbers and texts, which other casts take.
        let keywords = PyDict::new(weights.py());
        keywords.set_item("casting", "same_kind")?;
        keywords.set_item("order", "C")?;
        let mut arrays = Vec::with_capacity(weights.len());
        for (name, value) in weights {
            let Ok(name) = name.extract::<String>() else {
                return Err(PyTypeError::new_err(format!("weights has the name {name}, which is not a string")));
            };
            let value = match value.hasattr("detach")? {
                true => value.call_method0("detach")?.call_method0("cpu")?,
                false => value,
            };
            let array = numpy.call_method1("asarray", (value,));
            let array = array.and_then(|array| array.call_method("astype", ("float32",), Some(&keywords)));
            let array = array.map_err(|why| named(&name, &format!("is not an array of real numbers: {why}")))?;
            let array = array.cast_into::<PyArrayDyn<f32>>().map_err(|_| named(&name, "is not an array of numbers"))?;
            let array = array.readonly();
            arrays.push((name, Array { sizes: array.shape().to_vec(), values: array.as_slice()?.to_vec() }));
        }
        Ok(Arrays(arrays))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    fn get(&self, name: &str) -> PyResult<&Array> {
        let found = self.0.iter().find(|(other, _)| other == name);
        let missing = || error::request(format!("weights has no {name}, which the network needs"));
        Ok(&found.ok_or_else(missing)?.1)
    }

    /// The shape of a network of these arrays: widths by their sizes, the rest by the options.
    fn shape(&mut self, set: &FeatureSet, design: &ShapeOptions) -> PyResult<Shape> {
        let bias = self.get("ft.bias")?;
        let [l1] = bias.sizes[..] else { return Err(wrong_sizes("ft.bias", &bias.sizes, "[l1]")) };
        let rows = self.get("ft.weight")?;
        let [_, columns] = rows.sizes[..] else {
            return Err(wrong_sizes("ft.weight", &rows.sizes, "[features, l1]"));
        };
        let of_stack = |(name, _): &(String, Array)| name.strip_prefix("stacks.")?.split('.').next()?.parse().ok();
        let buckets = 1 + self.0.iter().filter_map(of_stack).max().unwrap_or(0usize);
        let psqt = self.has(PSQT) || columns == l1 + buckets;
        let design = ShapeOptions { buckets, psqt, ..design.clone() }.for_set(set)?;
        // Names follow from the number of buckets.
        let one =
            Shape { buckets: OutputBuckets { count: buckets, ..Default::default() }, ..Shape::plain(1, 1, vec![]) };
        let mut widths = Vec::new();
        for layer in 0.. {
            let name = format!("{}.weight", one.layer_name(0, layer));
            if layer > 0 && !self.has(&name) {
                break;
            }
            let array = self.get(&name)?;
            let [outputs, _] = array.sizes[..] else {
                return Err(wrong_sizes(&name, &array.sizes, "[outputs, inputs]"));
            };
            widths.push(outputs);
        }
        widths.pop();
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(usize::from(design.skip));
        }
        let shape = design.shape(set.num_features(), l1, &widths)?;
        BucketChooser::new(&shape.buckets, set)?;
        self.join_psqt(&shape)?;
        Ok(shape)
    }

    /// Appends PSQT values that are an array of their own to the rows of `ft.weight`.
    fn join_psqt(&mut self, shape: &Shape) -> PyResult<()> {
        if !self.has(PSQT) {
            return Ok(());
        }
        let features = shape.features as usize;
        let rows = self.take("ft.weight", &[features, shape.l1])?;
        let values = self.take(PSQT, &[features, shape.buckets.count])?;
        let parts = rows.chunks_exact(shape.l1).zip(values.chunks_exact(shape.buckets.count));
        let values: Vec<f32> = parts.flat_map(|(row, values)| row.iter().chain(values)).copied().collect();
        self.0.push(("ft.weight".into(), Array { sizes: vec![features, shape.row_len()], values }));
        Ok(())
    }

    /// Takes out the values of an array that has these sizes.
    fn take(&mut self, name: &str, sizes: &[usize]) -> PyResult<Vec<f32>> {
        let array = self.get(name)?;
        if array.sizes != sizes {
            return Err(wrong_sizes(name, &array.sizes, &format!("{sizes:?}")));
        }
        let place = self.0.iter().position(|(other, _)| other == name);
        Ok(place.map_or_else(Vec::new, |place| self.0.swap_remove(place).1.values))
    }

    /// Refuses arrays that the network has no place for.
    fn check_empty(&self, shape: &Shape) -> PyResult<()> {
        match self.0.iter().find(|(name, _)| name != FACTOR_ROWS) {
            None => Ok(()),
            Some((name, _)) => Err(error::request(format!("a network of shape {shape} has no weights {name}"))),
        }
    }

    /// Adds the rows of virtual inputs to the rows of their features.
    fn merge(&mut self, factors: &Factors, net: &mut FloatNet) -> PyResult<()> {
        let row = net.shape.row_len();
        let virtual_rows = self.take(FACTOR_ROWS, &[factors.size as usize, row])?;
        for (feature, sum) in (0..net.shape.features).zip(net.ft_weights.chunks_exact_mut(row)) {
            for input in factors.inputs(feature) {
                let from = &virtual_rows[*input as usize * row..][..row];
                sum.iter_mut().zip(from).for_each(|(sum, weight)| *sum += weight);
            }
        }
        Ok(())
    }
}

fn wrong_sizes(name: &str, found: &[usize], expected: &str) -> PyErr {
    error::request(format!("weights[\"{name}\"] has the shape {found:?}, not {expected}"))
}

/// The options of a shape that its arrays do not show.
fn design_options(given: Option<&Bound<'_, PyDict>>) -> PyResult<ShapeOptions> {
    let schema = schemars::schema_for!(ShapeOptions).to_value();
    let mut document = Map::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let is_option = schema["properties"].get(&name).is_some() && !["psqt", "buckets"].contains(&name.as_str());
        if !is_option {
            return Err(PyTypeError::new_err(format!("save_network has no option {name}")));
        }
        let wrong = |why: String| error::request(format!("{name} cannot be {value}{why}"));
        let found: Value = if let Ok(text) = value.extract::<String>() {
            text.into()
        } else if let Ok(yes) = value.cast::<PyBool>() {
            yes.is_true().into()
        } else {
            value.extract::<u64>().map(Value::from).map_err(|_| wrong(String::new()))?
        };
        // One at a time, so that the error names the option.
        from_value::<ShapeOptions>(&json!({ &name: &found }), "")
            .map_err(|error| wrong(format!(": {}", error.message)))?;
        document.insert(name, found);
    }
    from_value(&document.into(), "").map_err(error::request)
}

/// Multiplies the network's output.
fn scale_output(net: &mut FloatNet, factor: f64) -> PyResult<()> {
    if !(factor.is_finite() && factor > 0.0) {
        return Err(error::request("score_per_output is the score of output 1.0, a number above 0"));
    }
    if net.shape.skip_difference && factor != 1.0 {
        return Err(error::request(
            "skip_difference needs the scheme's own score_per_output: the outputs that it adds are activated, too",
        ));
    }
    let factor = factor as f32;
    let l1 = net.shape.l1;
    let scale = |values: &mut [f32]| values.iter_mut().for_each(|value| *value *= factor);
    net.ft_weights.chunks_exact_mut(net.shape.row_len()).for_each(|row| scale(&mut row[l1..]));
    let skip = net.shape.skip.then(|| net.shape.hidden.first().copied()).flatten();
    for layers in &mut net.stacks {
        if let (Some(skip), Some(first)) = (skip, layers.first_mut()) {
            scale(&mut first.weights[skip * first.inputs..]);
            scale(&mut first.biases[skip..]);
        }
        if let Some(output) = layers.last_mut() {
            scale(&mut output.weights);
            scale(&mut output.biases);
        }
    }
    Ok(())
}

fn positions_of(positions: &Bound<'_, PyAny>) -> PyResult<Vec<Chess>> {
    let fens = fens_of(positions)?;
    if fens.is_empty() {
        return Err(error::request("positions is empty; leave it out for positions of the sample games"));
    }
    fens.iter().enumerate().map(|(number, fen)| position(fen, number)).collect()
}

/// About [`SAMPLE_POSITIONS`] positions of the sample games.
fn sample_positions() -> PyResult<Vec<Chess>> {
    let file = open_or_build(&sample_games()?, Method::Eval, None).map_err(ServiceError::from)?;
    let records = file.records();
    let every = (records.len() / SAMPLE_POSITIONS).max(1);
    let some = (0..).zip(records).step_by(every);
    some.map(|(index, record)| record.position().map_err(|source| ServiceError::Record { index, source }.into()))
        .collect()
}

struct Saved {
    differences: Differences,
    shape: String,
    scheme: String,
}

fn save(
    path: &Path,
    force: bool,
    set: &FeatureSet,
    net: &FloatNet,
    scheme: &Scheme,
    positions: Option<Vec<Chess>>,
) -> PyResult<Saved> {
    let integers = quantise(net, scheme)?;
    let model = Model::new(&integers);
    let mut evaluator = Evaluator::new(set, &model, Strategy::Refresh, BackEnd::best())?;
    let pair = NetworkPair::new(set, net, &integers, EvalLoss::default().output_scale as f32);
    let mut differences = Differences::new(Differences::TOLERANCE);
    for position in positions.map_or_else(sample_positions, Ok)? {
        evaluator.set(position.board());
        pair.compare(&mut evaluator, position.board(), position.turn(), &mut differences);
    }
    let folder = RunDir::create(path, force).map_err(|problem| match problem {
        TrainError::Occupied { folder, first } => error::request(format!(
            "{} holds a network or a run already ({first}); give another path, or force=True to replace it",
            folder.display()
        )),
        TrainError::Foreign { folder, first } => error::request(format!(
            "{} holds files that are no network's ({first}); give another path",
            folder.display()
        )),
        other => other.into(),
    })?;
    let origin = Origin::of(set);
    let training = json!({ "scheme": scheme });
    save_float(&folder.path(run_dir::BEST), &Checkpoint { origin: origin.clone(), training }, net, &[])?;
    let saved = Saved { differences, shape: net.shape.to_string(), scheme: scheme.name.clone() };
    NetFile { origin, net: integers }.save(&folder.path(run_dir::NETWORK))?;
    Ok(saved)
}
