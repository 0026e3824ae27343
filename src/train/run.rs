//! A training run from start, or from its last checkpoint, to its outcome.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::activity::Activity;
use super::batch::{Batch, Labels};
use super::checkpoint::{self, Progress, Validation};
use super::events;
use super::folder::{BEST, CHECKPOINT, CONFIG, DEFINITION, EVENTS, Folder, NETWORK, OUTCOME};
use super::init;
use super::loss::{Loss, eval_baseline, pqr_baseline};
use super::model::{Model, Part, Sums};
use super::stream::{Served, Stream};
use super::validator::Validator;
use super::{EpochMetrics, Length, Neurons, Observer, Outcome, Plan, Run, Step, TrainConfig, TrainError};
use crate::data::Method;
use crate::features::{Factors, FeatureSet};
use crate::net::{self, FloatNet, NetFile, Origin, Scheme, Shape};

impl Run<'_> {
    /// Trains, and leaves in the folder: `config.json`, `metrics.jsonl`, `checkpoint.safetensors`, `best.safetensors`,
    /// `network.safetensors` and, last, `outcome.json`.
    ///
    /// # Errors
    /// See [`TrainError`]. Whatever happens, the folder holds whole files only and a run in it can be resumed.
    pub fn train(&self, observer: &mut dyn Observer) -> Result<Outcome, TrainError> {
        let config = self.config;
        config.validate()?;
        let set = Reduced::of(config)?;
        let folder = match self.resume {
            true => Folder::open(self.folder)?,
            false => Folder::create(self.folder, self.force)?,
        };
        if let Some(outcome) = finished(&folder, config, &set.set)? {
            return Ok(outcome);
        }
        let program = match self.service {
            Some(program) => program.to_path_buf(),
            None => std::env::current_exe().map_err(TrainError::io("cannot find", "this program"))?,
        };
        Session::begin(config, set, folder, program)?.finish(observer)
    }
}

/// The outcome of a run that is already finished, if this is one.
fn finished(folder: &Folder, config: &TrainConfig, set: &FeatureSet) -> Result<Option<Outcome>, TrainError> {
    let Some(outcome) = folder.read_json::<Outcome>(OUTCOME)? else { return Ok(None) };
    let same = outcome.identity == *set.identity() && checkpoint::same_run(&outcome.config, config).is_ok();
    // Anything else is refused, or continued, by the checkpoint.
    Ok((same && outcome.config.epochs == config.epochs).then_some(outcome))
}

struct Session<'a> {
    config: &'a TrainConfig,
    set: FeatureSet,
    served: Served,
    origin: Origin,
    scheme: Scheme,
    folder: Folder,
    program: PathBuf,
    model: Model,
    training: Stream,
    validator: Validator,
    progress: Progress,
    metrics: Vec<EpochMetrics>,
}

impl<'a> Session<'a> {
    fn begin(
        config: &'a TrainConfig,
        reduced: Reduced,
        folder: Folder,
        program: PathBuf,
    ) -> Result<Session<'a>, TrainError> {
        let path = folder.path(CHECKPOINT);
        let served = reduced.serve(config, &folder)?;
        let Reduced { set, kept, whole } = reduced;
        let factors = if config.factor { Factors::of(&set)? } else { None };
        let stored = match path.exists() {
            true => Some(checkpoint::load(&path, &set, factors.as_ref(), config)?),
            false => None,
        };
        if let Some(begun) = folder.read_json::<TrainConfig>(CONFIG)? {
            let mismatch = |why| TrainError::Mismatch { checkpoint: folder.path(CONFIG), why };
            checkpoint::same_run(&begun, config).map_err(mismatch)?;
        }
        let start = stored.as_ref().map_or(0, |state| state.progress.step);
        let training = Stream::training(&program, config, &served, start)?;
        let scheme = Scheme::stockfish();
        let loss = Loss { eval: config.eval_loss, pqr: config.pqr_loss };
        let recipe = config.recipe;
        let fresh = Progress::new(config, training.description());
        if fresh.steps_per_epoch == 0 {
            let hint = "it needs more games";
            return Err(TrainError::Empty { data: config.data.clone(), split: "training", hint });
        }
        let (model, progress) = match stored {
            Some(state) => {
                state.progress.same_data(&fresh).map_err(|why| TrainError::Mismatch { checkpoint: path, why })?;
                let mut model = Model::new(state.net, None, recipe, loss, &scheme, config.threads)?;
                (model.factored, model.slow) = (state.factored, state.slow);
                (model.first, model.second, model.step) = (state.first, state.second, state.progress.step);
                (model, Progress { config: config.clone(), ..state.progress })
            }
            None => {
                let net = match (&config.start, &kept) {
                    (Some(start), _) => begun(start, &set, &shape(config, set.num_features())?)?,
                    (None, None) => init::fresh(&shape(config, whole)?, config.seed),
                    (None, Some(kept)) => init::fresh(&shape(config, whole)?, config.seed).keeping(kept),
                };
                (Model::new(net, factors, recipe, loss, &scheme, config.threads)?, fresh)
            }
        };
        let metrics = folder.rewind_metrics(progress.epochs)?;
        folder.write_json(CONFIG, config)?;
        let (origin, validator) = (Origin::of(&set), Validator::default());
        Ok(Session {
            config,
            set,
            served,
            origin,
            scheme,
            folder,
            program,
            model,
            training,
            validator,
            progress,
            metrics,
        })
    }

    fn finish(mut self, observer: &mut dyn Observer) -> Result<Outcome, TrainError> {
        observer.started(&Plan {
            folder: self.folder.root(),
            set: self.set.name(),
            features: self.set.num_features(),
            parameters: self.model.net.parameters(),
            epochs: self.config.epochs,
            steps_per_epoch: self.progress.steps_per_epoch,
            samples_per_epoch: self.progress.samples_per_epoch,
            positions_per_sample: self.training.description().positions_per_sample,
            done: self.progress.step,
        });
        while self.progress.epochs < self.config.epochs {
            let metrics = match self.epoch(observer) {
                Ok(metrics) => metrics,
                // Ctrl-C reaches the service too: its end is then no failure. A validation cut short is thrown away and
                // done again when the run goes on.
                Err(TrainError::Interrupted { .. } | TrainError::Service(_)) if observer.interrupted() => {
                    self.save()?;
                    return Err(self.interrupted());
                }
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
    fn epoch(&mut self, observer: &mut dyn Observer) -> Result<EpochMetrics, TrainError> {
        let begun = Instant::now();
        let epoch = self.progress.epochs + 1;
        let length = Length { epochs: self.config.epochs, steps_per_epoch: self.progress.steps_per_epoch };
        let TrainConfig { learning_rate, decay, recipe, .. } = self.config;
        let rate = |step| recipe.rate(*learning_rate, *decay, step, length);
        let samples_before = self.progress.epoch.samples;
        while self.progress.step < u64::from(epoch) * self.progress.steps_per_epoch {
            if observer.interrupted() {
                return Err(self.interrupted());
            }
            self.step(epoch, rate(self.progress.step), observer)?;
        }
        let trained = begun.elapsed().as_secs_f64();
        observer.validating(epoch);
        let (sums, neurons, baseline) = self.validate(observer)?;
        let validation_loss = sums.mean_loss();
        let metrics = EpochMetrics {
            epoch,
            step: self.progress.step,
            samples: self.progress.samples,
            learning_rate: rate(self.progress.step.saturating_sub(1)),
            train_loss: self.progress.epoch.mean_loss(),
            validation_loss,
            validation_accuracy: match self.config.method {
                Method::Eval => None,
                Method::Pqr => Some(sums.preferred as f64 / sums.samples as f64),
            },
            neurons,
            samples_per_second: (self.progress.epoch.samples - samples_before) as f64 / trained.max(1e-9),
            seconds: begun.elapsed().as_secs_f64(),
        };
        let best = self.progress.validation.map_or(f64::INFINITY, |known| known.best);
        self.progress.epochs = epoch;
        self.progress.epoch = Sums::default();
        self.progress.validation =
            Some(Validation { samples: sums.samples, baseline, best: best.min(validation_loss) });
        if validation_loss < best {
            checkpoint::save_weights(&self.folder.path(BEST), &self.origin, &self.model.net, &self.progress)?;
        }
        // Lines behind the checkpoint are dropped on resume, so the checkpoint comes last.
        self.folder.append_metrics(&metrics)?;
        self.save()?;
        Ok(metrics)
    }

    fn step(&mut self, epoch: u32, learning_rate: f64, observer: &mut dyn Observer) -> Result<(), TrainError> {
        let Session { training, model, progress, .. } = self;
        let work = |batch: &Batch<'_>| {
            let sums = model.train(&[Part { batch: *batch, weight: 1.0 }], learning_rate)?;
            Ok((sums.into_iter().next().unwrap_or_default(), batch.positions()))
        };
        let Some((sums, positions)) = training.next(work)? else {
            let why = "the stream ended before the run".into();
            return Err(TrainError::Batch { batch: progress.step, why });
        };
        let loss = sums.mean_loss();
        if !loss.is_finite() {
            return Err(TrainError::NotFinite { step: progress.step + 1, epoch, loss, learning_rate });
        }
        progress.step = model.step;
        progress.samples += sums.samples;
        progress.epoch.add(sums);
        observer.stepped(&Step {
            epoch,
            step: progress.step,
            samples: sums.samples,
            positions: positions as u64,
            loss,
        });
        Ok(())
    }

    /// Loss over the whole validation split, and that of the best constant output.
    fn validate(&mut self, observer: &dyn Observer) -> Result<(Sums, Option<Neurons>, f64), TrainError> {
        let Session { config, served, folder, program, model, validator, progress, .. } = self;
        let interrupted = || TrainError::Interrupted { step: progress.step, folder: folder.root().into() };
        let known = progress.validation.map(|known| known.baseline);
        let (mut sums, mut activity, mut targets) = (Sums::default(), Activity::default(), Vec::new());
        let open = || Stream::validation(program, config, served);
        validator.each(open, &mut |batch| {
            if observer.interrupted() {
                return Err(interrupted());
            }
            if let (Labels::Eval(batch_targets), None) = (batch.labels, known) {
                targets.extend_from_slice(batch_targets);
            }
            sums.add(model.observe(batch, &mut activity)?);
            Ok(())
        })?;
        if sums.samples == 0 {
            let hint = "give a larger --validation or more games";
            return Err(TrainError::Empty { data: self.config.data.clone(), split: "validation", hint });
        }
        let baseline = known.unwrap_or_else(|| match self.config.method {
            Method::Eval => eval_baseline(&targets, &self.config.eval_loss),
            Method::Pqr => pqr_baseline(&self.config.pqr_loss),
        });
        Ok((sums, activity.shares(), baseline))
    }

    fn save(&self) -> Result<(), TrainError> {
        checkpoint::save(&self.folder.path(CHECKPOINT), &self.origin, &self.model, &self.progress)
    }

    fn interrupted(&self) -> TrainError {
        TrainError::Interrupted { step: self.progress.step, folder: self.folder.root().into() }
    }

    /// Quantises the network and writes the outcome.
    fn export(self) -> Result<Outcome, TrainError> {
        let (Some(last), Some(validation)) = (self.metrics.last(), self.progress.validation) else {
            let why = "a finished run without an epoch".into();
            return Err(TrainError::Damaged { path: self.folder.path(CHECKPOINT), why });
        };
        let net = net::quantise(&self.model.net, &self.scheme)?;
        NetFile { origin: self.origin.clone(), net }.save(&self.folder.path(NETWORK))?;
        let outcome = Outcome {
            config: self.config.clone(),
            name: self.set.name().into(),
            identity: self.set.identity().clone(),
            num_features: self.set.num_features(),
            parameters: self.model.net.parameters(),
            training_samples: self.progress.samples_per_epoch,
            validation_samples: validation.samples,
            validation_loss: last.validation_loss,
            baseline_loss: validation.baseline,
            seconds: self.metrics.iter().map(|epoch| epoch.seconds).sum(),
            epochs: self.metrics,
            network: PathBuf::from(NETWORK),
            checkpoint: PathBuf::from(CHECKPOINT),
        };
        self.folder.write_json(OUTCOME, &outcome)?;
        Ok(outcome)
    }
}

/// The set a run trains on: the one asked for, or what is left of it without dead features.
struct Reduced {
    set: FeatureSet,
    /// Of the features of the set asked for.
    kept: Option<Vec<u32>>,
    /// Number of features of the set asked for.
    whole: u32,
}

impl Reduced {
    fn of(config: &TrainConfig) -> Result<Reduced, TrainError> {
        let set = FeatureSet::resolve(&config.set)?;
        let whole = set.num_features();
        let kept = config.compact_dead.then(|| set.not_dead()).filter(|kept| kept.len() < whole as usize);
        let set = kept.as_ref().map_or(Ok(None), |kept| set.keeping(kept).map(Some))?.unwrap_or(set);
        Ok(Reduced { set, kept, whole })
    }

    /// How a service is asked for the set: a reduced one by a file in the run's folder.
    fn serve(&self, config: &TrainConfig, folder: &Folder) -> Result<Served, TrainError> {
        let request = match self.kept {
            None => config.set.clone(),
            Some(_) => {
                folder.write_text(DEFINITION, self.set.definition())?;
                folder.path(DEFINITION).display().to_string()
            }
        };
        Ok(Served { request, identity: self.set.identity().clone() })
    }
}

/// The float network another run left, of the same set and shape.
fn begun(path: &Path, set: &FeatureSet, shape: &Shape) -> Result<FloatNet, TrainError> {
    let (net, checkpoint) = net::load_float(path)?;
    checkpoint.origin.expect(set)?;
    if net.shape != *shape {
        let (found, path) = (&net.shape, path.display());
        return Err(TrainError::Config(format!(
            "{path} cannot be gone on from: it is {found}, and {shape} was asked for"
        )));
    }
    Ok(net)
}

fn shape(config: &TrainConfig, features: u32) -> Result<Shape, TrainError> {
    let shape = config.design.shape(features, config.l1, &config.hidden)?;
    Scheme::stockfish().admits(&shape)?;
    Ok(shape)
}
