//! Cuts a stream of PGN text into the texts of single games, without understanding them: a game begins at a tag line
//! (`[Name …`) that follows a line which is none. So a broken game never swallows its successor, games can be parsed
//! in parallel, and every one has its byte offset.

use std::io;
use std::ops::Range;

use super::outline::{self, BOM};
use crate::data::input::Input;

/// The texts of some games (tags and movetext), or what stands where games should.
#[derive(Default)]
pub struct Texts {
    /// Of the first byte, in the decompressed text.
    offset: u64,
    bytes: Vec<u8>,
    games: Vec<Range<usize>>,
}

impl Texts {
    pub const fn is_empty(&self) -> bool {
        self.games.is_empty()
    }

    pub fn len(&self) -> usize {
        self.games.len()
    }

    /// Everything from a game's text on, the text's length and the offset of its first byte.
    pub fn from(&self, game: usize) -> (&[u8], usize, u64) {
        let range = self.games[game].clone();
        (&self.bytes[range.start..], range.len(), self.offset + range.start as u64)
    }
}

/// A text longer than this is cut: no game is, and garbage without an end must not fill the memory.
const LONGEST: usize = 16 << 20;

pub struct Splitter {
    input: Input,
    /// Text cut at once, as far as games are not longer: a compromise between memory and keeping the cores busy.
    batch: usize,
    /// Read, but not yet handed out.
    rest: Vec<u8>,
    /// Memory to use again.
    spare: Vec<u8>,
    /// Bytes handed out so far.
    offset: u64,
    /// Nothing more comes from the input.
    ended: bool,
    failure: Option<io::Error>,
}

impl Splitter {
    pub fn new(input: Input) -> Splitter {
        Splitter::with_batch(input, 1 << 20)
    }

    pub fn with_batch(input: Input, batch: usize) -> Splitter {
        Splitter { input, batch, rest: Vec::new(), spare: Vec::new(), offset: 0, ended: false, failure: None }
    }

    /// Bytes of the decompressed text read so far.
    pub fn bytes_read(&self) -> u64 {
        self.offset + self.rest.len() as u64
    }

    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Takes back texts that nobody needs any more.
    pub fn recycle(&mut self, texts: Texts) {
        self.spare = texts.bytes;
    }

    /// Why the input broke off, once its last texts were handed out. The unfinished one is dropped.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failure.take().inspect(|_| {
            self.offset += self.rest.len() as u64;
            self.rest.clear();
        })
    }

    /// The next games' texts, none at the end.
    pub fn next(&mut self) -> Texts {
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        bytes.append(&mut self.rest);
        let mut wanted = self.batch;
        loop {
            self.fill(&mut bytes, wanted);
            let mut games = cut(&bytes);
            if self.ended && self.failure.is_none() {
                return self.hand_out(bytes, games);
            }
            // The last game may go on.
            let last = games.pop();
            if !games.is_empty() || self.ended {
                self.rest.extend_from_slice(&bytes[last.map_or(bytes.len(), |last| last.start)..]);
                bytes.truncate(bytes.len() - self.rest.len());
                return self.hand_out(bytes, games);
            }
            if bytes.len() >= LONGEST {
                games.extend(last);
                return self.hand_out(bytes, games);
            }
            wanted = (bytes.len() * 2).min(LONGEST);
        }
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, wanted: usize) {
        while bytes.len() < wanted && !self.ended {
            match self.input.read(wanted - bytes.len(), bytes) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
    }

    fn hand_out(&mut self, bytes: Vec<u8>, games: Vec<Range<usize>>) -> Texts {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        Texts { offset, bytes, games }
    }
}

/// Where games stand in a text; together they are all of it.
fn cut(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut games = Vec::new();
    let (mut start, mut in_movetext) = (0, false);
    let mut line_start = 0;
    while line_start < bytes.len() {
        let line_end =
            memchr::memchr(b'\n', &bytes[line_start..]).map_or(bytes.len(), |length| line_start + length + 1);
        let line = &bytes[line_start..line_end];
        if in_movetext && is_tag(line) {
            games.push(start..line_start);
            start = line_start;
            in_movetext = false;
        }
        in_movetext = in_movetext || holds_movetext(line);
        line_start = line_end;
    }
    if start < bytes.len() {
        games.push(start..bytes.len());
    }
    games
}

/// `[` and a letter: comments such as `[%eval 0.3]` may begin a line too.
fn is_tag(line: &[u8]) -> bool {
    matches!(trim(line), [b'[', c, ..] if c.is_ascii_alphabetic())
}

/// Whether there is anything but tags, or what should be tags.
fn holds_movetext(line: &[u8]) -> bool {
    let mut rest = trim(line);
    while let Some(tag) = outline::tag(rest) {
        rest = trim(&rest[tag.end..]);
    }
    !(rest.is_empty() || is_tag(rest) || line.starts_with(b"%"))
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
            let mut found = Vec::new();
            loop {
                let texts = splitter.next();
                if texts.is_empty() {
                    break;
                }
                for game in 0..texts.len() {
                    let (rest, length, offset) = texts.from(game);
                    found.push((offset, String::from_utf8(rest[..length].to_vec()).unwrap()));
                }
            }
            let found: Vec<_> = found.iter().map(|(offset, text)| (*offset, text.as_str())).collect();
            assert_eq!(found, expected, "{batch} bytes at once");
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
