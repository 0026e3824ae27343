//! Batches from a samples service, as the trainer reads them.

use std::path::Path;

use super::batch::{Batch, Labels, Rows, eval_target};
use super::config::MethodTask;
use super::{EvalLoss, LossForm, TrainConfig, TrainError};
use crate::data::{Method, Split};
use crate::features::Identity;
use crate::service::{self, Client, Description, Request};
use crate::units::Seed;

/// Every validation triplet's random move is the same for all runs over the same data, whatever their seed and feature set:
/// their validation losses can be compared.
const VALIDATION_SEED: Seed = Seed(0);

/// Epochs of a request without end.
const ENDLESS: u32 = 0;

/// The feature set as a service is asked for it.
#[derive(Clone, Debug)]
pub struct Served {
    /// A name, a path or an expression.
    pub request: String,
    pub identity: Identity,
}

/// Whether to stop, asked whenever there is nothing to do but to wait.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// A running service and the loss its labels are made for.
pub struct Stream {
    client: Client,
    loss: EvalLoss,
    /// Epochs of the run; none: validation, which has the last one's loss.
    epochs: Option<u32>,
    next: u64,
    targets: Vec<f32>,
}

impl Stream {
    /// A method's training samples, from batch `start` on.
    ///
    /// # Errors
    /// When the service does not start or serves another feature set; [`TrainError::Stopped`] where `stop` says so while it
    /// prepares its data.
    pub fn training(
        program: &Path,
        config: &TrainConfig,
        task: MethodTask<'_>,
        set: &Served,
        start: u64,
        stop: Stop<'_>,
    ) -> Result<Stream, TrainError> {
        let request = Request {
            split: Split::Train,
            seed: config.seed,
            epochs: if task.first { config.settings.epochs } else { ENDLESS },
            epoch_samples: config.settings.epoch_samples.filter(|_| task.first),
            start_batch: start,
            ..request(config, task, set)
        };
        Stream::open(program, &request, Some(config.settings.epochs), config, set, stop)
    }

    /// All of a method's validation split, once.
    ///
    /// # Errors
    /// As [`Stream::training`].
    pub fn validation(
        program: &Path,
        config: &TrainConfig,
        task: MethodTask<'_>,
        set: &Served,
        stop: Stop<'_>,
    ) -> Result<Stream, TrainError> {
        let request =
            Request { split: Split::Validation, seed: VALIDATION_SEED, shuffle: false, ..request(config, task, set) };
        Stream::open(program, &request, None, config, set, stop)
    }

    fn open(
        program: &Path,
        request: &Request,
        epochs: Option<u32>,
        config: &TrainConfig,
        set: &Served,
        stop: Stop<'_>,
    ) -> Result<Stream, TrainError> {
        let client = Client::spawn_until(program, request, stop)?.ok_or(TrainError::Stopped)?;
        let description = client.description();
        if description.identity != set.identity {
            let (served, Served { request: set, identity }) = (&description.identity, set);
            return Err(TrainError::Config(format!(
                "the samples service serves feature set {served} under the name `{set}`, the trainer has {identity}; \
                 use one build and one definition for both"
            )));
        }
        Ok(Stream { client, loss: config.settings.eval_loss, epochs, next: request.start_batch, targets: Vec::new() })
    }

    #[must_use]
    pub fn description(&self) -> &Description {
        self.client.description()
    }

    /// Lends the next batch to `work`, its targets those of the run's epoch `epoch`, counted from 0; none at the end of the
    /// data.
    ///
    /// # Errors
    /// When the service failed or sent something broken, [`TrainError::Stopped`] where `stop` says so before the batch is
    /// there, and whatever `work` gives.
    pub fn next<T>(
        &mut self,
        epoch: u32,
        stop: Stop<'_>,
        work: impl FnOnce(&Batch<'_>) -> Result<T, TrainError>,
    ) -> Result<Option<T>, TrainError> {
        let (method, features) = (self.description().method, self.description().num_features);
        if !self.client.wait(stop) {
            return Err(TrainError::Stopped);
        }
        let Some(served) = self.client.next()? else { return Ok(None) };
        let number = served.number();
        let broken = |why| TrainError::Batch { batch: number, why };
        if number != self.next {
            return Err(broken(format!("batch {} was due", self.next)));
        }
        self.next += 1;
        let [stm, nstm] = [served.stm(), served.nstm()].map(|side| Rows::new(side.offsets, side.indices, features));
        let rows = [stm.map_err(broken)?, nstm.map_err(broken)?];
        let labels = match method {
            Method::Eval => {
                let loss = match self.epochs {
                    Some(epochs) => self.loss.at(epoch, epochs),
                    None => self.loss.at(0, 1),
                };
                fill_targets(&mut self.targets, &served, &loss).map_err(TrainError::Labels)?;
                Labels::Eval(&self.targets)
            }
            Method::Pqr => Labels::Pqr,
        };
        let batch = Batch { samples: served.samples(), rows, pieces: served.piece_counts(), labels };
        batch.check().map_err(broken)?;
        work(&batch).map(Some)
    }
}

fn request(config: &TrainConfig, task: MethodTask<'_>, set: &Served) -> Request {
    let threads = config.settings.threads();
    let eval = task.method == Method::Eval;
    Request {
        read_mode: task.source,
        min_ply: config.min_ply,
        from_unit: task.from_unit.filter(|_| eval),
        needs: eval.then(|| config.settings.eval_loss.needs()),
        batch_size: config.settings.batch_size,
        slots: Request::default_slots(threads),
        validation: config.settings.validation,
        split_seed: config.settings.split_seed,
        threads,
        ..Request::new(set.request.clone(), task.data, task.method)
    }
}

fn fill_targets(targets: &mut Vec<f32>, batch: &service::Batch<'_>, loss: &EvalLoss) -> Result<(), String> {
    let known = |value: f32| (!value.is_nan()).then_some(value);
    targets.clear();
    for (sample, (&score, &result)) in batch.scores().iter().zip(batch.results()).enumerate() {
        let target = eval_target(known(score), known(result), loss).ok_or_else(|| {
            let index = batch.sample_indices().get(sample).copied().unwrap_or_default();
            let missing = if loss.lambda > 0.0 || loss.form == LossForm::Epsilon { "score" } else { "game result" };
            format!(
                "sample {index} of the data has no {missing}, which λ = {} asks for; build the data set without such \
                 samples or choose another --lambda",
                loss.lambda
            )
        })?;
        targets.push(target);
    }
    Ok(())
}
