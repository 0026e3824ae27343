//! Where the tags, moves, comments and results of games stand, found without understanding them. pgn-reader tells no
//! offsets and passes over what it does not know; held against an outline, whatever it passed over shows.

use std::borrow::Cow;
use std::ops::Range;

use super::SkipReason;

/// Something that makes pgn-reader call its visitor.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Tag,
    /// What should be a move: a word that is no number, glyph or result.
    Word,
    Comment,
    Result,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub kind: Kind,
    start: u32,
    end: u32,
}

impl Mark {
    pub const fn start(&self) -> usize {
        self.start as usize
    }

    pub const fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// What makes a game broken, and where.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub reason: SkipReason,
    pub at: usize,
}

/// One game, outside its variations.
#[derive(Debug, Default)]
pub struct Outline {
    /// In text order.
    pub marks: Vec<Mark>,
    pub start: usize,
    /// Behind the result, or where the trouble is.
    pub end: usize,
    /// What is broken however the moves read.
    pub trouble: Option<Trouble>,
    pub words: usize,
    pub longest_tag: usize,
    /// Bytes that pgn-reader takes for more than we do, and what to show it instead.
    masks: Vec<(Range<usize>, u8)>,
}

impl Outline {
    /// The game's text for pgn-reader: every byte where it was.
    pub fn readable<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let mut game = Cow::Borrowed(&text[self.start..self.end]);
        for (range, byte) in self.masks.iter().filter(|(range, _)| range.start < self.end) {
            game.to_mut()[range.start - self.start..range.end.min(self.end) - self.start].fill(*byte);
        }
        game
    }
}

pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// A tag at the beginning of a text.
pub struct Tag {
    /// Offsets of the text between the outer quotes.
    value: Range<usize>,
    /// Behind the bracket.
    pub end: usize,
}

/// Reads `[Name "value"]`; quotes inside the value need no escape.
pub fn tag(text: &[u8]) -> Option<Tag> {
    let line = &text[..line_end(text, 0)];
    let open = memchr::memchr(b'"', line)?;
    let name = line[..open].strip_prefix(b"[")?.trim_ascii();
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return None;
    }
    memchr::memchr_iter(b'"', line).skip(1).find_map(|close| {
        let bracket = close + 1 + line[close + 1..].iter().position(|byte| !is_blank(*byte))?;
        (line[bracket] == b']').then_some(Tag { value: open + 1..close, end: bracket + 1 })
    })
}

/// What a paragraph begins with, after at most one comment.
#[derive(PartialEq)]
enum Opening {
    /// `1.`
    FirstMove,
    /// `1...`, `2.`
    LaterMove,
    Result,
    Other,
}

/// Finds the outlines of the games in one text.
pub struct Outliner<'a> {
    text: &'a [u8],
    /// Behind the last `}`: no comment that begins later is ever closed.
    comments_end: usize,
    at: usize,
    outline: Outline,
}

impl<'a> Outliner<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        let comments_end = memchr::memrchr(b'}', text).map_or(0, |last| last + 1);
        Outliner { text, comments_end, at: 0, outline: Outline::default() }
    }

    /// What stands at `from` or after blanks, `%` lines and byte order marks.
    pub fn next_text(&self, mut from: usize) -> Option<usize> {
        loop {
            match self.text.get(from..)? {
                [] => return None,
                [byte, ..] if is_blank(*byte) || *byte == b'\n' => from += 1,
                [b'%', ..] if self.begins_line(from) => from = line_end(self.text, from),
                rest if rest.starts_with(BOM) => from += BOM.len(),
                _ => return Some(from),
            }
        }
    }

    /// Where a game may begin that does not go on with a broken one, whose outline was this.
    pub fn next_game(&self, broken: &Outline) -> Option<usize> {
        let mut from = broken.end;
        if broken.trouble.is_some() {
            from = self.paragraph(from)?;
        }
        loop {
            let start = self.next_text(from)?;
            if matches!(self.opening(start), Opening::FirstMove | Opening::Other) {
                return Some(start);
            }
            from = self.paragraph(start)?;
        }
    }

    /// The next empty line.
    fn paragraph(&self, from: usize) -> Option<usize> {
        let mut end = line_end(self.text, from);
        loop {
            let line = end + 1;
            end = line_end(self.text, line);
            if self.text.get(line..end)?.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }

    /// The game that begins at `start`; `marks` is memory to use again.
    pub fn outline(&mut self, start: usize, mut marks: Vec<Mark>) -> Outline {
        marks.clear();
        self.at = start;
        self.outline = Outline { marks, start, ..Outline::default() };
        let trouble = self.tags().and_then(|()| self.movetext()).err();
        let end = trouble.map_or(self.at, |trouble| trouble.at);
        Outline { end, trouble, ..std::mem::take(&mut self.outline) }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn mark(&mut self, kind: Kind, length: usize) {
        // Texts are cut long before 4 GiB.
        self.outline.marks.push(Mark { kind, start: self.at as u32, end: (self.at + length) as u32 });
        self.at += length;
    }

    fn mask(&mut self, range: Range<usize>, byte: u8) {
        match self.outline.masks.last_mut() {
            Some((last, same)) if last.end == range.start && *same == byte => last.end = range.end,
            _ => self.outline.masks.push((range, byte)),
        }
    }

    fn trouble<T>(&self, reason: SkipReason) -> Result<T, Trouble> {
        Err(Trouble { reason, at: self.at })
    }

    fn tags(&mut self) -> Result<(), Trouble> {
        while let [b'[', ..] = self.rest() {
            let Some(tag) = tag(self.rest()) else { return self.trouble(SkipReason::MalformedTag) };
            let value = self.at + tag.value.start..self.at + tag.value.end;
            // To the reader an inner quote ends the value, and a backslash before the last one goes on with it.
            for quote in memchr::memchr_iter(b'"', &self.text[value.clone()]) {
                self.mask(value.start + quote..value.start + quote + 1, b'\'');
            }
            if self.text[value.clone()].ends_with(b"\\") {
                self.mask(value.end - 1..value.end, b'/');
            }
            self.outline.longest_tag = self.outline.longest_tag.max(tag.end);
            self.mark(Kind::Tag, tag.end);
            self.at = self.next_text(self.at).unwrap_or(self.text.len());
        }
        Ok(())
    }

    /// Up to and with the result.
    fn movetext(&mut self) -> Result<(), Trouble> {
        loop {
            match self.rest() {
                [] => return self.trouble(SkipReason::Unfinished),
                [b'.' | b'!' | b'?', ..] => self.at += 1,
                [byte, ..] if is_blank(*byte) => self.at += 1,
                [b'\n', ..] => self.lines(self.outline.words > 0)?,
                [b'{', ..] => {
                    let length = self.comment()?;
                    self.mark(Kind::Comment, length);
                }
                [b';', ..] => self.at = line_end(self.text, self.at),
                [b'(', ..] => self.variation()?,
                [b')' | b'}', ..] => return self.trouble(SkipReason::Garbage),
                [b'$', glyph @ ..] => match number(glyph) {
                    0 => return self.trouble(SkipReason::Garbage),
                    length if glyph.get(length).is_some_and(|byte| !ends_token(*byte)) => {
                        return self.trouble(SkipReason::Garbage);
                    }
                    length => self.at += 1 + length,
                },
                [b'*' | b'0'..=b'9', ..] => {
                    if self.digits()? {
                        return Ok(());
                    }
                }
                _ => self.word(),
            }
        }
    }

    /// The length of the comment that begins here.
    fn comment(&self) -> Result<usize, Trouble> {
        match self.closing_brace(self.at) {
            Some(close) => Ok(close + 1 - self.at),
            None => self.trouble(SkipReason::Unfinished),
        }
    }

    /// Passes over the end of a line, empty lines and `%` lines. An empty line is masked, since the reader ends a game
    /// there; it does so here only when the first move of another follows and this one is `underway`.
    fn lines(&mut self, underway: bool) -> Result<(), Trouble> {
        let first = self.at;
        let (mut ends, mut empty) = (0, false);
        loop {
            match self.rest() {
                [b'\n', rest @ ..] => {
                    if rest.starts_with(b"\n") || rest.starts_with(b"\r\n") {
                        self.mask(self.at..self.at + 1, b' ');
                    }
                    ends += 1;
                    self.at += 1;
                }
                [b'%', ..] if self.begins_line(self.at) => {
                    ends = 0;
                    self.at = line_end(self.text, self.at);
                }
                [byte, ..] if is_blank(*byte) => self.at += 1,
                _ => break,
            }
            empty |= ends > 1;
        }
        if empty && underway && self.opening(self.at) == Opening::FirstMove {
            self.at = first;
            return self.trouble(SkipReason::Unfinished);
        }
        Ok(())
    }

    fn variation(&mut self) -> Result<(), Trouble> {
        let mut depth = 0u32;
        loop {
            match self.rest() {
                [] => return self.trouble(SkipReason::Unfinished),
                [b'(', ..] => depth += 1,
                [b')', ..] if depth == 1 => {
                    self.at += 1;
                    return Ok(());
                }
                [b')', ..] => depth -= 1,
                [b'{', ..] => self.at += self.comment()? - 1,
                [b';', ..] => {
                    self.at = line_end(self.text, self.at);
                    continue;
                }
                [b'\n', ..] => {
                    self.lines(true)?;
                    continue;
                }
                // The reader would end the game here.
                [b'[', ..] if self.begins_line(self.at) => return self.trouble(SkipReason::Garbage),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// A move number, a result (then true), or castling written with zeros.
    fn digits(&mut self) -> Result<bool, Trouble> {
        let rest = self.rest();
        let digits = number(rest);
        if digits > 0 && rest.get(digits).is_none_or(|byte| ends_number(*byte)) {
            // Without tags a game begins at its first move: this is the rest of another.
            let tagged = self.outline.marks.first().is_some_and(|mark| mark.kind == Kind::Tag);
            if !tagged && self.outline.words == 0 && self.opening(self.at) == Opening::LaterMove {
                return self.trouble(SkipReason::Garbage);
            }
            self.at += digits;
        } else if let Some(length) = result(rest) {
            self.mark(Kind::Result, length);
            return Ok(true);
        } else if rest.starts_with(b"0-0") {
            self.word();
        } else {
            return self.trouble(SkipReason::Garbage);
        }
        Ok(false)
    }

    fn word(&mut self) {
        let rest = self.rest();
        let mut length = rest.iter().position(|byte| ends_token(*byte)).unwrap_or(rest.len());
        let en_passant = rest[..length].ends_with(b"e")
            && rest[length..]
                .strip_prefix(b".p.")
                .is_some_and(|rest| rest.first().is_none_or(|byte| ends_token(*byte)));
        length -= usize::from(en_passant);
        if length > 0 {
            self.outline.words += 1;
            self.mark(Kind::Word, length);
        }
        if en_passant {
            // The reader would drop the move that it stands at.
            self.mask(self.at..self.at + 4, b' ');
            self.at += 4;
        }
    }

    fn opening(&self, at: usize) -> Opening {
        let mut rest = &self.text[at..];
        if rest.starts_with(b"{")
            && let Some(close) = self.closing_brace(at)
        {
            rest = self.text[close + 1..].trim_ascii_start();
        }
        if result(rest).is_some() {
            return Opening::Result;
        }
        let (number, after) = rest.split_at(number(rest));
        if after.first().is_some_and(|byte| !ends_number(*byte)) {
            return Opening::Other;
        }
        let dots = after.iter().take_while(|byte| **byte == b'.' || is_blank(**byte)).filter(|byte| **byte == b'.');
        match number {
            [] => Opening::Other,
            b"1" if dots.count() < 2 => Opening::FirstMove,
            _ => Opening::LaterMove,
        }
    }

    fn closing_brace(&self, from: usize) -> Option<usize> {
        let comments = self.text.get(from..self.comments_end)?;
        memchr::memchr(b'}', comments).map(|length| from + length)
    }

    fn begins_line(&self, at: usize) -> bool {
        at == 0 || self.text[at - 1] == b'\n' || &self.text[..at] == BOM
    }
}

/// The offset of the next line feed, or of the end.
fn line_end(text: &[u8], from: usize) -> usize {
    text.get(from..).and_then(|rest| memchr::memchr(b'\n', rest)).map_or(text.len(), |length| from + length)
}

fn number(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of a result that stands alone.
fn result(text: &[u8]) -> Option<usize> {
    let results = [&b"*"[..], b"1-0", b"0-1", b"1/2-1/2"];
    let length = results.iter().find(|result| text.starts_with(result))?.len();
    text.get(length).is_none_or(|byte| ends_word(*byte)).then_some(length)
}

const BLANK: u8 = 1;
const ENDS_WORD: u8 = 2;
const ENDS_NUMBER: u8 = 4;
/// As pgn-reader has it.
const ENDS_TOKEN: u8 = 8;

/// What each byte is.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' | b'\r' => BLANK | ENDS_WORD | ENDS_NUMBER | ENDS_TOKEN,
            b'\n' | b'{' | b'}' | b'(' | b')' | b';' => ENDS_WORD | ENDS_NUMBER | ENDS_TOKEN,
            b'.' => ENDS_NUMBER | ENDS_TOKEN,
            b'!' | b'?' | b'$' | b'*' => ENDS_TOKEN,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

#[inline]
pub fn is_blank(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & BLANK != 0
}

#[inline]
fn ends_word(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & ENDS_WORD != 0
}

#[inline]
fn ends_number(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & ENDS_NUMBER != 0
}

#[inline]
pub fn ends_token(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & ENDS_TOKEN != 0
}
