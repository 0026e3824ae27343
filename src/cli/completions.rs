//! `fsbench completions`: completion scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Failure;
use super::print::print_bytes;

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
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "fsbench", &mut script);
    Ok(print_bytes(&script)?)
}
