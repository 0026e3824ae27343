//! Arguments of the commands that run engines.

use std::time::Duration;

use anyhow::anyhow;

use crate::alpha_beta::TranspositionTable;
use crate::cli::Failure;
use crate::cli::named_player::NamedPlayer;
use crate::cli::net::{FormatHints, load_player};
use crate::pipeline::uci::{EngineSpec, Workers};
use crate::play::Player;

/// How engines are set up and run.
#[derive(Debug, clap::Args)]
pub struct EngineArguments {
    /// A UCI option; can be repeated; with several engines, `2:Name=Value` sets it for the second engine only
    #[arg(long = "engine-option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Hash table of each engine in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=TranspositionTable::MAX_MEGABYTES as i64))]
    hash: u32,
    /// Engines, or games, that run at once, which changes no result [default: 1; of games between networks: the number
    /// of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Option<u16>,
    /// Longest wait for an engine's answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
}

impl EngineArguments {
    /// What `texts` name, with the options: networks, `uci:COMMAND`, or command lines.
    pub fn named(&self, texts: &[String], is_bullet: bool) -> Result<Vec<NamedPlayer>, Failure> {
        let mut named = Vec::new();
        for text in texts {
            let bad = |why: String| Failure::request(anyhow!("--engine {text:?}: {why}"));
            let mut player = NamedPlayer::of_data(text, is_bullet).map_err(bad)?;
            match &mut player {
                NamedPlayer::Engine(spec) => spec.hash = self.hash,
                NamedPlayer::Network(_) => {
                    TranspositionTable::check_memory(self.hash as usize).map_err(Failure::request)?;
                }
            }
            named.push(player);
        }
        self.add_options(&mut named)?;
        Ok(named)
    }

    /// The players of `texts`, as [`EngineArguments::named`] takes them.
    pub fn players(&self, texts: &[String], hints: &FormatHints) -> Result<Vec<Player>, Failure> {
        let player = |named| match named {
            NamedPlayer::Network(path) => load_player(&path, hints),
            NamedPlayer::Engine(spec) => Ok(Player::engine(spec)),
        };
        self.named(texts, hints.is_bullet())?.into_iter().map(player).collect()
    }

    /// Gives the engines their options; networks have none.
    fn add_options(&self, named: &mut [NamedPlayer]) -> Result<(), Failure> {
        for text in &self.options {
            let (number, rest) = split_number(text);
            let bad = |why: String| Failure::request(anyhow!("--engine-option {text:?}: {why}"));
            let option = EngineSpec::parse_option(rest).map_err(bad)?;
            let count = named.len();
            let chosen = match number {
                None => &mut named[..],
                Some(number) => match named.get_mut(number.wrapping_sub(1)) {
                    Some(player) => std::slice::from_mut(player),
                    None => return Err(bad(format!("there are {count} engines"))),
                },
            };
            let mut engines = chosen.iter_mut().filter_map(NamedPlayer::as_engine).peekable();
            if engines.peek().is_none() {
                return Err(bad("a network has no options".into()));
            }
            engines.for_each(|spec| spec.options.push(option.clone()));
        }
        Ok(())
    }

    /// MiB of a hash table.
    pub const fn hash(&self) -> u32 {
        self.hash
    }

    pub const fn has_concurrency(&self) -> bool {
        self.concurrency.is_some()
    }

    /// `concurrency`: where the command line does not say it.
    pub fn workers(&self, concurrency: usize) -> Workers {
        let concurrency = self.concurrency.map_or(concurrency, usize::from);
        Workers { concurrency, answer_timeout: Duration::from_secs(self.patience) }
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
            let named = arguments.named(&["a".into(), "b".into()], false).ok();
            let options = |mut player: NamedPlayer| player.as_engine().map(|spec| spec.options.clone());
            let found = named.map(|named| named.into_iter().filter_map(options).collect::<Vec<_>>());
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
