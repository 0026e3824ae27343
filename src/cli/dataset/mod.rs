//! `fsbench dataset`: generate, build, convert and inspect training data.

pub(super) mod build;
pub(super) mod convert;
mod engine;
pub(super) mod generate;
pub(super) mod info;
mod labels;
mod merge;
pub(super) mod stats;
pub(super) mod verify;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Subcommand;

use super::threads::Threads;
use super::{Failure, refuse_existing};
use crate::data::PgnNotes;
use crate::data::formats::Format;
use crate::pipeline::{BuildError, BuildOptions, Manifest, journal_path, manifest_path};

/// Generate, build, convert and inspect training data
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: DatasetCommand,
}

#[derive(Debug, Subcommand)]
enum DatasetCommand {
    Build(build::Arguments),
    Convert(convert::Arguments),
    Generate(generate::Arguments),
    Info(info::Arguments),
    Merge(merge::Arguments),
    Stats(stats::Arguments),
    Verify(verify::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        DatasetCommand::Build(arguments) => build::run(arguments),
        DatasetCommand::Convert(arguments) => convert::run(arguments),
        DatasetCommand::Generate(arguments) => generate::run(arguments),
        DatasetCommand::Info(arguments) => info::run(arguments),
        DatasetCommand::Merge(arguments) => merge::run(arguments),
        DatasetCommand::Stats(arguments) => stats::run(arguments),
        DatasetCommand::Verify(arguments) => verify::run(arguments),
    }
}

fn failure(error: impl Into<BuildError>) -> Failure {
    let error = error.into();
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

/// Refuses an output that names no file.
fn check_names_file(out: &Path) -> Result<(), Failure> {
    if out.file_name().is_none() {
        return Err(Failure::request(anyhow!("{} names no file", out.display())));
    }
    if out == Path::new("-") {
        return Err(Failure::request(anyhow!("- names no file, and samples are not written to stdout: name a file")));
    }
    Ok(())
}

/// Refuses to replace an input by what is made of it.
fn check_inputs(inputs: impl IntoIterator<Item = PathBuf>, out: &Path) -> Result<(), Failure> {
    let Ok(out) = out.canonicalize() else { return Ok(()) };
    let is_out = |input: &PathBuf| input.canonicalize().is_ok_and(|path| path == out);
    match inputs.into_iter().find(is_out) {
        Some(input) => {
            let input = input.display();
            Err(Failure::request(anyhow!("the output {input} is an input, too: give the output another name")))
        }
        None => Ok(()),
    }
}

/// Refuses to replace a file by the manifest of `out` without `force`. A manifest without its `.fsd` file, as an
/// interrupted command leaves, is replaced.
fn check_manifest(out: &Path, force: bool) -> Result<(), Failure> {
    let manifest = manifest_path(out);
    refuse_existing(&manifest, force || Manifest::load(&manifest).is_ok())
}

/// Warns about the journal of a finished output that could not be deleted.
fn warn_of_journal(output: &Path) {
    let journal = journal_path(output);
    if journal.exists() {
        note!("warning: {} is complete, but {} could not be deleted", output.display(), journal.display());
    }
}

/// Warns where scores in PGN comments may have been read wrongly, or were not read at all.
pub(super) fn warn_of_scores(file: &Path, notes: &PgnNotes) {
    if notes.concerns_scores() {
        for line in notes.lines() {
            note!("warning: {}: {line}", file.display());
        }
    }
}

/// Warns about sources whose format records neither ply nor game, and about those without tags where options go by these.
pub(super) fn warn_of_sources(manifest: &Manifest) {
    let goes_by_tags = |options: &BuildOptions| options.min_rating.is_some() || !options.speeds.is_empty();
    if manifest.options.as_ref().is_some_and(goes_by_tags) {
        for source in manifest.sources.iter().filter(|source| source.format != Format::Pgn) {
            note!(
                "warning: {} records no ratings or time controls: --min-rating and --speed let all its samples pass",
                source.path
            );
        }
    }
    for source in manifest.without_plies() {
        let filters_by_ply = |options: &BuildOptions| options.min_ply > 0 || options.max_ply.is_some();
        if manifest.options.as_ref().is_some_and(filters_by_ply) {
            note!("warning: {} records no plies: the filters by ply let all its samples pass", source.path);
        }
        note!(
            "warning: {} records no games: each sample counts as a game of its own, so neighbouring positions of a \
             game can be on both sides of a split into training and validation",
            source.path
        );
    }
}
