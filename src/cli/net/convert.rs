//! `fsbench net convert`: from one kind of network file to another.

use std::io::Write;
use std::path::PathBuf;

use super::load;
use crate::cli::Failure;
use crate::net::nnue::{Architecture, Nnue};

/// Turn a network into a .nnue file that Stockfish loads, or a .nnue file into a network of fsbench's
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network of fsbench's or a .nnue file
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The file to write; what ends in .nnue becomes one
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// Of a .nnue file whose header fits two, the architecture (stockfish-15, stockfish-15.1, …)
    #[arg(long, value_name = "NAME")]
    arch: Option<Architecture>,
    /// What a .nnue file says of itself (default: what the one read says)
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { from, to, arch, description } = arguments;
    let loaded = load(from, *arch)?;
    if to.extension().is_none_or(|ending| ending != "nnue") {
        loaded.file.save(to).map_err(Failure::work)?;
        return done(to, "a network of fsbench's");
    }
    let told = loaded.nnue.map(|(_, told)| told);
    let description = description.clone().or(told).unwrap_or_else(|| "A network trained with fsbench.".into());
    let nnue = Nnue::from_file(loaded.file, &description).map_err(Failure::request)?;
    nnue.save(to).map_err(Failure::work)?;
    done(to, nnue.architecture.name())
}

fn done(to: &std::path::Path, kind: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{}: {kind}", to.display()).map_err(Failure::work)
}
