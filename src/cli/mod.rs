//! Arguments, one file a verb, and printing. Exit status: 0 done, 1 the work failed, 2 the request was wrong, 128 and a
//! signal's number after a signal. Verbs print by `outln!`, `note!` and the functions of `print`: `println!` panics where
//! a pipe is closed.

#[macro_use]
mod print;

mod bench;
mod dataset;
mod define;
mod delta;
mod elo;
mod encode;
mod eval;
mod explain;
mod input;
mod interrupt;
mod measure;
mod net;
mod report;
mod run;
mod runs;
mod sample;
mod samples_service;
mod score_unit;
mod select;
mod show;
mod tables;
mod threads;
mod train;
mod train_progress;
mod uci;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::data::DataError;
use print::{StdoutError, print_json, print_json_line, put};

use crate::data::tell_when_cut_off;
use crate::output::remove_unfinished;

/// Why a verb did not finish.
#[derive(Debug)]
pub enum Failure {
    /// The request was wrong: usage, a bad definition, a bad file. Exit status 2.
    Request(anyhow::Error),
    /// The work failed on the way. Exit status 1.
    Work(anyhow::Error),
}

impl Failure {
    pub fn request(error: impl Into<anyhow::Error>) -> Failure {
        Failure::Request(error.into())
    }

    pub fn work(error: impl Into<anyhow::Error>) -> Failure {
        Failure::Work(error.into())
    }
}

/// How results are printed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document on stdout.
    Json,
}

/// The package's version, and the commit it was built from where it was built in a checkout.
const VERSION: &str = match env!("FSBENCH_COMMIT").is_empty() {
    true => env!("CARGO_PKG_VERSION"),
    false => concat!(env!("CARGO_PKG_VERSION"), " (", env!("FSBENCH_COMMIT"), ")"),
};

/// Compare input feature sets for NNUE chess networks.
#[derive(Debug, Parser)]
#[command(name = "fsbench", version = VERSION)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Bench(bench::Arguments),
    Dataset(dataset::Arguments),
    Define(define::Arguments),
    Delta(delta::Arguments),
    Elo(elo::Arguments),
    Encode(encode::Arguments),
    Eval(eval::Arguments),
    Explain(explain::Arguments),
    Measure(measure::Arguments),
    Net(net::Arguments),
    Report(report::Arguments),
    Run(run::Arguments),
    Runs(runs::Arguments),
    SamplesService(samples_service::Arguments),
    Select(select::Arguments),
    Show(show::Arguments),
    Train(Box<train::Arguments>),
    Uci(uci::Arguments),
}

/// The rule of all verbs that write a file: what stands there is replaced with `--force` alone.
fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    match path.exists() && !force {
        true => Err(Failure::request(DataError::Exists { path: path.to_path_buf() })),
        false => Ok(()),
    }
}

/// The first argument, or name in the environment, that cannot be kept in a file of text.
fn not_utf8() -> Option<String> {
    let arguments = std::env::args_os().skip(1).map(|argument| ("the argument".to_owned(), argument));
    let variables = ["FSBENCH_CACHE", "XDG_CACHE_HOME", "HOME"];
    let variables = variables.into_iter().filter_map(|name| Some((format!("{name} ="), std::env::var_os(name)?)));
    let mut named = arguments.chain(variables);
    named.find(|(_, value)| value.to_str().is_none()).map(|(name, value)| format!("{name} {}", value.display()))
}

/// Runs the command line and gives its exit status.
pub fn main() -> ExitCode {
    if let Some(found) = not_utf8() {
        note!("error: {found} is not UTF-8: fsbench writes names into files of text; rename what is called so");
        return ExitCode::from(2);
    }
    let arguments = Arguments::parse();
    if let Err(error) = interrupt::listen().and_then(|()| tell_when_cut_off()) {
        note!("cannot listen to signals: {error}");
    }
    let outcome = match arguments.verb {
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Dataset(arguments) => dataset::run(&arguments),
        Verb::Define(arguments) => define::run(&arguments),
        Verb::Delta(arguments) => delta::run(&arguments),
        Verb::Elo(arguments) => elo::run(&arguments),
        Verb::Encode(arguments) => encode::run(&arguments),
        Verb::Eval(arguments) => eval::run(&arguments),
        Verb::Explain(arguments) => explain::run(&arguments),
        Verb::Measure(arguments) => measure::run(&arguments),
        Verb::Net(arguments) => net::run(&arguments),
        Verb::Report(arguments) => report::run(&arguments),
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Runs(arguments) => runs::run(&arguments),
        Verb::SamplesService(arguments) => samples_service::run(&arguments),
        Verb::Select(arguments) => select::run(&arguments),
        Verb::Show(arguments) => show::run(&arguments),
        Verb::Train(arguments) => train::run(&arguments),
        Verb::Uci(arguments) => uci::run(&arguments),
    };
    // A verb that ended early may have left threads at work.
    remove_unfinished();
    let (error, status) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Request(error)) => (error, 2),
        Err(Failure::Work(error)) => (error, 1),
    };
    // Wherever it happened, what could not be printed is no fault of the request.
    match error.chain().find_map(|cause| cause.downcast_ref::<StdoutError>()) {
        Some(stdout) if stdout.is_closed_pipe() => ExitCode::SUCCESS,
        Some(stdout) => {
            note!("error: {stdout}");
            ExitCode::from(1)
        }
        None => {
            note!("error: {}", explain(&error));
            ExitCode::from(interrupt::status().unwrap_or(status))
        }
    }
}

/// An error with its causes, as far as it does not name them itself.
fn explain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Whoever adds an option says what it does.
    #[test]
    fn everything_has_a_help_text() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path}: no help");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.trim().is_empty(), "{path}: {} has no help", argument.get_id());
            }
            command.get_subcommands().for_each(|inner| check(inner, &path));
        }
        let command = <Arguments as clap::CommandFactory>::command();
        check(&command, "");
        command.debug_assert();
    }

    #[test]
    fn a_cause_is_told_once() {
        let inner = || io::Error::other("disk gone");
        assert_eq!(explain(&anyhow::Error::new(inner()).context("cannot write x")), "cannot write x: disk gone");
        assert_eq!(
            explain(&anyhow::Error::new(inner()).context("cannot write x: disk gone")),
            "cannot write x: disk gone"
        );
    }
}
