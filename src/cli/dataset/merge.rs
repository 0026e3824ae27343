//! `fsbench dataset merge`: makes a `.fsd` file of the shards of a build.

use std::path::PathBuf;

use super::build::{bar, check_output, print_built, show, warn_without_fit};
use super::labels::LabelOptions;
use super::{Threads, check_inputs, check_manifest, failure};
use crate::cli::sample::{FileArgument, all_files};
use crate::cli::{Failure, ResultFormat};
use crate::pipeline::WeightedInput;
use crate::pipeline::build::{MergeJob, merge_shards};

/// Make the .fsd file of a build from its shards
///
/// The file equals the file of one build of all inputs, byte for byte; its manifest differs in the command only. An
/// interrupted merge leaves nothing behind, but for the journal of an engine's scores, from which it resumes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// All shards of a build (`fsbench dataset build … --shard I/N`), in any order; files or 'globs*' in quotes
    #[arg(required = true, value_name = "SHARD")]
    shards: Vec<FileArgument>,
    /// The file to write; its manifest is written beside it as FILE.json
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    labels: LabelOptions,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let output = &arguments.out;
    let shards = &all_files(&arguments.shards)?;
    check_output(output, arguments.force)?;
    check_manifest(output, arguments.force)?;
    check_inputs(shards.iter().cloned(), output)?;
    let labels = arguments.labels.job()?;
    let command: Vec<String> = std::env::args().collect();
    let bar = bar(&shards.iter().map(|path| WeightedInput::file(path)).collect::<Vec<_>>());
    let job = MergeJob { shards, output, labels: labels.as_ref(), command: &command };
    let merged = merge_shards(&job, &mut |done| show(&bar, done));
    bar.finish_and_clear();
    let manifest = merged.map_err(failure)?;
    warn_without_fit(labels.as_ref(), &manifest);
    print_built(&manifest, output, arguments.format)
}
