//! The numbers of squares or pieces that the pieces of one code reach, before and after a change.

use crate::features::code::{Binary, Builder, Memory, Register, Slider};
use crate::features::lower::sources::Reachable;

use super::counted::CountedReach;
use super::scene::{Scene, TIMES, leaps, pieces_on};

/// Pieces of one code on some squares, and all that is counted of what they reach.
#[derive(Clone, Debug)]
pub struct CountGroup {
    pub code: usize,
    pub squares: u64,
    pub reached: Vec<CountedReach>,
    /// The element of the state that has the first number; the others follow.
    pub state: u32,
}

/// Numbers before and after.
pub type Numbers = [Register; 2];

impl CountGroup {
    /// How many elements of the state it has.
    pub fn elements(&self) -> u32 {
        self.reached.len() as u32
    }

    /// The numbers before, which the state of the board before has, and after.
    pub fn numbers(&self, builder: &mut Builder, scene: &Scene) -> Vec<Numbers> {
        let before = (0..self.elements()).map(|at| builder.load(Memory::StateBefore, u64::from(self.state + at)));
        let before: Vec<Register> = before.collect();
        let after = self.count(builder, 1, scene.occupied[1]);
        before.into_iter().zip(after).map(|(before, after)| [before, after]).collect()
    }

    /// Counts what is reached on a board, and writes the numbers into the state that is being made.
    pub fn count(&self, builder: &mut Builder, time: usize, occupied: Register) -> Vec<Register> {
        let numbers: Vec<Register> = self.reached.iter().map(|_| builder.constant(0)).collect();
        builder.scope(|builder| {
            self.add_reached(builder, time, occupied, &numbers);
            for (at, number) in (self.state..).zip(&numbers) {
                builder.store(Memory::StateAfter, u64::from(at), *number);
            }
        });
        numbers
    }

    fn add_reached(&self, builder: &mut Builder, time: usize, occupied: Register, numbers: &[Register]) {
        let pieces = pieces_on(builder, time, self.code, self.squares);
        if self.code & 7 == 0 {
            for (reached, number) in self.reached.iter().zip(numbers) {
                builder.scope(|builder| self.count_pawns(builder, time, [pieces, occupied], reached, *number));
            }
            return;
        }
        let ends: Vec<Option<Register>> =
            self.reached.iter().map(|reached| self.ends(builder, time, reached)).collect();
        let table = (0..64).map(|square| leaps(self.code, square)).collect();
        builder.for_bits(pieces, |builder, square| {
            let attacked = match self.code & 7 {
                2 => builder.slide(Slider::Bishop, square, occupied),
                3 => builder.slide(Slider::Rook, square, occupied),
                4 => {
                    let diagonal = builder.slide(Slider::Bishop, square, occupied);
                    let straight = builder.slide(Slider::Rook, square, occupied);
                    builder.or(diagonal, straight)
                }
                _ => {
                    let table = builder.bitboards(table);
                    builder.load(table, square)
                }
            };
            for (ends, number) in ends.iter().zip(numbers) {
                let counted = ends.map_or(attacked, |ends| builder.and(attacked, ends));
                let more = builder.count_ones(counted);
                builder.change(*number, Binary::Add, more);
            }
        });
    }

    /// Where attacked squares are counted; `None`: everywhere.
    fn ends(&self, builder: &mut Builder, time: usize, reached: &CountedReach) -> Option<Register> {
        let ends = reached.ends.squares(builder, time);
        if reached.reach == Reachable::Attacks {
            return ends;
        }
        let own = builder.by_color(TIMES[time], self.code as u64 >> 3);
        let free = builder.not(own);
        Some(ends.map_or(free, |ends| builder.and(ends, free)))
    }

    fn count_pawns(
        &self,
        builder: &mut Builder,
        time: usize,
        [pawns, occupied]: [Register; 2],
        reached: &CountedReach,
        number: Register,
    ) {
        const FILE_A: u64 = 0x0101_0101_0101_0101;
        const FILE_H: u64 = FILE_A << 7;
        let ends = reached.ends.squares(builder, time);
        let is_white = self.code == 0;
        let forward = if is_white { Binary::ShiftLeft } else { Binary::ShiftRight };
        let mut found = Vec::new();
        for (by, without) in [(7, if is_white { FILE_H } else { FILE_A }), (9, if is_white { FILE_A } else { FILE_H })]
        {
            let attacked = builder.binary(forward, pawns, by);
            let mut attacked = builder.and(attacked, !without);
            if reached.reach == Reachable::Moves {
                let enemy = builder.by_color(TIMES[time], u64::from(is_white));
                attacked = builder.and(attacked, enemy);
            }
            found.push(attacked);
        }
        if reached.reach == Reachable::Moves {
            let once = builder.binary(forward, pawns, 8);
            let once = builder.and_not(once, occupied);
            let third: u64 = if is_white { 0xff << 16 } else { 0xff << 40 };
            let twice = builder.and(once, third);
            let twice = builder.binary(forward, twice, 8);
            found.extend([once, builder.and_not(twice, occupied)]);
        }
        for squares in found {
            let counted = ends.map_or(squares, |ends| builder.and(squares, ends));
            let more = builder.count_ones(counted);
            builder.change(number, Binary::Add, more);
        }
    }
}
