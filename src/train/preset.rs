//! The settings that other programs train with, as TOML files with the source of every value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config_checks::as_json;
use super::{TrainConfig, TrainError};
use crate::json::from_value;
use crate::settings::Document;

/// Whose settings.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// nnue-pytorch's defaults.
    Stockfish,
    /// bullet's simple example.
    Bullet,
    /// Lombardo's thesis of 2024.
    Thesis,
}

impl Preset {
    /// The settings as TOML, by the keys of a run's configuration.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Preset::Stockfish => include_str!("presets/stockfish.toml"),
            Preset::Bullet => include_str!("presets/bullet.toml"),
            Preset::Thesis => include_str!("presets/thesis.toml"),
        }
    }

    /// The configuration with the preset's settings, but for keys (`recipe.optimiser`) that were `given`.
    ///
    /// # Errors
    /// Never for the shipped files, which a test reads.
    pub fn apply(self, config: &TrainConfig, given: &dyn Fn(&str) -> bool) -> Result<TrainConfig, TrainError> {
        let broken = |why: String| TrainError::Config(format!("the preset: {why}"));
        let preset = Document::parse(self.text()).map_err(|error| broken(error.to_string()))?;
        let mut document = as_json(config);
        overlay(&mut document, preset.root(), "", given);
        from_value(&document, "").map_err(|error| broken(error.to_string()))
    }
}

/// Puts the values of `preset` into a document.
fn overlay(document: &mut Value, preset: &Value, path: &str, given: &dyn Fn(&str) -> bool) {
    let Some(keys) = preset.as_object() else {
        if !given(path) {
            *document = preset.clone();
        }
        return;
    };
    if !document.is_object() {
        *document = Value::Object(serde_json::Map::new());
    }
    for (key, value) in keys {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if value.is_object() || !given(&path) {
            overlay(&mut document[key.as_str()], value, &path, given);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Method;
    use crate::pipeline::build::Filter;
    use crate::train::{LearningRateSchedule, Optimiser, TrainSettings};

    const ALL: [Preset; 3] = [Preset::Stockfish, Preset::Bullet, Preset::Thesis];

    fn config() -> TrainConfig {
        TrainConfig::new("piece", "games.fsd", Method::Eval, TrainSettings::default())
    }

    /// Every key of a preset is one of the configuration, and its value arrives.
    #[test]
    fn presets_are_configurations() {
        fn check(document: &Value, preset: &Value, path: &str) {
            match preset.as_object() {
                Some(keys) => {
                    keys.iter().for_each(|(key, value)| check(&document[key], value, &format!("{path}.{key}")));
                }
                None if preset.is_number() && preset.as_f64() == Some(0.0) => {
                    assert!(document.is_null() || document.as_f64() == Some(0.0), "{path}: {document}");
                }
                None if preset.is_number() => assert_eq!(document.as_f64(), preset.as_f64(), "{path}"),
                None => assert_eq!(document, preset, "{path}"),
            }
        }
        for preset in ALL {
            let applied = preset.apply(&config(), &|_| false).expect("a preset");
            applied.validate().expect("every setting has an effect");
            check(&as_json(&applied), Document::parse(preset.text()).expect("TOML").root(), "");
        }
    }

    #[test]
    fn given_options_stay() {
        let mut config = config();
        config.settings.batch_size = 512;
        config.settings.eval_loss.lambda = 0.6;
        let given = |key: &str| key == "batch_size" || key == "eval_loss.lambda";
        let applied = Preset::Bullet.apply(&config, &given).expect("a preset");
        assert_eq!((applied.settings.batch_size, applied.settings.eval_loss.lambda), (512, 0.6));
        assert_eq!(applied.settings.eval_loss.score_scale, 400.0);
        assert_eq!(applied.settings.optimisation.optimiser, Optimiser::Adamw);
        assert_eq!(applied.settings.optimisation.schedule, LearningRateSchedule::Step);
        assert_eq!((applied.reading.filter, applied.reading.min_ply), (Some(Filter::Quiet), Some(16)));
    }
}
