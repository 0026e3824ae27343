//! Name resolution, syntax tree → [`BlockSpec`]: variables become slots, bucket names become tables, sizes are
//! computed.

use std::sync::Arc;

use crate::chess::Orientation;
use crate::units::SortedMap;

use super::spec::{
    AxisSpec, BinderSpec, BlockSpec, Bucket, ConditionSpec, CountSpec, ENEMY_KING, FactorKind, FactorSpec, GuardSpec,
    Multiplicity, OWN_KING, PairSpec, ProductSpec, Property, ReachSpec, TermSpec, VariableKind,
};
use super::syntax::{
    Axis, AxisKind, Binder, Condition, Count, Factor, Letter, Product, ProductBlock, Span, SyntaxError, Term, Variable,
    canonical_text, display_text, factor_text,
};

type Resolved<T> = Result<T, SyntaxError>;

/// Largest number of features. Indices are `u32`, and [`u32::MAX`] is no index.
pub const MAX_FEATURES: u64 = u32::MAX as u64;

/// The settings that a definition gives the blocks written in it.
pub struct BlockSettings<'a> {
    pub orientation: Orientation,
    pub multiplicity: Multiplicity,
    pub buckets: &'a SortedMap<String, Arc<Bucket>>,
}

/// Resolves a block.
///
/// # Errors
/// Unknown or rebound variables, unknown bucket tables, `role` and `color` of a bare square, sizes above
/// [`MAX_FEATURES`].
pub fn block(block: &ProductBlock, name: String, settings: &BlockSettings<'_>) -> Resolved<BlockSpec> {
    let mut resolver = Resolver::new(settings);
    let binders = resolver.binders(&block.binders)?;
    let product = resolver.product(&block.product)?;
    let (condition, guards) = resolver.conditions(block.condition.as_ref())?;
    Ok(BlockSpec {
        name,
        canonical: canonical(block),
        as_written: display_text(block),
        orientation: settings.orientation,
        multiplicity: settings.multiplicity,
        variables: resolver.variables,
        binders,
        product,
        condition,
        guards,
        factor: None,
        offset: 0,
        renumbering: None,
    })
}

/// Resolves the training factor of a block: a product over the block's variables.
///
/// # Errors
/// As [`block`](fn@block); also when the product has counts, because they bind variables of their own.
pub fn factor(block: &ProductBlock, product: &Product, settings: &BlockSettings<'_>) -> Resolved<ProductSpec> {
    let mut resolver = Resolver::new(settings);
    resolver.binders(&block.binders)?;
    if let Some(span) = first_count(product) {
        let message = "a factor reads the block's variables only; it cannot contain a count";
        return Err(SyntaxError::new(message, span));
    }
    resolver.product(product)
}

fn first_count(product: &Product) -> Option<Span> {
    product.factors.iter().find_map(|factor| match factor {
        Factor::Count(count) => Some(count.span.clone()),
        Factor::Sum(products, _) => products.iter().find_map(first_count),
        Factor::Pair(sides, _) => sides.iter().find_map(first_count),
        Factor::Axis(_) | Factor::Difference(..) | Factor::Reserved(..) | Factor::Reach(_) => None,
    })
}

/// Variables in a canonical text, in binding order.
const LETTERS: [char; 24] = [
    'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'A', 'B', 'C', 'D', 'F', 'G', 'H', 'I', 'J', 'L', 'M', 'N',
    'O',
];

/// The block's text with its variables renamed P, Q, R … in binding order. Whether two counts call theirs by one letter
/// does matter.
fn canonical(block: &ProductBlock) -> String {
    let mut bound = Vec::new();
    let mut collect = |binders: &[Binder]| bound.extend(binders.iter().map(|binder| binder.variable.letter));
    collect(&block.binders);
    binders_of_product(&block.product, &mut collect);
    block.condition.iter().for_each(|condition| binders_of_condition(condition, &mut collect));
    // Beyond the letters there are names that no author can write.
    let name = |at: usize| LETTERS.get(at).copied().or_else(|| char::from_u32(0x100 + at as u32));
    let position = |letter| bound.iter().position(|known| *known == letter);
    canonical_text(block, &|letter| position(letter).and_then(name).unwrap_or(letter.0))
}

fn binders_of_product(product: &Product, collect: &mut impl FnMut(&[Binder])) {
    for factor in &product.factors {
        match factor {
            Factor::Count(count) => binders_of_count(count, collect),
            Factor::Sum(products, _) => products.iter().for_each(|product| binders_of_product(product, collect)),
            Factor::Pair(sides, _) => sides.iter().for_each(|side| binders_of_product(side, collect)),
            Factor::Axis(_) | Factor::Difference(..) | Factor::Reserved(..) | Factor::Reach(_) => {}
        }
    }
}

fn binders_of_count(count: &Count, collect: &mut impl FnMut(&[Binder])) {
    collect(&count.binders);
    count.condition.iter().for_each(|condition| binders_of_condition(condition, collect));
}

fn binders_of_condition(condition: &Condition, collect: &mut impl FnMut(&[Binder])) {
    match condition {
        Condition::Any(of) | Condition::All(of) => of.iter().for_each(|inner| binders_of_condition(inner, collect)),
        Condition::Not(of) => binders_of_condition(of, collect),
        Condition::Compare(left, _, right) => [left, right].into_iter().for_each(|term| binders_of_term(term, collect)),
    }
}

fn binders_of_term(term: &Term, collect: &mut impl FnMut(&[Binder])) {
    match term {
        Term::Number(_) | Term::Named(..) | Term::Axis(_) => {}
        Term::Count(count) => binders_of_count(count, collect),
        Term::Negative(of) | Term::Absolute(of) => binders_of_term(of, collect),
        Term::Sum(left, right) | Term::Difference(left, right) => {
            [left, right].into_iter().for_each(|term| binders_of_term(term, collect));
        }
    }
}

struct Resolver<'a> {
    settings: &'a BlockSettings<'a>,
    /// The bound variables with their slots.
    scope: Vec<(Letter, usize)>,
    /// By slot, the variables of finished counts included.
    variables: Vec<VariableKind>,
}

impl<'a> Resolver<'a> {
    fn new(settings: &'a BlockSettings<'a>) -> Resolver<'a> {
        let scope = vec![(Letter::OWN_KING, OWN_KING), (Letter::ENEMY_KING, ENEMY_KING)];
        Resolver { settings, scope, variables: vec![VariableKind::Piece; 2] }
    }

    fn slot(&self, variable: &Variable) -> Resolved<usize> {
        let bound = self.scope.iter().find(|(letter, _)| *letter == variable.letter);
        bound.map(|(_, slot)| *slot).ok_or_else(|| {
            let letters = self.scope.iter().map(|(letter, _)| letter.0.to_string()).collect::<Vec<_>>();
            let name = variable.letter.0;
            SyntaxError::new(format!("`{name}` is not bound here"), variable.span.clone()).with_help(format!(
                "bound variables: {}; bind `{name}` after `for`, as in `for {name} in pieces`",
                letters.join(", ")
            ))
        })
    }

    /// The slot of a variable that must be a piece.
    fn piece(&self, variable: &Variable) -> Resolved<usize> {
        let slot = self.slot(variable)?;
        match self.variables[slot] {
            VariableKind::Piece => Ok(slot),
            VariableKind::Square => {
                let message =
                    format!("`{}` is a square, not a piece; this source starts from a piece", variable.letter.0);
                Err(SyntaxError::new(message, variable.span.clone()))
            }
        }
    }

    fn binders(&mut self, binders: &[Binder]) -> Resolved<Vec<BinderSpec>> {
        binders.iter().map(|binder| self.binder(binder)).collect()
    }

    fn binder(&mut self, binder: &Binder) -> Resolved<BinderSpec> {
        let source = binder.source.map(|of| self.piece(of))?;
        let kind = source.kind();
        let Variable { letter, span } = &binder.variable;
        if self.scope.iter().any(|(known, _)| known == letter) {
            let message = match *letter {
                Letter::OWN_KING => "`K` is always the own king; choose another letter".to_owned(),
                Letter::ENEMY_KING => "`E` is always the enemy king; choose another letter".to_owned(),
                Letter(name) => format!("`{name}` is already bound; choose another letter"),
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
            Factor::Reach(reach) => {
                let attacker = self.piece(&reach.attacker)?;
                let target = self.slot(&reach.target)?;
                let spec = ReachSpec { attacker, target, role: reach.role };
                (FactorKind::Reach(spec), ReachSpec::size(reach.role))
            }
            Factor::Pair(sides, span) => self.pair(sides, span)?,
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

    fn pair(&mut self, sides: &[Product; 2], span: &Span) -> Resolved<(FactorKind, u32)> {
        for side in sides {
            let reads_one = |factor: &Factor| {
                let first = side.factors.first();
                matches!((factor, first), (Factor::Axis(axis), Some(Factor::Axis(first)))
                    if axis.variable.letter == first.variable.letter)
            };
            if !side.factors.iter().all(reads_one) {
                let message = "each side of a pair is a product of axes of one variable";
                return Err(SyntaxError::new(message, side.span.clone())
                    .with_help("for example `pair(square(P) * role(P), square(Q) * role(Q))`"));
            }
        }
        let [first, second] = [self.product(&sides[0])?, self.product(&sides[1])?];
        if first.size != second.size {
            let message =
                format!("the sides of a pair have {} and {} values; they must be equal", first.size, second.size);
            return Err(SyntaxError::new(message, span.clone()));
        }
        if first.size < 2 {
            return Err(SyntaxError::new("a pair needs sides with at least two values", span.clone()));
        }
        let size = within(Some(PairSpec::size(first.size)).filter(|size| *size <= MAX_FEATURES), span)?;
        let pair = PairSpec { sides: [first, second] };
        match pair.slots() {
            [a, b] if a == b => {
                let message = "both sides of a pair read the same variable; a pair needs two";
                Err(SyntaxError::new(message, span.clone()))
            }
            _ => Ok((FactorKind::Pair(pair), size)),
        }
    }

    fn difference(&self, left: &Axis, right: &Axis, span: &Span) -> Resolved<(FactorKind, u32)> {
        if left.kind != right.kind || left.domain.is_some() || right.domain.is_some() {
            let message = "a difference needs the same axis of two variables, without domains";
            return Err(SyntaxError::new(message, span.clone()).with_help("for example `(file(K) - file(P))`"));
        }
        if matches!(left.kind, AxisKind::Bucket(_)) {
            let message = "bucket numbers are names and cannot be subtracted";
            return Err(SyntaxError::new(message, span.clone()));
        }
        let left = self.axis(left)?;
        let right = self.axis(right)?;
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
            let message =
                format!("`{}` is a square, not a piece, and has no {}", axis.variable.letter.0, axis.kind.name());
            return Err(SyntaxError::new(message, axis.span.clone()));
        }
        let property = axis.kind.map_bucket(|name| self.bucket(name, &axis.span))?;
        Ok((property, slot))
    }

    fn bucket(&self, name: &str, span: &Span) -> Resolved<Arc<Bucket>> {
        let known = self.settings.buckets;
        known.get(name).cloned().ok_or_else(|| {
            SyntaxError::new(format!("there is no bucket table `{name}`"), span.clone())
                .with_help(format!("list its 64 numbers under `[buckets]`, as in `{name} = [0, 0, …]`"))
                .suggesting(name, known.keys().map(String::as_str))
        })
    }

    /// Splits a condition's conjuncts: without counts (one condition) and with counts (guards).
    fn conditions(&mut self, condition: Option<&Condition>) -> Resolved<(Option<ConditionSpec>, Vec<GuardSpec>)> {
        let mut plain = Vec::new();
        let mut guards = Vec::new();
        for conjunct in condition.into_iter().flat_map(conjuncts) {
            let mut counts = Vec::new();
            let condition = self.condition(conjunct, &mut counts)?;
            if counts.is_empty() {
                plain.push(condition);
            } else {
                guards.push(GuardSpec { counts, condition });
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

/// The operands of the outermost `and`s.
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
