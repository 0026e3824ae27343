//! Locates the tags, moves, comments and results in the text of games. pgn-reader gives no offsets and silently skips
//! text it does not know; comparing its calls with these tokens shows where it skipped.

use std::borrow::Cow;
use std::ops::Range;

use super::SkipReason;

/// A part of a game for which pgn-reader calls its visitor.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Tag,
    /// A word in the place of a move: neither number, glyph nor result.
    Word,
    Comment,
    Result,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    start: u32,
    end: u32,
}

impl Token {
    pub const fn start(&self) -> usize {
        self.start as usize
    }

    pub const fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Why a game is malformed, and where in the text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GameError {
    pub reason: SkipReason,
    pub offset: usize,
}

/// The tokens of one game, variations excluded.
#[derive(Debug, Default)]
pub struct GameTokens {
    /// In text order.
    pub tokens: Vec<Token>,
    pub start: usize,
    /// The end of the result, or the offset of the error.
    pub end: usize,
    /// An error that does not depend on the legality of the moves.
    pub error: Option<GameError>,
    pub words: usize,
    pub longest_tag: usize,
    /// Bytes that pgn-reader would misread, and the byte that replaces each.
    masks: Vec<(Range<usize>, u8)>,
}

impl GameTokens {
    /// The game's text with the masked bytes replaced; offsets stay.
    pub fn masked_text<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let mut masked = Cow::Borrowed(&text[self.start..self.end]);
        for (range, byte) in self.masks.iter().filter(|(range, _)| range.start < self.end) {
            masked.to_mut()[range.start - self.start..range.end.min(self.end) - self.start].fill(*byte);
        }
        masked
    }
}

pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// A tag at the beginning of a text.
pub struct Tag {
    /// Between the outer quotes.
    value: Range<usize>,
    /// After the closing bracket.
    pub end: usize,
}

/// Parses `[Name "value"]` at the beginning of `text`; quotes inside the value need no escape.
pub fn parse_tag(text: &[u8]) -> Option<Tag> {
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
    game: GameTokens,
}

impl<'a> Tokenizer<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        let comments_end = memchr::memrchr(b'}', text).map_or(0, |last| last + 1);
        Tokenizer { text, comments_end, at: 0, game: GameTokens::default() }
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

    /// The next offset at which a game may begin that does not continue `malformed`.
    pub fn next_game(&self, malformed: &GameTokens) -> Option<usize> {
        let mut from = malformed.end;
        if malformed.error.is_some() {
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

    /// Tokenizes the game that begins at `start`; `tokens` is an allocation to reuse.
    pub fn tokenize_game(&mut self, start: usize, mut tokens: Vec<Token>) -> GameTokens {
        tokens.clear();
        self.at = start;
        self.game = GameTokens { tokens, start, ..GameTokens::default() };
        let error = self.tags().and_then(|()| self.movetext()).err();
        let end = error.map_or(self.at, |error| error.offset);
        GameTokens { end, error, ..std::mem::take(&mut self.game) }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn push_token(&mut self, kind: TokenKind, length: usize) {
        // The splitter cuts texts long before 4 GiB.
        self.game.tokens.push(Token { kind, start: self.at as u32, end: (self.at + length) as u32 });
        self.at += length;
    }

    fn mask(&mut self, range: Range<usize>, byte: u8) {
        match self.game.masks.last_mut() {
            Some((last, last_byte)) if last.end == range.start && *last_byte == byte => last.end = range.end,
            _ => self.game.masks.push((range, byte)),
        }
    }

    fn error<T>(&self, reason: SkipReason) -> Result<T, GameError> {
        Err(GameError { reason, offset: self.at })
    }

    fn tags(&mut self) -> Result<(), GameError> {
        while let [b'[', ..] = self.rest() {
            let Some(tag) = parse_tag(self.rest()) else { return self.error(SkipReason::MalformedTag) };
            let value = self.at + tag.value.start..self.at + tag.value.end;
            // pgn-reader ends the value at an inner quote, and takes a backslash before the last quote for an escape.
            for quote in memchr::memchr_iter(b'"', &self.text[value.clone()]) {
                self.mask(value.start + quote..value.start + quote + 1, b'\'');
            }
            if self.text[value.clone()].ends_with(b"\\") {
                self.mask(value.end - 1..value.end, b'/');
            }
            self.game.longest_tag = self.game.longest_tag.max(tag.end);
            self.push_token(TokenKind::Tag, tag.end);
            self.at = self.skip_blank(self.at).unwrap_or(self.text.len());
        }
        Ok(())
    }

    /// Tokenizes up to and including the result.
    fn movetext(&mut self) -> Result<(), GameError> {
        loop {
            match self.rest() {
                [] => return self.error(SkipReason::Unfinished),
                [b'.' | b'!' | b'?', ..] => self.at += 1,
                [byte, ..] if is_blank(*byte) => self.at += 1,
                [b'\n', ..] => self.line_ends(self.game.words > 0)?,
                [b'{', ..] => {
                    let length = self.comment_length()?;
                    self.push_token(TokenKind::Comment, length);
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
                [b'*' | b'0'..=b'9', ..] => {
                    if self.number_or_result()? {
                        return Ok(());
                    }
                }
                _ => self.word(),
            }
        }
    }

    fn comment_length(&self) -> Result<usize, GameError> {
        match self.closing_brace(self.at) {
            Some(close) => Ok(close + 1 - self.at),
            None => self.error(SkipReason::Unfinished),
        }
    }

    /// Skips the end of a line, empty lines and `%` lines. pgn-reader ends a game at an empty line, so those are
    /// masked. Here an empty line ends a game only if the game has begun (`in_game`) and the first move of another
    /// follows.
    fn line_ends(&mut self, in_game: bool) -> Result<(), GameError> {
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
        if empty && in_game && self.paragraph_start(self.at) == ParagraphStart::FirstMove {
            self.at = first;
            return self.error(SkipReason::Unfinished);
        }
        Ok(())
    }

    fn variation(&mut self) -> Result<(), GameError> {
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
                // pgn-reader would end the game here.
                [b'[', ..] if self.begins_line(self.at) => return self.error(SkipReason::Garbage),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Skips a move number, or tokenizes a result (then true) or castling written with zeros.
    fn number_or_result(&mut self) -> Result<bool, GameError> {
        let rest = self.rest();
        let digits = count_digits(rest);
        if digits > 0 && rest.get(digits).is_none_or(|byte| ends_number(*byte)) {
            // A game without tags begins at its first move; a later move continues a malformed game.
            let tagged = self.game.tokens.first().is_some_and(|token| token.kind == TokenKind::Tag);
            if !tagged && self.game.words == 0 && self.paragraph_start(self.at) == ParagraphStart::LaterMove {
                return self.error(SkipReason::Garbage);
            }
            self.at += digits;
        } else if let Some(length) = result_length(rest) {
            self.push_token(TokenKind::Result, length);
            return Ok(true);
        } else if rest.starts_with(b"0-0") {
            self.word();
        } else {
            return self.error(SkipReason::Garbage);
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
            self.game.words += 1;
            self.push_token(TokenKind::Word, length);
        }
        if en_passant {
            // pgn-reader would drop a move with this suffix.
            self.mask(self.at..self.at + 4, b' ');
            self.at += 4;
        }
    }

    fn paragraph_start(&self, at: usize) -> ParagraphStart {
        let mut rest = &self.text[at..];
        if rest.starts_with(b"{")
            && let Some(close) = self.closing_brace(at)
        {
            rest = self.text[close + 1..].trim_ascii_start();
        }
        if result_length(rest).is_some() {
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

/// The length of a result at the beginning of `text`, if nothing adjoins it.
fn result_length(text: &[u8]) -> Option<usize> {
    let results = [&b"*"[..], b"1-0", b"0-1", b"1/2-1/2"];
    let length = results.iter().find(|result| text.starts_with(result))?.len();
    text.get(length).is_none_or(|byte| ends_word(*byte)).then_some(length)
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
