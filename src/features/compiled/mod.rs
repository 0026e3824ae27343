//! Compiled blocks. An index is a sum of one part per variable, so a block becomes one small table per variable and
//! term of its product.
//!
//! [`lowering`] replaces axes of two variables, [`tables`] multiplies products out, [`binding_plan`] turns conditions
//! into bitboards, [`kings`] has what the kings decide, [`context`] the need for a refresh. [`super::lower`] writes
//! encoders from all this; [`piece_table`] and [`vector_encoder`] encode batches of boards for simple
//! blocks.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod binding;
mod binding_plan;
mod context;
#[cfg(test)]
#[path = "../../../tests/generator/mod.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with tests/generated.rs")]
pub mod generator;
mod kings;
mod lowering;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pair_tables;
mod piece_table;
mod sum_tables;
mod tables;
mod vector_encoder;

use std::sync::OnceLock;

use crate::chess::{Mirror, Orientation, Perspective, Square};

use super::spec::{BinderSpec, BlockSpec, ConditionSpec, Multiplicity, SourceSpec};
use super::syntax::SyntaxError;

pub use binding::ray;
pub use context::ContextTable;
pub use lowering::{lowered, merges};
pub use pair_tables::PairBlock;
pub use piece_table::{PieceList, RowBuffer};
pub use tables::{NONE, TableTerm};
pub use vector_encoder::VectorEncoder;

use binding_plan::{BinderPlan, SortedConditions};
use piece_table::PieceTable;

/// One block, ready to be lowered.
#[derive(Debug)]
pub struct CompiledBlock {
    orientation: Orientation,
    multiplicity: Multiplicity,
    /// Number of variables, including the kings and the variables of counts.
    variables: usize,
    binders: Vec<BinderPlan>,
    terms: Vec<TableTerm>,
    /// Conditions over the kings alone.
    king_conditions: Vec<ConditionSpec>,
    /// Whether no two bindings of one position yield the same index.
    injective: bool,
    piece_table: Option<PieceTable>,
    /// Computed on first use; encoding does without.
    contexts: OnceLock<ContextTable>,
    spec: BlockSpec,
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
            variables: spec.variables.len(),
            binders: conditions.plan(&spec.binders, &spec.variables),
            terms: expansion.terms,
            king_conditions: conditions.outer,
            injective: expansion.injective,
            piece_table: None,
            contexts: OnceLock::new(),
            spec: spec.clone(),
        };
        if block.king_conditions.is_empty() {
            block.terms.iter_mut().for_each(TableTerm::find_king_independent_base);
        }
        block.piece_table = block.build_piece_table();
        Ok(block)
    }

    /// The product, multiplied out.
    pub fn terms(&self) -> &[TableTerm] {
        &self.terms
    }

    pub fn spec(&self) -> &BlockSpec {
        &self.spec
    }

    #[inline]
    pub fn contexts(&self) -> &ContextTable {
        self.contexts.get_or_init(|| ContextTable::of(&self.spec, self))
    }

    /// The context for squares of own and enemy king, not oriented.
    #[inline]
    pub fn context(&self, [own, enemy]: [u32; 2], pov: Perspective) -> u32 {
        let mask = Orientation { mirror: Mirror::None, ..self.orientation }.mask(Square::new(own), pov);
        self.contexts().id(own ^ mask, enemy ^ mask)
    }

    /// Upper bound on the active features of a legal position.
    pub fn max_active(&self, size: u32) -> usize {
        // A side has at most nine queens, two rooks, two bishops, two knights and its king (shakmaty's strict
        // validation); on an empty board they reach 27, 14, 13, 8 and 8 squares.
        const REACHED: usize = 2 * (9 * 27 + 2 * 14 + 2 * 13 + 2 * 8 + 8);
        const PIECES: usize = 32;
        let mut bound = self.terms.len();
        let mut after_pieces = false;
        for BinderSpec { source, .. } in &self.spec.binders {
            let is_pieces = *source == SourceSpec::Pieces;
            let most = source.most_values();
            let factor = if after_pieces && !is_pieces { most.min(REACHED.div_ceil(PIECES)) } else { most };
            bound = bound.saturating_mul(factor);
            after_pieces = is_pieces;
        }
        match self.multiplicity {
            Multiplicity::Set => bound.min(size as usize),
            Multiplicity::Bag => bound,
        }
    }
}
