//! The machine and the program that produced results.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::engine::BackEnd;

/// Everything besides the network that a measured time depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's model name.
    pub cpu: String,
    /// Logical cores that the process may use.
    pub cores: usize,
    /// The widest vector instructions that the engine uses: `scalar`, `avx2`, …
    pub back_end: String,
    /// The commit that fsbench was built from, as `git describe` prints it; empty if it was built without git.
    pub commit: String,
    /// Time of the measurement.
    pub recorded: Timestamp,
}

impl Machine {
    /// This machine, with the present time.
    #[must_use]
    pub fn current() -> Machine {
        Machine {
            cpu: cpu(),
            cores: cores(),
            back_end: back_end(),
            commit: commit().into(),
            recorded: Timestamp::now(),
        }
    }
}

/// The commit that fsbench was built from, as `git describe` prints it; empty if it was built without git.
#[must_use]
pub fn commit() -> &'static str {
    env!("FSBENCH_COMMIT")
}

/// The widest vector instructions that the engine uses on this machine.
#[must_use]
pub fn back_end() -> String {
    BackEnd::best().name().into()
}

/// The CPU's model name as Linux reports it, else its architecture.
#[must_use]
pub fn cpu() -> String {
    let info = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    model_name(&info).unwrap_or_else(|| format!("unnamed {} processor", std::env::consts::ARCH))
}

/// The first `model name` in the text of `/proc/cpuinfo`.
fn model_name(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(name).filter(|name| !name.is_empty())
}

/// Number of logical cores that this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named() {
        assert_eq!(
            model_name("processor : 0\nmodel name\t: Some  CPU @ 2.5GHz\n").as_deref(),
            Some("Some CPU @ 2.5GHz")
        );
        assert_eq!(model_name("processor : 0\nBogoMIPS : 50\n"), None);
        let machine = Machine::current();
        assert!(!machine.cpu.is_empty() && machine.cores > 0 && !machine.back_end.is_empty());
    }
}
