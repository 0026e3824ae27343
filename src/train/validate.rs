//! Whether a training can be done as it is asked for: the one place, for the command line and for experiments.

use serde_json::Value;

use super::config::{TrainConfig, positive};
use super::{EvalLoss, LossForm, Optimisation, Optimiser, PqrLoss, Schedule, ShapeOptions, TrainError};
use crate::data::Method;
use crate::service::Request;

/// A setting without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleSetting {
    /// Where it stands in a configuration: `recipe.warm_up`.
    pub key: String,
    /// The reason, as a message.
    pub why: String,
}

impl TrainConfig {
    /// # Errors
    /// When a number makes no sense, the scheme has no integers for the network's shape, or a setting has no effect.
    pub fn validate(&self) -> Result<(), TrainError> {
        match self.problem().or_else(|| self.idle().into_iter().next().map(|idle| idle.why)) {
            Some(problem) => Err(TrainError::Config(problem)),
            None => Ok(()),
        }
    }

    /// What is wrong with the numbers, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let at_least_one =
            [("batch size", self.batch_size as u64), ("epochs", self.epochs.into()), ("threads", self.threads as u64)];
        let at_least_one =
            at_least_one.into_iter().chain(self.epoch_samples.map(|samples| ("samples an epoch", samples)));
        if let Some((name, _)) = at_least_one.into_iter().find(|(_, number)| *number == 0) {
            return Some(format!("{name} must be at least 1"));
        }
        if self.threads > Request::MAX_THREADS {
            return Some(format!("threads must be at most {}, not {}", Request::MAX_THREADS, self.threads));
        }
        if self.pawn < 1 {
            return Some(format!("a pawn must be at least 1 internal unit, not {}", self.pawn));
        }
        if !positive(self.learning_rate) {
            return Some(format!("the learning rate must be above 0, not {}", self.learning_rate));
        }
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            return Some(format!("decay must be above 0 and at most 1, not {}", self.decay));
        }
        if !(self.validation > 0.0 && self.validation < 1.0) {
            return Some(format!("the validation share must lie between 0 and 1, not at {}", self.validation));
        }
        if let Some(weight) = self.second.as_ref().map(|second| second.weight).filter(|weight| !positive(*weight)) {
            return Some(format!("the weight of the second method must be above 0, not {weight}"));
        }
        let losses = || self.eval_loss.problem().or_else(|| self.pqr_loss.problem());
        self.recipe.problem().or_else(losses).or_else(|| self.shape_problem())
    }

    /// Whatever the number of features.
    fn shape_problem(&self) -> Option<String> {
        let scheme = match self.scheme() {
            Ok(scheme) => scheme,
            Err(error) => return Some(error.to_string()),
        };
        let shape = self.design.shape(1, self.l1, &self.hidden);
        shape.and_then(|shape| scheme.admits(&shape)).err().map(|error| error.to_string())
    }

    /// The settings that are not their default and change nothing.
    #[must_use]
    pub fn idle(&self) -> Vec<IdleSetting> {
        let found = differences(&as_json(self), &as_json(&self.effective())).into_iter();
        found.map(|(key, value, _)| IdleSetting { why: self.why_idle(&key, &value), key }).collect()
    }

    fn why_idle(&self, key: &str, value: &Value) -> String {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
        let why = match (table, name) {
            ("eval_loss", _) if !self.learns(Method::Eval) => "this run does not learn by eval",
            ("eval_loss", "epsilon") => "the loss is power",
            ("eval_loss", _) => "the loss is epsilon",
            ("pqr_loss", _) => "this run does not learn by pqr",
            (_, "weight_decay") => "the optimiser adam has none",
            (_, "step_epochs") => "the schedule is not step",
            (_, "final_share") => "the schedule is neither cosine nor one-cycle",
            (_, "hidden_activation") => "there is no hidden layer",
            _ => "there is one bucket",
        };
        format!("{name} ({value}) has no effect: {why}; leave it out")
    }

    /// The same run with every setting that has no effect at its default.
    #[must_use]
    pub fn effective(&self) -> TrainConfig {
        let mut config = self.clone();
        let TrainConfig { design, recipe, eval_loss, pqr_loss, .. } = &mut config;
        let default = EvalLoss::default();
        *eval_loss = match (self.learns(Method::Eval), eval_loss.form) {
            (false, _) => default,
            (true, LossForm::Power) => EvalLoss { epsilon: default.epsilon, ..*eval_loss },
            (true, form @ LossForm::Epsilon) => EvalLoss { form, epsilon: eval_loss.epsilon, ..default },
        };
        if !self.learns(Method::Pqr) {
            *pqr_loss = PqrLoss::default();
        }
        let default = Optimisation::default();
        if recipe.optimiser == Optimiser::Adam {
            recipe.weight_decay = default.weight_decay;
        }
        if recipe.schedule != Schedule::Step {
            recipe.step_epochs = default.step_epochs;
        }
        if !matches!(recipe.schedule, Schedule::Cosine | Schedule::OneCycle) {
            recipe.final_share = default.final_share;
        }
        let default = ShapeOptions::default();
        if self.hidden.is_empty() {
            design.hidden_activation = default.hidden_activation;
        }
        if design.buckets == 1 {
            design.bucket_rule = default.bucket_rule;
        }
        config
    }

    /// Whether a method is the run's first or second.
    #[must_use]
    pub fn learns(&self, method: Method) -> bool {
        self.method == method || self.second.as_ref().is_some_and(|second| second.method == method)
    }
}

/// As it stands in files.
pub(super) fn as_json(config: &TrainConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

/// The numbers and texts in which two documents differ: where they stand (`recipe.warm_up`), and both, null where one lacks
/// it.
pub(super) fn differences(a: &Value, b: &Value) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    compare("", a, b, &mut found);
    found
}

fn compare(place: &str, a: &Value, b: &Value, found: &mut Vec<(String, Value, Value)>) {
    let (Some(left), Some(right)) = (a.as_object(), b.as_object()) else {
        if a != b {
            found.push((place.into(), a.clone(), b.clone()));
        }
        return;
    };
    let missing = right.keys().filter(|key| !left.contains_key(*key));
    for key in left.keys().chain(missing) {
        let at = |all: &serde_json::Map<String, Value>| all.get(key).cloned().unwrap_or_default();
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        compare(&place, &at(left), &at(right), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ReadMode;
    use crate::train::{DeviceChoice, SecondMethod};
    use crate::units::Seed;

    fn config() -> TrainConfig {
        TrainConfig {
            set: "piece".into(),
            data: "games.fsd".into(),
            from_unit: None,
            source: ReadMode::Built,
            factor: true,
            method: Method::Eval,
            min_ply: None,
            seed: Seed(0),
            l1: 16,
            hidden: vec![8],
            design: ShapeOptions::default(),
            scheme: "stockfish".into(),
            pawn: 100,
            batch_size: 64,
            epochs: 1,
            epoch_samples: None,
            learning_rate: 1e-3,
            decay: 1.0,
            recipe: Optimisation::default(),
            second: None,
            start: None,
            validation: 0.1,
            split_seed: Seed(0),
            eval_loss: EvalLoss::default(),
            pqr_loss: PqrLoss::default(),
            compact_dead: false,
            threads: 1,
            device: DeviceChoice::Cpu,
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let check = |change: fn(&mut TrainConfig), expected: &str| {
            let mut config = config();
            change(&mut config);
            assert_eq!(config.validate().expect_err("wrong").to_string(), expected);
        };
        config().validate().expect("good");
        check(|c| c.epochs = 0, "epochs must be at least 1");
        check(|c| c.epoch_samples = Some(0), "samples an epoch must be at least 1");
        check(|c| c.threads = 5000, "threads must be at most 1024, not 5000");
        check(|c| c.learning_rate = f64::NAN, "the learning rate must be above 0, not NaN");
        check(|c| c.decay = 1.5, "decay must be above 0 and at most 1, not 1.5");
        check(|c| c.validation = 1.0, "the validation share must lie between 0 and 1, not at 1");
        check(|c| c.eval_loss.lambda = 2.0, "λ lies in 0 to 1, not at 2");
        check(|c| c.scheme = "fancy".into(), "there is no quantisation scheme `fancy`; there are stockfish, simple");
        check(|c| c.hidden = vec![8; 3], "the network's shape is wrong: at most two hidden layers, not 3");
    }

    #[test]
    fn what_changes_nothing_is_refused() {
        let check = |change: fn(&mut TrainConfig), expected: &str| {
            let mut config = config();
            change(&mut config);
            let error = config.validate().expect_err("idle").to_string();
            assert_eq!(error, format!("{expected}; leave it out"));
            config.effective().validate().expect("nothing idle is left");
        };
        check(|c| c.pqr_loss.kappa = 0.5, "kappa (0.5) has no effect: this run does not learn by pqr");
        check(|c| c.eval_loss.epsilon = 5.0, "epsilon (5.0) has no effect: the loss is power");
        check(
            |c| c.eval_loss = EvalLoss { form: LossForm::Epsilon, lambda: 0.5, ..c.eval_loss },
            "lambda (0.5) has no effect: the loss is epsilon",
        );
        check(
            |c| (c.method, c.eval_loss.power) = (Method::Pqr, 2.0),
            "power (2.0) has no effect: this run does not learn by eval",
        );
        check(|c| c.recipe.weight_decay = 0.1, "weight_decay (0.1) has no effect: the optimiser adam has none");
        check(|c| c.recipe.step_epochs = 3, "step_epochs (3) has no effect: the schedule is not step");
        check(
            |c| c.design.bucket_rule = crate::net::BucketRule::Cpw,
            "bucket_rule (\"cpw\") has no effect: there is one bucket",
        );
        let mut both = config();
        both.pqr_loss.kappa = 0.5;
        both.second = Some(SecondMethod {
            method: Method::Pqr,
            data: both.data.clone(),
            from_unit: None,
            source: both.source,
            weight: 1.0,
        });
        both.validate().expect("either method reads its settings");
    }
}
