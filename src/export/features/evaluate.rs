//! Values of products for given variables: fsbench looks at blocks by trying all states, and writes the simplest form
//! that agrees with all of them.

use crate::features::spec::{BlockSpec, ENEMY_KING, Entity, FactorKind, OWN_KING, ProductSpec};

/// The elements of a product without counts.
pub fn elements(product: &ProductSpec, entities: &[Entity]) -> Vec<u32> {
    let mut out = vec![0];
    for factor in &product.factors {
        let own = match &factor.kind {
            FactorKind::Axis(axis) => axis.index(entities[axis.slot]).into_iter().collect(),
            FactorKind::Difference(left, right) => {
                let a = left.property.of(entities[left.slot]);
                let b = right.property.of(entities[right.slot]);
                vec![(a - b + left.size() as i32 - 1) as u32]
            }
            FactorKind::Reserved | FactorKind::Count(_) => Vec::new(),
            FactorKind::Reach(reach) => {
                reach.element(entities[reach.attacker], entities[reach.target]).into_iter().collect()
            }
            FactorKind::Pair(pair) => {
                let [a, b] = pair.slots();
                pair.element([entities[a], entities[b]]).into_iter().collect()
            }
            FactorKind::Sum(products) => {
                let mut all = Vec::new();
                let mut offset = 0;
                for product in products {
                    all.extend(elements(product, entities).into_iter().map(|element| element + offset));
                    offset += product.size;
                }
                all
            }
        };
        out = out.iter().flat_map(|left| own.iter().map(move |right| left * factor.size + right)).collect();
    }
    out
}

/// The block's indices for one binding, if it satisfies the condition.
pub fn indices(spec: &BlockSpec, entities: &[Entity]) -> Vec<u32> {
    if spec.condition.as_ref().is_some_and(|condition| !condition.holds(&|slot: usize| entities[slot])) {
        return Vec::new();
    }
    elements(&spec.product, entities).into_iter().filter_map(|element| spec.index_of(element)).collect()
}

/// Whether an axis, a condition or a source reads the king.
pub fn reads_king(spec: &BlockSpec, king: usize) -> bool {
    debug_assert!([OWN_KING, ENEMY_KING].contains(&king), "only kings are asked for");
    spec.product.reads(king)
        || spec.condition.as_ref().is_some_and(|condition| condition.slots().contains(&king))
        || spec.binders.iter().any(|binder| binder.source.of() == Some(king))
}

/// Whether counts occur anywhere.
pub fn has_counts(spec: &BlockSpec) -> bool {
    !spec.guards.is_empty() || !spec.product.counts().is_empty()
}
