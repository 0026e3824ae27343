//! A definition with every name resolved: variables are slots, bucket tables are looked up, sizes are known. `axis`
//! has the axes and their strides, `joint` the axes of two variables, and `condition` the part behind `if`, and counts;
//! `features/source.rs` has the ranges of variables.

mod axis;
mod condition;
mod joint;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chess::Orientation;

use super::error::ExpressionText;
use super::source::Source;
use crate::units::sort_by;

pub use super::source::VariableKind;

pub use axis::{AxisSpec, Bucket, FactorKind, FactorSpec, ProductSpec, Property};
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

/// A source that starts from the piece in a slot.
pub type SourceSpec = Source<usize>;

/// A variable behind `for`, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinderSpec {
    pub slot: usize,
    /// The author's letter.
    pub letter: char,
    pub source: SourceSpec,
}

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
            Some(table) if table[element as usize] == DROPPED => None,
            Some(table) => Some(self.offset + table[element as usize]),
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
        sort_by(&mut buckets, &|a, b| a.name.cmp(&b.name));
        buckets.dedup();
        buckets
    }

    /// Whether the block or its factor reads this bucket table.
    pub fn reads_table(&self, table: &Bucket) -> bool {
        let mut buckets = self.buckets();
        self.factor.iter().for_each(|factor| factor.product.buckets(&mut buckets));
        buckets.contains(&table)
    }
}
