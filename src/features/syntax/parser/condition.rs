//! Conditions: `or` over `and` over `not` over comparisons of integer terms.

use super::super::lexer::Token;
use super::super::{AxisKind, Comparison, Condition, SyntaxError, Term};
use super::{MAX_DEPTH, Parsed, Parser, named_value};

/// What a term may be.
const TERMS: &str = "an axis, a count, a number or the name of a value";

/// A condition and an integer term look alike until an operator tells them apart.
enum Value {
    Truth(Condition),
    Number(Term),
}

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Parsed<Condition> {
        let start = self.span().start;
        match self.either()? {
            Value::Truth(condition) => Ok(condition),
            Value::Number(_) => Err(self.no_comparison(start)),
        }
    }

    /// A number where a condition should stand, often a sum that outside brackets ends the block.
    fn no_comparison(&self, start: usize) -> SyntaxError {
        let error = SyntaxError::new("expected a comparison, found a number", start..self.end());
        if self.peek() == Token::Symbol("+") && self.open == 0 {
            return SyntaxError::new("a sum in a condition stands in brackets", start..self.span().end)
                .with_help("outside brackets `+` begins the next block; write `(rank(P) + 1) == rank(K)`");
        }
        error.with_help("compare it: `file(P) == 3`")
    }

    fn either(&mut self) -> Parsed<Value> {
        self.joined("or", Parser::both, Condition::Any)
    }

    fn both(&mut self) -> Parsed<Value> {
        self.joined("and", Parser::negation, Condition::All)
    }

    fn joined(
        &mut self,
        word: &str,
        operand: fn(&mut Self) -> Parsed<Value>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Parsed<Value> {
        let start = self.span().start;
        let first = operand(self)?;
        if !matches!(self.peek(), Token::Word(found) if found == word) {
            return Ok(first);
        }
        let mut conditions = vec![self.truth(first, start)?];
        while self.eat_word(word) {
            let start = self.span().start;
            let next = operand(self)?;
            conditions.push(self.truth(next, start)?);
        }
        Ok(Value::Truth(join(conditions)))
    }

    fn negation(&mut self) -> Parsed<Value> {
        if !self.eat_word("not") {
            return self.comparison();
        }
        let start = self.span().start;
        let inner = self.deeper(Parser::negation)?;
        Ok(Value::Truth(Condition::Not(Box::new(self.truth(inner, start)?))))
    }

    fn comparison(&mut self) -> Parsed<Value> {
        let start = self.span().start;
        let left = self.sum()?;
        let Some(comparison) = self.comparison_symbol() else { return Ok(left) };
        let left = self.number(left, start)?;
        let start = self.span().start;
        let right = self.sum()?;
        let right = self.number(right, start)?;
        Ok(Value::Truth(Condition::Compare(left, comparison, right)))
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

    fn sum(&mut self) -> Parsed<Value> {
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
                return Err(SyntaxError::new(format!("a sum has more than {MAX_DEPTH} terms"), self.span()));
            }
            self.advance();
            let first = self.number(left, start)?;
            let start = self.span().start;
            let second = self.unary()?;
            left = Value::Number(join(Box::new(first), Box::new(self.number(second, start)?)));
        }
    }

    fn unary(&mut self) -> Parsed<Value> {
        let start = self.span();
        if self.eat("-") {
            let inner = self.deeper(Parser::unary)?;
            return Ok(Value::Number(Term::Negative(Box::new(self.number(inner, start.end)?))));
        }
        if self.eat("(") {
            let inner = self.nested(Parser::either)?;
            self.expect(")")?;
            return Ok(inner);
        }
        match self.peek() {
            Token::Integer(value) => {
                self.advance();
                let value = u32::try_from(value).map_err(|_| {
                    SyntaxError::new("this number is too large to compare: numbers in an `if` have 32 bits", start)
                })?;
                Ok(Value::Number(Term::Number(i64::from(value))))
            }
            Token::Word("abs") => {
                self.advance();
                self.expect("(")?;
                let start = self.span().start;
                let inner = self.nested(Parser::either)?;
                let inner = self.number(inner, start)?;
                self.expect(")")?;
                Ok(Value::Number(Term::Absolute(Box::new(inner))))
            }
            Token::Word("count") if self.second() == Token::Symbol("(") => {
                let count = self.nested(|parser| parser.count(start.start))?;
                Ok(Value::Number(Term::Count(Box::new(count))))
            }
            Token::Word(_) if self.second() == Token::Symbol("(") => Ok(Value::Number(Term::Axis(self.axis()?))),
            Token::Word(word) => {
                let kinds = [AxisKind::Square, AxisKind::File, AxisKind::Role, AxisKind::Color];
                let Some(value) = kinds.iter().find_map(|kind| named_value(kind, word)) else {
                    return Err(self.expected(TERMS));
                };
                self.advance();
                Ok(Value::Number(Term::Named(word.to_owned(), i64::from(value))))
            }
            _ => Err(self.expected(TERMS)),
        }
    }

    fn truth(&self, value: Value, start: usize) -> Parsed<Condition> {
        match value {
            Value::Truth(condition) => Ok(condition),
            Value::Number(_) => Err(self.no_comparison(start)),
        }
    }

    fn number(&self, value: Value, start: usize) -> Parsed<Term> {
        match value {
            Value::Number(term) => Ok(term),
            Value::Truth(_) => Err(SyntaxError::new("expected a number, found a comparison", start..self.end())),
        }
    }
}
