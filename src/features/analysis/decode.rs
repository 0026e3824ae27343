//! What an index asks of its binding: reading a product backwards.

use std::collections::HashMap;

use crate::features::spec::{AxisSpec, BlockSpec, CountSpec, Entity, FactorKind, ProductSpec, Property};

use super::domain::Domain;

/// A product, ready to be read backwards.
pub struct Decoder<'a> {
    /// With their strides.
    factors: Vec<(u32, Factor<'a>)>,
    size: u32,
}

enum Factor<'a> {
    /// What the variable may stand for, by element; elements nothing has are left out.
    Axis {
        slot: usize,
        by_element: HashMap<u32, Domain>,
    },
    Difference(Difference<'a>),
    Count(&'a CountSpec),
    Sum(Vec<Decoder<'a>>),
    Reserved,
}

/// Plain left value − plain right value = `is`.
#[derive(Clone, Copy)]
pub struct Difference<'a> {
    pub left: (&'a Property, usize),
    pub right: (&'a Property, usize),
    pub is: i32,
}

impl Difference<'_> {
    pub fn holds(&self, entities: &[Entity]) -> bool {
        let value = |(property, slot): (&Property, usize)| property.of(entities[slot]);
        value(self.left) - value(self.right) == self.is
    }
}

/// Everything one index asks of a binding.
#[derive(Clone)]
pub struct Constraints<'a> {
    /// By slot.
    pub domains: Vec<Domain>,
    pub differences: Vec<Difference<'a>>,
    /// The count, clamped to its MAX, is exactly this.
    pub counts: Vec<(&'a CountSpec, u32)>,
}

impl Constraints<'_> {
    /// Leaves out of both sides of each difference what finds no partner on the other; false when nothing is left.
    #[must_use]
    pub fn narrow(&mut self) -> bool {
        self.differences.iter().all(|difference| {
            let Difference { left: (of_left, left), right: (of_right, right), is } = *difference;
            if left == right {
                return is == 0;
            }
            let values = |property: &Property, domain: &Domain| {
                domain.entities().fold(0u64, |all, entity| all | 1 << property.of(entity))
            };
            let partner = |values: u64, value: i32| (0..64).contains(&value) && values >> value & 1 != 0;
            let minuends = values(of_left, &self.domains[left]);
            let subtrahends = values(of_right, &self.domains[right]);
            let domains = &mut self.domains;
            domains[left] = domains[left].filtered(|entity| partner(subtrahends, of_left.of(entity) - is));
            domains[right] = domains[right].filtered(|entity| partner(minuends, of_right.of(entity) + is));
            !domains[left].is_empty() && !domains[right].is_empty()
        })
    }
}

impl<'a> Decoder<'a> {
    /// `domains` are what the slots may hold at all.
    pub fn new(block: &'a BlockSpec, domains: &[Domain]) -> Decoder<'a> {
        Decoder::product(&block.product, domains)
    }

    fn product(product: &'a ProductSpec, domains: &[Domain]) -> Decoder<'a> {
        let factor = |kind: &'a FactorKind| match kind {
            FactorKind::Axis(axis) => {
                Factor::Axis { slot: axis.slot, by_element: by_element(axis, &domains[axis.slot]) }
            }
            FactorKind::Difference(left, right) => {
                let is = 1 - left.size() as i32;
                let side = |axis: &'a AxisSpec| (&axis.property, axis.slot);
                Factor::Difference(Difference { left: side(left), right: side(right), is })
            }
            FactorKind::Count(count) => Factor::Count(count),
            FactorKind::Sum(products) => {
                Factor::Sum(products.iter().map(|product| Decoder::product(product, domains)).collect())
            }
            FactorKind::Reserved => Factor::Reserved,
        };
        let factors = product.factors.iter().map(|spec| (spec.stride, factor(&spec.kind))).collect();
        Decoder { factors, size: product.size }
    }

    /// Adds what `index` asks; false when nothing can give it.
    #[must_use]
    pub fn read(&self, index: u32, goal: &mut Constraints<'a>) -> bool {
        let mut rest = index;
        self.factors.iter().all(|(stride, factor)| {
            let element = rest / stride;
            rest %= stride;
            factor.read(element, goal)
        })
    }
}

impl<'a> Factor<'a> {
    fn read(&self, element: u32, goal: &mut Constraints<'a>) -> bool {
        match self {
            Factor::Axis { slot, by_element } => {
                let Some(domain) = by_element.get(&element) else { return false };
                goal.domains[*slot] = goal.domains[*slot].and(domain);
                !goal.domains[*slot].is_empty()
            }
            Factor::Difference(lowest) => {
                goal.differences.push(Difference { is: lowest.is + element as i32, ..*lowest });
                true
            }
            Factor::Count(count) => {
                goal.counts.push((count, element));
                true
            }
            Factor::Sum(products) => {
                let mut rest = element;
                for product in products {
                    if rest < product.size {
                        return product.read(rest, goal);
                    }
                    rest -= product.size;
                }
                false
            }
            Factor::Reserved => false,
        }
    }
}

fn by_element(axis: &AxisSpec, domain: &Domain) -> HashMap<u32, Domain> {
    let mut map: HashMap<u32, Domain> = HashMap::new();
    for entity in domain.entities() {
        if let Some(element) = axis.index(entity) {
            map.entry(element).or_default().insert(entity);
        }
    }
    map
}
