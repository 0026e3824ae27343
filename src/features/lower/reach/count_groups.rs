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
    /// The first element of the state: of sliders the union of what they attack, then each number.
    pub state: u32,
}

/// Numbers before and after.
pub type Numbers = [Register; 2];

impl CountGroup {
    fn is_slider(&self) -> bool {
        [2, 3, 4].contains(&(self.code & 7))
    }

    /// How many elements of the state it has.
    pub fn elements(&self) -> u32 {
        match self.code & 7 {
            1 => self.reached.len() as u32,
            2..=4 => 1 + self.reached.len() as u32,
            // The few pawns and kings are counted on both boards.
            _ => 0,
        }
    }

    fn element(&self, number: usize) -> u64 {
        u64::from(self.state) + u64::from(self.is_slider()) + number as u64
    }

    pub fn store(&self, builder: &mut Builder, numbers: &[Register], union: Register) {
        if self.is_slider() {
            builder.store(Memory::StateAfter, u64::from(self.state), union);
        }
        for (at, number) in numbers.iter().enumerate() {
            builder.store(Memory::StateAfter, self.element(at), *number);
        }
    }

    /// The numbers before and after.
    pub fn numbers(&self, builder: &mut Builder, scene: &Scene) -> Vec<Numbers> {
        let numbers: Vec<Numbers> = self.reached.iter().map(|_| [0; 2].map(|zero| builder.constant(zero))).collect();
        let of = |time: usize| numbers.iter().map(|numbers| numbers[time]).collect::<Vec<Register>>();
        builder.scope(|builder| {
            let union = builder.constant(0);
            if self.elements() == 0 {
                for time in 0..2 {
                    self.count(builder, time, scene.occupied[time], &of(time), union);
                }
                return;
            }
            for (at, number) in of(0).into_iter().enumerate() {
                let known = builder.load(Memory::StateBefore, self.element(at));
                builder.set(number, known);
            }
            if !self.is_slider() {
                self.count(builder, 1, scene.occupied[1], &of(1), union);
                return self.store(builder, &of(1), union);
            }
            let known = builder.load(Memory::StateBefore, u64::from(self.state));
            builder.set(union, known);
            for number in &numbers {
                builder.set(number[1], number[0]);
            }
            let near = pieces_on(builder, 0, self.code, self.squares);
            let after = pieces_on(builder, 1, self.code, self.squares);
            let near = builder.or(near, after);
            let near = builder.or(near, known);
            let near = builder.and(near, scene.changed);
            builder.if_(near, |builder| {
                builder.set(union, 0);
                for number in &numbers {
                    builder.set(number[1], 0);
                }
                self.count(builder, 1, scene.occupied[1], &of(1), union);
            });
            self.store(builder, &of(1), union);
        });
        numbers
    }

    /// Adds what is reached on a board to numbers that are zero, and what sliders attack to a union.
    pub fn count(&self, builder: &mut Builder, time: usize, occupied: Register, numbers: &[Register], union: Register) {
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
            if self.is_slider() {
                builder.change(union, Binary::Or, attacked);
            }
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
