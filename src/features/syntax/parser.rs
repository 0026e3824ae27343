//! Recursive-descent parser of feature-set expressions; [`condition`] parses the part behind `if`.

mod condition;

use super::lexer::{Token, tokens};
use super::{
    Axis, AxisKind, Binder, BlockExpr, Count, Factor, Letter, Product, ProductBlock, Reach, Span, SyntaxError, Variable,
};
use crate::features::source::{Direction, Source};

type Parsed<T> = Result<T, SyntaxError>;

/// Longest expression in bytes.
const MAX_TEXT: usize = 1 << 16;
/// Deepest nesting of brackets, which bounds the parser's recursion.
const MAX_DEPTH: u32 = 64;

const KEYWORDS: [&str; 10] = ["for", "in", "if", "and", "or", "not", "abs", "count", "reserved", "bucket"];

/// Parses the expression of a set.
///
/// # Errors
/// The first token that does not fit the grammar.
pub fn parse(text: &str) -> Parsed<Vec<BlockExpr>> {
    let tokens = limited_tokens(text)?;
    let mut parser = Parser::new(text, &tokens);
    let blocks = parser.set()?;
    parser.finish("`*`, `+`, `for`, `if` or the end").map(|()| blocks)
}

/// Parses a product, as in the key `factor`.
///
/// # Errors
/// As [`parse`].
pub fn parse_product(text: &str) -> Parsed<Product> {
    let tokens = limited_tokens(text)?;
    let mut parser = Parser::new(text, &tokens);
    let product = parser.product()?;
    parser.finish("`*` or the end").map(|()| product)
}

fn limited_tokens(text: &str) -> Parsed<Vec<(Token<'_>, Span)>> {
    if text.len() > MAX_TEXT {
        let message = format!("the expression has {} bytes; at most {MAX_TEXT} are allowed", text.len());
        return Err(SyntaxError::new(message, 0..0));
    }
    tokens(text)
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [(Token<'a>, Span)],
    at: usize,
    depth: u32,
    /// Open brackets; `+` ends a block when there are none.
    open: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: &'a [(Token<'a>, Span)]) -> Parser<'a> {
        Parser { text, tokens, at: 0, depth: 0, open: 0 }
    }

    /// Fails unless the text ends here; `alternatives` names the tokens that could have followed.
    fn finish(&self, alternatives: &str) -> Parsed<()> {
        match self.peek() {
            Token::End => Ok(()),
            Token::Symbol("-") => {
                let error = self.expected(alternatives);
                Err(error.with_help("write a difference of axes in brackets: `(file(K) - file(P))`"))
            }
            _ => Err(self.expected(alternatives)),
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens[self.at].0
    }

    fn second(&self) -> Token<'a> {
        self.tokens.get(self.at + 1).map_or(Token::End, |(token, _)| *token)
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1.clone()
    }

    /// End of the previous token.
    fn end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |last| self.tokens[last].1.end)
    }

    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn expected(&self, what: &str) -> SyntaxError {
        SyntaxError::new(format!("expected {what}, found {}", self.peek().describe()), self.span())
            .with_help("`fsbench help language` prints the grammar")
    }

    fn eat(&mut self, symbol: &'static str) -> bool {
        let matches = self.peek() == Token::Symbol(symbol);
        if matches {
            self.advance();
        }
        matches
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let matches = self.peek() == Token::Word(word);
        if matches {
            self.advance();
        }
        matches
    }

    fn expect(&mut self, symbol: &'static str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    /// Parses the inside of brackets.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.open += 1;
        let result = self.deeper(inner);
        self.open -= 1;
        result
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(SyntaxError::new(format!("brackets are nested more than {MAX_DEPTH} deep"), self.span()));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn set(&mut self) -> Parsed<Vec<BlockExpr>> {
        let mut blocks = vec![self.block()?];
        while self.eat("+") {
            let conditional = matches!(blocks.last(), Some(BlockExpr::Product(block)) if block.condition.is_some());
            if conditional && matches!(self.peek(), Token::Integer(_) | Token::Word("abs")) {
                let start = self.at.checked_sub(1).map_or(0, |plus| self.tokens[plus].1.start);
                let message = "a sum in a condition needs brackets";
                return Err(SyntaxError::new(message, start..self.span().end)
                    .with_help("outside brackets `+` starts the next block; write `rank(K) == (rank(P) + 1)`"));
            }
            blocks.push(self.block()?);
        }
        Ok(blocks)
    }

    fn block(&mut self) -> Parsed<BlockExpr> {
        if let (Token::Word(_), next) = (self.peek(), self.second())
            && next != Token::Symbol("(")
        {
            let start = self.at;
            let (name, span) = self.hyphenated()?;
            if KEYWORDS.contains(&name.as_str()) {
                self.at = start;
                return Err(self.expected("a block"));
            }
            return Ok(BlockExpr::Named { name, span });
        }
        let start = self.span().start;
        let product = self.product()?;
        let binders = if self.eat_word("for") { self.binders()? } else { Vec::new() };
        let condition = if self.eat_word("if") { Some(self.condition()?) } else { None };
        Ok(BlockExpr::Product(Box::new(ProductBlock { product, binders, condition, span: start..self.end() })))
    }

    /// A set's name: words, numbers and hyphens without space between them.
    fn hyphenated(&mut self) -> Parsed<(String, Span)> {
        let start = self.span();
        let Token::Word(_) = self.peek() else { return Err(self.expected("a name")) };
        self.advance();
        let mut end = start.end;
        while self.span().start == end && matches!(self.peek(), Token::Symbol("-") | Token::Word(_) | Token::Integer(_))
        {
            end = self.span().end;
            self.advance();
        }
        // As it is written: numbers may begin with zeros.
        Ok((self.text[start.start..end].to_owned(), start.start..end))
    }

    fn product(&mut self) -> Parsed<Product> {
        let start = self.span().start;
        let mut factors = vec![self.factor()?];
        while self.eat("*") {
            factors.push(self.factor()?);
        }
        Ok(Product { factors, span: start..self.end() })
    }

    fn factor(&mut self) -> Parsed<Factor> {
        let start = self.span().start;
        match self.peek() {
            Token::Symbol("(") => self.nested(|parser| parser.bracketed(start)),
            Token::Word("reserved") => {
                self.advance();
                self.expect("(")?;
                let span = self.span();
                let size = self.integer("the number of reserved indices", u32::MAX)?;
                if size == 0 {
                    return Err(SyntaxError::new("`reserved` needs at least 1 index", span));
                }
                self.expect(")")?;
                Ok(Factor::Reserved(size, start..self.end()))
            }
            Token::Word("reach") => self.reach(start).map(Factor::Reach),
            Token::Word("pair") => self.nested(|parser| parser.pair(start)),
            Token::Word("count") => {
                self.nested(|parser| parser.count(start)).map(|count| Factor::Count(Box::new(count)))
            }
            Token::Word(_) if self.second() == Token::Symbol("(") => self.axis().map(Factor::Axis),
            _ => Err(self.expected("an axis, `reach(…)`, `pair(…)`, `count(…)`, `reserved(…)` or `(`").with_help(
                "axes are square, file, rank, diagonal, antidiagonal, role, color and bucket; a named set \
                    cannot be a factor",
            )),
        }
    }

    /// `(product + product …)` or `(axis - axis)`.
    fn bracketed(&mut self, start: usize) -> Parsed<Factor> {
        self.expect("(")?;
        let first = self.product()?;
        if self.eat("-") {
            let right = self.axis()?;
            self.expect(")")?;
            let span = start..self.end();
            return match <[Factor; 1]>::try_from(first.factors) {
                Ok([Factor::Axis(left)]) => Ok(Factor::Difference(left, right, span)),
                _ => Err(SyntaxError::new("only two axes can be subtracted", first.span)),
            };
        }
        let mut products = vec![first];
        while self.eat("+") {
            products.push(self.product()?);
        }
        if !self.eat(")") {
            return Err(self.expected("`*`, `+`, `-` or `)`"));
        }
        Ok(Factor::Sum(products, start..self.end()))
    }

    /// `reach(P, T, ROLE)`
    fn reach(&mut self, start: usize) -> Parsed<Reach> {
        self.advance();
        self.expect("(")?;
        let attacker = self.variable()?;
        self.expect(",")?;
        let target = self.variable()?;
        self.expect(",")?;
        let role = self.domain_value(&AxisKind::Role)?;
        self.expect(")")?;
        Ok(Reach { attacker, target, role, span: start..self.end() })
    }

    /// `pair(product, product)`
    fn pair(&mut self, start: usize) -> Parsed<Factor> {
        self.advance();
        self.expect("(")?;
        let first = self.product()?;
        self.expect(",")?;
        let second = self.product()?;
        self.expect(")")?;
        Ok(Factor::Pair(Box::new([first, second]), start..self.end()))
    }

    fn count(&mut self, start: usize) -> Parsed<Count> {
        self.advance();
        self.expect("(")?;
        let max = self.integer("the largest count", u32::MAX - 1)?;
        if !self.eat_word("for") {
            return Err(self.expected("`for`"));
        }
        let binders = self.binders()?;
        let condition = if self.eat_word("if") { Some(self.condition()?) } else { None };
        self.expect(")")?;
        Ok(Count { max, binders, condition, span: start..self.end() })
    }

    /// A number of at most `most`.
    fn integer(&mut self, what: &str, most: u32) -> Parsed<u32> {
        let Token::Integer(value) = self.peek() else { return Err(self.expected(what)) };
        let value = u32::try_from(value)
            .ok()
            .filter(|value| *value <= most)
            .ok_or_else(|| SyntaxError::new("this number is too large; indices have 32 bits", self.span()))?;
        self.advance();
        Ok(value)
    }

    fn axis(&mut self) -> Parsed<Axis> {
        let start = self.span();
        let Token::Word(word) = self.peek() else { return Err(self.expected("an axis")) };
        if word == "bucket" {
            return self.bucket(start.start);
        }
        let Some(kind) = AxisKind::ALL.into_iter().find(|kind| kind.name() == word) else {
            let known = AxisKind::<String>::ALL.map(|kind| kind.name()).into_iter();
            let known = known.chain(["bucket", "reach", "pair", "count", "reserved"]);
            return Err(SyntaxError::new(format!("there is no axis `{word}`"), start).suggesting(word, known));
        };
        self.advance();
        self.expect("(")?;
        let variable = self.variable()?;
        let domain = if self.eat(",") { Some(self.domain(&kind)?) } else { None };
        self.expect(")")?;
        Ok(Axis { kind, variable, domain, span: start.start..self.end() })
    }

    fn bucket(&mut self, start: usize) -> Parsed<Axis> {
        self.advance();
        self.expect("(")?;
        let variable = self.variable()?;
        self.expect(",")?;
        let (name, _) = self.hyphenated()?;
        self.expect(")")?;
        Ok(Axis { kind: AxisKind::Bucket(name), variable, domain: None, span: start..self.end() })
    }

    fn variable(&mut self) -> Parsed<Variable> {
        let span = self.span();
        let Token::Word(word) = self.peek() else { return Err(self.expected("a variable (a capital letter)")) };
        let mut letters = word.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii_uppercase() => {
                self.advance();
                Ok(Variable { letter: Letter(letter), span })
            }
            _ => Err(SyntaxError::new(format!("`{word}` is not a variable"), span)
                .with_help("a variable is a single capital letter; K is the own king and E the enemy king")),
        }
    }

    fn domain(&mut self, kind: &AxisKind) -> Parsed<Vec<u32>> {
        let mut values: Vec<u32> = Vec::new();
        loop {
            let start = self.span();
            let first = self.domain_value(kind)?;
            let last = if self.eat("..") { self.domain_value(kind)? } else { first };
            let span = start.start..self.end();
            if last < first {
                return Err(SyntaxError::new("this range runs downwards; list such values one by one", span));
            }
            for value in first..=last {
                if values.contains(&value) {
                    return Err(SyntaxError::new("this domain repeats a value", span));
                }
                values.push(value);
            }
            if !self.eat(",") {
                return Ok(values);
            }
        }
    }

    /// A domain's value by name or number.
    fn domain_value(&mut self, kind: &AxisKind) -> Parsed<u32> {
        let span = self.span();
        let value = match self.peek() {
            Token::Integer(number) => kind.numbered_value(number),
            Token::Word(word) => kind.named_value(word),
            _ => None,
        };
        let Some(value) = value else {
            let message = format!("{} is not a value of `{}`", self.peek().describe(), kind.name());
            return Err(SyntaxError::new(message, span).with_help(kind.values_help()));
        };
        self.advance();
        Ok(value)
    }

    fn binders(&mut self) -> Parsed<Vec<Binder>> {
        let mut binders = vec![self.binder()?];
        while self.eat(",") {
            binders.push(self.binder()?);
        }
        Ok(binders)
    }

    fn binder(&mut self) -> Parsed<Binder> {
        let start = self.span().start;
        let variable = self.variable()?;
        if !self.eat_word("in") {
            return Err(self.expected("`in`"));
        }
        let source = self.source()?;
        Ok(Binder { variable, source, span: start..self.end() })
    }

    fn source(&mut self) -> Parsed<Source<Variable>> {
        let span = self.span();
        let Token::Word(word) = self.peek() else { return Err(self.expected("a source")) };
        let Some(source) = Source::ALL.into_iter().find(|source| source.name() == word) else {
            return Err(SyntaxError::new(format!("there is no source `{word}`"), span)
                .suggesting(word, Source::ALL.iter().map(Source::name))
                .or_help(
                    "sources are pieces, moves(P), attacks(P), targets(P) and next(P, east|north|northeast|northwest)",
                ));
        };
        self.advance();
        if source.origin().is_none() {
            return Ok(Source::Pieces);
        }
        self.expect("(")?;
        let source = source.map(|()| self.variable())?;
        let source = if source.direction().is_some() {
            self.expect(",")?;
            source.towards(self.direction()?)
        } else {
            source
        };
        self.expect(")")?;
        Ok(source)
    }

    fn direction(&mut self) -> Parsed<Direction> {
        let names = Direction::NAMED.iter().map(|(name, _)| *name);
        let Token::Word(word) = self.peek() else { return Err(self.expected("a direction")) };
        let Some((_, direction)) = Direction::NAMED.iter().find(|(name, _)| *name == word) else {
            return Err(SyntaxError::new(format!("there is no direction `{word}`"), self.span())
                .suggesting(word, names)
                .or_help("directions are east, north, northeast and northwest"));
        };
        self.advance();
        Ok(*direction)
    }
}

impl SyntaxError {
    fn or_help(mut self, help: &str) -> SyntaxError {
        self.help.get_or_insert_with(|| help.to_owned());
        self
    }
}
