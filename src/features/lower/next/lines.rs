//! Neighbours on lines of the board as it stands, as perspectives see them.

use crate::features::code::{BoardTime, Builder, Memory, Register};
use crate::features::compiled::ray;
use crate::features::lower::context::Context;
use crate::features::source::Direction;
use crate::features::spec::{BinderSpec, SourceSpec, VariableKind};

/// The variables of a block and the direction from the first to the second, as the perspective sees it.
#[derive(Copy, Clone)]
pub struct Neighbours {
    pub slots: [usize; 2],
    pub direction: Direction,
}

impl Neighbours {
    pub fn of(context: &Context<'_>) -> Option<Neighbours> {
        match context.spec.binders[..] {
            [
                BinderSpec { source: SourceSpec::Pieces, slot: first, .. },
                BinderSpec { source: SourceSpec::Next(of, direction), slot: second, .. },
            ] if of == first => Some(Neighbours { slots: [first, second], direction }),
            _ => None,
        }
    }

    /// The direction of the line on the board as it stands, and whether the second piece lies upwards.
    pub fn seen(self, turn: usize) -> (Direction, bool) {
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
pub enum Lines {
    Always(Direction),
    /// By the lowest bit of the orientation.
    ByHalf([Direction; 2]),
}

impl Lines {
    pub fn of(context: &Context<'_>, neighbours: Neighbours, pov: usize) -> Lines {
        let mut by_half = [neighbours.direction; 2];
        let turns = context.turns(pov, VariableKind::Piece);
        for half in 0..2 {
            let turn = turns.iter().find(|turn| **turn & 1 == half).unwrap_or(&turns[0]);
            by_half[half] = neighbours.seen(*turn).0;
        }
        if by_half[0] == by_half[1] { Lines::Always(by_half[0]) } else { Lines::ByHalf(by_half) }
    }

    pub fn directions(self) -> Vec<Direction> {
        match self {
            Lines::Always(direction) => vec![direction],
            Lines::ByHalf(directions) => directions.to_vec(),
        }
    }
}

/// The squares of a line through a square that lie above it.
pub fn above(direction: Direction, square: usize) -> u64 {
    ray(square as u32, direction)
}

/// Those below it.
pub fn below(direction: Direction, square: usize) -> u64 {
    (0..64).filter(|other| above(direction, *other) >> square & 1 != 0).fold(0, |squares, other| squares | 1 << other)
}

/// The line.
pub fn line(direction: Direction, square: usize) -> u64 {
    above(direction, square) | below(direction, square) | 1 << square
}

/// Both neighbours, and the second of them on the line.
#[derive(Copy, Clone)]
pub struct Pair {
    pub time: BoardTime,
    pub occupied: Register,
    pub line: Register,
    pub lower: Register,
    pub upper: Register,
    pub upper_square: Register,
}

/// Bitboards by square: its line, and the parts of it below and above.
pub struct LineGeometry {
    /// The position of the half's first bitboard.
    pub first: Option<Register>,
    pub below: Memory,
    pub above: Memory,
    pub line: Memory,
}

impl LineGeometry {
    /// `turn`: where the lines depend on the half, the orientation, whose lowest bit says which.
    pub fn of(builder: &mut Builder, lines: Lines, turn: Option<Register>) -> LineGeometry {
        let table = |builder: &mut Builder, of: &dyn Fn(Direction, usize) -> u64| {
            let mut masks = Vec::new();
            for direction in lines.directions() {
                masks.extend((0..64).map(|square| of(direction, square)));
            }
            builder.bitboards(masks)
        };
        let first = turn.map(|turn| {
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

    pub fn index(&self, builder: &mut Builder, square: Register) -> Register {
        match self.first {
            None => square,
            Some(first) => builder.add(first, square),
        }
    }

    /// The pair of the piece on a square and the next one above, and whether there is a next one.
    pub fn pair(
        &self,
        builder: &mut Builder,
        time: BoardTime,
        occupied: Register,
        square: Register,
    ) -> (Pair, Register) {
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
