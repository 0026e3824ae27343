//! A chess engine in a process of its own, spoken to in UCI. Whatever the engine does (die, hang, babble), every call
//! comes back within its time limit.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, EnPassantMode, Move};
use thiserror::Error;

use super::Eval;
use crate::units::Centipawn;

/// Why an engine gave no answer that can be used.
#[derive(Debug, Error)]
pub enum UciError {
    #[error("cannot start the engine {}: {cause}; give its path with --engine", engine.display())]
    Start { engine: PathBuf, cause: io::Error },
    #[error("the engine {} ended while {doing} ({status})", engine.display())]
    Ended { engine: PathBuf, doing: String, status: String },
    #[error("the engine {} gave no answer within {seconds} s while {doing}", engine.display())]
    Silent { engine: PathBuf, doing: String, seconds: u64 },
    #[error("the engine {} answered {answer:?} while {doing}: {why}", engine.display())]
    Nonsense { engine: PathBuf, doing: String, answer: String, why: &'static str },
}

/// How far a search goes. One thread and a fixed limit make it reproducible.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    Nodes(u64),
    Depth(u32),
}

/// What a search found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub best: Move,
    /// The side to move's view.
    pub eval: Eval,
}

/// A running engine. Dropping it ends the process.
pub struct Engine {
    path: PathBuf,
    name: String,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    patience: Duration,
}

/// An answer line longer than this is cut.
const LONGEST_LINE: u64 = 1 << 16;

impl Engine {
    /// Starts the engine with one thread and `hash` MiB of memory; `patience` is the limit for every answer.
    ///
    /// # Errors
    /// When there is no such program or it does not speak UCI.
    pub fn start(path: &Path, hash: u32, patience: Duration) -> Result<Engine, UciError> {
        let failed = |cause| UciError::Start { engine: path.into(), cause };
        let mut child = Command::new(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(io::Error::other("its pipes are missing")));
        };
        let (sender, lines) = sync_channel(1024);
        // Ends when the engine closes its output or the receiver is dropped.
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        let mut engine = Engine { path: path.into(), name: String::new(), child, stdin, lines, patience };
        engine.handshake(hash)?;
        Ok(engine)
    }

    fn handshake(&mut self, hash: u32) -> Result<(), UciError> {
        self.send("uci", "starting")?;
        let mut name = None;
        self.until("starting", |line| {
            if let Some(text) = line.strip_prefix("id name ") {
                name = Some(text.to_owned());
            }
            (line == "uciok").then_some(())
        })?;
        self.name = name.unwrap_or_else(|| self.path.display().to_string());
        self.send("setoption name Threads value 1", "setting options")?;
        self.send(&format!("setoption name Hash value {hash}"), "setting options")?;
        self.ready("setting options")
    }

    /// What the engine calls itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the engine forget all it has searched.
    ///
    /// # Errors
    /// When the engine is gone or silent.
    pub fn new_game(&mut self) -> Result<(), UciError> {
        self.send("ucinewgame", "starting a game")?;
        self.ready("starting a game")
    }

    fn ready(&mut self, doing: &str) -> Result<(), UciError> {
        self.send("isready", doing)?;
        self.until(doing, |line| (line == "readyok").then_some(()))
    }

    /// Searches the position after `moves` (in UCI, blanks between) from `start`; `position` is that position.
    ///
    /// # Errors
    /// When the engine is gone or silent, or answers with no legal move and score.
    pub fn search(&mut self, start: &Chess, moves: &str, position: &Chess, limit: Limit) -> Result<Answer, UciError> {
        let fen = Fen::from_position(start, EnPassantMode::Legal);
        let doing = "searching";
        let moves_part = if moves.is_empty() { String::new() } else { format!(" moves {moves}") };
        let go = match limit {
            Limit::Nodes(nodes) => format!("go nodes {nodes}"),
            Limit::Depth(depth) => format!("go depth {depth}"),
        };
        self.send(&format!("position fen {fen}{moves_part}\n{go}"), doing)?;
        let mut eval = None;
        let best = self.until(doing, |line| {
            if line.starts_with("info ") {
                eval = score(line).or(eval);
            }
            line.strip_prefix("bestmove").map(|rest| rest.trim().to_owned())
        })?;
        let nonsense = |why| UciError::Nonsense {
            engine: self.path.clone(),
            doing: format!("searching {}", Fen::from_position(position, EnPassantMode::Legal)),
            answer: format!("bestmove {best}").chars().take(60).collect(),
            why,
        };
        let word = best.split_ascii_whitespace().next().unwrap_or_default();
        let uci: UciMove = word.parse().map_err(|_| nonsense("that is no move"))?;
        let mv = uci.to_move(position).map_err(|_| nonsense("that move is illegal"))?;
        let eval = eval.ok_or_else(|| nonsense("no score came with it"))?;
        Ok(Answer { best: mv, eval })
    }

    fn send(&mut self, command: &str, doing: &str) -> Result<(), UciError> {
        // One write, so that the engine never waits for the second half of a line.
        let line = format!("{command}\n");
        match self.stdin.write_all(line.as_bytes()).and_then(|()| self.stdin.flush()) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended(doing)),
        }
    }

    fn until<T>(&mut self, doing: &str, mut pick: impl FnMut(&str) -> Option<T>) -> Result<T, UciError> {
        let deadline = Instant::now() + self.patience;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(found) = pick(&line) {
                        return Ok(found);
                    }
                    if Instant::now() >= deadline {
                        return Err(self.silent(doing));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(self.silent(doing)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(doing)),
            }
        }
    }

    fn silent(&self, doing: &str) -> UciError {
        UciError::Silent { engine: self.path.clone(), doing: doing.into(), seconds: self.patience.as_secs() }
    }

    fn ended(&mut self, doing: &str) -> UciError {
        // Its output is closed, so it is ending by itself or will be ended.
        let deadline = Instant::now() + Duration::from_secs(1);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.to_string(),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => break "it closed its output".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        UciError::Ended { engine: self.path.clone(), doing: doing.into(), status }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A killed engine leaves nothing behind; errors mean that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The score of an `info` line, unless it is a bound or belongs to another line than the first.
fn score(info: &str) -> Option<Eval> {
    let mut words = info.split_ascii_whitespace();
    let mut eval = None;
    while let Some(word) = words.next() {
        match word {
            "score" => {
                let kind = words.next()?;
                let value: i32 = words.next()?.parse().ok()?;
                eval = match kind {
                    "cp" => Some(Eval::Score(Centipawn(value))),
                    "mate" => Some(Eval::Mate(value)),
                    _ => None,
                };
            }
            "lowerbound" | "upperbound" => return None,
            "multipv" if words.next() != Some("1") => return None,
            "string" => return None,
            "pv" => break,
            _ => {}
        }
    }
    eval
}

/// A move as UCI writes it.
#[must_use]
pub fn uci_move(mv: Move) -> String {
    UciMove::from_move(mv, CastlingMode::Standard).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores() {
        let check = |line: &str, expected| assert_eq!(score(line), expected, "{line}");
        check("info depth 5 score cp -31 nodes 3 pv e2e4", Some(Eval::Score(Centipawn(-31))));
        check("info depth 5 score mate -2 nodes 3", Some(Eval::Mate(-2)));
        check("info depth 5 score cp 31 lowerbound nodes 3", None);
        check("info depth 5 multipv 2 score cp 31", None);
        check("info string score cp 31", None);
        check("info depth 5 score cp", None);
        check("info depth 5 score cp x", None);
    }
}
