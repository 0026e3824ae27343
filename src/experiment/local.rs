//! The real workbench: this program's own data, trainer and measures.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::spec::SpeedMeasure;
use super::workbench::{DataFacts, DataRequest, NetRequest, SetFacts, StepError, TrainRequest, Watch, Workbench};
use crate::features::FeatureSet;
use crate::measure::{self, ErrorOptions, SpeedOptions};
use crate::net::{NetFile, load_float};
use crate::pipeline;
use crate::record::{ActivityRecord, ErrorRecord, SpeedRecord, UpdatesRecord};
use crate::train::{EpochMetrics, RunObserver, TrainError, TrainOutcome, TrainingRun};

/// Works in this process; `data` is the cache of built data sets (none = the default one).
#[derive(Clone, Debug, Default)]
pub struct Local {
    pub data: Option<PathBuf>,
}

impl Workbench for Local {
    fn set(&self, request: &str) -> Result<SetFacts, StepError> {
        let set = FeatureSet::resolve(request)?;
        Ok(SetFacts {
            name: set.name().to_owned(),
            identity: set.identity().clone(),
            definition: set.definition().to_string(),
        })
    }

    fn data(&mut self, request: &DataRequest) -> Result<DataFacts, StepError> {
        let samples =
            pipeline::open_or_build_with(&request.source, request.from_unit, &request.options, self.data.as_deref())?;
        let score_unit = samples.header().score_unit;
        Ok(DataFacts { path: samples.path().to_path_buf(), hash: samples.hash(), score_unit })
    }

    fn train(&mut self, request: &TrainRequest<'_>, watch: &mut dyn Watch) -> Result<Option<TrainOutcome>, StepError> {
        let run = TrainingRun { resume: true, ..TrainingRun::new(request.config, &request.folder) };
        match run.train(&mut Watched(watch)) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(TrainError::Interrupted { .. } | TrainError::Stopped) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn updates(&mut self, set: &str, data: &Path, games: Option<u64>) -> Result<UpdatesRecord, StepError> {
        let set = FeatureSet::resolve(set)?;
        Ok(measure::updates(&set, data, games, false)?.0)
    }

    fn activity(&mut self, request: &NetRequest) -> Result<ActivityRecord, StepError> {
        let network = NetFile::load(&request.network)?;
        Ok(measure::activity(&network, &request.data, request.games)?.0)
    }

    fn error(&mut self, request: &NetRequest) -> Result<ErrorRecord, StepError> {
        let network = NetFile::load(&request.network)?;
        let (float, checkpoint) = load_float(&request.weights)?;
        let options = ErrorOptions { limit: request.games, ..ErrorOptions::default() };
        Ok(measure::error(&network, &float, &checkpoint, &request.data, options)?.0)
    }

    fn speed(&mut self, request: &NetRequest, timing: &SpeedMeasure) -> Result<SpeedRecord, StepError> {
        let network = NetFile::load(&request.network)?;
        let default = SpeedOptions::default();
        let options = SpeedOptions {
            repetitions: timing.repetitions.unwrap_or(default.repetitions),
            duration: timing.seconds.map_or(default.duration, Duration::from_secs_f64),
            positions: timing.positions.unwrap_or(default.positions),
        };
        let mut record = measure::speed(&network, &request.data, options, &mut |_| {})?.0;
        record.network = Some(name_of(&request.network));
        Ok(record)
    }
}

/// A network's file and the run's folder it stands in: the same wherever the work folder is.
fn name_of(network: &Path) -> String {
    let parts: Vec<_> = network.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    parts.iter().rev().map(AsRef::as_ref).collect::<Vec<_>>().join("/")
}

/// The trainer's observer on top of the experiment's.
struct Watched<'a>(&'a mut dyn Watch);

impl RunObserver for Watched<'_> {
    fn finished_epoch(&mut self, metrics: &EpochMetrics) {
        self.0.epoch(metrics);
    }

    fn interrupted(&self) -> bool {
        self.0.stop_requested()
    }
}
