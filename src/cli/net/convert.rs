//! `fsbench net convert`: converts a network file to another format.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::{FormatHints, LoadedNetwork, load};
use crate::cli::measure::{failure, note_skipped};
use crate::cli::sample::FileArgument;
use crate::cli::{Failure, ResultFormat, print_json, refuse_existing};
use crate::measure::ft_permute;
use crate::net::nnue::{Architecture, Nnue};
use crate::net::{NetError, bullet};

/// Convert a network to a .nnue file for Stockfish, a raw bullet file, or an fsbench network
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network file, run folder, checkpoint or Stockfish .nnue file; with --bullet, a raw bullet file
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The file to write
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// The format to write [default: nnue if TO ends in .nnue, else fsbench]
    #[arg(long = "to", value_enum, value_name = "KIND")]
    target: Option<TargetFormat>,
    /// Group neurons that are active together in these games or this .fsd file: scores stay the same, and engines that
    /// skip zero inputs get faster
    #[arg(long, value_name = "DATA")]
    arrange: Option<FileArgument>,
    /// The description to store [default: FROM's]
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Scale the last layer so that a pawn is this many internal units: fsbench trains with 100, Stockfish 15.1 expects
    /// 361 [default: FROM's]
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i32).range(1..))]
    pawn: Option<i32>,
    /// Replace TO if it exists
    #[arg(long)]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    hints: FormatHints,
}

#[derive(Copy, Clone, Debug, clap::ValueEnum)]
enum TargetFormat {
    Fsbench,
    Nnue,
    Bullet,
}

impl TargetFormat {
    /// The format of a file name.
    fn of(path: &Path) -> TargetFormat {
        match path.extension() {
            Some(ending) if ending == "nnue" => TargetFormat::Nnue,
            _ => TargetFormat::Fsbench,
        }
    }
}

/// A network in another format.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NetworkConversion {
    /// Path of the file that was written.
    out: PathBuf,
    /// `nnue`, `fsbench` or `bullet`.
    format: &'static str,
    /// Only of .nnue files.
    architecture: Option<&'static str>,
    /// The network's description.
    description: Option<String>,
    pawn: PawnValues,
}

/// Internal units per pawn.
#[derive(Debug, Serialize, JsonSchema)]
struct PawnValues {
    /// Internal units per pawn of the network that was read.
    from: i32,
    /// Internal units per pawn of the network that was written.
    to: i32,
    /// The pawn value of the engine that loads the file.
    engine: Option<i32>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { from, to, target, hints, arrange, pawn, .. } = arguments;
    refuse_existing(to, arguments.force)?;
    let mut loaded = load(from, hints)?;
    let before = loaded.file.net.scheme.pawn_value;
    if let Some(pawn) = pawn.filter(|pawn| *pawn != before) {
        loaded.file.net = loaded.file.net.with_pawn_value(pawn).map_err(|error| {
            Failure::request(anyhow::Error::from(error).context(format!(
                "the last layer of {} cannot be scaled to a pawn of {pawn} units; train it with --pawn {pawn}",
                from.display()
            )))
        })?;
    }
    if let Some(data) = arrange {
        let (file, summary) = ft_permute(loaded.file, &data.file()?).map_err(failure)?;
        note_skipped(&summary);
        loaded.file = file;
    }
    let after = loaded.file.net.scheme.pawn_value;
    let mut conversion = save(loaded, arguments, target.unwrap_or_else(|| TargetFormat::of(to)))?;
    conversion.pawn = PawnValues { from: before, to: after, engine: conversion.pawn.engine };
    match arguments.format {
        ResultFormat::Json => print_json(&conversion),
        ResultFormat::Text => Ok(outln!("{}", text(&conversion))?),
    }
}

fn save(loaded: LoadedNetwork, arguments: &Arguments, target: TargetFormat) -> Result<NetworkConversion, Failure> {
    let LoadedNetwork { file, description, .. } = loaded;
    let to = &arguments.to;
    let failure = |error: NetError| if error.is_request() { Failure::request(error) } else { Failure::work(error) };
    let description = arguments.description.clone().or(description);
    let conversion = |format, architecture: Option<Architecture>, description| NetworkConversion {
        out: to.clone(),
        format,
        architecture: architecture.map(Architecture::name),
        description,
        pawn: PawnValues { from: 0, to: 0, engine: architecture.map(|architecture| architecture.scheme().pawn_value) },
    };
    match target {
        TargetFormat::Fsbench => {
            file.save_with_description(to, description.as_deref()).map_err(failure)?;
            Ok(conversion("fsbench", None, description))
        }
        TargetFormat::Bullet => {
            bullet::save(to, &file.net).map_err(failure)?;
            Ok(conversion("bullet", None, None))
        }
        TargetFormat::Nnue => {
            let description = description.unwrap_or_else(|| "A network trained with fsbench.".into());
            let nnue = Nnue::from_file(file, &description).map_err(failure)?;
            nnue.save(to).map_err(failure)?;
            Ok(conversion("nnue", Some(nnue.architecture), Some(description)))
        }
    }
}

fn text(conversion: &NetworkConversion) -> String {
    let kind = match (conversion.format, conversion.architecture) {
        (_, Some(architecture)) => architecture,
        ("bullet", _) => "a raw bullet network",
        _ => "an fsbench network",
    };
    let PawnValues { from, to, engine } = conversion.pawn;
    let mut lines = vec![format!("{}: {kind}", conversion.out.display())];
    if from == to {
        lines.push(format!("a pawn is {to} internal units, as before"));
    } else {
        lines.push(format!("a pawn is {to} internal units; it was {from}, and the last layer was scaled"));
    }
    if let Some(engine) = engine.filter(|engine| *engine != to) {
        let times = f64::from(to) / f64::from(engine);
        lines.push(format!(
            "{kind} expects {engine} units per pawn, so its scores are {times:.2} times as large; --pawn {engine} \
             scales the last layer"
        ));
    }
    lines.join("\n")
}
