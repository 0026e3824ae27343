//! Syntax tree → text: the canonical text, which layout and letters do not change, and the text for display.

use std::fmt::{self, Display, Formatter};

use super::axis::ROLES;
use super::{Axis, AxisKind, Binder, Condition, Count, Factor, Letter, Product, ProductBlock, Reach, Term, Variable};
use crate::features::source::Source;

/// The block in canonical spelling. `letter` renames all variables but `K` and `E`.
pub fn canonical_text(block: &ProductBlock, letter: &dyn Fn(Letter) -> char) -> String {
    Printer { letter, names: false }.text(|p, f| p.block(block, f))
}

/// The block for display, with the author's letters, ranges and value names.
pub fn display_text(block: &ProductBlock) -> String {
    Printer { letter: &|letter| letter.0, names: true }.text(|p, f| p.block(block, f))
}

/// A factor for display, with the author's letters, ranges and value names.
pub fn factor_text(factor: &Factor) -> String {
    Printer { letter: &|letter| letter.0, names: true }.text(|p, f| p.factor(factor, f))
}

struct Printer<'a> {
    letter: &'a dyn Fn(Letter) -> char,
    /// Whether to print consecutive values as ranges, and values by the names that the author gave them.
    names: bool,
}

/// Adapts a printing method to `Display`.
struct DisplayWith<F>(F);

impl<F: Fn(&mut Formatter<'_>) -> fmt::Result> Display for DisplayWith<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}

impl Printer<'_> {
    fn text(&self, print: impl Fn(&Self, &mut Formatter<'_>) -> fmt::Result) -> String {
        DisplayWith(|f: &mut Formatter<'_>| print(self, f)).to_string()
    }

    fn block(&self, block: &ProductBlock, f: &mut Formatter<'_>) -> fmt::Result {
        self.product(&block.product, f)?;
        self.for_and_if(&block.binders, block.condition.as_ref(), f)
    }

    fn for_and_if(&self, binders: &[Binder], condition: Option<&Condition>, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, binder) in binders.iter().enumerate() {
            f.write_str(if at == 0 { " for " } else { ", " })?;
            write!(f, "{} in ", self.name(&binder.variable))?;
            self.source(&binder.source, f)?;
        }
        if let Some(condition) = condition {
            f.write_str(" if ")?;
            self.condition(condition, f)?;
        }
        Ok(())
    }

    fn product(&self, product: &Product, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, factor) in product.factors.iter().enumerate() {
            if at > 0 {
                f.write_str(" * ")?;
            }
            self.factor(factor, f)?;
        }
        Ok(())
    }

    fn factor(&self, factor: &Factor, f: &mut Formatter<'_>) -> fmt::Result {
        match factor {
            Factor::Axis(axis) => self.axis(axis, f),
            Factor::Difference(left, right, _) => {
                f.write_str("(")?;
                self.axis(left, f)?;
                f.write_str(" - ")?;
                self.axis(right, f)?;
                f.write_str(")")
            }
            Factor::Sum(products, _) => {
                f.write_str("(")?;
                for (at, product) in products.iter().enumerate() {
                    if at > 0 {
                        f.write_str(" + ")?;
                    }
                    self.product(product, f)?;
                }
                f.write_str(")")
            }
            Factor::Reserved(size, _) => write!(f, "reserved({size})"),
            Factor::Count(count) => self.count(count, f),
            Factor::Reach(Reach { attacker, target, role, .. }) => {
                let role = ROLES[*role as usize];
                write!(f, "reach({}, {}, {role})", self.name(attacker), self.name(target))
            }
            Factor::Pair(sides, _) => {
                f.write_str("pair(")?;
                self.product(&sides[0], f)?;
                f.write_str(", ")?;
                self.product(&sides[1], f)?;
                f.write_str(")")
            }
        }
    }

    fn count(&self, count: &Count, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "count({}", count.max)?;
        self.for_and_if(&count.binders, count.condition.as_ref(), f)?;
        f.write_str(")")
    }

    fn axis(&self, axis: &Axis, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}", axis.kind.name(), self.name(&axis.variable))?;
        if let AxisKind::Bucket(name) = &axis.kind {
            write!(f, ", {name}")?;
        }
        let domain = axis.domain.as_deref().unwrap_or_default();
        for run in domain.chunk_by(|a, b| self.names && a + 1 == *b) {
            let name = |value: &u32| axis.kind.value_name(*value);
            match run {
                [first, _, .., last] => write!(f, ", {}..{}", name(first), name(last))?,
                short => short.iter().try_for_each(|value| write!(f, ", {}", name(value)))?,
            }
        }
        f.write_str(")")
    }

    fn source(&self, source: &Source<Variable>, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(source.name())?;
        let Some(of) = source.origin() else { return Ok(()) };
        write!(f, "({}", self.name(of))?;
        if let Some(direction) = source.direction() {
            write!(f, ", {}", direction.name())?;
        }
        f.write_str(")")
    }

    fn condition(&self, condition: &Condition, f: &mut Formatter<'_>) -> fmt::Result {
        match condition {
            Condition::Any(of) => self.joined(of, " or ", f),
            Condition::All(of) => self.joined(of, " and ", f),
            Condition::Not(of) => {
                f.write_str("not ")?;
                self.operand(of, f)
            }
            Condition::Compare(left, comparison, right) => {
                self.term(left, f)?;
                write!(f, " {} ", comparison.symbol())?;
                self.term(right, f)
            }
        }
    }

    fn joined(&self, of: &[Condition], word: &str, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, condition) in of.iter().enumerate() {
            if at > 0 {
                f.write_str(word)?;
            }
            self.operand(condition, f)?;
        }
        Ok(())
    }

    /// An operand of `and`, `or` or `not`, always in brackets.
    fn operand(&self, condition: &Condition, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        self.condition(condition, f)?;
        f.write_str(")")
    }

    fn term(&self, term: &Term, f: &mut Formatter<'_>) -> fmt::Result {
        match term {
            Term::Named(name, _) if self.names => f.write_str(name),
            Term::Number(value) | Term::Named(_, value) => write!(f, "{value}"),
            Term::Count(count) => self.count(count, f),
            Term::Axis(axis) => self.axis(axis, f),
            Term::Negative(of) => {
                f.write_str("-(")?;
                self.term(of, f)?;
                f.write_str(")")
            }
            Term::Absolute(of) => {
                f.write_str("abs(")?;
                self.term(of, f)?;
                f.write_str(")")
            }
            // Outside brackets `+` ends the block.
            Term::Sum(left, right) => {
                f.write_str("(")?;
                self.binary(left, " + ", right, f)?;
                f.write_str(")")
            }
            Term::Difference(left, right) => self.binary(left, " - ", right, f),
        }
    }

    fn binary(&self, left: &Term, symbol: &str, right: &Term, f: &mut Formatter<'_>) -> fmt::Result {
        self.term(left, f)?;
        f.write_str(symbol)?;
        if matches!(right, Term::Difference(..)) {
            f.write_str("(")?;
            self.term(right, f)?;
            f.write_str(")")
        } else {
            self.term(right, f)
        }
    }

    fn name(&self, variable: &Variable) -> char {
        match variable.letter {
            Letter::OWN_KING => 'K',
            Letter::ENEMY_KING => 'E',
            other => (self.letter)(other),
        }
    }
}
