//! Parsing of positions, moves and input files of the command line.

use std::fs::File;
use std::io::{BufRead, BufReader};

use anyhow::{Context, Result, anyhow};
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, FromSetup};

use super::Failure;
use crate::chess::{Chess, Move};

/// Parses the FEN of a legal position.
pub fn parse_fen(text: &str) -> Result<Chess> {
    let text = text.trim();
    let fen: Fen = text.parse().with_context(|| format!("`{text}` is not a FEN"))?;
    Chess::from_setup(fen.into_setup(), CastlingMode::Standard)
        .map_err(|error| anyhow!("`{text}` is not a legal position: {error}"))
}

/// Parses a legal move in UCI notation. Castling is e1g1 or king takes rook.
pub fn parse_move(position: &Chess, text: &str) -> Result<Move> {
    let text = text.trim();
    let mv: UciMove =
        text.parse().map_err(|_| anyhow!("`{text}` is not a move in UCI notation (such as e2e4 or e7e8q)"))?;
    mv.to_move(position).map_err(|_| anyhow!("`{text}` is illegal in this position"))
}

/// Calls `action` with every line of a file (`-` = stdin) that is not blank. Errors name the line.
pub fn for_each_line(file: &str, mut action: impl FnMut(&str) -> Result<()>) -> Result<(), Failure> {
    let reader: Box<dyn BufRead> = match file {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(BufReader::new(
            File::open(path).with_context(|| format!("cannot open {path}")).map_err(Failure::Request)?,
        )),
    };
    for (index, line) in reader.lines().enumerate() {
        let location = || format!("{file}, line {}", index + 1);
        let line = line.with_context(location).map_err(Failure::Request)?;
        if !line.trim().is_empty() {
            action(&line).with_context(location).map_err(Failure::Request)?;
        }
    }
    Ok(())
}
