//! What deltas in the lowered form read of a block whose bindings are a piece and a second variable that starts from it,
//! or any two pieces.

use crate::features::spec::{DROPPED, Multiplicity, SourceSpec, VariableKind};

use super::CompiledBlock;
use super::binding::Binding;
use super::binding_plan::StateMasks;
use super::kings::Kings;
use super::tables::TableTerm;

/// A block of pairs.
#[derive(Copy, Clone)]
pub struct PairBlock<'a> {
    block: &'a CompiledBlock,
    /// The second variable's source.
    pub source: SourceSpec,
    pub second_kind: VariableKind,
}

impl CompiledBlock {
    /// The block as one of pairs; `None` if it has another form.
    pub fn as_pairs(&self) -> Option<PairBlock<'_>> {
        let [first, second] = &self.spec.binders[..] else { return None };
        let starts_from_first = second.source == SourceSpec::Pieces || second.source.of() == Some(first.slot);
        let is_pair = first.source == SourceSpec::Pieces && starts_from_first && self.spec.counts().is_empty();
        let second_kind = self.spec.variables[second.slot];
        is_pair.then_some(PairBlock { block: self, source: second.source, second_kind })
    }
}

impl<'a> PairBlock<'a> {
    pub fn terms(self) -> &'a [TableTerm] {
        &self.block.terms
    }

    pub fn slots(self) -> [usize; 2] {
        [self.block.binders[0].slot, self.block.binders[1].slot]
    }

    /// Entries by state of the first variable and of the second.
    pub fn tables(self, term: &'a TableTerm) -> [&'a [u32]; 2] {
        self.slots().map(|slot| &term.tables[slot][..])
    }

    /// Whether no two bindings of one position have the same row.
    pub fn is_injective(self) -> bool {
        self.block.injective
    }

    /// Whether a row counts once per binding.
    pub fn is_bag(self) -> bool {
        self.block.multiplicity == Multiplicity::Bag
    }

    /// Whether conditions read no king together with a variable.
    pub fn reads_only_pair(self) -> bool {
        let [first, second] = &self.block.binders[..] else { return false };
        first.is_unconditional() && !second.has_residual() && !second.reads_earlier(|slot| slot != first.slot)
    }

    /// Whether a condition reads both variables.
    pub fn has_condition(self) -> bool {
        !self.block.binders[1].is_unconditional()
    }

    /// The states of the second variable that the conditions allow with one of the first, where they read no king.
    pub fn allowed(self, code: usize, square: u32) -> StateMasks {
        let mut bindings = self.block.bindings(&Kings::default());
        bindings[self.block.binders[0].slot] = Binding { code, square };
        let mut buffer = None;
        self.block.binders[1].allowed_by_pairs(&bindings, &mut buffer).copied().unwrap_or([!0; 16])
    }

    pub fn is_renumbered(self) -> bool {
        self.block.spec.renumbering.is_some()
    }

    /// The feature of a row; `None` where a selection or an axis of two variables leaves it out.
    pub fn feature(self, row: u32) -> Option<u32> {
        match &self.block.spec.renumbering {
            None => Some(row),
            Some(table) if table[row as usize] == DROPPED => None,
            Some(table) => Some(self.block.spec.offset + table[row as usize]),
        }
    }
}
