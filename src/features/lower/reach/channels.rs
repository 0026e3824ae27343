//! Deltas of pairs that count once and whose rows do not depend on the first piece's square: a row is there if any
//! piece of its codes reaches the square, so bitboards before and after are compared.

use std::collections::BTreeMap;

use crate::features::code::{Binary, Builder, Memory, Program, Register};
use crate::features::compiled::{NONE, PairBlock};
use crate::features::lower::conditions::Conditions;
use crate::features::lower::context::Context;
use crate::features::lower::rows::{Bound, Rows};
use crate::features::lower::sources::Reachable;

use super::pairs::LISTS;
use super::scene::{CODES, Scene, TIMES, pieces_of};
use super::unions::Unions;

/// First pieces that share rows: their codes, and for each the codes of the pieces that it may reach, as the board
/// stands. All codes where the second variable is a square.
type ChannelMembers = Vec<(usize, u16)>;

/// Rows that pieces of some codes share, and each perspective's entry for these pieces.
#[derive(Clone, Debug)]
struct Channel {
    members: ChannelMembers,
    entries: [Option<u32>; 2],
}

/// A block whose rows do not depend on the first piece's square.
pub struct ChannelPlan<'a> {
    context: &'a Context<'a>,
    block: PairBlock<'a>,
    reach: Reachable,
    /// By term.
    terms: Vec<ChannelTerm<'a>>,
}

struct ChannelTerm<'a> {
    channels: Vec<Channel>,
    second: &'a [u32],
    /// For each perspective, by state of the second variable as the board stands: the squares on which the same code
    /// has the same entry. `None` where each has an entry of its own.
    equals: Option<[Vec<u64>; 2]>,
}

impl<'a> ChannelPlan<'a> {
    /// `None` if the block is not of this kind.
    pub fn new(context: &'a Context<'a>, block: PairBlock<'a>) -> Option<ChannelPlan<'a>> {
        let reach = Reachable::of(block.source).filter(|reach| *reach != Reachable::Board)?;
        if block.is_bag() || block.is_renumbered() || !block.reads_only_pair() {
            return None;
        }
        let mut terms = Vec::new();
        for term in block.terms() {
            let [first, second] = block.tables(term);
            if !term.separable {
                return None;
            }
            let channels = channels(block, first, second)?;
            let equals = if all_differ(second) { None } else { Some(equals(context, block, second)?) };
            terms.push(ChannelTerm { channels, second, equals });
        }
        Some(ChannelPlan { context, block, reach, terms })
    }

    /// The codes whose unions it reads.
    pub fn codes(&self) -> u16 {
        let members = self.terms.iter().flat_map(|term| &term.channels).flat_map(|channel| &channel.members);
        members.fold(0, |codes, (code, _)| codes | 1 << code)
    }

    /// Most rows that it appends to a list.
    pub fn most_rows(&self) -> u32 {
        64 * self.terms.iter().map(|term| term.channels.len() as u32).sum::<u32>()
    }

    /// Emits the rows removed and added.
    pub fn write(&self, builder: &mut Builder, scene: &Scene, unions: &Unions) {
        for (number, term) in self.terms.iter().enumerate() {
            for channel in &term.channels {
                builder.scope(|builder| self.write_channel(builder, scene, unions, number, channel));
            }
        }
    }

    /// Emits the active rows.
    pub fn encode(&self, builder: &mut Builder, scene: &Scene, unions: &Unions) {
        for (number, term) in self.terms.iter().enumerate() {
            for channel in &term.channels {
                builder.scope(|builder| {
                    let reached = self.reached(builder, scene, unions, channel, 0);
                    self.emit(builder, channel, number, [reached; 2], (reached, 0, Program::ACTIVE, false));
                });
            }
        }
    }

    fn write_channel(&self, builder: &mut Builder, scene: &Scene, unions: &Unions, number: usize, channel: &Channel) {
        let reached = [0, 1].map(|time| self.reached(builder, scene, unions, channel, time));
        // A piece that replaced another one on its square has another row.
        let staying = if self.block.ends_on_pieces() {
            let both = builder.and(reached[0], reached[1]);
            builder.and_not(both, scene.changed)
        } else {
            builder.and(reached[0], reached[1])
        };
        for time in 0..2 {
            let changed = builder.xor(reached[time], staying);
            self.emit(builder, channel, number, reached, (changed, time, LISTS[time], true));
        }
    }

    /// Emits the rows of some squares into a list. `reached`: the channel's squares on both boards. `is_compared`: only
    /// rows that the other board lacks.
    fn emit(
        &self,
        builder: &mut Builder,
        channel: &Channel,
        number: usize,
        reached: [Register; 2],
        (squares, time, list, is_compared): (Register, usize, u8, bool),
    ) {
        let term = &self.terms[number];
        let base = &self.context.bases[number];
        let part = self.part(builder, number, channel);
        let states = |state: Register| channel.entries.map(|entry| entry.map(|_| state));
        let tables = term.equals.as_ref().map(|tables| tables.clone().map(|table| builder.bitboards(table)));
        builder.for_bits(squares, |builder, square| {
            let state = self.second(builder, time, square);
            let bound = Bound { slot: self.block.slots()[1], states: states(state) };
            let (entries, present) = self.context.entries(builder, term.second, &bound);
            let rows = part.plus(builder, entries);
            let mut conditions = base.conditions.and(builder, present);
            if let Some(tables) = &tables {
                let only = self.is_first(builder, tables, [state, square], reached, (time, is_compared), channel);
                conditions = conditions.and(builder, only);
            }
            rows.emit(builder, list, conditions);
        });
    }

    /// The kings' part of rows and the channel's.
    fn part(&self, builder: &mut Builder, number: usize, channel: &Channel) -> Rows {
        let base = &self.context.bases[number];
        let [white, black] = channel.entries.map(|entry| u64::from(entry.unwrap_or(0)));
        if let Some(constant) = base.constant().map(u64::from) {
            return Rows::Packed(builder.constant((white + constant) | (black + constant) << 32));
        }
        let own = Rows::Packed(builder.constant(white | black << 32));
        let base = base.rows(builder);
        base.plus(builder, own)
    }

    /// The squares that the channel's pieces reach, where what stands there may be the second variable.
    fn reached(
        &self,
        builder: &mut Builder,
        scene: &Scene,
        unions: &Unions,
        channel: &Channel,
        time: usize,
    ) -> Register {
        let all = builder.constant(0);
        for (code, seconds) in &channel.members {
            builder.scope(|builder| {
                let mut reached = match self.reach {
                    Reachable::Attacks | Reachable::Board => unions.attacks(builder, *code, time),
                    Reachable::Moves => unions.moves(builder, *code, time),
                };
                if self.block.ends_on_pieces() {
                    let seconds = pieces_of(builder, time, scene, *seconds);
                    reached = builder.and(reached, seconds);
                }
                builder.change(all, Binary::Or, reached);
            });
        }
        all
    }

    fn second(&self, builder: &mut Builder, time: usize, square: Register) -> Register {
        if !self.block.ends_on_pieces() {
            return square;
        }
        let code = builder.code_on(TIMES[time], square);
        super::scene::state(builder, code, square)
    }

    /// Whether a reached square is the first one of its row on this board, and the other board has none, if it is
    /// compared.
    fn is_first(
        &self,
        builder: &mut Builder,
        tables: &[Memory; 2],
        [state, square]: [Register; 2],
        reached: [Register; 2],
        (time, is_compared): (usize, bool),
        channel: &Channel,
    ) -> Conditions {
        let mut conditions = Conditions::ALWAYS;
        for pov in 0..2 {
            if channel.entries[pov].is_none() {
                continue;
            }
            let equals = builder.load(tables[pov], state);
            let [own, other] = [time, 1 - time].map(|time| {
                let mut same = builder.and(reached[time], equals);
                if self.block.ends_on_pieces() {
                    let code = builder.shift_right(state, 6);
                    let pieces = builder.by_code(TIMES[time], code);
                    same = builder.and(same, pieces);
                }
                same
            });
            let first = builder.lowest(own);
            let is_first = builder.equal(first, square);
            conditions.0[pov] = Some(if is_compared {
                let is_absent = builder.equal(other, 0);
                builder.and(is_first, is_absent)
            } else {
                is_first
            });
        }
        conditions
    }
}

/// The channels of a term; `None` if the first piece's square matters.
fn channels(block: PairBlock<'_>, first: &[u32], second: &[u32]) -> Option<Vec<Channel>> {
    let possible = seconds_of(second);
    let mut known: BTreeMap<ChannelMembers, [Option<u32>; 2]> = BTreeMap::new();
    for pov in 0..2 {
        let turned = |code: usize| code ^ (pov << 3);
        let mut by_entry: BTreeMap<u32, ChannelMembers> = BTreeMap::new();
        for code in CODES {
            let entries = &first[code << 6..][..64];
            if entries.iter().any(|entry| *entry != entries[0]) {
                return None;
            }
            if entries[0] == NONE {
                continue;
            }
            let allowed = allowed_codes(block, code)?;
            let seconds = (0..16).filter(|code| (allowed & possible) >> code & 1 != 0);
            let seconds = seconds.fold(0u16, |codes, code| codes | 1 << turned(code));
            if seconds != 0 {
                let all = if allowed & possible == possible { !0 } else { seconds };
                by_entry.entry(entries[0]).or_default().push((turned(code), all));
            }
        }
        for (entry, mut members) in by_entry {
            members.sort_unstable();
            known.entry(members).or_default()[pov] = Some(entry);
        }
    }
    Some(known.into_iter().map(|(members, entries)| Channel { members, entries }).collect())
}

/// The codes of second variables that have entries; of bare squares all.
fn seconds_of(second: &[u32]) -> u16 {
    if second.len() == 64 {
        return !0;
    }
    let has_entry = |code: &usize| second[code << 6..][..64].iter().any(|entry| *entry != NONE);
    CODES.into_iter().filter(has_entry).fold(0, |codes, code| codes | 1 << code)
}

/// The codes that conditions allow the second variable with a first piece; `None` if a square matters.
fn allowed_codes(block: PairBlock<'_>, code: usize) -> Option<u16> {
    if !block.has_condition() {
        return Some(!0);
    }
    let allowed = block.allowed(code, 0);
    let is_known = |squares: &u64| [0, !0].contains(squares);
    let seconds: &[usize] = if block.ends_on_pieces() { &CODES } else { &[0] };
    let is_same = (1..64).all(|square| block.allowed(code, square) == allowed);
    if !is_same || !seconds.iter().all(|code| is_known(&allowed[*code])) {
        return None;
    }
    let codes = seconds.iter().filter(|code| allowed[**code] != 0).fold(0, |codes, code| codes | 1 << code);
    Some(if block.ends_on_pieces() || codes == 0 { codes } else { !0 })
}

/// Whether no two states have the same entry.
fn all_differ(table: &[u32]) -> bool {
    let mut entries: Vec<u32> = table.iter().copied().filter(|entry| *entry != NONE).collect();
    entries.sort_unstable();
    entries.windows(2).all(|pair| pair[0] != pair[1])
}

/// For each perspective and state, as the board stands: the squares with the same entry. `None` if codes share entries,
/// or if the squares depend on which half of the board is mirrored.
fn equals(context: &Context<'_>, block: PairBlock<'_>, table: &[u32]) -> Option<[Vec<u64>; 2]> {
    let mut squares_of: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    for (state, entry) in table.iter().enumerate().filter(|(_, entry)| **entry != NONE) {
        let known = squares_of.entry(*entry).or_insert((state >> 6, 0));
        if known.0 != state >> 6 {
            return None;
        }
        known.1 |= 1 << (state & 63);
    }
    let of = |state: usize| squares_of.get(&table[state]).map_or(0, |known| known.1);
    let mut both = [Vec::new(), Vec::new()];
    for (pov, out) in both.iter_mut().enumerate() {
        let turns = context.turns(pov, block.second_kind);
        let turned = |turn: usize| -> Vec<u64> {
            (0..table.len()).map(|state| turned_back(of(state ^ turn), turn & 63)).collect()
        };
        *out = turned(turns[0]);
        if turns.iter().any(|turn| turned(*turn) != *out) {
            return None;
        }
    }
    Some(both)
}

/// The squares that an orientation turns into some.
fn turned_back(squares: u64, turn: usize) -> u64 {
    (0..64).filter(|square| squares >> (square ^ turn) & 1 != 0).fold(0, |all, square| all | 1 << square)
}
