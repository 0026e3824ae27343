//! `fsbench net`: look into network files and turn one kind into another.

mod convert;
mod info;

use std::path::Path;

use super::Failure;
use crate::net::nnue::{Architecture, Nnue, recognise};
use crate::net::{NetError, NetFile};

/// Look into network files and convert them
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Convert(convert::Arguments),
    Info(info::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Convert(arguments) => convert::run(arguments),
        What::Info(arguments) => info::run(arguments),
    }
}

/// A network of either kind.
pub(super) struct Loaded {
    pub(super) file: NetFile,
    /// Of a `.nnue` file: architecture and description.
    pub(super) nnue: Option<(Architecture, String)>,
}

/// Reads a network; `arch` says which of two architectures with the same header a `.nnue` file has.
pub(super) fn load(path: &Path, arch: Option<Architecture>) -> Result<Loaded, Failure> {
    let read = || -> Result<Loaded, NetError> {
        if !recognise(path)? {
            return Ok(Loaded { file: NetFile::load(path)?, nnue: None });
        }
        let nnue = Nnue::load(path, arch)?;
        let told = (nnue.architecture, String::from_utf8_lossy(&nnue.description).into_owned());
        Ok(Loaded { file: nnue.into_file()?, nnue: Some(told) })
    };
    read().map_err(Failure::request)
}
