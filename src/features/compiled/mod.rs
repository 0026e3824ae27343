//! Compiled blocks. An index is a sum of one part per variable, so a block becomes one small table per variable and
//! term of its product; bindings are found on bitboards.
//!
//! [`lowering`] replaces axes of two variables, [`tables`] multiplies products out, [`binding_plan`] turns binders and
//! conditions into bitboards, [`encode`] finds active features, [`delta`] the change that a move makes, [`context`] the
//! need for a refresh. [`piece_table`], [`pair_group`] and [`avx512`] are faster strategies for simple blocks. Each is
//! tested against [`super::reference`] (`tests.rs`).

#[cfg(target_arch = "x86_64")]
mod avx512;
mod binding_plan;
mod context;
mod delta;
mod encode;
#[cfg(test)]
#[path = "../../../tests/generator/mod.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with tests/generated.rs")]
pub mod generator;
mod lowering;
mod oriented_board;
mod pair_group;
mod pair_tables;
mod piece_table;
mod row_classes;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::chess::Orientation;

use super::spec::{BinderSpec, BlockSpec, ConditionSpec, Multiplicity, SourceSpec, VariableKind};
use super::syntax::SyntaxError;

#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512Encoder;
pub use context::ContextTable;
pub use delta::{OrientedPair, RowChanges, Transition, dedup_from};
pub use lowering::{lowered, merges};
pub use oriented_board::{Placement, PlacementNeeds, ray};
pub use pair_group::PairGroup;
pub use pair_tables::PairBlock;
pub use piece_table::{PieceList, RowBuffer};
pub use tables::{NONE, TableTerm};

use binding_plan::{BinderPlan, CountPlan, GuardPlan, SortedConditions};
use piece_table::PieceTable;
use row_classes::RowClasses;

/// One block, ready to encode.
#[derive(Debug)]
pub struct CompiledBlock {
    orientation: Orientation,
    multiplicity: Multiplicity,
    size: u32,
    /// Number of variables, including the kings and the variables of counts.
    variables: usize,
    binders: Vec<BinderPlan>,
    terms: Vec<TableTerm>,
    /// Conditions over the kings alone.
    king_conditions: Vec<ConditionSpec>,
    /// Conditions with counts in them.
    guards: Vec<GuardPlan>,
    form: BindingForm,
    /// Whether no two bindings of one position yield the same index.
    injective: bool,
    piece_table: Option<PieceTable>,
    /// Whether every row of a pair depends on the first piece's code and the second square alone, so that the search
    /// finds it once.
    square_independent: bool,
    /// Computed on first use; encoding does without.
    contexts: OnceLock<ContextTable>,
    spec: BlockSpec,
}

/// The form of a block's bindings, which decides how it is encoded and how it follows a move.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum BindingForm {
    /// `P in pieces`, no counts.
    Piece,
    /// Two variables, the second bound from the first or from all pieces; or one bound from a king. No counts.
    Pair,
    /// No variables, but counts whose variables are bound as in `Piece` and `Pair`.
    Counts,
    /// `P in pieces` with counts, each of which has a [`binding_plan::CountDependency`] on P.
    Counted,
    Other,
}

impl BindingForm {
    fn of(spec: &BlockSpec, terms: &[TableTerm]) -> BindingForm {
        let counts = || terms.iter().flat_map(|term| &term.counts);
        let has_counts = counts().next().is_some();
        let all_depend_on = |slot: usize| counts().all(|count| count.dependency(slot).is_some());
        match &spec.binders[..] {
            _ if !spec.guards.is_empty() => BindingForm::Other,
            [] if has_counts && counts().all(CountPlan::is_local) => BindingForm::Counts,
            [BinderSpec { source: SourceSpec::Pieces, slot, .. }] if has_counts && all_depend_on(*slot) => {
                BindingForm::Counted
            }
            _ if has_counts => BindingForm::Other,
            [BinderSpec { source: SourceSpec::Pieces, .. }] => BindingForm::Piece,
            [_] => BindingForm::Pair,
            [BinderSpec { source: SourceSpec::Pieces, slot, .. }, second]
                if second.source.of().is_none_or(|of| of == *slot) =>
            {
                BindingForm::Pair
            }
            _ => BindingForm::Other,
        }
    }
}

/// Most terms that a block's product may expand to when its sums are multiplied out.
const MAX_TERMS: usize = 4096;

impl CompiledBlock {
    /// # Errors
    /// When the product's sums multiply out to more than 4,096 terms.
    pub fn new(spec: &BlockSpec) -> Result<CompiledBlock, SyntaxError> {
        let conditions = SortedConditions::sort(spec.condition.as_ref(), &spec.binders, |_| true);
        let Some(expansion) = tables::expand_product(spec, &conditions.by_slot, MAX_TERMS) else {
            let message = format!("the sums in this product multiply out to more than {MAX_TERMS} terms");
            return Err(SyntaxError::new(message, 0..0));
        };
        let mut block = CompiledBlock {
            orientation: spec.orientation,
            multiplicity: spec.multiplicity,
            size: spec.product.size,
            variables: spec.variables.len(),
            binders: conditions.plan(&spec.binders, &spec.variables),
            form: BindingForm::of(spec, &expansion.terms),
            guards: GuardPlan::all(&spec.guards, spec),
            terms: expansion.terms,
            king_conditions: conditions.outer,
            injective: expansion.injective,
            piece_table: None,
            square_independent: false,
            contexts: OnceLock::new(),
            spec: spec.clone(),
        };
        if block.king_conditions.is_empty() {
            block.terms.iter_mut().for_each(TableTerm::find_king_independent_base);
        }
        if block.shares_rows() && matches!(block.form, BindingForm::Piece | BindingForm::Pair) {
            for term in &mut block.terms {
                term.classes = term.tables.iter().map(|table| RowClasses::of(table)).collect();
            }
        }
        block.piece_table = block.build_piece_table();
        block.find_square_independence();
        Ok(block)
    }

    /// Finds out whether pairs that differ only in the square of their first piece share their row, and no others do.
    fn find_square_independence(&mut self) {
        let [first, second] = &self.binders[..] else { return };
        let to_bare_square = second.kind == VariableKind::Square && second.source_from(first).is_some();
        let unconditional = first.is_unconditional() && second.is_unconditional();
        if !(self.form == BindingForm::Pair && self.shares_rows() && to_bare_square && unconditional) {
            return;
        }
        for term in &mut self.terms {
            term.find_entry_by_code(first.slot);
        }
        let distinct = |term: &TableTerm| {
            term.separable && term.entry_by_code.is_some() && term.distinguishes(first.slot, second.slot)
        };
        self.square_independent = self.terms.iter().all(distinct);
    }

    /// The parts of a placement that encoding needs.
    pub fn needs(&self) -> PlacementNeeds {
        let guards = self.guards.iter().flat_map(GuardPlan::counts);
        let by_counts = self.terms.iter().flat_map(|term| &term.counts).chain(guards).any(CountPlan::uses_attacks);
        let attacks = by_counts || self.binders.iter().any(BinderPlan::uses_attacks);
        PlacementNeeds { bitboards: self.form != BindingForm::Piece, attacks }
    }

    /// The product, multiplied out.
    pub fn terms(&self) -> &[TableTerm] {
        &self.terms
    }

    pub fn spec(&self) -> &BlockSpec {
        &self.spec
    }

    pub fn contexts(&self) -> &ContextTable {
        self.contexts.get_or_init(|| ContextTable::of(&self.spec, self))
    }

    /// Upper bound on the active features of a legal position.
    pub fn max_active(&self, size: u32) -> usize {
        // A side has at most nine queens, two rooks, two bishops, two knights and its king (shakmaty's strict
        // validation); on an empty board they reach 27, 14, 13, 8 and 8 squares.
        const REACHED: usize = 2 * (9 * 27 + 2 * 14 + 2 * 13 + 2 * 8 + 8);
        const PIECES: usize = 32;
        let mut bound = self.terms.len();
        let mut after_pieces = false;
        for binder in &self.binders {
            let (factor, is_pieces) = match binder.source {
                SourceSpec::Pieces => (PIECES, true),
                SourceSpec::Next(..) => (1, false),
                SourceSpec::Targets(_) => (8, false),
                SourceSpec::Moves(_) | SourceSpec::Attacks(_) if after_pieces => (REACHED.div_ceil(PIECES), false),
                SourceSpec::Moves(_) | SourceSpec::Attacks(_) => (27, false),
            };
            bound = bound.saturating_mul(factor);
            after_pieces = is_pieces;
        }
        match self.multiplicity {
            Multiplicity::Set => bound.min(size as usize),
            Multiplicity::Bag => bound,
        }
    }

    /// Bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        let terms: usize = self.terms.iter().map(TableTerm::entries).sum();
        let piece_table = self.piece_table.as_ref().map_or(0, |table| 5 * table.entries.len());
        let guards: usize = self.guards.iter().flat_map(GuardPlan::counts).map(CountPlan::entries).sum();
        let binders = binding_plan::entries(&self.binders);
        (terms + guards + piece_table + binders + self.contexts().entries()) * size_of::<u32>()
    }
}
