//! Deltas of blocks of two variables of pieces, each bound from all pieces, in which few pairs of pieces have a row, as
//! under a selection: each piece has a list of partners.

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
    /// Where the half matters: the orientation, whose lowest bit says which.
    turn: Option<Register>,
}

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
        let partners = by_state(&halves);
        let mut starts = vec![0];
        let mut states = Vec::new();
        let mut rows = Vec::new();
        for of_state in partners {
            states.extend(of_state.iter().map(|(state, _)| u32::from(*state)));
            rows.extend(of_state.iter().map(|(_, row)| *row));
            starts.push(states.len() as u32);
        }
        let turn = match context.orientation[pov] {
            Operand::Register(turn) if halves.len() > 1 => Some(turn),
            _ => None,
        };
        Partners { starts: builder.words(starts), states: builder.words(states), rows: builder.words(rows), turn }
    }

    /// Emits the rows of a piece with its partners on a board, but for the piece `except`.
    fn emit(
        &self,
        builder: &mut Builder,
        (list, time): (u8, BoardTime),
        pov: usize,
        state: Register,
        except: Option<Register>,
    ) {
        let index = match self.turn {
            None => state,
            Some(turn) => {
                let half = builder.and(turn, 1);
                let first = builder.shift_left(half, 10);
                builder.add(first, state)
            }
        };
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
            if let Some(except) = except {
                let is_other = builder.not_equal(partner, except);
                condition = builder.and(condition, is_other);
            }
            builder.emit_one(list, pov, row, Some(condition));
        });
    }
}

/// Writes the delta of a block for which [`derives`] holds.
pub fn delta(builder: &mut Builder, context: &Context<'_>) {
    let partners = [0, 1].map(|pov| Partners::of(builder, context, pov));
    for (list, time, first) in [(Program::REMOVED, BoardTime::Before, 0u64), (Program::ADDED, BoardTime::After, 2)] {
        let states = [first, first + 1].map(|at| builder.load(Memory::Change, at));
        for (position, state) in states.into_iter().enumerate() {
            let exists = builder.not_equal(state, u64::from(BoardChange::NO_PIECE));
            builder.if_(exists, |builder| {
                for (pov, partners) in partners.iter().enumerate() {
                    // A pair of two changed pieces is the first one's.
                    let except = (position == 1).then_some(states[0]);
                    partners.emit(builder, (list, time), pov, state, except);
                }
            });
        }
    }
}
