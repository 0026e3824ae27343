//! `fsbench show NET`: the weights of neurons, and contributions to a position's score.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use schemars::JsonSchema;
use serde::Serialize;

use super::Arguments;
use crate::chess::parse_fen;
use crate::cli::net::{FormatHints, load};
use crate::cli::print::table;
use crate::cli::{Failure, ResultFormat, print_json};
use crate::measure::{AxisChoice, contributions, most_influential, neuron_weights};
use crate::net::NetFile;
use crate::output;
use crate::record::{NeuronWeights, PositionRecord};
use crate::report::{Figure, gallery};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Networks")]
pub(super) struct NetworkArguments {
    /// Draw the weights of this neuron of the feature transformer, counted from 0
    #[arg(long, value_name = "N", conflicts_with_all = ["best", "position", "fen", "mv"])]
    neuron: Option<usize>,
    /// Draw the K neurons with the largest influence on the score: spread of their weights times their output's weights
    #[arg(long, value_name = "K", conflicts_with_all = ["position", "fen", "mv"],
        value_parser = clap::value_parser!(u16).range(1..))]
    best: Option<u16>,
    /// Draw only features with this value of an axis, as in 'square(K)=e1'; axes of kings are averaged over otherwise
    #[arg(long, value_name = "AXIS=VALUE", conflicts_with_all = ["position", "fen"],
        value_parser = parse_choice)]
    at: Vec<AxisChoice>,
    /// Print what each active feature and each piece of a position contributes to the score
    #[arg(long, value_name = "FEN", conflicts_with_all = ["fen", "mv", "out"])]
    position: Option<String>,
    #[command(flatten)]
    hints: FormatHints,
}

fn parse_choice(text: &str) -> Result<AxisChoice, String> {
    let (axis, value) = text.split_once('=').ok_or("write AXIS=VALUE, as in square(K)=e1")?;
    Ok((axis.trim().to_owned(), value.trim().to_owned()))
}

impl NetworkArguments {
    pub(super) const fn is_used(&self) -> bool {
        self.neuron.is_some() || self.best.is_some() || self.position.is_some()
    }
}

/// Whether the argument names a network rather than a feature set.
pub(super) fn is_network(argument: &str) -> bool {
    let path = Path::new(argument);
    let is_file = path.extension().is_some_and(|extension| extension == "safetensors" || extension == "nnue");
    is_file || path.join("outcome.json").is_file()
}

/// Neurons and their weights.
#[derive(Serialize, JsonSchema)]
pub struct NetworkDocument<'a> {
    /// The page that was written; absent where it is printed.
    out: Option<&'a PathBuf>,
    neurons: &'a [NeuronWeights],
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let network = &arguments.network;
    if arguments.fen.is_some() {
        let message = "--fen draws the features of a set; for a network give --position FEN, --neuron or --best";
        return Err(Failure::Request(anyhow!("{message}")));
    }
    let file = load(Path::new(&arguments.set), &network.hints)?.file;
    if let Some(fen) = &network.position {
        let position = parse_fen(fen).map_err(Failure::request)?;
        let record = contributions(&file, &position, fen).map_err(Failure::request)?;
        return match arguments.format {
            ResultFormat::Json => print_json(&record),
            ResultFormat::Text => Ok(outln!("{}", text(&record))?),
        };
    }
    let neurons = neurons(network, &file)?;
    check_choices(&file, &network.at)?;
    let weights = neuron_weights(&file, &neurons, &network.at).map_err(Failure::request)?;
    let name = Path::new(&arguments.set).display().to_string();
    if let Some(out) = &arguments.out {
        output::write(out, &drawn(&name, &weights, out)?).map_err(Failure::work)?;
    }
    match arguments.format {
        ResultFormat::Json => print_json(&NetworkDocument { out: arguments.out.as_ref(), neurons: &weights }),
        ResultFormat::Text => {
            let rows = weights
                .iter()
                .map(|own| vec![own.neuron.to_string(), format!("{:.0}", own.influence), format!("{:+.2}", own.bias)]);
            outln!("{}", table(&["neuron", "influence", "bias"], rows))?;
            match &arguments.out {
                Some(out) => outln!("wrote {}", out.display())?,
                None => note!("give --out FILE.html, .svg or .png to draw them"),
            }
            Ok(())
        }
    }
}

fn neurons(arguments: &NetworkArguments, file: &NetFile) -> Result<Vec<usize>, Failure> {
    const BEST: u16 = 12;
    let l1 = file.net.shape.l1;
    match arguments.neuron {
        Some(neuron) if neuron >= l1 => {
            Err(Failure::Request(anyhow!("--neuron {neuron}: the network's neurons are 0 to {}", l1 - 1)))
        }
        Some(neuron) => Ok(vec![neuron]),
        None => Ok(most_influential(&file.net, usize::from(arguments.best.unwrap_or(BEST)))),
    }
}

/// Checks that every chosen axis and value exists.
fn check_choices(file: &NetFile, choices: &[AxisChoice]) -> Result<(), Failure> {
    if choices.is_empty() {
        return Ok(());
    }
    let set = file.origin.feature_set().map_err(Failure::request)?;
    for (axis, value) in choices {
        let mut has_axis = false;
        let mut has_value = false;
        let all = set.blocks().iter().flat_map(crate::features::Block::coordinates).flat_map(|(_, own)| own);
        for own in all.filter(|own| own.axis == *axis) {
            has_axis = true;
            has_value |= own.value == *value;
        }
        let problem = match (has_axis, has_value) {
            (true, true) => continue,
            (true, false) => format!("{axis} has no value {value}"),
            (false, _) => format!("{} has no axis {axis}; `fsbench define` lists its axes", set.name()),
        };
        return Err(Failure::Request(anyhow!("--at {axis}={value}: {problem}")));
    }
    Ok(())
}

/// The content of the file to write.
fn drawn(name: &str, weights: &[NeuronWeights], out: &Path) -> Result<Vec<u8>, Failure> {
    let ending = out.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    match (ending.as_str(), weights) {
        ("html", _) => Ok(gallery(name, weights).map_err(Failure::work)?.into_bytes()),
        ("svg", [one]) => Ok(Figure::neuron(name, one).svg().map_err(Failure::work)?.into_bytes()),
        ("png", [one]) => Figure::neuron(name, one).png().map_err(Failure::work),
        ("svg" | "png", _) => Err(Failure::Request(anyhow!(
            "{}: a picture shows one neuron; give --neuron N or --best 1, or write a page: --out FILE.html",
            out.display()
        ))),
        _ => Err(Failure::Request(anyhow!("{}: write .svg, .png or .html", out.display()))),
    }
}

fn text(record: &PositionRecord) -> String {
    let PositionRecord { fen, score, features, pieces } = record;
    let mut out = format!("{fen}\nscore {score:+.0} centipawns, side to move's view; without …, it falls by …\n\n");
    let rows =
        pieces.iter().map(|own| vec![format!("{} {}", own.piece, own.square), format!("{:+.0}", own.contribution)]);
    let _ = writeln!(out, "{}\n", table(&["piece", "centipawns"], rows));
    let rows = features.iter().map(|own| {
        vec![
            own.values.clone(),
            own.block.clone(),
            own.perspective.clone(),
            own.index.to_string(),
            format!("{:+.0}", own.contribution),
        ]
    });
    out + &table(&["feature", "block", "perspective", "index", "centipawns"], rows)
}
