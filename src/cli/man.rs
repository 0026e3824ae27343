//! `fsbench man`: man pages from the help texts.

use std::path::PathBuf;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::{Failure, refuse_existing};
use crate::VERSION;
use crate::output;

/// Write man pages of fsbench and all its commands
///
/// For example, `fsbench man --out ~/.local/share/man/man1` makes `man fsbench-define` work. `fsbench completions`
/// prints completion scripts for shells.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder for the pages: fsbench.1, fsbench-define.1 and so on
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace pages that exist
    #[arg(long)]
    force: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut command = super::Arguments::command();
    // Sets the commands' full names, such as fsbench-define.
    command.build();
    let mut commands = Vec::new();
    collect_commands(&command, &mut commands);
    let mut pages = Vec::with_capacity(commands.len());
    for command in commands {
        let page = Man::new(command).source(format!("fsbench {VERSION}")).manual("fsbench manual");
        let path = arguments.out.join(page.get_filename());
        refuse_existing(&path, arguments.force)?;
        let mut text = Vec::new();
        page.render(&mut text).map_err(Failure::work)?;
        pages.push((path, text));
    }
    std::fs::create_dir_all(&arguments.out).map_err(|error| {
        Failure::Work(anyhow::anyhow!("cannot create the folder {}: {error}", arguments.out.display()))
    })?;
    for (path, text) in &pages {
        output::write(path, text).map_err(Failure::work)?;
    }
    note!("wrote {} man pages to {}", pages.len(), arguments.out.display());
    Ok(())
}

/// Collects a command and all commands below it.
fn collect_commands(command: &Command, commands: &mut Vec<Command>) {
    commands.push(command.clone());
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        collect_commands(subcommand, commands);
    }
}
