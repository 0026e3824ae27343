//! `fsbench export`: a definition as source for an engine.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

use super::{Failure, Format, print_json};
use crate::export::{Export, Language};
use crate::features::FeatureSet;

/// Write a definition as plain Rust or C source for an engine, with the vectors that prove it
///
/// The folder gets `features.rs` or `features.h` (active features, deltas, contexts and refreshes without any
/// dependency), `golden.jsonl` and a README. The files belong to whoever exports them, under any terms.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// The language of the source
    #[arg(long, value_enum)]
    lang: LanguageName,
    /// Add an input type for the trainer bullet (bullet.rs); needs `--lang rust`
    #[arg(long)]
    bullet: bool,
    /// A new or empty folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
enum LanguageName {
    /// Edition 2021, no_std
    Rust,
    /// C11, header only
    C,
}

#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    identity: String,
    language: Language,
    out: &'a PathBuf,
    files: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let language = match arguments.lang {
        LanguageName::Rust => Language::Rust,
        LanguageName::C => Language::C,
    };
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    let written = Export::new(&set, language).with_bullet(arguments.bullet).write(&arguments.out);
    let files = written.map_err(|error| match error.is_request() {
        true => Failure::request(error),
        false => Failure::work(error),
    })?;
    let files: Vec<String> = files.into_iter().map(|file| file.name).collect();
    match arguments.format {
        Format::Text => outln!("{}: {}", arguments.out.display(), files.join(", "))?,
        Format::Json => print_json(&Document {
            name: set.name(),
            identity: set.identity().to_string(),
            language,
            out: &arguments.out,
            files,
        })?,
    }
    Ok(())
}
