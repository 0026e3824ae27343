//! The threads that call libtorch. Each call runs on its own thread alone, so that a run's bits do not depend on their
//! number.
//!
//! libtorch and the libraries below it (MKL, oneDNN, OpenMP) split a sum among as many threads as the environment or
//! the machine suggests, and another split rounds differently. Their number of threads is a setting of each calling
//! thread, and new threads do not inherit it. So each of ours sets its number to one before its first call. Rounding also
//! depends on alignment: libtorch's tensors begin at multiples of 64 bytes. (MKL's own reproducible mode, MKL_CBWR, would
//! deny fast kernels to CPUs other than Intel's.)

use std::cell::Cell;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::TrainError;

thread_local! {
    static IS_SET: Cell<bool> = const { Cell::new(false) };
}

/// Makes libtorch run calls of this thread on this thread alone, whatever the environment says. Must be called before
/// any other use of libtorch.
pub fn use_one_thread() {
    if IS_SET.replace(true) {
        return;
    }
    // The first query initialises a thread's setting from the process's; it must not happen later.
    let _ = tch::get_num_threads();
    tch::set_num_threads(1);
}

/// Threads that may call libtorch.
///
/// # Errors
/// When they cannot be started.
pub fn pool(threads: usize) -> Result<ThreadPool, TrainError> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).start_handler(|_| use_one_thread()).build();
    pool.map_err(|error| TrainError::Config(format!("cannot start {threads} threads: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Tensor;

    /// A test that trains with libtorch, run as a process whose environment asks it to use four threads.
    const TRAINS: &str = "train::device::model::tests::steps_are_those_of_the_kernels";

    /// With MKL_VERBOSE, MKL reports the number of threads of each call.
    #[test]
    fn libtorch_uses_one_thread_whatever_the_environment_says() {
        let program = std::env::current_exe().expect("this program");
        let mut command = std::process::Command::new(program);
        command.args(["--exact", TRAINS, "--nocapture"]);
        let environment = [("OMP_NUM_THREADS", "4"), ("MKL_NUM_THREADS", "4"), ("MKL_DYNAMIC", "FALSE")];
        let output = command.envs(environment).env("MKL_VERBOSE", "1").output().expect("runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        let calls: Vec<&str> = text.lines().filter(|line| line.contains("NThr:")).collect();
        if calls.is_empty() {
            crate::skip::skip("mkl", "this libtorch multiplies without MKL");
        }
        let split: Vec<&str> = calls.iter().copied().filter(|line| !line.trim_end().ends_with("NThr:1")).collect();
        assert!(split.is_empty(), "{} of {} calls were split: {split:#?}", split.len(), calls.len());
    }

    #[test]
    fn every_thread_of_a_pool_works_alone() {
        assert_eq!(pool(3).expect("threads").broadcast(|_| tch::get_num_threads()), [1; 3]);
    }

    #[test]
    fn tensors_begin_at_multiples_of_64_bytes() {
        let mut tensors = Vec::new();
        for rows in 1..40 {
            let numbers = vec![1.0f32; 7 * rows + 1];
            tensors.push(Tensor::f_from_slice(&numbers[1..]).expect("a tensor"));
        }
        for tensor in &tensors {
            assert_eq!(tensor.data_ptr() as usize % 64, 0, "{:?}", tensor.size());
        }
    }
}
