//! Executes an experiment's steps in this process, with this program's own data sets, trainer and measures.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::equal_speed::EqualSpeedRequest;
use super::executor::{
    DataRequest, Executor, GenerationRequest, LoopStart, MatchRequest, MatchSetup, NetRequest, PreparedData,
    ResolvedSet, StepError, TrainRequest,
};
use super::local_generation::play_games;
use super::local_match;
use super::runner_options::ExperimentMonitor;
use super::steps::NetworkMeasure;
use crate::data::Fsd;
use crate::features::{Encoder, FeatureSet};
use crate::measure::{self, ScreenGames, ScreenOptions, SpeedOptions};
use crate::net::{NetFile, load_float};
use crate::pipeline::{self, DataOrigin};
use crate::play::BookPart;
use crate::record::{
    CostRatio, EqualSpeedRecord, GeneratedGames, Machine, MatchRecord, ScreenRecord, ScreenedCosts, ShardRecord,
    SpeedRecord, UpdatesRecord, ValidationRecord,
};
use crate::train::{
    EpochMetrics, RunObserver, TrainConfig, TrainError, TrainOutcome, TrainSettings, TrainerChoice, TrainingRun,
    tch_program,
};

/// Positions of the games on which the sets that a search considers are looked at.
const SCREENED_POSITIONS: u64 = 4_000;

/// Executes steps in this process.
#[derive(Clone, Debug, Default)]
pub struct LocalExecutor {
    /// Cache of built data sets; `None` = the default one.
    data_cache: Option<PathBuf>,
    /// The kind of this machine, for the records of times.
    node_type: Option<String>,
    /// Data sets that were opened or built: to find one again, its sources would be read whole.
    prepared: Vec<(DataRequest, PreparedData)>,
    /// The compiled sets: while they are held, the steps do not compile them again.
    sets: RefCell<Vec<Arc<Encoder>>>,
    /// The games on which sets were screened last.
    screened: Option<(PathBuf, Arc<ScreenGames>)>,
}

impl Executor for LocalExecutor {
    fn resolve_set(&self, request: &str) -> Result<ResolvedSet, StepError> {
        let set = FeatureSet::resolve(request)?;
        let mut sets = self.sets.borrow_mut();
        if !sets.iter().any(|known| Arc::ptr_eq(known, set.encoder())) {
            sets.push(Arc::clone(set.encoder()));
        }
        Ok(ResolvedSet {
            name: set.name().to_owned(),
            about: set.about().map(str::to_owned),
            identity: set.identity().clone(),
            encoder: set.encoder_kind(),
            definition: set.definition().to_string(),
        })
    }

    fn check_trainer(&self, settings: &TrainSettings) -> Result<(), StepError> {
        if settings.trainer() == Some(TrainerChoice::Tch) {
            tch_program::find(&std::env::current_exe()?)?;
        }
        Ok(())
    }

    fn prepare_data(&mut self, request: &DataRequest) -> Result<PreparedData, StepError> {
        let is_there = |data: &PreparedData| {
            Fsd::open_for_unchecked(&data.path, request.options.method).is_ok_and(|file| file.hash() == data.hash)
        };
        self.prepared.retain(|(known, data)| known != request || is_there(data));
        if let Some((_, data)) = self.prepared.iter().find(|(known, _)| known == request) {
            return Ok(data.clone());
        }
        // A `.fsd` file that is used as it is is not checked here: each step checks the samples that it uses.
        let cache = self.data_cache.as_deref();
        let opened = pipeline::open_unchecked_or_build(&request.inputs, &request.options, cache, &mut |_| {})?;
        if opened.origin == DataOrigin::Input {
            pipeline::check_applied(opened.file.path(), &request.options).map_err(pipeline::BuildError::from)?;
        }
        let samples = opened.file;
        let score_unit = samples.header().score_unit;
        let data = PreparedData { path: samples.path().to_path_buf(), hash: samples.hash(), score_unit };
        self.prepared.push((request.clone(), data.clone()));
        Ok(data)
    }

    fn starting_network(&mut self, config: &TrainConfig, path: Option<&Path>) -> Result<LoopStart, StepError> {
        let (file, has_shape) = config.starting_network()?;
        if let Some(path) = path {
            file.save(path)?;
        }
        Ok(LoopStart { set: file.origin.name, has_shape })
    }

    fn generate(
        &mut self,
        request: &GenerationRequest<'_>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<GeneratedGames>, StepError> {
        play_games(request, monitor)
    }

    fn train(
        &mut self,
        request: &TrainRequest<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<TrainOutcome>, StepError> {
        let run = TrainingRun { resume: true, ..TrainingRun::new(request.config, &request.folder) };
        match run.train(&mut TrainingObserver { monitor, epochs: request.config.settings.epochs }) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(TrainError::Interrupted { .. } | TrainError::Stopped) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn validation(&mut self, request: &TrainRequest<'_>) -> Result<ValidationRecord, StepError> {
        let run = TrainingRun::new(request.config, &request.folder);
        Ok(measure::validation(&run, &|| false)?)
    }

    fn screen(
        &mut self,
        sets: &[&str],
        data: &Path,
        limits: ScreenOptions,
        l1: usize,
    ) -> Result<Vec<ScreenRecord>, StepError> {
        Ok(self.screen_games(data)?.screen(sets, l1, &limits)?)
    }

    fn screened_costs(&mut self, sets: &[&str], data: &Path) -> Result<Vec<ScreenedCosts>, StepError> {
        Ok(self.screen_games(data)?.costs(sets)?)
    }

    fn updates(&mut self, set: &str, data: &Path, games: Option<u64>) -> Result<UpdatesRecord, StepError> {
        let set = FeatureSet::resolve(set)?;
        Ok(measure::updates(&set, data, games, false)?.0)
    }

    fn measure_network(&mut self, measure: &NetworkMeasure, request: &NetRequest) -> Result<Value, StepError> {
        (measure.measure)(request)
    }

    fn row_importance(&mut self, request: &NetRequest) -> Result<Vec<f64>, StepError> {
        Ok(self.screen_games(&request.data)?.importance(&request.load()?)?)
    }

    fn king_buckets(&mut self, request: &NetRequest, counts: &[usize]) -> Result<Vec<Vec<i32>>, StepError> {
        let (net, checkpoint) = load_float(&request.weights)?;
        let set = checkpoint.origin.feature_set()?;
        let (frequencies, _) = measure::frequencies(&set, &request.data, request.games)?;
        let squares = measure::king_square_rows(&set, &net, &frequencies)?;
        Ok(counts.iter().map(|count| measure::merged_king_buckets(&squares, *count).to_vec()).collect())
    }

    fn speed(
        &mut self,
        request: &NetRequest,
        beside: Option<&Path>,
        timing: SpeedOptions,
    ) -> Result<SpeedRecord, StepError> {
        let beside = beside.map(NetFile::load).transpose()?;
        let mut record = measure::speed(&request.load()?, &request.data, timing, beside.as_ref(), &mut |_| {})?.0;
        record.network = Some(short_name(&request.network));
        self.name_machine(record.machine.as_mut());
        Ok(record)
    }

    fn equal_speed(&mut self, request: &EqualSpeedRequest<'_>) -> Result<EqualSpeedRecord, StepError> {
        let [network, reference] = [NetFile::load(request.network)?, NetFile::load(request.reference)?];
        let measure = if request.is_search { measure::equal_speed } else { measure::relative_speed };
        let mut record = measure(&network, &reference, request.data, request.options, request.own)?;
        self.name_machine(Some(&mut record.machine));
        Ok(record)
    }

    fn match_setup(
        &self,
        openings: Option<&Path>,
        plies: Option<u16>,
        part: Option<BookPart>,
    ) -> Result<MatchSetup, StepError> {
        local_match::match_setup(openings, plies, part)
    }

    fn match_cost(
        &mut self,
        request: &MatchRequest<'_>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<CostRatio>, StepError> {
        let mut cost = local_match::match_cost(request, monitor)?;
        self.name_machine(cost.as_mut().and_then(|cost| cost.machine.as_mut()));
        Ok(cost)
    }

    fn play_shard(
        &mut self,
        request: &MatchRequest<'_>,
        pairs: Range<u64>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<ShardRecord>, StepError> {
        local_match::play_shard(request, pairs, monitor)
    }

    fn play(
        &mut self,
        request: &MatchRequest<'_>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<MatchRecord>, StepError> {
        let mut record = local_match::play(request, monitor)?;
        self.name_machine(record.as_mut().map(|record| &mut record.machine));
        Ok(record)
    }
}

impl LocalExecutor {
    /// `data_cache`: the folder of built data sets; `None` = the default one. `node_type`: the kind of this machine,
    /// for the records of times.
    #[must_use]
    pub const fn new(data_cache: Option<PathBuf>, node_type: Option<String>) -> LocalExecutor {
        LocalExecutor { data_cache, node_type, prepared: Vec::new(), sets: RefCell::new(Vec::new()), screened: None }
    }

    /// The games on which sets are screened, which are read once.
    fn screen_games(&mut self, data: &Path) -> Result<Arc<ScreenGames>, StepError> {
        if let Some((_, games)) = self.screened.as_ref().filter(|(path, _)| path == data) {
            return Ok(Arc::clone(games));
        }
        let games = Arc::new(ScreenGames::read(data, SCREENED_POSITIONS)?);
        self.screened = Some((data.to_path_buf(), Arc::clone(&games)));
        Ok(games)
    }

    fn name_machine(&self, machine: Option<&mut Machine>) {
        if let Some(machine) = machine {
            machine.node_type.clone_from(&self.node_type);
        }
    }
}

/// The names of a network's file and of its run's folder, which do not depend on where the work folder is.
fn short_name(network: &Path) -> String {
    let names: Vec<_> = network.iter().rev().take(2).map(|name| name.to_string_lossy()).collect();
    names.iter().rev().map(AsRef::as_ref).collect::<Vec<_>>().join("/")
}

/// Reports a training to the experiment's monitor.
struct TrainingObserver<'a> {
    monitor: &'a mut dyn ExperimentMonitor,
    epochs: u32,
}

impl RunObserver for TrainingObserver<'_> {
    fn finished_epoch(&mut self, metrics: &EpochMetrics) {
        self.monitor.epoch(metrics, self.epochs);
    }

    fn interrupted(&self) -> bool {
        self.monitor.stop_requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Method;
    use crate::pipeline::{BuildOptions, WeightedInput};

    #[test]
    fn a_data_set_is_looked_for_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let games = folder.path().join("games.pgn");
        std::fs::write(&games, "1. e4 { [%eval 0.2] } e5 { [%eval 0.3] } 2. Nf3 { [%eval 0.2] } 1-0\n")
            .expect("written");
        let options = BuildOptions::new(Method::Eval);
        let request = DataRequest { inputs: vec![WeightedInput::file(&games)], options };
        let mut executor = LocalExecutor::new(Some(folder.path().join("cache")), None);
        let built = executor.prepare_data(&request).expect("samples");
        std::fs::remove_file(&games).expect("removed");
        assert_eq!(executor.prepare_data(&request).expect("the same samples").hash, built.hash);
        // Samples that are gone are looked for again.
        std::fs::remove_file(&built.path).expect("removed");
        assert!(executor.prepare_data(&request).is_err());
    }
}
