//! The machine and the program that results come from.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::engine::BackEnd;

/// What a measured time depends on besides the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// Logical cores this process may use.
    pub cores: usize,
    /// The widest vector instructions the engine found: `scalar`, `avx2`, …
    pub back_end: String,
    /// What git calls the commit fsbench was built from; empty where it was built without git.
    pub commit: String,
    /// When, in UTC.
    pub recorded: Timestamp,
}

impl Machine {
    /// This machine, now.
    #[must_use]
    pub fn here() -> Machine {
        Machine {
            cpu: cpu(),
            cores: cores(),
            back_end: back_end(),
            commit: commit().into(),
            recorded: Timestamp::now(),
        }
    }
}

/// What git calls the commit fsbench was built from; empty where it was built without git.
#[must_use]
pub fn commit() -> &'static str {
    env!("FSBENCH_COMMIT")
}

/// The widest vector instructions the engine finds here.
#[must_use]
pub fn back_end() -> String {
    BackEnd::best().name().into()
}

/// The processor's own name, as Linux reports it; else the architecture.
#[must_use]
pub fn cpu() -> String {
    let info = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    cpu_in(&info).unwrap_or_else(|| format!("unnamed {} processor", std::env::consts::ARCH))
}

/// The first `model name` of a `/proc/cpuinfo`.
fn cpu_in(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(name).filter(|name| !name.is_empty())
}

/// Logical cores this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named() {
        assert_eq!(cpu_in("processor : 0\nmodel name\t: Some  CPU @ 2.5GHz\n").as_deref(), Some("Some CPU @ 2.5GHz"));
        assert_eq!(cpu_in("processor : 0\nBogoMIPS : 50\n"), None);
        let here = Machine::here();
        assert!(!here.cpu.is_empty() && here.cores > 0 && !here.back_end.is_empty());
    }
}
