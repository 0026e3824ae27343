//! `fsbench elo`: estimates Elo, and runs a sequential test, from a match's pair counts.

use schemars::JsonSchema;
use serde::Serialize;

use super::sprt::{self, SprtArguments};
use super::{Failure, ResultFormat, print_json, print_text};
use crate::play::{Interval, MatchEstimate, Pairs, SprtOutcome};

/// Compute Elo, its 95% interval and a sequential test from a match's game pairs
///
/// Each opening is played twice with colours swapped. From the first player's view, a pair's outcome is two losses
/// (LL), a loss and a draw (LD), a win and a loss or two draws (WL+DD), a win and a draw (WD), or two wins (WW).
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Counts of pairs: LL,LD,WL+DD,WD,WW
    #[arg(long, value_name = "N0,N1,N2,N3,N4")]
    pairs: Pairs,
    #[command(flatten)]
    sprt: SprtArguments,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// Elo from pairs of games.
#[derive(Serialize, JsonSchema)]
pub struct EloDocument {
    pairs: Pairs,
    #[serde(flatten)]
    estimate: StrengthEstimate,
    #[serde(skip_serializing_if = "Option::is_none")]
    sprt: Option<SprtOutcome>,
}

#[derive(Serialize, JsonSchema)]
struct StrengthEstimate {
    /// Points per game of the first player, from 0 to 1.
    score: f64,
    elo: Interval,
    nelo: Interval,
    /// Likelihood that the first player is the stronger one.
    los: f64,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let test = arguments.sprt.test()?;
    let MatchEstimate { score, elo, nelo, los, .. } = arguments.pairs.estimate();
    let document = EloDocument {
        pairs: arguments.pairs,
        estimate: StrengthEstimate { score, elo, nelo, los },
        sprt: test.map(|test| test.outcome(arguments.pairs)),
    };
    match arguments.format {
        ResultFormat::Json => print_json(&document)?,
        ResultFormat::Text => print_text(&text(&document))?,
    }
    Ok(())
}

fn text(document: &EloDocument) -> String {
    let EloDocument { pairs, estimate, sprt: outcome } = document;
    let interval = |Interval { value, low, high }: Interval| format!("{value:+.2} [{low:+.2}, {high:+.2}]");
    let mut out = format!(
        "pairs   {} (LL {}, LD {}, WL+DD {}, WD {}, WW {})\nscore   {:.2}%\nElo     {}\nnElo    {}\nLOS     {:.2}%\n",
        pairs.total(),
        pairs.ll,
        pairs.ld,
        pairs.wl_dd,
        pairs.wd,
        pairs.ww,
        100.0 * estimate.score,
        interval(estimate.elo),
        interval(estimate.nelo),
        100.0 * estimate.los
    );
    if let Some(outcome) = outcome {
        out += &format!("LLR     {}\n", sprt::describe(outcome, "more pairs are needed"));
    }
    out
}
