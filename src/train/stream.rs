//! Streams of batches from a samples service.

use std::path::Path;

use super::batch::{ActiveFeatures, Batch, Labels, eval_target};
use super::config::MethodTask;
use super::skipping::{SampleFields, ThinnedBatch};
use super::{EvalLoss, LossForm, SkipRules, TrainConfig, TrainError};
use crate::chess::Board;
use crate::cpu::run_beside;
use crate::data::{Method, Split};
use crate::features::Identity;
use crate::service::{self, BatchMemory, Client, Description, ReadOptions, Request, ServiceError};
use crate::units::{Draws, Seed};

/// All runs over the same data validate with the same random moves, whatever their seed and feature set, so that their
/// validation losses can be compared.
const VALIDATION_SEED: Seed = Seed(0);

/// Number of epochs that requests a stream without end.
const ENDLESS: u32 = 0;

/// The feature set, as the trainer requests it from the samples service.
#[derive(Clone, Debug)]
pub struct ServedSet {
    /// A name, a path or an expression.
    pub request: String,
    pub identity: Identity,
}

/// From this number of positions on, the next batch is copied while this one is at work: it is far from free, and a
/// core would wait.
const READ_AHEAD: usize = 2048;

/// Whether to stop; called while waiting.
pub type StopCheck<'a> = &'a dyn Fn() -> bool;

/// A running samples service, and the loss that its labels are computed for.
pub struct BatchStream {
    client: Client,
    loss: EvalLoss,
    /// Of training samples, with the draws of those that are skipped; `None`: none is.
    skipping: Option<(SkipRules, Draws)>,
    thinned: ThinnedBatch,
    /// Of training samples with a jitter of λ.
    jitter: Option<Draws>,
    /// Whether an expression chooses the output bucket.
    by_expression: bool,
    /// Epochs of the run; `None`: validation, which uses the last epoch's loss.
    epochs: Option<u32>,
    next: u64,
    /// The batch at work.
    current: ReadBatch,
    /// The batch after it, if the service had it in time, and whether there is one.
    following: ReadBatch,
    read_ahead: Option<Result<bool, ServiceError>>,
}

/// A batch as it was read, with its targets.
#[derive(Default)]
struct ReadBatch {
    memory: BatchMemory,
    targets: Vec<f32>,
    /// The loss that the targets are for; `None` before they are there.
    targets_of: Option<EvalLoss>,
}

impl ReadBatch {
    /// Reads the next batch; false at the end of the data.
    fn read(&mut self, client: &mut Client) -> Result<bool, ServiceError> {
        self.targets_of = None;
        client.read(&mut self.memory)
    }

    /// Computes the targets, if they are not there yet.
    fn fill_targets(&mut self, loss: &EvalLoss, jitter: Option<Draws>) -> Result<(), String> {
        if self.targets_of != Some(*loss) {
            fill_targets(&mut self.targets, &self.memory.batch(), loss, jitter)?;
            self.targets_of = Some(*loss);
        }
        Ok(())
    }
}

impl BatchStream {
    /// Opens a method's training split, from batch `start` on.
    ///
    /// # Errors
    /// If the service does not start or serves another feature set; [`TrainError::Stopped`] if `stop` returns true
    /// while the service prepares its data.
    pub fn training(
        program: &Path,
        config: &TrainConfig,
        task: MethodTask<'_>,
        set: &ServedSet,
        start: u64,
        stop: StopCheck<'_>,
    ) -> Result<BatchStream, TrainError> {
        // The run ends the epochs of a share that it passes over several times.
        let epochs_are_passes = task.first && !config.repeat_share;
        let request = Request {
            split: Split::Train,
            seed: config.seed,
            epochs: if epochs_are_passes { config.settings.epochs } else { ENDLESS },
            epoch_samples: config.settings.epoch_samples.filter(|_| epochs_are_passes),
            start_batch: start,
            ..base_request(config, task, &set.request)
        };
        BatchStream::open(program, &request, Some(config.settings.epochs), config, set, stop)
    }

    /// Opens a method's validation split, for one pass.
    ///
    /// # Errors
    /// As [`BatchStream::training`].
    pub fn validation(
        program: &Path,
        config: &TrainConfig,
        task: MethodTask<'_>,
        set: &ServedSet,
        stop: StopCheck<'_>,
    ) -> Result<BatchStream, TrainError> {
        let base = base_request(config, task, &set.request);
        // A share of the training games has the validation games of the whole.
        let reading = ReadOptions { training_share: None, ..base.reading };
        let request = Request { split: Split::Validation, seed: VALIDATION_SEED, shuffle: false, reading, ..base };
        BatchStream::open(program, &request, None, config, set, stop)
    }

    fn open(
        program: &Path,
        request: &Request,
        epochs: Option<u32>,
        config: &TrainConfig,
        set: &ServedSet,
        stop: StopCheck<'_>,
    ) -> Result<BatchStream, TrainError> {
        let client = Client::spawn_until(program, request, stop)?.ok_or(TrainError::Stopped)?;
        let description = client.description();
        if description.identity != set.identity {
            let served = &description.identity;
            let ServedSet { request: set, identity } = set;
            return Err(TrainError::Config(format!(
                "the samples service serves feature set {served} under the name `{set}`, the trainer has {identity}; \
                 use one build and one definition for both"
            )));
        }
        Ok(BatchStream {
            client,
            loss: config.settings.eval_loss,
            skipping: epochs
                .filter(|_| !config.settings.skip.is_empty())
                .map(|_| (config.settings.skip, config.seed.draws("skipped samples"))),
            thinned: ThinnedBatch::default(),
            jitter: epochs
                .filter(|_| config.settings.eval_loss.lambda_jitter > 0.0)
                .map(|_| config.seed.draws("lambda jitter")),
            by_expression: request.bucket_rule.is_some(),
            epochs,
            next: request.start_batch,
            current: ReadBatch::default(),
            following: ReadBatch::default(),
            read_ahead: None,
        })
    }

    #[must_use]
    pub fn description(&self) -> &Description {
        self.client.description()
    }

    /// Calls `process` with the next batch, with the targets of `epoch`, counted from 0. `None` at the end of the data.
    ///
    /// # Errors
    /// If the service failed or sent a broken batch; [`TrainError::Stopped`] if `stop` returns true before the batch
    /// arrives; errors of `process`.
    pub fn next<T>(
        &mut self,
        epoch: u32,
        stop: StopCheck<'_>,
        process: impl FnOnce(&Batch<'_>) -> Result<T, TrainError>,
    ) -> Result<Option<T>, TrainError> {
        self.next_numbered(epoch, stop, |batch, _| process(batch))
    }

    /// As [`BatchStream::next`]; `process` also gets the number of each sample in the data.
    ///
    /// # Errors
    /// As [`BatchStream::next`].
    pub fn next_numbered<T>(
        &mut self,
        epoch: u32,
        stop: StopCheck<'_>,
        process: impl FnOnce(&Batch<'_>, &[u32]) -> Result<T, TrainError>,
    ) -> Result<Option<T>, TrainError> {
        let method = self.description().method;
        let BatchStream {
            client,
            loss,
            skipping,
            thinned,
            jitter,
            by_expression,
            epochs,
            next,
            current,
            following,
            read_ahead,
        } = self;
        let found = match read_ahead.take() {
            Some(found) => {
                std::mem::swap(current, following);
                found?
            }
            None if client.wait(stop) => current.read(client)?,
            None => return Err(TrainError::Stopped),
        };
        if !found {
            return Ok(None);
        }
        let number = current.memory.batch().number();
        let broken = |why| TrainError::Batch { batch: number, why };
        if number != *next {
            return Err(broken(format!("batch {next} was expected")));
        }
        *next += 1;
        let loss = match *epochs {
            Some(epochs) => loss.at(epoch, epochs),
            None => loss.at(0, 1),
        };
        if method == Method::Eval {
            current.fill_targets(&loss, *jitter).map_err(TrainError::Labels)?;
        }
        let served = current.memory.batch();
        let active = [served.stm(), served.nstm()].map(ActiveFeatures::from);
        let labels = match method {
            Method::Eval => Labels::Eval(&current.targets),
            Method::Pqr => Labels::Pqr,
        };
        let bucket_inputs = if *by_expression { served.buckets() } else { served.piece_counts() };
        let batch = Batch { samples: served.samples(), active, bucket_inputs, labels };
        batch.check().map_err(broken)?;
        let (batch, numbers) = match skipping {
            None => (batch, served.sample_indices()),
            Some((rules, draws)) => {
                let numbers = served.sample_indices();
                let fields = SampleFields {
                    numbers,
                    scores: served.scores(),
                    results: served.results(),
                    plies: served.plies(),
                    piece_counts: served.piece_counts(),
                };
                thinned.fill(&batch, numbers, &rules.kept(&fields, *draws, epoch));
                (thinned.batch(labels), thinned.numbers())
            }
        };
        if batch.positions() < READ_AHEAD || !client.is_ready() {
            return process(&batch, numbers).map(Some);
        }
        let mut read_following = || {
            let found = following.read(client);
            if method == Method::Eval && matches!(found, Ok(true)) {
                // What fails here fails again when this batch's turn has come, and is reported then.
                let _ = following.fill_targets(&loss, *jitter);
            }
            *read_ahead = Some(found);
        };
        let mut process = Some(process);
        let mut processed = None;
        run_beside(&mut read_following, &mut || {
            processed = process.take().map(|process| process(&batch, numbers));
        });
        processed.transpose()
    }
}

/// The boards of about `count` samples, spread evenly over the training data of the first method.
///
/// # Errors
/// If the data cannot be read.
pub fn training_boards(config: &TrainConfig, count: usize) -> Result<Vec<Board>, TrainError> {
    let tasks = config.tasks();
    let request = Request { split: Split::Train, ..base_request(config, tasks[0], &config.set) };
    Ok(service::prepare(request, &())?.boards(count)?)
}

/// The options that training and validation share.
fn base_request(config: &TrainConfig, task: MethodTask<'_>, set: &str) -> Request {
    let eval = task.method == Method::Eval;
    Request {
        reading: ReadOptions { from_unit: task.reading.from_unit.filter(|_| eval), ..task.reading },
        evals: config.evals,
        needs: eval.then(|| config.settings.eval_loss.needs()),
        bucket_rule: config.settings.shape_options.bucket_rule.expression().map(str::to_owned),
        batch_size: config.settings.batch_size,
        validation: config.settings.validation,
        split_seed: config.settings.split_seed,
        threads: config.settings.threads(),
        ..Request::new(set, task.data, task.method)
    }
}

fn fill_targets(
    targets: &mut Vec<f32>,
    batch: &service::ClientBatch<'_>,
    loss: &EvalLoss,
    jitter: Option<Draws>,
) -> Result<(), String> {
    let known = |value: f32| (!value.is_nan()).then_some(value);
    targets.clear();
    for (sample, (&score, &result)) in batch.scores().iter().zip(batch.results()).enumerate() {
        let (score, result) = (known(score), known(result));
        // Where one of the two is missing, λ has no effect.
        let jitter = jitter.filter(|_| score.is_some() && result.is_some());
        let own_loss = match (jitter, batch.sample_indices().get(sample)) {
            (Some(draws), Some(index)) => loss.with_jitter(draws, *index),
            _ => *loss,
        };
        let target = eval_target(score, result, &own_loss).ok_or_else(|| {
            let index = batch.sample_indices().get(sample).copied().unwrap_or_default();
            let missing = if loss.lambda > 0.0 || loss.form == LossForm::Epsilon { "score" } else { "game result" };
            format!(
                "sample {index} of the data has no {missing}, which λ = {} needs; build the data set without such \
                 samples or choose another λ",
                loss.lambda
            )
        })?;
        targets.push(target);
    }
    Ok(())
}
