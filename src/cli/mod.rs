//! The command line: arguments, one file per command, and printing.
//!
//! Exit status: 0 success, 1 the work failed, 2 the request was wrong, 128 + n after signal n. Commands print with
//! `outln!`, `note!` and the functions of `print`, because `println!` panics if the pipe is closed.

#[macro_use]
mod print;

mod bench;
mod completions;
mod dataset;
mod define;
mod delta;
mod elo;
mod encode;
mod engine_command;
mod eval;
mod explain;
mod export;
mod help;
mod input;
mod interrupt;
mod learning_loop;
mod man;
mod match_document;
mod match_play;
mod match_shard;
mod measure;
mod named_player;
mod net;
mod openings;
mod progress_bar;
mod report;
mod run;
mod run_slurm;
mod runs;
mod sample;
mod samples_service;
mod schema;
mod score_unit;
mod search;
mod select;
mod show;
mod skipped;
mod sprt;
mod threads;
mod train;
mod train_progress;
mod uci;
mod work;

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::VERSION;
use crate::data::DataError;
use crate::data::install_truncation_handler;
use crate::output::remove_unfinished;
use crate::system;
use print::{StdoutError, print_json, print_json_line, print_text};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The request was wrong: usage, a bad definition, a bad file. Exit status 2.
    Request(anyhow::Error),
    /// The work failed. Exit status 1.
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

/// The output format of results.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ResultFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON document on stdout.
    Json,
}

/// Compare input feature sets for NNUE chess networks.
#[derive(Debug, Parser)]
#[command(name = "fsbench", version = VERSION, disable_help_subcommand = true, after_help = help::list())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::Arguments),
    Completions(completions::Arguments),
    Dataset(dataset::Arguments),
    Define(define::Arguments),
    Delta(delta::Arguments),
    Elo(elo::Arguments),
    Encode(encode::Arguments),
    Eval(eval::Arguments),
    Explain(explain::Arguments),
    Export(export::Arguments),
    Help(help::Arguments),
    Loop(learning_loop::Arguments),
    Man(man::Arguments),
    Match(match_play::Arguments),
    Measure(measure::Arguments),
    Net(net::Arguments),
    Openings(openings::Arguments),
    Report(report::Arguments),
    Run(run::Arguments),
    Runs(runs::Arguments),
    SamplesService(samples_service::Arguments),
    Schema(schema::Arguments),
    Search(search::Arguments),
    Select(select::Arguments),
    Show(show::Arguments),
    Train(Box<train::Arguments>),
    Uci(uci::Arguments),
    Work(work::Arguments),
}

impl Command {
    fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Bench(arguments) => bench::run(arguments),
            Command::Completions(arguments) => completions::run(arguments),
            Command::Dataset(arguments) => dataset::run(arguments),
            Command::Define(arguments) => define::run(arguments),
            Command::Delta(arguments) => delta::run(arguments),
            Command::Elo(arguments) => elo::run(arguments),
            Command::Encode(arguments) => encode::run(arguments),
            Command::Eval(arguments) => eval::run(arguments),
            Command::Explain(arguments) => explain::run(arguments),
            Command::Export(arguments) => export::run(arguments),
            Command::Help(arguments) => help::run(arguments),
            Command::Loop(arguments) => learning_loop::run(arguments),
            Command::Man(arguments) => man::run(arguments),
            Command::Match(arguments) => match_play::run(arguments),
            Command::Measure(arguments) => measure::run(arguments),
            Command::Net(arguments) => net::run(arguments),
            Command::Openings(arguments) => openings::run(arguments),
            Command::Report(arguments) => report::run(arguments),
            Command::Run(arguments) => run::run(arguments),
            Command::Runs(arguments) => runs::run(arguments),
            Command::SamplesService(arguments) => samples_service::run(arguments),
            Command::Schema(arguments) => schema::run(arguments),
            Command::Search(arguments) => search::run(arguments),
            Command::Select(arguments) => select::run(arguments),
            Command::Show(arguments) => show::run(arguments),
            Command::Train(arguments) => train::run(arguments),
            Command::Uci(arguments) => uci::run(arguments),
            Command::Work(arguments) => work::run(arguments),
        }
    }
}

/// Refuses to overwrite a file without `--force`. All commands that write files follow this rule.
fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force { Err(Failure::request(DataError::Exists { path: path.to_path_buf() })) } else { Ok(()) }
}

/// The first argument or environment variable that is not UTF-8 and so cannot be written into a text file.
fn find_not_utf8() -> Option<String> {
    let arguments = std::env::args_os().skip(1).map(|argument| ("the argument".to_owned(), argument));
    let variables = ["FSBENCH_CACHE", "XDG_CACHE_HOME", system::HOME];
    let variables = variables.into_iter().filter_map(|name| Some((format!("{name} ="), std::env::var_os(name)?)));
    let mut values = arguments.chain(variables);
    values.find(|(_, value)| value.to_str().is_none()).map(|(name, value)| format!("{name} {}", value.display()))
}

/// Runs the command line and returns its exit status.
pub fn main() -> ExitCode {
    if let Some(value) = find_not_utf8() {
        note!("error: {value} is not UTF-8; fsbench writes names into text files, so please rename it");
        return ExitCode::from(2);
    }
    let matches = with_negative_numbers(Arguments::command()).try_get_matches();
    let arguments = match matches.and_then(|matches| parsed(&matches)) {
        Ok(arguments) => arguments,
        Err(answer) => return print_clap_answer(&answer),
    };
    if let Err(error) = interrupt::listen().and_then(|()| install_truncation_handler()) {
        note!("cannot handle signals: {error}");
    }
    let outcome = arguments.command.run();
    // Threads of a command that failed early may still be writing files.
    remove_unfinished();
    exit_code(outcome)
}

fn parsed(matches: &clap::ArgMatches) -> Result<Arguments, clap::Error> {
    let mut arguments = Arguments::from_arg_matches(matches)?;
    if let (Command::Train(train), Some((_, own))) = (&mut arguments.command, matches.subcommand()) {
        train.note_given(own);
    }
    Ok(arguments)
}

/// Takes `-1` behind an option for its value, so that it is refused as a number out of range.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let with_numbers = |argument: clap::Arg| {
        let is_option = argument.get_long().is_some() && argument.get_action().takes_values();
        if is_option { argument.allow_negative_numbers(true) } else { argument }
    };
    command.mut_args(with_numbers).mut_subcommands(with_negative_numbers)
}

/// Prints a help text or version to stdout, or a usage error to stderr.
fn print_clap_answer(answer: &clap::Error) -> ExitCode {
    match answer.print() {
        Err(cause) if !answer.use_stderr() => exit_code(Err(StdoutError(cause).into())),
        _ => ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2)),
    }
}

/// The exit status of the command, whose error is printed.
fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    let (error, status) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Request(error)) => (error, 2),
        Err(Failure::Work(error)) => (error, 1),
    };
    // A failure to print is never the request's fault, even inside another error.
    match error.chain().find_map(|cause| cause.downcast_ref::<StdoutError>()) {
        Some(stdout) if stdout.is_closed_pipe() => ExitCode::SUCCESS,
        Some(stdout) => {
            note!("error: {stdout}");
            ExitCode::from(1)
        }
        None => {
            note!("error: {}", error_text(&error));
            ExitCode::from(interrupt::exit_status().unwrap_or(status))
        }
    }
}

/// An error with its causes, except causes that its text already contains.
fn error_text(error: &anyhow::Error) -> String {
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

    #[test]
    fn everything_has_a_help_text() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path}: no help");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let name = argument.get_id().as_str();
                assert!(!help.trim().is_empty(), "{path}: {name} has no help");
                // A heading of clap's holds for all options that follow.
                let is_common = ["out", "format", "force"].contains(&name);
                assert!(!is_common || argument.get_help_heading().is_none(), "{path}: {name} has another's heading");
            }
            command.get_subcommands().for_each(|subcommand| check(subcommand, &path));
        }
        let command = <Arguments as clap::CommandFactory>::command();
        check(&command, "");
        command.debug_assert();
    }

    /// Checks every command's whole help text, with the options' values.
    fn for_every_help_text(check: &dyn Fn(&str, &str)) {
        fn visit(command: &mut clap::Command, path: &str, check: &dyn Fn(&str, &str)) {
            // Clap's own list of commands.
            if command.get_name() == "help" {
                return;
            }
            let path = format!("{path} {}", command.get_name());
            let text = command.render_long_help().to_string();
            check(&path, &text);
            command.get_subcommands_mut().for_each(|subcommand| visit(subcommand, &path, check));
        }
        let mut command = <Arguments as clap::CommandFactory>::command();
        command.build();
        visit(&mut command, "", check);
    }

    /// Help texts are doc comments: what rustdoc alone understands must not get into them, nor words without a space
    /// between them.
    #[test]
    fn help_texts_are_for_people() {
        for_every_help_text(&|path, text| {
            for leak in ["[`", "`]", "::", "](", "Self", "<br", "# Errors", "`None`", "Some(", "&str"] {
                assert!(!text.contains(leak), "{path}: {leak}\n{text}");
            }
            for word in text.split_whitespace() {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric());
                let is_glued = word.len() > 24 && word.chars().all(|c| c.is_alphabetic() || c == '_');
                assert!(!is_glued, "{path}: {word}");
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            for pair in words.windows(2) {
                let is_word = pair[0].len() > 1 && pair[0].chars().all(char::is_alphabetic);
                assert!(!(is_word && pair[0] == pair[1]), "{path}: {} {}", pair[0], pair[1]);
            }
        });
    }

    /// The options of a flattened struct that a command refuses.
    #[test]
    fn refused_options_are_hidden() {
        for_every_help_text(&|path, text| {
            let refused: &[&str] = match path {
                " fsbench loop" => &["--list-steps", "--step ", "--jobs", "--sbatch", "--only", "--without"],
                " fsbench search" => &["--only", "--without"],
                " fsbench measure loss" | " fsbench measure importance" => &["--lambda-"],
                _ => &[],
            };
            for option in refused {
                assert!(!text.contains(option), "{path}: {option}\n{text}");
            }
        });
    }

    #[test]
    fn many_options_stand_below_headings() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let mut counts = crate::units::SortedMap::new();
            for option in command.get_opts().filter(|option| !option.is_hide_set()) {
                *counts.get_or_insert(option.get_help_heading().unwrap_or("Options").to_owned(), 0) += 1;
            }
            let total: usize = counts.values().sum();
            assert!(total <= 20 || counts.values().all(|count| *count <= 20), "{path}: {counts:?}");
            command.get_subcommands().for_each(|subcommand| check(subcommand, &path));
        }
        check(&<Arguments as clap::CommandFactory>::command(), "");
    }

    /// `-h` fits two screens; `--help` has every option.
    #[test]
    fn the_short_help_of_a_training_is_short() {
        let mut command = <Arguments as clap::CommandFactory>::command();
        command.build();
        let train = command.find_subcommand_mut("train").expect("a command");
        let [short, long] = [train.render_help().to_string(), train.render_long_help().to_string()];
        assert!(short.lines().count() <= 70, "{short}");
        let options: Vec<String> =
            train.get_opts().filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
        assert!(options.len() > 40 && options.iter().all(|option| long.contains(option)), "{long}");
        assert!(short.contains("--l1") && !short.contains("--gradient-clip"), "{short}");
    }

    #[test]
    fn a_cause_is_printed_once() {
        let disk_error = || io::Error::other("disk gone");
        assert_eq!(
            error_text(&anyhow::Error::new(disk_error()).context("cannot write x")),
            "cannot write x: disk gone"
        );
        assert_eq!(
            error_text(&anyhow::Error::new(disk_error()).context("cannot write x: disk gone")),
            "cannot write x: disk gone"
        );
    }
}
