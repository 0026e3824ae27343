//! Cuts the text of games into tags, moves, comments and results, each with its place, and finds where the next game
//! begins after a malformed one.

use super::SkipReason;
use super::tags::is_needed;
use crate::data::GameResult;

/// A part of the movetext; variations, numbers and glyphs are passed over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MovetextToken<'a> {
    /// In the place of a move.
    Word { at: usize, text: &'a [u8] },
    /// The text between the braces.
    Comment(&'a [u8]),
    /// White's result, which ends the game; `None` for `*`.
    Result { at: usize, result: Option<GameResult> },
}

/// A line of the tag section.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TagLine<'a> {
    Pair {
        name: &'a [u8],
        value: &'a [u8],
    },
    /// A malformed tag that is not needed.
    Malformed,
}

/// Why a game is malformed, and where in the text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MalformedGame {
    pub reason: SkipReason,
    pub offset: usize,
}

pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// A tag at the beginning of a text.
pub struct Tag<'a> {
    pub name: &'a [u8],
    /// Between the outer quotes.
    pub value: &'a [u8],
    /// After the closing bracket.
    pub end: usize,
}

/// Parses `[Name "value"]` at the beginning of `text`; quotes inside the value need no escape.
pub fn parse_tag(text: &[u8]) -> Option<Tag<'_>> {
    tag_pair(text).filter(|tag| tag.name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
}

/// As [`parse_tag`]; the name may also have characters that no name should have.
pub fn tag_pair(text: &[u8]) -> Option<Tag<'_>> {
    let line = &text[..line_end(text, 0)];
    let open = memchr::memchr(b'"', line)?;
    let name = line[..open].strip_prefix(b"[")?.trim_ascii();
    let is_word = !name.iter().any(|byte| byte.is_ascii_whitespace() || b"[]{}%".contains(byte));
    if name.is_empty() || !is_word {
        return None;
    }
    memchr::memchr_iter(b'"', line).skip(1).find_map(|close| {
        let bracket = close + 1 + line[close + 1..].iter().position(|byte| !is_blank(*byte))?;
        (line[bracket] == b']').then(|| Tag { name, value: &line[open + 1..close], end: bracket + 1 })
    })
}

/// The first token of a paragraph, or the second after a comment.
#[derive(PartialEq)]
enum ParagraphStart {
    /// `1.`
    FirstMove,
    /// `1...`, `2.`
    LaterMove,
    Result,
    Other,
}

/// Tokenizes the games of one text.
pub struct Tokenizer<'a> {
    text: &'a [u8],
    /// After the last `}`: a comment that begins later is never closed.
    comments_end: usize,
    at: usize,
    /// Whether the game has a tag.
    is_tagged: bool,
    /// Whether the game has a move.
    has_words: bool,
    /// Whether the game's text ends with an error.
    failed: bool,
}

impl<'a> Tokenizer<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        let comments_end = memchr::memrchr(b'}', text).map_or(0, |last| last + 1);
        Tokenizer { text, comments_end, at: 0, is_tagged: false, has_words: false, failed: false }
    }

    /// Begins the game at an offset.
    pub fn begin_game(&mut self, start: usize) {
        self.at = start;
        self.is_tagged = false;
        self.has_words = false;
        self.failed = false;
    }

    /// Where the tokenizer is.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Whether the game's text ended with an error.
    pub const fn failed(&self) -> bool {
        self.failed
    }

    pub const fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Where the text after a whole game begins: comments after a result belong to that game.
    pub fn after_game(&self) -> Option<usize> {
        let mut at = self.skip_blank(self.at)?;
        loop {
            at = match self.text[at] {
                b'{' => self.closing_brace(at).map_or(self.text.len(), |close| close + 1),
                b';' => line_end(self.text, at),
                _ => return Some(at),
            };
            at = self.skip_blank(at)?;
        }
    }

    /// The first offset from `from` on that is not in a blank, a `%` line or a byte order mark; `None` at the end.
    pub fn skip_blank(&self, mut from: usize) -> Option<usize> {
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

    /// The next offset at which a game may begin that does not continue the malformed game just read.
    pub fn next_game(&self) -> Option<usize> {
        let mut from = self.at;
        if self.failed {
            from = self.next_empty_line(from)?;
        }
        loop {
            let start = self.skip_blank(from)?;
            if matches!(self.paragraph_start(start), ParagraphStart::FirstMove | ParagraphStart::Other) {
                return Some(start);
            }
            from = self.next_empty_line(start)?;
        }
    }

    fn next_empty_line(&self, from: usize) -> Option<usize> {
        let mut end = line_end(self.text, from);
        loop {
            let line = end + 1;
            end = line_end(self.text, line);
            if self.text.get(line..end)?.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let taken = &self.text[self.at..self.at + length];
        self.at += length;
        taken
    }

    fn error<T>(&self, reason: SkipReason) -> Result<T, MalformedGame> {
        Err(MalformedGame { reason, offset: self.at })
    }

    /// The next tag; `None` where the movetext begins.
    ///
    /// # Errors
    /// When a tag that is needed is malformed, or its end cannot be told.
    pub fn next_tag(&mut self) -> Result<Option<TagLine<'a>>, MalformedGame> {
        let rest = self.rest();
        if !rest.starts_with(b"[") {
            return Ok(None);
        }
        self.is_tagged = true;
        let (line, length) = if let Some(Tag { name, value, end }) = parse_tag(rest) {
            (TagLine::Pair { name, value }, end)
        } else if let Some(length) = malformed_tag_length(rest).filter(|_| !is_needed(rest)) {
            (TagLine::Malformed, length)
        } else {
            self.failed = true;
            return self.error(SkipReason::MalformedTag);
        };
        self.at = self.skip_blank(self.at + length).unwrap_or(self.text.len());
        Ok(Some(line))
    }

    /// The next token of the movetext.
    ///
    /// # Errors
    /// When the text is malformed or ends before the result.
    pub fn next(&mut self) -> Result<MovetextToken<'a>, MalformedGame> {
        let token = self.next_token();
        self.failed |= token.is_err();
        token
    }

    fn next_token(&mut self) -> Result<MovetextToken<'a>, MalformedGame> {
        loop {
            match self.rest() {
                [] => return self.error(SkipReason::Unfinished),
                [b'.' | b'!' | b'?', ..] => self.at += 1,
                [byte, ..] if is_blank(*byte) => self.at += 1,
                [b'\n', ..] => self.line_ends(self.has_words)?,
                [b'{', ..] => {
                    let length = self.comment_length()?;
                    return Ok(MovetextToken::Comment(&self.take(length)[1..length - 1]));
                }
                [b';', ..] => self.at = line_end(self.text, self.at),
                [b'(', ..] => self.variation()?,
                [b')' | b'}', ..] => return self.error(SkipReason::Garbage),
                [b'$', glyph @ ..] => match count_digits(glyph) {
                    0 => return self.error(SkipReason::Garbage),
                    length if glyph.get(length).is_some_and(|byte| !ends_token(*byte)) => {
                        return self.error(SkipReason::Garbage);
                    }
                    length => self.at += 1 + length,
                },
                rest => {
                    let at = self.at;
                    if let Some((length, result)) = result_at(rest) {
                        self.at += length;
                        return Ok(MovetextToken::Result { at, result });
                    }
                    if !rest[0].is_ascii_digit() || rest.starts_with(b"0-0") {
                        if let Some(text) = self.word() {
                            return Ok(MovetextToken::Word { at, text });
                        }
                        if self.at == at {
                            return self.error(SkipReason::Garbage);
                        }
                    } else {
                        self.number()?;
                    }
                }
            }
        }
    }

    fn comment_length(&self) -> Result<usize, MalformedGame> {
        match self.closing_brace(self.at) {
            Some(close) => Ok(close + 1 - self.at),
            None => self.error(SkipReason::Unfinished),
        }
    }

    /// Skips the end of a line, empty lines and `%` lines. An empty line ends a game only if the game has begun
    /// (`in_game`) and the first move of another follows.
    fn line_ends(&mut self, in_game: bool) -> Result<(), MalformedGame> {
        let first = self.at;
        let mut ends = 0;
        let mut empty = false;
        loop {
            match self.rest() {
                [b'\n', ..] => {
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
        if empty && in_game && self.paragraph_start(self.at) == ParagraphStart::FirstMove {
            self.at = first;
            return self.error(SkipReason::Unfinished);
        }
        Ok(())
    }

    fn variation(&mut self) -> Result<(), MalformedGame> {
        let mut depth = 0u32;
        loop {
            match self.rest() {
                [] => return self.error(SkipReason::Unfinished),
                [b'(', ..] => depth += 1,
                [b')', ..] if depth == 1 => {
                    self.at += 1;
                    return Ok(());
                }
                [b')', ..] => depth -= 1,
                [b'{', ..] => self.at += self.comment_length()? - 1,
                [b';', ..] => {
                    self.at = line_end(self.text, self.at);
                    continue;
                }
                [b'\n', ..] => {
                    self.line_ends(true)?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Skips a move number.
    fn number(&mut self) -> Result<(), MalformedGame> {
        let rest = self.rest();
        let digits = count_digits(rest);
        if rest.get(digits).is_some_and(|byte| !ends_number(*byte)) {
            return self.error(SkipReason::Garbage);
        }
        // A game without tags begins at its first move; a later move continues a malformed game.
        if !self.is_tagged && !self.has_words && self.paragraph_start(self.at) == ParagraphStart::LaterMove {
            return self.error(SkipReason::Garbage);
        }
        self.at += digits;
        Ok(())
    }

    /// A word, with a promotion in brackets and without `e.p.` after it.
    fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let mut length = rest.iter().position(|byte| ends_token(*byte)).unwrap_or(rest.len());
        if let [b'1' | b'8' | b'=', b'(', letter, b')', ..] = rest[length.saturating_sub(1)..]
            && b"QRBNqrbn".contains(&letter)
        {
            let after = &rest[length + 3..];
            length += 3 + after.iter().position(|byte| ends_token(*byte)).unwrap_or(after.len());
        }
        let en_passant = rest[..length].ends_with(b"e")
            && rest[length..]
                .strip_prefix(b".p.")
                .is_some_and(|rest| rest.first().is_none_or(|byte| ends_token(*byte)));
        length -= usize::from(en_passant);
        let word = self.take(length);
        if en_passant {
            self.at += 4;
        }
        self.has_words |= length > 0;
        (length > 0).then_some(word)
    }

    fn paragraph_start(&self, at: usize) -> ParagraphStart {
        let mut rest = &self.text[at..];
        if rest.starts_with(b"{")
            && let Some(close) = self.closing_brace(at)
        {
            rest = self.text[close + 1..].trim_ascii_start();
        }
        if result_at(rest).is_some() {
            return ParagraphStart::Result;
        }
        let (number, after) = rest.split_at(count_digits(rest));
        if after.first().is_some_and(|byte| !ends_number(*byte)) {
            return ParagraphStart::Other;
        }
        let dots = after.iter().take_while(|byte| **byte == b'.' || is_blank(**byte)).filter(|byte| **byte == b'.');
        match number {
            [] => ParagraphStart::Other,
            b"1" if dots.count() < 2 => ParagraphStart::FirstMove,
            _ => ParagraphStart::LaterMove,
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

/// The offset of the next line feed, or of the end of the text.
fn line_end(text: &[u8], from: usize) -> usize {
    text.get(from..).and_then(|rest| memchr::memchr(b'\n', rest)).map_or(text.len(), |length| from + length)
}

fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of a malformed tag at the beginning of `text`: up to its bracket, or its line where only tags and an
/// empty line can follow. `None` where moves could be lost with it.
fn malformed_tag_length(text: &[u8]) -> Option<usize> {
    let end = line_end(text, 0);
    let line = text[..end].trim_ascii_end();
    if !line.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii()) {
        return None;
    }
    if line.ends_with(b"]") {
        return Some(line.len());
    }
    let next = text.get(end + 1..).unwrap_or_default();
    let next = &next[..line_end(next, 0)];
    match memchr::memchr(b']', line) {
        Some(bracket) => Some(bracket + 1),
        None => (next.starts_with(b"[") || next.trim_ascii().is_empty()).then_some(line.len()),
    }
}

/// The result that a text is, in any spelling; `None` for `*` and for other texts.
pub fn result_of(text: &[u8]) -> Option<GameResult> {
    RESULTS.iter().find(|(written, _)| written.as_bytes() == text).and_then(|(_, result)| *result)
}

/// Results from White's point of view.
const RESULTS: [(&str, Option<GameResult>); 10] = [
    ("*", None),
    ("1-0", Some(GameResult::Win)),
    ("0-1", Some(GameResult::Loss)),
    ("1/2-1/2", Some(GameResult::Draw)),
    ("1/2", Some(GameResult::Draw)),
    ("0.5-0.5", Some(GameResult::Draw)),
    ("0,5-0,5", Some(GameResult::Draw)),
    ("½-½", Some(GameResult::Draw)),
    ("1:0", Some(GameResult::Win)),
    ("0:1", Some(GameResult::Loss)),
];

/// A result at the beginning of `text` and its length, if nothing adjoins it.
fn result_at(text: &[u8]) -> Option<(usize, Option<GameResult>)> {
    if !matches!(text.first()?, b'*' | b'0' | b'1' | 0xc2) {
        return None;
    }
    let stands_alone = |written: &str| {
        text.starts_with(written.as_bytes()) && text.get(written.len()).is_none_or(|byte| ends_word(*byte))
    };
    RESULTS.iter().find(|(written, _)| stands_alone(written)).map(|(written, result)| (written.len(), *result))
}

const BLANK: u8 = 1;
const ENDS_WORD: u8 = 2;
const ENDS_NUMBER: u8 = 4;
/// The end of a token in pgn-reader.
const ENDS_TOKEN: u8 = 8;

/// The class bits of each byte.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            // The last three stand in old files: vertical tab, form feed and the end of text of DOS.
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0x1a => BLANK | ENDS_WORD | ENDS_NUMBER | ENDS_TOKEN,
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
