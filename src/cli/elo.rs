//! `fsbench elo`: Elo and a sequential test from a match's pair counts.

use anyhow::anyhow;
use serde::Serialize;

use super::{Failure, Format, print_json, print_text};
use crate::play::{EloModel, Interval, MatchEstimate, Pairs, Sprt, SprtOutcome, SprtState};

/// Compute Elo, its 95% interval and a sequential test from a match's game pairs
///
/// Each opening is played twice with colours swapped. From the first player's view, a pair's outcome is two losses
/// (LL), a loss and a draw (LD), a win and a loss or two draws (WL+DD), a win and a draw (WD), or two wins (WW).
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Counts of pairs: LL,LD,WL+DD,WD,WW
    #[arg(long, value_name = "N0,N1,N2,N3,N4")]
    pairs: Pairs,
    /// Run a sequential test (SPRT) of the first Elo against the second, as in 0,2
    #[arg(long, value_name = "ELO0,ELO1", value_parser = parse_hypotheses, allow_hyphen_values = true)]
    sprt: Option<[f64; 2]>,
    /// Unit of the test's hypotheses: normalised or logistic Elo
    #[arg(long, value_enum, default_value_t, requires = "sprt")]
    model: EloModel,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Document {
    pairs: Pairs,
    #[serde(flatten)]
    estimate: Estimate,
    #[serde(skip_serializing_if = "Option::is_none")]
    sprt: Option<SprtOutcome>,
}

#[derive(Serialize)]
struct Estimate {
    score: f64,
    elo: Interval,
    nelo: Interval,
    los: f64,
}

pub(super) fn parse_hypotheses(text: &str) -> Result<[f64; 2], String> {
    let numbers: Vec<f64> = text.split(',').filter_map(|number| number.trim().parse().ok()).collect();
    <[f64; 2]>::try_from(numbers)
        .ok()
        .filter(|_| text.matches(',').count() == 1)
        .ok_or_else(|| "give two Elo values separated by a comma, as in 0,2".into())
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let test = arguments.sprt.map(|[elo0, elo1]| Sprt::new(elo0, elo1, arguments.model)).transpose();
    let test = test.map_err(|error| Failure::Request(anyhow!("--sprt: {error}")))?;
    let MatchEstimate { score, elo, nelo, los, .. } = arguments.pairs.estimate();
    let document = Document {
        pairs: arguments.pairs,
        estimate: Estimate { score, elo, nelo, los },
        sprt: test.map(|test| test.outcome(arguments.pairs)),
    };
    match arguments.format {
        Format::Json => print_json(&document)?,
        Format::Text => print_text(&text(&document))?,
    }
    Ok(())
}

fn text(document: &Document) -> String {
    let Document { pairs, estimate, sprt } = document;
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
    if let Some(SprtOutcome { llr, lower, upper, elo0, elo1, state, .. }) = sprt {
        let verdict = match state {
            SprtState::Continue => "more pairs are needed".into(),
            SprtState::AcceptElo0 => format!("{elo0} is accepted; Elo after a sequential stop is biased"),
            SprtState::AcceptElo1 => format!("{elo1} is accepted; Elo after a sequential stop is biased"),
        };
        out += &format!("LLR     {llr:.2} [{lower:.2}, {upper:.2}] for {elo0} against {elo1}: {verdict}\n");
    }
    out
}
