//! The `fsbench` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    fsbench::cli::main()
}
