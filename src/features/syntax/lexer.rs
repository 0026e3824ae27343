//! Text → tokens. Whitespace and `#` comments separate tokens. A hyphen is always a token of its own: only the parser
//! knows whether it belongs to a name or is a minus.

use super::{Span, SyntaxError};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Word(&'a str),
    Integer(u64),
    /// One of `( ) , + * - .. == != < <= > >=`.
    Symbol(&'static str),
    End,
}

impl Token<'_> {
    pub fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Integer(value) => format!("`{value}`"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::End => "the end".into(),
        }
    }
}

/// `<=` stands before its prefix `<`.
const SYMBOLS: [&str; 13] = ["..", "==", "!=", "<=", ">=", "<", ">", "(", ")", ",", "+", "*", "-"];

pub fn tokens(text: &str) -> Result<Vec<(Token<'_>, Span)>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        } else if next == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if next.is_ascii_alphabetic() || next == '_' {
            let word = &rest[..prefix_length(rest, |c| c.is_ascii_alphanumeric() || c == '_')];
            tokens.push((Token::Word(word), at..at + word.len()));
            word.len()
        } else if next.is_ascii_digit() {
            let digits = &rest[..prefix_length(rest, |c| c.is_ascii_digit())];
            let span = at..at + digits.len();
            let value = digits
                .parse()
                .map_err(|_| SyntaxError::new("this number is too large for a definition", span.clone()))?;
            tokens.push((Token::Integer(value), span));
            digits.len()
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            tokens.push((Token::Symbol(symbol), at..at + symbol.len()));
            symbol.len()
        } else {
            return Err(unexpected(next, at));
        };
        at += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

/// Bytes of the longest prefix whose characters are accepted.
fn prefix_length(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accept(c)).unwrap_or(text.len())
}

fn unexpected(character: char, at: usize) -> SyntaxError {
    let error =
        SyntaxError::new(format!("`{character}` has no meaning in an expression"), at..at + character.len_utf8());
    match character {
        '×' => error.with_help("write the cartesian product as `*`"),
        '⊕' => error.with_help("write the sum as `+`"),
        '=' => error.with_help("write equality as `==`"),
        '&' => error.with_help("write `and`"),
        '|' => error.with_help("write `or`"),
        '!' => error.with_help("write `not`; inequality is `!=`"),
        _ => error,
    }
}
