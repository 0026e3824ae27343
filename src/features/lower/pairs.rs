//! Deltas of blocks of two variables of pieces, each bound from all pieces, in which few pairs of pieces have a row, as
//! under a selection. Where these are very few, each piece has the pairs that it belongs to as bits; else a list of
//! partners. Where the partners are pieces of few codes, as pawns are, bitboards say which of them are there.

use crate::chess::BoardChange;
use crate::features::code::{Binary, BoardTime, Builder, Memory, Operand, Program, Register};
use crate::features::compiled::NONE;
use crate::features::spec::{BinderSpec, ConditionSpec, DROPPED, Entity, SourceSpec, VariableKind};

use super::context::Context;

/// Most partners of all pieces on all squares together.
const MOST_PARTNERS: usize = 8 * 768;

/// Most partners of one piece.
const MOST_OF_ONE: usize = 64;

/// The pairs with a row, for one orientation: both states on the board as it stands, and the row.
type PairRows = Vec<(u16, u16, u32)>;

/// The partners of each state, for one perspective.
struct Partners {
    /// By state, for one half of the board after the other: where its partners begin. They end where the next one's do.
    starts: Memory,
    states: Memory,
    rows: Memory,
    /// All pairs, where these are few.
    bits: Vec<PairBits>,
    /// Where the partners have few codes: for each of these the partners' squares, and where their rows begin.
    by_code: Vec<(u64, Memory, Memory)>,
    /// Where the half matters: the orientation, whose lowest bit says which.
    turn: Option<Register>,
}

/// Up to 64 of the pairs, as bits.
struct PairBits {
    /// By state, for one half of the board after the other: the pairs that the state belongs to.
    of_state: Memory,
    /// By pair, for one half after the other: the row, both squares and both codes, in 32, 8, 8, 8 and 8 bits.
    pairs: Memory,
    /// Of either half.
    count: u64,
}

/// Partners that are left out.
#[derive(Copy, Clone)]
enum Skipped {
    Nothing,
    /// The piece with this code on this square.
    State(Register),
    LowerSquares,
}

/// Pairs up to which each has a bit.
const FEW_PAIRS: usize = 256;

/// Codes of partners up to which bitboards find them.
const FEW_CODES: usize = 2;

/// States that have a piece, on each half.
const STATES: usize = 1024;

/// The pairs of a block for an orientation. `None` if there are too many, if two of them share a row, or if the kings
/// have a part in them.
fn pairs(context: &Context<'_>, turn: usize) -> Option<PairRows> {
    let spec = context.spec;
    let [
        BinderSpec { source: SourceSpec::Pieces, slot: first, .. },
        BinderSpec { source: SourceSpec::Pieces, slot: second, .. },
    ] = spec.binders[..]
    else {
        return None;
    };
    let conditions = context.joint_conditions();
    let reads_only_pieces =
        |condition: &&ConditionSpec| condition.slots().iter().all(|slot| [first, second].contains(slot));
    let is_plain = spec.guards.is_empty()
        && context.block.terms().iter().all(|term| term.counts.is_empty())
        && context.hold == super::conditions::Conditions::ALWAYS
        && conditions.iter().all(reads_only_pieces);
    if !is_plain || context.block.terms().len() > super::MOST_TERMS {
        return None;
    }
    let entity =
        |state: usize| Entity { square: state as u32 & 63, role: state as u32 >> 6 & 7, color: state as u32 >> 9 };
    let mut pairs = Vec::new();
    let mut used = Vec::new();
    for (number, term) in context.block.terms().iter().enumerate() {
        let base = context.constant_base(number)?;
        let present = |slot: usize| {
            let table = &term.tables[slot];
            (0..table.len())
                .filter(|state| table[*state] != NONE)
                .map(|state| (state, table[state]))
                .collect::<Vec<_>>()
        };
        let seconds = present(second);
        for (state, entry) in present(first) {
            for (other, other_entry) in &seconds {
                let element = base + entry + other_entry;
                let row = match &spec.renumbering {
                    None => element,
                    Some(renumbering) => match renumbering[element as usize] {
                        DROPPED => continue,
                        index => index + spec.offset,
                    },
                };
                let of = |slot: usize| entity(if slot == first { state } else { *other });
                if conditions.iter().all(|condition| condition.holds(&of)) {
                    pairs.push(((state ^ turn) as u16, (other ^ turn) as u16, row));
                    used.push(row);
                    if pairs.len() > MOST_PARTNERS / 2 {
                        return None;
                    }
                }
            }
        }
    }
    used.sort_unstable();
    used.windows(2).all(|two| two[0] != two[1]).then_some(pairs)
}

/// Whether a block's delta is one of these.
pub fn derives(context: &Context<'_>) -> bool {
    pairs(context, 0).is_some_and(|pairs| {
        let partners = by_state(&[pairs]);
        partners.iter().all(|partners| partners.len() <= MOST_OF_ONE)
    })
}

/// Most rows that a block's delta adds or removes.
pub const CAPACITY: usize = 2 * 32;

/// For each half, one after the other, and each state: its partners and the pairs' rows.
fn by_state(halves: &[PairRows]) -> Vec<Vec<(u16, u32)>> {
    let mut partners: Vec<Vec<(u16, u32)>> = vec![Vec::new(); STATES * halves.len()];
    for (half, pairs) in halves.iter().enumerate() {
        for (first, second, row) in pairs {
            partners[half * STATES + usize::from(*first)].push((*second, *row));
            if first != second {
                partners[half * STATES + usize::from(*second)].push((*first, *row));
            }
        }
    }
    partners
}

impl Partners {
    fn of(builder: &mut Builder, context: &Context<'_>, pov: usize) -> Partners {
        let mut turns = context.turns(pov, VariableKind::Piece);
        turns.sort_by_key(|turn| turn & 1);
        let mut halves: Vec<PairRows> = turns.into_iter().filter_map(|turn| pairs(context, turn)).collect();
        halves.iter_mut().for_each(|pairs| pairs.sort_unstable());
        halves.dedup();
        let bits = if halves[0].len() <= FEW_PAIRS { PairBits::of(builder, &halves) } else { Vec::new() };
        let mut partners = by_state(&halves);
        partners.iter_mut().for_each(|of_state| of_state.sort_unstable());
        // Two rows with one partner have no numbers of their own.
        let has_both_orders = partners.iter().any(|of_state| of_state.windows(2).any(|rows| rows[0].0 == rows[1].0));
        let mut codes: Vec<u16> = partners.iter().flatten().map(|(state, _)| state >> 6).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.truncate(FEW_CODES + 1);
        let mut by_code: Vec<(u64, Vec<u64>, Vec<u32>)> =
            codes.iter().map(|code| (u64::from(*code), Vec::new(), Vec::new())).collect();
        let mut starts = vec![0];
        let mut states = Vec::new();
        let mut rows = Vec::new();
        for of_state in partners {
            for (code, masks, firsts) in &mut by_code {
                let own = of_state.iter().filter(|(state, _)| u64::from(state >> 6) == *code);
                masks.push(own.fold(0, |mask, (state, _)| mask | 1 << (state & 63)));
                let lower = of_state.iter().filter(|(state, _)| u64::from(state >> 6) < *code).count();
                firsts.push((rows.len() + lower) as u32);
            }
            states.extend(of_state.iter().map(|(state, _)| u32::from(*state)));
            rows.extend(of_state.iter().map(|(_, row)| *row));
            starts.push(states.len() as u32);
        }
        let turn = match context.orientation[pov] {
            Operand::Register(turn) if halves.len() > 1 => Some(turn),
            _ => None,
        };
        if by_code.len() > FEW_CODES || has_both_orders {
            by_code.clear();
        }
        let by_code = by_code
            .into_iter()
            .map(|(code, masks, firsts)| (code, builder.bitboards(masks), builder.words(firsts)))
            .collect();
        let [starts, states, rows] = [starts, states, rows].map(|of| builder.words(of));
        Partners { starts, states, rows, bits, by_code, turn }
    }

    /// The position of the half's first element among as many as `half` of each.
    fn half(&self, builder: &mut Builder, half: u64) -> Option<Register> {
        let turn = self.turn?;
        let number = builder.and(turn, 1);
        Some(builder.binary(Binary::Multiply, number, half))
    }

    /// Emits the pairs on a board to which one of some pieces belongs; without pieces, all pairs on it.
    fn emit_bits(&self, builder: &mut Builder, (list, time): (u8, BoardTime), pov: usize, states: &[Register]) {
        for bits in &self.bits {
            let first = self.half(builder, bits.count);
            let emit = |builder: &mut Builder, number: Register| {
                let at = first.map_or(number, |first| builder.add(first, number));
                let pair = builder.load(bits.pairs, at);
                let there = [32, 40].map(|shift| {
                    let square = builder.shift_right(pair, shift);
                    let square = builder.and(square, 63);
                    builder.code_on(time, square)
                });
                let second = builder.shift_left(there[1], 8);
                let there = builder.or(there[0], second);
                let expected = builder.shift_right(pair, 48);
                let is_there = builder.equal(there, expected);
                // Lists take the lower half.
                builder.emit_one(list, pov, pair, Some(is_there));
            };
            if states.is_empty() {
                let count = builder.constant(bits.count);
                builder.for_range(count, emit);
                continue;
            }
            let first_state = self.half(builder, STATES as u64);
            let of_states = states.iter().map(|state| {
                let at = first_state.map_or(*state, |first| builder.add(first, *state));
                builder.load(bits.of_state, at)
            });
            let of_states: Vec<Register> = of_states.collect();
            let pairs = of_states.into_iter().reduce(|all, of_state| builder.or(all, of_state));
            if let Some(pairs) = pairs {
                builder.for_bits(pairs, emit);
            }
        }
    }

    /// [`Partners::emit`] by bitboards.
    fn emit_by_code(
        &self,
        builder: &mut Builder,
        (list, time): (u8, BoardTime),
        pov: usize,
        (state, index): (Register, Register),
        but: Skipped,
    ) {
        let one = builder.constant(1);
        for (code, masks, firsts) in &self.by_code {
            let mask = builder.load(*masks, index);
            let pieces = builder.by_code(time, *code);
            let mut partners = builder.and(pieces, mask);
            if let Skipped::LowerSquares = but {
                let square = builder.and(state, 63);
                let upwards = builder.constant(!0);
                let upwards = builder.shift_left(upwards, square);
                partners = builder.and(partners, upwards);
            }
            let first = builder.load(*firsts, index);
            builder.for_bits(partners, |builder, square| {
                let bit = builder.shift_left(one, square);
                let below = builder.binary(Binary::Subtract, bit, 1);
                let below = builder.and(below, mask);
                let number = builder.count_ones(below);
                let at = builder.add(first, number);
                let row = builder.load(self.rows, at);
                let condition = match but {
                    Skipped::State(other) => {
                        let partner = builder.or(square, code << 6);
                        Some(builder.not_equal(partner, other))
                    }
                    Skipped::Nothing | Skipped::LowerSquares => None,
                };
                builder.emit_one(list, pov, row, condition);
            });
        }
    }

    /// Emits the rows of a piece with its partners on a board, but for those to be skipped.
    fn emit(&self, builder: &mut Builder, (list, time): (u8, BoardTime), pov: usize, state: Register, but: Skipped) {
        let first = self.half(builder, STATES as u64);
        let index = first.map_or(state, |first| builder.add(first, state));
        if !self.by_code.is_empty() {
            return self.emit_by_code(builder, (list, time), pov, (state, index), but);
        }
        let start = builder.load(self.starts, index);
        let after = builder.add(index, 1);
        let end = builder.load(self.starts, after);
        let count = builder.binary(Binary::Subtract, end, start);
        builder.for_range(count, |builder, number| {
            let at = builder.add(start, number);
            let partner = builder.load(self.states, at);
            let row = builder.load(self.rows, at);
            let square = builder.and(partner, 63);
            let code = builder.code_on(time, square);
            let expected = builder.shift_right(partner, 6);
            let mut condition = builder.equal(code, expected);
            let is_meant = match but {
                Skipped::Nothing => None,
                Skipped::State(other) => Some(builder.not_equal(partner, other)),
                Skipped::LowerSquares => {
                    let own = builder.and(state, 63);
                    let is_lower = builder.binary(Binary::Less, square, own);
                    Some(builder.xor(is_lower, 1))
                }
            };
            if let Some(is_meant) = is_meant {
                condition = builder.and(condition, is_meant);
            }
            builder.emit_one(list, pov, row, Some(condition));
        });
    }
}

impl PairBits {
    fn of(builder: &mut Builder, halves: &[PairRows]) -> Vec<PairBits> {
        let mut all = Vec::new();
        for first in (0..halves[0].len()).step_by(64) {
            let count = (halves[0].len() - first).min(64);
            let mut of_state = vec![0; STATES * halves.len()];
            let mut pairs = Vec::new();
            for (half, rows) in halves.iter().enumerate() {
                for (number, (one, other, row)) in rows[first..first + count].iter().enumerate() {
                    let [one, other] = [u64::from(*one), u64::from(*other)];
                    for state in [one, other] {
                        of_state[half * STATES + state as usize] |= 1 << number;
                    }
                    let squares = one & 63 | (other & 63) << 8;
                    let codes = one >> 6 | other >> 6 << 8;
                    pairs.push(u64::from(*row) | squares << 32 | codes << 48);
                }
            }
            let [of_state, pairs] = [of_state, pairs].map(|of| builder.bitboards(of));
            all.push(PairBits { of_state, pairs, count: count as u64 });
        }
        all
    }
}

/// The pieces of a board that may have partners: those of few codes, or all.
fn pieces_with_partners(builder: &mut Builder, time: BoardTime, partners: &[Partners; 2]) -> Register {
    if partners.iter().any(|partners| partners.by_code.is_empty()) {
        return builder.occupied(time);
    }
    let mut codes: Vec<u64> = partners.iter().flat_map(|partners| &partners.by_code).map(|(code, ..)| *code).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut pieces = builder.constant(0);
    for code in codes {
        let of_code = builder.by_code(time, code);
        pieces = builder.or(pieces, of_code);
    }
    pieces
}

/// Writes the encoder of such a block.
pub fn encode(builder: &mut Builder, context: &Context<'_>) {
    let partners = [0, 1].map(|pov| Partners::of(builder, context, pov));
    let time = BoardTime::Before;
    if partners.iter().all(|partners| !partners.bits.is_empty()) {
        for (pov, partners) in partners.iter().enumerate() {
            partners.emit_bits(builder, (Program::ACTIVE, time), pov, &[]);
        }
        return;
    }
    let pieces = pieces_with_partners(builder, time, &partners);
    builder.for_bits(pieces, |builder, square| {
        let code = builder.code_on(time, square);
        let code = builder.shift_left(code, 6);
        let state = builder.or(code, square);
        for (pov, partners) in partners.iter().enumerate() {
            partners.emit(builder, (Program::ACTIVE, time), pov, state, Skipped::LowerSquares);
        }
    });
}

/// Writes the delta of a block for which [`derives`] holds.
pub fn delta(builder: &mut Builder, context: &Context<'_>) {
    let partners = [0, 1].map(|pov| Partners::of(builder, context, pov));
    for (list, time, first) in [(Program::REMOVED, BoardTime::Before, 0u64), (Program::ADDED, BoardTime::After, 2)] {
        let states = [first, first + 1].map(|at| builder.load(Memory::Change, at));
        if partners.iter().all(|partners| !partners.bits.is_empty()) {
            for (pov, partners) in partners.iter().enumerate() {
                partners.emit_bits(builder, (list, time), pov, &states);
            }
            continue;
        }
        for (position, state) in states.into_iter().enumerate() {
            let exists = builder.not_equal(state, u64::from(BoardChange::NO_PIECE));
            builder.if_(exists, |builder| {
                for (pov, partners) in partners.iter().enumerate() {
                    // A pair of two changed pieces is the first one's.
                    let but = if position == 1 { Skipped::State(states[0]) } else { Skipped::Nothing };
                    partners.emit(builder, (list, time), pov, state, but);
                }
            });
        }
    }
}
