//! Validation of training configurations, for the command line, experiments and the trainer alike.

use serde_json::Value;

use super::{
    DeviceChoice, EvalLoss, LearningRateSchedule, Optimisation, Optimiser, PqrLoss, ShapeOptions, TrainConfig,
    TrainError, TrainSettings, TrainerChoice,
};
use crate::data::Method;
use crate::json;
use crate::json::from_value;
use crate::service::{ReadOptions, Request};
use crate::settings::SettingError;

impl TrainConfig {
    /// # Errors
    /// When a number makes no sense, the scheme has no integers for the network's shape, or a setting has no effect.
    pub fn validate(&self) -> Result<(), TrainError> {
        if self.pawn < 1 {
            let message = format!("a pawn must be at least 1 internal unit, not {}", self.pawn);
            return Err(SettingError::new("pawn", message).into());
        }
        if let Some(weight) = self.second.as_ref().map(|second| second.weight).filter(|weight| !positive(*weight)) {
            let message = format!("the weight of the second method must be above 0, not {weight}");
            return Err(SettingError::new("second.weight", message).into());
        }
        let share = self.reading.training_share;
        if let Some(problem) = share.and_then(ReadOptions::share_problem) {
            return Err(SettingError::new("training_share", problem).into());
        }
        if self.repeat_share && share.is_none() {
            let message = "without a training share there is nothing to repeat: give one, as in --training-share 0.25";
            return Err(SettingError::new("repeat_share", message).into());
        }
        self.settings.validate(&self.methods(), &|_| true)
    }

    /// The same run with every setting that has no effect at its default.
    #[must_use]
    pub fn effective(&self) -> TrainConfig {
        TrainConfig { settings: self.settings.effective(&self.methods()), ..self.clone() }
    }
}

impl TrainSettings {
    /// Checks everything that needs neither the data nor the feature set, for runs by `methods`. A setting without
    /// effect is an error if `given` says so of its key (`recipe.warm_up`).
    ///
    /// # Errors
    /// As [`TrainConfig::validate`].
    pub fn validate(&self, methods: &[Method], given: &dyn Fn(&str) -> bool) -> Result<(), TrainError> {
        let no_effect = || {
            let differences = differences(&as_json(self), &as_json(&self.effective(methods)));
            let (key, value, _) = differences.into_iter().find(|(key, ..)| given(key))?;
            let message = why_no_effect(methods, &key, &value);
            Some(SettingError::new(key, message))
        };
        match self.problem().or_else(no_effect) {
            Some(problem) => Err(problem.into()),
            None => Ok(()),
        }
    }

    /// The first number that makes no sense.
    fn problem(&self) -> Option<SettingError> {
        let problem = |key, message| Some(SettingError::new(key, message));
        let at_least_one = [
            ("batch_size", "batch size", Some(self.batch_size as u64)),
            ("epochs", "epochs", Some(self.epochs.into())),
            ("threads", "threads", self.threads.map(|threads| threads as u64)),
            ("epoch_samples", "samples per epoch", self.epoch_samples),
        ];
        for (key, name, number) in at_least_one {
            if number == Some(0) {
                return problem(key, format!("{name} must be at least 1"));
            }
        }
        if let Some(threads) = self.threads.filter(|threads| *threads > Request::MAX_THREADS) {
            return problem("threads", format!("threads must be at most {}, not {threads}", Request::MAX_THREADS));
        }
        if self.device == DeviceChoice::Cuda && self.trainer == Some(TrainerChoice::Kernels) {
            let message = "the kernels train on the CPU, and the device is cuda; leave either out, or train with tch";
            return problem("device", message.into());
        }
        if !positive(self.learning_rate) {
            let message = format!("the learning rate must be above 0, not {}", self.learning_rate);
            return problem("learning_rate", message);
        }
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            return problem("decay", format!("decay must be above 0 and at most 1, not {}", self.decay));
        }
        if !(self.validation > 0.0 && self.validation < 1.0) {
            let message = format!("the validation share must lie between 0 and 1, not at {}", self.validation);
            return problem("validation", message);
        }
        let in_tables = [
            ("recipe", self.optimisation.problem()),
            ("skip", self.skip.problem()),
            ("eval_loss", self.eval_loss.problem()),
            ("pqr_loss", self.pqr_loss.problem()),
        ];
        for (table, problem) in in_tables {
            if let Some(SettingError { key, message }) = problem {
                return Some(SettingError::new(format!("{table}.{key}"), message));
            }
        }
        self.shape_problem()
    }

    /// Problems with the shape that any number of features has.
    fn shape_problem(&self) -> Option<SettingError> {
        if let Err(error) = self.scheme() {
            return Some(SettingError::new("scheme", error.to_string()));
        }
        let message = self.shape_error()?;
        Some(SettingError::new(self.key_at_fault(&message), message))
    }

    fn shape_error(&self) -> Option<String> {
        let scheme = self.scheme().ok()?;
        let features = self.shape_options.narrow.max(1);
        let shape = self.shape_options.shape(features, self.l1, &self.hidden);
        shape.and_then(|shape| scheme.admits(&shape)).err().map(|error| error.to_string())
    }

    /// The first setting of an impossible shape whose default would not give this error; empty if there is none.
    fn key_at_fault(&self, message: &str) -> String {
        let own = as_json(self);
        for (key, _, default) in differences(&own, &as_json(&TrainSettings::default())) {
            let mut changed = own.clone();
            if let Some(value) = changed.pointer_mut(&format!("/{}", key.replace('.', "/"))) {
                *value = default;
            }
            let error = from_value(&changed, "").map(|changed: TrainSettings| changed.shape_error());
            if error.is_ok_and(|error| error.as_deref() != Some(message)) {
                return key;
            }
        }
        String::new()
    }

    /// The same settings, with every setting that has no effect in runs by `methods` at its default.
    #[must_use]
    pub fn effective(&self, methods: &[Method]) -> TrainSettings {
        let mut settings = self.clone();
        let TrainSettings { shape_options, optimisation, skip, eval_loss, pqr_loss, .. } = &mut settings;
        skip.unlikely &= methods.contains(&Method::Eval);
        *eval_loss = if methods.contains(&Method::Eval) { eval_loss.effective() } else { EvalLoss::default() };
        if !methods.contains(&Method::Pqr) {
            *pqr_loss = PqrLoss::default();
        }
        let default = Optimisation::default();
        if optimisation.optimiser == Optimiser::Adam {
            optimisation.weight_decay = default.weight_decay;
        }
        if optimisation.schedule != LearningRateSchedule::Step {
            optimisation.step_epochs = default.step_epochs;
        }
        if !matches!(optimisation.schedule, LearningRateSchedule::Cosine | LearningRateSchedule::OneCycle) {
            optimisation.final_share = default.final_share;
        }
        if optimisation.average_from.is_none() {
            optimisation.average_every = default.average_every;
            optimisation.average_decay = None;
        }
        let default = ShapeOptions::default();
        if self.hidden.is_empty() {
            shape_options.hidden_activation = default.hidden_activation;
        }
        if shape_options.buckets == 1 && shape_options.bucket_rule.expression().is_none() {
            shape_options.bucket_rule = default.bucket_rule;
        }
        settings
    }
}

fn why_no_effect(methods: &[Method], key: &str, value: &Value) -> String {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let reason = match (table, name) {
        ("eval_loss", _) if !methods.contains(&Method::Eval) => "this run does not learn by eval",
        ("eval_loss", "epsilon") => "the loss is power",
        ("eval_loss", "lambda_schedule") => "λ does not move without lambda_end",
        ("eval_loss", _) => "the loss is epsilon",
        ("pqr_loss", _) => "this run does not learn by pqr",
        // A table of defaults alone is not written.
        ("skip", "unlikely") | ("", "skip") => "pqr reads no scores",
        (_, "weight_decay") => "the optimiser adam has none",
        (_, "step_epochs") => "the schedule is not step",
        (_, "final_share") => "the schedule is neither cosine nor one-cycle",
        (_, "average_every" | "average_decay") => "weights are averaged only with average_from",
        (_, "hidden_activation") => "there is no hidden layer",
        _ => "there is one bucket",
    };
    format!("{name} ({value}) has no effect: {reason}; leave it out")
}

pub(super) fn positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

pub(super) fn as_json(value: &impl serde::Serialize) -> Value {
    json::to_value(value).unwrap_or_default()
}

/// Where two JSON documents differ: the key (`recipe.warm_up`) and both values, null in a document without the key.
pub(super) fn differences(a: &Value, b: &Value) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    compare("", a, b, &mut found);
    found
}

fn compare(key: &str, a: &Value, b: &Value, found: &mut Vec<(String, Value, Value)>) {
    let (Some(left), Some(right)) = (a.as_object(), b.as_object()) else {
        if a != b {
            found.push((key.into(), a.clone(), b.clone()));
        }
        return;
    };
    let only_right = right.keys().filter(|name| !left.contains_key(*name));
    for name in left.keys().chain(only_right) {
        let value = |object: &serde_json::Map<String, Value>| object.get(name).cloned().unwrap_or_default();
        let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        compare(&key, &value(left), &value(right), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Activation;
    use crate::train::{LossForm, SecondMethod, TrainerChoice};

    fn config() -> TrainConfig {
        let settings = TrainSettings { l1: 16, hidden: vec![8], epochs: 1, ..TrainSettings::default() };
        TrainConfig::new("piece", "games.fsd", Method::Eval, settings)
    }

    #[test]
    fn impossible_settings_are_refused() {
        let check = |change: fn(&mut TrainSettings), expected: &str| {
            let mut config = config();
            change(&mut config.settings);
            assert_eq!(config.validate().expect_err("wrong").to_string(), expected);
        };
        config().validate().expect("good");
        check(|s| s.epochs = 0, "epochs must be at least 1");
        check(|s| s.epoch_samples = Some(0), "samples per epoch must be at least 1");
        check(|s| s.threads = Some(5000), "threads must be at most 1024, not 5000");
        check(|s| s.learning_rate = f64::NAN, "the learning rate must be above 0, not NaN");
        check(|s| s.decay = 1.5, "decay must be above 0 and at most 1, not 1.5");
        check(|s| s.validation = 1.0, "the validation share must lie between 0 and 1, not at 1");
        check(
            |s| (s.trainer, s.device) = (Some(TrainerChoice::Kernels), DeviceChoice::Cuda),
            "the kernels train on the CPU, and the device is cuda; leave either out, or train with tch",
        );
        check(|s| s.eval_loss.lambda = 2.0, "λ must lie between 0 and 1, not at 2");
        check(
            |s| s.scheme = Some("fancy".into()),
            "there is no quantisation scheme `fancy`; there are stockfish, stockfish-18, stockfish-19, simple",
        );
        check(|s| s.hidden = vec![8; 3], "invalid network shape: at most two hidden layers, not 3");
    }

    #[test]
    fn an_impossible_shape_names_a_setting() {
        let check = |change: fn(&mut TrainSettings), expected: &str| {
            let mut settings = config().settings;
            change(&mut settings);
            assert_eq!(settings.problem().expect("wrong").key, expected);
        };
        check(|s| s.l1 = 0, "l1");
        check(|s| s.hidden = vec![0], "hidden");
        check(|s| s.shape_options.buckets = 99, "design.buckets");
        check(|s| s.shape_options.activation = Activation::Relu, "design.activation");
        check(|s| s.scheme = Some("simple".into()), "scheme");
        let hidden_of_simple = |s: &mut TrainSettings| (s.scheme, s.hidden) = (Some("simple".into()), vec![0]);
        check(hidden_of_simple, "hidden");
    }

    #[test]
    fn settings_without_effect_are_refused() {
        let check = |change: fn(&mut TrainConfig), expected: &str| {
            let mut config = config();
            change(&mut config);
            let error = config.validate().expect_err("no effect").to_string();
            assert_eq!(error, format!("{expected}; leave it out"));
            config.settings.validate(&config.methods(), &|_| false).expect("it was not given");
            config.effective().validate().expect("every setting has an effect");
        };
        check(|c| c.settings.pqr_loss.kappa = 0.5, "kappa (0.5) has no effect: this run does not learn by pqr");
        check(|c| c.settings.eval_loss.epsilon = 5.0, "epsilon (5.0) has no effect: the loss is power");
        check(
            |c| {
                let loss = &mut c.settings.eval_loss;
                loss.form = LossForm::Epsilon;
                loss.lambda = 0.5;
            },
            "lambda (0.5) has no effect: the loss is epsilon",
        );
        check(
            |c| (c.method, c.settings.eval_loss.power) = (Method::Pqr, 2.0),
            "power (2.0) has no effect: this run does not learn by eval",
        );
        check(
            |c| c.settings.optimisation.weight_decay = 0.1,
            "weight_decay (0.1) has no effect: the optimiser adam has none",
        );
        check(|c| c.settings.optimisation.step_epochs = 3, "step_epochs (3) has no effect: the schedule is not step");
        check(
            |c| c.settings.shape_options.bucket_rule = crate::net::BucketRule::Cpw,
            "bucket_rule (\"cpw\") has no effect: there is one bucket",
        );
        let mut both = config();
        both.settings.pqr_loss.kappa = 0.5;
        both.second =
            Some(SecondMethod { method: Method::Pqr, data: both.data.clone(), reading: both.reading, weight: 1.0 });
        both.validate().expect("either method uses its settings");
    }
}
