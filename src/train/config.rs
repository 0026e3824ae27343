//! The configuration of a training run. Each setting is written once, with its default and its help: the same structs
//! are the options of `fsbench train` (clap), the keys of an experiment's `[train]` (TOML) and what a run records
//! (JSON).

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{EvalLoss, Optimisation, PqrLoss, ShapeOptions, SkipRules, TrainError};
use crate::data::formats::{FileUnit, UnitOrigin};
use crate::data::{DataError, DataFiles, EvalOptions, Method, ScoreUnit, Split};
use crate::net::Scheme;
use crate::pipeline::WeightedInput;
use crate::pipeline::build::{input_unit, set_units};
use crate::service::{Description, ReadMode, ReadOptions, Request};
use crate::units::Seed;

// Headings of `fsbench train --help`.
const DATA: &str = "Data";
const NETWORK: &str = "Network";
const TRAINING: &str = "Training";
const LOSS: &str = "Loss";
const SKIPPED: &str = "Skipped samples";

/// One training run: the same configuration, data and CPU give the same network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
pub struct TrainConfig {
    /// A name, a path or an expression.
    #[arg(skip)]
    pub set: String,
    #[arg(skip)]
    pub data: DataFiles,
    #[command(flatten)]
    #[serde(flatten)]
    pub reading: ReadOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub evals: EvalOptions,
    /// With --training-share: pass over the share as often within an epoch as gives as many steps as all games would
    #[arg(help_heading = DATA, long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat_share: bool,
    /// The method to learn by
    #[arg(help_heading = DATA, long, value_enum, default_value = "eval")]
    pub method: Method,
    #[arg(skip)]
    pub seed: Seed,
    /// The network's internal score units per pawn (Stockfish 12 to 15: 208, 15.1: 361, 16: 328, 16.1,
    /// 18 and 19: 356, 17.1: 377)
    #[arg(help_heading = NETWORK, long, value_name = "UNITS", default_value_t = default_pawn(),
        value_parser = clap::value_parser!(i32).range(1..))]
    #[serde(default = "default_pawn", skip_serializing_if = "is_default_pawn")]
    pub pawn: i32,
    /// A second method, learned in the same steps.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondMethod>,
    /// A network of this shape to start from, on this set or one with a block in common: a checkpoint or a quantised
    /// network. Absent: random weights.
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

/// The settings of a training that do not depend on the feature set, data, method and seed
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainSettings {
    /// Accumulator width per perspective
    #[arg(help_heading = NETWORK, long, default_value_t = TrainSettings::default().l1)]
    pub l1: usize,
    /// Hidden layers' widths, one or two in a list: [32] or [16, 32]; [] for none
    #[arg(help_heading = NETWORK, long, default_value = "32", value_parser = parse_widths,
        help = "Hidden layers' widths, one or two separated by a comma, or `none`")]
    #[serde(deserialize_with = "read_widths")]
    pub hidden: LayerWidths,
    #[command(flatten, next_help_heading = NETWORK)]
    #[serde(rename = "design", default)]
    pub shape_options: ShapeOptions,
    /// Quantisation scheme: stockfish, stockfish-18, stockfish-19: weights in i8, with the scales of those networks;
    /// simple: no hidden layers, weights in i16 [default: stockfish, or the scheme of a Stockfish network's shape]
    #[arg(help_heading = NETWORK, long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Train the factors of sets that have some [default: true]
    #[arg(help_heading = NETWORK, long = "no-factor", action = clap::ArgAction::SetFalse,
        help = "Do not train the factors of the set's definition")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<bool>,
    /// Leave out the rows of features that no legal position activates: no score changes, the network is smaller
    #[arg(help_heading = NETWORK, long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact_dead: bool,
    /// Passes over the training split
    #[arg(help_heading = TRAINING, long, value_name = "N", default_value_t = TrainSettings::default().epochs)]
    pub epochs: u32,
    /// Samples per epoch [default: all of the training split]
    #[arg(help_heading = TRAINING, long)]
    pub epoch_samples: Option<u64>,
    /// Samples per step (a pqr sample holds three positions)
    #[arg(help_heading = TRAINING, long, value_name = "N", default_value_t = TrainSettings::default().batch_size)]
    pub batch_size: usize,
    /// Learning rate of the first epoch
    #[arg(help_heading = TRAINING, long, value_name = "RATE", default_value_t = TrainSettings::default().learning_rate)]
    pub learning_rate: f64,
    /// Factor on the learning rate after every epoch
    #[arg(help_heading = TRAINING, long, default_value_t = TrainSettings::default().decay)]
    pub decay: f64,
    #[command(flatten, next_help_heading = TRAINING)]
    #[serde(rename = "recipe", default)]
    pub optimisation: Optimisation,
    /// Share of games kept for validation
    #[arg(help_heading = TRAINING, long, default_value_t = TrainSettings::default().validation)]
    pub validation: f64,
    /// Seed of the choice of validation games
    #[arg(help_heading = TRAINING, long, value_name = "S", default_value_t)]
    #[serde(default, skip_serializing_if = "is_zero_seed")]
    pub split_seed: Seed,
    /// Threads of the trainer; the samples service has as many of its own [default: all cores]
    #[arg(help_heading = TRAINING, long, value_name = "T", value_parser = Request::parse_threads)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// What trains: fsbench's own kernels, on the CPU; or tch, libtorch on the CPU or a GPU, by the program fsbench-tch
    /// [default: kernels on the CPU, tch on a GPU]
    #[arg(help_heading = TRAINING, long, value_enum)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trainer: Option<TrainerChoice>,
    /// Where to train; auto: on a GPU where there is one and steps are large enough for it to pay, else on the CPU; with
    /// the trainer tch, on a GPU wherever there is one
    #[arg(help_heading = TRAINING, long, value_enum, default_value_t)]
    #[serde(default)]
    pub device: DeviceChoice,
    #[command(flatten, next_help_heading = SKIPPED)]
    #[serde(default, skip_serializing_if = "SkipRules::is_empty")]
    pub skip: SkipRules,
    #[command(flatten, next_help_heading = LOSS)]
    #[serde(default)]
    pub eval_loss: EvalLoss,
    #[command(flatten, next_help_heading = LOSS)]
    #[serde(default)]
    pub pqr_loss: PqrLoss,
}

/// Widths of hidden layers, first to last. (An alias, because clap reads a field of type `Vec` as several values.)
pub type LayerWidths = Vec<usize>;

fn parse_widths(text: &str) -> Result<LayerWidths, String> {
    if text == "none" || text == "[]" {
        return Ok(Vec::new());
    }
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let width = |width: &str| {
        let wrong = |_| "give one or two widths, as 32 or 16,32, or `none` for no hidden layers".to_owned();
        width.trim().parse().map_err(wrong)
    };
    text.split(',').map(width).collect()
}

/// Reads a list of widths, or text as on the command line, and says in errors how a file writes it.
fn read_widths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LayerWidths, D::Error> {
    struct Widths;

    impl<'de> Visitor<'de> for Widths {
        type Value = LayerWidths;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of widths, as [32] or [16, 32], or [] for no hidden layers")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LayerWidths, E> {
            parse_widths(text).map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<LayerWidths, A::Error> {
            let mut widths = Vec::new();
            while let Some(width) = elements.next_element()? {
                widths.push(width);
            }
            Ok(widths)
        }
    }

    deserializer.deserialize_any(Widths)
}

/// What trains.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrainerChoice {
    /// This library's kernels, on the CPU.
    Kernels,
    /// libtorch, by the program `fsbench-tch`.
    Tch,
}

/// Where to train.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// On a GPU where there is one and, unless tch is to train anyway, steps are large enough for it to pay.
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
    #[serde(flatten)]
    pub reading: ReadOptions,
    /// Weight of its loss; the first method's is 1.
    pub weight: f64,
}

/// One of a run's methods, with its data.
#[derive(Copy, Clone, Debug)]
pub struct MethodTask<'a> {
    pub method: Method,
    pub data: &'a DataFiles,
    pub reading: ReadOptions,
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
            validation: Split::VALIDATION_SHARE,
            split_seed: Seed(0),
            threads: None,
            trainer: None,
            device: DeviceChoice::default(),
            skip: SkipRules::default(),
            eval_loss: EvalLoss::default(),
            pqr_loss: PqrLoss::default(),
        }
    }
}

impl TrainSettings {
    /// The same settings with every omitted one filled in, as runs record them: but for the trainer that is left to
    /// `auto`, so that records and keys do not depend on the machine.
    #[must_use]
    pub fn complete(self) -> TrainSettings {
        let trainer = self.trainer();
        TrainSettings {
            scheme: Some(self.scheme_name()),
            factor: Some(self.factor()),
            threads: Some(self.threads()),
            trainer,
            device: match (trainer, self.device) {
                (Some(TrainerChoice::Kernels), DeviceChoice::Auto) => DeviceChoice::Cpu,
                (_, device) => device,
            },
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

    /// A GPU is used by tch alone. `None`: `auto` decides when a run begins or goes on.
    #[must_use]
    pub fn trainer(&self) -> Option<TrainerChoice> {
        match (self.trainer, self.device) {
            (Some(trainer), _) => Some(trainer),
            (None, DeviceChoice::Cuda) => Some(TrainerChoice::Tch),
            (None, DeviceChoice::Cpu) => Some(TrainerChoice::Kernels),
            (None, DeviceChoice::Auto) => None,
        }
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
            reading: ReadOptions { mode: ReadMode::Built, ..ReadOptions::default() },
            evals: EvalOptions::default(),
            repeat_share: false,
            method,
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
        let TrainConfig { method, ref data, reading, .. } = *self;
        let mut tasks = vec![MethodTask { method, data, reading, weight: 1.0, first: true }];
        if let Some(SecondMethod { method, ref data, reading, weight }) = self.second {
            tasks.push(MethodTask { method, data, reading, weight, first: false });
        }
        tasks
    }

    /// Samples of an epoch of the first method, of which the service describes the data.
    #[must_use]
    pub(super) fn samples_per_epoch(&self, data: &Description) -> u64 {
        if self.repeat_share {
            data.samples_of_split.min(self.settings.epoch_samples.unwrap_or(u64::MAX))
        } else {
            data.samples_per_epoch
        }
    }

    /// The methods alone.
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        std::iter::once(self.method).chain(self.second.as_ref().map(|second| second.method)).collect()
    }

    /// Of all methods together.
    #[must_use]
    pub fn positions_per_sample(&self) -> usize {
        let mut positions = 0;
        for method in self.methods() {
            positions += match method {
                Method::Eval => 1,
                Method::Pqr => 3,
            };
        }
        positions
    }

    /// The same run with the unit of its scores determined from the data ([`ReadOptions::from_unit`]).
    ///
    /// # Errors
    /// If the data cannot be read, or state another unit than the requested one.
    pub fn with_score_units(&self) -> Result<TrainConfig, DataError> {
        let determine = |method, data: &DataFiles, from_unit: &mut Option<ScoreUnit>| {
            if method == Method::Eval {
                let mut inputs: Vec<WeightedInput> = data.iter().map(WeightedInput::file).collect();
                set_units(&mut inputs, from_unit.take())?;
                for input in &inputs {
                    let FileUnit { unit, origin } = input_unit(input)?;
                    *from_unit = from_unit.or((origin != UnitOrigin::File).then_some(unit));
                }
            }
            Ok::<(), DataError>(())
        };
        let mut config = self.clone();
        determine(config.method, &config.data, &mut config.reading.from_unit)?;
        if let Some(second) = &mut config.second {
            determine(second.method, &second.data, &mut second.reading.from_unit)?;
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
    use crate::json;
    use serde_json::{Value, json};

    #[test]
    fn configurations_are_written_flat_and_read_back() {
        let config = TrainConfig::new("piece", "games.fsd", Method::Eval, TrainSettings::default());
        let written = json::to_value(&config).expect("JSON");
        let mut keys: Vec<&str> = written.as_object().expect("an object").keys().map(String::as_str).collect();
        keys.sort_unstable();
        let expected = "batch_size data decay design device epoch_samples epochs eval_loss factor hidden l1 \
            learning_rate method pqr_loss read recipe scheme seed set threads validation";
        assert_eq!(keys.join(" "), expected);
        assert_eq!((&written["scheme"], &written["factor"]), (&json!("stockfish"), &Value::Bool(true)));
        assert_eq!(json::from_value::<TrainConfig>(&written, "").expect("a configuration"), config);
    }

    /// A file and the command line may write widths as the other does.
    #[test]
    fn widths_are_read_in_both_forms() {
        let read = |hidden: Value| {
            let settings = json::from_value::<TrainSettings>(&with_hidden(hidden), "");
            settings.map(|settings| settings.hidden).map_err(|error| error.to_string())
        };
        for (text, expected) in [("none", vec![]), ("[]", vec![]), ("[16, 32]", vec![16, 32]), ("16,32", vec![16, 32])]
        {
            assert_eq!(parse_widths(text).as_ref(), Ok(&expected), "{text}");
            assert_eq!(read(json!(text)), Ok(expected), "{text}");
        }
        assert_eq!(read(json!([])), Ok(vec![]));
        assert!(read(json!("wide")).is_err_and(|error| error.contains("hidden: ") && error.contains("or [] for no")));
        assert!(read(json!(32)).is_err_and(|error| error.contains("a list of widths")));
    }

    fn with_hidden(hidden: Value) -> Value {
        let mut settings = serde_json::to_value(TrainSettings::default()).expect("JSON");
        settings["hidden"] = hidden;
        settings
    }

    /// What is left to `auto` stays so; each other choice has one form, however it was written.
    #[test]
    fn a_device_implies_its_trainer() {
        let check = |trainer, device, expected| {
            let settings = TrainSettings { trainer, device, ..TrainSettings::default() }.complete();
            assert_eq!((settings.trainer, settings.device), expected);
        };
        let kernels = Some(TrainerChoice::Kernels);
        let tch = Some(TrainerChoice::Tch);
        check(None, DeviceChoice::Auto, (None, DeviceChoice::Auto));
        check(None, DeviceChoice::Cpu, (kernels, DeviceChoice::Cpu));
        check(kernels, DeviceChoice::Auto, (kernels, DeviceChoice::Cpu));
        check(kernels, DeviceChoice::Cpu, (kernels, DeviceChoice::Cpu));
        check(None, DeviceChoice::Cuda, (tch, DeviceChoice::Cuda));
        check(tch, DeviceChoice::Auto, (tch, DeviceChoice::Auto));
        check(tch, DeviceChoice::Cpu, (tch, DeviceChoice::Cpu));
    }
}
