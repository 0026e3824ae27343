//! The start of a run: the feature set it trains on, and the shape and initial weights of its network.

use std::path::Path;

use super::run_dir::{CHECKPOINT, DEFINITION, RunDir};
use super::stream::{ServedSet, training_boards};
use super::{TrainConfig, TrainError, TrainSettings, TrainingRun, init};
use crate::chess::Board;
use crate::features::{Factors, FeatureSet, StartingRows, lifting, merging};
use crate::net::{self, FloatNet, NetError, NetFile, Scheme, Shape};

/// Positions on which features are counted where rows of another set's network merge.
const COUNTED_BOARDS: usize = 1 << 14;

/// Everything that is prepared before the run's directory is touched.
pub struct PreparedRun {
    pub trained_set: TrainedSet,
    pub scheme: Scheme,
    /// The factors to be trained.
    pub factors: Option<Factors>,
    /// The initial network of a new run; `None` if a run may be continued.
    pub network: Option<FloatNet>,
    /// A message about changes to that network.
    pub note: Option<String>,
}

impl PreparedRun {
    /// # Errors
    /// If the request is wrong, as far as that can be known without reading the data.
    pub fn prepare(run: &TrainingRun<'_>) -> Result<PreparedRun, TrainError> {
        let config = run.config;
        let scheme = config.scheme()?;
        for task in config.tasks() {
            if let Some(missing) = task.data.iter().find(|file| !file.exists()) {
                return Err(TrainError::Config(format!("there is no file {}", missing.display())));
            }
        }
        let in_run_dir = |start: &Path| Some(start.parent()?.canonicalize().ok()? == run.folder.canonicalize().ok()?);
        if let Some(start) = config.start.as_deref().filter(|start| run.force && in_run_dir(start) == Some(true)) {
            let start = start.display();
            let folder = run.folder.display();
            return Err(TrainError::Config(format!(
                "--force would remove {start}, with which the run is to begin; give another directory than {folder}"
            )));
        }
        let trained_set = TrainedSet::resolve(config)?;
        trained_set.shape(config, &scheme)?;
        let new = !(run.resume && run.folder.join(CHECKPOINT).exists());
        let mut network = None;
        let mut note = None;
        if new {
            let (initial, changes) = trained_set.initial_network(config, &scheme)?;
            network = Some(initial);
            note = changes;
        }
        let factors = if config.settings.factor() { Factors::of(&trained_set.set)? } else { None };
        Ok(PreparedRun { trained_set, scheme, factors, network, note })
    }
}

/// The set that a run trains on: the requested one, perhaps without its dead features.
pub struct TrainedSet {
    pub set: FeatureSet,
    /// The features that are kept of the requested set; `None`: all.
    selection: Option<Vec<u32>>,
    /// Number of features of the requested set.
    requested_features: u32,
}

impl TrainedSet {
    /// # Errors
    /// If there is no such set.
    pub fn resolve(config: &TrainConfig) -> Result<TrainedSet, TrainError> {
        let set = FeatureSet::resolve(&config.set)?;
        let requested_features = set.num_features();
        let selection = config.settings.compact_dead.then(|| set.not_dead());
        let selection = selection.filter(|kept| kept.len() < requested_features as usize);
        let set = selection.as_ref().map_or(Ok(None), |kept| set.select(kept).map(Some))?.unwrap_or(set);
        Ok(TrainedSet { set, selection, requested_features })
    }

    /// The set as the samples service shall serve it; without dead features, by a file in the run's directory.
    ///
    /// # Errors
    /// If that file cannot be written.
    pub fn for_service(&self, config: &TrainConfig, folder: &RunDir) -> Result<ServedSet, TrainError> {
        let request = match (&self.selection, config.settings.shape_options.bucket_rule.expression()) {
            (None, None) => config.set.clone(),
            // A rule reads tables, which the set's identity does not cover: the file may have changed since.
            _ => {
                folder.write_text(DEFINITION, self.set.definition())?;
                folder.path(DEFINITION).display().to_string()
            }
        };
        Ok(ServedSet { request, identity: self.set.identity().clone() })
    }

    /// The initial network of a new run, from `--start` or random, and a message about changes to it.
    ///
    /// # Errors
    /// If the shape is impossible, or the file of `--start` cannot be read or holds a network of another set or shape.
    pub fn initial_network(
        &self,
        config: &TrainConfig,
        scheme: &Scheme,
    ) -> Result<(FloatNet, Option<String>), TrainError> {
        match (&config.start, &self.selection) {
            (Some(start), _) => {
                let boards = || training_boards(config, COUNTED_BOARDS);
                load_start(start, &self.set, &self.shape(config, scheme)?, scheme, &boards)
            }
            (None, None) => Ok((init::random_network(&self.shape(config, scheme)?, config.seed), None)),
            (None, Some(kept)) => {
                // Each kept feature has the same weights as without the selection.
                let requested = Shape { features: self.requested_features, ..self.shape(config, scheme)? };
                Ok((init::random_network(&requested, config.seed).with_features(kept), None))
            }
        }
    }

    pub(super) fn shape(&self, config: &TrainConfig, scheme: &Scheme) -> Result<Shape, TrainError> {
        let TrainSettings { l1, hidden, shape_options, .. } = &config.settings;
        let options = shape_options.for_set(&self.set);
        let shape = options.and_then(|options| options.shape(self.set.num_features(), *l1, hidden));
        let admitted = shape.and_then(|shape| scheme.admits(&shape).map(|()| shape));
        admitted.map_err(|error| TrainError::Network(error.to_string()))
    }
}

/// The network of a checkpoint or, dequantised, of a quantised network, which must have the same shape. The rows of
/// another set's network become those of `set`; `boards` are some of the training data. If it has another pawn value, its output is scaled. Its scores in centipawns stay
/// the same. The second result describes the changes.
fn load_start(
    path: &Path,
    set: &FeatureSet,
    shape: &Shape,
    scheme: &Scheme,
    boards: &dyn Fn() -> Result<Vec<Board>, TrainError>,
) -> Result<(FloatNet, Option<String>), TrainError> {
    let (net, origin, pawn) = match net::load_float(path) {
        Ok((net, checkpoint)) => {
            let pawn = checkpoint.training["config"]["pawn"].as_i64().and_then(|pawn| i32::try_from(pawn).ok());
            (net, checkpoint.origin, pawn.unwrap_or(Scheme::stockfish().pawn_value))
        }
        // Not a checkpoint, but perhaps a quantised network. If it is neither, the second error names the expected
        // form.
        Err(NetError::Foreign { .. } | NetError::Container { .. }) => {
            let file = NetFile::load(path)?;
            (file.net.dequantised(), file.origin, file.net.scheme.pawn_value)
        }
        Err(error) => return Err(error.into()),
    };
    let mismatch = |found: &Shape| {
        TrainError::Network(format!(
            "{} cannot be continued from: it is {found}, and {shape} was asked for; ask for its widths and layers, as by \
             --l1 {}",
            path.display(),
            found.l1
        ))
    };
    // Before rows are made for the set, so that the file's own shape is named.
    let same_rows = Shape { features: shape.features, narrow: shape.narrow, ..net.shape.clone() };
    if same_rows != *shape {
        return Err(mismatch(&net.shape));
    }
    let (mut net, changed) = match origin.expect(set) {
        Ok(()) => (net, None),
        Err(other) => {
            let old = origin.feature_set().map_err(|_| other)?;
            let (rows, note) = rows_from(path, set, &old, boards)?;
            (net.with_rows(&rows), Some(note))
        }
    };
    // The first step brings the rows within their limits.
    net.shape.narrow = shape.narrow;
    if net.shape != *shape {
        return Err(mismatch(&net.shape));
    }
    let rule = &shape.buckets.rule;
    if rule.expression().is_some() && !origin.feature_set().is_ok_and(|stored| rule.is_same_for(&stored, set)) {
        return Err(TrainError::Network(format!(
            "{} cannot be continued from: its output buckets go by other bucket tables or another orientation",
            path.display()
        )));
    }
    if pawn == scheme.pawn_value {
        return Ok((net, changed));
    }
    let scaled = format!(
        "a pawn is {pawn} internal units in {} and {} in this run: the output is scaled, so that scores in centipawns \
         stay the same",
        path.display(),
        scheme.pawn_value
    );
    let note = changed.map_or_else(|| scaled.clone(), |changed| format!("{changed}; {scaled}"));
    let factor = f64::from(scheme.pawn_value) / f64::from(pawn);
    let scaled = net.with_scaled_output(factor as f32).map_err(|error| TrainError::Network(error.to_string()))?;
    Ok((scaled, Some(note)))
}

/// The rows with which a network on `set` starts from one on `old`, the network of `path`, and a message about them.
fn rows_from(
    path: &Path,
    set: &FeatureSet,
    old: &FeatureSet,
    boards: &dyn Fn() -> Result<Vec<Board>, TrainError>,
) -> Result<(StartingRows, String), TrainError> {
    let [from, to] = [old.name(), set.name()];
    let path = path.display();
    let refined = match lifting(set, old) {
        Ok(rows) => {
            let note = format!("the rows of `{from}` in {path} start those of `{to}`: every score stays the same");
            return Ok((StartingRows::from(&rows), note));
        }
        Err(why) => why,
    };
    let rows = merging(set, old, &boards()?).map_err(|error| {
        TrainError::Network(format!("{path} is a network on `{from}`, which cannot start one on `{to}`: {error}"))
    })?;
    let note = format!(
        "averages of the rows of `{from}` in {path}, by how often they are active in the training samples, start those \
         of `{to}`, and scores change: {refined}"
    );
    Ok((rows, note))
}
