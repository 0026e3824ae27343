//! Axes, the products that they make up, and the strides by which a product numbers its elements.

use std::sync::Arc;

use super::{CountSpec, Entity, PairSpec, ReachSpec};
use crate::features::syntax::AxisKind;

/// A product: numbers its elements by its factors, the last one fastest.
#[derive(Clone, Debug)]
pub struct ProductSpec {
    /// In order of falling strides.
    pub factors: Vec<FactorSpec>,
    pub size: u32,
}

/// A factor of a product, most often an axis, with its stride.
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

/// What an axis reads of a variable.
pub type Property = AxisKind<Arc<Bucket>>;

/// A bucket table: a number for each oriented square, a1, b1, … h8; −1 = outside the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    pub table: [i32; 64],
    /// Largest number + 1.
    pub size: u32,
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

    pub(super) fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
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
    pub(super) fn bucket<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        if let Property::Bucket(bucket) = self {
            out.push(bucket);
        }
    }

    /// The plain value: a number from 0, or −1 for a square outside a bucket table.
    pub fn of(&self, entity: Entity) -> i32 {
        let file = entity.square as i32 & 7;
        let rank = entity.square as i32 >> 3;
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
