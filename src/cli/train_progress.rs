//! Progress of a training run on stderr: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::{interrupt, progress_bar};
use crate::train::{EpochMetrics, RunObserver, RunOverview, StepMetrics};

/// Time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

pub struct TrainProgress {
    resume: bool,
    bar: Option<ProgressBar>,
    epochs: u32,
    steps: u64,
    start: Instant,
    last_line: Instant,
    positions: u64,
}

impl TrainProgress {
    pub fn new(resume: bool) -> TrainProgress {
        let now = Instant::now();
        TrainProgress { resume, bar: None, epochs: 0, steps: 0, start: now, last_line: now, positions: 0 }
    }

    /// Removes the bar from the screen.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note!("{text}")),
            None => note!("{text}"),
        }
    }

    fn speed(&self) -> String {
        let rate = self.positions as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        format!("{:.0}k positions/s", rate / 1000.0)
    }
}

impl RunObserver for TrainProgress {
    fn note(&mut self, text: &str) {
        self.line(&format!("note: {text}"));
    }

    fn started(&mut self, overview: &RunOverview) {
        (self.epochs, self.steps) = (overview.epochs, overview.steps_per_epoch * u64::from(overview.epochs));
        match (self.resume, overview.steps_done) {
            (true, 0) => self.line(&format!("{} holds no checkpoint: beginning a new run", overview.folder.display())),
            (true, step) => self.line(&format!("resuming in {} after step {step}", overview.folder.display())),
            (false, _) => {}
        }
        let gpu = overview.gpu.as_ref().map(|gpu| format!(", on the {gpu}")).unwrap_or_default();
        self.line(&format!(
            "{}: {} features, {} parameters; {} epochs of {} samples in {} steps{gpu}",
            overview.set,
            overview.features,
            overview.parameters,
            overview.epochs,
            overview.samples_per_epoch,
            overview.steps_per_epoch
        ));
        if std::io::stderr().is_terminal() {
            let style = progress_bar::style("{prefix} {wide_bar} {pos}/{len} {msg}, {left}");
            let bar = ProgressBar::new(self.steps).with_style(style);
            bar.set_position(overview.steps_done);
            bar.reset_eta();
            self.bar = Some(bar);
        }
        self.start = Instant::now();
        self.last_line = Instant::now();
    }

    fn stepped(&mut self, step: &StepMetrics) {
        self.positions += step.positions;
        let message = format!("loss {:.5}, {}", step.loss, self.speed());
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!("epoch {}/{}", step.epoch, self.epochs));
            bar.set_message(message);
            bar.set_position(step.step);
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            self.line(&format!("epoch {}/{}, step {}/{}: {message}", step.epoch, self.epochs, step.step, self.steps));
        }
    }

    fn validating(&mut self, _epoch: u32) {
        if let Some(bar) = &self.bar {
            bar.set_message("validating");
        }
    }

    fn finished_epoch(&mut self, metrics: &EpochMetrics) {
        let accuracy = metrics.validation_accuracy.map(|share| format!(", {:.1}% preferred", 100.0 * share));
        let speed = metrics.samples_per_second.map(|rate| format!(", {:.0}k samples/s", rate / 1000.0));
        let second = metrics.second.map(|second| {
            format!(" ({} {:.6} and {:.6})", second.method.name(), second.train_loss, second.validation_loss)
        });
        self.line(&format!(
            "epoch {}/{}: training loss {:.6}, validation loss {:.6}{}{}, {:.1} s{}",
            metrics.epoch,
            self.epochs,
            metrics.train_loss,
            metrics.validation_loss,
            accuracy.unwrap_or_default(),
            second.unwrap_or_default(),
            metrics.seconds,
            speed.unwrap_or_default()
        ));
    }

    fn interrupted(&self) -> bool {
        interrupt::requested()
    }
}
