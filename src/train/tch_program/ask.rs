//! The side of `fsbench`: starts `fsbench-tch`, hands it the run and passes its events on.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::gpus::{self, ClaimedGpu};
use super::{Cause, Event, TchError, TrainingRequest, find};
use crate::VERSION;
use crate::json;
use crate::system;
use crate::train::{DeviceChoice, RunObserver, TrainError, TrainOutcome, TrainingRun};

/// How long an event is waited for before the observer is asked whether to go on.
const POLL: Duration = Duration::from_millis(100);
/// How long the program may take to end after it has closed its output.
const LONGEST_END: Duration = Duration::from_secs(30);
/// OpenMP reads it when the program starts.
const WAIT_POLICY: &str = "OMP_WAIT_POLICY";
/// GNU's OpenMP reads it instead of the policy: rounds that an idle thread spins before it sleeps.
const SPIN_COUNT: &str = "GOMP_SPINCOUNT";
/// Lines that may wait to be read.
const WAITING_LINES: usize = 64;

/// Trains by `fsbench-tch` on a device.
///
/// # Errors
/// If the program is missing, of another version or ends without a result, and the run's own errors.
pub fn train(
    run: &TrainingRun<'_>,
    device: DeviceChoice,
    observer: &mut dyn RunObserver,
) -> Result<TrainOutcome, TrainError> {
    let service = run.program()?;
    let gpu = if device == DeviceChoice::Cpu { None } else { gpus::claim() };
    let mut process = TchProcess::start(find(&service)?, gpu)?;
    process.check_version(observer)?;
    process.request(&TrainingRequest {
        config: run.config.clone(),
        device,
        folder: run.folder.to_path_buf(),
        resume: run.resume,
        force: run.force,
        service,
        checkpoint_every: run.checkpoint_every.as_secs_f64(),
    })?;
    loop {
        match process.next(observer)? {
            Event::Ready { .. } => return Err(process.foreign("it says twice that it is ready".into()).into()),
            Event::Note { text } => observer.note(&text),
            Event::Started(overview) => observer.started(&overview),
            Event::Stepped(step) => observer.stepped(&step),
            Event::Validating { epoch } => observer.validating(epoch),
            Event::FinishedEpoch(metrics) => observer.finished_epoch(&metrics),
            Event::Finished { outcome } => return Ok(*outcome),
            Event::Failed { cause, message } => return Err(failure(cause, message, run.folder)),
        }
    }
}

fn failure(cause: Cause, message: String, folder: &Path) -> TrainError {
    match cause {
        Cause::Stopped => TrainError::Stopped,
        Cause::Interrupted { step } => TrainError::Interrupted { step, folder: folder.into() },
        Cause::NoGpu => TrainError::NoGpu(message),
        Cause::Network { is_request } => TchError::Failed { message, is_request, is_of_network: true }.into(),
        Cause::Request => TchError::Failed { message, is_request: true, is_of_network: false }.into(),
        Cause::Work => TchError::Failed { message, is_request: false, is_of_network: false }.into(),
    }
}

/// The running program. It is killed when this is dropped before its end.
struct TchProcess {
    program: PathBuf,
    child: Child,
    /// The lines of its output.
    lines: Receiver<String>,
    /// Its own, on a machine of several.
    _gpu: Option<ClaimedGpu>,
}

impl TchProcess {
    fn start(program: PathBuf, gpu: Option<ClaimedGpu>) -> Result<TchProcess, TchError> {
        let mut command = Command::new(&program);
        // In a process group of its own, so that Ctrl-C reaches only this program, which then ends the other properly.
        system::in_own_group(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Idle threads of libtorch's OpenMP that spin for ever take the cores that the samples service needs: ten times
        // slower. Those that sleep at once wake up late: half as fast in small batches as with a few milliseconds.
        if std::env::var_os(WAIT_POLICY).is_none() {
            command.env(WAIT_POLICY, "passive");
            if std::env::var_os(SPIN_COUNT).is_none() {
                command.env(SPIN_COUNT, "100000");
            }
        }
        if let Some(gpu) = &gpu {
            command.env(gpus::VISIBLE, &gpu.name);
        }
        let failed = |source| TchError::Start { program: program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let Some(output) = child.stdout.take() else {
            return Err(failed(std::io::Error::other("it has no standard output")));
        };
        Ok(TchProcess { lines: read_lines(output), program, child, _gpu: gpu })
    }

    /// Reads the first event.
    fn check_version(&mut self, observer: &mut dyn RunObserver) -> Result<(), TrainError> {
        loop {
            match self.lines.recv_timeout(POLL) {
                Ok(line) => match self.event(&line)? {
                    Event::Ready { version } if version == VERSION => return Ok(()),
                    Event::Ready { version } => {
                        let program = self.program.clone();
                        return Err(TchError::Version { program, found: version, own: VERSION }.into());
                    }
                    _ => return Err(self.foreign("it does not say its version first".into()).into()),
                },
                Err(RecvTimeoutError::Timeout) if observer.interrupted() => return Err(TrainError::Stopped),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.exit_status()?;
                    return Err(TchError::NotReady { program: self.program.clone(), status }.into());
                }
            }
        }
    }

    fn request(&mut self, request: &TrainingRequest) -> Result<(), TrainError> {
        let json = json::to_text(request).map_err(|error| self.foreign(error.to_string()))?;
        match self.child.stdin.as_mut().map(|input| input.write_all((json + "\n").as_bytes())) {
            Some(Ok(())) => Ok(()),
            _ => Err(self.died()),
        }
    }

    /// The next event. Ends the program's input when the run shall stop.
    fn next(&mut self, observer: &dyn RunObserver) -> Result<Event, TrainError> {
        loop {
            if observer.interrupted() {
                drop(self.child.stdin.take());
            }
            match self.lines.recv_timeout(POLL) {
                Ok(line) => return Ok(self.event(&line)?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
            }
        }
    }

    fn event(&self, line: &str) -> Result<Event, TchError> {
        json::from_text(line).map_err(|error| self.foreign(format!("{error} in `{line}`")))
    }

    fn foreign(&self, why: String) -> TchError {
        TchError::Foreign { program: self.program.clone(), why }
    }

    /// The program closed its output without a result.
    fn died(&mut self) -> TrainError {
        match self.exit_status() {
            Ok(status) => TchError::Died { program: self.program.clone(), status }.into(),
            Err(error) => error.into(),
        }
    }

    /// Waits for the end of the program, which has closed its output.
    fn exit_status(&mut self) -> Result<ExitStatus, TchError> {
        drop(self.child.stdin.take());
        let ended = Instant::now() + LONGEST_END;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(source) => return Err(TchError::Start { program: self.program.clone(), source }),
            }
            // A driver may hang at the program's end.
            if Instant::now() > ended {
                let _ = self.child.kill();
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for TchProcess {
    fn drop(&mut self) {
        // After its last event the program ends by itself; killing it then loses nothing. Fails if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines on a thread of their own, until the output ends.
fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = sync_channel(WAITING_LINES);
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
