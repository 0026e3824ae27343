//! The options `--sprt` and `--model` of `elo` and `match`, and the test's result in words.

use anyhow::anyhow;

use super::Failure;
use crate::play::{EloModel, Sprt, SprtOutcome, SprtState};

#[derive(Debug, clap::Args)]
pub struct SprtArguments {
    /// Run a sequential test (SPRT) of the first Elo against the second, as in 0,2; a match stops when it has decided
    #[arg(long, value_name = "ELO0,ELO1", value_parser = parse_hypotheses, allow_hyphen_values = true)]
    sprt: Option<[f64; 2]>,
    /// Unit of the test's hypotheses: normalised or logistic Elo
    #[arg(long, value_enum, default_value_t, requires = "sprt")]
    model: EloModel,
}

impl SprtArguments {
    pub fn test(&self) -> Result<Option<Sprt>, Failure> {
        let test = self.sprt.map(|[elo0, elo1]| Sprt::new(elo0, elo1, self.model)).transpose();
        test.map_err(|error| Failure::Request(anyhow!("--sprt: {error}")))
    }
}

fn parse_hypotheses(text: &str) -> Result<[f64; 2], String> {
    let numbers: Vec<f64> = text.split(',').filter_map(|number| number.trim().parse().ok()).collect();
    <[f64; 2]>::try_from(numbers)
        .ok()
        .filter(|_| text.matches(',').count() == 1)
        .ok_or_else(|| "give two Elo values separated by a comma, as in 0,2".into())
}

/// Describes a test's result; `undecided` is the meaning of an undecided test.
pub fn describe(outcome: &SprtOutcome, undecided: &str) -> String {
    let SprtOutcome { llr, lower, upper, elo0, elo1, state, .. } = outcome;
    let accepted = |elo: &f64| format!("{elo} is accepted; Elo after a sequential stop is biased");
    let verdict = match state {
        SprtState::Continue => undecided.to_owned(),
        SprtState::AcceptElo0 => accepted(elo0),
        SprtState::AcceptElo1 => accepted(elo1),
    };
    format!("{llr:.2} [{lower:.2}, {upper:.2}] for {elo0} against {elo1}: {verdict}")
}
