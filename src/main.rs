//! The `fsbench` command: the module `cli`, which is no part of the library, so that an edit of it builds fast.

use std::process::ExitCode;

// The library's modules, so that `crate::data` is the same module in every file under `src`.
use fsbench::{
    VERSION, alpha_beta, chess, cpu, data, engine, experiment, export, features, generate, json, measure, net, output,
    pipeline, play, record, report, service, system, text, train, units,
};

mod cli;

#[cfg(test)]
#[path = "../tests/common/skip.rs"]
mod skip;

fn main() -> ExitCode {
    cli::main()
}
