//! `fsbench-tch`: trains with libtorch, on the CPU or a GPU. `fsbench` starts it (`fsbench train --trainer tch`); what
//! the two say to each other is in `src/train/tch_program`. Only the modules of this program name libtorch.

mod adam;
mod bucket_order;
mod cuda;
mod dense;
mod device;
mod kernel_trainer;
mod kernels;
mod loss;
mod tensor_values;
mod trainer;

use std::io::{self, BufReader, IsTerminal, Write};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fsbench::VERSION;
use fsbench::system;
use fsbench::train::tch_program::{NAME, answer};
use fsbench::train::trainer::{MakeTrainer, TrainerSetup};
use fsbench::train::{DeviceChoice, TrainConfig, TrainError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tch::{Device, TchError};

use device::TrainingDevice;
use kernel_trainer::KernelTrainer;
use kernels::KernelLayout;
use kernels::card::check_card;
use kernels::cuda::{CudaKernels, Libraries};
use kernels::emulated::EmulatedKernels;
use kernels::memory_plan::{MemoryPlan, PlannedRun};
use trainer::TchTrainer;

const HELP: &str = "Trains a network with libtorch. `fsbench train --trainer tch` and `--device cuda` start it.\n\n\
    Standard input: the run as one line of JSON; its end stops the run.\n\
    Standard output: the run's events, a line of JSON each.";

/// The exit status of a run that was stopped, as after SIGINT.
const STOPPED: u8 = 130;

fn main() -> ExitCode {
    let text = match std::env::args().nth(1).as_deref() {
        None if !io::stdin().is_terminal() => return run(),
        Some("--version" | "-V") => format!("{NAME} {VERSION}"),
        _ => format!("{NAME} {VERSION}\n{HELP}"),
    };
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> ExitCode {
    // So that the run's folder is free for whoever goes on when `fsbench` was killed.
    system::end_with_parent();
    let stop = Arc::new(AtomicBool::new(false));
    if let Err(error) = stop_on_signals(&stop) {
        let _ = writeln!(io::stderr(), "{NAME}: cannot handle signals: {error}");
    }
    let input = BufReader::new(io::stdin());
    match answer(input, &mut io::stdout(), &stop, &mut choose_trainer) {
        Ok(_) => ExitCode::SUCCESS,
        Err(TrainError::Interrupted { .. } | TrainError::Stopped) => ExitCode::from(STOPPED),
        Err(error) if error.is_request() => ExitCode::from(2),
        Err(_) => ExitCode::FAILURE,
    }
}

/// The first signal stops the run, a second one ends the process.
fn stop_on_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    // Apart from `stop`, which the end of the input sets, too.
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&signalled))?;
        flag::register(signal, Arc::clone(&signalled))?;
        flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}

fn choose_trainer(config: &TrainConfig, device: DeviceChoice) -> Result<Box<MakeTrainer<'static>>, TrainError> {
    let device = device::choose(device)?;
    let batch_size = config.settings.batch_size;
    let positions_per_sample = config.positions_per_sample();
    Ok(Box::new(move |setup: TrainerSetup<'_>| {
        let shape = setup.state.net.shape.clone();
        let scheme = setup.rules.scheme.clone();
        match device {
            TrainingDevice::Gpu(number) => {
                let run = planned_run(&setup, batch_size, positions_per_sample);
                let plan = MemoryPlan::new(&KernelLayout::new(&shape), &run);
                let card = check_card(&Libraries::load(), number, &plan)?;
                let kernels = CudaKernels::new(&shape, &scheme, &card)?;
                let streams = Rc::new(kernels.streams()?);
                let TrainerSetup { state, rules, .. } = setup;
                let device = Device::Cuda(number);
                let trainer = KernelTrainer::new(state, rules, Box::new(kernels), streams, device)?;
                Ok(Box::new(trainer.on(card.name)))
            }
            TrainingDevice::EmulatedGpu => {
                use_threads(setup.threads);
                let kernels = EmulatedKernels::new(&shape, &scheme)?;
                let streams = Rc::new(kernels.streams());
                let TrainerSetup { state, rules, .. } = setup;
                let trainer = KernelTrainer::new(state, rules, Box::new(kernels), streams, Device::Cpu)?;
                Ok(Box::new(trainer.on("emulated GPU".into())))
            }
            TrainingDevice::Cpu => {
                use_threads(setup.threads);
                let TrainerSetup { state, rules, .. } = setup;
                Ok(Box::new(TchTrainer::new(state, rules, Device::Cpu)?))
            }
        }
    }))
}

fn planned_run(setup: &TrainerSetup<'_>, batch_size: usize, positions_per_sample: usize) -> PlannedRun {
    let TrainerSetup { state, set, .. } = setup;
    let virtual_values = state.factored.as_ref().map_or(0, |factored| factored.virtual_rows.len());
    PlannedRun {
        batch_size,
        positions_per_sample,
        max_active: set.max_active(),
        factor_rows: virtual_values / state.net.shape.row_len(),
        lookahead: state.lookahead.is_some(),
    }
}

/// Sets the number of threads that libtorch's calls of this thread use.
fn use_threads(threads: usize) {
    // The first query initialises a thread's setting from the process's; it must not happen later.
    let _ = tch::get_num_threads();
    tch::set_num_threads(threads as i32);
}

/// libtorch's error as a run's.
#[allow(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn torch_error(error: TchError) -> TrainError {
    TrainError::Device { library: "libtorch", why: error.to_string() }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, reason = "tests")]
mod tests;
