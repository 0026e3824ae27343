//! Parsing of positions, moves and input files of the command line.

use std::fs::File;
use std::io::{BufRead, BufReader};

use anyhow::{Context, Result, anyhow};
use serde_json::json;
use shakmaty::uci::UciMove;

use super::{Failure, ResultFormat};
use crate::chess::{Chess, Move};

/// Parses a legal move in UCI notation. Castling is e1g1 or king takes rook.
pub fn parse_move(position: &Chess, text: &str) -> Result<Move> {
    let text = text.trim();
    let mv: UciMove =
        text.parse().map_err(|_| anyhow!("`{text}` is not a move in UCI notation (such as e2e4 or e7e8q)"))?;
    mv.to_move(position).map_err(|_| anyhow!("`{text}` is illegal in this position"))
}

/// Prints the answer to every line of a file (`-` = stdin) that is not blank. A line that has none is reported,
/// answered with `{"line", "error"}` in JSON so that answers still stand in the order of the lines, and left out of
/// text.
///
/// # Errors
/// If the file cannot be read, an answer cannot be printed or, at the end, if lines had none.
pub fn answer_each_line(
    file: &str,
    format: ResultFormat,
    mut answer: impl FnMut(&str) -> Result<String>,
) -> Result<(), Failure> {
    let reader: Box<dyn BufRead> = match file {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(BufReader::new(
            File::open(path).with_context(|| format!("cannot open {path}")).map_err(Failure::Request)?,
        )),
    };
    let mut lines = 0u64;
    let mut refused = 0u64;
    for (index, line) in reader.lines().enumerate() {
        let number = index + 1;
        let line = line.with_context(|| format!("{file}, line {number}")).map_err(Failure::Request)?;
        if line.trim().is_empty() {
            continue;
        }
        lines += 1;
        match answer(&line) {
            Ok(text) => outln!("{text}")?,
            Err(error) => {
                refused += 1;
                note!("error: {file}, line {number}: {error:#}");
                if format == ResultFormat::Json {
                    outln!("{}", json!({ "line": number, "error": format!("{error:#}") }))?;
                }
            }
        }
    }
    match refused {
        0 => Ok(()),
        _ => Err(Failure::Request(anyhow!("{refused} of {lines} lines of {file} have no answer; see above"))),
    }
}
