//! `fsbench uci`: a network as a UCI engine.

use std::io::{BufReader, stdin, stdout};
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::Failure;
use super::net::{FormatHints, load_for_engine};
use crate::alpha_beta::{UciHost, uci, uci_commands};
use crate::generate::draw_openings;

/// Play as a UCI engine
///
/// Understands the standard commands, and `bench`, `eval` and `d`. Options: Hash, Threads (only 1), EvalFile (loads
/// another network), Move Overhead, SoftNodes (check node limits between iterations; one that takes more than 8 times
/// as many is cut short), Ponder, UCI_Chess960. A line `info string error: …` reports a wrong command. `go mate N` gives
/// up at depth 2N + 10. `bench` counts the same nodes as `fsbench bench`.
///
/// `genfens N seed S book FILE` (or `book None`) draws N openings for OpenBench, as `fsbench dataset generate` begins
/// games: a position of the book and 1 to 4 random moves, or 8 or 9 random moves from the start, also from that of a
/// Chess960 game with a last word `chess960` or `double-chess960`. Openings that the network scores beyond ±1000
/// centipawns are left out.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The network to load at the start; the option EvalFile replaces it
    #[arg(long, value_name = "FILE")]
    net: Option<PathBuf>,
    #[command(flatten)]
    hints: FormatHints,
    /// Execute these commands and end, instead of reading commands: `bench 5`, or several in quotes, as in
    /// `"position startpos" "go depth 5"`; the exit status is 2 if one was wrong
    #[arg(value_name = "COMMAND")]
    commands: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let load = |path: &Path| {
        load_for_engine(path, &arguments.hints).map_err(|failure| match failure {
            Failure::Request(error) | Failure::Work(error) => super::error_text(&error),
        })
    };
    if let Some(path) = &arguments.net {
        // A wrong file on the command line ends the program; a wrong file in the option EvalFile does not.
        load(path).map_err(|message| Failure::Request(anyhow!(message)))?;
    }
    let host = UciHost { load: &load, openings: &draw_openings };
    if !arguments.commands.is_empty() {
        let are_executed = uci_commands(&lines(&arguments.commands), stdout(), host, arguments.net.clone());
        let failed = || Failure::Request(anyhow!("a command was not executed as given: see `info string error` above"));
        return if are_executed { Ok(()) } else { Err(failed()) };
    }
    uci(BufReader::new(stdin()), stdout(), host, arguments.net.clone()).map_err(Failure::work)
}

/// The lines that arguments stand for: one of all words, or one of each argument where any has several words. A last
/// `quit` says nothing new.
fn lines(arguments: &[String]) -> Vec<String> {
    let are_lines = arguments.iter().any(|argument| argument.trim().contains(char::is_whitespace));
    let commands = match arguments {
        [commands @ .., last] if last == "quit" => commands,
        commands => commands,
    };
    if are_lines { commands.to_vec() } else { vec![commands.join(" ")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_one_command_or_several() {
        let check = |words: &[&str], expected: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(lines(&words), expected);
        };
        check(&["bench"], &["bench"]);
        check(&["bench", "5"], &["bench 5"]);
        check(&["bench", "5", "quit"], &["bench 5"]);
        check(&["go", "depth", "5"], &["go depth 5"]);
        check(&["genfens 5 seed 42 book None", "quit"], &["genfens 5 seed 42 book None"]);
        check(&["uci", "position startpos", "go depth 3"], &["uci", "position startpos", "go depth 3"]);
        check(&["bench 5"], &["bench 5"]);
    }
}
