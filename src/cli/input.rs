//! Positions and moves from the command line and from files of lines.

use std::fs::File;
use std::io::{BufRead, BufReader};

use anyhow::{Context, Result, anyhow};
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, FromSetup};

use super::Failure;
use crate::chess::{Chess, Move};

/// A legal position.
pub fn fen(text: &str) -> Result<Chess> {
    let text = text.trim();
    let fen: Fen = text.parse().with_context(|| format!("`{text}` is no FEN"))?;
    Chess::from_setup(fen.into_setup(), CastlingMode::Standard)
        .map_err(|error| anyhow!("`{text}` is no legal position: {error}"))
}

/// A legal move in UCI notation; castling as e1g1 or king takes rook.
pub fn uci(position: &Chess, text: &str) -> Result<Move> {
    let text = text.trim();
    let mv: UciMove =
        text.parse().map_err(|_| anyhow!("`{text}` is no move in UCI notation (such as e2e4 or e7e8q)"))?;
    mv.to_move(position).map_err(|_| anyhow!("`{text}` is illegal in this position"))
}

/// Calls `each` with every line that is not empty; an error names its line.
pub fn lines(file: &str, mut each: impl FnMut(&str) -> Result<()>) -> Result<(), Failure> {
    let reader: Box<dyn BufRead> = match file {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(BufReader::new(
            File::open(path).with_context(|| format!("cannot open {path}")).map_err(Failure::Request)?,
        )),
    };
    for (number, line) in reader.lines().enumerate() {
        let place = || format!("{file}, line {}", number + 1);
        let line = line.with_context(place).map_err(Failure::Request)?;
        if !line.trim().is_empty() {
            each(&line).with_context(place).map_err(Failure::Request)?;
        }
    }
    Ok(())
}
