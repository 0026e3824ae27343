//! A run's whole state in one file: weights, Adam's moments and how far the run has come.

use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use super::init::zeros;
use super::model::{Model, Sums};
use super::{TrainConfig, TrainError};
use crate::features::FeatureSet;
use crate::net::{self, FloatNet, Origin};
use crate::service::Description;

/// How far a run has come. Holds no times, so that a continued run ends with the bytes of an uninterrupted one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub config: TrainConfig,
    /// Whole epochs, validated.
    pub epochs: u32,
    pub step: u64,
    /// Of the epoch begun.
    pub epoch: Sums,
    /// Since the run began.
    pub samples: u64,
    pub samples_per_epoch: u64,
    pub steps_per_epoch: u64,
    /// Known after the first validation.
    pub validation: Option<Validation>,
}

impl Progress {
    /// That of a new run, over the data a service describes.
    #[must_use]
    pub fn new(config: &TrainConfig, data: &Description) -> Progress {
        Progress {
            config: config.clone(),
            epochs: 0,
            step: 0,
            epoch: Sums::default(),
            samples: 0,
            samples_per_epoch: data.samples_per_epoch,
            steps_per_epoch: data.batches_per_epoch,
            validation: None,
        }
    }

    /// Whether the data still give as many samples as when the run began.
    ///
    /// # Errors
    /// The difference, as text.
    pub fn same_data(&self, now: &Progress) -> Result<(), String> {
        if (self.samples_per_epoch, self.steps_per_epoch) == (now.samples_per_epoch, now.steps_per_epoch) {
            return Ok(());
        }
        let (before, now) = (self.samples_per_epoch, now.samples_per_epoch);
        Err(format!("its epochs have {before} samples and the data now give {now}: the data have changed"))
    }
}

/// What stays the same from epoch to epoch, and the best so far.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    pub samples: u64,
    pub baseline: f64,
    pub best: f64,
}

/// Writes the state, atomically.
///
/// # Errors
/// When the file cannot be written.
pub fn save(path: &Path, origin: &Origin, model: &Model, progress: &Progress) -> Result<(), TrainError> {
    let moments = [("adam.m", &model.first), ("adam.v", &model.second)];
    let extra: Vec<_> = moments.into_iter().flat_map(|(prefix, moments)| tensors(prefix, moments)).collect();
    let training = serde_json::to_value(progress)
        .map_err(|error| TrainError::Damaged { path: path.into(), why: error.to_string() })?;
    Ok(net::save_float(path, &net::Checkpoint { origin: origin.clone(), training }, &model.net, &extra)?)
}

/// Writes the weights alone, for whoever wants a float network.
///
/// # Errors
/// When the file cannot be written.
pub fn save_weights(path: &Path, origin: &Origin, net: &FloatNet, progress: &Progress) -> Result<(), TrainError> {
    let training = serde_json::json!({ "epochs": progress.epochs, "step": progress.step });
    Ok(net::save_float(path, &net::Checkpoint { origin: origin.clone(), training }, net, &[])?)
}

/// What a checkpoint holds.
pub struct State {
    pub net: FloatNet,
    pub first: FloatNet,
    pub second: FloatNet,
    pub progress: Progress,
}

/// Reads a checkpoint of a run of `config` over `set`.
///
/// # Errors
/// When the file is damaged, or of another feature set or configuration.
pub fn load(path: &Path, set: &FeatureSet, config: &TrainConfig) -> Result<State, TrainError> {
    let damaged = |why: String| TrainError::Damaged { path: path.into(), why };
    let mismatch = |why: String| TrainError::Mismatch { checkpoint: path.into(), why };
    let (net, checkpoint) = net::load_float(path)?;
    let origin = &checkpoint.origin;
    if origin.identity != *set.identity() {
        return Err(mismatch(format!(
            "it is a run of feature set `{}` (identity {}), and `{}` (identity {}) was asked for",
            origin.name,
            origin.identity,
            set.name(),
            set.identity()
        )));
    }
    let progress: Progress =
        serde_json::from_value(checkpoint.training).map_err(|error| damaged(format!("its state: {error}")))?;
    same_run(&progress.config, config).map_err(mismatch)?;
    if progress.epochs > config.epochs {
        return Err(mismatch(format!("it has {} epochs behind it, {} were asked for", progress.epochs, config.epochs)));
    }
    let bytes = std::fs::read(path).map_err(TrainError::io("cannot read", path))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let moments = |prefix| read_moments(&file, prefix, &net).map_err(damaged);
    Ok(State { first: moments("adam.m")?, second: moments("adam.v")?, net, progress })
}

/// Whether a run of `asked` may go on where one of `stored` stopped: everything that shapes the result is equal, except
/// for the number of epochs. How the set is spelt and the number of threads shape nothing.
///
/// # Errors
/// The differences, as text.
pub fn same_run(stored: &TrainConfig, asked: &TrainConfig) -> Result<(), String> {
    let neutral = |config: &TrainConfig| {
        let config = TrainConfig { set: String::new(), threads: 0, epochs: 0, ..config.clone() };
        serde_json::to_value(config).unwrap_or_default()
    };
    let (stored, asked) = (neutral(stored), neutral(asked));
    let differences = stored.as_object().into_iter().flatten().filter_map(|(key, old)| {
        let new = asked.get(key)?;
        (old != new).then(|| format!("{key} is {old} there and {new} was asked for"))
    });
    let differences: Vec<String> = differences.collect();
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}

/// A network's tensors under the names of the file format, after `prefix` and a dot.
fn tensors<'a>(prefix: &str, net: &'a FloatNet) -> Vec<(String, Vec<usize>, &'a [f32])> {
    let l1 = net.shape.l1;
    let mut all = vec![
        (format!("{prefix}.ft.weight"), vec![net.shape.features as usize, l1], &net.ft_weights[..]),
        (format!("{prefix}.ft.bias"), vec![l1], &net.ft_biases[..]),
    ];
    for (index, layer) in net.layers.iter().enumerate() {
        let shape = vec![layer.outputs, layer.inputs];
        all.push((format!("{prefix}.layers.{index}.weight"), shape, &layer.weights[..]));
        all.push((format!("{prefix}.layers.{index}.bias"), vec![layer.outputs], &layer.biases[..]));
    }
    all
}

fn read_moments(file: &SafeTensors<'_>, prefix: &str, like: &FloatNet) -> Result<FloatNet, String> {
    let mut moments = zeros(like);
    let FloatNet { ft_weights, ft_biases, layers, .. } = &mut moments;
    let layers = layers.iter_mut().flat_map(|layer| [&mut layer.weights, &mut layer.biases]);
    let places = [ft_weights, ft_biases].into_iter().chain(layers);
    for (place, (name, shape, _)) in places.zip(tensors(prefix, like)) {
        let tensor = file.tensor(&name).map_err(|_| format!("tensor `{name}` is missing"))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
            return Err(format!("tensor `{name}` is {:?} {:?}, not F32 {shape:?}", tensor.dtype(), tensor.shape()));
        }
        let (numbers, _) = tensor.data().as_chunks::<4>();
        place.iter_mut().zip(numbers).for_each(|(value, bytes)| *value = f32::from_le_bytes(*bytes));
    }
    Ok(moments)
}
