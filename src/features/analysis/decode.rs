//! Decodes an index of a product: the constraints that it puts on its bindings.

use std::collections::HashMap;

use crate::features::spec::{
    AxisSpec, BlockSpec, CountSpec, Entity, FactorKind, PairSpec, ProductSpec, Property, ReachSpec,
};

use super::domain::Domain;

/// Decodes the elements of a product.
pub struct ElementDecoder<'a> {
    /// With their strides.
    factors: Vec<(u32, FactorDecoder<'a>)>,
    size: u32,
}

enum FactorDecoder<'a> {
    /// The variable's values by element, without elements that no value has.
    Axis {
        slot: usize,
        by_element: HashMap<u32, Domain>,
    },
    Difference(DifferenceConstraint<'a>),
    /// With the attacker's and the target's values.
    Reach(&'a ReachSpec, [Domain; 2]),
    /// With each side's values by element.
    Pair(&'a PairSpec, [HashMap<u32, Domain>; 2]),
    Count(&'a CountSpec),
    Sum(Vec<ElementDecoder<'a>>),
    Reserved,
}

/// The constraint left − right = `is` on plain values.
#[derive(Clone, Copy)]
pub struct DifferenceConstraint<'a> {
    pub left: (&'a Property, usize),
    pub right: (&'a Property, usize),
    pub is: i32,
}

impl DifferenceConstraint<'_> {
    pub fn holds(&self, entities: &[Entity]) -> bool {
        let value = |(property, slot): (&Property, usize)| property.of(entities[slot]);
        value(self.left) - value(self.right) == self.is
    }
}

/// The constraint that a factor of two variables has an element.
#[derive(Clone, Copy)]
pub enum Joint<'a> {
    Reach(&'a ReachSpec, u32),
    Pair(&'a PairSpec, u32),
}

impl Joint<'_> {
    pub fn slots(self) -> [usize; 2] {
        match self {
            Joint::Reach(reach, _) => reach.slots(),
            Joint::Pair(pair, _) => pair.slots(),
        }
    }

    pub fn holds(self, entities: &[Entity]) -> bool {
        let [first, second] = self.slots().map(|slot| entities[slot]);
        match self {
            Joint::Reach(reach, element) => reach.element(first, second) == Some(element),
            Joint::Pair(pair, element) => pair.element([first, second]) == Some(element),
        }
    }
}

/// The constraints of an index on a binding.
#[derive(Clone)]
pub struct Constraints<'a> {
    /// By slot.
    pub domains: Vec<Domain>,
    pub differences: Vec<DifferenceConstraint<'a>>,
    pub joints: Vec<Joint<'a>>,
    /// Each count's clamped value.
    pub counts: Vec<(&'a CountSpec, u32)>,
}

impl Constraints<'_> {
    /// Restricts two variables; false when one has no value left.
    fn restrict(&mut self, slots: [usize; 2], to: &[Domain; 2]) -> bool {
        slots.iter().zip(to).all(|(slot, domain)| {
            self.domains[*slot] = self.domains[*slot].and(domain);
            !self.domains[*slot].is_empty()
        })
    }

    /// Removes from both sides of each difference the values that no value of the other side completes; false when a
    /// side becomes empty.
    #[must_use]
    pub fn narrow(&mut self) -> bool {
        self.differences.iter().all(|difference| {
            let DifferenceConstraint { left: (of_left, left), right: (of_right, right), is } = *difference;
            if left == right {
                return is == 0;
            }
            let values = |property: &Property, domain: &Domain| {
                domain.entities().fold(0u64, |all, entity| all | 1 << property.of(entity))
            };
            let has = |values: u64, value: i32| (0..64).contains(&value) && values >> value & 1 != 0;
            let minuends = values(of_left, &self.domains[left]);
            let subtrahends = values(of_right, &self.domains[right]);
            let domains = &mut self.domains;
            domains[left] = domains[left].filtered(|entity| has(subtrahends, of_left.of(entity) - is));
            domains[right] = domains[right].filtered(|entity| has(minuends, of_right.of(entity) + is));
            !domains[left].is_empty() && !domains[right].is_empty()
        })
    }
}

impl<'a> ElementDecoder<'a> {
    /// `domains`: the values of each slot.
    pub fn new(block: &'a BlockSpec, domains: &[Domain]) -> ElementDecoder<'a> {
        ElementDecoder::product(&block.product, domains)
    }

    fn product(product: &'a ProductSpec, domains: &[Domain]) -> ElementDecoder<'a> {
        let factor = |kind: &'a FactorKind| match kind {
            FactorKind::Axis(axis) => FactorDecoder::Axis {
                slot: axis.slot,
                by_element: by_element(&domains[axis.slot], |entity| axis.index(entity)),
            },
            FactorKind::Difference(left, right) => {
                let is = 1 - left.size() as i32;
                let side = |axis: &'a AxisSpec| (&axis.property, axis.slot);
                FactorDecoder::Difference(DifferenceConstraint { left: side(left), right: side(right), is })
            }
            FactorKind::Count(count) => FactorDecoder::Count(count),
            FactorKind::Reach(reach) => FactorDecoder::Reach(reach, reach.slots().map(|slot| domains[slot])),
            FactorKind::Pair(pair) => {
                let slots = pair.slots();
                FactorDecoder::Pair(
                    pair,
                    [0, 1].map(|side| {
                        by_element(&domains[slots[side]], |entity| PairSpec::side_element(&pair.sides[side], entity))
                    }),
                )
            }
            FactorKind::Sum(products) => {
                FactorDecoder::Sum(products.iter().map(|product| ElementDecoder::product(product, domains)).collect())
            }
            FactorKind::Reserved => FactorDecoder::Reserved,
        };
        let factors = product.factors.iter().map(|spec| (spec.stride, factor(&spec.kind))).collect();
        ElementDecoder { factors, size: product.size }
    }

    /// Adds the constraints of `index`; false when no binding can yield it.
    #[must_use]
    pub fn decode(&self, index: u32, constraints: &mut Constraints<'a>) -> bool {
        let mut rest = index;
        self.factors.iter().all(|(stride, factor)| {
            let element = rest / stride;
            rest %= stride;
            factor.decode(element, constraints)
        })
    }
}

impl<'a> FactorDecoder<'a> {
    fn decode(&self, element: u32, constraints: &mut Constraints<'a>) -> bool {
        match self {
            FactorDecoder::Axis { slot, by_element } => {
                let Some(domain) = by_element.get(&element) else { return false };
                constraints.domains[*slot] = constraints.domains[*slot].and(domain);
                !constraints.domains[*slot].is_empty()
            }
            FactorDecoder::Difference(first) => {
                constraints.differences.push(DifferenceConstraint { is: first.is + element as i32, ..*first });
                true
            }
            FactorDecoder::Reach(reach, known) => {
                let mut found = [Domain::default(); 2];
                for color in 0..2 {
                    let Some([from, to]) = reach.ends(element, color) else { continue };
                    let attacker = Entity { square: from, role: reach.role, color };
                    if known[0].contains(attacker) {
                        found[0].insert(attacker);
                        found[1] = found[1].or(&known[1].filtered(|target| target.square == to));
                    }
                }
                constraints.joints.push(Joint::Reach(reach, element));
                constraints.restrict(reach.slots(), &found)
            }
            FactorDecoder::Pair(pair, by_element) => {
                let ends = PairSpec::elements(element);
                let either = |side: &HashMap<u32, Domain>| {
                    ends.iter().filter_map(|end| side.get(end)).fold(Domain::default(), |all, one| all.or(one))
                };
                constraints.joints.push(Joint::Pair(pair, element));
                constraints.restrict(pair.slots(), &by_element.each_ref().map(either))
            }
            FactorDecoder::Count(count) => {
                constraints.counts.push((count, element));
                true
            }
            FactorDecoder::Sum(products) => {
                let mut rest = element;
                for product in products {
                    if rest < product.size {
                        return product.decode(rest, constraints);
                    }
                    rest -= product.size;
                }
                false
            }
            FactorDecoder::Reserved => false,
        }
    }
}

/// A domain's values by their element, without those that have none.
fn by_element(domain: &Domain, element: impl Fn(Entity) -> Option<u32>) -> HashMap<u32, Domain> {
    let mut map: HashMap<u32, Domain> = HashMap::new();
    for entity in domain.entities() {
        if let Some(element) = element(entity) {
            map.entry(element).or_default().insert(entity);
        }
    }
    map
}
