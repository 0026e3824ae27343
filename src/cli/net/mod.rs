//! `fsbench net`: look into network files and turn one kind into another.

mod convert;
mod info;

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Failure;
use crate::features::FeatureSet;
use crate::measure::Network;
use crate::net::nnue::{Architecture, Nnue, is_nnue};
use crate::net::{
    Activation, NetError, NetFile, Scheme, StoredPrecision, bullet, load_float, load_quantised, read_description,
};
use crate::train::run_dir;

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

/// What a network file does not say of itself.
#[derive(Debug, clap::Args)]
pub(super) struct FormatHints {
    /// Of a .nnue file whose header fits two, the architecture (stockfish-15, stockfish-15.1, …)
    #[arg(long, value_name = "NAME")]
    arch: Option<Architecture>,
    /// The file is a raw network of bullet's for this feature set (a TOML file, a shipped set's name, an expression)
    #[arg(long, value_name = "SET", conflicts_with = "arch")]
    bullet: Option<String>,
    /// Of bullet's file, what follows the accumulators
    #[arg(long, value_enum, default_value_t = Activation::Screlu, requires = "bullet")]
    activation: Activation,
    /// Of bullet's file, the number of output buckets
    #[arg(long, value_name = "N", default_value_t = 1, requires = "bullet", value_parser = clap::value_parser!(u32).range(1..=32))]
    buckets: u32,
    /// Of bullet's file, the accumulator's width where the size fits several
    #[arg(long, value_name = "WIDTH", requires = "bullet")]
    l1: Option<usize>,
    /// Of a run's folder, take the last epoch's network instead of the best one's
    #[arg(long, conflicts_with = "bullet")]
    last: bool,
    /// Quantise a checkpoint by this scheme (stockfish, simple) [default: the one it was trained for]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["bullet", "arch"])]
    scheme: Option<String>,
}

impl FormatHints {
    /// The file that a request names: itself, or a network of a run's folder.
    fn file(&self, path: &Path) -> anyhow::Result<PathBuf> {
        match path.is_dir() {
            true => Ok(run_dir::network(path, self.last)?),
            false if self.last => {
                anyhow::bail!("--last chooses among a run folder's networks, and {} is a file", path.display())
            }
            false => Ok(path.to_path_buf()),
        }
    }

    /// The scheme named for a checkpoint.
    fn scheme(&self) -> anyhow::Result<Option<Scheme>> {
        let Some(name) = &self.scheme else { return Ok(None) };
        let names = || Scheme::all().map(|scheme| scheme.name).join(", ");
        let unknown = || format!("there is no quantisation scheme `{name}`; there are {}", names());
        Scheme::named(name).with_context(unknown).map(Some)
    }
}

/// A network of any kind.
pub(super) struct Loaded {
    pub(super) file: NetFile,
    pub(super) format: &'static str,
    /// Of a `.nnue` file.
    pub(super) architecture: Option<Architecture>,
    /// What the file says of itself.
    pub(super) description: Option<String>,
}

/// Reads a network, or a checkpoint as a network in floating point. With --bullet what is of fsbench's or Stockfish's own
/// kind is read as such.
pub(super) fn load_or_float(path: &Path, hints: &FormatHints) -> Result<Network, Failure> {
    let found = hints.file(path).map_err(Failure::Request)?;
    if let Ok((net, checkpoint)) = load_float(&found) {
        let scheme = hints.scheme().map_err(Failure::Request)?;
        let (file, _) = load_quantised(&found, scheme.as_ref()).map_err(Failure::request)?;
        return Ok(Network::Float { net, origin: checkpoint.origin, scheme: file.net.scheme });
    }
    if hints.bullet.is_some()
        && let Ok(file) = NetFile::load(&found)
    {
        return Ok(Network::Integer(file));
    }
    Ok(Network::Integer(load(path, hints)?.file))
}

/// Reads a network.
pub(super) fn load(path: &Path, hints: &FormatHints) -> Result<Loaded, Failure> {
    let path = &hints.file(path).map_err(Failure::Request)?;
    let scheme = hints.scheme().map_err(Failure::Request)?;
    let read = || -> Result<Loaded, NetError> {
        if let Some(set) = &hints.bullet {
            let set = FeatureSet::resolve(set).map_err(NetError::Definition)?;
            let layout = bullet::Layout { activation: hints.activation, buckets: hints.buckets as usize, l1: hints.l1 };
            let file = bullet::load(path, &set, layout)?;
            return Ok(Loaded { file, format: "bullet", architecture: None, description: None });
        }
        if !is_nnue(path)? {
            let (file, held) = load_quantised(path, scheme.as_ref())?;
            let format = if held == StoredPrecision::Float { "checkpoint, quantised" } else { "fsbench" };
            let description = if held == StoredPrecision::Float { None } else { read_description(path)? };
            return Ok(Loaded { file, format, architecture: None, description });
        }
        let nnue = Nnue::load(path, hints.arch)?;
        let architecture = Some(nnue.architecture);
        let description = Some(String::from_utf8_lossy(&nnue.description).into_owned());
        Ok(Loaded { file: nnue.into_file()?, format: "nnue", architecture, description })
    };
    read().map_err(Failure::request)
}
