//! The machine and the program that produced results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::engine::BackEnd;

/// Everything besides the network that a measured time depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The CPU's model name.
    pub cpu: String,
    /// Logical cores that the process may use.
    pub cores: usize,
    /// The widest vector instructions that the engine uses: `scalar`, `avx2`, …
    pub back_end: String,
    /// The commit that fsbench was built from, as `git describe` prints it; empty if it was built without git.
    pub commit: String,
    /// The kind of machine on which an experiment measures times, as its user calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_type: Option<String>,
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
            node_type: None,
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
    crate::cpu::model_name()
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
    fn every_field_is_known() {
        let machine = Machine::current();
        assert!(!machine.cpu.is_empty() && machine.cores > 0 && !machine.back_end.is_empty());
    }
}
