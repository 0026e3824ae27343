//! The threads that call libtorch: each by itself, so that a run's bits do not depend on how many there are.
//!
//! libtorch and what is below it (MKL, oneDNN, OpenMP) split a sum among as many threads as the environment or the machine
//! says, and a sum that is split otherwise is rounded otherwise. How many they take is a setting of each thread that calls
//! them, which a new thread does not inherit. So shards run side by side on threads of ours, and each of those is told to
//! work alone before its first call. What is left to rounding is where numbers lie in memory: libtorch's tensors begin at
//! multiples of 64 bytes, and kernels read nothing but tensors (MKL's own promise of equal bits, MKL_CBWR, would cost
//! other CPUs than Intel's their fast kernels).

use std::cell::Cell;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::TrainError;

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Has libtorch work for the calling thread on that thread alone, whatever the environment says. Whatever calls libtorch
/// calls this before.
pub fn alone() {
    if ALONE.replace(true) {
        return;
    }
    // Asked for the first time, libtorch sets a thread up by the process's last setting; it must not do so later.
    let _ = tch::get_num_threads();
    tch::set_num_threads(1);
}

/// Threads that may call libtorch.
///
/// # Errors
/// When they cannot be started.
pub fn pool(threads: usize) -> Result<ThreadPool, TrainError> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).start_handler(|_| alone()).build();
    pool.map_err(|error| TrainError::Config(format!("cannot start {threads} threads: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::memory::Floats;
    use tch::Tensor;

    /// A test of a model with several threads, run as a process of its own where everything invites libtorch to split.
    const TRAINS: &str = "train::model::tests::threads_do_not_change_a_bit";

    /// MKL says of each call on how many threads it was made.
    #[test]
    fn libtorch_splits_nothing_whatever_the_environment_says() {
        let program = std::env::current_exe().expect("this program");
        let mut command = std::process::Command::new(program);
        command.args(["--exact", TRAINS, "--nocapture"]);
        let invitation = [("OMP_NUM_THREADS", "4"), ("MKL_NUM_THREADS", "4"), ("MKL_DYNAMIC", "FALSE")];
        let output = command.envs(invitation).env("MKL_VERBOSE", "1").output().expect("runs");
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
    fn every_thread_works_alone() {
        assert_eq!(pool(3).expect("threads").broadcast(|_| tch::get_num_threads()), [1; 3]);
    }

    #[test]
    fn tensors_begin_at_multiples_of_64_bytes() {
        let mut kept = Vec::new();
        for rows in 1..40 {
            let numbers = vec![1.0f32; 7 * rows + 1];
            kept.push(Tensor::f_from_slice(&numbers[1..]).expect("a tensor"));
            kept.push(Floats::zeros(rows, 7).expect("a tensor").freeze().tensor(false));
        }
        for tensor in &kept {
            assert_eq!(tensor.data_ptr() as usize % 64, 0, "{:?}", tensor.size());
        }
    }
}
