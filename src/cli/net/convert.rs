//! `fsbench net convert`: from one kind of network file to another.

use std::path::{Path, PathBuf};

use super::{Told, load};
use crate::cli::Failure;
use crate::cli::measure::{failure, note_skipped};
use crate::measure::arrange as arrange_by;
use crate::net::nnue::Nnue;
use crate::net::{NetError, bullet};

/// Turn a network into a .nnue file that Stockfish loads, a raw file as bullet writes it, or a network of fsbench's
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network of fsbench's, a run's folder, a checkpoint, a .nnue file, or with --bullet a raw file of bullet's
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The file to write
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// What kind of file to write (default: nnue if it ends in .nnue, else fsbench)
    #[arg(long = "to", value_enum, value_name = "KIND")]
    kind: Option<Kind>,
    #[command(flatten)]
    told: Told,
    /// Put neurons together that are active together in these games or this .fsd file: scores stay the same, engines that
    /// skip zero inputs get faster
    #[arg(long, value_name = "DATA")]
    arrange: Option<PathBuf>,
    /// What a .nnue file says of itself (default: what the one read says)
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(Copy, Clone, Debug, clap::ValueEnum)]
enum Kind {
    Fsbench,
    Nnue,
    Bullet,
}

impl Kind {
    fn of(path: &Path) -> Kind {
        match path.extension() {
            Some(ending) if ending == "nnue" => Kind::Nnue,
            _ => Kind::Fsbench,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { from, to, kind, told, arrange, description } = arguments;
    let mut loaded = load(from, told)?;
    if let Some(data) = arrange {
        let (file, reading) = arrange_by(loaded.file, data).map_err(failure)?;
        note_skipped(&reading);
        loaded.file = file;
    }
    match kind.unwrap_or_else(|| Kind::of(to)) {
        Kind::Fsbench => {
            loaded.file.save(to).map_err(Failure::work)?;
            done(to, "a network of fsbench's")
        }
        Kind::Bullet => {
            bullet::save(to, &loaded.file.net).map_err(|error| match error {
                NetError::Bullet { .. } => Failure::request(error),
                _ => Failure::work(error),
            })?;
            done(to, "a raw network as bullet writes it")
        }
        Kind::Nnue => {
            let said = loaded.nnue.map(|(_, said)| said);
            let description = description.clone().or(said).unwrap_or_else(|| "A network trained with fsbench.".into());
            let nnue = Nnue::from_file(loaded.file, &description).map_err(Failure::request)?;
            nnue.save(to).map_err(Failure::work)?;
            done(to, nnue.architecture.name())
        }
    }
}

fn done(to: &Path, kind: &str) -> Result<(), Failure> {
    Ok(outln!("{}: {kind}", to.display())?)
}
