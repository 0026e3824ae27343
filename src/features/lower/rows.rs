//! The rows of a binding: the kings' part and one table entry per variable, for both perspectives at once where that is
//! possible.

use crate::features::code::{Builder, Operand, Register};
use crate::features::compiled::NONE;
use crate::features::spec::{DROPPED, VariableKind};

use super::conditions::Conditions;
use super::context::{Context, TermBase};

/// Rows or parts of rows. A perspective without a register is not looked at.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// White's in the lower half of a register, Black's in the upper.
    Packed(Register),
    Each([Option<Register>; 2]),
}

/// The value of a bound variable, for each perspective that is looked at: code · 64 + square of a piece, or a bare
/// square, on the board as it stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub slot: usize,
    pub states: [Option<Register>; 2],
}

impl Bound {
    /// The same for both perspectives.
    pub const fn both(slot: usize, state: Register) -> Bound {
        Bound { slot, states: [Some(state); 2] }
    }
}

impl Rows {
    pub fn each(self, builder: &mut Builder) -> [Option<Register>; 2] {
        match self {
            Rows::Packed(pair) => {
                let white = builder.and(pair, u64::from(u32::MAX));
                [Some(white), Some(builder.shift_right(pair, 32))]
            }
            Rows::Each(rows) => rows,
        }
    }

    /// Without the rows of other perspectives.
    #[must_use]
    pub fn only(self, builder: &mut Builder, povs: [bool; 2]) -> Rows {
        if povs == [true; 2] {
            return self;
        }
        let each = self.each(builder);
        Rows::Each([0, 1].map(|pov: usize| each[pov].filter(|_| povs[pov])))
    }

    #[must_use]
    pub fn plus(self, builder: &mut Builder, other: Rows) -> Rows {
        if let (Rows::Packed(left), Rows::Packed(right)) = (self, other) {
            return Rows::Packed(builder.add(left, right));
        }
        let left = self.each(builder);
        let right = other.each(builder);
        let mut sums = [None; 2];
        for pov in 0..2 {
            if let (Some(left), Some(right)) = (left[pov], right[pov]) {
                sums[pov] = Some(builder.add(left, right));
            }
        }
        Rows::Each(sums)
    }

    /// Whether rows equal others, for each perspective that has both. `jointly`: they are equal for both perspectives
    /// or for none, where they are there at all.
    pub fn equal(self, builder: &mut Builder, other: Rows, jointly: bool) -> Conditions {
        if let (Rows::Packed(left), Rows::Packed(right), true) = (self, other, jointly) {
            return Conditions::both(builder.equal(left, right));
        }
        let left = self.each(builder);
        let right = other.each(builder);
        let mut equal = [None; 2];
        for pov in 0..2 {
            equal[pov] = match (left[pov], right[pov]) {
                (Some(left), Some(right)) => Some(builder.equal(left, right)),
                _ => None,
            };
        }
        Conditions(equal)
    }

    /// Appends them to a kind of lists.
    pub fn emit(self, builder: &mut Builder, list: u8, conditions: Conditions) {
        let rows = match self {
            // Lists take the lower half.
            Rows::Packed(pair) => [Some(pair), Some(builder.shift_right(pair, 32))],
            Rows::Each(rows) => rows,
        };
        match rows {
            [Some(white), Some(black)] if conditions.are_equal() => {
                builder.emit(list, [white, black], conditions.0[0]);
            }
            _ => {
                for (pov, row) in rows.into_iter().enumerate() {
                    if let Some(row) = row {
                        builder.emit_one(list, pov, row, conditions.0[pov]);
                    }
                }
            }
        }
    }
}

impl Context<'_> {
    /// The rows of a term for bound variables, and on what they depend besides `given`. `more` is added to them: the
    /// counts' part.
    pub fn rows(
        &self,
        builder: &mut Builder,
        number: usize,
        bound: &[Bound],
        more: Option<Rows>,
        given: Conditions,
    ) -> (Rows, Conditions) {
        let term = &self.block.terms()[number];
        let base: &TermBase = &self.bases[number];
        let constant = base.constant();
        let mut conditions = given.and(builder, base.conditions);
        let mut sum = more;
        // One table gives the index at once.
        let is_folded = constant.is_some() && bound.len() == 1 && more.is_none();
        match (constant, bound) {
            (Some(_), [_, ..]) => {}
            _ => {
                let of_kings = base.rows(builder);
                sum = Some(add(builder, sum, of_kings));
            }
        }
        for (at, variable) in bound.iter().enumerate() {
            let mut table = term.tables[variable.slot].clone();
            if let (Some(constant), 0) = (constant, at) {
                table.iter_mut().filter(|entry| **entry != NONE).for_each(|entry| *entry += constant);
            }
            if let (true, Some(renumbering)) = (is_folded, self.renumbering()) {
                table
                    .iter_mut()
                    .filter(|entry| **entry != NONE)
                    .for_each(|entry| *entry = self.index(renumbering, *entry));
            }
            let (entries, present) = self.entries(builder, &table, variable);
            conditions = conditions.and(builder, present);
            sum = Some(add(builder, sum, entries));
        }
        let rows = sum.unwrap_or(Rows::Each([None; 2]));
        match self.renumbering() {
            Some(renumbering) if !is_folded => self.renumbered(builder, renumbering, rows, conditions),
            _ => (rows, conditions),
        }
    }

    /// [`Context::rows`] for a term whose number is known at run time only, for these perspectives.
    pub fn rows_of_any(
        &self,
        builder: &mut Builder,
        number: Register,
        bound: &[Bound],
        more: Option<Rows>,
        (povs, given): ([bool; 2], Conditions),
    ) -> (Rows, Conditions) {
        let terms = self.block.terms();
        let base: Vec<u32> = terms.iter().map(|term| term.base + self.first).collect();
        let base = builder.words(base);
        let base = builder.load(base, number);
        let mut rows = [None; 2];
        let given = given.and(builder, self.hold);
        let mut conditions = given;
        for pov in (0..2).filter(|pov| povs[*pov]) {
            let mut sum = base;
            let mut all = Vec::new();
            let mut add = |builder: &mut Builder, slot: usize, oriented: Register| {
                let size = terms[0].tables[slot].len();
                let table: Vec<u32> = terms.iter().flat_map(|term| term.tables[slot].iter().copied()).collect();
                let is_partial = table.contains(&NONE);
                let memory = builder.words(table);
                let first = builder.shift_left(number, u64::from(size.trailing_zeros()));
                let index = builder.add(first, oriented);
                let entry = builder.load(memory, index);
                if is_partial {
                    all.push(builder.not_equal(entry, u64::from(NONE)));
                }
                sum = builder.add(sum, entry);
            };
            if let Some(kings) = self.kings {
                let kings = self.oriented_kings(builder, kings, pov);
                for (slot, square) in kings.into_iter().enumerate() {
                    if terms.iter().any(|term| term.tables[slot].iter().any(|entry| *entry != 0)) {
                        add(builder, slot, square);
                    }
                }
            }
            for variable in bound {
                let Some(state) = variable.states[pov] else { continue };
                let turn = self.orientation_of(builder, self.spec.variables[variable.slot])[pov];
                let oriented = builder.xor(state, turn);
                add(builder, variable.slot, oriented);
            }
            let own = all.into_iter().reduce(|left, right| builder.and(left, right));
            conditions.0[pov] = match (given.0[pov], own) {
                (Some(hold), Some(own)) => Some(builder.and(hold, own)),
                (hold, own) => hold.or(own),
            };
            rows[pov] = Some(sum);
        }
        let mut rows = Rows::Each(rows);
        if let Some(more) = more {
            rows = rows.plus(builder, more);
        }
        match self.renumbering() {
            Some(renumbering) => self.renumbered(builder, renumbering, rows, conditions),
            None => (rows, conditions),
        }
    }

    /// The set's index of an element; [`NONE`] if a selection drops it.
    fn index(&self, renumbering: &[u32], element: u32) -> u32 {
        match renumbering[element as usize] {
            DROPPED => NONE,
            index => index + self.spec.offset,
        }
    }

    pub(super) fn renumbered(
        &self,
        builder: &mut Builder,
        renumbering: &[u32],
        rows: Rows,
        conditions: Conditions,
    ) -> (Rows, Conditions) {
        let table: Vec<u32> = (0..renumbering.len() as u32).map(|element| self.index(renumbering, element)).collect();
        let drops = table.contains(&NONE);
        let memory = builder.words(table);
        let elements = rows.each(builder);
        let mut indices = [None; 2];
        let mut kept = Conditions::ALWAYS;
        for pov in 0..2 {
            let Some(element) = elements[pov] else { continue };
            // Without a row the sum may lie outside of the table.
            let element = match conditions.0[pov] {
                Some(condition) => builder.select(condition, element, 0),
                None => element,
            };
            let index = builder.load(memory, element);
            indices[pov] = Some(index);
            if drops {
                kept.0[pov] = Some(builder.not_equal(index, u64::from(NONE)));
            }
        }
        (Rows::Each(indices), conditions.and(builder, kept))
    }

    /// A variable's entries of a table by oriented state, and whether there are any.
    pub(super) fn entries(&self, builder: &mut Builder, table: &[u32], variable: &Bound) -> (Rows, Conditions) {
        let kind = self.spec.variables[variable.slot];
        let orientation = self.orientation_of(builder, kind);
        let none = u64::from(NONE);
        let is_joint = variable.states[0] == variable.states[1] && self.looks_equal(table, kind);
        let is_complete = is_complete(table, kind);
        if let ([Some(state), Some(_)], [Operand::Constant(white), Operand::Constant(black)], true) =
            (variable.states, orientation, is_joint)
        {
            let pair = |state: usize| [white, black].map(|turn| u64::from(table[state ^ turn as usize]));
            let pairs = (0..table.len()).map(pair).map(|[white, black]| white | black << 32).collect();
            let memory = builder.bitboards(pairs);
            let pair = builder.load(memory, state);
            let conditions =
                if is_complete { Conditions::ALWAYS } else { Conditions::both(builder.not_equal(pair, u64::MAX)) };
            return (Rows::Packed(pair), conditions);
        }
        let mut rows = [None; 2];
        let mut conditions = Conditions::ALWAYS;
        for pov in 0..2 {
            let Some(state) = variable.states[pov] else { continue };
            let entry = match orientation[pov] {
                Operand::Constant(turn) => {
                    let turned = (0..table.len()).map(|state| table[state ^ turn as usize]).collect();
                    let memory = builder.words(turned);
                    builder.load(memory, state)
                }
                Operand::Register(turn) => {
                    let oriented = builder.xor(state, turn);
                    let memory = builder.words(table.to_vec());
                    builder.load(memory, oriented)
                }
            };
            rows[pov] = Some(entry);
            if !is_complete {
                conditions.0[pov] = match conditions.0[0] {
                    Some(joint) if pov == 1 && is_joint => Some(joint),
                    _ => Some(builder.not_equal(entry, none)),
                };
            }
        }
        (Rows::Each(rows), conditions)
    }

    /// Whether a state has an entry for both perspectives and both halves of the board, or for none.
    fn looks_equal(&self, table: &[u32], kind: VariableKind) -> bool {
        let turns: Vec<usize> = [0, 1].into_iter().flat_map(|pov| self.turns(pov, kind)).collect();
        (0..table.len())
            .all(|state| turns.iter().all(|turn| (table[state ^ turn] == NONE) == (table[state ^ turns[0]] == NONE)))
    }
}

fn add(builder: &mut Builder, sum: Option<Rows>, more: Rows) -> Rows {
    match sum {
        None => more,
        Some(sum) => sum.plus(builder, more),
    }
}

/// Whether every value of a variable has an entry.
pub fn is_complete(table: &[u32], kind: VariableKind) -> bool {
    match kind {
        VariableKind::Square => !table.contains(&NONE),
        VariableKind::Piece => {
            table.chunks(64).enumerate().all(|(code, entries)| code & 7 > 5 || !entries.contains(&NONE))
        }
    }
}
