//! `fsbench dataset stats`: statistics of a file of games or samples.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{Threads, failure, warn_of_scores};
use crate::cli::print::{percent, table};
use crate::cli::progress_bar::progress;
use crate::cli::sample::{FileArgument, FileHints};
use crate::cli::score_unit::describe;
use crate::cli::{Failure, ResultFormat, print_json, refuse_existing};
use crate::data::{Method, Needs};
use crate::pipeline::build::Filter;
use crate::pipeline::stats::{DatasetStats, Histogram, LogisticFit, dataset_stats, stats_as_read};
use crate::pipeline::{BuildOptions, WeightedInput};
use crate::record::{write_atomically, write_json};
use crate::report::dataset_figures;

/// Show the distributions of plies, pieces, scores, results, king squares and moves
///
/// With --method, of the samples that a training with these options reads, and what they leave out; they are built into
/// the cache, as for a training. Other options of `dataset build` are seen in the file that it makes.
///
/// --out also writes plots (SVG and PNG) and stats.json. The logistic curve 1 / (1 + exp(-(score - a) / b)) is fitted
/// to the results by maximum likelihood.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Games or samples in any format
    file: FileArgument,
    #[command(flatten)]
    hints: FileHints,
    #[command(flatten)]
    read_as: ReadAs,
    /// A folder for stats.json and the plots
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replace the stats.json and the plots of the folder
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// Which samples a training reads.
#[derive(Debug, clap::Args)]
struct ReadAs {
    /// Count the samples that this method uses [default: all of the file]
    #[arg(long, value_enum)]
    method: Option<Method>,
    /// What a sample for eval must hold [default: score]
    #[arg(long, value_enum, value_name = "WHAT", requires = "method")]
    needs: Option<Needs>,
    /// Leave out positions before this ply [default: 0]
    #[arg(long, value_name = "PLY", requires = "method")]
    min_ply: Option<u16>,
    /// Which positions to leave out [default: none]
    #[arg(long, value_enum, requires = "method")]
    filter: Option<Filter>,
}

impl ReadAs {
    fn options(&self) -> Option<BuildOptions> {
        let default = BuildOptions::new(self.method?);
        Some(BuildOptions {
            needs: self.needs.unwrap_or_default(),
            min_ply: self.min_ply.unwrap_or_default(),
            filter: self.filter.unwrap_or_default(),
            ..default
        })
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    if let Some(folder) = &arguments.out {
        refuse_existing(&folder.join(DOCUMENT), arguments.force)?;
    }
    let bar = progress(None, "{spinner} {elapsed} {bytes} ({bytes_per_sec}); {msg}");
    let mut show = |samples: u64, bytes: u64, length: Option<u64>| {
        bar.set_position(bytes);
        let done = length.map(|length| percent(bytes as f64 / length.max(1) as f64));
        bar.set_message(format!("{samples} samples{}", done.map(|done| format!(", {done}")).unwrap_or_default()));
    };
    let FileHints { from, from_unit, evals } = arguments.hints;
    let file = &arguments.file.file()?;
    let stats = match arguments.read_as.options() {
        None => dataset_stats(file, from, from_unit, evals, &mut show).map_err(failure),
        Some(options) => {
            let input = WeightedInput { format: from, unit: from_unit, evals, ..WeightedInput::file(file) };
            stats_as_read(&input, &options, &mut show).map_err(failure)
        }
    };
    bar.finish_and_clear();
    let stats = stats?;
    warn_of_scores(file, &stats.notes);
    if let Some(folder) = &arguments.out {
        write(&stats, folder)?;
    }
    match arguments.format {
        ResultFormat::Text => outln!("{}", text(&stats))?,
        ResultFormat::Json => print_json(&stats)?,
    }
    Ok(())
}

/// The name of the JSON document in the folder of `--out`.
const DOCUMENT: &str = "stats.json";

fn write(stats: &DatasetStats, folder: &Path) -> Result<(), Failure> {
    for figure in dataset_figures(stats) {
        let path = folder.join(figure.name());
        let svg = figure.svg().map_err(Failure::work)?;
        let png = figure.png().map_err(Failure::work)?;
        let written = write_atomically(&path.with_extension("svg"), svg.as_bytes())
            .and_then(|()| write_atomically(&path.with_extension("png"), &png));
        written.with_context(|| format!("the plot '{}'", figure.title())).map_err(Failure::Work)?;
    }
    // Last: a folder with the document is complete, and is replaced only with --force.
    write_json(&folder.join(DOCUMENT), stats).map_err(Failure::work)
}

fn text(stats: &DatasetStats) -> String {
    let share = |count: u64| format!("{count} ({})", percent(count as f64 / stats.samples as f64));
    let unit = (stats.with_score > 0).then_some(stats.unit_said_by);
    let unit =
        unit.map(|said_by| format!("\nscore unit   {}", describe(stats.score_unit, said_by))).unwrap_or_default();
    let mut sections = vec![format!(
        "{}: {} samples of {} games ({})\nwith score   {}\nwith result  {}\nwith move    {}{unit}",
        stats.path,
        stats.samples,
        stats.games,
        stats.format.name(),
        share(stats.with_score),
        share(stats.with_result),
        share(stats.with_move),
    )];
    sections.extend(stats.skipped.by_reason.iter().map(|(reason, count)| format!("skipped      {count}: {reason}")));
    sections.extend(stats.skipped.examples.iter().map(|entry| format!("  {entry}")));
    sections.extend(stats.left_out.iter().map(|(reason, count)| format!("dropped      {count} {}", reason.name())));
    if stats.chess960 > 0 {
        sections.push(format!("Chess960     {} with its castling rights", share(stats.chess960)));
    }
    let repeated = stats.duplicates;
    let distinct = if repeated.exact {
        format!("{} positions", repeated.distinct)
    } else {
        format!("{} ± {} positions (estimated)", repeated.distinct, repeated.plus_minus)
    };
    sections.push(format!("distinct     {distinct}; {} of the samples are repeats", percent(repeated.share)));
    if stats.results.count() > 0 {
        let results = stats.results;
        let [won, drawn, lost] =
            [results.wins, results.draws, results.losses].map(|count| percent(count as f64 / results.count() as f64));
        sections.push(format!("results      {won} won, {drawn} drawn, {lost} lost by the side to move"));
    }
    if stats.mates != [0, 0] {
        sections.push(format!("mates        {} given, {} received", stats.mates[0], stats.mates[1]));
    }
    sections.push(distributions(stats));
    sections.push(mobility(stats));
    sections.push(legal_moves(stats));
    sections.extend(stats.wdl.as_ref().map(wdl));
    sections.join("\n")
}

const QUANTILES: [f64; 7] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99];

fn distributions(stats: &DatasetStats) -> String {
    let header = ["", "mean", "1%", "5%", "25%", "50%", "75%", "95%", "99%"];
    let row = |name: &str, mean: f64, values: &Histogram| {
        let quantiles = QUANTILES.map(|q| values.quantile(q).map(|value| value.to_string()).unwrap_or_default());
        [name.to_owned(), format!("{mean:.2}")].into_iter().chain(quantiles).collect::<Vec<_>>()
    };
    let rows = [
        ("ply", stats.plies.mean(), &stats.plies),
        ("pieces", stats.pieces.mean(), &stats.pieces),
        // Their distribution is clamped, so its mean is not theirs.
        ("score (cp)", stats.mean_score.unwrap_or_default(), &stats.scores),
    ];
    let rows = rows.into_iter().filter(|(_, _, values)| values.count() > 0);
    table(&header, rows.map(|(name, mean, values)| row(name, mean, values)))
}

fn mobility(stats: &DatasetStats) -> String {
    let rows = stats.mobility.iter().map(|mobility| {
        let quantiles = [0.05, 0.5, 0.95].map(|q| mobility.moves.quantile(q).unwrap_or(0).to_string());
        let name = [mobility.role.clone(), mobility.pieces.to_string(), format!("{:.2}", mobility.mean)];
        name.into_iter().chain(quantiles).collect()
    });
    table(&["mobility", "pieces", "mean", "5%", "50%", "95%"], rows)
}

fn legal_moves(stats: &DatasetStats) -> String {
    let shown = stats.legal_moves.iter().filter(|at| at.ply % 20 == 0);
    let rows = shown.map(|at| {
        let numbers = [at.ply.to_string(), at.positions.to_string(), format!("{:.2}", at.mean)];
        numbers.into_iter().chain(at.quantiles.map(|moves| moves.to_string())).collect()
    });
    table(&["legal moves at ply", "positions", "mean", "5%", "25%", "50%", "75%", "95%"], rows)
}

fn wdl(fitted: &LogisticFit) -> String {
    let shown = fitted.bins.iter().filter(|bin| bin.score.abs() <= 1000 && bin.score % 100 == 0);
    let rows = shown.map(|bin| {
        let expected = 1.0 / (1.0 + (-(f64::from(bin.score) - fitted.a) / fitted.b).exp());
        vec![
            bin.score.to_string(),
            bin.samples.to_string(),
            format!("{:.4} ± {:.4}", bin.mean, bin.plus_minus),
            format!("{expected:.4}"),
        ]
    });
    format!("{}\n{}", table(&["score (cp)", "samples", "mean result", "fitted"], rows), curve(fitted))
}

/// The curve in words.
pub(super) fn curve(fitted: &LogisticFit) -> String {
    format!(
        "expected result = 1 / (1 + exp(-(score - a) / b)): a = {:.2} ± {:.2}, b = {:.2} ± {:.2} centipawns ({} \
         samples)",
        fitted.a, fitted.a_plus_minus, fitted.b, fitted.b_plus_minus, fitted.samples
    )
}
