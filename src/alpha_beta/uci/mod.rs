//! The search as a UCI engine.
//!
//! One thread reads commands, another searches; both write whole lines. The reader itself handles commands that must
//! not wait for a search (`stop`, `ponderhit`, `quit`, and `isready` during a search). All others are queued. An `info
//! string error` line reports a wrong command; only `quit` and the end of the input end the engine, after a bench that
//! is still running.

mod command;
mod genfens;
mod options;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shakmaty::{Chess, Color, Move};

use super::{Game, Iteration, Score, SearchResult, Searcher, TranspositionTable, bench};
use crate::chess::{fen_of, uci_move, uci_move_chess960};
use crate::engine::{BackEnd, Model};
use crate::features::FeatureSet;
use command::{GoCommand, UciCommand, UciInput, parse_position};
pub use genfens::GenfensRequest;
use options::{DEFAULT_MOVE_OVERHEAD, UciOptions};

/// A network ready to play.
pub struct PlayingNetwork {
    pub set: FeatureSet,
    pub model: Model,
}

/// Reads a network file; the error is a message for the user.
pub type LoadNetwork<'a> = dyn Fn(&Path) -> Result<PlayingNetwork, String> + Sync + 'a;

/// Starts to draw the openings that a request asks for; the error is a message for the user.
pub type DrawOpenings<'a> = dyn Fn(&GenfensRequest) -> Result<OpeningSource, String> + Sync + 'a;

/// Draws one opening after the other.
pub type OpeningSource = Box<dyn FnMut() -> Result<Chess, String>>;

/// What the engine takes from the program around it.
#[derive(Copy, Clone)]
pub struct UciHost<'a> {
    pub load: &'a LoadNetwork<'a>,
    pub openings: &'a DrawOpenings<'a>,
}

/// Plays by UCI until `quit` or the end of the input. `network` is loaded first; the option `EvalFile` replaces it.
///
/// # Errors
/// When the input cannot be read. If the output cannot be written, the engine ends without an error.
pub fn uci(
    input: impl BufRead,
    output: impl Write + Send,
    host: UciHost<'_>,
    network: Option<PathBuf>,
) -> io::Result<()> {
    run(input, output, host, network, AtEnd::StopSearch).map(|_| ())
}

/// Executes commands of a command line, each to its end. `network` is as in [`uci`]. Returns whether all could be
/// executed: an `info string error` line reports each that could not.
#[must_use]
pub fn uci_commands(
    commands: &[String],
    output: impl Write + Send,
    host: UciHost<'_>,
    network: Option<PathBuf>,
) -> bool {
    let input = commands.join("\n");
    // Reading from memory does not fail.
    run(input.as_bytes(), output, host, network, AtEnd::FinishSearch).unwrap_or(false)
}

/// The effect of the input's end on searches that are requested and not answered.
#[derive(Copy, Clone, PartialEq, Eq)]
enum AtEnd {
    StopSearch,
    FinishSearch,
}

/// Returns whether no error was reported.
fn run(
    input: impl BufRead,
    output: impl Write + Send,
    host: UciHost<'_>,
    network: Option<PathBuf>,
    at_end: AtEnd,
) -> io::Result<bool> {
    let shared = UciSession::new(output);
    let (commands, queue) = channel();
    let outcome = std::thread::scope(|scope| {
        let game = Some(Game::new(Chess::default()));
        let search = SearchThread { shared: &shared, host, network, game, options: UciOptions::default() };
        scope.spawn(move || search.run(&queue));
        let mut reader = CommandReader {
            shared: &shared,
            commands,
            stop_flags: Vec::new(),
            pondering: None,
            move_overhead: DEFAULT_MOVE_OVERHEAD,
        };
        let outcome = reader.run(input);
        if at_end == AtEnd::StopSearch {
            reader.stop();
        }
        outcome
    });
    outcome.map(|()| !shared.has_errors.load(Ordering::Relaxed))
}

/// State that both threads use.
struct UciSession<W> {
    output: Mutex<W>,
    /// Number of searches requested and not yet answered. Relaxed, as the flags: nothing is passed on by it, and
    /// `readyok` may come just before or just after a `bestmove`.
    searching: AtomicU64,
    /// Whether writing to the output has failed.
    output_closed: Arc<AtomicBool>,
    /// Whether an error was reported. Relaxed: it is read when both threads have ended.
    has_errors: AtomicBool,
}

impl<W: Write> UciSession<W> {
    fn new(output: W) -> UciSession<W> {
        UciSession {
            output: Mutex::new(output),
            searching: AtomicU64::new(0),
            output_closed: Arc::default(),
            has_errors: AtomicBool::new(false),
        }
    }

    fn write_line(&self, line: &str) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
            self.output_closed.store(true, Ordering::Relaxed);
        }
    }

    fn write_error(&self, message: &str) {
        self.has_errors.store(true, Ordering::Relaxed);
        self.write_line(&format!("info string error: {}", message.replace('\n', " ")));
    }

    fn is_output_closed(&self) -> bool {
        self.output_closed.load(Ordering::Relaxed)
    }
}

/// Reads commands and queues them for the search thread.
struct CommandReader<'s, W> {
    shared: &'s UciSession<W>,
    commands: Sender<UciCommand>,
    /// Stop flags of the searches requested.
    stop_flags: Vec<Arc<AtomicBool>>,
    /// The last search, if it ponders.
    pondering: Option<Box<GoCommand>>,
    /// The option `Move Overhead`.
    move_overhead: Duration,
}

impl<W: Write + Send> CommandReader<'_, W> {
    fn run(&mut self, input: impl BufRead) -> io::Result<()> {
        for line in input.split(b'\n') {
            let line = line?;
            match UciInput::parse(String::from_utf8_lossy(&line).trim()) {
                Ok(UciInput::Quit) => break,
                Ok(UciInput::Stop) => self.stop(),
                Ok(UciInput::PonderHit) => self.ponder_hit(),
                Ok(UciInput::Command(command)) => self.queue(command),
                Ok(UciInput::Nothing) => {}
                Err(message) => self.shared.write_error(&message),
            }
            if self.shared.is_output_closed() {
                break;
            }
        }
        Ok(())
    }

    fn queue(&mut self, command: UciCommand) {
        match &command {
            UciCommand::IsReady if self.shared.searching.load(Ordering::Relaxed) > 0 => {
                return self.shared.write_line("readyok");
            }
            UciCommand::Go(go) => {
                self.pondering = go.ponder.then(|| go.clone());
                // Finished searches have dropped their flags.
                self.stop_flags.retain(|flag| Arc::strong_count(flag) > 1);
                self.stop_flags.push(Arc::clone(&go.stop));
                self.shared.searching.fetch_add(1, Ordering::Relaxed);
            }
            UciCommand::SetOption { name, value } => {
                let mut options = UciOptions { move_overhead: self.move_overhead, ..UciOptions::default() };
                // The search thread reports errors.
                if options.set(name, value).is_ok() {
                    self.move_overhead = options.move_overhead;
                }
            }
            _ => {}
        }
        // Sending cannot fail: the search thread ends only after this reader.
        let _ = self.commands.send(command);
    }

    fn stop(&mut self) {
        self.pondering = None;
        self.stop_flags.drain(..).for_each(|flag| flag.store(true, Ordering::Relaxed));
    }

    /// The opponent has played the expected move: the ponder search's time starts now.
    fn ponder_hit(&mut self) {
        let Some(go) = self.pondering.take() else { return };
        go.ponder_hit.store(true, Ordering::Relaxed);
        // The reader does not know whose turn it is and takes the shorter time of both clocks.
        let now = Instant::now();
        let clocks =
            [Color::White, Color::Black].into_iter().filter_map(|turn| go.clock(turn, now, self.move_overhead));
        let wait = match clocks.map(|clock| clock.soft).min() {
            Some(wait) => wait,
            None if go.has_other_limit() => return,
            None => Duration::ZERO,
        };
        std::thread::spawn(move || {
            std::thread::sleep(wait);
            go.stop.store(true, Ordering::Relaxed);
        });
    }
}

/// Executes queued commands.
struct SearchThread<'s, W> {
    shared: &'s UciSession<W>,
    host: UciHost<'s>,
    network: Option<PathBuf>,
    /// `None` after a position that was refused.
    game: Option<Game>,
    options: UciOptions,
}

/// Up to this depth every iteration has its `info` line. Deeper ones are a flood in level endings, which a GUI may take
/// longer to read than the search has time: a line there comes at least [`INFO_INTERVAL`] after the line before it, or
/// last.
const EVERY_ITERATION: u32 = 16;
const INFO_INTERVAL: Duration = Duration::from_millis(5);

const NO_POSITION: &str = "there is no position: the last one was refused";
const NO_NETWORK: &str = "no network is loaded: set the option EvalFile to a network file";

impl<W: Write> SearchThread<'_, W> {
    /// Loads networks and executes commands with them. A searcher borrows its network, so each network has its own turn
    /// of the loop.
    fn run(mut self, queue: &Receiver<UciCommand>) {
        let mut loaded = self.network.take().and_then(|path| self.load_network(&path));
        loop {
            let next = match &loaded {
                None => self.execute_commands(queue, None),
                Some(PlayingNetwork { set, model }) => {
                    match Searcher::new(set, model, BackEnd::best(), self.options.megabytes) {
                        Ok(searcher) => self.execute_commands(queue, Some(searcher)),
                        Err(error) => {
                            self.shared.write_error(&error.to_string());
                            self.execute_commands(queue, None)
                        }
                    }
                }
            };
            if next.is_none() {
                return;
            }
            loaded = next;
        }
    }

    fn load_network(&self, path: &Path) -> Option<PlayingNetwork> {
        (self.host.load)(path).map_err(|message| self.shared.write_error(&message)).ok()
    }

    /// Executes commands until the option `EvalFile` loads a network, which is returned, or until the reader has ended.
    /// A file that cannot be loaded leaves the present network.
    fn execute_commands(
        &mut self,
        queue: &Receiver<UciCommand>,
        mut searcher: Option<Searcher<'_>>,
    ) -> Option<PlayingNetwork> {
        while let Ok(command) = queue.recv() {
            let searcher = searcher.as_mut();
            match command {
                UciCommand::Uci => UciOptions::identification().iter().for_each(|line| self.shared.write_line(line)),
                UciCommand::IsReady => self.shared.write_line("readyok"),
                UciCommand::NewGame => {
                    self.game = Some(Game::new(Chess::default()));
                    searcher.into_iter().for_each(Searcher::clear);
                }
                // A position that is refused leaves none: a move of an earlier one would be wrong.
                UciCommand::Position(text) => {
                    self.game = parse_position(&text).map_err(|message| self.shared.write_error(&message)).ok();
                }
                UciCommand::Go(go) => self.go(searcher, &go),
                UciCommand::SetOption { name, value } if name.eq_ignore_ascii_case("EvalFile") => {
                    // GUIs send the default of every option, which stands for no change.
                    if !matches!(value.as_str(), "" | "<empty>")
                        && let Some(network) = self.load_network(Path::new(&value))
                    {
                        return Some(network);
                    }
                }
                UciCommand::SetOption { name, value } => self.set_option(searcher, &name, &value),
                UciCommand::Bench(depth) => self.with_searcher(searcher, |searcher| {
                    searcher.set_stop_flag(Arc::clone(&self.shared.output_closed));
                    let result = bench(searcher, depth);
                    self.shared.write_line(&format!("{} nodes {} nps", result.nodes, result.nps()));
                }),
                UciCommand::Genfens(request) => self.draw_openings(searcher, &request),
                UciCommand::Eval => self.with_searcher(searcher, |searcher| {
                    self.with_game(|game| {
                        let score = searcher.evaluate(game);
                        self.shared.write_line(&format!("info string eval {score} cp, side to move's view"));
                    });
                }),
                UciCommand::Display => self.with_game(|game| self.shared.write_line(&fen_of(game.position()))),
            }
        }
        None
    }

    fn with_searcher(&self, searcher: Option<&mut Searcher<'_>>, action: impl FnOnce(&mut Searcher<'_>)) {
        match searcher {
            Some(searcher) => action(searcher),
            None => self.shared.write_error(NO_NETWORK),
        }
    }

    fn with_game(&self, action: impl FnOnce(&Game)) {
        match &self.game {
            Some(game) => action(game),
            None => self.shared.write_error(NO_POSITION),
        }
    }

    fn set_option(&mut self, searcher: Option<&mut Searcher<'_>>, name: &str, value: &str) {
        let is_hash = name.eq_ignore_ascii_case("hash");
        let megabytes = self.options.megabytes;
        let mut outcome = self.options.set(name, value);
        if is_hash && outcome.is_ok() {
            outcome = TranspositionTable::check_memory(self.options.megabytes).map_err(|error| error.to_string());
        }
        match (outcome, searcher) {
            (Ok(()), Some(searcher)) if is_hash => searcher.resize(self.options.megabytes),
            (Ok(()), _) => {}
            (Err(message), _) => {
                self.options.megabytes = megabytes;
                self.shared.write_error(&message);
            }
        }
    }

    fn go(&self, searcher: Option<&mut Searcher<'_>>, go: &GoCommand) {
        let mut best = "(none)".into();
        go.warnings.iter().for_each(|message| self.shared.write_error(message));
        self.with_searcher(searcher, |searcher| {
            searcher.set_stop_flag(Arc::clone(&go.stop));
            self.with_game(|game| best = self.search(searcher, game, go));
            searcher.set_stop_flag(Arc::default());
        });
        // GUIs expect `bestmove` only after they have stopped an infinite search.
        let is_awaited = || go.infinite || (go.ponder && !go.ponder_hit.load(Ordering::Relaxed));
        while is_awaited() && !go.stop.load(Ordering::Relaxed) && !self.shared.is_output_closed() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.searching.fetch_sub(1, Ordering::Relaxed);
        self.shared.write_line(&format!("bestmove {best}"));
    }

    /// Searches and returns the arguments of `bestmove`.
    fn search(&self, searcher: &mut Searcher<'_>, game: &Game, go: &GoCommand) -> String {
        let (limits, messages) = match go.limits(game, &self.options) {
            Ok(limits) => limits,
            Err(message) => {
                self.shared.write_error(&message);
                return "(none)".into();
            }
        };
        messages.iter().for_each(|message| self.shared.write_error(message));
        let mut last = None;
        let mut written = go.start;
        let mut is_held = false;
        let result = searcher.search(game, &limits, |iteration| {
            is_held = iteration.depth > EVERY_ITERATION && written.elapsed() < INFO_INTERVAL;
            if !is_held {
                self.shared.write_line(&info_line(iteration, go.start.elapsed(), self.options.chess960));
                written = Instant::now();
            }
            last = Some(iteration.clone());
            if self.shared.is_output_closed() {
                go.stop.store(true, Ordering::Relaxed);
            }
        });
        let SearchResult { best, ponder, score, nodes, .. } = result;
        // All nodes count, also an interrupted iteration's.
        if let (Some(mut end), Some(best)) = (last, best)
            && (is_held || nodes > end.nodes)
        {
            end.nodes = nodes;
            end.score = score;
            if end.line.first() != Some(&best) {
                end.line = [best].into_iter().chain(ponder).collect();
            }
            self.shared.write_line(&info_line(&end, go.start.elapsed(), self.options.chess960));
        }
        let text = |mv: Move| move_text(mv, self.options.chess960);
        match (best, ponder) {
            (Some(best), Some(ponder)) => format!("{} ponder {}", text(best), text(ponder)),
            (Some(best), None) => text(best),
            (None, _) => "(none)".into(),
        }
    }
}

/// A move; castling as the option `UCI_Chess960` asks for.
fn move_text(mv: Move, chess960: bool) -> String {
    if chess960 { uci_move_chess960(mv) } else { uci_move(mv) }
}

/// The `info` line of an iteration.
fn info_line(iteration: &Iteration, elapsed: Duration, chess960: bool) -> String {
    let Iteration { depth, seldepth, score, nodes, hashfull, line } = iteration;
    let score = match score {
        Score::Cp(value) => format!("cp {value}"),
        Score::Mate(moves) => format!("mate {moves}"),
    };
    let nps = (*nodes as f64 / elapsed.as_secs_f64().max(1e-6)) as u64;
    let time = elapsed.as_millis();
    let pv: String = line.iter().map(|mv| format!(" {}", move_text(*mv, chess960))).collect();
    let pv = if pv.is_empty() { pv } else { format!(" pv{pv}") };
    format!(
        "info depth {depth} seldepth {seldepth} score {score} nodes {nodes} nps {nps} hashfull {hashfull} time \
         {time}{pv}"
    )
}
