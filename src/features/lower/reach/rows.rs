//! Rows of pairs of states, from tables: a sum of one entry for each state, or an entry of the pair.

use std::collections::HashMap;

use crate::features::code::{Builder, Memory, Register};
use crate::features::compiled::{NONE, PairBlock};
use crate::features::lower::conditions::Conditions;
use crate::features::lower::context::Context;
use crate::features::lower::rows::{Bound, Rows};
use crate::features::lower::values::Values;
use crate::features::spec::{ConditionSpec, VariableKind};

/// What another piece on the same square makes of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CodeEffect {
    /// Nothing.
    Same,
    /// Another row, always.
    Different,
    /// Either: rows must be compared.
    Unknown,
}

impl CodeEffect {
    pub fn and(self, other: CodeEffect) -> CodeEffect {
        if self == other { self } else { CodeEffect::Unknown }
    }
}

/// The rows of one term of a block, or of several blocks, for both perspectives.
pub struct StatePairRows<'a> {
    /// The block's, or that of one of the blocks.
    context: &'a Context<'a>,
    form: RowForm<'a>,
    pub effects: [CodeEffect; 2],
    /// Codes with rows, as any perspective sees them: of first variables and of second ones.
    pub codes: [u16; 2],
}

enum RowForm<'a> {
    /// The sum of an entry for the first state and one for the second. The kings' part is in the first, where it is
    /// constant.
    Sum {
        number: usize,
        slots: [usize; 2],
        first: Vec<u32>,
        second: &'a [u32],
        conditions: [Vec<&'a ConditionSpec>; 2],
    },
    Pair {
        /// By codes of both: the base of rows, and in the upper half the number of the first entry in `entries`.
        kinds: Memory,
        /// By both squares.
        entries: Memory,
        /// Whether the second variable is a piece.
        ends_on_pieces: bool,
    },
}

/// The part of rows that the first state determines.
#[derive(Clone)]
pub enum FirstPart {
    Sum(Rows, Conditions, Values),
    /// For each perspective: where kinds and entries begin.
    Pair([[Register; 2]; 2]),
}

impl<'a> StatePairRows<'a> {
    /// The rows of a term as sums.
    pub fn sums(context: &'a Context<'a>, block: PairBlock<'a>, number: usize) -> StatePairRows<'a> {
        let term = &block.terms()[number];
        let slots = block.slots();
        let [first, second] = block.tables(term);
        let of_second = |condition: &&&ConditionSpec| condition.slots().contains(&slots[1]);
        let joint = context.joint_conditions();
        let effects = [0, 1].map(|at: usize| {
            let reads_piece = joint.iter().any(|condition| condition.reads_piece(slots[at]));
            match effect_of_codes([first, second][at]) {
                CodeEffect::Different if !term.separable => CodeEffect::Unknown,
                CodeEffect::Same if reads_piece => CodeEffect::Unknown,
                effect => effect,
            }
        });
        let conditions = [
            joint.iter().filter(|condition| !of_second(condition)).copied().collect(),
            joint.iter().filter(of_second).copied().collect(),
        ];
        let base = context.bases[number].constant().unwrap_or(0);
        let with_base = first.iter().map(|entry| if *entry == NONE { NONE } else { entry + base }).collect();
        StatePairRows {
            context,
            form: RowForm::Sum { number, slots, first: with_base, second, conditions },
            effects,
            codes: [codes_of(first), codes_of(second)],
        }
    }

    /// The rows of several blocks of one orientation as one table by both states; `None` where kings matter, where two
    /// terms have a pair in common, or where the table would be large.
    pub fn pairs(builder: &mut Builder, blocks: &[(&'a Context<'a>, PairBlock<'a>)]) -> Option<StatePairRows<'a>> {
        /// Most tables of 4,096 entries.
        const MOST_TABLES: usize = 64;
        let mut kinds: HashMap<usize, Box<[u32; 4096]>> = HashMap::new();
        for (context, block) in blocks {
            if !block.reads_only_pair() {
                return None;
            }
            for (term, base) in block.terms().iter().zip(&context.bases) {
                let constant = base.constant().filter(|_| base.conditions == Conditions::ALWAYS)?;
                if !add_kinds(*block, block.tables(term), constant, &mut kinds) {
                    return None;
                }
            }
        }
        let rows = kinds.values().flat_map(|table| table.iter().copied().filter(|row| *row != NONE));
        let mut rows: Vec<u32> = rows.collect();
        rows.sort_unstable();
        let is_distinct = rows.windows(2).all(|pair| pair[0] != pair[1]);
        let mut known: HashMap<Vec<u32>, u64> = HashMap::new();
        let mut entries = vec![NONE; 4096];
        let mut by_codes = vec![0u64; 256];
        let mut codes = [0; 2];
        let mut sorted: Vec<_> = kinds.into_iter().collect();
        sorted.sort_unstable_by_key(|(kind, _)| *kind);
        for (kind, table) in sorted {
            let base = table.iter().copied().min().unwrap_or(NONE);
            let beyond = |row: &u32| if *row == NONE { NONE } else { row - base };
            let table: Vec<u32> = table.iter().map(beyond).collect();
            let first = *known.entry(table).or_insert_with_key(|table| {
                entries.extend_from_slice(table);
                entries.len() as u64 - 4096
            });
            by_codes[kind] = first << 32 | u64::from(base);
            codes[0] |= 1 << (kind >> 4);
            codes[1] |= 1 << (kind & 15);
        }
        if entries.len() > MOST_TABLES * 4096 {
            return None;
        }
        let form = RowForm::Pair {
            kinds: builder.bitboards(by_codes),
            entries: builder.words(entries),
            ends_on_pieces: blocks.iter().all(|(_, block)| block.ends_on_pieces()),
        };
        let effect = if is_distinct { CodeEffect::Different } else { CodeEffect::Unknown };
        let codes = codes.map(|codes: u16| codes | codes << 8 | codes >> 8);
        Some(StatePairRows { context: blocks.first()?.0, form, effects: [effect; 2], codes })
    }

    /// What the first state determines.
    pub fn first(&self, builder: &mut Builder, state: Register) -> FirstPart {
        match &self.form {
            RowForm::Sum { number, slots, first, conditions: joint, .. } => {
                let bound = Bound::both(slots[0], state);
                let (entries, present) = self.context.entries(builder, first, &bound);
                let base = &self.context.bases[*number];
                let mut conditions = base.conditions.and(builder, present);
                let rows = match base.constant() {
                    Some(_) => entries,
                    None => {
                        let base = base.rows(builder);
                        entries.plus(builder, base)
                    }
                };
                let all = joint.concat();
                let mut values = Values::default();
                values.bind_kings(builder, self.context, &all);
                values.bind(builder, self.context, &bound, &all);
                let hold = values.conditions(builder, &joint[0], [true; 2], true);
                conditions = conditions.and(builder, hold);
                FirstPart::Sum(rows, conditions, values)
            }
            RowForm::Pair { .. } => FirstPart::Pair([0, 1].map(|pov| {
                let seen = builder.xor(state, self.context.orientation[pov]);
                let kind = builder.shift_right(seen, 6);
                let kind = builder.shift_left(kind, 4);
                let square = builder.and(seen, 63);
                [kind, builder.shift_left(square, 6)]
            })),
        }
    }

    /// The rows of a pair, and whether it has them.
    pub fn rows(&self, builder: &mut Builder, first: &FirstPart, state: Register) -> (Rows, Conditions) {
        match (&self.form, first) {
            (RowForm::Sum { slots, second, conditions: joint, .. }, FirstPart::Sum(part, conditions, values)) => {
                let bound = Bound::both(slots[1], state);
                let (entries, present) = self.context.entries(builder, second, &bound);
                let mut conditions = conditions.and(builder, present);
                if !joint[1].is_empty() {
                    let mut values = values.clone();
                    values.bind(builder, self.context, &bound, &joint.concat());
                    let hold = values.conditions(builder, &joint[1], [true; 2], true);
                    conditions = conditions.and(builder, hold);
                }
                let sum = part.plus(builder, entries);
                match self.context.renumbering() {
                    None => (sum, conditions),
                    Some(renumbering) => self.context.renumbered(builder, renumbering, sum, conditions),
                }
            }
            (RowForm::Pair { kinds, entries, ends_on_pieces }, FirstPart::Pair(first)) => {
                let mut rows = [None; 2];
                let mut present = Conditions::ALWAYS;
                for pov in 0..2 {
                    let seen = builder.xor(state, self.context.orientation[pov]);
                    let mut kind = first[pov][0];
                    if *ends_on_pieces {
                        let code = builder.shift_right(seen, 6);
                        kind = builder.or(kind, code);
                    }
                    let kind = builder.load(*kinds, kind);
                    let square = builder.and(seen, 63);
                    let at = builder.shift_right(kind, 32);
                    let at = builder.add(at, first[pov][1]);
                    let at = builder.or(at, square);
                    let entry = builder.load(*entries, at);
                    let base = builder.and(kind, u64::from(u32::MAX));
                    rows[pov] = Some(builder.add(base, entry));
                    present.0[pov] = Some(builder.not_equal(entry, u64::from(NONE)));
                }
                (Rows::Each(rows), present)
            }
            _ => unreachable!("a part of the same rows"),
        }
    }

    /// Conditions that hold where the rows of two pairs differ, or only one pair has one.
    pub fn differ(&self, builder: &mut Builder, pairs: [(Rows, Conditions); 2]) -> Conditions {
        let rows = pairs.map(|(rows, conditions)| {
            let each = rows.each(builder);
            [0, 1].map(|pov| match (each[pov], conditions.0[pov]) {
                (Some(row), Some(condition)) => Some(builder.select(condition, row, u64::from(NONE))),
                (row, _) => row,
            })
        });
        Conditions([0, 1].map(|pov| Some(builder.not_equal(rows[0][pov]?, rows[1][pov]?))))
    }
}

impl PairBlock<'_> {
    /// Whether the second variable is a piece.
    pub fn ends_on_pieces(self) -> bool {
        self.second_kind == VariableKind::Piece
    }
}

/// Adds the rows of a block's term by both codes; false if another term has one of the pairs already.
fn add_kinds(
    block: PairBlock<'_>,
    [first, second]: [&[u32]; 2],
    base: u32,
    kinds: &mut HashMap<usize, Box<[u32; 4096]>>,
) -> bool {
    for (state, entry) in first.iter().enumerate().filter(|(_, entry)| **entry != NONE) {
        let code = state >> 6;
        let from = state & 63;
        let allowed = block.allowed(code, from as u32);
        for (other, other_entry) in second.iter().enumerate().filter(|(_, entry)| **entry != NONE) {
            let to = other & 63;
            let feature = || block.feature(base + entry + other_entry);
            let is_allowed = allowed[other >> 6] >> to & 1 != 0;
            let Some(row) = is_allowed.then(feature).flatten() else { continue };
            let table = kinds.entry(code << 4 | other >> 6).or_insert_with(|| Box::new([NONE; 4096]));
            if table[from << 6 | to] != NONE {
                return false;
            }
            table[from << 6 | to] = row;
        }
    }
    true
}

/// The codes with entries, as any perspective sees them; all if the table is one of bare squares.
fn codes_of(table: &[u32]) -> u16 {
    if table.len() == 64 {
        return !0;
    }
    let has_entry = |code: usize| table[code << 6..][..64].iter().any(|entry| *entry != NONE);
    (0..16).filter(|code| has_entry(*code) || has_entry(code ^ 8)).fold(0, |codes, code| codes | 1 << code)
}

/// What the entries of different codes on one square have in common.
fn effect_of_codes(table: &[u32]) -> CodeEffect {
    let mut effect = None;
    for square in 0..64 {
        let entries: Vec<u32> =
            table.chunks(64).enumerate().filter(|(code, _)| code & 7 < 6).map(|(_, of)| of[square]).collect();
        let same = entries.iter().all(|entry| *entry == entries[0]);
        let mut known: Vec<u32> = entries.into_iter().filter(|entry| *entry != NONE).collect();
        let count = known.len();
        known.sort_unstable();
        known.dedup();
        let here = match (same, known.len() == count) {
            (true, _) => CodeEffect::Same,
            (false, true) => CodeEffect::Different,
            (false, false) => CodeEffect::Unknown,
        };
        effect = Some(effect.map_or(here, |effect: CodeEffect| effect.and(here)));
    }
    effect.unwrap_or(CodeEffect::Same)
}
