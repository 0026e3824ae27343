//! Which block of a new set continues which block of an old one.

use crate::features::lifting::{copy_block, lift_block, same_bindings, same_block};
use crate::features::set::{Block, FeatureSet};
use crate::features::spec::{BlockSpec, Multiplicity};

/// What continues a block of the old set.
pub enum Counterpart {
    /// The features of the block that each feature of the new set stands for in every position.
    Exact(Vec<Vec<u32>>),
    /// The block of this number in the new set: its variables have the same sources.
    Merged(usize),
    None,
}

/// Search steps for the features that a block refines; beyond them, positions decide.
const REFINEMENT_STEPS: u64 = 1 << 26;

/// How far two blocks are alike, closest first.
#[derive(Copy, Clone)]
enum Likeness {
    Same,
    /// But for the orientation, the buckets and the multiplicity.
    SameText,
    Refined,
    SameSources,
}

/// The counterpart of each block of `old`, the most alike first. Each block of `new` continues one at most.
pub fn counterparts(new: &FeatureSet, old: &FeatureSet) -> Vec<Counterpart> {
    let mut found: Vec<Counterpart> = old.blocks().iter().map(|_| Counterpart::None).collect();
    let mut unused: Vec<usize> = (0..new.blocks().len()).collect();
    for likeness in [Likeness::Same, Likeness::SameText, Likeness::Refined, Likeness::SameSources] {
        for (counterpart, block) in found.iter_mut().zip(old.blocks()) {
            if !matches!(counterpart, Counterpart::None) {
                continue;
            }
            let alike = |at: usize| likeness.counterpart(new, at, block);
            if let Some((number, continued)) = unused.iter().enumerate().find_map(|(n, at)| Some((n, alike(*at)?))) {
                unused.remove(number);
                *counterpart = continued;
            }
        }
    }
    found
}

impl Likeness {
    /// Block `at` of `new` as the counterpart of a block, if they are that much alike.
    fn counterpart(self, new: &FeatureSet, at: usize, old: &Block) -> Option<Counterpart> {
        let block = &new.blocks()[at];
        let [one, other] = [block.spec(), old.spec()];
        let exact = || exact(block, old, new.num_features()).map(Counterpart::Exact);
        let exact_or_merged = || exact().unwrap_or(Counterpart::Merged(at));
        match self {
            Likeness::Same => same_block(one, other).then(exact_or_merged),
            Likeness::SameText => (one.canonical == other.canonical && same_sources(one, other)).then(exact_or_merged),
            Likeness::Refined => exact(),
            Likeness::SameSources => same_sources(one, other).then_some(Counterpart::Merged(at)),
        }
    }
}

/// Whether the variables range over the same pieces and squares, but for the orientation.
fn same_sources(one: &BlockSpec, other: &BlockSpec) -> bool {
    let sources = |spec: &BlockSpec| spec.binders.iter().map(|binder| (binder.slot, binder.source)).collect::<Vec<_>>();
    one.variables == other.variables && sources(one) == sources(other)
}

/// The features of the old block that each feature of the new set stands for, if the definitions say so.
fn exact(new: &Block, old: &Block, features: u32) -> Option<Vec<Vec<u32>>> {
    let [fine, coarse] = [new.spec(), old.spec()];
    let mut rows = vec![Vec::new(); features as usize];
    if same_block(fine, coarse) {
        return copy_block(fine, coarse, &mut rows).then_some(rows);
    }
    let counts_once = coarse.multiplicity == Multiplicity::Set && old.may_repeat();
    if counts_once || !same_bindings(fine, coarse) || !coarse.counts().is_empty() || fine.renumbering.is_some() {
        return None;
    }
    lift_block(fine, coarse, REFINEMENT_STEPS, &mut rows).ok().map(|()| rows)
}
