//! The results of several experiments as if they were one.

use serde_json::{Map, Value};

use super::{PlannedRow, Results, RunKey};
use crate::units::Seed;

impl Results {
    /// The rows of several experiments in one comparison, with everything that was measured of them; `None` without
    /// experiments. Rows of one label with the same definition, data and settings are one row, with the seeds of both;
    /// results that are there twice are taken from the first. Rows of one label that differ get their experiment's name
    /// before it.
    #[must_use]
    pub fn joined(all: Vec<Results>) -> Option<Results> {
        let mut all = all.into_iter();
        let mut joined = all.next()?;
        for other in all {
            joined.add(other);
        }
        Some(joined)
    }

    fn add(&mut self, mut other: Results) {
        // Curves of one comparison need the same shares.
        let shares = |results: &Results| results.study.scaling.clone().map(|scaling| (scaling.shares, scaling.by));
        if shares(self) != shares(&other) {
            self.drop_shares();
            other.drop_shares();
        }
        let same_setting = self.study.data == other.study.data && self.study.train == other.study.train;
        let mut renamed: Vec<String> = Vec::new();
        for row in std::mem::take(&mut other.study.rows) {
            let own = self.study.rows.iter_mut().find(|own| (&own.set, own.method) == (&row.set, row.method));
            match own {
                Some(own) if same_setting && has_same_settings(own, &row) => {
                    other.drop_seeds(&row, &own.seeds);
                    own.seeds
                        .extend(row.seeds.iter().filter(|seed| !own.seeds.contains(seed)).copied().collect::<Vec<_>>());
                }
                Some(_) => {
                    if !renamed.contains(&row.set) {
                        renamed.push(row.set.clone());
                    }
                    other.study.rows.push(row);
                }
                None => other.study.rows.push(row),
            }
        }
        let names = [self.study.name.clone(), other.study.name.clone()];
        for label in renamed {
            self.rename(&label, &names[0]);
            other.rename(&label, &names[1]);
        }
        let common = common_settings(&self.study.train, &other.study.train);
        for study in [&mut self.study, &mut other.study] {
            study.rows.iter_mut().for_each(|row| row.keep_other_settings(&study.train, &common));
            study.train = common.clone();
        }
        self.study.rows.append(&mut other.study.rows);
        self.study.name = format!("{} + {}", names[0], names[1]);
        self.study.about = [self.study.about.as_str(), other.study.about.as_str()].join("; ");
        if self.study.data != other.study.data {
            self.study.data = format!("{}; {}", self.study.data, other.study.data);
        }
        match (&mut self.study.published, other.study.published) {
            (Some(own), Some(others)) => {
                own.source = if own.source == others.source {
                    others.source
                } else {
                    format!("{}; {}", own.source, others.source)
                };
                own.loss.extend(others.loss);
                own.elo.extend(others.elo);
            }
            (own, others) => *own = own.take().or(others),
        }
        self.runs.append(&mut other.runs);
        self.updates.append(&mut other.updates);
        self.validation.append(&mut other.validation);
        self.networks.append(other.networks);
        self.speed.append(&mut other.speed);
        self.equal_speed.append(&mut other.equal_speed);
        self.matches.append(&mut other.matches);
        let own = &mut self.environment;
        let others = other.environment;
        own.recorded = own.recorded.clone().max(others.recorded);
        if own.cpu != others.cpu {
            own.cpu = format!("{}; {}", own.cpu, others.cpu);
        }
        own.seconds = own.seconds.plus(others.seconds);
    }

    /// The labels in run keys of a row's networks: its own, and those of trainings on shares of the data.
    fn labels_of(&self, row: &str) -> Vec<String> {
        self.study.scaling.as_ref().map_or_else(|| vec![row.to_owned()], |scaling| scaling.labels(row))
    }

    /// Removes the trainings on shares of the data.
    fn drop_shares(&mut self) {
        self.study.scaling = None;
        let rows = &self.study.rows;
        let is_row = |key: &RunKey| rows.iter().any(|row| row.set == key.set);
        self.runs.retain(|run| is_row(&run.key));
        self.validation.retain(|result| is_row(&result.key));
    }

    /// Removes everything that was measured of a row's networks of some seeds, and of its set.
    fn drop_seeds(&mut self, row: &PlannedRow, seeds: &[Seed]) {
        let labels = self.labels_of(&row.set);
        let is_other =
            |key: &RunKey| !labels.contains(&key.set) || key.method != row.method || !seeds.contains(&key.seed);
        self.runs.retain(|run| is_other(&run.key));
        self.updates.retain(|result| result.set != row.set);
        self.validation.retain(|result| is_other(&result.key));
        self.networks.retain(&is_other);
        self.speed.retain(|result| is_other(&result.key));
        self.equal_speed.retain(|result| is_other(&result.key));
        self.matches.retain(|result| is_other(&result.key));
    }

    /// Puts a name before a label, wherever it occurs.
    fn rename(&mut self, label: &str, name: &str) {
        let labels = self.labels_of(label);
        let mut renamed = Vec::new();
        for row in &mut self.study.rows {
            if let (Some(own), true) = (&mut row.name, row.set == label) {
                *own = format!("{name}: {own}");
            }
            renamed.push(&mut row.set);
            renamed.extend(row.equal_speed.as_mut().map(|own| &mut own.repeats));
        }
        renamed.extend(self.runs.iter_mut().map(|run| &mut run.key.set));
        renamed.extend(self.updates.iter_mut().map(|result| &mut result.set));
        renamed.extend(self.validation.iter_mut().map(|result| &mut result.key.set));
        renamed.extend(self.networks.keys_mut().map(|key| &mut key.set));
        renamed.extend(self.speed.iter_mut().map(|result| &mut result.key.set));
        renamed.extend(self.equal_speed.iter_mut().map(|result| &mut result.key.set));
        renamed.extend(self.matches.iter_mut().flat_map(|result| [&mut result.key.set, &mut result.reference]));
        for set in renamed.into_iter().filter(|set| labels.contains(set)) {
            *set = format!("{name}: {set}");
        }
    }
}

/// The training settings that two experiments share.
fn common_settings(own: &Value, other: &Value) -> Value {
    let shared = own.as_object().into_iter().flatten().filter(|(key, value)| other.get(key) == Some(value));
    Value::Object(shared.map(|(key, value)| (key.clone(), value.clone())).collect())
}

impl PlannedRow {
    /// Makes its experiment's settings that are not `common` the row's own.
    fn keep_other_settings(&mut self, experiment: &Value, common: &Value) {
        let others = experiment.as_object().into_iter().flatten().filter(|(key, _)| common.get(key).is_none());
        let others = others.map(|(key, value)| (key.clone(), value.clone()));
        let mut settings: Map<String, Value> = others.collect();
        let own = self.train.take().and_then(|train| train.as_object().cloned()).unwrap_or_default();
        settings.extend(own);
        self.train = (!settings.is_empty()).then_some(settings.into());
    }
}

/// Whether two rows of one label are trained alike, but for their seeds.
fn has_same_settings(own: &PlannedRow, other: &PlannedRow) -> bool {
    (&own.definition, &own.group, &own.train, own.own) == (&other.definition, &other.group, &other.train, other.own)
}
