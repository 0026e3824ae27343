//! Multiplies a product out into terms, and folds axes and conditions into one table per variable.

use crate::features::spec::{
    AxisSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, FactorKind, OWN_KING, ProductSpec, Property,
    VariableKind,
};

/// No row: a value lies outside a domain, or a condition fails.
pub const NONE: u32 = u32::MAX;

/// One summand of the multiplied-out product. Its rows are base + Σ over variables of their table's entry. No two terms
/// of a block share an index.
#[derive(Debug)]
pub struct TableTerm {
    pub base: u32,
    /// The base, where the kings add nothing to it on any square.
    pub king_independent_base: Option<u32>,
    /// By slot. Square variables and kings: 64 entries by oriented square; piece variables: 16 × 64 by relative code,
    /// then oriented square. Empty for the variables of counts.
    pub tables: Vec<Vec<u32>>,
    /// By slot: the states that have an entry.
    pub masks: Vec<Mask>,
    /// By slot: whether all six roles of both colours have an entry on every square.
    pub complete: Vec<bool>,
    /// Whether a row determines each variable's entry: there is no difference of two bound variables.
    pub separable: bool,
    pub counts: Vec<TermCount>,
}

/// A count among a term's factors.
#[derive(Debug)]
pub struct TermCount {
    pub spec: CountSpec,
    pub stride: u32,
}

/// Non-empty bitboards by code of the oriented board; bare squares have code 0.
pub type Mask = Vec<(usize, u64)>;

impl TableTerm {
    /// Whether some variable has no entry at all, so that the term has no rows.
    fn is_dead(&self) -> bool {
        self.tables.iter().any(|table| !table.is_empty() && table.iter().all(|entry| *entry == NONE))
    }

    /// Moves each table's least entry into the base, so that tables can be compared.
    fn normalise(&mut self) {
        for table in &mut self.tables {
            let least = table.iter().copied().filter(|entry| *entry != NONE).min().unwrap_or(0);
            table.iter_mut().filter(|entry| **entry != NONE).for_each(|entry| *entry -= least);
            self.base += least;
        }
    }

    /// Fills in [`TableTerm::king_independent_base`]; only for blocks without conditions over the kings alone.
    pub fn find_king_independent_base(&mut self) {
        let all_zero = self.tables[..=ENEMY_KING].iter().flatten().all(|entry| *entry == 0);
        self.king_independent_base = all_zero.then_some(self.base);
    }

    /// Merges another term into this one's tables and returns true, if they differ only in the table of one bound
    /// variable and no state has an entry in both.
    fn absorb(&mut self, other: &TableTerm) -> bool {
        let mut differ = (0..self.tables.len()).filter(|slot| self.tables[*slot] != other.tables[*slot]);
        let (Some(slot), None) = (differ.next(), differ.next()) else { return false };
        let overlap = || self.tables[slot].iter().zip(&other.tables[slot]).any(|(a, b)| *a != NONE && *b != NONE);
        if slot <= ENEMY_KING || !self.counts.is_empty() || !other.counts.is_empty() || overlap() {
            return false;
        }
        let base = self.base.min(other.base);
        let own_shift = self.base - base;
        let other_shift = other.base - base;
        for (entry, other) in self.tables[slot].iter_mut().zip(&other.tables[slot]) {
            *entry = match (*entry, *other) {
                (NONE, NONE) => NONE,
                (NONE, other) => other + other_shift,
                (own, _) => own + own_shift,
            };
        }
        self.base = base;
        self.separable &= other.separable;
        true
    }
}

/// The states of a table that have an entry.
pub fn mask(table: &[u32]) -> Mask {
    let bits = |states: &[u32]| {
        states.iter().enumerate().fold(0u64, |bits, (at, entry)| bits | u64::from(*entry != NONE) << at)
    };
    table.chunks(64).map(bits).enumerate().filter(|(_, bits)| *bits != 0).collect()
}

/// a + b; [`NONE`] if either is.
pub const fn plus(a: u32, b: u32) -> u32 {
    if a == NONE || b == NONE { NONE } else { a + b }
}

/// A term before its tables are filled.
#[derive(Clone, Default)]
struct TermDraft {
    base: u32,
    contributions: Vec<Contribution>,
    /// Stride and count.
    counts: Vec<(u32, CountSpec)>,
}

/// The part of a row that one axis or one side of a difference adds: a value times a stride.
#[derive(Clone)]
struct Contribution {
    slot: usize,
    stride: u32,
    value: ContributedValue,
}

#[derive(Clone)]
enum ContributedValue {
    Axis(AxisSpec),
    /// The plain value, left of a difference.
    Plain(Property),
    /// n − 1 minus the plain value, right of a difference.
    Complement(Property, u32),
}

impl Contribution {
    fn of(&self, entity: Entity) -> u32 {
        let value = match &self.value {
            ContributedValue::Axis(axis) => axis.index(entity),
            ContributedValue::Plain(property) => u32::try_from(property.of(entity)).ok(),
            ContributedValue::Complement(property, last) => last.checked_sub(property.of(entity) as u32),
        };
        value.map_or(NONE, |value| value * self.stride)
    }
}

/// A block's product, multiplied out.
pub struct Expansion {
    /// The terms that can have rows, merged where possible.
    pub terms: Vec<TableTerm>,
    /// Whether no two bindings of one position yield the same index.
    pub injective: bool,
}

/// The block's terms; `None` when there are more than `limit`.
pub fn expand_product(spec: &BlockSpec, by_slot: &[(usize, ConditionSpec)], limit: usize) -> Option<Expansion> {
    let drafts = expand(&spec.product, 1, limit)?;
    let mut terms: Vec<TableTerm> = Vec::new();
    let mut injective = true;
    for draft in drafts {
        let mut term = fill(spec, by_slot, &draft);
        if term.is_dead() {
            continue;
        }
        injective &= spec.binders.iter().all(|binder| determines_square(spec, &draft, &term, binder.slot));
        term.normalise();
        if !terms.iter_mut().any(|known| known.absorb(&term)) {
            terms.push(term);
        }
    }
    for term in &mut terms {
        term.masks = term.tables.iter().map(|table| mask(table)).collect();
        let is_complete = |mask: &Mask| mask.len() == 12 && mask.iter().all(|(_, squares)| *squares == !0);
        term.complete = term.masks.iter().map(is_complete).collect();
    }
    Some(Expansion { terms, injective })
}

fn expand(product: &ProductSpec, scale: u32, limit: usize) -> Option<Vec<TermDraft>> {
    let mut drafts = vec![TermDraft::default()];
    for factor in &product.factors {
        let summands = summands(&factor.kind, factor.stride * scale, limit)?;
        if drafts.len() * summands.len() > limit {
            return None;
        }
        drafts = drafts.iter().flat_map(|left| summands.iter().map(|right| left.times(right))).collect();
    }
    Some(drafts)
}

fn summands(kind: &FactorKind, stride: u32, limit: usize) -> Option<Vec<TermDraft>> {
    let single = |contributions, counts| Some(vec![TermDraft { base: 0, contributions, counts }]);
    match kind {
        FactorKind::Axis(axis) => single(
            vec![Contribution { slot: axis.slot, stride, value: ContributedValue::Axis(axis.clone()) }],
            Vec::new(),
        ),
        FactorKind::Difference(left, right) => {
            let last = right.size() - 1;
            let minuend =
                Contribution { slot: left.slot, stride, value: ContributedValue::Plain(left.property.clone()) };
            let value = ContributedValue::Complement(right.property.clone(), last);
            single(vec![minuend, Contribution { slot: right.slot, stride, value }], Vec::new())
        }
        FactorKind::Count(count) => single(Vec::new(), vec![(stride, count.clone())]),
        // Lowering leaves none.
        FactorKind::Reserved | FactorKind::Reach(_) | FactorKind::Pair(_) => Some(Vec::new()),
        FactorKind::Sum(products) => {
            let mut all: Vec<TermDraft> = Vec::new();
            let mut offset = 0;
            for product in products {
                let expanded = expand(product, stride, limit)?;
                all.extend(expanded.into_iter().map(|draft| TermDraft { base: draft.base + offset * stride, ..draft }));
                offset += product.size;
            }
            (all.len() <= limit).then_some(all)
        }
    }
}

impl TermDraft {
    fn times(&self, other: &TermDraft) -> TermDraft {
        let mut joined = self.clone();
        joined.base += other.base;
        joined.contributions.extend_from_slice(&other.contributions);
        joined.counts.extend_from_slice(&other.counts);
        joined
    }
}

fn fill(spec: &BlockSpec, by_slot: &[(usize, ConditionSpec)], draft: &TermDraft) -> TableTerm {
    let table = |slot: usize| {
        let contributions: Vec<&Contribution> = draft.contributions.iter().filter(|of| of.slot == slot).collect();
        let conditions: Vec<_> = by_slot.iter().filter(|(of, _)| *of == slot).map(|(_, condition)| condition).collect();
        let entry = |entity: Entity| {
            if conditions.iter().all(|condition| condition.holds(&|_| entity)) {
                contributions.iter().fold(0, |sum, contribution| plus(sum, contribution.of(entity)))
            } else {
                NONE
            }
        };
        states(slot, spec.variables[slot]).map(|state| state.map_or(NONE, entry)).collect()
    };
    let is_bound = |slot: usize| slot <= ENEMY_KING || spec.binders.iter().any(|binder| binder.slot == slot);
    let tables = (0..spec.variables.len()).map(|slot| if is_bound(slot) { table(slot) } else { Vec::new() }).collect();
    let in_difference = |of: &&Contribution| !matches!(of.value, ContributedValue::Axis(_)) && of.slot > ENEMY_KING;
    let differences: Vec<&Contribution> = draft.contributions.iter().filter(in_difference).collect();
    // Both sides of a difference have the same stride.
    let mixes = |of: &&Contribution| differences.iter().any(|other| other.stride == of.stride && other.slot != of.slot);
    TableTerm {
        base: draft.base,
        king_independent_base: None,
        tables,
        masks: Vec::new(),
        complete: Vec::new(),
        separable: !differences.iter().any(mixes),
        counts: draft.counts.iter().map(|(stride, count)| TermCount { spec: count.clone(), stride: *stride }).collect(),
    }
}

/// The possible values of a slot in table order; `None` for codes without a piece.
pub fn states(slot: usize, kind: VariableKind) -> Box<dyn Iterator<Item = Option<Entity>>> {
    const KING: u32 = 5;
    match (slot, kind) {
        (OWN_KING | ENEMY_KING, _) => {
            let color = u32::from(slot == ENEMY_KING);
            Box::new((0..64).map(move |square| Some(Entity { square, role: KING, color })))
        }
        (_, VariableKind::Square) => Box::new((0..64).map(|square| Some(Entity::bare(square)))),
        (_, VariableKind::Piece) => Box::new((0..1024u32).map(|state| {
            let color = state >> 9;
            let role = state >> 6 & 7;
            let square = state & 63;
            (role <= KING).then_some(Entity { square, role, color })
        })),
    }
}

/// Whether the variable's own axes (differences from a king included) determine its square. On one board a square
/// determines its piece, so a term whose bound variables all pass yields an index for one binding only.
fn determines_square(spec: &BlockSpec, draft: &TermDraft, term: &TableTerm, slot: usize) -> bool {
    // A difference of two bound variables, whose sides share a stride, determines neither.
    let in_shared_difference = |of: &Contribution| {
        let is_other =
            |other: &Contribution| other.stride == of.stride && other.slot != slot && other.slot > ENEMY_KING;
        !matches!(of.value, ContributedValue::Axis(_)) && draft.contributions.iter().any(is_other)
    };
    let own = draft.contributions.iter().filter(|of| of.slot == slot && !in_shared_difference(of));
    let own: Vec<&Contribution> = own.collect();
    let mut sums_and_squares: Vec<(u32, u32)> = Vec::new();
    for (entity, entry) in states(slot, spec.variables[slot]).zip(&term.tables[slot]) {
        if let Some(entity) = entity
            && *entry != NONE
        {
            sums_and_squares.push((own.iter().fold(0, |sum, of| plus(sum, of.of(entity))), entity.square));
        }
    }
    sums_and_squares.sort_unstable();
    sums_and_squares.dedup();
    sums_and_squares.windows(2).all(|pair| pair[0].0 != pair[1].0)
}
