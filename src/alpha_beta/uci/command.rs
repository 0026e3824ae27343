//! UCI commands: parsing of lines into [`UciInput`].

use std::str::SplitWhitespace;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use shakmaty::{Chess, Color, Move, Position};

use super::{GenfensRequest, UciOptions};
use crate::alpha_beta::{BENCH_DEPTH, Clock, Game, Limits};
use crate::chess::parse_fen;

/// A line from the GUI.
pub(super) enum UciInput {
    Quit,
    Stop,
    PonderHit,
    /// A command for the search thread.
    Command(UciCommand),
    /// An empty line, or a command without effect.
    Nothing,
}

/// A command that the search thread executes, in the order of arrival.
pub(super) enum UciCommand {
    Uci,
    IsReady,
    NewGame,
    /// The text after `position`.
    Position(String),
    Go(Box<GoCommand>),
    SetOption {
        name: String,
        value: String,
    },
    /// A bench to this depth.
    Bench(u32),
    Genfens(GenfensRequest),
    Eval,
    Display,
}

impl UciInput {
    /// Parses a line; the error is a message for the user.
    pub(super) fn parse(line: &str) -> Result<UciInput, String> {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { return Ok(UciInput::Nothing) };
        let rest = line.trim()[name.len()..].trim();
        let command = match name {
            "quit" => return Ok(UciInput::Quit),
            "stop" => return Ok(UciInput::Stop),
            "ponderhit" => return Ok(UciInput::PonderHit),
            "debug" | "register" => return Ok(UciInput::Nothing),
            "isready" => UciCommand::IsReady,
            "uci" => UciCommand::Uci,
            "ucinewgame" => UciCommand::NewGame,
            "position" => UciCommand::Position(rest.into()),
            "go" => UciCommand::Go(Box::new(GoCommand::parse(words))),
            "setoption" => parse_option(rest)?,
            "bench" => match words.next().map_or(Ok(BENCH_DEPTH), str::parse) {
                Ok(depth) if (1..=30).contains(&depth) => UciCommand::Bench(depth),
                _ => return Err("bench takes a depth from 1 to 30".into()),
            },
            "genfens" => UciCommand::Genfens(GenfensRequest::parse(words)?),
            "eval" => UciCommand::Eval,
            "d" => UciCommand::Display,
            _ => return Err(format!("unknown command \"{line}\"")),
        };
        Ok(UciInput::Command(command))
    }
}

/// Parses the text after `setoption`.
fn parse_option(text: &str) -> Result<UciCommand, String> {
    let Some(text) = text.strip_prefix("name ").map(str::trim) else {
        return Err("setoption name NAME value VALUE is expected".into());
    };
    let text = text.strip_suffix(" value").unwrap_or(text);
    let (name, value) = text.split_once(" value ").map_or((text, ""), |(name, value)| (name.trim(), value.trim()));
    Ok(UciCommand::SetOption { name: name.into(), value: value.into() })
}

/// Parses `startpos` or `fen FEN`, then `moves …`.
pub(super) fn parse_position(text: &str) -> Result<Game, String> {
    let (start, moves) = text.split_once("moves").unwrap_or((text, ""));
    let position = match start.trim().split_once(char::is_whitespace) {
        None if start.trim() == "startpos" => Chess::default(),
        Some(("fen", fen)) => parse_fen(fen).map_err(|error| format!("position fen: {error}"))?,
        _ => return Err("position startpos or position fen FEN is expected, then moves".into()),
    };
    let mut game = Game::new(position);
    game.play_uci(moves.split_whitespace()).map_err(|error| format!("position: {error}"))?;
    Ok(game)
}

/// The words of `go` that are neither numbers nor moves.
const GO_WORDS: [&str; 12] = [
    "infinite",
    "ponder",
    "searchmoves",
    "depth",
    "nodes",
    "mate",
    "movetime",
    "wtime",
    "btime",
    "winc",
    "binc",
    "movestogo",
];

/// The command `go` with its arguments.
#[derive(Clone, Debug)]
pub(super) struct GoCommand {
    /// When the command was read.
    pub(super) start: Instant,
    /// Stops this search only: a `stop` does not end searches requested after it. Nothing is passed on by this flag or
    /// the next: their accesses are relaxed.
    pub(super) stop: Arc<AtomicBool>,
    /// Set when the opponent has played the expected move of a ponder search.
    pub(super) ponder_hit: Arc<AtomicBool>,
    /// Whether `bestmove` waits for `stop`.
    pub(super) infinite: bool,
    pub(super) ponder: bool,
    depth: Option<u32>,
    nodes: Option<u64>,
    mate: Option<u32>,
    move_time: Option<Duration>,
    /// White's and Black's remaining time.
    remaining: [Option<Duration>; 2],
    increment: [Duration; 2],
    moves_to_go: Option<u32>,
    search_moves: Vec<String>,
    /// Messages about words that are not known and are ignored, as the protocol demands.
    pub(super) warnings: Vec<String>,
    /// Why the command cannot be executed. It is answered nonetheless.
    error: Option<String>,
}

impl GoCommand {
    fn new() -> GoCommand {
        GoCommand {
            start: Instant::now(),
            stop: Arc::default(),
            ponder_hit: Arc::default(),
            infinite: false,
            ponder: false,
            depth: None,
            nodes: None,
            mate: None,
            move_time: None,
            remaining: [None; 2],
            increment: [Duration::ZERO; 2],
            moves_to_go: None,
            search_moves: Vec::new(),
            warnings: Vec::new(),
            error: None,
        }
    }

    fn parse(words: SplitWhitespace<'_>) -> GoCommand {
        let mut go = GoCommand::new();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            match word {
                "infinite" => go.infinite = true,
                "ponder" => go.ponder = true,
                // A word that is no move is one of the moves that are not legal.
                "searchmoves" => {
                    while let Some(mv) = words.next_if(|word| !GO_WORDS.contains(word)) {
                        go.search_moves.push(mv.into());
                    }
                }
                "depth" | "nodes" | "mate" | "movetime" | "wtime" | "btime" | "winc" | "binc" | "movestogo" => {
                    let number = words.next().unwrap_or_default();
                    match number.parse() {
                        Ok(value) => go.set(word, value),
                        Err(_) => go.error = Some(format!("go {word} takes a number, not \"{number}\"")),
                    }
                }
                _ => go.warnings.push(format!("go does not know \"{word}\" and ignores it")),
            }
        }
        go
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
            // Some GUIs send 0 for the rest of the game.
            _ => self.moves_to_go = (value > 0).then_some(count),
        }
    }

    /// Depth of a search for nothing but a mate in `moves`: a mate is found a few plies beyond its length at the
    /// latest, or not at all, since forward pruning hides it.
    const fn mate_depth(moves: u32) -> u32 {
        const BEYOND: u32 = 10;
        moves.saturating_mul(2).saturating_add(BEYOND)
    }

    /// Whether the search ends by itself, without a clock.
    pub(super) const fn has_other_limit(&self) -> bool {
        self.depth.is_some() || self.nodes.is_some() || self.mate.is_some()
    }

    /// The time limits of a search by `turn` that starts at `start`.
    pub(super) fn clock(&self, turn: Color, start: Instant, overhead: Duration) -> Option<Clock> {
        if let Some(time) = self.move_time {
            return Some(Clock::fixed(start, time, overhead));
        }
        let side = usize::from(turn.is_black());
        let remaining = self.remaining[side]?;
        Some(Clock::share(start, remaining, self.increment[side], self.moves_to_go, overhead))
    }

    /// The limits of the search in a game, with a message for each search move that is left out. The clock does not run
    /// in infinite and ponder searches.
    pub(super) fn limits(&self, game: &Game, options: &UciOptions) -> Result<(Limits, Vec<String>), String> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let (search_moves, messages) = self.search_moves(game);
        let clock = self.clock(game.position().turn(), self.start, options.move_overhead);
        let is_mate_only = !self.infinite && self.nodes.is_none() && clock.is_none();
        let mate_depth = self.mate.filter(|_| is_mate_only).map(GoCommand::mate_depth);
        let by_nodes = match self.nodes {
            Some(nodes) if options.soft_nodes => Limits::of_soft_nodes(nodes),
            nodes => Limits { nodes, ..Limits::default() },
        };
        let limits = Limits {
            depth: self.depth.or(mate_depth),
            clock: clock.filter(|_| !self.infinite && !self.ponder),
            mate: self.mate,
            search_moves,
            ..by_nodes
        };
        Ok((limits, messages))
    }

    /// The legal ones of the search moves, and a message for each other. None of them legal: all moves are searched.
    fn search_moves(&self, game: &Game) -> (Vec<Move>, Vec<String>) {
        let mut legal = Vec::new();
        let mut messages = Vec::new();
        for text in &self.search_moves {
            match game.parse_uci(text) {
                Some(mv) => legal.push(mv),
                None => messages.push(format!("go searchmoves {text}: not a legal move here")),
            }
        }
        if legal.is_empty() && !messages.is_empty() {
            messages.push("go searchmoves: no legal move is left; searching all moves".into());
        }
        (legal, messages)
    }
}
