//! `fsbench net info`: shows the contents of a network file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::{FormatHints, load};
use crate::cli::{Failure, ResultFormat, print_json};
use crate::features::Identity;
use crate::net::nnue::Architecture;
use crate::net::{QuantNet, Scheme, Shape};

/// Show the contents of a network file
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network file, run folder, checkpoint or Stockfish .nnue file; with --bullet, a raw bullet file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    hints: FormatHints,
}

/// The contents of a network file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NetworkInfo {
    /// `nnue`, `fsbench`, `bullet`, or `checkpoint, quantised`.
    format: &'static str,
    /// Only of .nnue files.
    architecture: Option<&'static str>,
    /// The network's description.
    description: Option<String>,
    /// The feature set's name.
    name: String,
    identity: Identity,
    /// The same facts in words.
    text: String,
    shape: Shape,
    scheme: Scheme,
    /// Trainable weights and biases.
    parameters: u64,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loaded = load(&arguments.file, &arguments.hints)?;
    let net = &loaded.file.net;
    let info = NetworkInfo {
        format: loaded.format,
        architecture: loaded.architecture.map(Architecture::name),
        description: loaded.description,
        name: loaded.file.origin.name.clone(),
        identity: loaded.file.origin.identity.clone(),
        text: net.shape.to_string(),
        shape: net.shape.clone(),
        scheme: net.scheme.clone(),
        parameters: parameters(net),
    };
    match arguments.format {
        ResultFormat::Json => print_json(&info),
        ResultFormat::Text => Ok(outln!("{}", text(&info))?),
    }
}

fn parameters(net: &QuantNet) -> u64 {
    let layers: usize = net.stacks.iter().flatten().map(|layer| layer.weights.len() + layer.biases.len()).sum();
    (net.ft_weights.len() + net.ft_biases.len() + net.psqt_weights.len() + layers) as u64
}

fn text(info: &NetworkInfo) -> String {
    let Scheme { name, one, hidden, nnue2score, divisor, pawn_value, .. } = &info.scheme;
    let divided = divisor.map_or_else(String::new, |divisor| format!(" / {divisor}"));
    let scales = format!("{name}: 1.0 is {one}, hidden weights × {hidden}, score × {nnue2score}{divided}");
    let rows = [
        ("format", Some(info.format.to_owned())),
        ("architecture", info.architecture.map(str::to_owned)),
        ("description", info.description.clone()),
        ("features", Some(format!("{} ({})", info.name, info.identity))),
        ("shape", Some(info.text.clone())),
        ("scheme", Some(format!("{scales}, a pawn is {pawn_value}"))),
        ("parameters", Some(info.parameters.to_string())),
    ];
    let line = |(key, value): (&str, Option<String>)| Some(format!("{key:<12}  {}", value?));
    rows.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
