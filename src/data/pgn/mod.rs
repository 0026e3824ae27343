//! PGN games. [`games`](games()) reads whole games from a file; a [`GameVisitor`] is called while games are read and
//! keeps only the parts that it needs. A token that is neither a move, a number, a comment nor a result makes a game
//! malformed, because the moves after it cannot be trusted; a comment never does. A game whose `Result` tag
//! contradicts its end is skipped, too.
//!
//! `splitter` cuts a file into texts of single games. `fast_reader` reads the usual ones through pgn-reader;
//! `token_reader` reads all others, which pgn-reader refuses or reads only in part, and locates errors. Both hand the
//! parts of a game to `open_game`, so that tags, scores and results mean the same in both.

mod comment_score;
mod eval;
mod eval_options;
mod fast_reader;
mod games;
mod notation;
mod notes;
mod open_game;
mod san;
mod splitter;
mod tags;
mod token_reader;
mod tokenizer;
#[cfg(feature = "report")]
mod writer;

use std::fmt;
use std::ops::ControlFlow;

use eval_options::EvalRules;
use open_game::ReadGame;
use pgn_reader::Reader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move};
use splitter::GameText;
use tokenizer::Tokenizer;

use crate::data::GameResult;
use crate::text::excerpt;

pub use eval::Eval;
pub use eval_options::{EvalOptions, EvalUnit, EvalView, WholeNumbers};
pub use games::{GameReader, Games, PgnGame, PlayedMove, SkippedGames, first_ply, games};
pub use notes::PgnNotes;
pub use tags::{GameHeader, Speed};
#[cfg(feature = "report")]
pub use writer::PgnWriter;

/// Receives the moves and evaluations of games while they are read.
pub trait GameVisitor: Sync {
    /// The state of the game being read.
    type State;
    /// The result of a finished game.
    type Output: Send;

    /// Called when the tags are read; the whole game has at most `length` bytes. `Break` ends the game here: its moves
    /// are neither read nor checked.
    fn begin_game(&self, header: &GameHeader, length: usize) -> ControlFlow<Self::Output, Self::State>;
    /// Called with each legal move and the position before it.
    fn visit_move(&self, state: &mut Self::State, before: &Chess, mv: Move);
    /// Called with the evaluation of the position after the last move, or of the start position before the first move,
    /// from White's point of view.
    fn visit_eval(&self, state: &mut Self::State, eval: Eval);
    /// Called with the evaluation of the position before the last move, by the engine that played it and from its point
    /// of view.
    fn visit_search_eval(&self, _state: &mut Self::State, _eval: Eval) {}
    /// Called at the end with White's result; `None` where neither a tag nor the end of the moves gives it.
    fn end_game(&self, state: Self::State, header: GameHeader, result: Option<GameResult>) -> Self::Output;
}

/// Why a game was skipped.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// A variant other than Chess960, or Chess960 without a start position.
    Variant,
    /// The `FEN` tag holds no legal position.
    StartPosition,
    /// A line that begins like a tag but is not one, where the game cannot be read without it.
    MalformedTag,
    /// A token that is neither a move, a number, a comment nor a result.
    Garbage,
    IllegalMove,
    /// The text ends before the game's result.
    Unfinished,
    /// The `Result` tag and the end of the moves give different results.
    ContradictoryResult,
}

/// A game that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedGame {
    pub reason: SkipReason,
    /// Where the game begins and where the error is, in bytes of the decompressed file.
    pub game_offset: u64,
    /// Byte of the file at which the game begins.
    pub offset: u64,
    /// The text at the error, shortened.
    pub text: String,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SkipReason::Variant => "variant",
            SkipReason::StartPosition => "start position not legal",
            SkipReason::MalformedTag => "malformed tag",
            SkipReason::Garbage => "garbage",
            SkipReason::IllegalMove => "illegal move",
            SkipReason::Unfinished => "text ends before the result",
            SkipReason::ContradictoryResult => "result contradicts the Result tag",
        })
    }
}

impl fmt::Display for SkippedGame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "game at byte {}: {} at byte {}", self.game_offset, self.reason, self.offset)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " ({:?})", self.text) }
    }
}

/// Reads texts one after another, each with one or more games.
pub struct PgnParser {
    rules: EvalRules,
    /// Consecutive games that the fast reader could not read.
    fast_failures: u32,
}

/// The games of one text or of several.
pub struct ParsedGames<O> {
    pub games: Vec<Result<O, SkippedGame>>,
    pub notes: PgnNotes,
}

/// After this many failures in a row the fast reader is not tried for three times as many games.
const MAX_FAST_FAILURES: u32 = 8;

impl<O> ParsedGames<O> {
    pub fn with_capacity(games: usize) -> Self {
        ParsedGames { games: Vec::with_capacity(games), notes: PgnNotes::default() }
    }

    fn add(&mut self, game: ReadGame<O>) {
        self.games.push(Ok(game.output));
        self.notes.add(game.notes);
    }
}

impl PgnParser {
    pub const fn new(rules: EvalRules) -> PgnParser {
        PgnParser { rules, fast_failures: 0 }
    }

    /// Appends the games of one text: usually one, more where games without tags follow each other. `reader` is at the
    /// start of the text or `None`; afterwards it is at the start of the next text or `None`.
    pub fn parse<'a, V: GameVisitor>(
        &mut self,
        visitor: &V,
        text: GameText<'a>,
        reader: &mut Option<Reader<&'a [u8]>>,
        out: &mut ParsedGames<V::Output>,
    ) {
        if self.fast_failures < MAX_FAST_FAILURES {
            let reader = reader.get_or_insert_with(|| Reader::new(text.rest));
            if let Some(game) = fast_reader::read(visitor, self.rules, text, reader) {
                self.fast_failures = 0;
                return out.add(game);
            }
            self.fast_failures += 1;
        } else {
            self.fast_failures = (self.fast_failures + 1) % (4 * MAX_FAST_FAILURES);
        }
        *reader = None;
        self.parse_tokens(visitor, text.bytes(), text.offset, out);
    }

    fn parse_tokens<V: GameVisitor>(&self, visitor: &V, text: &[u8], offset: u64, out: &mut ParsedGames<V::Output>) {
        let mut tokenizer = Tokenizer::new(text);
        let mut next = tokenizer.skip_blank(0);
        while let Some(start) = next {
            tokenizer.begin_game(start);
            let game = token_reader::read(visitor, self.rules, &mut tokenizer, offset);
            next = match &game {
                Ok(_) if !tokenizer.failed() => tokenizer.after_game(),
                // The game was read to its end.
                Err(error) if error.reason == SkipReason::ContradictoryResult => tokenizer.after_game(),
                // All text after a game's tags belongs to that game.
                _ if text[start] == b'[' => None,
                _ => tokenizer.next_game(),
            };
            match game {
                Ok(game) => out.add(game),
                Err(error) => out.games.push(Err(SkippedGame {
                    reason: error.reason,
                    game_offset: offset + start as u64,
                    offset: offset + error.offset as u64,
                    text: first_word(&text[error.offset..]),
                })),
            }
        }
    }
}

/// The first word of a text, at most 24 bytes of it.
fn first_word(text: &[u8]) -> String {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    excerpt(&text[..end], 24)
}

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;
