//! Multiplying a product out into terms, and folding axes and conditions into a table a variable.

use crate::features::spec::{
    AxisSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, FactorKind, OWN_KING, ProductSpec, Property,
    VariableKind,
};

/// "No row": outside a domain, or a condition fails.
pub const NONE: u32 = u32::MAX;

/// One summand of the multiplied-out product: base + Σ over variables of their table's entry.
#[derive(Debug)]
pub struct Term {
    pub base: u32,
    /// By slot. Square variables and kings: 64 entries by oriented square; piece variables: 16 × 64 by relative code,
    /// then oriented square.
    pub tables: Vec<Vec<u32>>,
    /// What each count is multiplied by.
    pub counts: Vec<(u32, CountSpec)>,
}

impl Term {
    pub fn entries(&self) -> usize {
        self.tables.iter().map(Vec::len).sum()
    }

    /// A variable that never contributes makes the whole term dead.
    pub fn dead(&self) -> bool {
        self.tables.iter().any(|table| table.iter().all(|entry| *entry == NONE))
    }
}

/// a + b, none if either is.
pub const fn plus(a: u32, b: u32) -> u32 {
    if a == NONE || b == NONE { NONE } else { a + b }
}

/// A block's conditions by what they read.
pub struct Conditions {
    /// (slot, condition over it alone)
    pub by_slot: Vec<(usize, ConditionSpec)>,
    /// Over both kings.
    pub kings: Vec<ConditionSpec>,
    /// The rest.
    pub residual: Vec<ConditionSpec>,
}

pub fn sort_conditions(spec: &BlockSpec) -> Conditions {
    let mut sorted = Conditions { by_slot: Vec::new(), kings: Vec::new(), residual: Vec::new() };
    for condition in spec.condition.iter().flat_map(conjuncts) {
        match condition.slots()[..] {
            [] => sorted.kings.push(condition),
            [slot] => sorted.by_slot.push((slot, condition)),
            [OWN_KING, ENEMY_KING] => sorted.kings.push(condition),
            _ => sorted.residual.push(condition),
        }
    }
    sorted
}

fn conjuncts(condition: &ConditionSpec) -> Vec<ConditionSpec> {
    match condition {
        ConditionSpec::All(of) => of.iter().flat_map(conjuncts).collect(),
        other => vec![other.clone()],
    }
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

/// The block's terms, or none when there are more than `limit`.
pub fn terms(spec: &BlockSpec, by_slot: &[(usize, ConditionSpec)], limit: usize) -> Option<Vec<Term>> {
    let sketches = expand(&spec.product, 1, limit)?;
    Some(sketches.into_iter().map(|sketch| fill(spec, by_slot, sketch)).collect())
}

fn expand(product: &ProductSpec, scale: u32, limit: usize) -> Option<Vec<Sketch>> {
    let mut sketches = vec![Sketch::default()];
    let mut stride = product.size;
    for factor in &product.factors {
        stride = stride.checked_div(factor.size).unwrap_or(0);
        let summands = summands(&factor.kind, stride * scale, limit)?;
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

fn fill(spec: &BlockSpec, by_slot: &[(usize, ConditionSpec)], sketch: Sketch) -> Term {
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
        states(spec, slot).map(|state| state.map_or(NONE, entry)).collect()
    };
    let tables = (0..spec.variables.len()).map(table).collect();
    Term { base: sketch.base, tables, counts: sketch.counts }
}

/// What a slot can hold, in table order; none for codes that are no piece.
fn states(spec: &BlockSpec, slot: usize) -> Box<dyn Iterator<Item = Option<Entity>>> {
    const KING: u32 = 5;
    match (slot, spec.variables[slot]) {
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

/// Whether an index tells its binding: in every term, every bound variable's own axes (differences from a king count)
/// tell its square. On one board a square tells its piece.
pub fn injective(spec: &BlockSpec, terms: &[Term]) -> bool {
    let Some(sketches) = expand(&spec.product, 1, usize::MAX) else { return false };
    let bound = spec.binders.iter().map(|binder| binder.slot);
    let mut slots = bound.filter(|slot| *slot > ENEMY_KING);
    slots.all(|slot| sketches.iter().zip(terms).all(|(sketch, term)| tells_square(spec, sketch, term, slot)))
}

fn tells_square(spec: &BlockSpec, sketch: &Sketch, term: &Term, slot: usize) -> bool {
    // A difference of two bound variables tells neither; its parts share a stride.
    let shared = |part: &Part| {
        let other = |other: &&Part| other.stride == part.stride && other.slot != slot && other.slot > ENEMY_KING;
        !matches!(part.value, PartValue::Axis(_)) && sketch.parts.iter().any(|part| other(&part))
    };
    let parts: Vec<&Part> = sketch.parts.iter().filter(|part| part.slot == slot && !shared(part)).collect();
    let mut seen: Vec<(u32, u32)> = Vec::new();
    for (entity, entry) in states(spec, slot).zip(&term.tables[slot]) {
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
