//! A run's whole state in one file: weights, Adam's moments and how far the run has come.

use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use super::factor::Factored;
use super::lookahead::Lookahead;
use super::model::{Model, Sums};
use super::validate::{as_json, differences};
use super::{DeviceChoice, Optimiser, TrainConfig, TrainError, TrainSettings};
use crate::data::formats::{SaidBy, score_unit};
use crate::data::{Method, ScoreUnit};
use crate::features::{Factors, FeatureSet};
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
    /// Of the second method, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondProgress>,
    /// Hash of the factors that are trained, which no feature set's identity knows of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<String>,
    /// What the data's scores are measured in, the first method's and the second's; none of older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_units: Option<Vec<ScoreUnit>>,
}

/// How far the second method has come; it takes as many steps as the first.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondProgress {
    /// Of the epoch begun.
    pub epoch: Sums,
    pub samples_per_epoch: u64,
}

impl Progress {
    /// That of a new run, over the data that services describe.
    #[must_use]
    pub fn new(
        config: &TrainConfig,
        factors: Option<String>,
        data: &Description,
        second: Option<&Description>,
    ) -> Progress {
        Progress {
            config: config.clone(),
            epochs: 0,
            step: 0,
            epoch: Sums::default(),
            samples: 0,
            samples_per_epoch: data.samples_per_epoch,
            steps_per_epoch: data.batches_per_epoch,
            validation: None,
            factors,
            score_units: std::iter::once(data).chain(second).map(|data| data.score_unit).collect(),
            second: second
                .map(|data| SecondProgress { samples_per_epoch: data.samples_per_epoch, ..SecondProgress::default() }),
        }
    }

    /// Whether the data still give as many samples, in the same unit, as when the run began.
    ///
    /// # Errors
    /// The difference, as text.
    pub fn same_data(&self, now: &Progress) -> Result<(), String> {
        if let (Some(before), Some(now)) = (&self.score_units, &now.score_units)
            && before != now
        {
            let words =
                |units: &[ScoreUnit]| units.iter().map(|unit| unit.describe()).collect::<Vec<_>>().join(" and ");
            return Err(format!("its scores were {}, those of the data now are {}", words(before), words(now)));
        }
        let samples = |progress: &Progress| {
            (progress.samples_per_epoch, progress.second.map_or(0, |second| second.samples_per_epoch))
        };
        let (before, now) = match (samples(self), samples(now)) {
            ((before, second), (now, then)) if before != now || second == then => (before, now),
            ((_, before), (_, now)) => (before, now),
        };
        if before == now {
            return Ok(());
        }
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
    let mut extra: Vec<_> = moments.into_iter().flat_map(|(prefix, moments)| tensors(prefix, moments)).collect();
    let row = model.net.shape.row_len();
    if let Some(factored) = &model.factored {
        let rows = factor_tensors(factored).map(|(name, rows)| (name.into(), vec![rows.len() / row, row], &rows[..]));
        extra.extend(rows);
    }
    if let Some(slow) = &model.lookahead {
        extra.extend(tensors("slow", &slow.net));
        extra.push((SLOW_FACTOR.into(), vec![slow.factor_rows.len() / row, row], &slow.factor_rows));
    }
    let training = serde_json::to_value(progress)
        .map_err(|error| TrainError::Damaged { path: path.into(), why: error.to_string() })?;
    Ok(net::save_float(path, &net::Checkpoint { origin: origin.clone(), training }, &model.net, &extra)?)
}

/// Writes the weights alone, for whoever wants a float network.
///
/// # Errors
/// When the file cannot be written.
pub fn save_weights(path: &Path, origin: &Origin, net: &FloatNet, progress: &Progress) -> Result<(), TrainError> {
    let Progress { epochs, step, config, .. } = progress;
    let training = serde_json::json!({ "epochs": epochs, "step": step, "scheme": config.settings.scheme });
    Ok(net::save_float(path, &net::Checkpoint { origin: origin.clone(), training }, net, &[])?)
}

/// `ft.weight` are the merged rows; the parts they are the sums of stand beside them.
fn factor_tensors(factored: &Factored) -> [(&'static str, &Vec<f32>); 4] {
    let Factored { own, rows, first, second, .. } = factored;
    [("factor.own", own), ("factor.weight", rows), ("adam.m.factor.weight", first), ("adam.v.factor.weight", second)]
}

/// Lookahead's weights of virtual inputs.
const SLOW_FACTOR: &str = "slow.factor.weight";

/// What a checkpoint holds.
pub struct State {
    pub net: FloatNet,
    pub factored: Option<Factored>,
    pub lookahead: Option<Lookahead>,
    pub first: FloatNet,
    pub second: FloatNet,
    pub progress: Progress,
}

/// Reads a checkpoint of a run of `config` over `set`.
///
/// # Errors
/// When the file is damaged, or of another feature set or configuration.
pub fn load(
    path: &Path,
    set: &FeatureSet,
    factors: Option<&Factors>,
    config: &TrainConfig,
    data: Sources,
) -> Result<State, TrainError> {
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
    let progress: Progress =
        serde_json::from_value(checkpoint.training).map_err(|error| damaged(format!("its state: {error}")))?;
    same_run(&progress.config, config, data).map_err(mismatch)?;
    if progress.factors != factors.map(Factors::hash) {
        let why =
            "the factors of its feature set are others than those of the definition now; put them back, or begin anew";
        return Err(mismatch(why.into()));
    }
    if progress.step > u64::from(config.settings.epochs) * progress.steps_per_epoch {
        let (epochs, step, asked) = (progress.epochs, progress.step, config.settings.epochs);
        return Err(mismatch(format!(
            "it has {epochs} epochs and {step} steps behind it, {asked} epochs were asked for"
        )));
    }
    let bytes = std::fs::read(path).map_err(TrainError::io("cannot read", path))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let moments = |prefix| read_moments(&file, prefix, &net).map_err(damaged);
    let factored = factors.map(|factors| read_factors(&file, factors, &net).map_err(damaged)).transpose()?;
    let lookahead = match config.settings.optimisation.optimiser {
        Optimiser::Ranger => {
            let mut factor_rows = factored.as_ref().map_or_else(Vec::new, |factored| vec![0.0; factored.rows.len()]);
            let row = net.shape.row_len();
            let shape = [factor_rows.len() / row, row];
            read_into(&mut factor_rows, &file, SLOW_FACTOR, &shape).map_err(damaged)?;
            Some(Lookahead { net: moments("slow")?, factor_rows })
        }
        Optimiser::Adam | Optimiser::Adamw => None,
    };
    Ok(State { factored, lookahead, first: moments("adam.m")?, second: moments("adam.v")?, net, progress })
}

/// Whether a run's data are those it began with, told by what they hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    Same,
    Changed,
    /// The run began before this was recorded: the paths decide.
    Unknown,
}

/// Whether a run of `asked` may go on where one of `stored` stopped: everything that shapes the result is equal, except
/// for the number of epochs. How the set is spelt, where the data lie and the number of threads shape nothing; another
/// device rounds differently, which is let pass.
///
/// # Errors
/// The differences, as text.
pub fn same_run(stored: &TrainConfig, asked: &TrainConfig, data: Sources) -> Result<(), String> {
    let neutral = |config: &TrainConfig| {
        // Where the end shapes what comes before it, it cannot be moved.
        let TrainSettings { epochs, optimisation, eval_loss, .. } = &config.settings;
        let fixed_end = optimisation.schedule.depends_on_length() || eval_loss.lambda_end.is_some();
        let epochs = if fixed_end { *epochs } else { 0 };
        let mut config = TrainConfig { set: String::new(), ..config.effective() };
        config.settings = TrainSettings { epochs, threads: None, device: DeviceChoice::default(), ..config.settings };
        config.from_unit = unit_then(config.method, &config.data, config.from_unit);
        if let Some(second) = &mut config.second {
            second.from_unit = unit_then(second.method, &second.data, second.from_unit);
        }
        if data == Sources::Same {
            config.data = PathBuf::new();
            config.second.iter_mut().for_each(|second| second.data = PathBuf::new());
        }
        as_json(&config)
    };
    let (stored, asked) = (neutral(stored), neutral(asked));
    let differences = differences(&stored, &asked).into_iter();
    let told = |(key, old, new)| format!("{key} is {old} there and {new} was asked for");
    let mut differences: Vec<String> = differences.map(told).collect();
    if data == Sources::Changed {
        differences.push("its data hold something else now than when it began".into());
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}

/// What a run's scores were measured in, where the data do not say it: centipawns before there was a choice.
fn unit_then(method: Method, data: &Path, recorded: Option<ScoreUnit>) -> Option<ScoreUnit> {
    let silent = || score_unit(data, None, None).is_ok_and(|known| known.said_by == SaidBy::Nobody);
    match method {
        Method::Eval => recorded.or_else(|| silent().then_some(ScoreUnit::Centipawns)),
        Method::Pqr => None,
    }
}

/// A network's tensors under the names of the file format, after `prefix` and a dot.
fn tensors<'a>(prefix: &str, net: &'a FloatNet) -> Vec<(String, Vec<usize>, &'a [f32])> {
    let all = net.shape.tensors().into_iter().zip(net.tensors());
    all.map(|((name, dimensions), values)| (format!("{prefix}.{name}"), dimensions, values)).collect()
}

fn read_moments(file: &SafeTensors<'_>, prefix: &str, like: &FloatNet) -> Result<FloatNet, String> {
    FloatNet::filled(&like.shape, |name, dimensions| {
        let mut numbers = vec![0.0; dimensions.iter().product()];
        read_into(&mut numbers, file, &format!("{prefix}.{name}"), dimensions)?;
        Ok(numbers)
    })
}

fn read_factors(file: &SafeTensors<'_>, factors: &Factors, net: &FloatNet) -> Result<Factored, String> {
    let row = net.shape.row_len();
    let mut factored = Factored::new(factors.clone(), &net.ft_weights, row);
    let names = factor_tensors(&factored).map(|(name, _)| name);
    let Factored { own, rows, first, second, .. } = &mut factored;
    for (place, name) in [own, rows, first, second].into_iter().zip(names) {
        let shape = [place.len() / row, row];
        read_into(place, file, name, &shape)?;
    }
    Ok(factored)
}

/// Reads a tensor into numbers of its size.
fn read_into(place: &mut [f32], file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<(), String> {
    let tensor = file.tensor(name).map_err(|_| format!("tensor `{name}` is missing"))?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
        return Err(format!("tensor `{name}` is {:?} {:?}, not F32 {shape:?}", tensor.dtype(), tensor.shape()));
    }
    let (numbers, _) = tensor.data().as_chunks::<4>();
    place.iter_mut().zip(numbers).for_each(|(value, bytes)| *value = f32::from_le_bytes(*bytes));
    Ok(())
}
