//! Counters of rows that count once per binding: pairs that a change takes away and pairs that it brings cancel where
//! their rows are equal.

use std::collections::HashMap;

use crate::features::code::{Binary, Builder, Memory, Program, Register};
use crate::features::compiled::{NONE, PairBlock};
use crate::features::lower::conditions::Conditions;
use crate::features::lower::context::Context;
use crate::features::lower::rows::{Rows, is_complete};
use crate::features::spec::VariableKind;

use super::rows::StatePairRows;

/// A counter for each pair of classes of states, and a list of the counters that were used.
pub struct BagCounter<'a> {
    pub rows: StatePairRows<'a>,
    /// By state of the first variable and of the second: the part of a counter's number.
    parts: [Memory; 2],
    found: CounterRows,
    /// Where counters and the list begin in scratch memory.
    counters: u32,
    list: u32,
    /// Bytes of a counter's number in the list.
    number_bytes: u64,
    /// How long the list is.
    used: Register,
}

/// Where the rows of a counter are.
enum CounterRows {
    /// By counter: White's row, and Black's in the upper half. Every pair of pieces has both.
    Known(Memory),
    /// By counter: a state of the first variable · 65,536 + one of the second.
    States(Memory),
}

/// Most counters.
const MOST_COUNTERS: usize = 1 << 14;

impl<'a> BagCounter<'a> {
    /// The counter of a term; `None` if there are too many different rows, if a row does not determine both entries, or
    /// if conditions read squares.
    pub fn new(
        builder: &mut Builder,
        context: &'a Context<'a>,
        block: PairBlock<'a>,
        number: usize,
    ) -> Option<BagCounter<'a>> {
        let term = &block.terms()[number];
        let slots = block.slots();
        let joint = context.joint_conditions();
        if !term.separable {
            // Two counters might have one row.
            return None;
        }
        if joint.iter().any(|condition| {
            condition.axes().iter().any(|(property, slot)| property.of_square() && slots.contains(slot))
        }) {
            return None;
        }
        let classes_of = |at: usize| {
            let reads_piece = joint.iter().any(|condition| condition.reads_piece(slots[at]));
            let kind = if at == 0 { VariableKind::Piece } else { block.second_kind };
            classes(context, &term.tables[slots[at]], kind, reads_piece)
        };
        let first = classes_of(0)?;
        let second = classes_of(1)?;
        if first.states.len() * second.states.len() > MOST_COUNTERS {
            return None;
        }
        let scale = second.states.len() as u32;
        let first_parts = first.class.iter().map(|class| class * scale).collect();
        let pairs = first.states.iter().flat_map(|first| second.states.iter().map(move |second| [*first, *second]));
        let known = if joint.is_empty() { known_rows(context, block, number, pairs.clone()) } else { None };
        let found = match known {
            Some(rows) => CounterRows::Known(builder.bitboards(rows)),
            None => CounterRows::States(builder.words(pairs.map(|[first, second]| first << 16 | second).collect())),
        };
        let number_bytes = if first.states.len() * second.states.len() > 256 { 2 } else { 1 };
        let counters = builder.scratch(scale * first.states.len() as u32);
        let list = builder.scratch((2 * super::most_bindings(block) + 1) * number_bytes as u32);
        Some(BagCounter {
            rows: StatePairRows::sums(context, block, number),
            parts: [builder.words(first_parts), builder.words(second.class)],
            found,
            counters,
            list,
            number_bytes,
            used: builder.constant(0),
        })
    }

    /// The first state's part of a counter's number.
    pub fn first(&self, builder: &mut Builder, state: Register) -> Register {
        builder.load(self.parts[0], state)
    }

    /// Counts a pair of the board before, or after.
    pub fn count(&self, builder: &mut Builder, first: Register, state: Register, time: usize) {
        builder.scope(|builder| {
            let second = builder.load(self.parts[1], state);
            let number = builder.add(first, second);
            let at = builder.add(number, u64::from(self.counters));
            let known = builder.load(Memory::Scratch, at);
            let operator = if time == 0 { Binary::Subtract } else { Binary::Add };
            let counter = builder.binary(operator, known, 1);
            builder.store(Memory::Scratch, at, counter);
            // Other counters are in the list already.
            let is_new = builder.equal(known, 0);
            let end = self.list_end(builder, self.used);
            builder.store(Memory::Scratch, end, number);
            if self.number_bytes == 2 {
                let high = builder.shift_right(number, 8);
                let end = builder.add(end, 1);
                builder.store(Memory::Scratch, end, high);
            }
            builder.change(self.used, Binary::Add, is_new);
        });
    }

    fn list_end(&self, builder: &mut Builder, number: Register) -> Register {
        let bytes = if self.number_bytes == 2 { builder.shift_left(number, 1) } else { number };
        builder.add(bytes, u64::from(self.list))
    }

    /// Emits the rows whose counters are not zero, and leaves scratch memory zero.
    pub fn emit(&self, builder: &mut Builder) {
        builder.for_range(self.used, |builder, at| {
            let zero = builder.constant(0);
            let at = self.list_end(builder, at);
            let mut number = builder.load(Memory::Scratch, at);
            builder.store(Memory::Scratch, at, zero);
            if self.number_bytes == 2 {
                let at = builder.add(at, 1);
                let high = builder.load(Memory::Scratch, at);
                builder.store(Memory::Scratch, at, zero);
                let high = builder.shift_left(high, 8);
                number = builder.or(number, high);
            }
            let at = builder.add(number, u64::from(self.counters));
            let counter = builder.load(Memory::Scratch, at);
            builder.store(Memory::Scratch, at, zero);
            let (rows, conditions) = match self.found {
                CounterRows::Known(rows) => (Rows::Packed(builder.load(rows, number)), Conditions::ALWAYS),
                CounterRows::States(states) => {
                    let states = builder.load(states, number);
                    let first = builder.shift_right(states, 16);
                    let first = self.rows.first(builder, first);
                    let second = builder.and(states, 0xffff);
                    self.rows.rows(builder, &first, second)
                }
            };
            // The counter is a number in two's complement.
            let one_less = builder.binary(Binary::Subtract, counter, 1);
            let is_added = builder.binary(Binary::Less, one_less, 127);
            let limit = builder.constant(127);
            let is_removed = builder.binary(Binary::Less, limit, counter);
            let of_list = [(Program::ADDED, is_added), (Program::REMOVED, is_removed)];
            let of_list = of_list.map(|(list, holds)| (list, conditions.and(builder, Conditions::both(holds))));
            for (list, conditions) in of_list {
                rows.emit(builder, list, conditions);
            }
            let full = builder.constant(256);
            let negative = builder.binary(Binary::Subtract, full, counter);
            let times = builder.select(is_removed, negative, counter);
            let one = builder.constant(1);
            let is_more = builder.binary(Binary::Less, one, times);
            builder.if_(is_more, |builder| {
                let more = builder.binary(Binary::Subtract, times, 1);
                builder.for_range(more, |builder, _| {
                    for (list, conditions) in of_list {
                        rows.emit(builder, list, conditions);
                    }
                });
            });
        });
        // A counter that was in the list already has been written behind its end.
        builder.scope(|builder| {
            let zero = builder.constant(0);
            let end = self.list_end(builder, self.used);
            builder.store(Memory::Scratch, end, zero);
            if self.number_bytes == 2 {
                let end = builder.add(end, 1);
                builder.store(Memory::Scratch, end, zero);
            }
        });
    }
}

/// The rows of pairs of states for both perspectives; `None` where kings or a selection decide, or where some pair of
/// pieces has no row.
fn known_rows(
    context: &Context<'_>,
    block: PairBlock<'_>,
    number: usize,
    pairs: impl Iterator<Item = [u32; 2]>,
) -> Option<Vec<u64>> {
    let term = &block.terms()[number];
    let base = context.constant_base(number).filter(|_| context.hold == Conditions::ALWAYS)?;
    let kinds = [VariableKind::Piece, block.second_kind];
    let tables = block.tables(term);
    let is_complete = (0..2).all(|at| is_complete(tables[at], kinds[at]));
    if !is_complete || block.is_renumbered() || context.is_mirrored() {
        return None;
    }
    let entry = |at: usize, state: u32, pov: usize| match tables[at][state as usize ^ context.turns(pov, kinds[at])[0]]
    {
        // A state of no piece.
        NONE => 0,
        entry => entry,
    };
    let row = |states: [u32; 2], pov: usize| u64::from(base + entry(0, states[0], pov) + entry(1, states[1], pov));
    Some(pairs.map(|states| row(states, 0) | row(states, 1) << 32).collect())
}

/// Classes of states, as the board stands, that have equal entries for both perspectives.
struct RowStates {
    /// By state.
    class: Vec<u32>,
    /// A state of each class.
    states: Vec<u32>,
}

/// `None` if two classes have an entry in common, whose rows two counters would count. `by_code`: conditions tell codes
/// apart.
fn classes(context: &Context<'_>, table: &[u32], kind: VariableKind, by_code: bool) -> Option<RowStates> {
    let mut turns = Vec::new();
    for pov in 0..2 {
        turns.extend(context.turns(pov, kind));
    }
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    // By turn and entry.
    let mut class_of: HashMap<(usize, u32), u32> = HashMap::new();
    let mut classes = RowStates { class: Vec::new(), states: Vec::new() };
    for state in 0..table.len() {
        let mut entries: Vec<u32> = turns.iter().map(|turn| table[state ^ turn]).collect();
        let of_turns = entries.clone();
        if by_code && entries.iter().any(|entry| *entry != NONE) {
            entries.push(state as u32 >> 6);
        }
        let fresh = classes.states.len() as u32;
        let number = *known.entry(entries).or_insert(fresh);
        if number == fresh {
            classes.states.push(state as u32);
        }
        classes.class.push(number);
        for (turn, entry) in turns.iter().zip(of_turns) {
            if entry != NONE && *class_of.entry((*turn, entry)).or_insert(number) != number {
                return None;
            }
        }
    }
    Some(classes)
}
