//! Checkpoints: a run's complete state in one file, that is weights, Adam's moments and the run's progress.

use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use super::config_checks::{as_json, differences};
use super::factor::FactoredRows;
use super::lookahead::Lookahead;
use super::trainer::{Sums, TrainingState};
use super::weight_average::{AveragedNetwork, WeightAverage};
use super::{DeviceChoice, Optimiser, TrainConfig, TrainError, TrainSettings};
use crate::data::{DataFiles, Method, ScoreUnit};
use crate::features::{Factors, FeatureSet};
use crate::json;
use crate::net::{self, FloatNet, Origin};
use crate::service::{Description, ReadOptions};

/// A run's progress. It holds no times, so that a resumed run ends with the same bytes as an uninterrupted one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunProgress {
    pub config: TrainConfig,
    /// Complete epochs, validated.
    pub epochs: u32,
    pub step: u64,
    /// Sums over the current epoch.
    pub epoch: Sums,
    /// Samples since the run began.
    pub samples: u64,
    pub samples_per_epoch: u64,
    pub steps_per_epoch: u64,
    /// Set by the first validation.
    pub validation: Option<ValidationState>,
    /// Progress of the second method, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondProgress>,
    /// Hash of the factors that are trained; a feature set's identity does not include them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<String>,
    /// Units of the data's scores, of the first method and the second.
    pub score_units: Vec<ScoreUnit>,
    /// Networks in the average of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaging: Option<u64>,
    /// Set at the end of a run that averages weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaged: Option<AveragedNetwork>,
}

/// Progress of the second method, which takes as many steps as the first.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondProgress {
    /// Sums over the current epoch.
    pub epoch: Sums,
    pub samples_per_epoch: u64,
}

impl RunProgress {
    /// The progress of a new run over the data that the services describe.
    #[must_use]
    pub fn new(
        config: &TrainConfig,
        factors: Option<String>,
        data: &Description,
        second: Option<&Description>,
    ) -> RunProgress {
        let samples_per_epoch = config.samples_per_epoch(data);
        RunProgress {
            config: config.clone(),
            epochs: 0,
            step: 0,
            epoch: Sums::default(),
            samples: 0,
            samples_per_epoch,
            steps_per_epoch: samples_per_epoch.div_ceil(config.settings.batch_size.max(1) as u64),
            validation: None,
            averaging: None,
            averaged: None,
            factors,
            score_units: std::iter::once(data).chain(second).map(|data| data.score_unit).collect(),
            second: second
                .map(|data| SecondProgress { samples_per_epoch: data.samples_per_epoch, ..SecondProgress::default() }),
        }
    }

    /// Checks that the data give as many samples, in the same unit, as when the run began.
    ///
    /// # Errors
    /// The difference, as text.
    pub fn check_same_data(&self, now: &RunProgress) -> Result<(), String> {
        if self.score_units != now.score_units {
            let describe =
                |units: &[ScoreUnit]| units.iter().map(|unit| unit.describe()).collect::<Vec<_>>().join(" and ");
            let before = describe(&self.score_units);
            let now = describe(&now.score_units);
            return Err(format!("its scores were {before}, the scores of the data now are {now}"));
        }
        let samples = |progress: &RunProgress| {
            (progress.samples_per_epoch, progress.second.map_or(0, |second| second.samples_per_epoch))
        };
        let (before, now) = match (samples(self), samples(now)) {
            ((before, second_before), (now, second_now)) if before != now || second_before == second_now => {
                (before, now)
            }
            ((_, second_before), (_, second_now)) => (second_before, second_now),
        };
        if before == now {
            return Ok(());
        }
        Err(format!("its epochs have {before} samples and the data now give {now}: the data have changed"))
    }
}

/// The validation split's size and baseline loss, which stay the same, and the best loss so far.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationState {
    pub samples: u64,
    pub baseline: f64,
    pub best: f64,
}

/// Writes the state, atomically.
///
/// # Errors
/// When the file cannot be written.
pub fn save(
    path: &Path,
    origin: &Origin,
    state: &TrainingState,
    average: Option<&WeightAverage>,
    progress: &RunProgress,
) -> Result<(), TrainError> {
    let mut extra = Vec::new();
    extra.extend(tensors("adam.m", &state.first_moments));
    extra.extend(tensors("adam.v", &state.second_moments));
    let row = state.net.shape.row_len();
    if let Some(factored) = &state.factored {
        let rows = factor_tensors(factored).map(|(name, rows)| (name.into(), vec![rows.len() / row, row], &rows[..]));
        extra.extend(rows);
    }
    if let Some(lookahead) = &state.lookahead {
        extra.extend(tensors("slow", &lookahead.net));
        let rows = &lookahead.virtual_rows;
        extra.push((SLOW_FACTOR.into(), vec![rows.len() / row, row], rows));
    }
    extra.extend(average.into_iter().flat_map(|average| tensors(AVERAGE, &average.net)));
    let training =
        json::to_value(progress).map_err(|error| TrainError::Damaged { path: path.into(), why: error.to_string() })?;
    Ok(net::save_float(path, &net::Checkpoint { origin: origin.clone(), training }, &state.net, &extra)?)
}

/// Writes the weights alone, as a float network.
///
/// # Errors
/// When the file cannot be written.
pub fn save_weights(path: &Path, origin: &Origin, net: &FloatNet, progress: &RunProgress) -> Result<(), TrainError> {
    let RunProgress { epochs, step, config, .. } = progress;
    let training = serde_json::json!({ "epochs": epochs, "step": step, "scheme": config.settings.scheme });
    Ok(net::save_float(path, &net::Checkpoint { origin: origin.clone(), training }, net, &[])?)
}

/// The tensors of factors. `ft.weight` holds the merged rows, and these their summands.
fn factor_tensors(factored: &FactoredRows) -> [(&'static str, &Vec<f32>); 4] {
    let FactoredRows { own, virtual_rows, first_moments, second_moments, .. } = factored;
    [
        ("factor.own", own),
        ("factor.weight", virtual_rows),
        ("adam.m.factor.weight", first_moments),
        ("adam.v.factor.weight", second_moments),
    ]
}

/// Prefix of the tensors of the weights' average.
const AVERAGE: &str = "average";

/// Reads the average in the checkpoint of a run with this progress, of networks like `net`.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn load_average(path: &Path, net: &FloatNet, progress: &RunProgress) -> Result<Option<WeightAverage>, TrainError> {
    let Some(networks) = progress.averaging else { return Ok(None) };
    let damaged = |why: String| TrainError::Damaged { path: path.into(), why };
    let bytes = std::fs::read(path).map_err(TrainError::io("cannot read", path))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let net = read_moments(&file, AVERAGE, net).map_err(damaged)?;
    Ok(Some(WeightAverage { net, networks }))
}

/// Lookahead's slow weights of virtual inputs.
const SLOW_FACTOR: &str = "slow.factor.weight";

/// Reads a checkpoint of a run of `config` over `set`.
///
/// # Errors
/// If the file is damaged, or of another feature set or configuration.
pub fn load(
    path: &Path,
    set: &FeatureSet,
    factors: Option<&Factors>,
    config: &TrainConfig,
    data: DataMatch,
) -> Result<(TrainingState, RunProgress), TrainError> {
    let damaged = |why: String| TrainError::Damaged { path: path.into(), why };
    let mismatch = |why: String| TrainError::Mismatch { checkpoint: path.into(), why };
    let (net, checkpoint) = net::load_float(path).map_err(|error| damaged(error.to_string()))?;
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
    let rule = &config.settings.shape_options.bucket_rule;
    if rule.expression().is_some() && !origin.feature_set().is_ok_and(|stored| rule.is_same_for(&stored, set)) {
        let why = "the bucket tables that `bucket_rule` reads differ from those of the definition now; restore them, or \
                   begin a new run";
        return Err(mismatch(why.into()));
    }
    let progress: RunProgress =
        json::from_value(&checkpoint.training, "").map_err(|error| damaged(format!("its state: {error}")))?;
    check_same_run(&progress.config, config, data).map_err(mismatch)?;
    if progress.factors != factors.map(Factors::hash) {
        let why =
            "the factors of its feature set differ from those of the definition now; restore them, or begin a new run";
        return Err(mismatch(why.into()));
    }
    if progress.step > u64::from(config.settings.epochs) * progress.steps_per_epoch {
        let epochs = progress.epochs;
        let step = progress.step;
        let asked = config.settings.epochs;
        return Err(mismatch(format!(
            "it has done {epochs} epochs and {step} steps, and {asked} epochs were asked for"
        )));
    }
    let bytes = std::fs::read(path).map_err(TrainError::io("cannot read", path))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let moments = |prefix| read_moments(&file, prefix, &net).map_err(damaged);
    let factored = factors.map(|factors| read_factors(&file, factors, &net).map_err(damaged)).transpose()?;
    let lookahead = match config.settings.optimisation.optimiser {
        Optimiser::Ranger => {
            let mut virtual_rows =
                factored.as_ref().map_or_else(Vec::new, |factored| vec![0.0; factored.virtual_rows.len()]);
            let row = net.shape.row_len();
            let shape = [virtual_rows.len() / row, row];
            read_into(&mut virtual_rows, &file, SLOW_FACTOR, &shape).map_err(damaged)?;
            Some(Lookahead { net: moments("slow")?, virtual_rows })
        }
        Optimiser::Adam | Optimiser::Adamw => None,
    };
    let first_moments = moments("adam.m")?;
    let second_moments = moments("adam.v")?;
    let step = progress.step;
    Ok((TrainingState { net, factored, first_moments, second_moments, lookahead, step }, progress))
}

/// Whether a run's data, or its network to start from, have the contents they had when it began.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DataMatch {
    Same,
    Changed,
    /// There is nothing to compare: a new run, or a network to start from that is gone. The paths decide.
    Unknown,
}

/// Checks that a run of `asked` may continue one of `stored`: everything that affects the result is equal, except for
/// the number of epochs. The spelling of the set, the paths of the data and of the network to start from, and the
/// number of threads do not affect it. Another device of the same trainer is accepted, although it rounds differently;
/// so is another trainer where either run leaves it to `auto`.
///
/// # Errors
/// The differences, as text.
pub fn check_same_run(stored: &TrainConfig, asked: &TrainConfig, data: DataMatch) -> Result<(), String> {
    let start = match (&stored.start_hash, &asked.start_hash) {
        (Some(stored), Some(asked)) if stored == asked => DataMatch::Same,
        (Some(_), Some(_)) => DataMatch::Changed,
        _ => DataMatch::Unknown,
    };
    let has_auto = stored.settings.trainer.is_none() || asked.settings.trainer.is_none();
    let neutral = |config: &TrainConfig| {
        // Where steps depend on the number of epochs, it must stay.
        let TrainSettings { epochs, optimisation, eval_loss, .. } = &config.settings;
        let fixed_end = optimisation.schedule.depends_on_length()
            || optimisation.average_from.is_some()
            || eval_loss.lambda_end.is_some();
        let epochs = if fixed_end { *epochs } else { 0 };
        let mut config = TrainConfig { set: String::new(), ..config.effective() };
        config.settings = TrainSettings { epochs, threads: None, device: DeviceChoice::default(), ..config.settings };
        if has_auto {
            config.settings.trainer = None;
        }
        config.reading = reading_in_effect(config.reading, config.method, &config.data);
        if let Some(second) = &mut config.second {
            second.reading = reading_in_effect(second.reading, second.method, &second.data);
        }
        config.start_hash = None;
        if start != DataMatch::Unknown {
            config.start = None;
        }
        if data == DataMatch::Same {
            config.data = DataFiles::default();
            config.second.iter_mut().for_each(|second| second.data = DataFiles::default());
        }
        as_json(&config)
    };
    let stored = neutral(stored);
    let asked = neutral(asked);
    let differences = differences(&stored, &asked).into_iter();
    let describe = |(key, old, new)| format!("{key} is {old} there and {new} was asked for");
    let mut differences: Vec<String> = differences.map(describe).collect();
    if data == DataMatch::Changed {
        differences.push("the contents of its data have changed since it began".into());
    }
    if start == DataMatch::Changed {
        differences.push("the network of --start is not the one that it began with".into());
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}

/// Of data that cannot be decoded in training, both modes are the same; pqr reads no scores.
fn reading_in_effect(reading: ReadOptions, method: Method, data: &DataFiles) -> ReadOptions {
    let mode = reading.mode.in_effect(data).unwrap_or(reading.mode);
    let from_unit = reading.from_unit.filter(|_| method == Method::Eval);
    ReadOptions { mode, from_unit, ..reading }
}

/// A network's tensors under the names of the file format, prefixed by `prefix` and a dot.
fn tensors<'a>(prefix: &str, net: &'a FloatNet) -> Vec<(String, Vec<usize>, &'a [f32])> {
    let all = net.shape.tensors().into_iter().zip(net.tensors());
    all.map(|((name, dimensions), values)| (format!("{prefix}.{name}"), dimensions, values)).collect()
}

fn read_moments(file: &SafeTensors<'_>, prefix: &str, like: &FloatNet) -> Result<FloatNet, String> {
    FloatNet::filled(&like.shape, |name, dimensions| {
        let mut values = vec![0.0; dimensions.iter().product()];
        read_into(&mut values, file, &format!("{prefix}.{name}"), dimensions)?;
        Ok(values)
    })
}

fn read_factors(file: &SafeTensors<'_>, factors: &Factors, net: &FloatNet) -> Result<FactoredRows, String> {
    let row = net.shape.row_len();
    let mut factored = FactoredRows::new(factors.clone(), &net.ft_weights, row);
    let names = factor_tensors(&factored).map(|(name, _)| name);
    let FactoredRows { own, virtual_rows, first_moments, second_moments, .. } = &mut factored;
    for (values, name) in [own, virtual_rows, first_moments, second_moments].into_iter().zip(names) {
        let shape = [values.len() / row, row];
        read_into(values, file, name, &shape)?;
    }
    Ok(factored)
}

/// Reads a tensor of the given shape into `values`.
fn read_into(values: &mut [f32], file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<(), String> {
    let tensor = file.tensor(name).map_err(|_| format!("tensor `{name}` is missing"))?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
        return Err(format!("tensor `{name}` is {:?} {:?}, not F32 {shape:?}", tensor.dtype(), tensor.shape()));
    }
    let (numbers, _) = tensor.data().as_chunks::<4>();
    values.iter_mut().zip(numbers).for_each(|(value, bytes)| *value = f32::from_le_bytes(*bytes));
    Ok(())
}
