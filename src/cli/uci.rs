//! `fsbench uci`: a network as a UCI engine.

use std::io::{BufReader, stdin, stdout};
use std::path::{Path, PathBuf};

use super::Failure;
use super::net::{FormatHints, load_for_engine};
use crate::search::uci;

/// Play as a UCI engine
///
/// Understands the standard commands, and `bench`, `eval` and `d`. Options: Hash, EvalFile (loads another network),
/// Move Overhead, SoftNodes (check node limits between iterations only). A line `info string error: …` reports a wrong
/// command.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The network to load at the start; the option EvalFile replaces it
    #[arg(long, value_name = "FILE")]
    net: Option<PathBuf>,
    #[command(flatten)]
    hints: FormatHints,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let load = |path: &Path| {
        load_for_engine(path, &arguments.hints).map_err(|failure| match failure {
            Failure::Request(error) | Failure::Work(error) => super::error_text(&error),
        })
    };
    if let Some(path) = &arguments.net {
        // A wrong file on the command line ends the program; a wrong file in the option EvalFile does not.
        load(path).map_err(|message| Failure::Request(anyhow::anyhow!(message)))?;
    }
    uci(BufReader::new(stdin()), stdout(), &load, arguments.net.clone()).map_err(Failure::work)
}
