//! Multiplying a product out into terms, and folding axes and conditions into a table a variable.

use crate::features::spec::{
    AxisSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, FactorKind, OWN_KING, ProductSpec, Property,
    VariableKind,
};

use super::groups::Groups;
use super::levels::CountPlan;

/// "No row": outside a domain, or a condition fails.
pub const NONE: u32 = u32::MAX;

/// One summand of the multiplied-out product: base + Σ over variables of their table's entry. No two terms of a block
/// share an index.
#[derive(Debug)]
pub struct Term {
    pub base: u32,
    /// The base, when it is the kings' share wherever they stand.
    pub fixed: Option<u32>,
    /// By slot. Square variables and kings: 64 entries by oriented square; piece variables: 16 × 64 by relative code,
    /// then oriented square. Empty for the variables of counts.
    pub tables: Vec<Vec<u32>>,
    /// By slot: the states that have an entry.
    pub masks: Vec<Mask>,
    /// By slot: whether all six roles of both colours have an entry on every square.
    pub whole: Vec<bool>,
    /// Code and entry of the first bound variable, where the square makes no difference and rows count once.
    pub by_code: Option<Vec<(usize, u32)>>,
    /// By slot: the states that share an entry. Only where [`super::CompiledBlock::shares_rows`].
    pub groups: Vec<Groups>,
    /// Whether the sum tells each variable's entry: no difference of two bound variables.
    pub separable: bool,
    pub counts: Vec<CountPlan>,
}

/// Bitboards by code of the oriented board, none empty; bare squares have code 0.
pub type Mask = Vec<(usize, u64)>;

impl Term {
    pub fn entries(&self) -> usize {
        self.tables.iter().map(Vec::len).sum::<usize>()
            + self.groups.iter().map(Groups::entries).sum::<usize>()
            + self.counts.iter().map(CountPlan::entries).sum::<usize>()
    }

    /// A variable that never contributes makes the whole term dead.
    fn dead(&self) -> bool {
        self.tables.iter().any(|table| !table.is_empty() && table.iter().all(|entry| *entry == NONE))
    }

    /// Fills in [`Term::by_code`] for the variable in `slot`, if its square makes no difference.
    pub fn unite(&mut self, slot: usize) {
        let table = &self.tables[slot];
        let entry = |(code, allowed): &(usize, u64)| {
            let entry = table[code << 6 | allowed.trailing_zeros() as usize];
            let same =
                (0..64).filter(|square| allowed >> square & 1 != 0).all(|square| table[code << 6 | square] == entry);
            same.then_some((*code, entry))
        };
        self.by_code = self.masks[slot].iter().map(entry).collect();
    }

    /// Whether every code of the first variable has an entry of its own, and every square of the second.
    pub fn tells(&self, first: usize, second: usize) -> bool {
        let all_differ = |mut entries: Vec<u32>| {
            entries.sort_unstable();
            entries.windows(2).all(|pair| pair[0] != pair[1] || pair[0] == NONE)
        };
        let codes = self.masks[first]
            .iter()
            .map(|(code, squares)| self.tables[first][code << 6 | squares.trailing_zeros() as usize]);
        all_differ(codes.collect()) && all_differ(self.tables[second].clone())
    }

    /// Moves each table's least entry into the base, so that tables can be compared.
    fn normalise(&mut self) {
        for table in &mut self.tables {
            let least = table.iter().copied().filter(|entry| *entry != NONE).min().unwrap_or(0);
            table.iter_mut().filter(|entry| **entry != NONE).for_each(|entry| *entry -= least);
            self.base += least;
        }
    }

    /// Notes whether the kings contribute nothing; only where no condition is over the kings.
    pub fn fix(&mut self) {
        let nothing = self.tables[..=ENEMY_KING].iter().flatten().all(|entry| *entry == 0);
        self.fixed = nothing.then_some(self.base);
    }

    /// Takes another term into this one's tables: possible when they differ in one bound variable's table alone and
    /// no state has an entry in both.
    fn absorb(&mut self, other: &Term) -> bool {
        let mut differ = (0..self.tables.len()).filter(|slot| self.tables[*slot] != other.tables[*slot]);
        let (Some(slot), None) = (differ.next(), differ.next()) else { return false };
        let overlap = || self.tables[slot].iter().zip(&other.tables[slot]).any(|(a, b)| *a != NONE && *b != NONE);
        if slot <= ENEMY_KING || !self.counts.is_empty() || !other.counts.is_empty() || overlap() {
            return false;
        }
        let base = self.base.min(other.base);
        let (left, right) = (self.base - base, other.base - base);
        for (entry, taken) in self.tables[slot].iter_mut().zip(&other.tables[slot]) {
            *entry = match (*entry, *taken) {
                (NONE, NONE) => NONE,
                (NONE, taken) => taken + right,
                (entry, _) => entry + left,
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

/// a + b, none if either is.
pub const fn plus(a: u32, b: u32) -> u32 {
    if a == NONE || b == NONE { NONE } else { a + b }
}

/// A term before its tables are filled.
#[derive(Clone, Default)]
struct Sketch {
    base: u32,
    parts: Vec<Part>,
    counts: Vec<(u32, CountSpec)>,
}

/// What one variable adds: its (difference's) value times a stride.
#[derive(Clone)]
struct Part {
    slot: usize,
    stride: u32,
    value: PartValue,
}

#[derive(Clone)]
enum PartValue {
    Axis(AxisSpec),
    /// The plain value (left of a difference).
    Plain(Property),
    /// n − 1 minus the plain value (right of a difference).
    Complement(Property, u32),
}

impl Part {
    fn of(&self, entity: Entity) -> u32 {
        let value = match &self.value {
            PartValue::Axis(axis) => axis.index(entity),
            PartValue::Plain(property) => u32::try_from(property.of(entity)).ok(),
            PartValue::Complement(property, last) => last.checked_sub(property.of(entity) as u32),
        };
        value.map_or(NONE, |value| value * self.stride)
    }
}

/// A block's product, multiplied out.
pub struct Expansion {
    /// The terms that can have rows, those that fit together merged.
    pub terms: Vec<Term>,
    /// Whether no two bindings of one position yield the same index.
    pub injective: bool,
}

/// The block's terms, or none when there are more than `limit`.
pub fn expand_product(spec: &BlockSpec, by_slot: &[(usize, ConditionSpec)], limit: usize) -> Option<Expansion> {
    let sketches = expand(&spec.product, 1, limit)?;
    let mut terms: Vec<Term> = Vec::new();
    let mut injective = true;
    for sketch in sketches {
        let mut term = fill(spec, by_slot, &sketch);
        if term.dead() {
            continue;
        }
        injective &= spec.binders.iter().all(|binder| tells_square(spec, &sketch, &term, binder.slot));
        term.normalise();
        if !terms.iter_mut().any(|known| known.absorb(&term)) {
            terms.push(term);
        }
    }
    for term in &mut terms {
        term.masks = term.tables.iter().map(|table| mask(table)).collect();
        let whole = |mask: &Mask| mask.len() == 12 && mask.iter().all(|(_, squares)| *squares == !0);
        term.whole = term.masks.iter().map(whole).collect();
    }
    Some(Expansion { terms, injective })
}

fn expand(product: &ProductSpec, scale: u32, limit: usize) -> Option<Vec<Sketch>> {
    let mut sketches = vec![Sketch::default()];
    for factor in &product.factors {
        let summands = summands(&factor.kind, factor.stride * scale, limit)?;
        if sketches.len() * summands.len() > limit {
            return None;
        }
        sketches = sketches.iter().flat_map(|left| summands.iter().map(|right| left.times(right))).collect();
    }
    Some(sketches)
}

fn summands(kind: &FactorKind, stride: u32, limit: usize) -> Option<Vec<Sketch>> {
    let one = |parts, counts| Some(vec![Sketch { base: 0, parts, counts }]);
    match kind {
        FactorKind::Axis(axis) => {
            one(vec![Part { slot: axis.slot, stride, value: PartValue::Axis(axis.clone()) }], Vec::new())
        }
        FactorKind::Difference(left, right) => {
            let last = right.size() - 1;
            let minuend = Part { slot: left.slot, stride, value: PartValue::Plain(left.property.clone()) };
            let value = PartValue::Complement(right.property.clone(), last);
            one(vec![minuend, Part { slot: right.slot, stride, value }], Vec::new())
        }
        FactorKind::Count(count) => one(Vec::new(), vec![(stride, count.clone())]),
        FactorKind::Reserved => Some(Vec::new()),
        FactorKind::Sum(products) => {
            let mut all: Vec<Sketch> = Vec::new();
            let mut offset = 0;
            for product in products {
                let expanded = expand(product, stride, limit)?;
                all.extend(expanded.into_iter().map(|sketch| Sketch { base: sketch.base + offset * stride, ..sketch }));
                offset += product.size;
            }
            (all.len() <= limit).then_some(all)
        }
    }
}

impl Sketch {
    fn times(&self, other: &Sketch) -> Sketch {
        let mut joined = self.clone();
        joined.base += other.base;
        joined.parts.extend_from_slice(&other.parts);
        joined.counts.extend_from_slice(&other.counts);
        joined
    }
}

fn fill(spec: &BlockSpec, by_slot: &[(usize, ConditionSpec)], sketch: &Sketch) -> Term {
    let table = |slot: usize| {
        let parts: Vec<&Part> = sketch.parts.iter().filter(|part| part.slot == slot).collect();
        let conditions: Vec<_> = by_slot.iter().filter(|(of, _)| *of == slot).map(|(_, condition)| condition).collect();
        let entry = |entity: Entity| {
            if conditions.iter().all(|condition| condition.holds(&|_| entity)) {
                parts.iter().fold(0, |sum, part| plus(sum, part.of(entity)))
            } else {
                NONE
            }
        };
        states(slot, spec.variables[slot]).map(|state| state.map_or(NONE, entry)).collect()
    };
    let bound = |slot: usize| slot <= ENEMY_KING || spec.binders.iter().any(|binder| binder.slot == slot);
    let tables = (0..spec.variables.len()).map(|slot| if bound(slot) { table(slot) } else { Vec::new() }).collect();
    let free = |part: &&Part| !matches!(part.value, PartValue::Axis(_)) && part.slot > ENEMY_KING;
    let differences: Vec<&Part> = sketch.parts.iter().filter(free).collect();
    let mixed = |part: &&Part| differences.iter().any(|other| other.stride == part.stride && other.slot != part.slot);
    Term {
        base: sketch.base,
        fixed: None,
        tables,
        masks: Vec::new(),
        whole: Vec::new(),
        by_code: None,
        groups: Vec::new(),
        separable: !differences.iter().any(mixed),
        counts: sketch.counts.iter().map(|(stride, count)| CountPlan::of(*stride, count, spec)).collect(),
    }
}

/// What a slot can hold, in table order; none for codes that are no piece.
pub fn states(slot: usize, kind: VariableKind) -> Box<dyn Iterator<Item = Option<Entity>>> {
    const KING: u32 = 5;
    match (slot, kind) {
        (OWN_KING | ENEMY_KING, _) => {
            let color = u32::from(slot == ENEMY_KING);
            Box::new((0..64).map(move |square| Some(Entity { square, role: KING, color })))
        }
        (_, VariableKind::Square) => Box::new((0..64).map(|square| Some(Entity::bare(square)))),
        (_, VariableKind::Piece) => Box::new((0..1024u32).map(|state| {
            let (color, role, square) = (state >> 9, state >> 6 & 7, state & 63);
            (role <= KING).then_some(Entity { square, role, color })
        })),
    }
}

/// Whether the variable's own axes (differences from a king count) tell its square. On one board a square tells its
/// piece, so a term whose bound variables all do so yields an index for one binding only.
fn tells_square(spec: &BlockSpec, sketch: &Sketch, term: &Term, slot: usize) -> bool {
    // A difference of two bound variables tells neither; its parts share a stride.
    let shared = |part: &Part| {
        let other = |other: &&Part| other.stride == part.stride && other.slot != slot && other.slot > ENEMY_KING;
        !matches!(part.value, PartValue::Axis(_)) && sketch.parts.iter().any(|part| other(&part))
    };
    let parts: Vec<&Part> = sketch.parts.iter().filter(|part| part.slot == slot && !shared(part)).collect();
    let mut seen: Vec<(u32, u32)> = Vec::new();
    for (entity, entry) in states(slot, spec.variables[slot]).zip(&term.tables[slot]) {
        if let Some(entity) = entity
            && *entry != NONE
        {
            seen.push((parts.iter().fold(0, |sum, part| plus(sum, part.of(entity))), entity.square));
        }
    }
    seen.sort_unstable();
    seen.dedup();
    seen.windows(2).all(|pair| pair[0].0 != pair[1].0)
}
