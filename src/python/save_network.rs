//! `fsbench.save_network`: a network trained elsewhere, from float arrays to a folder with its weights and its integers.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, json};
use shakmaty::Position;

use super::error;
use super::feature_set::{PyFeatureSet, fens_of, position};
use super::interruptible::interruptible;
use super::request::{as_json, check_option};
use super::weights::{Arrays, FACTOR_ROWS};
use crate::chess::Chess;
use crate::data::{Method, ScoreUnit};
use crate::engine::{BackEnd, Differences, Evaluator, Model, NetworkPair, Strategy};
use crate::features::{Factors, FeatureSet};
use crate::json::from_value;
use crate::net::{Checkpoint, FloatNet, NetFile, Origin, Scheme, quantise, save_float};
use crate::pipeline::{open_or_build, sample_games};
use crate::service::ServiceError;
use crate::train::run_dir::{self, RunDir};
use crate::train::{EvalLoss, ShapeOptions, TrainError};

/// Positions of the sample games in which the quantisation error is measured.
const SAMPLE_POSITIONS: usize = 4096;

/// Writes a network that was trained elsewhere into the folder `path`: its float weights (`best.safetensors`) and its
/// integers (`network.safetensors`), as `fsbench train` leaves them. `fsbench.Network`, `fsbench match` and all others
/// take the folder. Returns the quantisation error, a `fsbench.QuantisationError`.
///
///     error = fsbench.save_network("mine", "half-ka-v2-hm", {
///         "ft.weight": rows,                 # [features, l1]: a row per feature
///         "ft.bias": bias,                   # [l1]
///         "layers.0.weight": hidden,         # [outputs, 2 * l1]: the side to move's half first
///         "layers.0.bias": hidden_bias,      # [outputs]
///         "layers.1.weight": output,         # [1, inputs]
///         "layers.1.bias": output_bias,      # [1]
///     })
///
/// weights: arrays of real numbers, or tensors of PyTorch, by name; their sizes give the widths. Layers are numbered from
///     the first hidden layer to the output. With output buckets they are `stacks.B.layers.N`, with B from 0;
///     `psqt.weight` has a value per feature and bucket, which also may be further columns of `ft.weight`.
///     `factor.weight` has the rows of `FeatureSet.factors()`, with the columns of `ft.weight`: they are added to the
///     features' rows.
/// scheme: "stockfish", "stockfish-18", "stockfish-19" or "simple"; by default the first that supports the shape.
///     `fsbench.schemes()` says which weights they hold; a training clips to them.
/// score_unit: the unit of the scores that the network gives: "cp", or "internal:PAWN" with its units per pawn.
/// score_per_output: the score of output 1.0, in that unit; the scheme's own by default (600, of "simple" 400).
/// positions: those in which the quantisation error is measured, as FENs or `chess.Board` objects; by default about 4,000
///     of the sample games.
/// force: replaces a network, or a run, that is in the folder.
/// activation: after the accumulators: "relu", "crelu", "screlu" or "pairwise".
/// hidden_activation: after the first hidden layer: "relu", "crelu", "screlu" or "dual".
/// skip, skip_difference, concatenated, narrow, bucket_rule: as the options of `fsbench train` of these names.
///
/// Raises RequestError for arrays that make no network, and Error for weights that the scheme cannot hold. Warns where
/// accumulators overflow.
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
    let overflows = differences.accumulator_overflows();
    if overflows > 0 {
        let text = CString::new(format!(
            "an accumulator leaves sixteen bits in {overflows} of {} positions, where engines will err: the weights of \
             the feature transformer are too large",
            differences.positions()
        ))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("shape", shape)?;
    dict.set_item("scheme", scheme)?;
    dict.set_item("positions", differences.positions())?;
    dict.set_item("mean", differences.mean())?;
    dict.set_item("p99", f64::from(differences.p99()))?;
    dict.set_item("max", f64::from(differences.max()))?;
    dict.set_item("within_tolerance", differences.within_tolerance())?;
    dict.set_item("tolerance", differences.tolerance())?;
    dict.set_item("accumulator_overflows", overflows)?;
    Ok(dict)
}

/// The quantisation schemes, each a `fsbench.Scheme`, a dict: the largest absolute weights that it holds.
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
        let found = as_json(&name, &value)?;
        // One at a time, so that the error names the option.
        check_option::<ShapeOptions>(&name, &value, &found)?;
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
