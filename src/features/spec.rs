//! A definition with every name resolved: variables are slots, buckets are tables, sizes are known.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chess::Orientation;

use super::error::ExpressionText;
use super::syntax::{AxisKind, Comparison, Direction};

/// Slot of the own king and of the enemy king; a block's own variables follow in the order they are bound.
pub const OWN_KING: usize = 0;
pub const ENEMY_KING: usize = 1;

/// How often a feature counts that several bindings yield.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Multiplicity {
    /// Once.
    #[default]
    Set,
    /// Once a binding.
    Bag,
}

/// In [`BlockSpec::kept`]: the element is no feature.
pub const DROPPED: u32 = u32::MAX;

/// One block of a set.
#[derive(Clone, Debug)]
pub struct BlockSpec {
    /// The definition it comes from, with its number there when that has several.
    pub name: String,
    /// The definition's canonical text, bucket tables left out.
    pub text: String,
    /// The same as people write it: their letters, ranges and names of values.
    pub written: String,
    pub orientation: Orientation,
    pub multiplicity: Multiplicity,
    /// What each slot holds; the first two are the kings.
    pub variables: Vec<VariableKind>,
    pub binders: Vec<BinderSpec>,
    pub product: ProductSpec,
    /// What can be decided from the variables alone.
    pub condition: Option<ConditionSpec>,
    /// What takes counting on the board; all of them hold, and the condition, for a binding.
    pub guards: Vec<GuardSpec>,
    /// A coarser product over the same variables, whose elements are virtual inputs while training.
    pub factor: Option<BlockFactor>,
    /// Where the block's features begin in the set; under a selection: where the numbers begin that it gives, all its
    /// blocks' together.
    pub offset: u32,
    /// Under a selection: of every element of the product its index from `offset` on, or [`DROPPED`]. Without one: the
    /// element itself.
    pub kept: Option<Arc<[u32]>>,
}

/// A block's factor, and where it is written.
#[derive(Clone, Debug)]
pub struct BlockFactor {
    pub product: ProductSpec,
    pub content: String,
    pub text: ExpressionText,
}

/// What a variable stands for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// A piece (or king) on its square.
    Piece,
    /// A bare square.
    Square,
}

#[derive(Clone, Debug)]
pub struct BinderSpec {
    pub slot: usize,
    /// As written.
    pub letter: char,
    pub source: SourceSpec,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SourceSpec {
    Pieces,
    Moves(usize),
    Attacks(usize),
    Targets(usize),
    Next(usize, Direction),
}

impl SourceSpec {
    /// Whether both sources find the same from one piece.
    pub fn goes_as(self, other: SourceSpec) -> bool {
        match (self, other) {
            (SourceSpec::Next(_, one), SourceSpec::Next(_, another)) => one == another,
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }

    /// The slot whose piece the source starts from.
    pub const fn of(self) -> Option<usize> {
        match self {
            SourceSpec::Pieces => None,
            SourceSpec::Moves(of) | SourceSpec::Attacks(of) | SourceSpec::Targets(of) | SourceSpec::Next(of, _) => {
                Some(of)
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct ProductSpec {
    /// From the slowest stride to the fastest.
    pub factors: Vec<FactorSpec>,
    pub size: u32,
}

#[derive(Clone, Debug)]
pub struct FactorSpec {
    /// As written, in canonical spelling.
    pub name: String,
    pub kind: FactorKind,
    pub size: u32,
    /// An element's value of the factor is (element ÷ stride) mod size; set by [`ProductSpec::new`].
    pub stride: u32,
}

#[derive(Clone, Debug)]
pub enum FactorKind {
    Axis(AxisSpec),
    /// Plain difference plus n − 1, both axes having n values.
    Difference(AxisSpec, AxisSpec),
    Sum(Vec<ProductSpec>),
    Reserved,
    Count(CountSpec),
}

/// A property of a variable, renumbered by a domain.
#[derive(Clone, Debug)]
pub struct AxisSpec {
    pub property: Property,
    pub slot: usize,
    /// Plain values in the order they are numbered; none = all of them.
    pub domain: Option<Vec<u32>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    Square,
    File,
    Rank,
    Diagonal,
    Antidiagonal,
    Role,
    Color,
    Bucket(Arc<Bucket>),
}

/// A numbering of the oriented squares, a1, b1, … h8; −1 = outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    pub table: [i32; 64],
    /// Largest number + 1.
    pub size: u32,
}

#[derive(Clone, Debug)]
pub struct CountSpec {
    pub max: u32,
    pub binders: Vec<BinderSpec>,
    pub condition: Option<ConditionSpec>,
    /// As a block's.
    pub guards: Vec<GuardSpec>,
}

/// A condition with counts in it: [`TermSpec::Count`] stands for one of them by its number.
#[derive(Clone, Debug)]
pub struct GuardSpec {
    pub counts: Vec<CountSpec>,
    pub condition: ConditionSpec,
}

#[derive(Clone, Debug)]
pub enum ConditionSpec {
    Any(Vec<ConditionSpec>),
    All(Vec<ConditionSpec>),
    Not(Box<ConditionSpec>),
    Compare(TermSpec, Comparison, TermSpec),
}

#[derive(Clone, Debug)]
pub enum TermSpec {
    Number(i64),
    Axis(Property, usize),
    /// A count of the guard, by number.
    Count(usize),
    Negative(Box<TermSpec>),
    Absolute(Box<TermSpec>),
    Sum(Box<TermSpec>, Box<TermSpec>),
    Difference(Box<TermSpec>, Box<TermSpec>),
}

/// What a variable is bound to: a square of the oriented board and, for pieces, what stands there.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entity {
    /// 0–63 on the oriented board.
    pub square: u32,
    /// Role 0–5 and colour (own 0, their 1); meaningless for bare squares.
    pub role: u32,
    pub color: u32,
}

impl Entity {
    pub const fn bare(square: u32) -> Entity {
        Entity { square, role: 0, color: 0 }
    }
}

impl BlockSpec {
    /// The counts of factors and of conditions; not those inside other counts.
    pub fn counts(&self) -> Vec<&CountSpec> {
        let mut counts = self.product.counts();
        counts.extend(self.guards.iter().flat_map(|guard| &guard.counts));
        counts
    }

    /// The set's index of an element of the product; none when a selection leaves it out.
    pub fn index_of(&self, element: u32) -> Option<u32> {
        match &self.kept {
            None => Some(self.offset + element),
            Some(kept) => Some(kept[element as usize]).filter(|index| *index != DROPPED).map(|i| self.offset + i),
        }
    }

    /// Number of features.
    pub fn size(&self) -> u32 {
        self.selected().map_or(self.product.size, |selected| selected.count() as u32)
    }

    /// Under a selection: the set's indices of the elements it keeps, in the elements' order.
    pub fn selected(&self) -> Option<impl Iterator<Item = u32> + '_> {
        let kept = self.kept.as_ref()?.iter().filter(|index| **index != DROPPED);
        Some(kept.map(|index| self.offset + index))
    }

    /// The bucket tables the block reads, by name.
    pub fn buckets(&self) -> Vec<&Bucket> {
        let mut found = Vec::new();
        self.product.buckets(&mut found);
        self.condition.iter().for_each(|condition| condition.buckets(&mut found));
        self.guards.iter().for_each(|guard| guard.buckets(&mut found));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup();
        found
    }
}

impl ProductSpec {
    /// The product of factors, whose strides are filled in; `size` is the product of their sizes.
    pub fn new(mut factors: Vec<FactorSpec>, size: u32) -> ProductSpec {
        let mut stride = size;
        for factor in &mut factors {
            // A product without elements has no strides.
            stride = stride.checked_div(factor.size).unwrap_or(0);
            factor.stride = stride;
        }
        ProductSpec { factors, size }
    }

    /// Whether an axis or difference reads the slot.
    pub fn reads(&self, slot: usize) -> bool {
        self.factors.iter().any(|factor| match &factor.kind {
            FactorKind::Axis(axis) => axis.slot == slot,
            FactorKind::Difference(left, right) => left.slot == slot || right.slot == slot,
            FactorKind::Sum(products) => products.iter().any(|product| product.reads(slot)),
            FactorKind::Reserved | FactorKind::Count(_) => false,
        })
    }

    /// Number of differences, at whatever depth.
    pub fn differences(&self) -> usize {
        let in_factor = |factor: &FactorSpec| match &factor.kind {
            FactorKind::Difference(..) => 1,
            FactorKind::Sum(products) => products.iter().map(ProductSpec::differences).sum(),
            FactorKind::Axis(_) | FactorKind::Reserved | FactorKind::Count(_) => 0,
        };
        self.factors.iter().map(in_factor).sum()
    }

    /// Every count that is a factor, at whatever depth.
    pub fn counts(&self) -> Vec<&CountSpec> {
        let mut found = Vec::new();
        for factor in &self.factors {
            match &factor.kind {
                FactorKind::Count(count) => found.push(count),
                FactorKind::Sum(products) => found.extend(products.iter().flat_map(ProductSpec::counts)),
                FactorKind::Axis(_) | FactorKind::Difference(..) | FactorKind::Reserved => {}
            }
        }
        found
    }

    fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        for factor in &self.factors {
            match &factor.kind {
                FactorKind::Axis(axis) => axis.property.bucket(out),
                FactorKind::Difference(left, right) => {
                    left.property.bucket(out);
                    right.property.bucket(out);
                }
                FactorKind::Sum(products) => products.iter().for_each(|product| product.buckets(out)),
                FactorKind::Reserved => {}
                FactorKind::Count(count) => count.buckets(out),
            }
        }
    }
}

impl Property {
    fn bucket<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        if let Property::Bucket(bucket) = self {
            out.push(bucket);
        }
    }

    /// The plain value: a number from 0, or −1 outside a bucket.
    pub fn of(&self, entity: Entity) -> i32 {
        let (file, rank) = (entity.square as i32 & 7, entity.square as i32 >> 3);
        match self {
            Property::Square => entity.square as i32,
            Property::File => file,
            Property::Rank => rank,
            Property::Diagonal => file + rank,
            Property::Antidiagonal => file + 7 - rank,
            Property::Role => entity.role as i32,
            Property::Color => entity.color as i32,
            Property::Bucket(bucket) => bucket.table[entity.square as usize],
        }
    }

    /// What it is called in the language.
    pub fn kind(&self) -> AxisKind {
        match self {
            Property::Square => AxisKind::Square,
            Property::File => AxisKind::File,
            Property::Rank => AxisKind::Rank,
            Property::Diagonal => AxisKind::Diagonal,
            Property::Antidiagonal => AxisKind::Antidiagonal,
            Property::Role => AxisKind::Role,
            Property::Color => AxisKind::Color,
            Property::Bucket(bucket) => AxisKind::Bucket(bucket.name.clone()),
        }
    }

    /// Number of plain values.
    pub fn values(&self) -> u32 {
        match self {
            Property::Square => 64,
            Property::File | Property::Rank => 8,
            Property::Diagonal | Property::Antidiagonal => 15,
            Property::Role => 6,
            Property::Color => 2,
            Property::Bucket(bucket) => bucket.size,
        }
    }
}

impl AxisSpec {
    pub fn size(&self) -> u32 {
        self.domain.as_ref().map_or_else(|| self.property.values(), |domain| domain.len() as u32)
    }

    /// The element of this axis, none outside its domain.
    pub fn index(&self, entity: Entity) -> Option<u32> {
        let plain = u32::try_from(self.property.of(entity)).ok()?;
        match &self.domain {
            None => Some(plain),
            Some(domain) => domain.iter().position(|value| *value == plain).map(|at| at as u32),
        }
    }
}

impl CountSpec {
    /// The slots of outer variables that sources, condition and guards read, ascending, each once.
    pub fn outer(&self) -> Vec<usize> {
        let origins = self.binders.iter().filter_map(|binder| binder.source.of());
        let conditions = self.condition.iter().flat_map(ConditionSpec::slots);
        let guards = self.guards.iter().flat_map(GuardSpec::slots);
        let mut slots: Vec<usize> = origins.chain(conditions).chain(guards).collect();
        slots.retain(|slot| self.binders.iter().all(|binder| binder.slot != *slot));
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        self.condition.iter().for_each(|condition| condition.buckets(out));
        self.guards.iter().for_each(|guard| guard.buckets(out));
    }
}

impl GuardSpec {
    /// The slots of variables bound outside that the condition or a count reads, ascending, each once.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots = self.condition.slots();
        slots.extend(self.counts.iter().flat_map(CountSpec::outer));
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Every axis that the condition and the counts read, with its slot.
    pub fn axes(&self) -> Vec<(&Property, usize)> {
        let mut axes = self.condition.axes();
        for count in &self.counts {
            axes.extend(count.condition.iter().flat_map(ConditionSpec::axes));
            axes.extend(count.guards.iter().flat_map(GuardSpec::axes));
        }
        axes
    }

    /// Every source that the counts bind from.
    pub fn sources(&self) -> Vec<SourceSpec> {
        let mut sources = Vec::new();
        for count in &self.counts {
            sources.extend(count.binders.iter().map(|binder| binder.source));
            sources.extend(count.guards.iter().flat_map(GuardSpec::sources));
        }
        sources
    }

    fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        self.condition.buckets(out);
        self.counts.iter().for_each(|count| count.buckets(out));
    }
}

impl TermSpec {
    /// The value given the variables' and the counts' values.
    fn value(&self, entity: &impl Fn(usize) -> Entity, counts: &[u32]) -> i64 {
        match self {
            TermSpec::Number(value) => *value,
            TermSpec::Axis(property, slot) => i64::from(property.of(entity(*slot))),
            TermSpec::Count(number) => counts.get(*number).map_or(0, |count| i64::from(*count)),
            TermSpec::Negative(of) => -of.value(entity, counts),
            TermSpec::Absolute(of) => of.value(entity, counts).abs(),
            TermSpec::Sum(left, right) => left.value(entity, counts) + right.value(entity, counts),
            TermSpec::Difference(left, right) => left.value(entity, counts) - right.value(entity, counts),
        }
    }

    /// Least and greatest value, the counts lying in these ranges.
    fn range(&self, entity: &impl Fn(usize) -> Entity, counts: &[(u32, u32)]) -> (i64, i64) {
        match self {
            TermSpec::Count(number) => {
                counts.get(*number).map_or((0, 0), |(least, most)| (i64::from(*least), i64::from(*most)))
            }
            TermSpec::Number(_) | TermSpec::Axis(..) => {
                let value = self.value(entity, &[]);
                (value, value)
            }
            TermSpec::Negative(of) => {
                let (least, most) = of.range(entity, counts);
                (-most, -least)
            }
            TermSpec::Absolute(of) => match of.range(entity, counts) {
                (least, most) if least >= 0 => (least, most),
                (least, most) if most <= 0 => (-most, -least),
                (least, most) => (0, most.max(-least)),
            },
            TermSpec::Sum(left, right) => {
                let (left, right) = (left.range(entity, counts), right.range(entity, counts));
                (left.0 + right.0, left.1 + right.1)
            }
            TermSpec::Difference(left, right) => {
                let (left, right) = (left.range(entity, counts), right.range(entity, counts));
                (left.0 - right.1, left.1 - right.0)
            }
        }
    }

    /// Every axis read.
    fn axes<'a>(&'a self, out: &mut Vec<(&'a Property, usize)>) {
        match self {
            TermSpec::Number(_) | TermSpec::Count(_) => {}
            TermSpec::Axis(property, slot) => out.push((property, *slot)),
            TermSpec::Negative(of) | TermSpec::Absolute(of) => of.axes(out),
            TermSpec::Sum(left, right) | TermSpec::Difference(left, right) => {
                left.axes(out);
                right.axes(out);
            }
        }
    }
}

impl ConditionSpec {
    /// Whether it holds for these variables; for conditions without counts.
    pub fn holds(&self, entity: &impl Fn(usize) -> Entity) -> bool {
        self.holds_with(entity, &[])
    }

    /// Whether it holds for these variables and counts.
    pub fn holds_with(&self, entity: &impl Fn(usize) -> Entity, counts: &[u32]) -> bool {
        match self {
            ConditionSpec::Any(of) => of.iter().any(|condition| condition.holds_with(entity, counts)),
            ConditionSpec::All(of) => of.iter().all(|condition| condition.holds_with(entity, counts)),
            ConditionSpec::Not(of) => !of.holds_with(entity, counts),
            ConditionSpec::Compare(left, comparison, right) => {
                comparison.holds(left.value(entity, counts), right.value(entity, counts))
            }
        }
    }

    /// Whether it may hold, and whether it may fail, when all that is known of the counts is the range each lies in.
    pub fn outcomes(&self, entity: &impl Fn(usize) -> Entity, counts: &[(u32, u32)]) -> (bool, bool) {
        let each = |of: &[ConditionSpec]| of.iter().map(|of| of.outcomes(entity, counts)).collect::<Vec<_>>();
        match self {
            ConditionSpec::Any(of) => {
                let each = each(of);
                (each.iter().any(|(holds, _)| *holds), each.iter().all(|(_, fails)| *fails))
            }
            ConditionSpec::All(of) => {
                let each = each(of);
                (each.iter().all(|(holds, _)| *holds), each.iter().any(|(_, fails)| *fails))
            }
            ConditionSpec::Not(of) => {
                let (holds, fails) = of.outcomes(entity, counts);
                (fails, holds)
            }
            ConditionSpec::Compare(left, comparison, right) => {
                comparison.outcomes(left.range(entity, counts), right.range(entity, counts))
            }
        }
    }

    /// The conditions that all have to hold.
    pub fn conjuncts(&self) -> Vec<&ConditionSpec> {
        match self {
            ConditionSpec::All(of) => of.iter().flat_map(ConditionSpec::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// The slots read, ascending, each once.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.axes().into_iter().map(|(_, slot)| slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Whether it reads the role or colour of a slot.
    pub fn reads_piece(&self, slot: usize) -> bool {
        self.axes().into_iter().any(|(property, of)| of == slot && matches!(property, Property::Role | Property::Color))
    }

    fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        self.axes().into_iter().for_each(|(property, _)| property.bucket(out));
    }

    /// Every axis read, with its slot.
    pub fn axes(&self) -> Vec<(&Property, usize)> {
        match self {
            ConditionSpec::Any(of) | ConditionSpec::All(of) => of.iter().flat_map(ConditionSpec::axes).collect(),
            ConditionSpec::Not(of) => of.axes(),
            ConditionSpec::Compare(left, _, right) => {
                let mut axes = Vec::new();
                left.axes(&mut axes);
                right.axes(&mut axes);
                axes
            }
        }
    }
}
