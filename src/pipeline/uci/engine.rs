//! A chess engine in a process of its own. Every call returns within its time limit, even when the engine dies, hangs
//! or writes without end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use shakmaty::uci::UciMove;
use shakmaty::{Chess, Move, Position};

use super::last_lines::{LastLines, wait_for};
use super::output_lines::{EngineOption, InfoLine, info_line, similar_names};
use super::spec::GAMES_FOLDER;
use super::{Answer, EngineIdentity, EngineSpec, SearchLimit, SearchReport, UciError, UciGame};
use crate::chess::{fen_of, parse_fen, uci_move};
use crate::units::{Seed, SortedMap};

/// A running engine. Dropping it ends the process.
pub struct Engine {
    path: PathBuf,
    /// Without the hashes of files.
    identity: EngineIdentity,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    last_lines: LastLines,
    /// The thread that reads stderr.
    stderr: JoinHandle<()>,
    answer_timeout: Duration,
    /// The option `UCI_Chess960` as it stands; `None` if the engine has none.
    chess960: Option<bool>,
}

/// Longer lines are cut, and further lines wait in the pipe, so that an engine's output cannot fill the memory.
const LONGEST_LINE: u64 = 1 << 14;
const WAITING_LINES: usize = 256;
const BUSY_TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(10);
/// How long to wait for the last lines of an engine that has ended.
const LAST_LINES_WAIT: Duration = Duration::from_millis(500);
/// More options are ignored; no known engine has as many.
const MAX_OPTIONS: usize = 10_000;

impl Engine {
    /// Starts the engine and sets its options. `answer_timeout` is the time limit of every answer; a search limited by
    /// time may take that time as well.
    ///
    /// # Errors
    /// When there is no such program, it does not speak UCI, or it does not offer a requested option.
    pub fn start(spec: &EngineSpec, answer_timeout: Duration) -> Result<Engine, UciError> {
        let mut engine = Engine::launch(spec, &[], answer_timeout)?;
        engine.handshake(spec)?;
        Ok(engine)
    }

    /// Openings that the engine draws by its command `genfens`. It is started as OpenBench starts it: the commands are
    /// its last arguments.
    ///
    /// # Errors
    /// When there is no such program, or it does not draw so many legal positions.
    pub fn draw_openings(
        spec: &EngineSpec,
        count: u64,
        seed: Seed,
        answer_timeout: Duration,
    ) -> Result<Vec<Chess>, UciError> {
        let doing = "drawing openings by its command genfens";
        let commands = [format!("genfens {count} seed {} book None", seed.0), "quit".into()];
        let mut engine = Engine::launch(spec, &commands, answer_timeout)?;
        // An engine that does not know the command waits for others, and ends. One that does may have ended already.
        let _ = engine.stdin.write_all(b"quit\n");
        let mut openings = Vec::new();
        for _ in 0..count {
            let fen = engine.read_until(doing, Duration::ZERO, |line| {
                line.strip_prefix("info string genfens ").map(str::to_owned)
            })?;
            openings.push(parse_fen(&fen).map_err(|_| UciError::Nonsense {
                engine: engine.path.clone(),
                doing: doing.into(),
                answer: shortened(&fen),
                why: "that is not a legal position",
            })?);
        }
        Ok(openings)
    }

    /// Starts the program with further arguments.
    fn launch(spec: &EngineSpec, further: &[String], answer_timeout: Duration) -> Result<Engine, UciError> {
        let failed = |cause| UciError::Start { engine: spec.path.clone(), cause };
        let spawn = |path: &Path| {
            let mut command = Command::new(path);
            command.args(&spec.arguments).args(further);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // A program file written a moment ago can still be open in a process that another thread is starting.
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
            Err(error) if is_name && error.kind() == io::ErrorKind::NotFound => {
                spawn(&Path::new(GAMES_FOLDER).join(&spec.path)).map_err(|_| failed(error))?
            }
            started => started.map_err(failed)?,
        };
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::Error::other("its pipes are missing")));
        };
        let (sender, lines) = sync_channel(WAITING_LINES);
        let last_lines = LastLines::default();
        let stderr = last_lines.follow(stderr);
        let stdout_lines = last_lines.clone();
        thread::spawn(move || forward_lines(stdout, &sender, &stdout_lines));
        let identity = EngineIdentity {
            name: String::new(),
            program: None,
            arguments: spec.arguments.clone(),
            files: SortedMap::new(),
            options: SortedMap::new(),
            hash: None,
        };
        let path = spec.path.clone();
        Ok(Engine { path, identity, child, stdin, lines, last_lines, stderr, answer_timeout, chess960: None })
    }

    fn handshake(&mut self, spec: &EngineSpec) -> Result<(), UciError> {
        let doing = "starting";
        self.send("uci", doing)?;
        let mut name = None;
        let mut offers: Vec<EngineOption> = Vec::new();
        self.read_until(doing, Duration::ZERO, |line| {
            if let Some(text) = line.strip_prefix("id name ") {
                name = Some(text.to_owned());
            } else if offers.len() < MAX_OPTIONS {
                offers.extend(EngineOption::parse(line));
            }
            (line == "uciok").then_some(())
        })?;
        self.identity.name = name.unwrap_or_else(|| self.path.display().to_string());
        let offered = |name: &str| offers.iter().find(|offer| offer.name.eq_ignore_ascii_case(name));
        if let Some(offer) = offered("Threads") {
            self.set_option(offer, "1")?;
        }
        if let Some(offer) = offered("Hash") {
            self.set_option(offer, &spec.hash.to_string())?;
            self.identity.hash = Some(spec.hash);
        }
        self.chess960 = offered("UCI_Chess960").map(|_| false);
        for (name, value) in &spec.options {
            let Some(offer) = offered(name) else {
                let near = similar_names(name, &offers);
                return Err(UciError::UnknownOption { engine: self.path.clone(), name: name.clone(), near });
            };
            self.set_option(offer, value)?;
            self.identity.options.insert(offer.name.clone(), value.clone());
        }
        self.wait_until_ready("setting options")
    }

    fn set_option(&mut self, offer: &EngineOption, value: &str) -> Result<(), UciError> {
        let command = offer.command(value).map_err(|why| {
            let name = offer.name.clone();
            let value = value.to_owned();
            UciError::OptionValue { engine: self.path.clone(), name, value, why }
        })?;
        self.send(&command, "setting options")
    }

    /// The name that the engine gives itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// The facts that its answers depend on. Reads the program's file and the files that it is given.
    #[must_use]
    pub fn identity(&self) -> EngineIdentity {
        self.identity.clone().with_files(&self.path)
    }

    /// Makes the engine forget all earlier searches.
    ///
    /// # Errors
    /// When the engine has ended or does not answer.
    pub fn new_game(&mut self) -> Result<(), UciError> {
        self.send("ucinewgame", "starting a game")?;
        self.wait_until_ready("starting a game")
    }

    fn wait_until_ready(&mut self, doing: &str) -> Result<(), UciError> {
        self.send("isready", doing)?;
        self.read_until(doing, Duration::ZERO, |line| (line == "readyok").then_some(()))
    }

    /// Searches the position that `game` has reached; `position` must be that position.
    ///
    /// # Errors
    /// When the engine has ended or does not answer, or when its answer is not a legal move with a score.
    pub fn search(&mut self, game: &UciGame, position: &Chess, limit: SearchLimit) -> Result<Answer, UciError> {
        let SearchReport { best, eval, .. } = self.analyse(game, position, limit)?;
        let Some(eval) = eval else { return Err(self.no_score(position, best)) };
        Ok(Answer { best, eval })
    }

    /// The error of an answer without a score where one is needed.
    #[must_use]
    pub fn no_score(&self, position: &Chess, best: Move) -> UciError {
        self.nonsense(position, &uci_move(best), "no score came with it")
    }

    /// As [`Engine::search`], with the depth and the nodes that the engine last reported; a score may be missing.
    ///
    /// # Errors
    /// When the engine is gone or silent, or answers with no legal move.
    pub fn analyse(&mut self, game: &UciGame, position: &Chess, limit: SearchLimit) -> Result<SearchReport, UciError> {
        let doing = "searching";
        self.set_chess960(game)?;
        let UciGame { start, moves, .. } = game;
        let moves = if moves.is_empty() { String::new() } else { format!(" moves {moves}") };
        // Discard lines that the engine wrote after its last answer.
        self.lines.try_iter().take(WAITING_LINES).for_each(drop);
        self.send(&format!("position fen {start}{moves}\n{}", limit.go()), doing)?;
        let mut info = InfoLine::default();
        let best = self.read_until(doing, limit.time(position.turn()), |line| {
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            match word {
                "info" => info.update(info_line(rest).unwrap_or_default()),
                "bestmove" => return Some(rest.trim().to_owned()),
                _ => {}
            }
            None
        })?;
        let nonsense = |why| self.nonsense(position, &best, why);
        let word = best.split_ascii_whitespace().next().unwrap_or_default();
        let uci: UciMove = word.parse().map_err(|_| nonsense("that is not a move"))?;
        let mv = uci.to_move(position).map_err(|_| nonsense("that move is illegal"))?;
        Ok(SearchReport { best: mv, eval: info.eval(), depth: info.depth, nodes: info.nodes })
    }

    /// Sets the option `UCI_Chess960` as the game needs it.
    fn set_chess960(&mut self, game: &UciGame) -> Result<(), UciError> {
        match self.chess960 {
            Some(set) if set != game.chess960 => {
                self.send(&format!("setoption name UCI_Chess960 value {}", game.chess960), "setting options")?;
                self.chess960 = Some(game.chess960);
                Ok(())
            }
            None if game.chess960 => Err(UciError::NoChess960 { engine: self.path.clone(), fen: game.start.clone() }),
            _ => Ok(()),
        }
    }

    fn nonsense(&self, position: &Chess, best: &str, why: &'static str) -> UciError {
        UciError::Nonsense {
            engine: self.path.clone(),
            doing: format!("searching {}", fen_of(position)),
            answer: shortened(&format!("bestmove {best}")),
            why,
        }
    }

    /// Sends a command. This never blocks: the engine has read all earlier commands, and the pipe holds any single one.
    fn send(&mut self, command: &str, doing: &str) -> Result<(), UciError> {
        // One write, so that the engine never waits for the second half of a line.
        let line = format!("{command}\n");
        match self.stdin.write_all(line.as_bytes()).and_then(|()| self.stdin.flush()) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended_error(doing)),
        }
    }

    /// Reads lines until `pick` returns a value. The engine may take `extra` beyond the usual time limit.
    fn read_until<T>(
        &mut self,
        doing: &str,
        extra: Duration,
        mut pick: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, UciError> {
        let timeout = self.answer_timeout.saturating_add(extra);
        let deadline = Instant::now() + timeout;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(found) = pick(&line) {
                        return Ok(found);
                    }
                    if Instant::now() >= deadline {
                        return Err(self.silent_error(doing, timeout));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(self.silent_error(doing, timeout)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended_error(doing)),
            }
        }
    }

    fn silent_error(&self, doing: &str, timeout: Duration) -> UciError {
        UciError::Silent { engine: self.path.clone(), doing: doing.into(), seconds: timeout.as_secs_f64() }
    }

    fn ended_error(&mut self, doing: &str) -> UciError {
        // The engine closed its output, so it usually ends by itself soon.
        let deadline = Instant::now() + Duration::from_secs(1);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.to_string(),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => break "it closed its output".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        // Reads the lines that are left in the pipe, until it is closed.
        let deadline = Instant::now() + LAST_LINES_WAIT;
        while self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        wait_for(&self.stderr, LAST_LINES_WAIT);
        let said = self.last_lines.indented();
        UciError::Ended { engine: self.path.clone(), doing: doing.into(), status, said }
    }
}

/// The beginning of an engine's line, for messages.
fn shortened(line: &str) -> String {
    line.chars().take(60).collect()
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Errors mean that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the engine's lines to `lines` until the engine closes its output or the receiver is gone.
fn forward_lines(output: ChildStdout, lines: &SyncSender<String>, last_lines: &LastLines) {
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        line.clear();
        last_lines.add(&text);
        if lines.send(text).is_err() {
            return;
        }
    }
}
