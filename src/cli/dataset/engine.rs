//! Arguments of the commands that run engines.

use std::time::Duration;

use anyhow::anyhow;

use crate::cli::{Failure, engine_command};
use crate::pipeline::uci::{EngineSpec, Workers};

/// How engines are set up and run.
#[derive(Debug, clap::Args)]
pub struct EngineArguments {
    /// A UCI option; can be repeated; with several engines, `2:Name=Value` sets it for the second engine only
    #[arg(long = "engine-option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Hash table of each engine in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8)]
    hash: u32,
    /// Engines, or games between engines, that run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// Longest wait for an engine's answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
}

impl EngineArguments {
    /// The engines of `texts`, with their options.
    pub fn specs(&self, texts: &[String]) -> Result<Vec<EngineSpec>, Failure> {
        let mut specs = Vec::new();
        for text in texts {
            let bad = |why: String| Failure::request(anyhow!("--engine {text:?}: {why}"));
            specs.push(EngineSpec { hash: self.hash, ..engine_command::parse(text).map_err(bad)? });
        }
        for text in &self.options {
            let (number, rest) = split_number(text);
            let bad = |why: String| Failure::request(anyhow!("--engine-option {text:?}: {why}"));
            let option = EngineSpec::parse_option(rest).map_err(bad)?;
            match number {
                None => specs.iter_mut().for_each(|spec| spec.options.push(option.clone())),
                Some(number) => specs
                    .get_mut(number.wrapping_sub(1))
                    .ok_or_else(|| bad(format!("there are {} engines", texts.len())))?
                    .options
                    .push(option),
            }
        }
        Ok(specs)
    }

    /// The hash table of a network's search, which has no options.
    pub fn network_hash(&self) -> Result<u32, Failure> {
        match self.options.first() {
            None => Ok(self.hash),
            Some(option) => Err(Failure::request(anyhow!(
                "--engine-option {option:?}: options are set for UCI engines, and --engine names a network"
            ))),
        }
    }

    pub fn workers(&self) -> Workers {
        Workers { concurrency: self.concurrency.into(), answer_timeout: Duration::from_secs(self.patience) }
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
            let arguments = EngineArguments { options, hash: 8, concurrency: 1, patience: 1 };
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
