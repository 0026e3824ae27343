//! A chess engine in a process of its own. Whatever it does (die, hang, babble), every call comes back within its time
//! limit.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{Chess, EnPassantMode};

use super::last_lines::{LastLines, wait_for};
use super::output_lines::{EngineOption, near, score};
use super::{Answer, EngineIdentity, EngineSpec, SearchLimit, UciError};

/// A running engine. Dropping it ends the process.
pub struct Engine {
    path: PathBuf,
    identity: EngineIdentity,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    tail: LastLines,
    /// Reads stderr.
    stderr: JoinHandle<()>,
    patience: Duration,
}

/// A line longer than this is cut, and more lines than these wait in the pipe: an engine that babbles fills no memory.
const LONGEST_LINE: u64 = 1 << 14;
const WAITING_LINES: usize = 256;
const BUSY_TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(10);
/// How long its last words are waited for when an engine has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// No engine has more.
const MOST_OPTIONS: usize = 10_000;

impl Engine {
    /// Starts the engine and sets its options; `patience` is the limit for every answer.
    ///
    /// # Errors
    /// When there is no such program, it does not speak UCI, or it does not offer an option asked for.
    pub fn start(spec: &EngineSpec, patience: Duration) -> Result<Engine, UciError> {
        let failed = |cause| UciError::Start { engine: spec.path.clone(), cause };
        let spawn = |path: &Path| {
            let mut command = Command::new(path);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // A program that was written a moment ago can still be open in a process that another thread is starting.
            for _ in 0..BUSY_TRIES {
                match command.spawn() {
                    Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(BUSY_WAIT),
                    started => return started,
                }
            }
            command.spawn()
        };
        let is_name = spec.path.components().count() == 1;
        let mut child = match spawn(&spec.path) {
            // Where Debian puts engines; not everybody has it in PATH.
            Err(error) if is_name && error.kind() == io::ErrorKind::NotFound => {
                spawn(&Path::new("/usr/games").join(&spec.path)).map_err(|_| failed(error))?
            }
            started => started.map_err(failed)?,
        };
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::Error::other("its pipes are missing")));
        };
        let (sender, lines) = sync_channel(WAITING_LINES);
        let tail = LastLines::default();
        let (stderr, kept) = (tail.follow(stderr), tail.clone());
        thread::spawn(move || forward(stdout, &sender, &kept));
        let identity = EngineIdentity { name: String::new(), options: BTreeMap::new(), hash: None };
        let mut engine = Engine { path: spec.path.clone(), identity, child, stdin, lines, tail, stderr, patience };
        engine.handshake(spec)?;
        Ok(engine)
    }

    fn handshake(&mut self, spec: &EngineSpec) -> Result<(), UciError> {
        let doing = "starting";
        self.send("uci", doing)?;
        let mut name = None;
        let mut offers: Vec<EngineOption> = Vec::new();
        self.until(doing, |line| {
            if let Some(text) = line.strip_prefix("id name ") {
                name = Some(text.to_owned());
            } else if offers.len() < MOST_OPTIONS {
                offers.extend(EngineOption::parse(line));
            }
            (line == "uciok").then_some(())
        })?;
        self.identity.name = name.unwrap_or_else(|| self.path.display().to_string());
        let offered = |name: &str| offers.iter().find(|offer| offer.name.eq_ignore_ascii_case(name));
        if let Some(offer) = offered("Threads") {
            self.set(offer, "1")?;
        }
        if let Some(offer) = offered("Hash") {
            self.set(offer, &spec.hash.to_string())?;
            self.identity.hash = Some(spec.hash);
        }
        for (name, value) in &spec.options {
            let Some(offer) = offered(name) else {
                let near = near(name, &offers);
                return Err(UciError::UnknownOption { engine: self.path.clone(), name: name.clone(), near });
            };
            self.set(offer, value)?;
            self.identity.options.insert(offer.name.clone(), value.clone());
        }
        self.ready("setting options")
    }

    fn set(&mut self, offer: &EngineOption, value: &str) -> Result<(), UciError> {
        let command = offer.set(value).map_err(|why| {
            let (name, value) = (offer.name.clone(), value.to_owned());
            UciError::OptionValue { engine: self.path.clone(), name, value, why }
        })?;
        self.send(&command, "setting options")
    }

    /// What the engine calls itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// What determines its answers.
    #[must_use]
    pub const fn identity(&self) -> &EngineIdentity {
        &self.identity
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

    /// Searches the position after `moves` (in UCI, blanks between) from the FEN `start`; `position` is that position.
    ///
    /// # Errors
    /// When the engine is gone or silent, or answers with no legal move and score.
    pub fn search(
        &mut self,
        start: &str,
        moves: &str,
        position: &Chess,
        limit: SearchLimit,
    ) -> Result<Answer, UciError> {
        let doing = "searching";
        let moves_part = if moves.is_empty() { String::new() } else { format!(" moves {moves}") };
        // What it said too much after the search before.
        self.lines.try_iter().take(WAITING_LINES).for_each(drop);
        self.send(&format!("position fen {start}{moves_part}\n{}", limit.go()), doing)?;
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

    /// The engine has read all before it: no command is longer than what a pipe holds, so this never waits for it.
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
        UciError::Silent { engine: self.path.clone(), doing: doing.into(), seconds: self.patience.as_secs_f64() }
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
        // What waits in the pipe, until it is closed.
        let patience = Instant::now() + LAST_WORDS;
        while self.lines.recv_timeout(patience.saturating_duration_since(Instant::now())).is_ok() {}
        wait_for(&self.stderr, LAST_WORDS);
        let said = self.tail.indented();
        UciError::Ended { engine: self.path.clone(), doing: doing.into(), status, said }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A killed engine leaves nothing behind; errors mean that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands on what the engine writes until it closes its output or nobody listens.
fn forward(output: ChildStdout, lines: &SyncSender<String>, tail: &LastLines) {
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        line.clear();
        tail.add(&text);
        if lines.send(text).is_err() {
            return;
        }
    }
}
