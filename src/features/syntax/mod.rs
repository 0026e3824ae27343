//! The expression language of feature sets: text → tokens → syntax tree. Nodes keep their spans for error messages.

mod axes;
mod axis;
mod lexer;
mod parser;
mod print;

use std::ops::Range;

use super::source::Source;

pub use axis::{Axis, AxisKind};
pub use parser::{parse, parse_product};
pub use print::{canonical_text, display_text, factor_text};

/// Byte range in the expression's text.
pub type Span = Range<usize>;

/// A mistake in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub message: String,
    pub span: Span,
    pub help: Option<String>,
}

impl SyntaxError {
    pub fn new(message: impl Into<String>, span: Span) -> SyntaxError {
        SyntaxError { message: message.into(), span, help: None }
    }

    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> SyntaxError {
        self.help = Some(help.into());
        self
    }

    /// Adds the known name closest to `given` as help, when one is close.
    #[must_use]
    pub fn suggesting<'a>(self, given: &str, known: impl IntoIterator<Item = &'a str>) -> SyntaxError {
        match nearest(given, known) {
            Some(name) => self.with_help(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

/// The known name closest to `given`; `None` when all differ in more than about a third of their letters.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(&given.to_lowercase(), name);
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .min()
        .map(|(_, name)| name)
}

/// A variable: a single capital letter. `K` (own king) and `E` (enemy king) are always bound.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Letter(pub char);

impl Letter {
    pub const OWN_KING: Letter = Letter('K');
    pub const ENEMY_KING: Letter = Letter('E');
}

/// An occurrence of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub letter: Letter,
    pub span: Span,
}

/// A term of the sum that makes up a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockExpr {
    /// All blocks of another definition.
    Named {
        name: String,
        span: Span,
    },
    Product(Box<ProductBlock>),
}

/// `product for binders if condition`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductBlock {
    pub product: Product,
    pub binders: Vec<Binder>,
    pub condition: Option<Condition>,
    pub span: Span,
}

/// Factors in order of falling strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    pub factors: Vec<Factor>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Factor {
    Axis(Axis),
    Difference(Axis, Axis, Span),
    Sum(Vec<Product>, Span),
    Reserved(u32, Span),
    Count(Box<Count>),
    Reach(Reach),
    /// Unordered pairs of elements of two products.
    Pair(Box<[Product; 2]>, Span),
}

/// `reach(P, T, bishop)`: the squares that a piece attacks on an empty board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    pub attacker: Variable,
    pub target: Variable,
    /// 0–5 from pawn to king.
    pub role: u32,
    pub span: Span,
}

/// `count(MAX for binders if condition)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    pub max: u32,
    pub binders: Vec<Binder>,
    pub condition: Option<Condition>,
    pub span: Span,
}

/// `VAR in source`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binder {
    pub variable: Variable,
    pub source: Source<Variable>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Term, Comparison, Term),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    pub const fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::Unequal => "!=",
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
        }
    }

    pub const fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::Unequal => left != right,
            Comparison::Less => left < right,
            Comparison::LessEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterEqual => left >= right,
        }
    }

    /// Whether the comparison may hold, and whether it may fail, for left and right values in these closed ranges.
    pub const fn outcomes(self, left: (i64, i64), right: (i64, i64)) -> (bool, bool) {
        let (holds, fails) = match self {
            Comparison::Equal | Comparison::Unequal => {
                let may_be_equal = left.0 <= right.1 && right.0 <= left.1;
                let may_differ = left.0 != left.1 || right.0 != right.1 || left.0 != right.0;
                if matches!(self, Comparison::Equal) { (may_be_equal, may_differ) } else { (may_differ, may_be_equal) }
            }
            Comparison::Less => (left.0 < right.1, left.1 >= right.0),
            Comparison::LessEqual => (left.0 <= right.1, left.1 > right.0),
            Comparison::Greater => (left.1 > right.0, left.0 <= right.1),
            Comparison::GreaterEqual => (left.1 >= right.0, left.0 < right.1),
        };
        (holds, fails)
    }
}

/// An integer term of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    Number(i64),
    /// A value's name and plain number.
    Named(String, i64),
    Axis(Axis),
    /// Clamped to its maximum.
    Count(Box<Count>),
    Negative(Box<Term>),
    Absolute(Box<Term>),
    Sum(Box<Term>, Box<Term>),
    Difference(Box<Term>, Box<Term>),
}
