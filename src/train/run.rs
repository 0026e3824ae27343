//! A training run from start, or from its last checkpoint, to its outcome.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::checkpoint::{self, Progress, Sources, Validation};
use super::device::Learner;
use super::loss::Loss;
use super::memory::keep_freed_memory;
use super::model::{Model, Part, Sums};
use super::objective::{Objective, Validated};
use super::run_dir::{BEST, CHECKPOINT, CONFIG, DATA, EVENTS, LAST, NETWORK, OUTCOME, RunDir};
use super::start::Ready;
use super::stream::{Served, Stop};
use super::{
    EpochMetrics, RunObserver, RunOverview, SecondMetrics, StepMetrics, TrainConfig, TrainError, TrainOutcome,
    TrainingRun, events, histogram,
};
use crate::data::content_hash;
use crate::features::{Factors, FeatureSet};
use crate::net::{self, NetFile, Origin, Scheme};
use crate::service::ServiceError;

impl TrainingRun<'_> {
    /// Trains, and leaves in the folder: `config.json`, `metrics.jsonl`, `checkpoint.safetensors`, `best.safetensors`,
    /// `network.safetensors`, `last.safetensors` and, at the end, `outcome.json`.
    ///
    /// # Errors
    /// See [`TrainError`]. Whatever happens, the folder holds whole files only and a run in it can be resumed.
    pub fn train(&self, observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        self.config.validate()?;
        let config = &self.config.with_score_units().map_err(ServiceError::from)?;
        TrainingRun { config, ..*self }.go(observer)
    }

    fn go(&self, observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        let config = self.config;
        // Whatever is wrong with the request is told before anything in the folder is touched.
        let ready = Ready::of(self)?;
        ready.note.iter().for_each(|note| observer.noted(note));
        let folder = match self.resume {
            true => RunDir::open(self.folder)?,
            false => RunDir::create(self.folder, self.force)?,
        };
        let contents = contents(config)?;
        let sources = sources(&folder, &contents)?;
        if let Some(outcome) = finished(&folder, config, &ready.reduced.set, sources)? {
            return Ok(outcome);
        }
        let program = match self.service {
            Some(program) => program.to_path_buf(),
            None => std::env::current_exe().map_err(TrainError::io("cannot find", "this program"))?,
        };
        keep_freed_memory();
        let (stop, data) = (|| observer.interrupted(), (sources, &contents));
        let session = Session::begin(config, ready, folder, program, self.checkpoint_every, &stop, data);
        session?.finish(observer)
    }
}

/// What the data of every method hold: a hash each.
type Contents = Vec<String>;

fn contents(config: &TrainConfig) -> Result<Contents, TrainError> {
    config.tasks().iter().map(|task| Ok(content_hash(task.data).map_err(ServiceError::from)?)).collect()
}

fn sources(folder: &RunDir, contents: &Contents) -> Result<Sources, TrainError> {
    Ok(match folder.read_json::<Contents>(DATA)? {
        None => Sources::Unknown,
        Some(begun) if begun == *contents => Sources::Same,
        Some(_) => Sources::Changed,
    })
}

/// The outcome of a run that is already finished, if this is one.
fn finished(
    folder: &RunDir,
    config: &TrainConfig,
    set: &FeatureSet,
    sources: Sources,
) -> Result<Option<TrainOutcome>, TrainError> {
    let Some(outcome) = folder.read_json::<TrainOutcome>(OUTCOME)? else { return Ok(None) };
    // Of a version whose network was the last epoch's: finished once more, without a step.
    if outcome.best_epoch.is_none() {
        return Ok(None);
    }
    let same = outcome.identity == *set.identity() && checkpoint::same_run(&outcome.config, config, sources).is_ok();
    // Anything else is refused, or continued, by the checkpoint.
    Ok((same && outcome.config.settings.epochs == config.settings.epochs).then_some(outcome))
}

struct Session<'a> {
    config: &'a TrainConfig,
    set: FeatureSet,
    served: Served,
    origin: Origin,
    scheme: Scheme,
    folder: RunDir,
    program: PathBuf,
    learner: Learner,
    /// The first method's, and the second's where there is one.
    objectives: Vec<Objective<'a>>,
    progress: Progress,
    metrics: Vec<EpochMetrics>,
    checkpoint_every: Duration,
    saved: Instant,
}

impl<'a> Session<'a> {
    fn begin(
        config: &'a TrainConfig,
        ready: Ready,
        folder: RunDir,
        program: PathBuf,
        checkpoint_every: Duration,
        stop: Stop<'_>,
        (sources, contents): (Sources, &Contents),
    ) -> Result<Session<'a>, TrainError> {
        let path = folder.path(CHECKPOINT);
        let Ready { reduced, scheme, factors, device, network, .. } = ready;
        let factors_hash = factors.as_ref().map(Factors::hash);
        let stored = match path.exists() {
            true => Some(checkpoint::load(&path, &reduced.set, factors.as_ref(), config, sources)?),
            false => None,
        };
        if let Some(begun) = folder.read_json::<TrainConfig>(CONFIG)? {
            let mismatch = |why| TrainError::Mismatch { checkpoint: folder.path(CONFIG), why };
            checkpoint::same_run(&begun, config, sources).map_err(mismatch)?;
        }
        let loss = Loss { eval: config.settings.eval_loss, pqr: config.settings.pqr_loss };
        let optimisation = config.settings.optimisation;
        let start = stored.as_ref().map_or(0, |state| state.progress.step);
        let (mut model, progress) = match stored {
            Some(state) => {
                let mut model = Model::new(state.net, None, optimisation, loss, &scheme, config.settings.threads())?;
                (model.factored, model.lookahead) = (state.factored, state.lookahead);
                (model.first, model.second) = (state.first, state.second);
                (model, Some(state.progress))
            }
            None => {
                let network = network.map_or_else(|| Ok(reduced.network(config, &scheme)?.0), Ok::<_, TrainError>)?;
                (Model::new(network, factors, optimisation, loss, &scheme, config.settings.threads())?, None)
            }
        };
        model.step = start;
        let learner = Learner::new(model, device)?;
        // A run that goes on is not finished, whatever it once was.
        folder.remove(OUTCOME)?;
        let served = reduced.serve(config, &folder)?;
        let tasks = config.tasks().into_iter();
        let objectives = tasks.map(|task| Objective::open(&program, config, task, &served, start, stop));
        let objectives = objectives.collect::<Result<Vec<_>, TrainError>>()?;
        let descriptions: Vec<_> = objectives.iter().map(|objective| objective.training.description()).collect();
        let fresh = Progress::new(config, factors_hash, descriptions[0], descriptions.get(1).copied());
        let progress = match progress {
            Some(progress) => {
                progress.same_data(&fresh).map_err(|why| TrainError::Mismatch { checkpoint: path, why })?;
                Progress { config: config.clone(), ..progress }
            }
            None => fresh,
        };
        let metrics = folder.rewind_metrics(progress.epochs)?;
        folder.write_json(CONFIG, config)?;
        folder.write_json(DATA, contents)?;
        Ok(Session {
            config,
            origin: Origin::of(&reduced.set),
            set: reduced.set,
            served,
            scheme,
            folder,
            program,
            learner,
            objectives,
            progress,
            metrics,
            checkpoint_every,
            saved: Instant::now(),
        })
    }

    fn finish(mut self, observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        let parameters = self.learner.model()?.net.parameters();
        let positions = |objective: &Objective<'_>| objective.training.description().positions_per_sample;
        observer.started(&RunOverview {
            folder: self.folder.root(),
            set: self.set.name(),
            features: self.set.num_features(),
            parameters,
            epochs: self.config.settings.epochs,
            steps_per_epoch: self.progress.steps_per_epoch,
            samples_per_epoch: self.progress.samples_per_epoch,
            positions_per_sample: self.objectives.iter().map(positions).sum(),
            done: self.progress.step,
        });
        while self.progress.epochs < self.config.settings.epochs {
            let metrics = match self.epoch(observer) {
                Ok(metrics) => metrics,
                // A validation cut short is thrown away and done again when the run goes on.
                Err(TrainError::Stopped) => return Err(self.interrupted()?),
                // Whoever ends this process may end its service too.
                Err(TrainError::Service(_)) if observer.interrupted() => return Err(self.interrupted()?),
                Err(error) => return Err(error),
            };
            observer.finished_epoch(&metrics);
            self.metrics.push(metrics);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
            self.folder.write_bytes(EVENTS, &events::encode(&self.metrics, now))?;
        }
        self.export()
    }

    /// The rest of an epoch's steps, its validation and its checkpoint.
    fn epoch(&mut self, observer: &mut dyn RunObserver) -> Result<EpochMetrics, TrainError> {
        let begun = Instant::now();
        let epoch = self.progress.epochs + 1;
        let (settings, steps_per_epoch) = (&self.config.settings, self.progress.steps_per_epoch);
        let rate = |step| settings.learning_rate_at(step, steps_per_epoch);
        let samples_before = self.progress.epoch.samples;
        while self.progress.step < u64::from(epoch) * self.progress.steps_per_epoch {
            if observer.interrupted() {
                return Err(TrainError::Stopped);
            }
            self.step(epoch, rate(self.progress.step), observer)?;
            if self.saved.elapsed() >= self.checkpoint_every {
                self.save()?;
            }
        }
        let (trained, samples) = (begun.elapsed().as_secs_f64(), self.progress.epoch.samples - samples_before);
        observer.validating(epoch);
        let mut validated = self.validate(observer)?.into_iter();
        let (Some(first), second) = (validated.next(), validated.next()) else {
            return Err(TrainError::Config("a run without a method".into()));
        };
        let validation_loss = first.sums.mean_loss();
        let second = self.progress.second.zip(self.config.second.as_ref()).zip(second);
        let second = second.map(|((progress, asked), validated)| SecondMetrics {
            method: asked.method,
            train_loss: progress.epoch.mean_loss(),
            validation_loss: validated.sums.mean_loss(),
            validation_accuracy: validated.accuracy(asked.method),
        });
        let metrics = EpochMetrics {
            epoch,
            step: self.progress.step,
            samples: self.progress.samples,
            learning_rate: rate(self.progress.step.saturating_sub(1)),
            train_loss: self.progress.epoch.mean_loss(),
            validation_loss,
            validation_accuracy: first.accuracy(self.config.method),
            second,
            neurons: first.neurons,
            weights: histogram::of(&self.learner.model()?.net),
            samples_per_second: (samples > 0).then(|| samples as f64 / trained.max(1e-9)),
            seconds: begun.elapsed().as_secs_f64(),
        };
        // What the run minimises.
        let weighted =
            second.zip(self.config.second.as_ref()).map(|(found, asked)| found.validation_loss * asked.weight);
        let objective = validation_loss + weighted.unwrap_or(0.0);
        let best = self.progress.validation.map_or(f64::INFINITY, |known| known.best);
        self.progress.epochs = epoch;
        self.progress.epoch = Sums::default();
        if let Some(second) = &mut self.progress.second {
            second.epoch = Sums::default();
        }
        let known = self.progress.validation.map(|known| known.baseline);
        let (samples, baseline) = (first.sums.samples, known.or(first.baseline).unwrap_or(f64::NAN));
        self.progress.validation = Some(Validation { samples, baseline, best: best.min(objective) });
        if objective < best {
            let net = &self.learner.model()?.net;
            checkpoint::save_weights(&self.folder.path(BEST), &self.origin, net, &self.progress)?;
        }
        // Lines behind the checkpoint are dropped on resume, so the checkpoint comes last.
        self.folder.append_metrics(&metrics)?;
        self.save()?;
        Ok(metrics)
    }

    fn step(&mut self, epoch: u32, learning_rate: f64, observer: &mut dyn RunObserver) -> Result<(), TrainError> {
        let Session { objectives, learner, progress, .. } = self;
        let (first, others) = objectives.split_at_mut(1);
        let stop = || observer.interrupted();
        let stepped = first[0].training.next(epoch - 1, &stop, |first| {
            let first = Part { batch: *first, weight: 1.0 };
            let Some(second) = others.first_mut() else {
                return Ok(Some((learner.train(&[first], learning_rate)?, first.batch.positions())));
            };
            let weight = second.task.weight;
            second.training.next(epoch - 1, &stop, |second| {
                let positions = first.batch.positions() + second.positions();
                Ok((learner.train(&[first, Part { batch: *second, weight }], learning_rate)?, positions))
            })
        })?;
        let Some((sums, positions)) = stepped.flatten() else {
            let why = "the stream ended before the run".into();
            return Err(TrainError::Batch { batch: progress.step, why });
        };
        progress.step = learner.step();
        progress.samples += sums[0].samples;
        progress.epoch.add(sums[0]);
        if let (Some(second), Some(sums)) = (&mut progress.second, sums.get(1)) {
            second.epoch.add(*sums);
        }
        observer.stepped(&StepMetrics {
            epoch,
            step: progress.step,
            samples: sums[0].samples,
            positions: positions as u64,
            loss: sums[0].mean_loss(),
        });
        Ok(())
    }

    /// Every method's loss over its validation split.
    fn validate(&mut self, observer: &dyn RunObserver) -> Result<Vec<Validated>, TrainError> {
        let mut objectives = std::mem::take(&mut self.objectives);
        let stop = || observer.interrupted();
        let served = (&*self.program, &self.served);
        let validated = objectives.iter_mut().map(|objective| {
            let baseline = objective.task.first && self.progress.validation.is_none();
            objective.validate(&self.learner, served, baseline, &stop)
        });
        let validated = validated.collect();
        self.objectives = objectives;
        validated
    }

    fn save(&mut self) -> Result<(), TrainError> {
        let model = self.learner.model()?;
        checkpoint::save(&self.folder.path(CHECKPOINT), &self.origin, model, &self.progress)?;
        self.saved = Instant::now();
        Ok(())
    }

    /// Saves the state; gives what to end with.
    fn interrupted(&mut self) -> Result<TrainError, TrainError> {
        self.save()?;
        Ok(TrainError::Interrupted { step: self.progress.step, folder: self.folder.root().into() })
    }

    /// Quantises the networks of the best epoch and of the last, and writes the outcome.
    fn export(mut self) -> Result<TrainOutcome, TrainError> {
        let path = self.folder.path(BEST);
        let (best, stored) = net::load_float(&path)?;
        let epoch = stored.training["epochs"].as_u64();
        let best_epoch = self.metrics.iter().find(|metrics| Some(u64::from(metrics.epoch)) == epoch);
        let (Some(best_epoch), Some(validation)) = (best_epoch, self.progress.validation) else {
            let why = "it is of no epoch of this run".into();
            return Err(TrainError::Damaged { path, why });
        };
        let (number, validation_loss) = (best_epoch.epoch, best_epoch.validation_loss);
        let last = &self.learner.model()?.net;
        let parameters = last.parameters();
        // In this order: where the last epoch's stands, the network is the best one's.
        for (net, name) in [(&best, NETWORK), (last, LAST)] {
            let net = net::quantise(net, &self.scheme)?;
            NetFile { origin: self.origin.clone(), net }.save(&self.folder.path(name))?;
        }
        let outcome = TrainOutcome {
            config: self.config.clone(),
            name: self.set.name().into(),
            identity: self.set.identity().clone(),
            num_features: self.set.num_features(),
            parameters,
            training_samples: self.progress.samples_per_epoch,
            validation_samples: validation.samples,
            best_epoch: Some(number),
            validation_loss,
            baseline_loss: validation.baseline,
            seconds: self.metrics.iter().map(|epoch| epoch.seconds).sum(),
            epochs: self.metrics,
            network: PathBuf::from(NETWORK),
            weights: PathBuf::from(BEST),
            last: Some(PathBuf::from(LAST)),
            checkpoint: PathBuf::from(CHECKPOINT),
        };
        self.folder.write_json(OUTCOME, &outcome)?;
        Ok(outcome)
    }
}
