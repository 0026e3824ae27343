//! The search as a UCI engine.
//!
//! One thread reads commands, one searches; both write whole lines. Commands that a search must not delay (stop,
//! ponderhit, isready while searching, quit) are answered by the reader, the rest in order by the searcher. Whatever is
//! wrong with a command is said in an `info string` line; nothing but `quit` and the end of the input ends the engine.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::str::SplitWhitespace;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, Move, Position};

use super::{BENCH_DEPTH, Clock, Game, Iteration, Limits, Score, SearchResult, Searcher, TranspositionTable, bench};
use crate::engine::{BackEnd, Model};
use crate::features::FeatureSet;

/// A network ready to play.
pub struct PlayingNetwork {
    pub set: FeatureSet,
    pub model: Model,
}

/// Reads a network file; the error is what the user is told.
pub type LoadNetwork<'a> = dyn Fn(&Path) -> Result<PlayingNetwork, String> + Sync + 'a;

/// Longest time between a move sent and its arrival that is planned for, unless the option says otherwise.
const MOVE_OVERHEAD: Duration = Duration::from_millis(10);

/// Plays by UCI until `quit` or the end of the input. `network`: the file to begin with; the option EvalFile names
/// another.
///
/// # Errors
/// When the input cannot be read. Output that cannot be written ends the engine.
pub fn uci(
    input: impl BufRead,
    output: impl Write + Send,
    load: &LoadNetwork<'_>,
    network: Option<PathBuf>,
) -> io::Result<()> {
    let shared = Shared::new(output);
    let (commands, queue) = channel();
    std::thread::scope(|scope| {
        let worker =
            Worker { shared: &shared, load, network, game: Game::new(Chess::default()), options: Options::new() };
        scope.spawn(move || worker.run(&queue));
        let mut reader = Reader { shared: &shared, commands, searches: Vec::new(), planned: None };
        let outcome = reader.run(input);
        reader.stop();
        shared.quit.store(true, Ordering::Relaxed);
        outcome
    })
}

/// What both threads see.
struct Shared<W> {
    output: Mutex<W>,
    /// The engine is to end, and a bench with it.
    quit: Arc<AtomicBool>,
    /// Searches asked for and not answered yet.
    searching: AtomicU64,
    /// The output is gone.
    closed: AtomicBool,
}

impl<W: Write> Shared<W> {
    fn new(output: W) -> Shared<W> {
        Shared {
            output: Mutex::new(output),
            quit: Arc::default(),
            searching: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn say(&self, line: &str) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
            self.closed.store(true, Ordering::Relaxed);
            self.quit.store(true, Ordering::Relaxed);
        }
    }

    fn error(&self, what: &str) {
        self.say(&format!("info string error: {}", what.replace('\n', " ")));
    }
}

/// What the searcher is asked, in order.
enum Command {
    Uci,
    IsReady,
    NewGame,
    Position(String),
    /// A search, and the flag that ends it.
    Go(GoCommand, Arc<AtomicBool>),
    SetOption {
        name: String,
        value: String,
    },
    Bench(u32),
    Eval,
    Display,
}

/// `go` with its numbers.
#[derive(Clone, Debug, Default)]
struct GoCommand {
    depth: Option<u32>,
    nodes: Option<u64>,
    mate: Option<u32>,
    move_time: Option<Duration>,
    remaining: [Option<Duration>; 2],
    increment: [Duration; 2],
    moves_to_go: Option<u32>,
    search_moves: Vec<String>,
    /// No answer before `stop`.
    infinite: bool,
    ponder: bool,
    /// When the command was read.
    start: Option<Instant>,
}

/// The thread that reads.
struct Reader<'s, W> {
    shared: &'s Shared<W>,
    commands: Sender<Command>,
    /// The flags of the searches asked for. Each has its own: a stop never meets a search that was asked for later.
    searches: Vec<Arc<AtomicBool>>,
    /// What the last search, which ponders, may take once the opponent has played the move expected.
    planned: Option<GoCommand>,
}

impl<W: Write + Send> Reader<'_, W> {
    fn run(&mut self, input: impl BufRead) -> io::Result<()> {
        for line in input.split(b'\n') {
            let line = line?;
            if !self.obey(String::from_utf8_lossy(&line).trim()) || self.shared.closed.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Whether to go on.
    fn obey(&mut self, line: &str) -> bool {
        let mut words = line.split_whitespace();
        let Some(verb) = words.next() else { return true };
        let rest = line[verb.len()..].trim();
        match verb {
            "quit" => return false,
            "stop" => self.stop(),
            "ponderhit" => self.ponder_hit(),
            "isready" if self.shared.searching.load(Ordering::Acquire) > 0 => self.shared.say("readyok"),
            "isready" => self.send(Command::IsReady),
            "uci" => self.send(Command::Uci),
            "ucinewgame" => self.send(Command::NewGame),
            "position" => self.send(Command::Position(rest.into())),
            "go" => self.go(words),
            "setoption" => self.set_option(rest),
            "bench" => match words.next().map_or(Ok(BENCH_DEPTH), str::parse) {
                Ok(depth) if (1..=30).contains(&depth) => self.send(Command::Bench(depth)),
                _ => self.shared.error("bench takes a depth from 1 to 30"),
            },
            "eval" => self.send(Command::Eval),
            "d" => self.send(Command::Display),
            "debug" | "register" => {}
            _ => self.shared.error(&format!("unknown command \"{line}\"")),
        }
        true
    }

    fn send(&self, command: Command) {
        // The searcher ends only after the reader.
        let _ = self.commands.send(command);
    }

    fn stop(&mut self) {
        self.searches.drain(..).for_each(|flag| flag.store(true, Ordering::Relaxed));
    }

    fn go(&mut self, words: SplitWhitespace<'_>) {
        match GoCommand::parse(words) {
            Ok(go) => {
                self.planned = go.ponder.then(|| go.clone());
                // A search that is done has dropped its flag.
                self.searches.retain(|flag| Arc::strong_count(flag) > 1);
                let stop = Arc::new(AtomicBool::new(false));
                self.searches.push(Arc::clone(&stop));
                self.shared.searching.fetch_add(1, Ordering::AcqRel);
                self.send(Command::Go(go, stop));
            }
            Err(problem) => self.shared.error(&problem),
        }
    }

    /// The opponent has played the move expected: the search that runs gets its time from now on.
    fn ponder_hit(&mut self) {
        let (Some(go), Some(stop)) = (self.planned.take(), self.searches.last().cloned()) else { return };
        // Either colour's clock: the searcher knows whose turn it is, the reader takes the shorter one.
        let now = Instant::now();
        let clocks = [Color::White, Color::Black].into_iter().filter_map(|turn| go.clock(turn, now, MOVE_OVERHEAD));
        let wait = clocks.map(|clock| clock.soft).min().unwrap_or_default();
        std::thread::spawn(move || {
            std::thread::sleep(wait);
            stop.store(true, Ordering::Relaxed);
        });
    }

    fn set_option(&self, rest: &str) {
        let named = rest.strip_prefix("name ").map(str::trim);
        let Some(named) = named else {
            return self.shared.error("setoption name NAME value VALUE is expected");
        };
        let (name, value) =
            named.split_once(" value ").map_or((named, ""), |(name, value)| (name.trim(), value.trim()));
        self.send(Command::SetOption { name: name.into(), value: value.into() });
    }
}

impl GoCommand {
    fn parse(mut words: SplitWhitespace<'_>) -> Result<GoCommand, String> {
        let mut go = GoCommand { start: Some(Instant::now()), ..GoCommand::default() };
        let mut next = words.next();
        while let Some(word) = next {
            next = None;
            match word {
                "infinite" => go.infinite = true,
                "ponder" => go.ponder = true,
                "searchmoves" => {
                    for mv in words.by_ref() {
                        if mv.parse::<shakmaty::uci::UciMove>().is_err() {
                            next = Some(mv);
                            break;
                        }
                        go.search_moves.push(mv.into());
                    }
                    if next.is_some() {
                        continue;
                    }
                }
                "depth" | "nodes" | "mate" | "movetime" | "wtime" | "btime" | "winc" | "binc" | "movestogo" => {
                    let number = words.next().unwrap_or_default();
                    let value: i64 =
                        number.parse().map_err(|_| format!("go {word} takes a number, not \"{number}\""))?;
                    go.set(word, value);
                }
                _ => return Err(format!("go does not know \"{word}\"")),
            }
            next = words.next();
        }
        Ok(go)
    }

    fn set(&mut self, word: &str, value: i64) {
        let millis = Duration::from_millis(value.max(0).unsigned_abs());
        let count = u32::try_from(value.max(1)).unwrap_or(u32::MAX);
        match word {
            "depth" => self.depth = Some(count),
            "nodes" => self.nodes = Some(value.max(1).unsigned_abs()),
            "mate" => self.mate = Some(count),
            "movetime" => self.move_time = Some(millis),
            "wtime" => self.remaining[0] = Some(millis),
            "btime" => self.remaining[1] = Some(millis),
            "winc" => self.increment[0] = millis,
            "binc" => self.increment[1] = millis,
            _ => self.moves_to_go = Some(count),
        }
    }

    fn clock(&self, turn: Color, start: Instant, overhead: Duration) -> Option<Clock> {
        if let Some(time) = self.move_time {
            return Some(Clock::fixed(start, time, overhead));
        }
        let side = usize::from(turn.is_black());
        let remaining = self.remaining[side]?;
        Some(Clock::share(start, remaining, self.increment[side], self.moves_to_go, overhead))
    }
}

/// Options that outlive a network.
struct Options {
    megabytes: usize,
    overhead: Duration,
    soft_nodes: bool,
}

impl Options {
    fn new() -> Options {
        Options { megabytes: TranspositionTable::DEFAULT_MEGABYTES, overhead: MOVE_OVERHEAD, soft_nodes: false }
    }
}

/// The thread that searches.
struct Worker<'s, W> {
    shared: &'s Shared<W>,
    load: &'s LoadNetwork<'s>,
    network: Option<PathBuf>,
    game: Game,
    options: Options,
}

impl<W: Write> Worker<'_, W> {
    fn run(mut self, queue: &Receiver<Command>) {
        // A searcher borrows its network: each turn of this loop plays with one.
        let mut next = self.network.take();
        loop {
            let loaded = next.take().and_then(|path| match (self.load)(&path) {
                Ok(network) => Some(network),
                Err(problem) => {
                    self.shared.error(&problem);
                    None
                }
            });
            next = match &loaded {
                None => self.serve(queue, None),
                Some(network) => {
                    let (set, model) = (&network.set, &network.model);
                    match Searcher::new(set, model, BackEnd::best(), self.options.megabytes) {
                        Ok(searcher) => self.serve(queue, Some(searcher)),
                        Err(problem) => {
                            self.shared.error(&problem.to_string());
                            self.serve(queue, None)
                        }
                    }
                }
            };
            if next.is_none() {
                return;
            }
        }
    }

    /// Obeys until another network is asked for, whose file is returned, or until the reader is gone.
    fn serve(&mut self, queue: &Receiver<Command>, mut searcher: Option<Searcher<'_>>) -> Option<PathBuf> {
        while let Ok(command) = queue.recv() {
            match command {
                Command::Uci => self.identify(),
                Command::IsReady => self.shared.say("readyok"),
                Command::NewGame => {
                    self.game = Game::new(Chess::default());
                    searcher.iter_mut().for_each(Searcher::clear);
                }
                Command::Position(text) => match parse_position(&text) {
                    Ok(game) => self.game = game,
                    Err(problem) => self.shared.error(&problem),
                },
                Command::Go(go, stop) => self.go(searcher.as_mut(), &go, &stop),
                Command::SetOption { name, value } => {
                    if name.eq_ignore_ascii_case("EvalFile") {
                        return Some(PathBuf::from(value));
                    }
                    self.set_option(searcher.as_mut(), &name, &value);
                }
                Command::Bench(depth) => self.with(searcher.as_mut(), |shared, searcher, _| {
                    searcher.stop_with(Arc::clone(&shared.quit));
                    let result = bench(searcher, depth);
                    shared.say(&format!("{} nodes {} nps", result.nodes, result.nps()));
                }),
                Command::Eval => self.with(searcher.as_mut(), |shared, searcher, game| {
                    let score = searcher.evaluate(game);
                    shared.say(&format!("info string eval {score} cp, side to move's view"));
                }),
                Command::Display => {
                    self.shared.say(&Fen::from_position(self.game.position(), EnPassantMode::Legal).to_string());
                }
            }
        }
        None
    }

    fn with(&self, searcher: Option<&mut Searcher<'_>>, work: impl FnOnce(&Shared<W>, &mut Searcher<'_>, &Game)) {
        match searcher {
            Some(searcher) => work(self.shared, searcher, &self.game),
            None => self.shared.error(NO_NETWORK),
        }
    }

    fn identify(&self) {
        let most = TranspositionTable::MOST_MEGABYTES;
        let megabytes = TranspositionTable::DEFAULT_MEGABYTES;
        for line in [
            &format!("id name fsbench {}", env!("CARGO_PKG_VERSION")),
            "id author the fsbench authors",
            &format!("option name Hash type spin default {megabytes} min 1 max {most}"),
            "option name Threads type spin default 1 min 1 max 1",
            "option name EvalFile type string default <empty>",
            &format!("option name Move Overhead type spin default {} min 0 max 5000", MOVE_OVERHEAD.as_millis()),
            "option name SoftNodes type check default false",
            "option name Ponder type check default false",
            "option name UCI_Chess960 type check default false",
            "uciok",
        ] {
            self.shared.say(line);
        }
    }

    fn set_option(&mut self, searcher: Option<&mut Searcher<'_>>, name: &str, value: &str) {
        let number = |least: u64, most: u64| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("option {name} takes a number from {least} to {most}, not \"{value}\""))
        };
        let outcome = match name.to_ascii_lowercase().as_str() {
            "hash" => number(1, TranspositionTable::MOST_MEGABYTES as u64).map(|megabytes| {
                self.options.megabytes = megabytes as usize;
                searcher.into_iter().for_each(|searcher| searcher.resize(megabytes as usize));
            }),
            "threads" => number(1, 1).map(|_| ()),
            "move overhead" => number(0, 5000).map(|millis| self.options.overhead = Duration::from_millis(millis)),
            "softnodes" => truth(name, value).map(|soft| self.options.soft_nodes = soft),
            "ponder" => truth(name, value).map(|_| ()),
            "uci_chess960" => truth(name, value).and_then(|wanted| match wanted {
                true => Err("Chess960 is not played".into()),
                false => Ok(()),
            }),
            _ => Err(format!("there is no option \"{name}\"")),
        };
        if let Err(problem) = outcome {
            self.shared.error(&problem);
        }
    }

    fn go(&self, searcher: Option<&mut Searcher<'_>>, go: &GoCommand, stop: &Arc<AtomicBool>) {
        let best = match searcher {
            None => {
                self.shared.error(NO_NETWORK);
                "(none)".into()
            }
            Some(searcher) => {
                searcher.stop_with(Arc::clone(stop));
                let best = self.search(searcher, go, stop);
                searcher.stop_with(Arc::default());
                best
            }
        };
        // GUIs do not expect an answer before they end an infinite search.
        while (go.infinite || go.ponder) && !stop.load(Ordering::Relaxed) && !self.shared.closed.load(Ordering::Relaxed)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.searching.fetch_sub(1, Ordering::AcqRel);
        self.shared.say(&format!("bestmove {best}"));
    }

    fn search(&self, searcher: &mut Searcher<'_>, go: &GoCommand, stop: &AtomicBool) -> String {
        let limits = match self.limits(go) {
            Ok(limits) => limits,
            Err(problem) => {
                self.shared.error(&problem);
                return "(none)".into();
            }
        };
        let start = go.start.unwrap_or_else(Instant::now);
        let result = searcher.search(&self.game, &limits, |iteration| {
            self.shared.say(&info(iteration, start.elapsed()));
            if self.shared.closed.load(Ordering::Relaxed) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        let SearchResult { best, ponder, .. } = result;
        let text = |mv: Move| mv.to_uci(CastlingMode::Standard).to_string();
        match (best, ponder) {
            (Some(best), Some(ponder)) => format!("{} ponder {}", text(best), text(ponder)),
            (Some(best), None) => text(best),
            (None, _) => "(none)".into(),
        }
    }

    fn limits(&self, go: &GoCommand) -> Result<Limits, String> {
        let position = self.game.position();
        let legal = |text: &String| {
            self.game.legal_uci(text).ok_or_else(|| format!("go searchmoves {text}: not a legal move here"))
        };
        let search_moves = go.search_moves.iter().map(legal).collect::<Result<Vec<Move>, String>>()?;
        let start = go.start.unwrap_or_else(Instant::now);
        let clock = go.clock(position.turn(), start, self.options.overhead).filter(|_| !go.infinite && !go.ponder);
        let soft = self.options.soft_nodes;
        Ok(Limits {
            depth: go.depth,
            nodes: go.nodes.filter(|_| !soft),
            soft_nodes: go.nodes.filter(|_| soft),
            clock,
            mate: go.mate,
            search_moves,
        })
    }
}

const NO_NETWORK: &str = "no network is loaded: set the option EvalFile to a network file";

fn truth(name: &str, value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("option {name} takes true or false, not \"{value}\""))
}

/// `startpos` or `fen FEN`, then `moves …`.
fn parse_position(text: &str) -> Result<Game, String> {
    let (place, moves) = text.split_once("moves").map_or((text, ""), |(place, moves)| (place, moves));
    let position = match place.trim().split_once(char::is_whitespace) {
        None if place.trim() == "startpos" => Chess::default(),
        Some(("fen", fen)) => {
            let setup = fen.trim().parse::<Fen>().map_err(|error| format!("position fen {}: {error}", fen.trim()))?;
            setup
                .into_position(CastlingMode::Standard)
                .map_err(|error| format!("position fen {}: {error}", fen.trim()))?
        }
        _ => return Err("position startpos or position fen FEN is expected, then moves".into()),
    };
    let mut game = Game::new(position);
    game.play_uci(moves.split_whitespace()).map_err(|error| format!("position: {error}"))?;
    Ok(game)
}

/// An iteration as UCI's info line.
fn info(iteration: &Iteration, elapsed: Duration) -> String {
    let Iteration { depth, seldepth, score, nodes, hashfull, line } = iteration;
    let score = match score {
        Score::Cp(value) => format!("cp {value}"),
        Score::Mate(moves) => format!("mate {moves}"),
    };
    let nps = (*nodes as f64 / elapsed.as_secs_f64().max(1e-6)) as u64;
    let line: Vec<String> = line.iter().map(|mv| mv.to_uci(CastlingMode::Standard).to_string()).collect();
    let (time, line) = (elapsed.as_millis(), line.join(" "));
    format!(
        "info depth {depth} seldepth {seldepth} score {score} nodes {nodes} nps {nps} hashfull {hashfull} time {time} pv {line}"
    )
}
