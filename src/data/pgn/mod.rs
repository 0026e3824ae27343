//! Games in PGN. [`games`](games()) reads a file's games whole; a [`Scribe`] takes what it wants of them while they are
//! read. Stricter than pgn-reader, which does the reading: a token that is no move, number, comment or result makes the
//! game broken instead of being passed over, since what follows it can no longer be trusted.

mod eval;
mod follower;
mod games;
mod outline;
mod player;
mod san;
mod splitter;
mod tags;

use std::fmt;

use outline::{Mark, Outliner};
use pgn_reader::Reader;
use serde::{Deserialize, Serialize};

use crate::text::excerpt;

pub use eval::Eval;
pub use games::{Game, Games, PlayedMove, Reading, Skipped, first_ply, games};
pub use player::Scribe;
pub use tags::{Head, Speed};

/// Why a game was passed over.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// Chess960 or another variant.
    Variant,
    /// The `FEN` tag holds no legal standard position.
    StartPosition,
    /// A line that begins like a tag and is none.
    MalformedTag,
    /// Something that is no move, number, comment or result.
    Garbage,
    IllegalMove,
    MalformedEval,
    /// The text ends before the game's result.
    Unfinished,
}

/// A game that was passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedGame {
    pub reason: SkipReason,
    /// Where the game begins and where the trouble is, in bytes of the decompressed file.
    pub game_offset: u64,
    pub offset: u64,
    /// The offending text, shortened.
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
            SkipReason::MalformedEval => "malformed eval",
            SkipReason::Unfinished => "text ends before the result",
        })
    }
}

impl fmt::Display for SkippedGame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "game at byte {}: {} at byte {}", self.game_offset, self.reason, self.offset)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " ({:?})", self.text) }
    }
}

/// Reads the games in a text, one text after another.
#[derive(Default)]
pub struct Parser {
    /// Memory of the last outline.
    marks: Vec<Mark>,
    /// Games that had to be read thoroughly, one after the other.
    thorough: u32,
}

/// After so many games in a row that had to be read thoroughly, so many more are read so at once.
const OFTEN: u32 = 8;

impl Parser {
    /// The games in one text: usually one; more where games without tags follow each other. The text is the beginning
    /// of `rest`, which `reader` is left in for the text after it, where that can be.
    pub fn parse<'a, S: Scribe>(
        &mut self,
        scribe: &S,
        rest: &'a [u8],
        length: usize,
        offset: u64,
        reader: &mut Option<Reader<&'a [u8]>>,
        out: &mut Vec<Result<S::Kept, SkippedGame>>,
    ) {
        let text = &rest[..length];
        if self.thorough < OFTEN {
            let followed = follower::follow(scribe, text, offset, reader.get_or_insert_with(|| Reader::new(rest)));
            if let Some(game) = followed {
                self.thorough = 0;
                return out.push(Ok(game));
            }
            self.thorough += 1;
        } else {
            self.thorough = (self.thorough + 1) % (4 * OFTEN);
        }
        *reader = None;
        self.parse_thoroughly(scribe, text, offset, out);
    }

    fn parse_thoroughly<S: Scribe>(
        &mut self,
        scribe: &S,
        text: &[u8],
        offset: u64,
        out: &mut Vec<Result<S::Kept, SkippedGame>>,
    ) {
        let mut outliner = Outliner::new(text);
        let mut next = outliner.next_text(0);
        while let Some(start) = next {
            let outline = outliner.outline(start, std::mem::take(&mut self.marks));
            let game = player::read(scribe, text, offset, &outline);
            next = match &game {
                Ok(_) => outliner.next_text(outline.end),
                // What follows its tags belongs to it.
                Err(_) if text[start] == b'[' => None,
                Err(_) => outliner.next_game(&outline),
            };
            out.push(game.map_err(|trouble| SkippedGame {
                reason: trouble.reason,
                game_offset: offset + start as u64,
                offset: offset + trouble.at as u64,
                text: first_word(&text[trouble.at..]),
            }));
            self.marks = outline.marks;
        }
    }
}

/// The word that a text begins with, or its first 24 bytes.
fn first_word(text: &[u8]) -> String {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    excerpt(&text[..end], 24)
}

#[cfg(test)]
mod tests;
