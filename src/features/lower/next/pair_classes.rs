//! The pairs of neighbours that share a row which counts once.

use std::collections::HashMap;

use crate::features::code::{Binary, BoardTime, Builder, Memory, Register};
use crate::features::compiled::NONE;
use crate::features::lower::classes::Classes;
use crate::features::lower::context::Context;
use crate::features::spec::VariableKind;

use super::lines::{Lines, Neighbours, Pair, line};

/// The pairs of one row.
pub struct PairClasses {
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

impl PairClasses {
    pub fn of(
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

    pub fn are_same(&self) -> bool {
        self.lower.are_same() && self.upper.are_same()
    }

    /// Whether a pair is the first of its row on its board, and the row has no pair on the other one.
    pub fn change(&self, builder: &mut Builder, pair: Pair, pov: usize, other: Option<Register>) -> Register {
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
