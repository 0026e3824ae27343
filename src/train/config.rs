//! The configuration of a training run. Each setting is written once, with its default and its help: the same structs
//! are the options of `fsbench train` (clap), the keys of an experiment's `[train]` (TOML) and what a run records
//! (JSON).

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EvalLoss, Optimisation, PqrLoss, ShapeOptions, TrainError};
use crate::data::formats::{FileUnit, UnitOrigin, score_unit};
use crate::data::{DataError, DataFiles, EvalOptions, Method, ScoreUnit};
use crate::net::Scheme;
use crate::pipeline::build::Filter;
use crate::service::{ReadMode, Request};
use crate::units::Seed;

/// One training run: the same configuration, data and CPU give the same network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
pub struct TrainConfig {
    /// A name, a path or an expression.
    #[arg(skip)]
    pub set: String,
    #[arg(skip)]
    pub data: DataFiles,
    /// eval: unit of the scores if the data do not record it: cp, or internal:PAWN with an engine's units per pawn
    /// [default: internal:208 for a binpack, else cp]
    // A run records the unit that it assumed. It is absent if the data recorded theirs.
    #[arg(long, value_name = "UNIT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_unit: Option<ScoreUnit>,
    #[command(flatten)]
    #[serde(default, skip_serializing_if = "EvalOptions::is_default")]
    pub evals: EvalOptions,
    /// auto: a binpack is decoded in training; built: it is built first, which gives the same samples and can filter them
    #[arg(long = "read", value_name = "HOW", value_enum, default_value_t)]
    #[serde(rename = "source")]
    pub read_mode: ReadMode,
    /// The method to learn by
    #[arg(long, value_enum, default_value = "eval")]
    pub method: Method,
    /// Leave out positions before this ply, when the data are built [default: 0]
    #[arg(long, value_name = "PLY")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ply: Option<u16>,
    /// Which positions to leave out, when the data are built [default: none]
    #[arg(long, value_enum, value_name = "FILTER")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    #[arg(skip)]
    pub seed: Seed,
    /// The network's internal score units per pawn (Stockfish 12 to 15: 208, 15.1: 361, 16: 328, 16.1: 356)
    #[arg(long, value_name = "UNITS", default_value_t = default_pawn(), value_parser = clap::value_parser!(i32).range(1..))]
    #[serde(default = "default_pawn", skip_serializing_if = "is_default_pawn")]
    pub pawn: i32,
    /// A second method, learned in the same steps.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondMethod>,
    /// A network of this set or a coarser one, and of this shape, to start from: a checkpoint or a quantised network.
    /// Absent: random weights.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
    /// Hash of the contents of `start`, set when the run begins.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_hash: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub settings: TrainSettings,
}

/// The settings that do not depend on the feature set, data, method and seed: the `[train]` table of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainSettings {
    /// Accumulator width per perspective
    #[arg(long, default_value_t = TrainSettings::default().l1)]
    pub l1: usize,
    /// Hidden layers' widths, one or two separated by a comma, or `none`
    #[arg(long, default_value = "32", value_parser = parse_widths)]
    pub hidden: LayerWidths,
    #[command(flatten)]
    #[serde(rename = "design", default)]
    pub shape_options: ShapeOptions,
    /// Quantisation scheme: stockfish, stockfish-18, stockfish-19: weights in i8, with the scales of those networks;
    /// simple: no hidden layers, weights in i16 [default: stockfish, or that of --arch]
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Do not train the factors of the set's definition
    #[arg(long = "no-factor", action = clap::ArgAction::SetFalse)]
    #[schemars(description = "Whether the factors of the set's definition are trained")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<bool>,
    /// Leave out the rows of features that no legal position activates: no score changes, the network is smaller
    #[arg(long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact_dead: bool,
    /// Passes over the training split
    #[arg(long, value_name = "N", default_value_t = TrainSettings::default().epochs)]
    pub epochs: u32,
    /// Samples per epoch [default: all of the training split]
    #[arg(long)]
    pub epoch_samples: Option<u64>,
    /// Samples per step (a pqr sample holds three positions)
    #[arg(long, value_name = "N", default_value_t = TrainSettings::default().batch_size)]
    pub batch_size: usize,
    /// Learning rate of the first epoch
    #[arg(long, value_name = "RATE", default_value_t = TrainSettings::default().learning_rate)]
    pub learning_rate: f64,
    /// Factor on the learning rate after every epoch
    #[arg(long, default_value_t = TrainSettings::default().decay)]
    pub decay: f64,
    #[command(flatten)]
    #[serde(rename = "recipe", default)]
    pub optimisation: Optimisation,
    /// Share of games kept for validation
    #[arg(long, default_value_t = TrainSettings::default().validation)]
    pub validation: f64,
    /// Seed of the choice of validation games
    #[arg(long, value_name = "S", default_value = "0", value_parser = |text: &str| text.parse().map(Seed))]
    #[serde(default, skip_serializing_if = "is_zero_seed")]
    pub split_seed: Seed,
    /// Threads of the trainer; the samples service has as many of its own [default: all cores]
    #[arg(long, value_name = "T", value_parser = Request::parse_threads)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Where to train; auto: on a GPU where there is one
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub device: DeviceChoice,
    #[command(flatten)]
    #[serde(default)]
    pub eval_loss: EvalLoss,
    #[command(flatten)]
    #[serde(default)]
    pub pqr_loss: PqrLoss,
}

/// Widths of hidden layers, first to last. (An alias, because clap reads a field of type `Vec` as several values.)
pub type LayerWidths = Vec<usize>;

fn parse_widths(text: &str) -> Result<LayerWidths, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let width = |width: &str| width.trim().parse().map_err(|_| format!("`{width}` is not a width"));
    text.split(',').map(width).collect()
}

/// Where to train.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// On a GPU where there is one.
    #[default]
    Auto,
    Cpu,
    Cuda,
}

/// A method beside the first: each step takes a batch of either and minimises first + weight · second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondMethod {
    pub method: Method,
    pub data: DataFiles,
    /// Unit of the scores if the data do not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_unit: Option<ScoreUnit>,
    #[serde(rename = "source")]
    pub read_mode: ReadMode,
    pub weight: f64,
}

/// One of a run's methods, with its data.
#[derive(Copy, Clone, Debug)]
pub struct MethodTask<'a> {
    pub method: Method,
    pub data: &'a DataFiles,
    pub from_unit: Option<ScoreUnit>,
    pub read_mode: ReadMode,
    pub weight: f64,
    /// The first method's samples make the epochs; the second's repeat without end.
    pub first: bool,
}

impl Default for TrainSettings {
    fn default() -> TrainSettings {
        TrainSettings {
            l1: 64,
            hidden: vec![32],
            shape_options: ShapeOptions::default(),
            scheme: None,
            factor: None,
            compact_dead: false,
            epochs: 10,
            epoch_samples: None,
            batch_size: Request::BATCH_SIZE,
            learning_rate: 2e-3,
            decay: 0.8,
            optimisation: Optimisation::default(),
            validation: 0.1,
            split_seed: Seed(0),
            threads: None,
            device: DeviceChoice::default(),
            eval_loss: EvalLoss::default(),
            pqr_loss: PqrLoss::default(),
        }
    }
}

impl TrainSettings {
    /// The same settings with every omitted one filled in, as runs record them.
    #[must_use]
    pub fn complete(self) -> TrainSettings {
        TrainSettings {
            scheme: Some(self.scheme_name()),
            factor: Some(self.factor()),
            threads: Some(self.threads()),
            ..self
        }
    }

    /// Whether the set's factors are trained beside its features.
    #[must_use]
    pub fn factor(&self) -> bool {
        self.factor.unwrap_or(true)
    }

    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(Request::available_threads)
    }

    fn scheme_name(&self) -> String {
        self.scheme.clone().unwrap_or_else(|| Scheme::stockfish().name)
    }

    /// # Errors
    /// If there is no scheme of that name.
    pub fn scheme(&self) -> Result<Scheme, TrainError> {
        let name = self.scheme_name();
        Scheme::named(&name).ok_or_else(|| {
            let names = Scheme::all().map(|scheme| scheme.name).join(", ");
            TrainError::Config(format!("there is no quantisation scheme `{name}`; there are {names}"))
        })
    }
}

impl TrainConfig {
    /// A run over built data, unlike the command line's default. Everything else that `settings` do not hold has the
    /// command line's default.
    #[must_use]
    pub fn new(
        set: impl Into<String>,
        data: impl Into<DataFiles>,
        method: Method,
        settings: TrainSettings,
    ) -> TrainConfig {
        TrainConfig {
            set: set.into(),
            data: data.into(),
            from_unit: None,
            evals: EvalOptions::default(),
            read_mode: ReadMode::Built,
            method,
            min_ply: None,
            filter: None,
            seed: Seed::default(),
            pawn: default_pawn(),
            second: None,
            start: None,
            start_hash: None,
            settings: settings.complete(),
        }
    }

    /// The quantisation scheme, with this run's pawn value.
    ///
    /// # Errors
    /// If there is no scheme of that name.
    pub fn scheme(&self) -> Result<Scheme, TrainError> {
        Ok(Scheme { pawn_value: self.pawn, ..self.settings.scheme()? })
    }

    /// The run's methods with their data, the first method first.
    #[must_use]
    pub fn tasks(&self) -> Vec<MethodTask<'_>> {
        let TrainConfig { method, data, from_unit, read_mode, .. } = self;
        let first = MethodTask {
            method: *method,
            data,
            from_unit: *from_unit,
            read_mode: *read_mode,
            weight: 1.0,
            first: true,
        };
        let second = self.second.as_ref().map(|second| {
            let SecondMethod { method, data, from_unit, read_mode, weight } = second;
            MethodTask {
                method: *method,
                data,
                from_unit: *from_unit,
                read_mode: *read_mode,
                weight: *weight,
                first: false,
            }
        });
        std::iter::once(first).chain(second).collect()
    }

    /// The methods alone.
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        std::iter::once(self.method).chain(self.second.as_ref().map(|second| second.method)).collect()
    }

    /// The same run with the unit of its scores determined from the data ([`TrainConfig::from_unit`]).
    ///
    /// # Errors
    /// If the data cannot be read, or state another unit than the requested one.
    pub fn with_score_units(&self) -> Result<TrainConfig, DataError> {
        let determine = |method, data: &DataFiles, from_unit: &mut Option<ScoreUnit>| {
            if method == Method::Eval {
                let given = *from_unit;
                *from_unit = None;
                for file in data.iter() {
                    let FileUnit { unit, origin } = score_unit(file, None, given)?;
                    *from_unit = from_unit.or((origin != UnitOrigin::File).then_some(unit));
                }
            }
            Ok::<(), DataError>(())
        };
        let mut config = self.clone();
        determine(config.method, &config.data, &mut config.from_unit)?;
        if let Some(second) = &mut config.second {
            determine(second.method, &second.data, &mut second.from_unit)?;
        }
        Ok(config)
    }
}

const fn default_pawn() -> i32 {
    100
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_default_pawn(pawn: &i32) -> bool {
    *pawn == default_pawn()
}

fn is_zero_seed(seed: &Seed) -> bool {
    *seed == Seed(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn configurations_are_written_flat_and_read_back() {
        let config = TrainConfig::new("piece", "games.fsd", Method::Eval, TrainSettings::default());
        let written = serde_json::to_value(&config).expect("JSON");
        let mut keys: Vec<&str> = written.as_object().expect("an object").keys().map(String::as_str).collect();
        keys.sort_unstable();
        let expected = "batch_size data decay design device epoch_samples epochs eval_loss factor hidden l1 learning_rate \
            method pqr_loss recipe scheme seed set source threads validation";
        assert_eq!(keys.join(" "), expected);
        assert_eq!((&written["scheme"], &written["factor"]), (&json!("stockfish"), &Value::Bool(true)));
        assert_eq!(serde_json::from_value::<TrainConfig>(written).expect("a configuration"), config);
    }
}
