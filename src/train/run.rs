//! A training run, from its start or last checkpoint to its outcome.

mod average;
mod export;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::checkpoint::{self, DataMatch, RunProgress, ValidationState};
use super::cpu_trainer::CpuTrainer;
use super::objective::{Objective, ValidationResult};
use super::run_dir::{BEST, CHECKPOINT, CONFIG, DATA, EVENTS, LOSSES, NETWORK, OUTCOME, RunDir};
use super::start::{PreparedRun, TrainedSet};
use super::stream::{ServedSet, StopCheck};
use super::trainer::{
    MakeTrainer, StepLosses, Sums, Trainer, TrainerSetup, TrainingRules, TrainingState, WeightedBatch,
};
use super::weight_average::WeightAverage;
use super::{
    EpochMetrics, RunObserver, RunOverview, SecondMetrics, StepMetrics, TrainConfig, TrainError, TrainOutcome,
    TrainerChoice, TrainingRun, events, histogram, tch_program,
};
use crate::data::content_hash;
use crate::features::{Factors, FeatureSet};
use crate::net::{FloatNet, NetFile, Origin, Scheme};
use crate::service::{ServiceError, check_plies, check_validation};
use crate::system;

impl TrainingRun<'_> {
    /// Trains with the trainer that the settings name or leave to `auto`, and writes the files listed in
    /// [`run_dir`](super::run_dir).
    ///
    /// # Errors
    /// See [`TrainError`]. In any case the directory holds only complete files, and the run can be resumed.
    pub fn train(&self, observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        self.config.validate()?;
        match self.config.settings.trainer() {
            Some(TrainerChoice::Kernels) => self.train_with(&CpuTrainer::of_run, observer),
            Some(TrainerChoice::Tch) => tch_program::train(self, self.config.settings.device, observer),
            None => self.train_by_auto(observer),
        }
    }

    /// As [`TrainingRun::train`], with a trainer of this process.
    ///
    /// # Errors
    /// As [`TrainingRun::train`].
    pub fn train_with(
        &self,
        make_trainer: &MakeTrainer<'_>,
        observer: &mut dyn RunObserver,
    ) -> Result<TrainOutcome, TrainError> {
        self.config.validate()?;
        let config = &self.config.with_score_units().map_err(ServiceError::from)?.with_start_hash();
        TrainingRun { config, ..*self }.run(make_trainer, observer)
    }

    fn run(&self, make_trainer: &MakeTrainer<'_>, observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        let config = self.config;
        // Wrong requests are refused before anything in the directory is touched.
        let prepared = PreparedRun::prepare(self)?;
        for task in config.tasks() {
            check_validation(task.data, config.settings.validation, config.settings.split_seed)?;
            if let Some(option) = config.settings.skip.needs_plies() {
                check_plies(task.data, option)?;
            }
        }
        prepared.note.iter().for_each(|note| observer.note(note));
        let run_dir = if self.resume { RunDir::open(self.folder)? } else { RunDir::create(self.folder, self.force)? };
        let hashes = content_hashes(config)?;
        let data_match = compare_data(&run_dir, &hashes)?;
        if let Some(outcome) = finished_outcome(&run_dir, config, &prepared.trained_set.set, data_match)? {
            return Ok(outcome);
        }
        system::keep_freed_memory();
        let stop = || observer.interrupted();
        let session = Session::open(self, prepared, run_dir, make_trainer, &stop, (data_match, &hashes))?;
        session.train(observer)
    }

    /// The program that serves samples.
    pub(super) fn program(&self) -> Result<PathBuf, TrainError> {
        match self.service {
            Some(program) => Ok(program.to_path_buf()),
            None => std::env::current_exe().map_err(TrainError::io("cannot find", "this program")),
        }
    }
}

impl TrainConfig {
    /// The same run with the hash of the network to start from, if its file can be read: a run that continues may have
    /// lost it.
    #[must_use]
    fn with_start_hash(self) -> TrainConfig {
        let start_hash = self.start.as_deref().and_then(|start| content_hash(start).ok());
        TrainConfig { start_hash, ..self }
    }
}

/// A hash of the contents of each file of each method's data.
type ContentHashes = Vec<String>;

fn content_hashes(config: &TrainConfig) -> Result<ContentHashes, TrainError> {
    let tasks = config.tasks();
    let files = tasks.iter().flat_map(|task| task.data.iter());
    files.map(|file| Ok(content_hash(file).map_err(ServiceError::from)?)).collect()
}

fn compare_data(run_dir: &RunDir, hashes: &ContentHashes) -> Result<DataMatch, TrainError> {
    Ok(match run_dir.read_json::<ContentHashes>(DATA)? {
        None => DataMatch::Unknown,
        Some(recorded) if recorded == *hashes => DataMatch::Same,
        Some(_) => DataMatch::Changed,
    })
}

/// The outcome of the run in the directory, if it is the requested one and finished.
fn finished_outcome(
    run_dir: &RunDir,
    config: &TrainConfig,
    set: &FeatureSet,
    data_match: DataMatch,
) -> Result<Option<TrainOutcome>, TrainError> {
    let Some(outcome) = run_dir.read_json::<TrainOutcome>(OUTCOME)? else { return Ok(None) };
    let rule = &config.settings.shape_options.bucket_rule;
    let stored_set = || NetFile::load(&run_dir.path(NETWORK))?.origin.feature_set();
    let same = outcome.identity == *set.identity()
        && checkpoint::check_same_run(&outcome.config, config, data_match).is_ok()
        && (rule.expression().is_none() || stored_set().is_ok_and(|stored| rule.is_same_for(&stored, set)));
    // Otherwise the checkpoint decides whether the run is continued or refused.
    Ok((same && outcome.config.settings.epochs == config.settings.epochs).then_some(outcome))
}

/// A run in progress.
struct Session<'a> {
    config: &'a TrainConfig,
    set: FeatureSet,
    served: ServedSet,
    origin: Origin,
    scheme: Scheme,
    run_dir: RunDir,
    program: PathBuf,
    trainer: Box<dyn Trainer>,
    /// The first method and, if there is one, the second.
    objectives: Vec<Objective<'a>>,
    progress: RunProgress,
    /// Of the weights over the last part of the run so far.
    average: Option<WeightAverage>,
    metrics: Vec<EpochMetrics>,
    checkpoint_every: Duration,
    saved: Instant,
    /// Steps of the last checkpoint, if there is one.
    saved_step: Option<u64>,
}

/// The state of a new run; `network` is the initial network if it is known already.
fn first_state(
    config: &TrainConfig,
    set: &TrainedSet,
    scheme: &Scheme,
    network: Option<FloatNet>,
    factors: Option<Factors>,
) -> Result<TrainingState, TrainError> {
    let network = match network {
        Some(network) => network,
        None => set.initial_network(config, scheme)?.0,
    };
    Ok(TrainingState::new(network, factors, config.settings.optimisation.optimiser))
}

impl<'a> Session<'a> {
    fn open(
        run: &TrainingRun<'a>,
        prepared: PreparedRun,
        run_dir: RunDir,
        make_trainer: &MakeTrainer<'_>,
        stop: StopCheck<'_>,
        (data_match, hashes): (DataMatch, &ContentHashes),
    ) -> Result<Session<'a>, TrainError> {
        let config = run.config;
        let program = run.program()?;
        let path = run_dir.path(CHECKPOINT);
        let factors_hash = prepared.factors.as_ref().map(Factors::hash);
        let stored = if path.exists() {
            let set = &prepared.trained_set.set;
            let factors = prepared.factors.as_ref();
            Some(checkpoint::load(&path, set, factors, config, data_match)?)
        } else {
            None
        };
        if let Some(recorded) = run_dir.read_json::<TrainConfig>(CONFIG)? {
            let mismatch = |why| TrainError::Mismatch { checkpoint: run_dir.path(CONFIG), why };
            checkpoint::check_same_run(&recorded, config, data_match).map_err(mismatch)?;
        }
        let PreparedRun { trained_set, scheme, factors, network, .. } = prepared;
        let (state, progress) = match stored {
            Some((state, progress)) => (state, Some(progress)),
            None => (first_state(config, &trained_set, &scheme, network, factors)?, None),
        };
        let average = match &progress {
            Some(progress) => checkpoint::load_average(&path, &state.net, progress)?,
            None => None,
        };
        let start = state.step;
        let saved_step = progress.as_ref().map(|progress| progress.step);
        let rules = TrainingRules::of(&config.settings, scheme.clone());
        let set = &trained_set.set;
        let trainer = make_trainer(TrainerSetup { state, rules, set, threads: config.settings.threads() })?;
        // The outcome marks a finished run, and this one goes on.
        run_dir.remove(OUTCOME)?;
        let served = trained_set.for_service(config, &run_dir)?;
        let tasks = config.tasks().into_iter();
        let objectives = tasks.map(|task| Objective::open(&program, config, task, &served, start, stop));
        let objectives = objectives.collect::<Result<Vec<_>, TrainError>>()?;
        let descriptions: Vec<_> = objectives.iter().map(|objective| objective.training.description()).collect();
        let new_progress = RunProgress::new(config, factors_hash, descriptions[0], descriptions.get(1).copied());
        let progress = match progress {
            Some(progress) => {
                progress
                    .check_same_data(&new_progress)
                    .map_err(|why| TrainError::Mismatch { checkpoint: path, why })?;
                RunProgress { config: config.clone(), ..progress }
            }
            None => new_progress,
        };
        let metrics = run_dir.truncate_metrics(progress.epochs)?;
        run_dir.write_json(CONFIG, config)?;
        run_dir.write_json(DATA, hashes)?;
        Ok(Session {
            config,
            origin: Origin::of(&trained_set.set),
            set: trained_set.set,
            served,
            scheme,
            run_dir,
            program,
            trainer,
            objectives,
            progress,
            average,
            metrics,
            checkpoint_every: run.checkpoint_every,
            saved: Instant::now(),
            saved_step,
        })
    }

    /// Trains the remaining epochs.
    fn train(mut self, observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        let parameters = self.trainer.state()?.net.parameters();
        let positions = |objective: &Objective<'_>| objective.training.description().positions_per_sample;
        observer.started(&RunOverview {
            folder: self.run_dir.root().into(),
            set: self.set.name().into(),
            features: self.set.num_features(),
            parameters,
            epochs: self.config.settings.epochs,
            steps_per_epoch: self.progress.steps_per_epoch,
            samples_per_epoch: self.progress.samples_per_epoch,
            positions_per_sample: self.objectives.iter().map(positions).sum(),
            steps_done: self.progress.step,
            gpu: self.trainer.gpu().map(str::to_owned),
        });
        while self.progress.epochs < self.config.settings.epochs {
            let metrics = match self.epoch(observer) {
                Ok(metrics) => metrics,
                // An interrupted validation is repeated when the run is resumed.
                Err(TrainError::Stopped) => return Err(self.interrupted(observer)?),
                // The signal that ends this process may end its service too.
                Err(TrainError::Service(_)) if observer.interrupted() => return Err(self.interrupted(observer)?),
                Err(TrainError::Device { library, why }) => return Err(self.device_lost(library, why)),
                Err(error) => return Err(error),
            };
            observer.finished_epoch(&metrics);
            self.metrics.push(metrics);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
            self.run_dir.write_bytes(EVENTS, &events::encode(&self.metrics, now))?;
        }
        self.run_dir.check_held()?;
        self.export()
    }

    /// Runs the rest of an epoch's steps, its validation and its checkpoint.
    fn epoch(&mut self, observer: &mut dyn RunObserver) -> Result<EpochMetrics, TrainError> {
        let start = Instant::now();
        let epoch = self.progress.epochs + 1;
        let settings = &self.config.settings;
        let steps_per_epoch = self.progress.steps_per_epoch;
        let rate = |step| settings.learning_rate_at(step, steps_per_epoch);
        let samples_before = self.progress.epoch.samples;
        while self.trainer.step() < u64::from(epoch) * steps_per_epoch {
            if observer.interrupted() {
                return Err(TrainError::Stopped);
            }
            self.step(epoch, rate(self.trainer.step()), observer)?;
            self.average(observer)?;
            if self.saved.elapsed() >= self.checkpoint_every {
                self.save(observer)?;
            }
        }
        self.finish_steps(observer)?;
        let trained = start.elapsed().as_secs_f64();
        let samples = self.progress.epoch.samples - samples_before;
        self.check_skipped()?;
        observer.validating(epoch);
        let mut validated = self.validate(None, observer)?.into_iter();
        let (Some(first), second) = (validated.next(), validated.next()) else {
            return Err(TrainError::Config("the run has no method".into()));
        };
        let validation_loss = first.sums.mean_loss();
        let mut second_metrics = None;
        // The part of the second method in the loss that the run minimises.
        let mut second_loss = 0.0;
        if let (Some(progress), Some(method), Some(validated)) = (&self.progress.second, &self.config.second, second) {
            let validation_loss = validated.sums.mean_loss();
            second_loss = validation_loss * method.weight;
            second_metrics = Some(SecondMetrics {
                method: method.method,
                train_loss: progress.epoch.mean_loss(),
                validation_loss,
                validation_accuracy: validated.accuracy(method.method),
            });
        }
        let metrics = EpochMetrics {
            epoch,
            step: self.progress.step,
            samples: self.progress.samples,
            learning_rate: rate(self.progress.step.saturating_sub(1)),
            train_loss: self.progress.epoch.mean_loss(),
            validation_loss,
            validation_accuracy: first.accuracy(self.config.method),
            second: second_metrics,
            neurons: first.neurons,
            weights: histogram::weight_histograms(&self.trainer.state()?.net),
            samples_per_second: (samples > 0).then(|| samples as f64 / trained.max(1e-9)),
            seconds: start.elapsed().as_secs_f64(),
        };
        self.run_dir.check_held()?;
        // Networks are compared by the loss that the run minimises.
        // What may be interrupted comes before the progress moves on.
        let average = if epoch == self.config.settings.epochs { self.validate_average(observer)? } else { None };
        self.finish_epoch(&first, validation_loss + second_loss)?;
        average.map_or(Ok(()), |average| self.keep_average(average))?;
        // The checkpoint comes last: on resume, metrics of epochs that it does not cover are removed.
        self.run_dir.append_metrics(&metrics)?;
        self.save(observer)?;
        Ok(metrics)
    }

    /// Refuses rules that skip all samples of an epoch but the one that each step needs.
    fn check_skipped(&self) -> Result<(), TrainError> {
        let RunProgress { steps_per_epoch: steps, samples_per_epoch, ref epoch, .. } = self.progress;
        if self.config.settings.skip.is_empty() || samples_per_epoch == steps || epoch.samples > steps {
            return Ok(());
        }
        Err(TrainError::Config(format!(
            "the rules by which training samples are skipped leave none of epoch {} but one in each of its {steps} batches; \
             skip fewer samples",
            self.progress.epochs + 1
        )))
    }

    /// Moves the progress on to the next epoch, and saves the weights if `total_loss` is the lowest so far.
    fn finish_epoch(&mut self, validated: &ValidationResult, total_loss: f64) -> Result<(), TrainError> {
        let progress = &mut self.progress;
        progress.epochs += 1;
        progress.epoch = Sums::default();
        if let Some(second) = &mut progress.second {
            second.epoch = Sums::default();
        }
        let best = progress.validation.map_or(f64::INFINITY, |known| known.best);
        let known = progress.validation.map(|known| known.baseline);
        let samples = validated.sums.samples;
        let baseline = known.or(validated.baseline).unwrap_or(f64::NAN);
        progress.validation = Some(ValidationState { samples, baseline, best: best.min(total_loss) });
        if total_loss < best {
            self.write_losses(validated)?;
            let net = &self.trainer.state()?.net;
            checkpoint::save_weights(&self.run_dir.path(BEST), &self.origin, net, &self.progress)?;
        }
        Ok(())
    }

    /// Writes the losses of the network that is the best so far.
    fn write_losses(&self, validated: &ValidationResult) -> Result<(), TrainError> {
        match &validated.each {
            Some(each) => each.write(&self.run_dir, self.progress.epochs),
            None => self.run_dir.remove(LOSSES),
        }
    }

    fn step(&mut self, epoch: u32, learning_rate: f64, observer: &mut dyn RunObserver) -> Result<(), TrainError> {
        let Session { objectives, trainer, .. } = self;
        let (first, others) = objectives.split_at_mut(1);
        let stop = || observer.interrupted();
        let stepped = first[0].training.next(epoch - 1, &stop, |first| {
            let first = WeightedBatch { batch: *first, weight: 1.0 };
            let Some(second) = others.first_mut() else {
                return trainer.train(&[first], learning_rate).map(Some);
            };
            let weight = second.task.weight;
            second.training.next(epoch - 1, &stop, |second| {
                trainer.train(&[first, WeightedBatch { batch: *second, weight }], learning_rate)
            })
        })?;
        let Some(known) = stepped.flatten() else {
            let why = "the stream ended before the run".into();
            return Err(TrainError::Batch { batch: trainer.step(), why });
        };
        self.count_steps(&known, observer);
        Ok(())
    }

    /// Waits for the steps of the epoch that were begun.
    fn finish_steps(&mut self, observer: &mut dyn RunObserver) -> Result<(), TrainError> {
        let known = self.trainer.finish_steps()?;
        self.count_steps(&known, observer);
        Ok(())
    }

    /// Adds steps of the epoch, whose losses have become known, to the progress.
    fn count_steps(&mut self, known: &[StepLosses], observer: &mut dyn RunObserver) {
        let Session { objectives, progress, .. } = self;
        for StepLosses { step, batches } in known {
            progress.step = *step;
            progress.samples += batches[0].samples;
            progress.epoch.add(batches[0]);
            if let (Some(second), Some(sums)) = (&mut progress.second, batches.get(1)) {
                second.epoch.add(*sums);
            }
            let mut positions = 0;
            for (objective, sums) in objectives.iter().zip(batches) {
                positions += sums.samples * objective.training.description().positions_per_sample as u64;
            }
            observer.stepped(&StepMetrics {
                epoch: progress.epochs + 1,
                step: *step,
                samples: batches[0].samples,
                positions,
                loss: batches[0].mean_loss(),
            });
        }
    }

    /// Computes every method's loss over its validation split, of the network in training or of another trainer's.
    fn validate(
        &mut self,
        other: Option<&dyn Trainer>,
        observer: &dyn RunObserver,
    ) -> Result<Vec<ValidationResult>, TrainError> {
        let mut objectives = std::mem::take(&mut self.objectives);
        let stop = || observer.interrupted();
        let served = (&*self.program, &self.served);
        let validated = objectives.iter_mut().map(|objective| {
            let baseline = objective.task.first && self.progress.validation.is_none();
            objective.validate(other.unwrap_or(&*self.trainer), served, baseline, &stop)
        });
        let validated = validated.collect();
        self.objectives = objectives;
        validated
    }

    fn save(&mut self, observer: &mut dyn RunObserver) -> Result<(), TrainError> {
        self.finish_steps(observer)?;
        self.run_dir.check_held()?;
        let state = self.trainer.state()?;
        checkpoint::save(&self.run_dir.path(CHECKPOINT), &self.origin, state, self.average.as_ref(), &self.progress)?;
        self.saved = Instant::now();
        self.saved_step = Some(self.progress.step);
        Ok(())
    }

    /// Saves the state and returns the error that ends the run.
    fn interrupted(&mut self, observer: &mut dyn RunObserver) -> Result<TrainError, TrainError> {
        self.save(observer)?;
        Ok(TrainError::Interrupted { step: self.progress.step, folder: self.run_dir.root().into() })
    }

    fn device_lost(&self, library: &'static str, why: String) -> TrainError {
        let folder = self.run_dir.root().into();
        TrainError::DeviceLost { library, why, step: self.progress.step, saved: self.saved_step, folder }
    }
}
