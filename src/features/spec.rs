//! A definition with every name resolved: variables are slots, bucket tables are looked up, sizes are known.
//! `condition` has the part behind `if`, and counts; `joint` the axes of two variables.

mod condition;
mod joint;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chess::Orientation;

use super::error::ExpressionText;
use super::syntax::{AxisKind, Direction};

pub use condition::{ConditionSpec, CountSpec, GuardSpec, TermSpec};
pub use joint::{PairSpec, ReachSpec};

/// Slots of the own king and of the enemy king; a block's own variables follow in binding order.
pub const OWN_KING: usize = 0;
pub const ENEMY_KING: usize = 1;

/// How often a feature counts when several bindings yield it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Multiplicity {
    /// Once.
    #[default]
    Set,
    /// Once per binding.
    Bag,
}

/// In [`BlockSpec::renumbering`]: the selection drops this element.
pub const DROPPED: u32 = u32::MAX;

/// One block of a set.
#[derive(Clone, Debug)]
pub struct BlockSpec {
    /// Name of the definition it comes from; `#2` follows when it is the second of several blocks there.
    pub name: String,
    /// Canonical text, without bucket tables.
    pub canonical: String,
    /// The text for display: the author's letters, ranges and value names.
    pub as_written: String,
    pub orientation: Orientation,
    pub multiplicity: Multiplicity,
    /// Kind of each slot; the first two are the kings.
    pub variables: Vec<VariableKind>,
    pub binders: Vec<BinderSpec>,
    pub product: ProductSpec,
    /// The conjuncts of the `if` that contain no counts.
    pub condition: Option<ConditionSpec>,
    /// The conjuncts that contain counts. A binding must satisfy `condition` and every guard.
    pub guards: Vec<GuardSpec>,
    /// A coarser product over the same variables; its elements are virtual inputs during training.
    pub factor: Option<BlockFactor>,
    /// Lowest index of the block in the set. Under a selection: lowest index of the selection's result, which all its
    /// blocks share.
    pub offset: u32,
    /// Under a selection: each element's index relative to `offset`, or `DROPPED`. `None`: indices are elements.
    pub renumbering: Option<Arc<[u32]>>,
}

/// A block's factor and its place in the definition.
#[derive(Clone, Debug)]
pub struct BlockFactor {
    pub product: ProductSpec,
    /// The factor's expression.
    pub expression: String,
    pub text: ExpressionText,
}

/// What a variable ranges over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// Pieces on their squares, kings included.
    Piece,
    /// Squares, whatever stands on them.
    Square,
}

#[derive(Clone, Debug)]
pub struct BinderSpec {
    pub slot: usize,
    /// The author's letter.
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
    /// Whether both sources yield the same from equal pieces: they differ at most in the slot they start from.
    pub fn same_kind_as(self, other: SourceSpec) -> bool {
        match (self, other) {
            (SourceSpec::Next(_, one), SourceSpec::Next(_, another)) => one == another,
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }

    /// Slot of the piece that the source starts from.
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
    /// In order of falling strides.
    pub factors: Vec<FactorSpec>,
    pub size: u32,
}

#[derive(Clone, Debug)]
pub struct FactorSpec {
    /// The factor's text for display.
    pub name: String,
    pub kind: FactorKind,
    pub size: u32,
    /// An element's value of the factor is (element ÷ stride) mod size; set by `ProductSpec::new`.
    pub stride: u32,
}

#[derive(Clone, Debug)]
pub enum FactorKind {
    Axis(AxisSpec),
    /// left − right + n − 1, where both axes have n values.
    Difference(AxisSpec, AxisSpec),
    Sum(Vec<ProductSpec>),
    Reserved,
    Count(CountSpec),
    Reach(ReachSpec),
    Pair(PairSpec),
}

/// A property of a variable, renumbered by a domain.
#[derive(Clone, Debug)]
pub struct AxisSpec {
    pub property: Property,
    pub slot: usize,
    /// Plain values in numbering order. `None`: all values.
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

/// A bucket table: a number for each oriented square, a1, b1, … h8; −1 = outside the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    pub table: [i32; 64],
    /// Largest number + 1.
    pub size: u32,
}

/// The value of a variable: a square of the oriented board and, for pieces, the piece on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entity {
    /// 0–63 on the oriented board.
    pub square: u32,
    /// 0–5 from pawn to king; 0 for bare squares.
    pub role: u32,
    /// Own 0, their 1; 0 for bare squares.
    pub color: u32,
}

impl Entity {
    pub const fn bare(square: u32) -> Entity {
        Entity { square, role: 0, color: 0 }
    }
}

impl BlockSpec {
    /// The counts among factors and in conditions, without those nested in other counts.
    pub fn counts(&self) -> Vec<&CountSpec> {
        let mut counts = self.product.counts();
        counts.extend(self.guards.iter().flat_map(|guard| &guard.counts));
        counts
    }

    /// The set's index of an element of the product; `None` when the selection drops it.
    pub fn index_of(&self, element: u32) -> Option<u32> {
        match &self.renumbering {
            None => Some(self.offset + element),
            Some(table) => Some(table[element as usize]).filter(|index| *index != DROPPED).map(|i| self.offset + i),
        }
    }

    /// Number of features.
    pub fn size(&self) -> u32 {
        self.selected().map_or(self.product.size, |selected| selected.count() as u32)
    }

    /// Under a selection: the set's indices of the selected elements, in element order.
    pub fn selected(&self) -> Option<impl Iterator<Item = u32> + '_> {
        let selected = self.renumbering.as_ref()?.iter().filter(|index| **index != DROPPED);
        Some(selected.map(|index| self.offset + index))
    }

    /// The bucket tables that the block reads, sorted by name.
    pub fn buckets(&self) -> Vec<&Bucket> {
        let mut buckets = Vec::new();
        self.product.buckets(&mut buckets);
        self.condition.iter().for_each(|condition| condition.buckets(&mut buckets));
        self.guards.iter().for_each(|guard| guard.buckets(&mut buckets));
        buckets.sort_by(|a, b| a.name.cmp(&b.name));
        buckets.dedup();
        buckets
    }
}

impl ProductSpec {
    /// The product of factors, whose strides are filled in; `size` is the product of their sizes.
    pub fn new(mut factors: Vec<FactorSpec>, size: u32) -> ProductSpec {
        let mut stride = size;
        for factor in &mut factors {
            // A factor of size 0 makes the product empty.
            stride = stride.checked_div(factor.size).unwrap_or(0);
            factor.stride = stride;
        }
        ProductSpec { factors, size }
    }

    /// Whether an axis or a difference reads the slot.
    pub fn reads(&self, slot: usize) -> bool {
        self.factors.iter().any(|factor| match &factor.kind {
            FactorKind::Axis(axis) => axis.slot == slot,
            FactorKind::Difference(left, right) => left.slot == slot || right.slot == slot,
            FactorKind::Sum(products) => products.iter().any(|product| product.reads(slot)),
            FactorKind::Reach(reach) => reach.slots().contains(&slot),
            FactorKind::Pair(pair) => pair.slots().contains(&slot),
            FactorKind::Reserved | FactorKind::Count(_) => false,
        })
    }

    /// Number of differences and other factors of two variables at any depth.
    pub fn differences(&self) -> usize {
        let in_factor = |factor: &FactorSpec| match &factor.kind {
            FactorKind::Difference(..) => 1,
            FactorKind::Sum(products) => products.iter().map(ProductSpec::differences).sum(),
            // They cost a search about as much.
            FactorKind::Reach(_) | FactorKind::Pair(_) => 1,
            FactorKind::Axis(_) | FactorKind::Reserved | FactorKind::Count(_) => 0,
        };
        self.factors.iter().map(in_factor).sum()
    }

    /// The factors that are counts, at any depth.
    pub fn counts(&self) -> Vec<&CountSpec> {
        let mut counts = Vec::new();
        for factor in &self.factors {
            match &factor.kind {
                FactorKind::Count(count) => counts.push(count),
                FactorKind::Sum(products) => counts.extend(products.iter().flat_map(ProductSpec::counts)),
                FactorKind::Axis(_)
                | FactorKind::Difference(..)
                | FactorKind::Reserved
                | FactorKind::Reach(_)
                | FactorKind::Pair(_) => {}
            }
        }
        counts
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
                FactorKind::Reserved | FactorKind::Reach(_) => {}
                FactorKind::Pair(pair) => pair.sides.iter().for_each(|side| side.buckets(out)),
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

    /// The plain value: a number from 0, or −1 for a square outside a bucket table.
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

    /// The language's axis of this property.
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

    /// The axis's element; `None` outside its domain.
    pub fn index(&self, entity: Entity) -> Option<u32> {
        let plain = u32::try_from(self.property.of(entity)).ok()?;
        match &self.domain {
            None => Some(plain),
            Some(domain) => domain.iter().position(|value| *value == plain).map(|at| at as u32),
        }
    }
}
