//! The compiled encoder. An index is a sum of what each variable contributes, so every block becomes, per term of its
//! product, a small table a variable; bindings are found on bitboards.
//!
//! Equal to [`super::reference`] on every position (`tests/features.rs`).

mod context;
mod encode;
mod tables;
mod view;

use crate::chess::{Orientation, Perspective, PieceCode};

use super::spec::{BinderSpec, BlockSpec, ConditionSpec, Multiplicity, SourceSpec, VariableKind};
use super::syntax::SyntaxError;

pub use context::{ContextTable, too_close};
pub use encode::Kings;
pub use view::Bitboards;

use tables::Term;

/// One block, ready to encode.
#[derive(Debug)]
pub struct CompiledBlock {
    orientation: Orientation,
    multiplicity: Multiplicity,
    variables: Vec<VariableKind>,
    binders: Vec<BinderSpec>,
    terms: Vec<Term>,
    /// Conditions over the kings alone.
    king_conditions: Vec<ConditionSpec>,
    /// Conditions over several variables that no table can hold.
    residual: Vec<ConditionSpec>,
    /// Whether the only binder is `P in pieces` and tables say everything.
    tabular: bool,
    /// Whether no two bindings of one position yield the same index.
    injective: bool,
    contexts: ContextTable,
}

/// Terms a block's product may expand to when its sums are multiplied out.
const MAX_TERMS: usize = 4096;

impl CompiledBlock {
    /// # Errors
    /// When the product's sums multiply out to more than 4,096 terms.
    pub fn new(spec: &BlockSpec) -> Result<CompiledBlock, SyntaxError> {
        let conditions = tables::sort_conditions(spec);
        let Some(terms) = tables::terms(spec, &conditions.by_slot, MAX_TERMS) else {
            let message = format!("the sums in this product multiply out to more than {MAX_TERMS} terms");
            return Err(SyntaxError::new(message, 0..0));
        };
        let one_piece = matches!(spec.binders[..], [BinderSpec { source: SourceSpec::Pieces, .. }]);
        let counts = terms.iter().any(|term| !term.counts.is_empty());
        let mut block = CompiledBlock {
            orientation: spec.orientation,
            multiplicity: spec.multiplicity,
            variables: spec.variables.clone(),
            binders: spec.binders.clone(),
            tabular: one_piece && conditions.residual.is_empty() && !counts,
            injective: tables::injective(spec, &terms),
            terms,
            king_conditions: conditions.kings,
            residual: conditions.residual,
            contexts: ContextTable::default(),
        };
        block.contexts = ContextTable::of(&block);
        Ok(block)
    }

    pub fn contexts(&self) -> &ContextTable {
        &self.contexts
    }

    /// Whether a move's change can be read off the moved pieces: see [`CompiledBlock::piece_rows`].
    pub fn tabular(&self) -> bool {
        self.tabular
    }

    pub fn injective(&self) -> bool {
        self.injective
    }

    pub fn multiplicity(&self) -> Multiplicity {
        self.multiplicity
    }

    /// Upper bound on the active features of a legal position.
    pub fn max_active(&self, size: u32) -> usize {
        // A side has at most nine queens, two rooks, two bishops, two knights and its king (shakmaty's strict
        // validation); on an empty board they reach 27, 14, 13, 8 and 8 squares.
        const REACHED: usize = 2 * (9 * 27 + 2 * 14 + 2 * 13 + 2 * 8 + 8);
        const PIECES: usize = 32;
        let mut bound = self.terms.len();
        let mut previous_pieces = false;
        for binder in &self.binders {
            let (factor, pieces) = match binder.source {
                SourceSpec::Pieces => (PIECES, true),
                SourceSpec::Next(..) => (1, false),
                SourceSpec::Targets(_) => (8, false),
                SourceSpec::Moves(_) | SourceSpec::Attacks(_) if previous_pieces => (REACHED.div_ceil(PIECES), false),
                SourceSpec::Moves(_) | SourceSpec::Attacks(_) => (27, false),
            };
            bound = bound.saturating_mul(factor);
            previous_pieces = pieces;
        }
        match self.multiplicity {
            Multiplicity::Set => bound.min(size as usize),
            Multiplicity::Bag => bound,
        }
    }

    /// Bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        let entries: usize = self.terms.iter().map(Term::entries).sum();
        (entries + self.contexts.entries()) * size_of::<u32>()
    }
}

/// A piece's code in a perspective: own pieces read as White's, their as Black's.
fn relative(code: PieceCode, pov: Perspective) -> usize {
    code.index() ^ (pov.index() << 3)
}
