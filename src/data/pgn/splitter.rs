//! Cuts a stream of PGN text into the texts of single games, without understanding them: a game begins at a tag line
//! (`[Name …`) that follows a line which is none. So a broken game never swallows its successor, games can be parsed
//! in parallel, and every one has its byte offset.

use std::io;

use super::outline::{self, BOM};
use crate::data::input::Input;

/// The text of one game (tags and movetext), or what stands where a game should.
pub struct GameText {
    /// First byte, in the decompressed text.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A text longer than this is cut: no game is, and garbage without an end must not fill the memory.
const LONGEST: usize = 16 << 20;

pub struct Splitter {
    input: Input,
    /// The first line of the next game, already read.
    pending: Vec<u8>,
    /// Bytes handed out so far.
    offset: u64,
    done: bool,
}

impl Splitter {
    pub fn new(input: Input) -> Splitter {
        Splitter { input, pending: Vec::new(), offset: 0, done: false }
    }

    /// Bytes of the decompressed text read so far.
    pub fn bytes_read(&self) -> u64 {
        self.offset + self.pending.len() as u64
    }

    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The next game's text, none at the end.
    ///
    /// # Errors
    /// When the input breaks off; the unfinished text is dropped.
    pub fn next(&mut self) -> io::Result<Option<GameText>> {
        if self.done {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.pending);
        let mut in_movetext = holds_movetext(&bytes);
        loop {
            let start = bytes.len();
            let read = self.input.line(LONGEST, &mut bytes).inspect_err(|_| {
                self.done = true;
                self.offset += bytes.len() as u64;
            })?;
            if read == 0 {
                self.done = true;
                break;
            }
            let line = bytes.get(start..).unwrap_or_default();
            if in_movetext && is_tag(line) {
                self.pending = bytes.split_off(start);
                break;
            }
            in_movetext = in_movetext || holds_movetext(line);
            if bytes.len() >= LONGEST {
                break;
            }
        }
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(GameText { offset, bytes }))
    }
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
        let mut splitter = Splitter::new(Input::from_bytes(text.as_bytes().to_vec()));
        let mut found = Vec::new();
        while let Some(game) = splitter.next().unwrap() {
            found.push((game.offset, String::from_utf8(game.bytes).unwrap()));
        }
        let found: Vec<_> = found.iter().map(|(offset, text)| (*offset, text.as_str())).collect();
        assert_eq!(found, expected);
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
