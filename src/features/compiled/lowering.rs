//! Lowering: a product with axes of two variables becomes a product with axes of one variable, and a table turns its
//! elements into elements of the first. Compiled code sees the second only.

use std::collections::HashMap;
use std::sync::Arc;

use crate::features::spec::{
    AxisSpec, BlockSpec, DROPPED, Entity, FactorKind, FactorSpec, Multiplicity, PairSpec, ProductSpec, Property,
    ReachSpec,
};
use crate::features::syntax::SyntaxError;

use super::CompiledBlock;
use super::binding::{Binding, squares};
use super::kings::Kings;
use super::tables::{NONE, TableTerm};

/// Most elements of a lowered product: the table has as many entries.
const MAX_ELEMENTS: u64 = 1 << 24;
/// Most pairs of states that [`merges`] looks at.
const MAX_PAIRS: usize = 1 << 22;

/// The block in its lowered form; `None` if its product has axes of one variable only.
///
/// # Errors
/// When the lowered product is too large.
pub fn lowered(block: &BlockSpec) -> Result<Option<BlockSpec>, SyntaxError> {
    if !has_joint(&block.product) {
        return Ok(None);
    }
    let Some((product, elements)) = lower(&block.product) else {
        let message = "this product is too large for `reach` or `pair`: all values of both variables together have \
                       more than 2^24 combinations";
        return Err(SyntaxError::new(message, 0..0));
    };
    let index = |element: u32| match &block.renumbering {
        Some(renumbering) if element != DROPPED => renumbering[element as usize],
        _ => element,
    };
    let renumbering: Arc<[u32]> = elements.into_iter().map(index).collect();
    Ok(Some(BlockSpec { product, renumbering: Some(renumbering), ..block.clone() }))
}

fn has_joint(product: &ProductSpec) -> bool {
    product.factors.iter().any(|factor| match &factor.kind {
        FactorKind::Reach(_) | FactorKind::Pair(_) => true,
        FactorKind::Sum(products) => products.iter().any(has_joint),
        FactorKind::Axis(_) | FactorKind::Difference(..) | FactorKind::Reserved | FactorKind::Count(_) => false,
    })
}

/// The lowered product, and the element that each of its elements stands for. `None` when it is too large.
fn lower(product: &ProductSpec) -> Option<(ProductSpec, Vec<u32>)> {
    let mut factors = Vec::new();
    let mut elements = vec![0];
    for factor in &product.factors {
        let (own, stands_for) = lower_factor(factor)?;
        if elements.len() as u64 * stands_for.len() as u64 > MAX_ELEMENTS {
            return None;
        }
        let joined =
            |left: u32, right: u32| if [left, right].contains(&DROPPED) { DROPPED } else { left * factor.size + right };
        elements = elements.iter().flat_map(|left| stands_for.iter().map(move |right| joined(*left, *right))).collect();
        factors.extend(own);
    }
    Some((ProductSpec::new(factors, elements.len() as u32), elements))
}

/// The factors that replace one, and the factor's element that each of their elements stands for.
fn lower_factor(factor: &FactorSpec) -> Option<(Vec<FactorSpec>, Vec<u32>)> {
    match &factor.kind {
        FactorKind::Reach(reach) => Some(lower_reach(reach)),
        FactorKind::Pair(pair) => {
            let size = pair.sides[0].size;
            let of =
                |element: u64| PairSpec::number((element / u64::from(size)) as u32, (element % u64::from(size)) as u32);
            let count = u64::from(size) * u64::from(size);
            if count > MAX_ELEMENTS {
                return None;
            }
            let elements = (0..count).map(|at| of(at).unwrap_or(DROPPED)).collect();
            Some((pair.sides.iter().flat_map(|side| side.factors.clone()).collect(), elements))
        }
        FactorKind::Sum(products) if products.iter().any(has_joint) => {
            let mut summands = Vec::new();
            let mut elements = Vec::new();
            let mut offset = 0;
            for product in products {
                let (summand, own) = lower(product)?;
                elements
                    .extend(own.into_iter().map(|element| if element == DROPPED { DROPPED } else { offset + element }));
                offset += product.size;
                summands.push(summand);
            }
            let size = elements.len() as u32;
            let sum = FactorSpec { kind: FactorKind::Sum(summands), size, ..factor.clone() };
            (elements.len() as u64 <= MAX_ELEMENTS).then_some((vec![sum], elements))
        }
        _ => (u64::from(factor.size) <= MAX_ELEMENTS).then(|| (vec![factor.clone()], (0..factor.size).collect())),
    }
}

/// The attacker's role, its colour for pawns, its square, and the target's square.
fn lower_reach(reach: &ReachSpec) -> (Vec<FactorSpec>, Vec<u32>) {
    let axis = |property: Property, slot: usize, domain: Option<Vec<u32>>| {
        let axis = AxisSpec { property, slot, domain };
        let size = axis.size();
        FactorSpec { name: String::new(), kind: FactorKind::Axis(axis), size, stride: 0 }
    };
    let colors = if reach.role == 0 { 2 } else { 1 };
    let mut factors = vec![axis(Property::Role, reach.attacker, Some(vec![reach.role]))];
    if colors == 2 {
        factors.push(axis(Property::Color, reach.attacker, None));
    }
    factors.extend([axis(Property::Square, reach.attacker, None), axis(Property::Square, reach.target, None)]);
    let element = |at: u32| {
        let color = at >> 12;
        let square = at >> 6 & 63;
        let target = at & 63;
        let element = reach.element(Entity { square, role: reach.role, color }, Entity::bare(target));
        element.unwrap_or(DROPPED)
    };
    (factors, (0..colors << 12).map(element).collect())
}

/// Whether two bindings of one position may have different rows that the renumbering makes equal. Never says no
/// wrongly.
pub fn merges(block: &CompiledBlock) -> bool {
    let Some(renumbering) = &block.spec.renumbering else { return false };
    let mut is_new = alone(renumbering);
    if block.terms.iter().all(|term| possible_rows(term).is_some_and(|rows| rows.into_iter().all(&mut is_new))) {
        return false;
    }
    let mut is_new = alone(renumbering);
    block.multiplicity == Multiplicity::Bag || !block.terms.iter().all(|term| each_pair_row(block, term, &mut is_new))
}

/// A question to ask of row after row: whether none before it, but for itself, had its index.
fn alone(renumbering: &[u32]) -> impl FnMut(u32) -> bool + '_ {
    let mut row_of: HashMap<u32, u32> = HashMap::new();
    move |row| match renumbering[row as usize] {
        DROPPED => true,
        index => *row_of.entry(index).or_insert(row) == row,
    }
}

/// The sums of one entry per variable; `None` if there are counts or too many sums.
fn possible_rows(term: &TableTerm) -> Option<Vec<u32>> {
    if !term.counts.is_empty() {
        return None;
    }
    let mut rows = vec![term.base];
    for table in term.tables.iter().filter(|table| !table.is_empty()) {
        let mut entries: Vec<u32> = table.iter().copied().filter(|entry| *entry != NONE).collect();
        entries.sort_unstable();
        entries.dedup();
        if rows.len() * entries.len() > MAX_PAIRS {
            return None;
        }
        rows = rows.iter().flat_map(|row| entries.iter().map(move |entry| row + entry)).collect();
    }
    rows.sort_unstable();
    rows.dedup();
    Some(rows)
}

/// Whether `is_new` accepts the row of every pair of states that the conditions allow; false if the block has no two
/// variables or reads the kings.
fn each_pair_row(block: &CompiledBlock, term: &TableTerm, is_new: &mut impl FnMut(u32) -> bool) -> bool {
    let ([first, second], Some(base)) = (&block.binders[..], term.king_independent_base) else { return false };
    let states = |slot: usize| -> Vec<Binding> {
        let of = |(code, allowed): &(usize, u64)| {
            squares(*allowed).map(|square| Binding { code: *code, square }).collect::<Vec<_>>()
        };
        term.masks[slot].iter().flat_map(of).collect()
    };
    let firsts = states(first.slot);
    let seconds = states(second.slot);
    if firsts.len() * seconds.len() > MAX_PAIRS || !term.counts.is_empty() {
        return false;
    }
    let reads_kings = second.reads_earlier(|slot| slot != first.slot) || first.reads_earlier(|_| true);
    let mut bindings = block.bindings(&Kings::default());
    firsts.iter().all(|state| {
        bindings[first.slot] = *state;
        let mut buffer = None;
        let allowed = second.allowed_by_pairs(&bindings, &mut buffer);
        let entry = term.tables[first.slot][state.state(first.kind)];
        !reads_kings
            && seconds.iter().all(|other| {
                let is_allowed = allowed.is_none_or(|allowed| allowed[other.code] >> other.square & 1 != 0);
                !is_allowed || is_new(base + entry + term.tables[second.slot][other.state(second.kind)])
            })
    })
}
