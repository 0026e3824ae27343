//! `fsbench dataset`: make, build and look at training data.

mod build;
mod convert;
mod engine;
mod filters;
mod generate;
mod info;
mod stats;
mod verify;

use std::time::Duration;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};

use super::Failure;
use super::threads::Threads;
use crate::pipeline::{BuildError, BuildOptions, Manifest};

/// Make, build and look at training data
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Build(build::Arguments),
    Convert(convert::Arguments),
    Generate(generate::Arguments),
    Info(info::Arguments),
    Stats(stats::Arguments),
    Verify(verify::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Build(arguments) => build::run(arguments),
        What::Convert(arguments) => convert::run(arguments),
        What::Generate(arguments) => generate::run(arguments),
        What::Info(arguments) => info::run(arguments),
        What::Stats(arguments) => stats::run(arguments),
        What::Verify(arguments) => verify::run(arguments),
    }
}

fn failure(error: impl Into<BuildError>) -> Failure {
    let error = error.into();
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

/// Says what does not hold for samples that tell neither ply nor game.
pub(super) fn warn_without_plies(manifest: &Manifest) {
    for source in manifest.without_plies() {
        let by_ply = |options: &BuildOptions| options.min_ply > 0 || options.max_ply.is_some();
        if manifest.options.as_ref().is_some_and(by_ply) {
            note!("warning: the samples of {} tell no ply: the filters by ply pass them all", source.path);
        }
        note!(
            "warning: the samples of {} tell no game: each counts as one, so that a split into training and validation \
             puts neighbouring positions of a game on both sides",
            source.path
        );
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A line on stderr while something runs, where stderr is a terminal.
pub(super) fn progress(length: Option<u64>, template: &str) -> ProgressBar {
    let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    bar.set_style(style(template));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
