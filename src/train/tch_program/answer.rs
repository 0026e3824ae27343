//! The side of `fsbench-tch`: reads the run, does it and writes its events.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Cause, Event, TrainingRequest};
use crate::VERSION;
use crate::json;
use crate::train::trainer::MakeTrainer;
use crate::train::{
    DeviceChoice, EpochMetrics, RunObserver, RunOverview, StepMetrics, TrainConfig, TrainError, TrainOutcome,
    TrainingRun,
};

/// Time between two reports of steps, which stand for all steps between them.
const STEP_INTERVAL: Duration = Duration::from_millis(50);

/// Chooses the trainer of a run before anything of the run is touched.
pub type ChooseTrainer<'a> =
    dyn FnMut(&TrainConfig, DeviceChoice) -> Result<Box<MakeTrainer<'static>>, TrainError> + 'a;

/// Does the run that `input` asks for, writes its events to `output` and returns its outcome. `stop` stops the run; it
/// is set at the end of the input and when nobody reads the output. Nothing is passed on by it: its accesses are
/// relaxed.
///
/// # Errors
/// As the run; the error is written to the output, too.
pub fn answer(
    mut input: impl BufRead + Send + 'static,
    output: &mut dyn Write,
    stop: &Arc<AtomicBool>,
    choose_trainer: &mut ChooseTrainer<'_>,
) -> Result<TrainOutcome, TrainError> {
    let mut events = EventWriter { output, stop, steps: None, reported: Instant::now() };
    events.write(&Event::Ready { version: VERSION.into() });
    let outcome = read_request(&mut input).and_then(|request| {
        stop_at_end(input, Arc::clone(stop));
        train(&request, choose_trainer, &mut events)
    });
    events.write(&match &outcome {
        Ok(outcome) => Event::Finished { outcome: Box::new(outcome.clone()) },
        Err(error) => Event::Failed { cause: cause(error), message: error.to_string() },
    });
    outcome
}

fn read_request(input: &mut dyn BufRead) -> Result<TrainingRequest, TrainError> {
    let mut line = String::new();
    let read = input.read_line(&mut line).map_err(|error| error.to_string());
    let parsed = read.and_then(|_| json::from_text(&line).map_err(|error| error.to_string()));
    parsed.map_err(|why| TrainError::Config(format!("standard input holds no run: {why}")))
}

fn train(
    request: &TrainingRequest,
    choose_trainer: &mut ChooseTrainer<'_>,
    events: &mut EventWriter<'_>,
) -> Result<TrainOutcome, TrainError> {
    let TrainingRequest { config, device, folder, resume, force, service, checkpoint_every } = request;
    let checkpoint_every = Duration::try_from_secs_f64(*checkpoint_every)
        .map_err(|error| TrainError::Config(format!("checkpoint_every: {error}")))?;
    let make_trainer = choose_trainer(config, *device)?;
    let run = TrainingRun {
        resume: *resume,
        force: *force,
        service: Some(service),
        checkpoint_every,
        ..TrainingRun::new(config, Path::new(folder))
    };
    run.train_with(&*make_trainer, events)
}

/// Sets `stop` when the input ends.
fn stop_at_end(mut input: impl BufRead + Send + 'static, stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        // Anything more on the input means nothing. An error is its end.
        let _ = io::copy(&mut input, &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    });
}

fn cause(error: &TrainError) -> Cause {
    match error {
        TrainError::Stopped => Cause::Stopped,
        TrainError::Interrupted { step, .. } => Cause::Interrupted { step: *step },
        TrainError::NoGpu(_) => Cause::NoGpu,
        error if error.is_of_network() => Cause::Network { is_request: error.is_request() },
        error if error.is_request() => Cause::Request,
        _ => Cause::Work,
    }
}

/// Writes a run's events.
struct EventWriter<'a> {
    output: &'a mut dyn Write,
    stop: &'a AtomicBool,
    /// Steps that are not yet reported, as one.
    steps: Option<StepMetrics>,
    reported: Instant,
}

impl EventWriter<'_> {
    fn write(&mut self, event: &Event) {
        let json = json::to_text(event).map_err(io::Error::other);
        let written = json.and_then(|json| {
            writeln!(self.output, "{json}")?;
            self.output.flush()
        });
        if written.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn report_steps(&mut self) {
        if let Some(steps) = self.steps.take() {
            self.write(&Event::Stepped(steps));
            self.reported = Instant::now();
        }
    }
}

impl RunObserver for EventWriter<'_> {
    fn note(&mut self, text: &str) {
        self.write(&Event::Note { text: text.into() });
    }

    fn started(&mut self, overview: &RunOverview) {
        self.write(&Event::Started(overview.clone()));
    }

    fn stepped(&mut self, step: &StepMetrics) {
        let mut steps = *step;
        if let Some(before) = self.steps {
            steps.samples += before.samples;
            steps.positions += before.positions;
        }
        self.steps = Some(steps);
        if self.reported.elapsed() >= STEP_INTERVAL {
            self.report_steps();
        }
    }

    fn validating(&mut self, epoch: u32) {
        self.report_steps();
        self.write(&Event::Validating { epoch });
    }

    fn finished_epoch(&mut self, metrics: &EpochMetrics) {
        self.write(&Event::FinishedEpoch(metrics.clone()));
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
