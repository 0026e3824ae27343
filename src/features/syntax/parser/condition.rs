//! Parses conditions. Precedence, loosest first: `or`, `and`, `not`, comparisons, sums and differences, signs.

use super::super::axis::{COLORS, ROLES};
use super::super::lexer::Token;
use super::super::{AxisKind, Comparison, Condition, SyntaxError, Term};
use super::{MAX_DEPTH, Parsed, Parser};

/// Description of a term for error messages.
const TERMS: &str = "an axis, a count, a number or the name of a value";

/// The value that a word names on any axis.
fn named_value(word: &str) -> Option<u32> {
    AxisKind::<String>::WITH_NAMED_VALUES.iter().find_map(|kind| kind.named_value(word))
}

/// A parsed operand. A bracket may open a condition or an integer term; only the parsed operators tell which.
enum Operand {
    Condition(Condition),
    Term(Term),
}

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Parsed<Condition> {
        let start = self.span().start;
        match self.disjunction()? {
            Operand::Condition(condition) => Ok(condition),
            Operand::Term(_) => Err(self.not_a_comparison(start)),
        }
    }

    /// The error for a number in the place of a condition, often a sum without brackets.
    fn not_a_comparison(&self, start: usize) -> SyntaxError {
        let error = SyntaxError::new("expected a comparison, found a number", start..self.end());
        if let Token::Word(word @ ("is" | "equals" | "in")) = self.peek() {
            let error = SyntaxError::new(format!("`{word}` does not compare"), self.span());
            return error.with_help(match word {
                "in" => "compare with each value: `(role(P) == pawn or role(P) == knight)`",
                _ => "write equality as `==`, as in `role(P) == pawn`, and inequality as `!=`",
            });
        }
        if self.peek() == Token::Symbol("+") && self.open == 0 {
            return SyntaxError::new("a sum in a condition needs brackets", start..self.span().end)
                .with_help("outside brackets `+` starts the next block; write `(rank(P) + 1) == rank(K)`");
        }
        error.with_help("compare the number, as in `file(P) == 3`")
    }

    fn disjunction(&mut self) -> Parsed<Operand> {
        self.joined("or", Parser::conjunction, Condition::Any)
    }

    fn conjunction(&mut self) -> Parsed<Operand> {
        self.joined("and", Parser::negation, Condition::All)
    }

    fn joined(
        &mut self,
        word: &str,
        operand: fn(&mut Self) -> Parsed<Operand>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Parsed<Operand> {
        let start = self.span().start;
        let first = operand(self)?;
        if self.peek() != Token::Word(word) {
            return Ok(first);
        }
        let mut conditions = vec![self.expect_condition(first, start)?];
        while self.eat_word(word) {
            let start = self.span().start;
            let next = operand(self)?;
            conditions.push(self.expect_condition(next, start)?);
        }
        Ok(Operand::Condition(join(conditions)))
    }

    fn negation(&mut self) -> Parsed<Operand> {
        if !self.eat_word("not") {
            return self.comparison();
        }
        let start = self.span().start;
        let inner = self.deeper(Parser::negation)?;
        Ok(Operand::Condition(Condition::Not(Box::new(self.expect_condition(inner, start)?))))
    }

    fn comparison(&mut self) -> Parsed<Operand> {
        let start = self.span().start;
        let left = self.sum()?;
        let Some(comparison) = self.comparison_symbol() else { return Ok(left) };
        let left = self.expect_term(left, start)?;
        let start = self.span().start;
        let right = self.sum()?;
        let right = self.expect_term(right, start)?;
        Ok(Operand::Condition(Condition::Compare(left, comparison, right)))
    }

    fn comparison_symbol(&mut self) -> Option<Comparison> {
        let comparison = match self.peek() {
            Token::Symbol("==") => Comparison::Equal,
            Token::Symbol("!=") => Comparison::Unequal,
            Token::Symbol("<") => Comparison::Less,
            Token::Symbol("<=") => Comparison::LessEqual,
            Token::Symbol(">") => Comparison::Greater,
            Token::Symbol(">=") => Comparison::GreaterEqual,
            _ => return None,
        };
        self.advance();
        Some(comparison)
    }

    fn sum(&mut self) -> Parsed<Operand> {
        let start = self.span().start;
        let mut left = self.unary()?;
        let mut terms = 1;
        loop {
            let join = match self.peek() {
                Token::Symbol("+") if self.open > 0 => Term::Sum,
                Token::Symbol("-") => Term::Difference,
                _ => return Ok(left),
            };
            terms += 1;
            if terms > MAX_DEPTH {
                return Err(SyntaxError::new(format!("this sum has more than {MAX_DEPTH} terms"), self.span()));
            }
            self.advance();
            let first = self.expect_term(left, start)?;
            let start = self.span().start;
            let second = self.unary()?;
            left = Operand::Term(join(Box::new(first), Box::new(self.expect_term(second, start)?)));
        }
    }

    fn unary(&mut self) -> Parsed<Operand> {
        let start = self.span();
        if self.eat("-") {
            let inner = self.deeper(Parser::unary)?;
            return Ok(Operand::Term(Term::Negative(Box::new(self.expect_term(inner, start.end)?))));
        }
        if self.eat("(") {
            let inner = self.nested(Parser::disjunction)?;
            self.expect(")")?;
            return Ok(inner);
        }
        match self.peek() {
            Token::Integer(value) => {
                self.advance();
                let value = u32::try_from(value).map_err(|_| {
                    SyntaxError::new("this number is too large to compare: numbers in an `if` have 32 bits", start)
                })?;
                Ok(Operand::Term(Term::Number(i64::from(value))))
            }
            Token::Word("abs") => {
                self.advance();
                self.expect("(")?;
                let start = self.span().start;
                let inner = self.nested(Parser::disjunction)?;
                let inner = self.expect_term(inner, start)?;
                self.expect(")")?;
                Ok(Operand::Term(Term::Absolute(Box::new(inner))))
            }
            Token::Word("count") if self.second() == Token::Symbol("(") => {
                let count = self.nested(|parser| parser.count(start.start))?;
                Ok(Operand::Term(Term::Count(Box::new(count))))
            }
            Token::Word(_) if self.second() == Token::Symbol("(") => Ok(Operand::Term(Term::Axis(self.axis()?))),
            Token::Word(word) => {
                let Some(value) = named_value(word) else {
                    return Err(self.unknown_value(word));
                };
                self.advance();
                Ok(Operand::Term(Term::Named(word.to_owned(), i64::from(value))))
            }
            _ => Err(self.expected(TERMS)),
        }
    }

    /// The error for a word that names no value.
    fn unknown_value(&self, word: &str) -> SyntaxError {
        let error = self.expected(TERMS);
        let lower = word.to_lowercase();
        match lower.as_str() {
            "white" | "black" => error.with_help(AxisKind::<String>::Color.values_help()),
            _ if named_value(&lower).is_some() => error.with_help(format!("did you mean `{lower}`?")),
            _ => error.suggesting(word, ROLES.into_iter().chain(COLORS)),
        }
    }

    fn expect_condition(&self, operand: Operand, start: usize) -> Parsed<Condition> {
        match operand {
            Operand::Condition(condition) => Ok(condition),
            Operand::Term(_) => Err(self.not_a_comparison(start)),
        }
    }

    fn expect_term(&self, operand: Operand, start: usize) -> Parsed<Term> {
        match operand {
            Operand::Term(term) => Ok(term),
            Operand::Condition(_) => Err(SyntaxError::new("expected a number, found a comparison", start..self.end())),
        }
    }
}
