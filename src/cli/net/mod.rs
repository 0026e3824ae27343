//! `fsbench net`: shows and converts network files. Loads networks for the other commands.

pub(super) mod convert;
pub(super) mod info;

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Failure;
use crate::alpha_beta::PlayingNetwork;
use crate::engine::Model;
use crate::measure::MeasuredNetwork;
use crate::net::bullet::{OrderEvidence, OutputOrder};
use crate::net::nnue::Architecture;
use crate::net::{self, Activation, LoadOptions, LoadedNetwork, NetFile, Scheme, bullet, load_float, load_quantised};
use crate::play::{NetworkPlayer, Player};
use crate::train::run_dir;

/// Show and convert network files
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: NetCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NetCommand {
    Convert(convert::Arguments),
    Info(info::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        NetCommand::Convert(arguments) => convert::run(arguments),
        NetCommand::Info(arguments) => info::run(arguments),
    }
}

/// Which network a file or a folder holds, where it does not say it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct NetworkHints {
    /// Architecture of a .nnue file whose header fits two (stockfish-15, stockfish-15.1, …)
    #[arg(long, value_name = "NAME")]
    pub(super) arch: Option<Architecture>,
    /// Run folder: take the network of the last epoch instead of the best one
    #[arg(long)]
    pub(super) last: bool,
    /// Quantise a checkpoint by this scheme (stockfish, stockfish-18, stockfish-19, simple) [default: the scheme it was
    /// trained for]
    #[arg(long, value_name = "NAME", conflicts_with = "arch")]
    pub(super) scheme: Option<String>,
}

/// Options for files other than bullet's.
const OTHER_FILES: [&str; 3] = ["arch", "last", "scheme"];

/// Options for facts that a network file does not store.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Network files")]
pub(super) struct FormatHints {
    #[command(flatten)]
    network: NetworkHints,
    /// Read a raw bullet file for this feature set (a TOML file, the name of a shipped set, or an expression)
    #[arg(long, value_name = "SET", conflicts_with_all = OTHER_FILES)]
    bullet: Option<String>,
    /// Bullet file: activation of the accumulators
    #[arg(long, value_enum, default_value_t = Activation::Screlu, requires = "bullet",
        conflicts_with_all = OTHER_FILES)]
    activation: Activation,
    /// Bullet file: number of output buckets
    #[arg(long, value_name = "N", default_value_t = 1, requires = "bullet",
        conflicts_with_all = OTHER_FILES,
        value_parser = clap::value_parser!(u32).range(1..=32))]
    buckets: u32,
    /// Bullet file: accumulator width, if the file's size fits several
    #[arg(long, value_name = "WIDTH", requires = "bullet", conflicts_with_all = OTHER_FILES)]
    l1: Option<usize>,
    /// Bullet file with output buckets: order of the output weights, bucket by bucket (saved with `.transpose()`) or
    /// input by input (saved without) [default: bucket]
    #[arg(long, value_enum, value_name = "ORDER", requires = "bullet",
        conflicts_with_all = OTHER_FILES)]
    output_order: Option<OutputOrder>,
}

/// The network that a command works with.
#[derive(Debug, clap::Args)]
pub(super) struct NetArgument {
    /// A network file, run folder, checkpoint or Stockfish .nnue file; with --bullet, a raw bullet file
    #[arg(long = "net", value_name = "FILE", display_order = 0)]
    path: PathBuf,
    #[command(flatten)]
    hints: FormatHints,
}

impl NetArgument {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Loads the network; a checkpoint is quantised.
    pub(super) fn load(&self) -> Result<NetFile, Failure> {
        Ok(load(&self.path, &self.hints)?.file)
    }

    /// Loads another file with the same hints.
    pub(super) fn load_other(&self, path: &Path) -> Result<NetFile, Failure> {
        Ok(load(path, &self.hints)?.file)
    }

    /// Loads the network with its feature set, laid out for the engine.
    pub(super) fn load_for_engine(&self) -> Result<PlayingNetwork, Failure> {
        load_for_engine(&self.path, &self.hints)
    }

    /// Loads the network as the player of a match.
    pub(super) fn load_player(&self) -> Result<Player, Failure> {
        load_player(&self.path, &self.hints)
    }
}

impl FormatHints {
    /// Hints for files other than bullet's.
    pub(super) fn new(network: NetworkHints) -> FormatHints {
        let activation = Activation::Screlu;
        FormatHints { network, bullet: None, activation, buckets: 1, l1: None, output_order: None }
    }

    /// Whether files are taken for bullet's.
    pub(super) const fn is_bullet(&self) -> bool {
        self.bullet.is_some()
    }

    /// The file to load: `path`, or a network in the run folder `path`.
    fn file(&self, path: &Path) -> anyhow::Result<PathBuf> {
        if path.is_dir() {
            return Ok(run_dir::network(path, self.network.last)?);
        }
        if self.network.last {
            anyhow::bail!("--last needs a run folder, but {} is a file", path.display());
        }
        Ok(path.to_path_buf())
    }

    fn load_options(&self) -> anyhow::Result<LoadOptions> {
        let output_order = self.output_order.unwrap_or_default();
        let buckets = self.buckets as usize;
        let layout = bullet::BulletLayout { activation: self.activation, buckets, l1: self.l1, output_order };
        let bullet = self.bullet.clone().map(|set| (set, layout));
        Ok(LoadOptions { architecture: self.network.arch, scheme: self.scheme()?, bullet })
    }

    /// The scheme of `--scheme`.
    fn scheme(&self) -> anyhow::Result<Option<Scheme>> {
        let Some(name) = &self.network.scheme else { return Ok(None) };
        let names = || Scheme::all().map(|scheme| scheme.name).join(", ");
        let unknown = || format!("unknown quantisation scheme `{name}`; known are {}", names());
        Scheme::named(name).with_context(unknown).map(Some)
    }
}

/// Loads a network without quantising: a checkpoint gives a float network. Files that are not bullet's are recognised
/// despite `--bullet`.
pub(super) fn load_unquantised(path: &Path, hints: &FormatHints) -> Result<MeasuredNetwork, Failure> {
    let file_path = hints.file(path).map_err(Failure::Request)?;
    if let Ok((net, checkpoint)) = load_float(&file_path) {
        let scheme = hints.scheme().map_err(Failure::Request)?;
        let (file, _) = load_quantised(&file_path, scheme.as_ref()).map_err(Failure::request)?;
        return Ok(MeasuredNetwork::Float { net, origin: checkpoint.origin, scheme: file.net.scheme });
    }
    if hints.bullet.is_some()
        && let Ok(file) = NetFile::load(&file_path)
    {
        return Ok(MeasuredNetwork::Integer(file));
    }
    Ok(MeasuredNetwork::Integer(load(path, hints)?.file))
}

/// Loads a network with its feature set, laid out for the engine.
pub(super) fn load_for_engine(path: &Path, hints: &FormatHints) -> Result<PlayingNetwork, Failure> {
    let file = load(path, hints)?.file;
    let set = file.origin.feature_set().with_context(|| path.display().to_string()).map_err(Failure::Request)?;
    Ok(PlayingNetwork { set, model: Model::new(&file.net) })
}

/// Loads a network as the player of a match, named by its path.
pub(super) fn load_player(path: &Path, hints: &FormatHints) -> Result<Player, Failure> {
    let place = || path.display().to_string();
    let file = load(path, hints)?.file;
    let network = NetworkPlayer::of(&file).with_context(place).map_err(Failure::Request)?;
    let name = if path.is_dir() { place() } else { path.with_extension("").display().to_string() };
    Ok(Player::network(name, network))
}

/// Loads a network; a checkpoint is quantised.
pub(super) fn load(path: &Path, hints: &FormatHints) -> Result<LoadedNetwork, Failure> {
    let path = &hints.file(path).map_err(Failure::Request)?;
    let options = hints.load_options().map_err(Failure::Request)?;
    let loaded = net::load(path, &options).map_err(Failure::request)?;
    note_output_order(path, hints.output_order, &loaded);
    Ok(loaded)
}

/// Says in which order the output weights of a bullet file were read, unless it was given or the weights show that it
/// is right.
fn note_output_order(path: &Path, given: Option<OutputOrder>, loaded: &LoadedNetwork) {
    let path = path.display();
    match loaded.output_order {
        Some((order, OrderEvidence::Contradicts(other))) => note!(
            "warning: {path} seems to hold its output weights {} by {}, but was read with --output-order {}; give \
             --output-order {}",
            other.name(),
            other.name(),
            order.name(),
            other.name()
        ),
        Some((order, OrderEvidence::Unknown)) if given.is_none() => note!(
            "note: the output weights of {path} are read {} by {}, which the file does not show; if bullet saved them \
             without `.transpose()`, give --output-order input",
            order.name(),
            order.name()
        ),
        _ => {}
    }
}
