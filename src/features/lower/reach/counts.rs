//! Deltas of blocks without variables whose product has counts: the numbers before and after.
//!
//! Counted are pieces, or squares and pieces that pieces reach. The numbers of what is reached are kept with the board. All
//! are counted anew on the board after: finding out which of them may change costs as much.

use crate::features::code::{Binary, BoardTime, Builder, Register};
use crate::features::lower::conditions::Conditions;
use crate::features::lower::context::Context;
use crate::features::lower::rows::Rows;
use crate::features::spec::CountSpec;

use super::count_groups::{CountGroup, Numbers};
use super::counted::{Counted, counted};
use super::pairs::LISTS;
use super::scene::{Scene, pieces_on};

/// The counts of blocks.
pub struct CountDeltas<'a> {
    contexts: Vec<&'a Context<'a>>,
    counted: Vec<Counted>,
    groups: Vec<CountGroup>,
}

/// Whether a block's delta is one of these.
pub fn derives(context: &Context<'_>) -> bool {
    let spec = context.spec;
    let terms = context.block.terms();
    let mut counts = terms.iter().flat_map(|term| &term.counts);
    let is_counted = |count: &CountSpec| (0..2).all(|pov| counted(context, count, pov).is_some());
    spec.binders.is_empty()
        && spec.guards.is_empty()
        && terms.len() <= crate::features::lower::MOST_TERMS
        && terms.iter().any(|term| !term.counts.is_empty())
        && counts.all(|count| is_counted(&count.spec))
}

impl<'a> CountDeltas<'a> {
    /// For blocks for which [`derives`] holds.
    pub fn new(builder: &mut Builder, contexts: &[&'a Context<'a>]) -> CountDeltas<'a> {
        let mut plan = CountDeltas { contexts: contexts.to_vec(), counted: Vec::new(), groups: Vec::new() };
        for context in contexts {
            for count in context.block.terms().iter().flat_map(|term| &term.counts) {
                for pov in 0..2 {
                    if let Some(counted) = counted(context, &count.spec, pov) {
                        plan.add(counted);
                    }
                }
            }
        }
        for group in &mut plan.groups {
            group.state = builder.state(group.elements());
        }
        plan
    }

    fn add(&mut self, counted: Counted) {
        if self.counted.contains(&counted) {
            return;
        }
        if let Some(reached) = &counted.reached {
            for (code, squares) in &counted.firsts {
                let is_same = |group: &&mut CountGroup| (group.code, group.squares) == (*code, *squares);
                match self.groups.iter_mut().find(is_same) {
                    Some(group) if group.reached.contains(reached) => {}
                    Some(group) => group.reached.push(reached.clone()),
                    None => {
                        let reached = vec![reached.clone()];
                        self.groups.push(CountGroup { code: *code, squares: *squares, reached, state: 0 });
                    }
                }
            }
        }
        self.counted.push(counted);
    }

    /// Most rows that it appends to a list.
    pub fn most_rows(&self) -> u32 {
        self.contexts.iter().map(|context| context.block.terms().len() as u32).sum()
    }

    /// Elements of the state.
    pub fn elements(&self) -> u32 {
        self.groups.iter().map(CountGroup::elements).sum()
    }

    /// Computes the state of the board before.
    pub fn start(&self, builder: &mut Builder) {
        let occupied = builder.occupied(BoardTime::Before);
        for group in &self.groups {
            builder.scope(|builder| {
                group.count(builder, 0, occupied);
            });
        }
    }

    /// Emits the rows removed and added.
    pub fn write(&self, builder: &mut Builder, scene: &Scene) {
        let by_group: Vec<Vec<Numbers>> = self.groups.iter().map(|group| group.numbers(builder, scene)).collect();
        let numbers: Vec<Numbers> =
            self.counted.iter().map(|counted| self.number(builder, counted, &by_group)).collect();
        let mut single: Vec<SingleCount> = Vec::new();
        for context in &self.contexts {
            for (number, term) in context.block.terms().iter().enumerate() {
                let is_plain = context.renumbering().is_none() && context.hold == Conditions::ALWAYS;
                match (context.constant_base(number).filter(|_| is_plain), &term.counts[..]) {
                    (Some(base), [count]) => {
                        for pov in 0..2 {
                            if let Some(counted) = self.position(context, &count.spec, pov) {
                                let row = SingleCount { counted, max: count.spec.max, pov, base, stride: count.stride };
                                single.push(row);
                            }
                        }
                    }
                    _ => builder.scope(|builder| self.write_term(builder, context, number, &numbers)),
                }
            }
        }
        while let Some(first) = single.first().copied() {
            let is_alike = |other: &SingleCount| (other.counted, other.max) == (first.counted, first.max);
            let alike: Vec<SingleCount> = single.iter().filter(|other| is_alike(other)).copied().collect();
            single.retain(|other| !is_alike(other));
            builder.scope(|builder| emit_single(builder, numbers[first.counted], &alike));
        }
    }

    fn position(&self, context: &Context<'_>, count: &CountSpec, pov: usize) -> Option<usize> {
        let counted = counted(context, count, pov)?;
        self.counted.iter().position(|other| *other == counted)
    }

    fn number(&self, builder: &mut Builder, counted: &Counted, by_group: &[Vec<Numbers>]) -> Numbers {
        [0, 1].map(|time| {
            let sum = builder.constant(0);
            for (code, squares) in &counted.firsts {
                builder.scope(|builder| {
                    let part = match &counted.reached {
                        None => {
                            let pieces = pieces_on(builder, time, *code, *squares);
                            builder.count_ones(pieces)
                        }
                        Some(reached) => {
                            let is_own = |group: &CountGroup| (group.code, group.squares) == (*code, *squares);
                            let at = self.groups.iter().position(is_own).unwrap_or(0);
                            let own = self.groups[at].reached.iter().position(|other| other == reached).unwrap_or(0);
                            by_group[at][own][time]
                        }
                    };
                    builder.change(sum, Binary::Add, part);
                });
            }
            sum
        })
    }

    /// A term of several counts, or one for which the kings matter.
    fn write_term(&self, builder: &mut Builder, context: &Context<'_>, number: usize, numbers: &[Numbers]) {
        let mut sums: [[Option<Register>; 2]; 2] = [[None; 2]; 2];
        for count in &context.block.terms()[number].counts {
            for pov in 0..2 {
                let Some(at) = self.position(context, &count.spec, pov) else { continue };
                for time in 0..2 {
                    let value = clamped(builder, numbers[at][time], count.spec.max);
                    let value = builder.binary(Binary::Multiply, value, u64::from(count.stride));
                    let sum = &mut sums[time][pov];
                    *sum = Some(sum.map_or(value, |sum| builder.add(sum, value)));
                }
            }
        }
        let mut differ = Conditions::ALWAYS;
        for pov in 0..2 {
            if let (Some(old), Some(new)) = (sums[0][pov], sums[1][pov]) {
                differ.0[pov] = Some(builder.not_equal(old, new));
            }
        }
        for time in 0..2 {
            let (rows, conditions) =
                context.rows(builder, number, &[], Some(Rows::Each(sums[time])), Conditions::ALWAYS);
            let conditions = conditions.and(builder, differ);
            rows.emit(builder, LISTS[time], conditions);
        }
    }
}

/// A row that one number decides for one perspective.
#[derive(Copy, Clone)]
struct SingleCount {
    counted: usize,
    max: u32,
    pov: usize,
    base: u32,
    stride: u32,
}

/// Emits the rows of one number.
fn emit_single(builder: &mut Builder, numbers: Numbers, rows: &[SingleCount]) {
    let Some(first) = rows.first() else { return };
    let values = numbers.map(|number| clamped(builder, number, first.max));
    let differ = builder.not_equal(values[0], values[1]);
    let of = |pov: usize| rows.iter().filter(move |row| row.pov == pov).collect::<Vec<_>>();
    let [white, black] = [of(0), of(1)];
    for number in 0..white.len().max(black.len()) {
        for (list, value) in LISTS.into_iter().zip(values) {
            let row = |builder: &mut Builder, row: &&SingleCount| {
                let value = builder.binary(Binary::Multiply, value, u64::from(row.stride));
                builder.add(value, u64::from(row.base))
            };
            let rows = [white.get(number), black.get(number)].map(|own| own.map(|own| row(builder, own)));
            Rows::Each(rows).emit(builder, list, Conditions::both(differ));
        }
    }
}

fn clamped(builder: &mut Builder, number: Register, max: u32) -> Register {
    let is_less = builder.binary(Binary::Less, number, u64::from(max));
    builder.select(is_less, number, u64::from(max))
}
