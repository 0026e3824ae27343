//! `fsbench uci`: a network as a UCI engine.

use std::io::{BufReader, stdin, stdout};
use std::path::{Path, PathBuf};

use super::Failure;
use super::net::FormatHints;
use crate::engine::Model;
use crate::search::{PlayingNetwork, uci};

/// Play as a UCI engine
///
/// Standard commands, and `bench`, `eval` and `d`. Options: Hash, EvalFile (another network), Move Overhead, SoftNodes
/// (node limits are looked at between iterations only). A line `info string error: …` says what is wrong with a command.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The network to begin with; the option EvalFile names another
    #[arg(long, value_name = "FILE")]
    net: Option<PathBuf>,
    #[command(flatten)]
    hints: FormatHints,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let load = |path: &Path| -> Result<PlayingNetwork, String> {
        let file = match super::net::load(path, &arguments.hints) {
            Ok(loaded) => loaded.file,
            Err(Failure::Request(error) | Failure::Work(error)) => return Err(super::explain(&error)),
        };
        let set = file.origin.feature_set().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(PlayingNetwork { set, model: Model::new(&file.net) })
    };
    if let Some(path) = &arguments.net {
        // A mistake on the command line ends the program; one in an option does not.
        load(path).map_err(|problem| Failure::Request(anyhow::anyhow!(problem)))?;
    }
    uci(BufReader::new(stdin()), stdout(), &load, arguments.net.clone()).map_err(Failure::work)
}
