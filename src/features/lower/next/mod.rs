//! Deltas of blocks of a piece and the next piece in a direction: the neighbours on a line through a changed square.
//!
//! Two neighbours are the lower piece, on the lower square, and the upper one. A pair may change only if one of both is
//! on a changed square, or if the lower piece is the first one below a changed square.

mod lines;
mod pair_classes;

use crate::chess::BoardChange;
use crate::features::code::{Binary, BoardTime, Builder, Memory, Operand, Program, Register, Unary};
use crate::features::spec::{ConditionSpec, Multiplicity, VariableKind};

pub use lines::seen;
use lines::{LineGeometry, Lines, Neighbours, Pair};
use pair_classes::PairClasses;

use super::classes::are_distinct;
use super::conditions::Conditions;
use super::context::Context;
use super::rows::Bound;
use super::values::Values;

/// Most pieces of a board whose pair with the next one a change of two pieces removed and two added may concern.
const MOST_TOUCHED: usize = 8;

/// Blocks that look for neighbours on the same lines, for the same perspectives.
struct Pass<'a, 'b> {
    povs: [bool; 2],
    lines: Lines,
    /// Where the lines depend on the half: the orientation of the only perspective, whose lowest bit says which.
    turn: Option<Register>,
    blocks: Vec<NextBlock<'a, 'b>>,
}

struct NextBlock<'a, 'b> {
    context: &'b Context<'a>,
    neighbours: Neighbours,
    conditions: Vec<&'a ConditionSpec>,
    values: Values,
    terms: Vec<NextTerm>,
}

struct NextTerm {
    number: usize,
    /// Where several pairs may have one row that counts once.
    sharing: Option<PairClasses>,
}

/// Whether a block's delta is one of these.
pub fn derives(context: &Context<'_>) -> bool {
    let Some(neighbours) = Neighbours::of(context) else { return false };
    let terms = context.block.terms();
    let has_counts = terms.iter().any(|term| !term.counts.is_empty()) || !context.spec.guards.is_empty();
    let is_free = context.spec.multiplicity == Multiplicity::Bag || context.joint_conditions().is_empty();
    !has_counts
        && terms.len() <= super::MOST_TERMS
        && terms.iter().all(|term| term.separable)
        && (is_free || is_distinct(context, neighbours))
}

/// Whether every pair has a row of its own.
fn is_distinct(context: &Context<'_>, neighbours: Neighbours) -> bool {
    let is_distinct = |slot: usize| context.block.terms().iter().all(|term| are_distinct(&term.tables[slot], false));
    neighbours.slots.into_iter().all(is_distinct)
}

/// Whether a block's delta may list a row as removed and as added.
pub fn may_cancel(context: &Context<'_>) -> bool {
    Neighbours::of(context)
        .is_some_and(|neighbours| context.spec.multiplicity == Multiplicity::Bag && !is_distinct(context, neighbours))
}

/// Most rows that a block's delta adds or removes.
pub fn capacity(context: &Context<'_>) -> usize {
    MOST_TOUCHED * context.block.terms().len()
}

/// Writes the deltas of blocks for which [`derives`] holds.
pub fn delta(builder: &mut Builder, contexts: &[&Context<'_>]) {
    for mut pass in passes(builder, contexts) {
        builder.scope(|builder| pass.delta(builder));
    }
}

/// Writes the encoders of such blocks: no row that counts once is emitted twice.
pub fn encode(builder: &mut Builder, contexts: &[&Context<'_>]) {
    for mut pass in passes(builder, contexts) {
        builder.scope(|builder| pass.encode(builder));
    }
}

fn passes<'a, 'b>(builder: &mut Builder, contexts: &[&'b Context<'a>]) -> Vec<Pass<'a, 'b>> {
    let mut passes: Vec<Pass<'_, '_>> = Vec::new();
    for context in contexts {
        let Some(neighbours) = Neighbours::of(context) else { continue };
        let lines = [0, 1].map(|pov| Lines::of(context, neighbours, pov));
        let is_joint = lines[0] == lines[1] && matches!(lines[0], Lines::Always(_));
        let povs: &[[bool; 2]] = if is_joint { &[[true; 2]] } else { &[[true, false], [false, true]] };
        for povs in povs {
            let pov = usize::from(!povs[0]);
            let turn = match (lines[pov], context.orientation[pov]) {
                (Lines::ByHalf(_), Operand::Register(turn)) => Some(turn),
                _ => None,
            };
            let block = NextBlock::of(builder, context, neighbours, lines[pov], turn);
            let known = passes.iter_mut().find(|pass| (pass.povs, pass.lines, pass.turn) == (*povs, lines[pov], turn));
            match known {
                Some(pass) => pass.blocks.push(block),
                None => passes.push(Pass { povs: *povs, lines: lines[pov], turn, blocks: vec![block] }),
            }
        }
    }
    passes
}

impl Pass<'_, '_> {
    fn encode(&mut self, builder: &mut Builder) {
        let geometry = LineGeometry::of(builder, self.lines, self.turn);
        let occupied = builder.occupied(BoardTime::Before);
        builder.for_bits(occupied, |builder, square| {
            let (pair, exists) = geometry.pair(builder, BoardTime::Before, occupied, square);
            for block in &mut self.blocks {
                block.emit(builder, Program::ACTIVE, self.povs, pair, exists, None);
            }
        });
    }

    fn delta(&mut self, builder: &mut Builder) {
        let geometry = LineGeometry::of(builder, self.lines, self.turn);
        if self.blocks.iter().all(|block| block.reads_lines_only(self.povs)) {
            let stays = stays_on_line(builder, &geometry);
            let moves = builder.xor(stays, 1);
            return builder.if_(moves, |builder| self.find_changes(builder, &geometry));
        }
        self.find_changes(builder, &geometry);
    }

    /// Emits the pairs that touch a changed square.
    fn find_changes(&mut self, builder: &mut Builder, geometry: &LineGeometry) {
        let zero = builder.constant(0);
        let highest = builder.constant(1 << 63);
        let changed = builder.constant(0);
        let times = [BoardTime::Before, BoardTime::After];
        let touched = [builder.constant(0), builder.constant(0)];
        let occupied = times.map(|time| builder.occupied(time));
        for number in 0..4u64 {
            let state = builder.load(Memory::Change, number);
            let exists = builder.not_equal(state, u64::from(BoardChange::NO_PIECE));
            let touch = |builder: &mut Builder| {
                let square = builder.and(state, 63);
                let bit = builder.shift_left(exists, square);
                builder.change(changed, Binary::Or, bit);
                let index = geometry.index(builder, square);
                let below = builder.load(geometry.below, index);
                let all = builder.binary(Binary::Subtract, zero, exists);
                let below = builder.and(below, all);
                for board in 0..2 {
                    let lower = builder.and(occupied[board], below);
                    let zeros = builder.unary(Unary::LeadingZeros, lower);
                    let first = builder.shift_right(highest, zeros);
                    let first = builder.and(first, lower);
                    builder.change(touched[board], Binary::Or, first);
                }
            };
            // Whether there is a captured piece cannot be predicted; a second one is added by castling only.
            if number < 3 { builder.scope(touch) } else { builder.if_(exists, touch) }
        }
        for (board, time) in times.into_iter().enumerate() {
            let on_changed = builder.and(changed, occupied[board]);
            builder.change(touched[board], Binary::Or, on_changed);
            let list = if time == BoardTime::Before { Program::REMOVED } else { Program::ADDED };
            builder.for_bits(touched[board], |builder, square| {
                let (pair, exists) = geometry.pair(builder, time, occupied[board], square);
                for block in &mut self.blocks {
                    block.emit(builder, list, self.povs, pair, exists, Some(occupied[1 - board]));
                }
            });
        }
    }
}

/// Whether the change is one piece's move along a line over empty squares: the line's pieces keep their order.
fn stays_on_line(builder: &mut Builder, geometry: &LineGeometry) -> Register {
    let [from, captured, to, second] = [0, 1, 2, 3].map(|number: u64| builder.load(Memory::Change, number));
    let turned = builder.xor(from, to);
    let is_same_piece = builder.binary(Binary::Less, turned, 64);
    let others = builder.and(captured, second);
    let is_alone = builder.equal(others, u64::from(BoardChange::NO_PIECE));
    let [from, to] = [from, to].map(|state| {
        let square = builder.and(state, 63);
        let index = geometry.index(builder, square);
        (square, builder.load(geometry.above, index), builder.load(geometry.below, index))
    });
    let ways = [(from.1, to), (to.1, from)].map(|(above, (square, _, below))| {
        let reaches = builder.shift_right(above, square);
        (builder.and(above, below), builder.and(reaches, 1))
    });
    let between = builder.or(ways[0].0, ways[1].0);
    let occupied = builder.occupied(BoardTime::Before);
    let between = builder.and(between, occupied);
    let is_free = builder.equal(between, 0);
    let is_on_line = builder.or(ways[0].1, ways[1].1);
    let of_piece = builder.and(is_same_piece, is_alone);
    let on_line = builder.and(is_on_line, is_free);
    builder.and(of_piece, on_line)
}

impl<'a, 'b> NextBlock<'a, 'b> {
    /// Whether pieces of one code have one entry on all squares of a line, for all perspectives that are looked at.
    fn reads_lines_only(&self, povs: [bool; 2]) -> bool {
        let is_alike = |table: &[u32], turn: usize, state: usize| {
            let above = lines::above(self.neighbours.seen(turn).0, state & 63);
            (0..64)
                .all(|square| above >> square & 1 == 0 || table[state ^ turn] == table[(state & !63 | square) ^ turn])
        };
        let turns: Vec<usize> =
            (0..2).filter(|pov| povs[*pov]).flat_map(|pov| self.context.turns(pov, VariableKind::Piece)).collect();
        let on_line = |table: &[u32]| turns.iter().all(|turn| (0..1024).all(|state| is_alike(table, *turn, state)));
        let terms = self.context.block.terms();
        self.conditions.is_empty()
            && terms.iter().all(|term| self.neighbours.slots.iter().all(|slot| on_line(&term.tables[*slot])))
    }

    fn of(
        builder: &mut Builder,
        context: &'b Context<'a>,
        neighbours: Neighbours,
        lines: Lines,
        turn: Option<Register>,
    ) -> NextBlock<'a, 'b> {
        let conditions = context.joint_conditions();
        let mut values = Values::default();
        values.bind_kings(builder, context, &conditions);
        let shares = context.spec.multiplicity == Multiplicity::Set && !is_distinct(context, neighbours);
        let mut terms = Vec::new();
        for (number, term) in context.block.terms().iter().enumerate() {
            let tables = neighbours.slots.map(|slot| &term.tables[slot][..]);
            let sharing = shares.then(|| PairClasses::of(builder, context, neighbours, (lines, turn), tables));
            terms.push(NextTerm { number, sharing });
        }
        NextBlock { context, neighbours, conditions, values, terms }
    }

    /// Emits the rows of a pair, but for those that another pair of its board emits or that the other board has.
    /// `other`: the occupied squares of the other board, if there is one.
    fn emit(
        &mut self,
        builder: &mut Builder,
        list: u8,
        povs: [bool; 2],
        pair: Pair,
        exists: Register,
        other: Option<Register>,
    ) {
        let mut bound = self.neighbours.slots.map(|slot| Bound { slot, states: [None; 2] });
        for pov in (0..2).filter(|pov| povs[*pov]) {
            let [first, second] = self.bind(builder, pov, pair);
            bound[0].states[pov] = Some(first);
            bound[1].states[pov] = Some(second);
        }
        for variable in &bound {
            self.values.bind(builder, self.context, variable, &self.conditions);
        }
        let is_same = bound.iter().all(|variable| variable.states[0] == variable.states[1]);
        let hold = self.values.conditions(builder, &self.conditions, povs, is_same);
        let hold = hold.and(builder, Conditions::both(exists));
        for term in &self.terms {
            let (rows, mut conditions) = self.context.rows(builder, term.number, &bound, None, hold);
            if let Some(classes) = &term.sharing {
                let mut changes = Conditions::ALWAYS;
                for pov in (0..2).filter(|pov| povs[*pov]) {
                    changes.0[pov] = if pov == 1 && povs[0] && classes.are_same() {
                        changes.0[0]
                    } else {
                        Some(classes.change(builder, pair, pov, other))
                    };
                }
                conditions = conditions.and(builder, changes);
            }
            rows.emit(builder, list, conditions);
        }
    }

    /// The states of the first and the second variable.
    fn bind(&self, builder: &mut Builder, pov: usize, pair: Pair) -> [Register; 2] {
        let turns = self.context.turns(pov, VariableKind::Piece);
        // By the lowest bit of the orientation.
        let is_upwards = [0, 1].map(|half| {
            let turn = turns.iter().find(|turn| **turn & 1 == half).unwrap_or(&turns[0]);
            self.neighbours.seen(*turn).1
        });
        match self.context.orientation[pov] {
            Operand::Register(turn) if is_upwards[0] != is_upwards[1] => {
                let mut condition = builder.and(turn, 1);
                if is_upwards[0] {
                    condition = builder.xor(condition, 1);
                }
                [builder.select(condition, pair.lower, pair.upper), builder.select(condition, pair.upper, pair.lower)]
            }
            _ if is_upwards[0] => [pair.lower, pair.upper],
            _ => [pair.upper, pair.lower],
        }
    }
}
