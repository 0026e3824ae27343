//! The compiled encoder. An index is a sum of what each variable contributes, so every block becomes, per term of its
//! product, a small table a variable; bindings are found on bitboards.
//!
//! [`tables`] multiplies products out, [`levels`] turns binders and conditions into bitboards, [`encode`] finds active
//! features, [`delta`] what a move changes, [`context`] when a refresh is due. Equal to [`super::reference`] on every
//! position (`tests/features.rs`).

mod context;
mod delta;
mod encode;
#[cfg(test)]
#[path = "../../../tests/generator/mod.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with tests/generated.rs")]
mod generator;
mod groups;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod levels;
mod pieces;
mod tables;
mod view;

use std::sync::OnceLock;

use crate::chess::{Mirror, Orientation};

use super::spec::{BinderSpec, BlockSpec, ConditionSpec, Multiplicity, SourceSpec, VariableKind};
use super::syntax::SyntaxError;

pub use context::ContextTable;
pub use delta::{Move, Rows};
#[cfg(target_arch = "x86_64")]
pub use lanes::Lanes;
use pieces::{OwnKings, Turned};
pub use pieces::{PieceList, RowBuffer};
pub use view::{Needs, Placement};

use groups::Groups;
use levels::{Conditions, CountPlan, Guard, Level};
use tables::{NONE, Term};

/// One block, ready to encode.
#[derive(Debug)]
pub struct CompiledBlock {
    orientation: Orientation,
    multiplicity: Multiplicity,
    size: u32,
    /// Number of variables, kings and those of counts included.
    variables: usize,
    levels: Vec<Level>,
    terms: Vec<Term>,
    /// Conditions over the kings alone.
    gate: Vec<ConditionSpec>,
    /// Conditions with counts in them.
    guards: Vec<Guard>,
    shape: Shape,
    /// Whether no two bindings of one position yield the same index.
    injective: bool,
    /// Where the tables of the pieces that move say all that a move changes while the kings stay.
    walk: Option<Walk>,
    /// Whether rows shared by pieces of one code are found once, and others are not shared.
    united: bool,
    /// Worked out when first asked for: encoding does without.
    contexts: OnceLock<ContextTable>,
    spec: BlockSpec,
}

/// What a block's bindings look like, which decides how it is encoded and how it follows a move.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// `P in pieces`, no counts: a walk over the pieces.
    Piece,
    /// Two variables, the second found from the first or from all pieces; or one found from a king. No counts.
    Pair,
    /// No variable, but counts whose variables are found as those of `Piece` and `Pair`.
    Counts,
    /// `P in pieces` with counts, each of which depends on P's reach, the pieces or what they reach.
    Counted,
    /// Anything else.
    Other,
}

impl Shape {
    fn of(binders: &[BinderSpec], terms: &[Term]) -> Shape {
        let counts = terms.iter().any(|term| !term.counts.is_empty());
        let local = || terms.iter().flat_map(|term| &term.counts).all(CountPlan::local);
        match binders {
            [] if counts && local() => Shape::Counts,
            [BinderSpec { source: SourceSpec::Pieces, slot, .. }] if counts => {
                let mut all = terms.iter().flat_map(|term| &term.counts);
                if all.all(|count| count.trace(*slot).is_some()) { Shape::Counted } else { Shape::Other }
            }
            _ if counts => Shape::Other,
            [BinderSpec { source: SourceSpec::Pieces, .. }] => Shape::Piece,
            [_] => Shape::Pair,
            [BinderSpec { source: SourceSpec::Pieces, slot, .. }, second]
                if second.source.of().is_none_or(|of| of == *slot) =>
            {
                Shape::Pair
            }
            _ => Shape::Other,
        }
    }
}

/// A block that is one table over pieces.
#[derive(Debug)]
struct Walk {
    table: Box<[u32; 1024]>,
    /// Whether the kings stand for nothing, wherever they stand.
    blind: bool,
    /// Whether no two pieces share an entry and all entries lie below the number of states.
    small: bool,
    /// Whether every piece has an entry on every square.
    whole: bool,
    /// The table as boards have their pieces.
    turned: Turned,
    /// By perspective and own king as it stands, where the enemy's makes no difference: see [`CompiledBlock::turned`].
    own_kings: Option<Box<OwnKings>>,
    #[cfg(target_arch = "x86_64")]
    shares: Option<lanes::Shares>,
}

/// Terms a block's product may expand to when its sums are multiplied out.
const MAX_TERMS: usize = 4096;

impl CompiledBlock {
    /// # Errors
    /// When the product's sums multiply out to more than 4,096 terms.
    pub fn new(spec: &BlockSpec) -> Result<CompiledBlock, SyntaxError> {
        let conditions = Conditions::sort(spec.condition.as_ref(), &spec.binders, |_| true);
        let Some(expansion) = tables::expand_product(spec, &conditions.by_slot, MAX_TERMS) else {
            let message = format!("the sums in this product multiply out to more than {MAX_TERMS} terms");
            return Err(SyntaxError::new(message, 0..0));
        };
        let mut block = CompiledBlock {
            orientation: spec.orientation,
            multiplicity: spec.multiplicity,
            size: spec.product.size,
            variables: spec.variables.len(),
            levels: conditions.levels(&spec.binders, &spec.variables),
            shape: if spec.guards.is_empty() { Shape::of(&spec.binders, &expansion.terms) } else { Shape::Other },
            guards: Guard::all(&spec.guards, spec),
            terms: expansion.terms,
            gate: conditions.gate,
            injective: expansion.injective,
            walk: None,
            united: false,
            contexts: OnceLock::new(),
            spec: spec.clone(),
        };
        if block.gate.is_empty() {
            block.terms.iter_mut().for_each(Term::fix);
        }
        if block.shares_rows() && matches!(block.shape, Shape::Piece | Shape::Pair) {
            for term in &mut block.terms {
                term.groups = term.tables.iter().map(|table| Groups::of(table)).collect();
            }
        }
        block.walk = block.as_walk();
        let own_kings = block.own_kings();
        if let Some(walk) = &mut block.walk {
            walk.own_kings = own_kings;
        }
        block.unite();
        Ok(block)
    }

    /// The block as one table, if it is one piece without conditions or shared rows, in one term.
    fn as_walk(&self) -> Option<Walk> {
        let ([level], [term]) = (&self.levels[..], &self.terms[..]) else { return None };
        if self.shape != Shape::Piece || self.shares_rows() || !level.plain() {
            return None;
        }
        let entries = &term.tables[level.slot];
        let table: Box<[u32; 1024]> = entries.clone().into_boxed_slice().try_into().ok()?;
        Some(Walk {
            whole: term.whole[level.slot],
            turned: Turned::of(&table),
            own_kings: None,
            #[cfg(target_arch = "x86_64")]
            shares: lanes::Shares::of(&table),
            table,
            blind: term.fixed.is_some() && self.orientation.mirror == Mirror::None,
            small: self.injective && entries.iter().all(|entry| *entry == NONE || *entry < 1024),
        })
    }

    /// Finds pairs that differ in nothing but the square of their first piece: a row for all its moves at once.
    fn unite(&mut self) {
        let [first, second] = &self.levels[..] else { return };
        let bare = second.kind == VariableKind::Square && second.beyond(first).is_some();
        if !(self.shape == Shape::Pair && self.shares_rows() && bare && first.plain() && second.plain()) {
            return;
        }
        for term in &mut self.terms {
            term.unite(first.slot);
        }
        let distinct = |term: &Term| term.separable && term.by_code.is_some() && term.tells(first.slot, second.slot);
        self.united = self.terms.iter().all(distinct);
    }

    /// What it needs of a board to be encoded.
    pub fn needs(&self) -> Needs {
        let guards = self.guards.iter().flat_map(Guard::counts);
        let counting = self.terms.iter().flat_map(|term| &term.counts).chain(guards).any(CountPlan::attacks);
        let attacks = counting || self.levels.iter().any(Level::attacks);
        Needs { views: self.shape != Shape::Piece, attacks }
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
        let mut previous_pieces = false;
        for level in &self.levels {
            let (factor, pieces) = match level.source {
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
        let walk = self.walk.as_ref().map_or(0, |walk| 5 * walk.table.len());
        let guards: usize = self.guards.iter().flat_map(Guard::counts).map(CountPlan::entries).sum();
        (entries + guards + walk + levels::entries(&self.levels) + self.contexts().entries()) * size_of::<u32>()
    }
}
