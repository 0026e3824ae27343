//! `fsbench net convert`: from one kind of network file to another.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{FormatHints, Loaded, load};
use crate::cli::measure::{failure, note_skipped};
use crate::cli::{Failure, Format, print_json};
use crate::data::DataError;
use crate::measure::ft_permute;
use crate::net::nnue::{Architecture, Nnue};
use crate::net::{NetError, bullet};

/// Turn a network into a .nnue file that Stockfish loads, a raw file as bullet writes it, or a network of fsbench's
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network of fsbench's, a run's folder, a checkpoint, a .nnue file, or with --bullet a raw file of bullet's
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The file to write
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// What kind of file to write (default: nnue if it ends in .nnue, else fsbench)
    #[arg(long = "to", value_enum, value_name = "KIND")]
    kind: Option<Kind>,
    #[command(flatten)]
    hints: FormatHints,
    /// Put neurons together that are active together in these games or this .fsd file: scores stay the same, engines that
    /// skip zero inputs get faster
    #[arg(long, value_name = "DATA")]
    arrange: Option<PathBuf>,
    /// What the network says of itself (default: what the one read says)
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Scale the last layer so that a pawn is so many internal units: networks trained here have 100, Stockfish 15.1 takes
    /// 361 for one (default: as it is)
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i32).range(1..))]
    pawn: Option<i32>,
    /// Replace TO where it exists
    #[arg(long)]
    force: bool,
    /// How to print what was done
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Copy, Clone, Debug, clap::ValueEnum)]
enum Kind {
    Fsbench,
    Nnue,
    Bullet,
}

impl Kind {
    fn of(path: &Path) -> Kind {
        match path.extension() {
            Some(ending) if ending == "nnue" => Kind::Nnue,
            _ => Kind::Fsbench,
        }
    }
}

/// What was done.
#[derive(Debug, Serialize)]
struct Done {
    out: PathBuf,
    /// `nnue`, `fsbench` or `bullet`.
    format: &'static str,
    /// Of a .nnue file.
    architecture: Option<&'static str>,
    description: Option<String>,
    /// Internal units a pawn in the network read and in the one written.
    pawn: Pawns,
}

#[derive(Debug, Serialize)]
struct Pawns {
    from: i32,
    to: i32,
    /// What the engine that loads the file takes for a pawn.
    engine: Option<i32>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { from, to, kind, hints, arrange, pawn, .. } = arguments;
    if to.exists() && !arguments.force {
        return Err(Failure::request(DataError::Exists { path: to.clone() }));
    }
    let mut loaded = load(from, hints)?;
    let before = loaded.file.net.scheme.pawn_value;
    if let Some(pawn) = pawn.filter(|pawn| *pawn != before) {
        loaded.file.net = loaded.file.net.with_pawn_value(pawn).map_err(|error| {
            Failure::request(anyhow::Error::from(error).context(format!(
                "the last layer of {} cannot be scaled to a pawn of {pawn}: train it with --pawn {pawn}",
                from.display()
            )))
        })?;
    }
    if let Some(data) = arrange {
        let (file, reading) = ft_permute(loaded.file, data).map_err(failure)?;
        note_skipped(&reading);
        loaded.file = file;
    }
    let after = loaded.file.net.scheme.pawn_value;
    let mut done = save(loaded, arguments, kind.unwrap_or_else(|| Kind::of(to)))?;
    done.pawn = Pawns { from: before, to: after, engine: done.pawn.engine };
    match arguments.format {
        Format::Json => print_json(&done),
        Format::Text => Ok(outln!("{}", text(&done))?),
    }
}

fn save(loaded: Loaded, arguments: &Arguments, kind: Kind) -> Result<Done, Failure> {
    let Loaded { file, description, .. } = loaded;
    let to = &arguments.to;
    let refused = |error: NetError| if error.is_request() { Failure::request(error) } else { Failure::work(error) };
    let description = arguments.description.clone().or(description);
    let done = |format, architecture: Option<Architecture>, description| Done {
        out: to.clone(),
        format,
        architecture: architecture.map(Architecture::name),
        description,
        pawn: Pawns { from: 0, to: 0, engine: architecture.map(|one| one.scheme().pawn_value) },
    };
    match kind {
        Kind::Fsbench => {
            file.save_with_description(to, description.as_deref()).map_err(refused)?;
            Ok(done("fsbench", None, description))
        }
        Kind::Bullet => {
            bullet::save(to, &file.net).map_err(refused)?;
            Ok(done("bullet", None, None))
        }
        Kind::Nnue => {
            let description = description.unwrap_or_else(|| "A network trained with fsbench.".into());
            let nnue = Nnue::from_file(file, &description).map_err(refused)?;
            nnue.save(to).map_err(refused)?;
            Ok(done("nnue", Some(nnue.architecture), Some(description)))
        }
    }
}

fn text(done: &Done) -> String {
    let kind = match (done.format, done.architecture) {
        (_, Some(architecture)) => architecture,
        ("bullet", _) => "a raw network as bullet writes it",
        _ => "a network of fsbench's",
    };
    let Pawns { from, to, engine } = done.pawn;
    let mut lines = vec![format!("{}: {kind}", done.out.display())];
    if from == to {
        lines.push(format!("a pawn is {to} internal units, as before"));
    } else {
        lines.push(format!("a pawn is {to} internal units: the last layer was scaled, it was {from}"));
    }
    if let Some(engine) = engine.filter(|engine| *engine != to) {
        let times = f64::from(to) / f64::from(engine);
        lines.push(format!(
            "{kind} takes {engine} of them for a pawn: there the network's scores count {times:.2} times as much; --pawn \
             {engine} scales the last layer"
        ));
    }
    lines.join("\n")
}
