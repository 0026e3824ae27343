//! Syntax tree → [`BlockSpec`]: variables, buckets and sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chess::Orientation;

use super::spec::{
    AxisSpec, BinderSpec, BlockSpec, Bucket, ConditionSpec, CountSpec, ENEMY_KING, FactorKind, FactorSpec, GuardSpec,
    Multiplicity, OWN_KING, ProductSpec, Property, SourceSpec, TermSpec, VariableKind,
};
use super::syntax::{
    Axis, AxisKind, Binder, Condition, Count, Factor, Letter, Product, SourceExpr, Span, SyntaxError, Term, Variable,
    Written, block_text, factor_text, written_text,
};

type Resolved<T> = Result<T, SyntaxError>;

/// Largest number of features: indices are `u32`, and the last one stands for "none".
pub const MAX_FEATURES: u64 = u32::MAX as u64;

/// What a definition gives all its written blocks.
pub struct Surroundings<'a> {
    pub orientation: Orientation,
    pub multiplicity: Multiplicity,
    pub buckets: &'a BTreeMap<String, Arc<Bucket>>,
}

/// Resolves one written block.
///
/// # Errors
/// Unknown or rebound variables, unknown buckets, axes a variable does not have, sizes beyond [`MAX_FEATURES`].
pub fn block(written: &Written, name: String, surroundings: &Surroundings<'_>) -> Resolved<BlockSpec> {
    let mut resolver = Resolver::new(surroundings);
    let binders = resolver.binders(&written.binders)?;
    let product = resolver.product(&written.product)?;
    let (condition, guards) = resolver.conditions(written.condition.as_ref())?;
    Ok(BlockSpec {
        name,
        text: canonical(written),
        written: written_text(written),
        orientation: surroundings.orientation,
        multiplicity: surroundings.multiplicity,
        variables: resolver.variables,
        binders,
        product,
        condition,
        guards,
        factor: None,
        offset: 0,
        kept: None,
    })
}

/// Resolves a factor of a written block: a product over the block's variables.
///
/// # Errors
/// As [`block`], and counts, which have variables of their own.
pub fn factor(written: &Written, product: &Product, surroundings: &Surroundings<'_>) -> Resolved<ProductSpec> {
    let mut resolver = Resolver::new(surroundings);
    resolver.binders(&written.binders)?;
    if let Some(span) = count_in(product) {
        let message = "a factor looks at the block's own variables; it has no counts";
        return Err(SyntaxError::new(message, span));
    }
    resolver.product(product)
}

fn count_in(product: &Product) -> Option<Span> {
    product.factors.iter().find_map(|factor| match factor {
        Factor::Count(count) => Some(count.span.clone()),
        Factor::Sum(products, _) => products.iter().find_map(count_in),
        Factor::Axis(_) | Factor::Difference(..) | Factor::Reserved(..) => None,
    })
}

/// Names of a block's variables in its canonical text, in the order they are bound.
const LETTERS: [char; 24] = [
    'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'A', 'B', 'C', 'D', 'F', 'G', 'H', 'I', 'J', 'L', 'M', 'N',
    'O',
];

/// The block's text with its variables renamed P, Q, R … in the order they are bound, so that letters do not matter.
fn canonical(written: &Written) -> String {
    let mut bound = Vec::new();
    let mut note = |binders: &[Binder]| bound.extend(binders.iter().map(|binder| binder.variable.letter));
    note(&written.binders);
    counts(&written.product, &mut note);
    written.condition.iter().for_each(|condition| condition_counts(condition, &mut note));
    let position = |letter| bound.iter().position(|known| *known == letter);
    block_text(written, &|letter| position(letter).and_then(|at| LETTERS.get(at)).copied().unwrap_or(letter.0))
}

fn counts(product: &Product, note: &mut impl FnMut(&[Binder])) {
    for factor in &product.factors {
        match factor {
            Factor::Count(count) => noted(count, note),
            Factor::Sum(products, _) => products.iter().for_each(|product| counts(product, note)),
            Factor::Axis(_) | Factor::Difference(..) | Factor::Reserved(..) => {}
        }
    }
}

fn noted(count: &Count, note: &mut impl FnMut(&[Binder])) {
    note(&count.binders);
    count.condition.iter().for_each(|condition| condition_counts(condition, note));
}

fn condition_counts(condition: &Condition, note: &mut impl FnMut(&[Binder])) {
    match condition {
        Condition::Any(of) | Condition::All(of) => of.iter().for_each(|condition| condition_counts(condition, note)),
        Condition::Not(of) => condition_counts(of, note),
        Condition::Compare(left, _, right) => [left, right].into_iter().for_each(|term| term_counts(term, note)),
    }
}

fn term_counts(term: &Term, note: &mut impl FnMut(&[Binder])) {
    match term {
        Term::Number(_) | Term::Named(..) | Term::Axis(_) => {}
        Term::Count(count) => noted(count, note),
        Term::Negative(of) | Term::Absolute(of) => term_counts(of, note),
        Term::Sum(left, right) | Term::Difference(left, right) => {
            [left, right].into_iter().for_each(|term| term_counts(term, note));
        }
    }
}

struct Resolver<'a> {
    surroundings: &'a Surroundings<'a>,
    scope: Vec<(Letter, usize)>,
    variables: Vec<VariableKind>,
}

impl<'a> Resolver<'a> {
    fn new(surroundings: &'a Surroundings<'a>) -> Resolver<'a> {
        let scope = vec![(Letter::OWN_KING, OWN_KING), (Letter::ENEMY_KING, ENEMY_KING)];
        Resolver { surroundings, scope, variables: vec![VariableKind::Piece; 2] }
    }

    fn slot(&self, variable: &Variable) -> Resolved<usize> {
        let found = self.scope.iter().find(|(letter, _)| *letter == variable.letter);
        found.map(|(_, slot)| *slot).ok_or_else(|| {
            let letters = self.scope.iter().map(|(letter, _)| letter.0.to_string()).collect::<Vec<_>>();
            let name = variable.letter.0;
            SyntaxError::new(format!("`{name}` is not bound here"), variable.span.clone()).with_help(format!(
                "bound here: {}; bind it after `for`, as in `for {name} in pieces`",
                letters.join(", ")
            ))
        })
    }

    /// A slot that holds a piece.
    fn piece(&self, variable: &Variable) -> Resolved<usize> {
        let slot = self.slot(variable)?;
        match self.variables[slot] {
            VariableKind::Piece => Ok(slot),
            VariableKind::Square => {
                let message = format!("`{}` is a bare square; a piece or king is needed here", variable.letter.0);
                Err(SyntaxError::new(message, variable.span.clone()))
            }
        }
    }

    fn binders(&mut self, binders: &[Binder]) -> Resolved<Vec<BinderSpec>> {
        binders.iter().map(|binder| self.binder(binder)).collect()
    }

    fn binder(&mut self, binder: &Binder) -> Resolved<BinderSpec> {
        let (source, kind) = match &binder.source {
            SourceExpr::Pieces => (SourceSpec::Pieces, VariableKind::Piece),
            SourceExpr::Moves(of) => (SourceSpec::Moves(self.piece(of)?), VariableKind::Square),
            SourceExpr::Attacks(of) => (SourceSpec::Attacks(self.piece(of)?), VariableKind::Square),
            SourceExpr::Targets(of) => (SourceSpec::Targets(self.piece(of)?), VariableKind::Piece),
            SourceExpr::Next(of, direction) => (SourceSpec::Next(self.piece(of)?, *direction), VariableKind::Piece),
        };
        let Variable { letter, span } = &binder.variable;
        if self.scope.iter().any(|(known, _)| known == letter) {
            let message = match *letter {
                Letter::OWN_KING => "`K` is always the own king; choose another letter".to_owned(),
                Letter::ENEMY_KING => "`E` is always the enemy king; choose another letter".to_owned(),
                Letter(name) => format!("`{name}` is bound already; choose another letter"),
            };
            return Err(SyntaxError::new(message, span.clone()));
        }
        let slot = self.variables.len();
        self.variables.push(kind);
        self.scope.push((*letter, slot));
        Ok(BinderSpec { slot, letter: letter.0, source })
    }

    fn product(&mut self, product: &Product) -> Resolved<ProductSpec> {
        let factors = product.factors.iter().map(|factor| self.factor(factor)).collect::<Resolved<Vec<_>>>()?;
        let size = factors.iter().try_fold(1u64, |size, factor| {
            size.checked_mul(u64::from(factor.size)).filter(|size| *size <= MAX_FEATURES)
        });
        Ok(ProductSpec::new(factors, within(size, &product.span)?))
    }

    fn factor(&mut self, factor: &Factor) -> Resolved<FactorSpec> {
        let (kind, size) = match factor {
            Factor::Axis(axis) => {
                let axis = self.axis(axis)?;
                let size = axis.size();
                (FactorKind::Axis(axis), size)
            }
            Factor::Difference(left, right, span) => self.difference(left, right, span)?,
            Factor::Sum(products, span) => {
                let products = products.iter().map(|product| self.product(product)).collect::<Resolved<Vec<_>>>()?;
                let size = within(Some(products.iter().map(|product| u64::from(product.size)).sum()), span)?;
                (FactorKind::Sum(products), size)
            }
            Factor::Reserved(size, _) => (FactorKind::Reserved, *size),
            Factor::Count(count) => (FactorKind::Count(self.count(count)?), count.max + 1),
        };
        Ok(FactorSpec { name: factor_text(factor), kind, size, stride: 0 })
    }

    fn count(&mut self, count: &Count) -> Resolved<CountSpec> {
        let outer = self.scope.len();
        let binders = self.binders(&count.binders)?;
        let (condition, guards) = self.conditions(count.condition.as_ref())?;
        self.scope.truncate(outer);
        Ok(CountSpec { max: count.max, binders, condition, guards })
    }

    fn difference(&self, left: &Axis, right: &Axis, span: &Span) -> Resolved<(FactorKind, u32)> {
        if left.kind != right.kind || left.domain.is_some() || right.domain.is_some() {
            let message = "a difference is taken of two equal axes without domains";
            return Err(SyntaxError::new(message, span.clone()).with_help("for example `(file(K) - file(P))`"));
        }
        if matches!(left.kind, AxisKind::Bucket(_)) {
            let message = "a difference of buckets has no meaning: their numbers are names";
            return Err(SyntaxError::new(message, span.clone()));
        }
        let (left, right) = (self.axis(left)?, self.axis(right)?);
        let size = 2 * left.size() - 1;
        Ok((FactorKind::Difference(left, right), size))
    }

    fn axis(&self, axis: &Axis) -> Resolved<AxisSpec> {
        let (property, slot) = self.property(axis)?;
        Ok(AxisSpec { property, slot, domain: axis.domain.clone() })
    }

    fn property(&self, axis: &Axis) -> Resolved<(Property, usize)> {
        let slot = self.slot(&axis.variable)?;
        if self.variables[slot] == VariableKind::Square && !axis.kind.of_square() {
            let message = format!("`{}` is a bare square and has no {}", axis.variable.letter.0, axis.kind.name());
            return Err(SyntaxError::new(message, axis.span.clone()));
        }
        let property = match &axis.kind {
            AxisKind::Square => Property::Square,
            AxisKind::File => Property::File,
            AxisKind::Rank => Property::Rank,
            AxisKind::Diagonal => Property::Diagonal,
            AxisKind::Antidiagonal => Property::Antidiagonal,
            AxisKind::Role => Property::Role,
            AxisKind::Color => Property::Color,
            AxisKind::Bucket(name) => Property::Bucket(self.bucket(name, &axis.span)?),
        };
        Ok((property, slot))
    }

    fn bucket(&self, name: &str, span: &Span) -> Resolved<Arc<Bucket>> {
        let known = self.surroundings.buckets;
        known.get(name).cloned().ok_or_else(|| {
            SyntaxError::new(format!("there is no bucket table `{name}`"), span.clone())
                .with_help(format!("list its 64 numbers under [buckets]: {name} = [ … ]"))
                .suggesting(name, known.keys().map(String::as_str))
        })
    }

    /// What can be decided from variables alone, and what takes counting.
    fn conditions(&mut self, condition: Option<&Condition>) -> Resolved<(Option<ConditionSpec>, Vec<GuardSpec>)> {
        let mut plain = Vec::new();
        let mut guards = Vec::new();
        for conjunct in condition.into_iter().flat_map(conjuncts) {
            let mut counts = Vec::new();
            let condition = self.condition(conjunct, &mut counts)?;
            match counts.is_empty() {
                true => plain.push(condition),
                false => guards.push(GuardSpec { counts, condition }),
            }
        }
        let plain = match plain.len() {
            0 | 1 => plain.pop(),
            _ => Some(ConditionSpec::All(plain)),
        };
        Ok((plain, guards))
    }

    fn condition(&mut self, condition: &Condition, counts: &mut Vec<CountSpec>) -> Resolved<ConditionSpec> {
        let mut all = |of: &[Condition]| {
            of.iter().map(|condition| self.condition(condition, counts)).collect::<Resolved<Vec<_>>>()
        };
        Ok(match condition {
            Condition::Any(of) => ConditionSpec::Any(all(of)?),
            Condition::All(of) => ConditionSpec::All(all(of)?),
            Condition::Not(of) => ConditionSpec::Not(Box::new(self.condition(of, counts)?)),
            Condition::Compare(left, comparison, right) => {
                ConditionSpec::Compare(self.term(left, counts)?, *comparison, self.term(right, counts)?)
            }
        })
    }

    fn term(&mut self, term: &Term, counts: &mut Vec<CountSpec>) -> Resolved<TermSpec> {
        let mut boxed = |term: &Term| self.term(term, counts).map(Box::new);
        Ok(match term {
            Term::Number(value) | Term::Named(_, value) => TermSpec::Number(*value),
            Term::Axis(axis) => {
                let (property, slot) = self.property(axis)?;
                TermSpec::Axis(property, slot)
            }
            Term::Count(count) => {
                counts.push(self.count(count)?);
                TermSpec::Count(counts.len() - 1)
            }
            Term::Negative(of) => TermSpec::Negative(boxed(of)?),
            Term::Absolute(of) => TermSpec::Absolute(boxed(of)?),
            Term::Sum(left, right) => TermSpec::Sum(boxed(left)?, boxed(right)?),
            Term::Difference(left, right) => TermSpec::Difference(boxed(left)?, boxed(right)?),
        })
    }
}

/// The conditions that `and` joins.
fn conjuncts(condition: &Condition) -> Vec<&Condition> {
    match condition {
        Condition::All(of) => of.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

fn within(size: Option<u64>, span: &Span) -> Resolved<u32> {
    size.and_then(|size| u32::try_from(size).ok())
        .ok_or_else(|| SyntaxError::new("this has more than 2^32 − 1 features; indices have 32 bits", span.clone()))
}
