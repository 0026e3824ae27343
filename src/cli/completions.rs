//! `fsbench completions`: completion scripts for shells.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use super::Failure;
use super::print::print_bytes;
use crate::features::shipped_names;

/// Print a shell's completion script for fsbench
///
/// Where the script goes, for example:
///   bash  fsbench completions bash > ~/.local/share/bash-completion/completions/fsbench
///   zsh   fsbench completions zsh > ~/.zfunc/_fsbench  (with ~/.zfunc in $fpath)
///   fish  fsbench completions fish > ~/.config/fish/completions/fsbench.fish
///
/// `fsbench man` writes man pages.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = with_sets(super::Arguments::command());
    clap_complete::generate(arguments.shell, &mut command, "fsbench", &mut script);
    Ok(print_bytes(&script)?)
}

/// The command with the names of the shipped sets as the values of arguments that take a set. It parses nothing: a set
/// may also be a file or an expression.
fn with_sets(command: Command) -> Command {
    let with_names = |argument: Arg| match argument.get_id().as_str() {
        "set" | "subject" | "bullet" if argument.get_action().takes_values() => {
            argument.value_parser(PossibleValuesParser::new(shipped_names()))
        }
        _ => argument,
    };
    command.mut_args(with_names).mut_subcommands(with_sets)
}
