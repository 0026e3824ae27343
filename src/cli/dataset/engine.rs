//! Arguments of the commands that run engines.

use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;

use crate::cli::net::{FormatHints, load_player};
use crate::cli::{Failure, engine_command};
use crate::pipeline::uci::{EngineSpec, Workers};
use crate::play::{Player, PlayerKind};
use crate::train::run_dir;

/// How engines are set up and run.
#[derive(Debug, clap::Args)]
pub struct EngineArguments {
    /// A UCI option; can be repeated; with several engines, `2:Name=Value` sets it for the second engine only
    #[arg(long = "engine-option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Hash table of each engine in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8)]
    hash: u32,
    /// Engines, or games, that run at once, which changes no result [default: 1; of networks: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Option<u16>,
    /// Longest wait for an engine's answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
}

impl EngineArguments {
    /// The engines of `texts`, with their options.
    pub fn specs(&self, texts: &[String]) -> Result<Vec<EngineSpec>, Failure> {
        let mut specs = Vec::new();
        for text in texts {
            specs.push(self.spec(text, text)?);
        }
        self.add_options(&mut specs.iter_mut().map(Some).collect::<Vec<_>>())?;
        Ok(specs)
    }

    /// The players of `texts`, with their options: networks, `uci:COMMAND`, or command lines.
    pub fn players(&self, texts: &[String], hints: &FormatHints) -> Result<Vec<Player>, Failure> {
        let mut players = Vec::new();
        for text in texts {
            players.push(match text.strip_prefix("uci:") {
                Some(command) => Player::engine(self.spec(text, command)?),
                None if is_network(Path::new(text), hints) => load_player(Path::new(text), hints)?,
                None => Player::engine(self.spec(text, text)?),
            });
        }
        self.add_options(&mut players.iter_mut().map(uci_spec).collect::<Vec<_>>())?;
        Ok(players)
    }

    /// The engine of `command`, a part of the argument `text`.
    fn spec(&self, text: &str, command: &str) -> Result<EngineSpec, Failure> {
        let bad = |why: String| Failure::request(anyhow!("--engine {text:?}: {why}"));
        Ok(EngineSpec { hash: self.hash, ..engine_command::parse(command).map_err(bad)? })
    }

    /// Gives the engines their options; networks have none.
    fn add_options(&self, engines: &mut [Option<&mut EngineSpec>]) -> Result<(), Failure> {
        for text in &self.options {
            let (number, rest) = split_number(text);
            let bad = |why: String| Failure::request(anyhow!("--engine-option {text:?}: {why}"));
            let option = EngineSpec::parse_option(rest).map_err(bad)?;
            let count = engines.len();
            let chosen = match number {
                None => &mut engines[..],
                Some(number) => match engines.get_mut(number.wrapping_sub(1)) {
                    Some(engine) => std::slice::from_mut(engine),
                    None => return Err(bad(format!("there are {count} engines"))),
                },
            };
            if chosen.iter().all(Option::is_none) {
                return Err(bad("a network has no options".into()));
            }
            chosen.iter_mut().flatten().for_each(|spec| spec.options.push(option.clone()));
        }
        Ok(())
    }

    /// MiB of a hash table.
    pub const fn hash(&self) -> u32 {
        self.hash
    }

    /// `concurrency`: where the command line does not say it.
    pub fn workers(&self, concurrency: usize) -> Workers {
        let concurrency = self.concurrency.map_or(concurrency, usize::from);
        Workers { concurrency, answer_timeout: Duration::from_secs(self.patience) }
    }
}

const fn uci_spec(player: &mut Player) -> Option<&mut EngineSpec> {
    match &mut player.kind {
        PlayerKind::Engine(spec) => Some(spec),
        PlayerKind::Network(_) => None,
    }
}

/// Whether a word names a network, or would name one if it existed: the folder of a run, or a file of a network.
fn is_network(path: &Path, hints: &FormatHints) -> bool {
    let has_name = path.extension().is_some_and(|ending| ending == "safetensors" || ending == "nnue");
    if path.is_dir() {
        run_dir::network(path, false).is_ok()
    } else {
        has_name || (hints.is_bullet() && path.is_file())
    }
}

/// Splits `2:Name=Value` into number and option.
fn split_number(text: &str) -> (Option<usize>, &str) {
    match text.split_once(':').map(|(number, rest)| (number.parse(), rest)) {
        Some((Ok(number), rest)) => (Some(number), rest),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_to_their_engines() {
        let check = |options: &[&str], expected: Option<[&[(&str, &str)]; 2]>| {
            let options = options.iter().map(|text| (*text).to_owned()).collect();
            let arguments = EngineArguments { options, hash: 8, concurrency: None, patience: 1 };
            let specs = arguments.specs(&["a".into(), "b".into()]).ok();
            let found = specs.map(|specs| specs.into_iter().map(|spec| spec.options).collect::<Vec<_>>());
            let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let expected = expected.map(|sides| sides.map(|side| side.iter().map(pair).collect::<Vec<_>>()).to_vec());
            assert_eq!(found, expected);
        };
        check(&["Style=wild", "2:Net=x:y"], Some([&[("Style", "wild")], &[("Style", "wild"), ("Net", "x:y")]]));
        check(&["Net=C:\\x"], Some([&[("Net", "C:\\x")], &[("Net", "C:\\x")]]));
        check(&["3:Net=x"], None);
        check(&["0:Net=x"], None);
        check(&["Hash=3"], None);
    }
}
