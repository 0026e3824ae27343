//! `fsbench measure speed`: measures evaluations per second.

use std::fmt::Write;
use std::path::PathBuf;

use super::progress::MeasureProgress;
use super::{Data, Failure, NetArgument, ResultFormat, failure, print, table};
use crate::measure::{SpeedOptions, SpeedProgress, speed};
use crate::record::{SpeedBeside, SpeedEntry, SpeedRatio, SpeedRecord, TimeBreakdown};

/// Measure evaluations per second along games, by every strategy, on one thread
///
/// The time of an evaluation is split into finding features, adding rows, the forward pass and bookkeeping (copying
/// boards, making moves on them). A second table has the speed along lines whose moves are known beforehand, as in
/// `measure loss`: positions are then evaluated together. A third shows the same network with its neurons permuted
/// for positions of other games (see `net convert --arrange`; scores stay the same). --format json: name, identity,
/// encoder, network, digest, positions, entries[{strategy, back_end, evaluations_per_second, interval, noisy,
/// nanoseconds{features, bookkeeping, rows, forward}, rows, row_bytes}], best{strategy, back_end}, known_lines[as
/// entries, without nanoseconds], arranged{positions, entries}, beside{digest, ratio, low, high}, machine{cpu, cores,
/// back_end, commit, recorded}.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    options: SpeedOptions,
    /// Another network, with which this one takes turns: the ratio of their speeds, with its 95% interval
    #[arg(long, value_name = "NETWORK")]
    beside: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    net: NetArgument,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.options.check().map_err(Failure::request)?;
    let mut progress = MeasureProgress::new();
    progress.show(None, "reading the network");
    let file = arguments.net.load()?;
    let mut show = |now: &SpeedProgress| {
        progress.show(now.repetitions.map(|(done, total)| (done.into(), total.into())), &now.activity);
    };
    let beside = arguments.beside.as_deref().map(|path| arguments.net.load_other(path)).transpose()?;
    let data = arguments.data.path()?;
    let (mut record, summary) = speed(&file, &data, arguments.options, beside.as_ref(), &mut show).map_err(failure)?;
    drop(progress);
    record.network = Some(arguments.net.path().display().to_string());
    print(arguments.format, &record, &summary, text)
}

fn text(record: &SpeedRecord) -> String {
    let mut out = format!("{}: {} positions, one thread", record.name, record.positions);
    if let Some(machine) = &record.machine {
        let _ = write!(out, "; {}, {} cores", machine.cpu, machine.cores);
    }
    if let Some(encoder) = record.encoder {
        let _ = write!(out, "; features found by {encoder}");
    }
    let _ = write!(out, "\n\nas in the file\n{}", entries(&record.entries));
    if let Some(best) = record.fastest() {
        let rate = best.evaluations_per_second;
        let _ = write!(out, "\n\nfastest: {} on {}, {rate:.0} evaluations/s", best.strategy, best.back_end);
        if let Some(times) = best.nanoseconds {
            let _ = write!(out, ", {:.0}% of the time finding features", 100.0 * times.features_share());
        }
    }
    if !record.known_lines.is_empty() {
        let _ = write!(out, "\n\nlines whose moves are known beforehand\n{}", entries(&record.known_lines));
    }
    match &record.ft_permuted {
        Some(permuted) => {
            let entries = entries(&permuted.entries);
            let positions = permuted.positions;
            let _ = write!(
                out,
                "\n\nwith neurons permuted for {positions} positions of other games (see `net convert --arrange`)\n\
                 {entries}"
            );
        }
        None => out.push_str("\n\nnot measured with permuted neurons: that needs more games"),
    }
    if let Some(SpeedBeside { speed: SpeedRatio { ratio, low, high }, .. }) = record.beside {
        let _ = write!(out, "\n\n{ratio:.3} times as fast as the other network, by turns (95%: {low:.3} to {high:.3})");
    }
    if record.entries.iter().any(|entry| entry.noisy) {
        out.push_str("\n\nnoisy: the repetitions differ too much; measure again on an idle machine");
    }
    out
}

fn entries(entries: &[SpeedEntry]) -> String {
    let rows = entries.iter().map(|entry| {
        let noisy = if entry.noisy { " noisy" } else { "" };
        let time = |part: fn(&TimeBreakdown) -> Option<f64>| {
            entry.nanoseconds.as_ref().and_then(part).map_or_else(|| "–".into(), |time| format!("{time:.0}"))
        };
        vec![
            entry.strategy.clone(),
            entry.back_end.clone(),
            format!("{:.0}", entry.evaluations_per_second),
            format!("± {:.0}{noisy}", entry.interval),
            format!("{:.0}", 1e9 / entry.evaluations_per_second),
            time(|times| Some(times.features)),
            time(|times| Some(100.0 * times.features_share())),
            time(|times| Some(times.rows)),
            time(|times| Some(times.forward)),
            time(|times| times.bookkeeping),
            format!("{:.2}", entry.rows),
            format!("{:.0}", entry.rows * entry.row_bytes as f64),
        ]
    });
    let header = [
        "strategy",
        "back end",
        "evaluations/s",
        "95%",
        "ns",
        "features",
        "%",
        "+ rows",
        "+ forward",
        "+ bookkeeping",
        "rows",
        "bytes",
    ];
    table(&header, rows)
}
