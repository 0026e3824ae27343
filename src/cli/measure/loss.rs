//! `fsbench measure loss`: measures the loss of networks on samples.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::progress::MeasureProgress;
use super::{Failure, FormatHints, ResultFormat, ScoredData, failure, table, warn_skipped_samples};
use crate::cli::net::load_unquantised;
use crate::cli::print_json;
use crate::measure::{LossOptions, LossProgress, loss};
use crate::record::{Cluster, LossPair, LossRecord, SubsetLoss};
use crate::train::{EvalLoss, LambdaSchedule, LossForm};

/// Measure the loss of networks on samples, in total and by pieces, ply, material, score and kings; compare each pair
/// of networks
///
/// The loss is computed as by `train --method eval`; the target is the sample's score, the game's result or a mix (--lambda).
/// A network's output is its integer score in centipawns, by its own pawn value; a checkpoint (checkpoint.safetensors,
/// best.safetensors) uses its float output. The 95% intervals take games as independent, or samples if the format has
/// no games. --format json: data{path, format, score_unit, samples, without_target, games}, loss{…},
/// clusters (game or sample), networks[{network, arithmetic, name, identity, loss, interval, by{pieces, ply, material,
/// score, king, kings}}] and pairs[{first, second, difference, interval, by{…}}], with lists [{part, samples, loss,
/// interval}] in `by`.
#[derive(Debug, clap::Args)]
#[command(mut_args = hidden_if_of_epochs)]
pub struct Arguments {
    /// Network files, run folders, checkpoints or Stockfish .nnue files; with --bullet, also raw bullet files
    #[arg(value_name = "NET", required = true)]
    nets: Vec<PathBuf>,
    /// Read only the first N samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    positions: Option<u64>,
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

/// Hides the course of λ over epochs, which [`checked`] refuses.
pub(super) fn hidden_if_of_epochs(argument: clap::Arg) -> clap::Arg {
    let is_of_epochs = ["lambda_end", "lambda_schedule", "lambda_jitter"].contains(&argument.get_id().as_str());
    if is_of_epochs { argument.hide(true) } else { argument }
}

/// The loss of the command line, without options that have no effect on a measurement.
pub(super) fn checked(loss: EvalLoss) -> Result<EvalLoss, Failure> {
    let effective = loss.effective();
    let options = [
        ("--lambda", loss.lambda != effective.lambda),
        ("--power", loss.power != effective.power),
        ("--score-scale", loss.score_scale != effective.score_scale),
        ("--output-scale", loss.output_scale != effective.output_scale),
        ("--epsilon", loss.epsilon != effective.epsilon),
        ("--score-offset", loss.score_offset != effective.score_offset),
        ("--output-offset", loss.output_offset != effective.output_offset),
        ("--qp-asymmetry", loss.qp_asymmetry != effective.qp_asymmetry),
    ];
    let without_effect = options.into_iter().find_map(|(name, has_none)| has_none.then_some(name));
    let of_epochs = [
        ("--lambda-end", loss.lambda_end.is_some()),
        ("--lambda-schedule", loss.lambda_schedule != LambdaSchedule::default()),
        ("--lambda-jitter", loss.lambda_jitter > 0.0),
    ];
    let of_epochs = of_epochs.into_iter().find_map(|(name, is_given)| is_given.then_some(name));
    let problem = match (of_epochs, without_effect) {
        (Some(name), _) => Some(format!("{name} has no effect: a measurement has no epochs; remove it")),
        (None, Some(name)) => Some(format!("{name} has no effect on the loss {}; remove it", value_name(&loss.form))),
        (None, None) => loss.problem().map(|problem| problem.message),
    };
    problem.map_or(Ok(loss), |problem| Err(Failure::Request(anyhow::anyhow!(problem))))
}

/// The word of the command line for a loss.
fn value_name(form: &LossForm) -> String {
    form.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let data = arguments.data.path()?;
    let hints = arguments.data.hints;
    let options = LossOptions {
        loss: checked(arguments.loss)?,
        format: hints.from,
        unit: hints.from_unit,
        evals: hints.evals,
        limit: arguments.positions,
    };
    let mut progress = MeasureProgress::new();
    progress.show(None, "reading the networks");
    let named = |path: &PathBuf| Ok((path.display().to_string(), load_unquantised(path, &arguments.hints)?));
    let networks = arguments.nets.iter().map(named).collect::<Result<Vec<_>, Failure>>()?;
    let mut show = |done: LossProgress| {
        let counts = match (arguments.positions, done.length) {
            (Some(limit), _) => Some((done.samples, limit)),
            (None, length) => length.map(|length| (done.bytes, length)),
        };
        progress.show(counts, &format!("{} samples", done.samples));
    };
    let (record, skipped) = loss(&networks, &data, &options, &mut show).map_err(failure)?;
    drop(progress);
    warn_skipped_samples(data.display(), &skipped);
    match arguments.format {
        ResultFormat::Text => Ok(outln!("{}", text(&record))?),
        ResultFormat::Json => print_json(&record),
    }
}

fn text(record: &LossRecord) -> String {
    let data = &record.data;
    let samples = data.samples;
    let without = data.without_target;
    let mut out = format!("{}: {samples} samples ({})", data.path, data.format);
    if without > 0 {
        let _ = write!(out, "; {without} more have no target");
    }
    let _ = write!(out, "\nloss {}; ± 95%, {}\n\n", formula(&record.loss), independence(record));
    let rows = record.networks.iter().enumerate().map(|(index, network)| {
        let arithmetic = format!("{:?}", network.arithmetic).to_lowercase();
        let file = Path::new(&network.network).display().to_string();
        vec![label(index), value(network.loss, network.interval), network.name.clone(), arithmetic, file]
    });
    out += &table(&["network", "loss", "features", "numbers", "file"], rows);
    for (division, heading) in record.networks[0].by.by_criterion().iter().map(|(heading, _)| *heading).enumerate() {
        let lists: Vec<&[SubsetLoss]> =
            record.networks.iter().map(|network| network.by.by_criterion()[division].1).collect();
        if lists[0].is_empty() {
            let _ = write!(out, "\n\nby {heading}: not in these data");
            continue;
        }
        let rows = lists[0].iter().enumerate().map(|(part, first)| {
            let values = lists.iter().map(|list| value(list[part].loss, list[part].interval));
            [first.subset.clone(), first.samples.to_string()].into_iter().chain(values).collect()
        });
        let labels: Vec<String> = (0..lists.len()).map(label).collect();
        let header: Vec<&str> = [heading, "samples"].into_iter().chain(labels.iter().map(String::as_str)).collect();
        let _ = write!(out, "\n\n{}", table(&header, rows));
    }
    if !record.pairs.is_empty() {
        let rows = record.pairs.iter().map(|pair| {
            let names = format!("{} − {}", label(pair.first), label(pair.second));
            vec![names, value(pair.difference, pair.interval), verdict(pair)]
        });
        let _ = write!(out, "\n\n{}", table(&["pair", "difference", "lower loss"], rows));
    }
    out
}

fn label(index: usize) -> String {
    format!("#{}", index + 1)
}

fn value(mean: f64, interval: Option<f64>) -> String {
    interval.map_or_else(|| format!("{mean:.6}"), |interval| format!("{mean:.6} ± {interval:.6}"))
}

fn verdict(pair: &LossPair) -> String {
    match pair.interval {
        Some(interval) if pair.difference.abs() > interval => {
            label(if pair.difference < 0.0 { pair.first } else { pair.second })
        }
        _ => "not significant".into(),
    }
}

fn independence(record: &LossRecord) -> String {
    match (record.clusters, record.data.games) {
        (Cluster::Game, Some(games)) => format!("{games} games independent"),
        (Cluster::Game, None) => "games independent".into(),
        (Cluster::Sample, _) => "samples taken as independent: the format has no games".into(),
    }
}

fn formula(loss: &EvalLoss) -> String {
    let EvalLoss { power, score_scale, output_scale, lambda, epsilon, .. } = loss;
    let expected = |value: &str, offset: f64, scale: f64| match offset {
        0.0 => format!("σ({value}/{scale})"),
        _ => format!("(1 + σ(({value} − {offset})/{scale}) − σ((−{value} − {offset})/{scale}))/2"),
    };
    match loss.form {
        LossForm::Power => {
            let score = expected("score", loss.score_offset, *score_scale);
            let target = match lambda {
                1.0 => score,
                0.0 => "result".into(),
                _ => format!("{lambda}·{score} + {:.4}·result", 1.0 - lambda),
            };
            let factor = match loss.qp_asymmetry {
                0.0 => String::new(),
                more => format!(", times {} where p > t", 1.0 + more),
            };
            let output = expected("out", loss.output_offset, *output_scale);
            let [p, where_p] = match factor.is_empty() {
                true => [output, String::new()],
                false => ["p".into(), format!(", p = {output}")],
            };
            format!("|{p} − t|^{power}{factor}{where_p}, t = {target}")
        }
        LossForm::Epsilon => format!("max(0, |score − out| − {epsilon})"),
    }
}
