//! `fsbench measure importance`: the worth of a network's rows.

use std::fmt::Write;
use std::path::PathBuf;

use super::loss::{checked, hidden_if_of_epochs};
use super::progress::MeasureProgress;
use super::{Failure, FormatHints, ResultFormat, ScoredData, failure, table, warn_skipped_samples};
use crate::cli::net::load;
use crate::cli::{print_json, refuse_existing};
use crate::measure::{DEFAULT_SAMPLES, ImportanceOptions, LossOptions, importance};
use crate::output;
use crate::record::{AxisImportance, ImportanceRecord, Rise, RowGroup};
use crate::train::EvalLoss;

/// Measure what the blocks, the values of axes and the rows of a network's features are worth
///
/// The rise of the loss when all rows of a group are replaced by their mean row: the network then sees that a feature
/// of the group is active, but not which. Also counts the rows that are never active in the data, and those whose
/// removal changes no position's score by more than --tolerance; --keep writes the others as a list for the `select`
/// key of a definition. The loss is computed as by `measure loss`; 95% intervals take games as independent, or samples if the
/// format has no games.
#[derive(Debug, clap::Args)]
#[command(mut_args = hidden_if_of_epochs)]
pub struct Arguments {
    /// A network file, run folder, checkpoint or Stockfish .nnue file; with --bullet, a raw bullet file
    net: PathBuf,
    /// Use about N samples, evenly spread over the data
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SAMPLES,
        value_parser = clap::value_parser!(u64).range(1..))]
    positions: u64,
    /// Largest change of a score that counts as none, in centipawns
    #[arg(long, value_name = "CP", default_value_t = 1.0)]
    tolerance: f64,
    /// Write the rows that the data cannot do without, one index per line
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "keep")]
    force: bool,
    /// List all values of axes, not only the most important
    #[arg(long)]
    all: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    hints: FormatHints,
    #[command(flatten)]
    data: ScoredData,
    #[command(flatten, next_help_heading = "Loss")]
    loss: EvalLoss,
}

/// Values of an axis that are listed without --all.
const LISTED: usize = 12;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loss = checked(arguments.loss)?;
    if !(arguments.tolerance.is_finite() && arguments.tolerance >= 0.0) {
        return Err(Failure::Request(anyhow::anyhow!("--tolerance must be 0 or more centipawns")));
    }
    if let Some(keep) = &arguments.keep {
        refuse_existing(keep, arguments.force)?;
    }
    let data = arguments.data.path()?;
    let file = load(&arguments.net, &arguments.hints)?.file;
    let hints = arguments.data.hints;
    let options = ImportanceOptions {
        loss: LossOptions {
            loss,
            format: hints.from,
            unit: hints.from_unit,
            evals: hints.evals,
            limit: Some(arguments.positions),
        },
        epsilon: arguments.tolerance,
    };
    let mut progress = MeasureProgress::new();
    let mut show = |done, all| progress.show(Some((done, all)), "groups of rows");
    let found = importance(&file, &data, &options, &mut show).map_err(failure)?;
    drop(progress);
    warn_skipped_samples(data.display(), &found.skipped);
    if let Some(keep) = &arguments.keep {
        let lines: String = found.kept.iter().map(|row| format!("{row}\n")).collect();
        output::write(keep, lines.as_bytes()).map_err(Failure::work)?;
    }
    match arguments.format {
        ResultFormat::Text => {
            let mut text = text(&found.record, arguments.all);
            if let Some(keep) = &arguments.keep {
                let _ = write!(
                    text,
                    "\n{} rows in {}: a definition with `select = \"{}\"` has only these",
                    found.kept.len(),
                    keep.display(),
                    keep.file_name().unwrap_or_default().to_string_lossy()
                );
            }
            Ok(outln!("{text}")?)
        }
        ResultFormat::Json => print_json(&found.record),
    }
}

fn text(record: &ImportanceRecord, all: bool) -> String {
    let ImportanceRecord { data, rows, loss, .. } = record;
    let games = data.games.map(|games| format!(" of {games} games")).unwrap_or_default();
    let mut out = format!("{}: {} samples{games}; loss {loss:.6}\n", data.path, data.samples);
    let _ = writeln!(
        out,
        "of {} rows, {} are never active in these samples, and removing any one of {} more changes no score by more \
         than {} centipawns",
        rows.total, rows.never_active, rows.without_effect, rows.epsilon
    );
    for block in &record.blocks {
        let _ = write!(out, "\n{}\n", block.block);
        let whole = row(&block.whole, *loss);
        let header = ["", "rows", "active", "norm", "rise of the loss, %"];
        let _ = writeln!(out, "{}", table(&header, std::iter::once(named("whole block", whole))));
        for AxisImportance { axis, values } in &block.axes {
            let mut listed: Vec<&RowGroup> = values.iter().collect();
            if !all && listed.len() > LISTED {
                let rise = |group: &RowGroup| group.rise.map_or(f64::NEG_INFINITY, |rise| rise.mean);
                listed.sort_by(|a, b| rise(b).total_cmp(&rise(a)));
                listed.truncate(LISTED);
            }
            let rows = listed.iter().map(|group| named(&group.value, row(group, *loss)));
            let header = [axis.as_str(), "rows", "active", "norm", "rise of the loss, %"];
            let _ = writeln!(out, "\n{}", table(&header, rows));
            if listed.len() < values.len() {
                let _ = writeln!(out, "{} more values, less important (--all)", values.len() - listed.len());
            }
        }
    }
    out
}

fn named(name: &str, cells: [String; 4]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn row(group: &RowGroup, loss: f64) -> [String; 4] {
    let rise = match group.rise {
        None => "–".into(),
        Some(Rise { mean, interval }) => {
            let half = interval.map(|half| format!(" ± {:.2}", 100.0 * half / loss)).unwrap_or_default();
            format!("{:+.2}{half}", 100.0 * mean / loss)
        }
    };
    [group.rows.to_string(), format!("{:.2}", group.active), format!("{:.2}", group.norm), rise]
}
