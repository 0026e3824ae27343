//! Deltas of blocks of a piece and the next piece in a direction: the neighbours on a line through a changed square.
//!
//! Two neighbours are the lower piece, on the lower square, and the upper one. A pair may change only if one of both is
//! on a changed square, or if the lower piece is the first one below a changed square.

use std::collections::HashMap;

use crate::chess::BoardChange;
use crate::features::code::{Binary, BoardTime, Builder, Memory, Operand, Program, Register, Unary};
use crate::features::compiled::{NONE, ray};
use crate::features::spec::{BinderSpec, ConditionSpec, Multiplicity, SourceSpec, VariableKind};
use crate::features::syntax::Direction;

use super::classes::{Classes, are_distinct};
use super::conditions::Conditions;
use super::context::Context;
use super::rows::Bound;
use super::values::Values;

/// Most pieces of a board whose pair with the next one a change of two pieces removed and two added may concern.
const MOST_TOUCHED: usize = 8;

/// The variables of a block and the direction from the first to the second, as the perspective sees it.
#[derive(Copy, Clone)]
struct Neighbours {
    slots: [usize; 2],
    direction: Direction,
}

impl Neighbours {
    fn of(context: &Context<'_>) -> Option<Neighbours> {
        match context.spec.binders[..] {
            [
                BinderSpec { source: SourceSpec::Pieces, slot: first, .. },
                BinderSpec { source: SourceSpec::Next(of, direction), slot: second, .. },
            ] if of == first => Some(Neighbours { slots: [first, second], direction }),
            _ => None,
        }
    }

    /// The direction of the line on the board as it stands, and whether the second piece lies upwards.
    fn seen(self, turn: usize) -> (Direction, bool) {
        seen(self.direction, turn)
    }
}

/// A direction of the oriented board on the board as it stands: a direction that leads to higher squares, and whether
/// it is that one or the opposite.
pub fn seen(direction: Direction, turn: usize) -> (Direction, bool) {
    let (files, ranks) = direction.step();
    let files = if turn & 7 != 0 { -files } else { files };
    let ranks = if turn & 56 != 0 { -ranks } else { ranks };
    let named = |step: (i32, i32)| {
        Direction::NAMED.iter().map(|(_, direction)| *direction).find(|direction| direction.step() == step)
    };
    match named((files, ranks)) {
        Some(upwards) => (upwards, true),
        None => (named((-files, -ranks)).unwrap_or(direction), false),
    }
}

/// The lines on which neighbours are looked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Lines {
    Always(Direction),
    /// By the lowest bit of the orientation.
    ByHalf([Direction; 2]),
}

impl Lines {
    fn of(context: &Context<'_>, neighbours: Neighbours, pov: usize) -> Lines {
        let mut by_half = [neighbours.direction; 2];
        let turns = context.turns(pov, VariableKind::Piece);
        for half in 0..2 {
            let turn = turns.iter().find(|turn| **turn & 1 == half).unwrap_or(&turns[0]);
            by_half[half] = neighbours.seen(*turn).0;
        }
        if by_half[0] == by_half[1] { Lines::Always(by_half[0]) } else { Lines::ByHalf(by_half) }
    }

    fn directions(self) -> Vec<Direction> {
        match self {
            Lines::Always(direction) => vec![direction],
            Lines::ByHalf(directions) => directions.to_vec(),
        }
    }
}

/// The squares of a line through a square that lie above and below it.
fn above(direction: Direction, square: usize) -> u64 {
    ray(square as u32, direction)
}

fn below(direction: Direction, square: usize) -> u64 {
    (0..64).filter(|other| above(direction, *other) >> square & 1 != 0).fold(0, |squares, other| squares | 1 << other)
}

fn line(direction: Direction, square: usize) -> u64 {
    above(direction, square) | below(direction, square) | 1 << square
}

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

/// The pairs of one row.
struct PairClasses {
    lower: Classes,
    upper: Classes,
    /// Unless they all lie on one line.
    all_lines: Option<AllLines>,
}

/// All lines of a direction.
struct AllLines {
    masks: Memory,
    /// By half, so many lines each.
    turn: Option<Register>,
}

/// Most lines of a direction: fifteen diagonals.
const MOST_LINES: u64 = 15;

/// Both neighbours, and the second of them on the line.
#[derive(Copy, Clone)]
struct Pair {
    time: BoardTime,
    occupied: Register,
    line: Register,
    lower: Register,
    upper: Register,
    upper_square: Register,
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
    let is_distinct = |slot: usize| context.block.terms().iter().all(|term| are_distinct(&term.tables[slot]));
    neighbours.slots.into_iter().all(is_distinct)
}

/// Whether a block's delta may list a row as removed and as added.
pub fn may_cancel(context: &Context<'_>) -> bool {
    Neighbours::of(context).is_some_and(|neighbours| {
        context.spec.multiplicity == Multiplicity::Bag && !is_distinct(context, neighbours)
    })
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
        let geometry = self.geometry(builder);
        let occupied = builder.occupied(BoardTime::Before);
        builder.for_bits(occupied, |builder, square| {
            let (pair, exists) = geometry.pair(builder, BoardTime::Before, occupied, square);
            for block in &mut self.blocks {
                block.emit(builder, Program::ACTIVE, self.povs, pair, exists, None);
            }
        });
    }

    fn delta(&mut self, builder: &mut Builder) {
        let geometry = self.geometry(builder);
        let one = builder.constant(1);
        let highest = builder.constant(1 << 63);
        let changed = builder.constant(0);
        let times = [BoardTime::Before, BoardTime::After];
        let touched = [builder.constant(0), builder.constant(0)];
        let occupied = times.map(|time| builder.occupied(time));
        let count = builder.constant(4);
        builder.for_range(count, |builder, number| {
            let state = builder.load(Memory::Change, number);
            let exists = builder.not_equal(state, u64::from(BoardChange::NO_PIECE));
            builder.if_(exists, |builder| {
                let square = builder.and(state, 63);
                let bit = builder.shift_left(one, square);
                builder.change(changed, Binary::Or, bit);
                let index = geometry.index(builder, square);
                let below = builder.load(geometry.below, index);
                for board in 0..2 {
                    let lower = builder.and(occupied[board], below);
                    let zeros = builder.unary(Unary::LeadingZeros, lower);
                    let first = builder.shift_right(highest, zeros);
                    let first = builder.and(first, lower);
                    builder.change(touched[board], Binary::Or, first);
                }
            });
        });
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

    fn geometry(&self, builder: &mut Builder) -> LineGeometry {
        let table = |builder: &mut Builder, of: &dyn Fn(Direction, usize) -> u64| {
            let mut masks = Vec::new();
            for direction in self.lines.directions() {
                masks.extend((0..64).map(|square| of(direction, square)));
            }
            builder.bitboards(masks)
        };
        let first = self.turn.map(|turn| {
            let half = builder.and(turn, 1);
            builder.shift_left(half, 6)
        });
        LineGeometry {
            first,
            below: table(builder, &below),
            above: table(builder, &above),
            line: table(builder, &line),
        }
    }
}

/// Bitboards by square: its line, and the parts of it below and above.
struct LineGeometry {
    /// The position of the half's first bitboard.
    first: Option<Register>,
    below: Memory,
    above: Memory,
    line: Memory,
}

impl LineGeometry {
    fn index(&self, builder: &mut Builder, square: Register) -> Register {
        match self.first {
            None => square,
            Some(first) => builder.add(first, square),
        }
    }

    /// The pair of the piece on a square and the next one above, and whether there is a next one.
    fn pair(&self, builder: &mut Builder, time: BoardTime, occupied: Register, square: Register) -> (Pair, Register) {
        let index = self.index(builder, square);
        let line = builder.load(self.line, index);
        let upper = builder.load(self.above, index);
        let upper = builder.and(upper, occupied);
        let exists = builder.not_equal(upper, 0);
        let upper_square = builder.lowest(upper);
        let upper_square = builder.and(upper_square, 63);
        let [lower, upper] = [square, upper_square].map(|square| {
            let code = builder.code_on(time, square);
            let code = builder.shift_left(code, 6);
            builder.or(code, square)
        });
        (Pair { time, occupied, line, lower, upper, upper_square }, exists)
    }
}

impl<'a, 'b> NextBlock<'a, 'b> {
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

    /// Emits the rows of a pair, but for those that another pair of its board emits or that the other board has. `other`:
    /// the occupied squares of the other board, if there is one.
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
                [
                    builder.select(condition, pair.lower, pair.upper),
                    builder.select(condition, pair.upper, pair.lower),
                ]
            }
            _ if is_upwards[0] => [pair.lower, pair.upper],
            _ => [pair.upper, pair.lower],
        }
    }
}

impl PairClasses {
    fn of(
        builder: &mut Builder,
        context: &Context<'_>,
        neighbours: Neighbours,
        (lines, turn): (Lines, Option<Register>),
        tables: [&[u32]; 2],
    ) -> PairClasses {
        let on_line = |turn: usize, square: usize| line(neighbours.seen(turn).0, square);
        // Whether pieces that share an entry with another are on its line.
        let stays_on_line = |table: &[u32]| {
            context.turns(0, VariableKind::Piece).into_iter().all(|turn| {
                let mut line_of: HashMap<u32, u64> = HashMap::new();
                (0..1024usize).all(|state| {
                    let entry = table[state ^ turn];
                    let line = on_line(turn, state & 63);
                    entry == NONE || *line_of.entry(entry).or_insert(line) == line
                })
            })
        };
        let on_one_line = tables.iter().any(|table| stays_on_line(table));
        let within = |turn: usize, square: usize| if on_one_line { on_line(turn, square) } else { !0 };
        // The lower piece is the first variable where the second lies upwards.
        let of_end = |upper: bool| {
            move |_: usize, turn: usize| {
                let is_second = neighbours.seen(turn).1 == upper;
                tables[usize::from(is_second)]
            }
        };
        let all_lines = (!on_one_line).then(|| AllLines::of(builder, lines, turn));
        PairClasses {
            lower: Classes::of(builder, context, &of_end(false), &within, None),
            upper: Classes::of(builder, context, &of_end(true), &within, None),
            all_lines,
        }
    }

    fn are_same(&self) -> bool {
        self.lower.are_same() && self.upper.are_same()
    }

    /// Whether a pair is the first of its row on its board, and the row has no pair on the other one.
    fn change(&self, builder: &mut Builder, pair: Pair, pov: usize, other: Option<Register>) -> Register {
        let own = self.uppers(builder, pair, pov, (pair.time, pair.occupied));
        let first = builder.lowest(own);
        let is_first = builder.equal(first, pair.upper_square);
        let Some(occupied) = other else { return is_first };
        let time = if pair.time == BoardTime::Before { BoardTime::After } else { BoardTime::Before };
        let others = self.uppers(builder, pair, pov, (time, occupied));
        let is_absent = builder.equal(others, 0);
        builder.binary(Binary::And, is_first, is_absent)
    }

    /// The upper pieces of a board's pairs with the pair's row.
    fn uppers(
        &self,
        builder: &mut Builder,
        pair: Pair,
        pov: usize,
        (time, occupied): (BoardTime, Register),
    ) -> Register {
        let lower = self.lower.members(builder, time, pair.lower, pov);
        let upper = self.upper.members(builder, time, pair.upper, pov);
        let Some(all) = &self.all_lines else {
            let next = next_on_line(builder, lower, pair.line, occupied);
            return builder.and(next, upper);
        };
        let found = builder.constant(0);
        let count = builder.constant(MOST_LINES);
        builder.for_range(count, |builder, number| {
            let line = all.line(builder, number);
            let next = next_on_line(builder, lower, line, occupied);
            let next = builder.and(next, upper);
            builder.change(found, Binary::Or, next);
        });
        found
    }
}

impl AllLines {
    fn of(builder: &mut Builder, lines: Lines, turn: Option<Register>) -> AllLines {
        let mut masks = Vec::new();
        for direction in lines.directions() {
            let mut of_direction: Vec<u64> = (0..64).map(|square| line(direction, square)).collect();
            of_direction.sort_unstable();
            of_direction.dedup();
            of_direction.resize(MOST_LINES as usize, 0);
            masks.extend(of_direction);
        }
        AllLines { masks: builder.bitboards(masks), turn }
    }

    fn line(&self, builder: &mut Builder, number: Register) -> Register {
        let index = match self.turn {
            None => number,
            Some(turn) => {
                let half = builder.and(turn, 1);
                let first = builder.binary(Binary::Multiply, half, MOST_LINES);
                builder.add(first, number)
            }
        };
        builder.load(self.masks, index)
    }
}

/// The next piece above each of some pieces, on one line: sums carry through its empty squares.
fn next_on_line(builder: &mut Builder, pieces: Register, line: Register, occupied: Register) -> Register {
    let on_line = builder.and(pieces, line);
    let occupied = builder.and(occupied, line);
    let free = builder.not(occupied);
    let doubled = builder.add(on_line, on_line);
    let sum = builder.add(doubled, free);
    builder.and(sum, occupied)
}
