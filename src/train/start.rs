//! Where a run begins: the set it trains on, its network's shape and first weights.

use std::path::Path;

use tch::Device;

use super::run_dir::{CHECKPOINT, DEFINITION, RunDir};
use super::stream::Served;
use super::{TrainConfig, TrainError, TrainingRun, device, init};
use crate::features::{Factors, FeatureSet};
use crate::net::{self, FloatNet, NetError, NetFile, Scheme, Shape};

/// Everything a run needs before its folder is touched.
pub struct Ready {
    pub reduced: Reduced,
    pub scheme: Scheme,
    /// Those to be trained.
    pub factors: Option<Factors>,
    pub device: Device,
    /// What a new run begins with; none where one may go on.
    pub network: Option<FloatNet>,
    /// What was done to it.
    pub note: Option<String>,
}

impl Ready {
    /// # Errors
    /// Whatever is wrong with what is asked for, as far as can be known without the data.
    pub fn of(run: &TrainingRun<'_>) -> Result<Ready, TrainError> {
        let config = run.config;
        let scheme = config.scheme()?;
        for task in config.tasks() {
            if !task.data.exists() {
                return Err(TrainError::Config(format!("there is no file {}", task.data.display())));
            }
        }
        let within = |start: &Path| Some(start.parent()?.canonicalize().ok()? == run.folder.canonicalize().ok()?);
        if let Some(start) = config.start.as_deref().filter(|start| run.force && within(start) == Some(true)) {
            let (start, folder) = (start.display(), run.folder.display());
            return Err(TrainError::Config(format!(
                "--force would remove {start}, which the run is to begin with: give another folder than {folder}"
            )));
        }
        let reduced = Reduced::of(config)?;
        reduced.shape(config, &scheme)?;
        let new = !(run.resume && run.folder.join(CHECKPOINT).exists());
        let (network, note) = new.then(|| reduced.network(config, &scheme)).transpose()?.unzip();
        let note = note.flatten();
        let factors = if config.settings.factor() { Factors::of(&reduced.set)? } else { None };
        Ok(Ready { reduced, scheme, factors, device: device::chosen(config.settings.device)?, network, note })
    }
}

/// The set a run trains on: the one asked for, or what is left of it without dead features.
pub struct Reduced {
    pub set: FeatureSet,
    /// Of the features of the set asked for.
    kept: Option<Vec<u32>>,
    /// Number of features of the set asked for.
    whole: u32,
}

impl Reduced {
    /// # Errors
    /// When there is no such set.
    pub fn of(config: &TrainConfig) -> Result<Reduced, TrainError> {
        let set = FeatureSet::resolve(&config.set)?;
        let whole = set.num_features();
        let kept = config.settings.compact_dead.then(|| set.not_dead()).filter(|kept| kept.len() < whole as usize);
        let set = kept.as_ref().map_or(Ok(None), |kept| set.select(kept).map(Some))?.unwrap_or(set);
        Ok(Reduced { set, kept, whole })
    }

    /// How a service is asked for the set: a reduced one by a file in the run's folder.
    ///
    /// # Errors
    /// When that file cannot be written.
    pub fn serve(&self, config: &TrainConfig, folder: &RunDir) -> Result<Served, TrainError> {
        let request = match self.kept {
            None => config.set.clone(),
            Some(_) => {
                folder.write_text(DEFINITION, self.set.definition())?;
                folder.path(DEFINITION).display().to_string()
            }
        };
        Ok(Served { request, identity: self.set.identity().clone() })
    }

    /// The network a new run begins with: what `--start` names, or seeded numbers; and what was done to it.
    ///
    /// # Errors
    /// When the shape is impossible, or what was named cannot be read or is another network.
    pub fn network(&self, config: &TrainConfig, scheme: &Scheme) -> Result<(FloatNet, Option<String>), TrainError> {
        match (&config.start, &self.kept) {
            (Some(start), _) => begun(start, &self.set, &self.shape(config, scheme)?, scheme),
            (None, None) => Ok((init::fresh(&self.shape(config, scheme)?, config.seed), None)),
            (None, Some(kept)) => {
                let whole = Shape { features: self.whole, ..self.shape(config, scheme)? };
                Ok((init::fresh(&whole, config.seed).with_features(kept), None))
            }
        }
    }

    fn shape(&self, config: &TrainConfig, scheme: &Scheme) -> Result<Shape, TrainError> {
        let shape =
            config.settings.shape_options.shape(self.set.num_features(), config.settings.l1, &config.settings.hidden);
        let admitted = shape.and_then(|shape| scheme.admits(&shape).map(|()| shape));
        admitted.map_err(|error| TrainError::Config(error.to_string()))
    }
}

/// The network of a file, of the same set and shape: another run's checkpoint, or integers as good as floats can say them.
/// Where a pawn is another number of internal units there, its output is scaled: centipawns stay what they were.
fn begun(
    path: &Path,
    set: &FeatureSet,
    shape: &Shape,
    scheme: &Scheme,
) -> Result<(FloatNet, Option<String>), TrainError> {
    let (net, origin, pawn) = match net::load_float(path) {
        Ok((net, checkpoint)) => {
            let pawn = checkpoint.training["config"]["pawn"].as_i64().and_then(|pawn| i32::try_from(pawn).ok());
            (net, checkpoint.origin, pawn.unwrap_or(Scheme::stockfish().pawn_value))
        }
        // No checkpoint: a quantised network perhaps. When it is neither, the second error says what it should be.
        Err(NetError::Foreign { .. } | NetError::Container { .. }) => {
            let file = NetFile::load(path)?;
            (file.net.dequantised(), file.origin, file.net.scheme.pawn_value)
        }
        Err(error) => return Err(error.into()),
    };
    origin.expect(set)?;
    if net.shape != *shape {
        let (found, path) = (&net.shape, path.display());
        return Err(TrainError::Config(format!(
            "{path} cannot be gone on from: it is {found}, and {shape} was asked for"
        )));
    }
    if pawn == scheme.pawn_value {
        return Ok((net, None));
    }
    let note = format!(
        "a pawn is {pawn} internal units in {} and {} in this run: its output is scaled, so that centipawns stay what they were",
        path.display(),
        scheme.pawn_value
    );
    Ok((net.with_scaled_output((f64::from(scheme.pawn_value) / f64::from(pawn)) as f32), Some(note)))
}
