//! `fsbench export`: a definition or a network as source for an engine.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;

use super::net::{FormatHints, NetworkHints, load};
use super::{Failure, ResultFormat, print_json};
use crate::chess::Chess;
use crate::export::network::ExportedNetwork;
use crate::export::{Export, ExportError, ExportFile, Language};
use crate::features::FeatureSet;
use crate::net::{NetError, NetFile};

/// Write a definition or a network as plain Rust or C source for an engine, with the vectors that prove it
///
/// The folder gets `feature_set.rs` or `feature_set.h` (active features, deltas, contexts and refreshes without any
/// dependency), `golden.jsonl` and a README; of a network also `network.rs` or `network.h` (accumulators and the scores
/// of `fsbench eval`) and `weights.bin`. The files belong to whoever exports them, under any terms.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A feature set (a TOML file, the name of a shipped set, or an expression), or a network (a network file, run
    /// folder, checkpoint or Stockfish .nnue file)
    #[arg(value_name = "SET|NET")]
    subject: String,
    /// The language of the source
    #[arg(long, value_enum)]
    lang: LanguageName,
    /// Add an input type for the trainer bullet (bullet.rs); needs `--lang rust`
    #[arg(long)]
    bullet: bool,
    /// A new or empty folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    hints: NetworkHints,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
enum LanguageName {
    /// Edition 2021, no_std
    Rust,
    /// C11, header only
    C,
}

/// A definition or a network as source code.
#[derive(Serialize, JsonSchema)]
pub struct ExportDocument<'a> {
    /// The set's name.
    name: &'a str,
    /// The identity of the set.
    identity: String,
    language: Language,
    /// The folder that was written.
    out: &'a PathBuf,
    /// The files in it.
    files: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let language = match arguments.lang {
        LanguageName::Rust => Language::Rust,
        LanguageName::C => Language::C,
    };
    let network = match network_path(&arguments.subject) {
        Some(path) => Some(load_network(path, arguments)?),
        None => None,
    };
    let set = match &network {
        Some(file) => file.origin.feature_set().with_context(|| arguments.subject.clone()).map_err(Failure::Request)?,
        None => {
            refuse_network_options(arguments)?;
            FeatureSet::resolve(&arguments.subject).map_err(Failure::request)?
        }
    };
    let export = Export::new(&set, language).with_bullet(arguments.bullet);
    let files = match &network {
        None => export.write(&arguments.out),
        Some(file) => write_network(export, file, &set, language, &arguments.out)?,
    };
    let files =
        files.map_err(|error| if error.is_request() { Failure::request(error) } else { Failure::work(error) })?;
    let files: Vec<String> = files.into_iter().map(|file| file.name).collect();
    match arguments.format {
        ResultFormat::Text => outln!("{}: {}", arguments.out.display(), files.join(", "))?,
        ResultFormat::Json => print_json(&ExportDocument {
            name: set.name(),
            identity: set.identity().to_string(),
            language,
            out: &arguments.out,
            files,
        })?,
    }
    Ok(())
}

/// The subject as a network: a folder, or a file that is not a definition.
fn network_path(subject: &str) -> Option<&Path> {
    let path = Path::new(subject);
    let ends = |ending: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    (path.is_dir() || ends("nnue") || ends("safetensors") || path.is_file() && !ends("toml")).then_some(path)
}

fn load_network(path: &Path, arguments: &Arguments) -> Result<NetFile, Failure> {
    let hints = FormatHints::new(arguments.hints.clone());
    load(path, &hints).map(|loaded| loaded.file).map_err(|failure| match failure {
        Failure::Request(error) if lacks_definition(&error) => Failure::Request(anyhow::anyhow!(
            "{error:#}; an export needs the definition of the network's features: a raw file of bullet becomes a \
             network with one by `fsbench net convert --bullet SET`"
        )),
        failure => failure,
    })
}

/// Whether the file is of no kind that names its features.
fn lacks_definition(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(NetError::Container { .. } | NetError::Foreign { .. }))
}

/// Adds the network's files and evaluations to the export.
fn write_network(
    export: Export<'_>,
    file: &NetFile,
    set: &FeatureSet,
    language: Language,
    out: &Path,
) -> Result<Result<Vec<ExportFile>, ExportError>, Failure> {
    let exported = ExportedNetwork::new(file, set).map_err(Failure::request)?;
    let evaluate = |position: &Chess| exported.evaluate(set, position);
    Ok(export.with_network(exported.files(language), exported.readme(language), &evaluate).write(out))
}

/// # Errors
/// When an option for networks stands with a feature set.
fn refuse_network_options(arguments: &Arguments) -> Result<(), Failure> {
    let NetworkHints { arch, last, scheme } = &arguments.hints;
    let options = [("--arch", arch.is_some()), ("--last", *last), ("--scheme", scheme.is_some())];
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::Request(anyhow::anyhow!(
            "{option} needs a network, but `{}` is a feature set",
            arguments.subject
        ))),
        None => Ok(()),
    }
}
