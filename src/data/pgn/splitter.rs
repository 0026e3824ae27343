//! Cuts PGN text into the texts of single games without parsing them: a game begins at a tag line (`[Name "value"]`)
//! after a line that is not a tag. A malformed game therefore never swallows the next one, games can be parsed in
//! parallel, and each has a byte offset.

use std::io;
use std::ops::Range;

use super::tokenizer::{self, BOM};
use crate::data::input::Input;

/// Consecutive texts of games: tags and movetext, or whatever stands in their place.
#[derive(Default)]
pub struct GameTexts {
    /// Offset of the first byte in the decompressed text.
    offset: u64,
    bytes: Vec<u8>,
    games: Vec<Range<usize>>,
}

impl GameTexts {
    pub const fn is_empty(&self) -> bool {
        self.games.is_empty()
    }

    pub fn len(&self) -> usize {
        self.games.len()
    }

    pub fn text(&self, game: usize) -> GameText<'_> {
        let range = self.games[game].clone();
        let rest = &self.bytes[range.start..];
        GameText { rest, length: range.len(), offset: self.offset + range.start as u64 }
    }
}

/// The text of one game.
#[derive(Copy, Clone)]
pub struct GameText<'a> {
    /// The text and all texts of the batch after it, which one pgn-reader can read in a row.
    pub rest: &'a [u8],
    pub length: usize,
    /// Offset of the first byte in the decompressed text.
    pub offset: u64,
}

impl<'a> GameText<'a> {
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        &self.rest[..self.length]
    }
}

/// Longer texts are cut, so that garbage without an end does not fill the memory. No game is that long.
const MAX_TEXT_BYTES: usize = 16 << 20;

pub struct Splitter {
    input: Input,
    /// Bytes cut at once: large enough to keep the cores busy, small enough for the memory.
    batch_bytes: usize,
    /// Read but not yet returned.
    pending: Vec<u8>,
    /// The allocation of texts no longer needed, for reuse.
    spare: Vec<u8>,
    /// Bytes returned so far.
    offset: u64,
    /// Whether the input has ended or failed.
    ended: bool,
    failure: Option<io::Error>,
}

impl Splitter {
    pub fn new(input: Input) -> Splitter {
        Splitter::with_batch(input, 1 << 20)
    }

    pub fn with_batch(input: Input, batch_bytes: usize) -> Splitter {
        Splitter { input, batch_bytes, pending: Vec::new(), spare: Vec::new(), offset: 0, ended: false, failure: None }
    }

    /// Bytes of the decompressed text read so far.
    pub fn bytes_read(&self) -> u64 {
        self.offset + self.pending.len() as u64
    }

    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Takes back the allocation of texts that were parsed.
    pub fn recycle(&mut self, texts: GameTexts) {
        self.spare = texts.bytes;
    }

    /// The error with which the input ended, once all texts before it were returned. The unfinished text is dropped.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take().inspect(|_| {
            self.offset += self.pending.len() as u64;
            self.pending.clear();
        })
    }

    /// The next texts; empty at the end.
    pub fn next_texts(&mut self) -> GameTexts {
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        bytes.append(&mut self.pending);
        let mut wanted = self.batch_bytes;
        loop {
            self.fill(&mut bytes, wanted);
            let mut games = split_games(&bytes, self.ended);
            if self.ended && self.failure.is_none() {
                return self.texts(bytes, games);
            }
            // The last game may continue in the bytes that follow.
            let last = games.pop();
            if !games.is_empty() || self.ended {
                self.pending.extend_from_slice(&bytes[last.map_or(bytes.len(), |last| last.start)..]);
                bytes.truncate(bytes.len() - self.pending.len());
                return self.texts(bytes, games);
            }
            if bytes.len() >= MAX_TEXT_BYTES {
                games.extend(last);
                return self.texts(bytes, games);
            }
            wanted = (bytes.len() * 2).min(MAX_TEXT_BYTES);
        }
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, wanted: usize) {
        while bytes.len() < wanted && !self.ended {
            let known = bytes.len();
            match self.input.read(wanted - bytes.len(), bytes) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
            end_lines_with_line_feeds(bytes, known, self.ended);
        }
    }

    fn texts(&mut self, bytes: Vec<u8>, games: Vec<Range<usize>>) -> GameTexts {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        GameTexts { offset, bytes, games }
    }
}

/// Replaces carriage returns that end a line without a line feed; the bytes before `known` were done before, except for
/// carriage returns at their end.
fn end_lines_with_line_feeds(bytes: &mut [u8], known: usize, ended: bool) {
    let mut at = known - bytes[..known].iter().rev().take_while(|byte| **byte == b'\r').count();
    while let Some(length) = memchr::memchr(b'\r', &bytes[at..]) {
        let first = at + length;
        at = first + bytes[first..].iter().take_while(|byte| **byte == b'\r').count();
        match bytes.get(at) {
            Some(b'\n') => {}
            None if !ended => {}
            _ => bytes[first..at].fill(b'\n'),
        }
    }
}

/// The ranges of the games in a text; together they cover it. `ended`: no text follows.
fn split_games(bytes: &[u8], ended: bool) -> Vec<Range<usize>> {
    let mut games = Vec::new();
    let mut start = 0;
    let mut in_movetext = false;
    // Whether the last line ends within a comment, or was empty; the first of the lines before it that look like tags.
    let mut in_comment = false;
    let mut after_empty = true;
    let mut tags_start = None;
    let mut line_start = 0;
    while line_start < bytes.len() {
        let line_end =
            memchr::memchr(b'\n', &bytes[line_start..]).map_or(bytes.len(), |length| line_start + length + 1);
        let line = &bytes[line_start..line_end];
        if in_movetext && looks_like_tag(line) {
            // A malformed tag may come first, after an empty line.
            let first = *tags_start.get_or_insert(line_start);
            if tokenizer::tag_pair(trim(line)).is_some() && !(in_comment && comment_ends(&bytes[line_start..], ended)) {
                games.push(start..first);
                start = first;
                in_movetext = false;
                in_comment = false;
            } else if !after_empty {
                tags_start = None;
            }
        } else {
            tags_start = None;
        }
        in_movetext = in_movetext || has_movetext(line);
        if in_movetext {
            in_comment = match memchr::memrchr2(b'{', b'}', line) {
                Some(brace) => line[brace] == b'{',
                None => in_comment,
            };
        }
        after_empty = trim(line).is_empty() || after_empty && tags_start.is_some();
        line_start = line_end;
    }
    if start < bytes.len() {
        games.push(start..bytes.len());
    }
    games
}

/// Longer comments with lines that are tags are not expected.
const MAX_COMMENT_BYTES: usize = 64 << 10;

/// Whether an open comment ends in the text rather than being left open: another comment would begin first. Where the
/// text ends too early to tell, it does until more is read.
fn comment_ends(text: &[u8], ended: bool) -> bool {
    let near = &text[..text.len().min(MAX_COMMENT_BYTES)];
    match memchr::memchr2(b'{', b'}', near) {
        Some(brace) => near[brace] == b'}',
        None => near.len() < MAX_COMMENT_BYTES && !ended,
    }
}

/// Whether a line begins with `[` and a letter, as tags do, well-formed or not; a line may also begin with a comment
/// such as `[%eval 0.3]`.
fn looks_like_tag(line: &[u8]) -> bool {
    matches!(trim(line), [b'[', c, ..] if c.is_ascii_alphabetic() || !c.is_ascii())
}

/// Whether a line holds anything but tags, well-formed or not.
fn has_movetext(line: &[u8]) -> bool {
    let mut rest = trim(line);
    while let Some(tag) = tokenizer::tag_pair(rest) {
        rest = trim(&rest[tag.end..]);
    }
    !(rest.is_empty() || looks_like_tag(rest) || line.starts_with(b"%"))
}

fn trim(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_prefix(BOM).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(u64, &str)]) {
        for batch in [1, 5, 20, 1000] {
            let mut splitter = Splitter::with_batch(Input::from_bytes(text.as_bytes().to_vec()), batch);
            let mut games = Vec::new();
            loop {
                let texts = splitter.next_texts();
                if texts.is_empty() {
                    break;
                }
                for game in 0..texts.len() {
                    let text = texts.text(game);
                    games.push((text.offset, String::from_utf8(text.bytes().to_vec()).unwrap()));
                }
            }
            let games: Vec<_> = games.iter().map(|(offset, text)| (*offset, text.as_str())).collect();
            assert_eq!(games, expected, "{batch} bytes at once");
        }
    }

    #[test]
    fn games_begin_at_tags_after_movetext() {
        check("", &[]);
        check("1. e4 *\n", &[(0, "1. e4 *\n")]);
        check("[A \"1\"]\n\n[B \"2\"]\n1. e4 *\n", &[(0, "[A \"1\"]\n\n[B \"2\"]\n1. e4 *\n")]);
        check(
            "[A \"1\"]\n1. e4 {\n[%eval 1]} *\n[A \"2\"]\n*",
            &[(0, "[A \"1\"]\n1. e4 {\n[%eval 1]} *\n"), (29, "[A \"2\"]\n*")],
        );
        check("[A \"1\"] 1. e4 *\n[A \"2\"]\n*", &[(0, "[A \"1\"] 1. e4 *\n"), (16, "[A \"2\"]\n*")]);
        check("% x\n[A \"1\"]\n%\n[B \"2\"]\n*", &[(0, "% x\n[A \"1\"]\n%\n[B \"2\"]\n*")]);
        check("[A \"1\"]\n[B bad\n[C \"3\"]\n*", &[(0, "[A \"1\"]\n[B bad\n[C \"3\"]\n*")]);
        check("[A \"1\"]\n\n{ open\n\n[A \"2\"]\n\n*\n", &[(0, "[A \"1\"]\n\n{ open\n\n"), (17, "[A \"2\"]\n\n*\n")]);
    }
}
