//! `fsbench help`: topics, which stand as Markdown beside the modules that they describe, and the help of commands.

use std::fmt::Write as _;

use clap::{CommandFactory, Parser};

use super::print::StdoutError;
use super::{Failure, print_text};
use crate::features::LANGUAGE_REFERENCE;
use crate::features::nearest;
use crate::report::COLUMNS;

/// Print a topic, or the help of a command
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A topic, or a command as in `fsbench help net info`; without it, the list of both
    #[arg(value_name = "TOPIC|COMMAND")]
    words: Vec<String>,
}

/// A page of `fsbench help`.
struct Topic {
    name: &'static str,
    /// For the list of topics.
    about: &'static str,
    text: &'static str,
}

const TOPICS: [Topic; 9] = [
    Topic {
        name: "data",
        about: "From games to samples: sources, scores, filters, formats, many processes",
        text: include_str!("../data/DATA.md"),
    },
    Topic {
        name: "training",
        about: "Networks on a set: shapes, losses, optimisers, runs, GPUs, Python",
        text: include_str!("../train/TRAINING.md"),
    },
    Topic {
        name: "experiments",
        about: "A TOML file from games to a report, by one process or many, also on a cluster",
        text: include_str!("../experiment/EXPERIMENTS.md"),
    },
    Topic {
        name: "results",
        about: "What the numbers of measures, matches and reports mean",
        text: include_str!("../report/RESULTS.md"),
    },
    Topic { name: "columns", about: "What the columns of a report's tables mean", text: COLUMNS },
    Topic {
        name: "migration",
        about: "Coming from bullet or nnue-pytorch: options, files, definitions",
        text: include_str!("../net/MIGRATION.md"),
    },
    Topic { name: "language", about: "The reference of the feature-set language", text: LANGUAGE_REFERENCE },
    Topic {
        name: "protocol",
        about: "Batches in shared memory, for a trainer in any language",
        text: include_str!("../service/PROTOCOL.md"),
    },
    Topic {
        name: "sizes",
        about: "What large data take: time, memory and disk",
        text: include_str!("../data/SIZES.md"),
    },
];

/// The list of topics that ends the help of the program.
pub fn list() -> String {
    let mut text = String::from("Topics of `fsbench help TOPIC`:");
    for topic in &TOPICS {
        let _ = write!(text, "\n  {:15}  {}", topic.name, topic.about);
    }
    text
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    for topic in &TOPICS {
        match &arguments.words[..] {
            [word] if topic.name == word => return Ok(print_text(topic.text)?),
            [word, ..] if topic.name == word => {
                return Err(Failure::Request(anyhow::anyhow!("`{word}` is a topic and has no commands")));
            }
            _ => {}
        }
    }
    let program = super::Arguments::command();
    let mut command = &program;
    for word in &arguments.words {
        let Some(found) = command.find_subcommand(word) else { return Err(unknown(word, command)) };
        command = found;
    }
    let mut line = vec!["fsbench"];
    line.extend(arguments.words.iter().map(String::as_str));
    line.push("--help");
    match super::Arguments::try_parse_from(line) {
        Ok(_) => Ok(()),
        Err(answer) => answer.print().map_err(|error| StdoutError(error).into()),
    }
}

/// The error about a word that names neither a topic nor a command of `parent`.
fn unknown(word: &str, parent: &clap::Command) -> Failure {
    let mut names = Vec::new();
    for subcommand in parent.get_subcommands() {
        names.push(subcommand.get_name());
    }
    let kind = match parent.get_name() {
        "fsbench" => {
            names.extend(TOPICS.iter().map(|topic| topic.name));
            "topic or command".to_owned()
        }
        name => format!("command of `{name}`"),
    };
    let hint = match nearest(word, names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`fsbench help` lists topics and commands".to_owned(),
    };
    Failure::Request(anyhow::anyhow!("there is no {kind} `{word}`; {hint}"))
}
