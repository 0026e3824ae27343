//! The squares that any piece of a code attacks, before and after a change.
//!
//! Those of bishops, rooks and queens are kept with the board: they change only where a changed square is among them or
//! among the pieces.

use crate::features::code::{Binary, BoardTime, Builder, Memory, Register, Slider};

use super::scene::{Scene, TIMES};

const FILE_A: u64 = 0x0101_0101_0101_0101;
const FILE_B: u64 = FILE_A << 1;
const FILE_G: u64 = FILE_A << 6;
const FILE_H: u64 = FILE_A << 7;

/// The unions of some codes on both boards.
pub struct Unions {
    /// By code: attacked squares before and after.
    attacks: [Option<[Register; 2]>; 16],
    scene: Scene,
}

/// Where the state of a program has the unions of sliders: as many elements as there are codes of sliders among these.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct UnionState {
    codes: u16,
    first: u32,
}

/// The roles of sliders.
const SLIDERS: [usize; 3] = [2, 3, 4];

impl UnionState {
    /// Room for the unions of these codes.
    pub fn new(builder: &mut Builder, codes: u16) -> UnionState {
        let codes = (0..16).filter(|code| codes >> code & 1 != 0 && SLIDERS.contains(&(code & 7)));
        let codes = codes.fold(0u16, |codes, code| codes | 1 << code);
        UnionState { codes, first: builder.state(codes.count_ones()) }
    }

    pub fn elements(self) -> u32 {
        self.codes.count_ones()
    }

    fn element(self, code: usize) -> u64 {
        u64::from(self.first + (self.codes & ((1 << code) - 1)).count_ones())
    }

    /// Computes the state of the board before.
    pub fn start(self, builder: &mut Builder) {
        let occupied = builder.occupied(BoardTime::Before);
        for code in (0..16).filter(|code| self.codes >> code & 1 != 0) {
            builder.scope(|builder| {
                let pieces = builder.by_code(BoardTime::Before, code as u64);
                let union = builder.constant(0);
                slide_all(builder, code, pieces, occupied, union);
                builder.store(Memory::StateAfter, self.element(code), union);
            });
        }
    }
}

impl Unions {
    pub fn new(builder: &mut Builder, scene: &Scene, codes: u16, state: UnionState) -> Unions {
        let mut attacks = [None; 16];
        for code in (0..16).filter(|code| codes >> code & 1 != 0 && code & 7 < 6) {
            attacks[code] = Some(if SLIDERS.contains(&(code & 7)) {
                slider_unions(builder, scene, code, state.element(code))
            } else {
                [0, 1].map(|time| {
                    let pieces = builder.by_code(TIMES[time], code as u64);
                    leaper_union(builder, code, pieces)
                })
            });
        }
        Unions { attacks, scene: *scene }
    }

    /// The unions of a board alone.
    pub fn of_board(builder: &mut Builder, scene: &Scene, codes: u16) -> Unions {
        let mut attacks = [None; 16];
        for code in (0..16).filter(|code| codes >> code & 1 != 0 && code & 7 < 6) {
            let pieces = builder.by_code(BoardTime::Before, code as u64);
            let union = if SLIDERS.contains(&(code & 7)) {
                let union = builder.constant(0);
                slide_all(builder, code, pieces, scene.occupied[0], union);
                union
            } else {
                leaper_union(builder, code, pieces)
            };
            attacks[code] = Some([union; 2]);
        }
        Unions { attacks, scene: *scene }
    }

    /// The squares that pieces of a code attack.
    pub fn attacks(&self, builder: &mut Builder, code: usize, time: usize) -> Register {
        match self.attacks[code] {
            Some(attacks) => attacks[time],
            None => builder.constant(0),
        }
    }

    /// The squares to which pieces of a code may move.
    pub fn moves(&self, builder: &mut Builder, code: usize, time: usize) -> Register {
        let moves = builder.register();
        builder.scope(|builder| {
            let attacked = self.attacks(builder, code, time);
            if code & 7 != 0 {
                let own = builder.by_color(TIMES[time], code as u64 >> 3);
                let free = builder.and_not(attacked, own);
                return builder.set(moves, free);
            }
            let enemy = builder.by_color(TIMES[time], 1 - (code as u64 >> 3));
            let captures = builder.and(attacked, enemy);
            let pawns = builder.by_code(TIMES[time], code as u64);
            let empty = builder.not(self.scene.occupied[time]);
            let (forward, third) =
                if code == 0 { (Binary::ShiftLeft, 0xff << 16) } else { (Binary::ShiftRight, 0xff << 40) };
            let once = builder.binary(forward, pawns, 8);
            let once = builder.and(once, empty);
            let twice = builder.and(once, third);
            let twice = builder.binary(forward, twice, 8);
            let twice = builder.and(twice, empty);
            let pushes = builder.or(once, twice);
            let all = builder.or(captures, pushes);
            builder.set(moves, all);
        });
        moves
    }
}

/// The unions before, from the state, and after, which becomes the state.
fn slider_unions(builder: &mut Builder, scene: &Scene, code: usize, element: u64) -> [Register; 2] {
    let old = builder.load(Memory::StateBefore, element);
    let new = builder.copy(old);
    builder.scope(|builder| {
        let before = builder.by_code(BoardTime::Before, code as u64);
        let after = builder.by_code(BoardTime::After, code as u64);
        let near = builder.or(before, old);
        let near = builder.or(near, after);
        let near = builder.and(near, scene.changed);
        builder.if_(near, |builder| {
            builder.set(new, 0);
            slide_all(builder, code, after, scene.occupied[1], new);
        });
        builder.store(Memory::StateAfter, element, new);
    });
    [old, new]
}

/// Adds the squares that sliders attack to a union.
fn slide_all(builder: &mut Builder, code: usize, pieces: Register, occupied: Register, union: Register) {
    builder.for_bits(pieces, |builder, square| {
        for (slider, role) in [(Slider::Bishop, 2), (Slider::Rook, 3)] {
            if [role, 4].contains(&(code & 7)) {
                let attacked = builder.slide(slider, square, occupied);
                builder.change(union, Binary::Or, attacked);
            }
        }
    });
}

/// The squares that pawns, knights or kings of a code attack.
fn leaper_union(builder: &mut Builder, code: usize, pieces: Register) -> Register {
    let union = builder.register();
    builder.scope(|builder| {
        let (left, right) = (Binary::ShiftLeft, Binary::ShiftRight);
        let shifted = |builder: &mut Builder, operator: Binary, by: u64, without: u64| {
            let moved = builder.binary(operator, pieces, by);
            builder.and(moved, !without)
        };
        let all = match code {
            0 => {
                let west = shifted(builder, left, 7, FILE_H);
                let east = shifted(builder, left, 9, FILE_A);
                builder.or(west, east)
            }
            8 => {
                let east = shifted(builder, right, 7, FILE_A);
                let west = shifted(builder, right, 9, FILE_H);
                builder.or(west, east)
            }
            _ if code & 7 == 1 => {
                let near = [shifted(builder, right, 1, FILE_H), shifted(builder, left, 1, FILE_A)];
                let far = [shifted(builder, right, 2, FILE_G | FILE_H), shifted(builder, left, 2, FILE_A | FILE_B)];
                let near = builder.or(near[0], near[1]);
                let far = builder.or(far[0], far[1]);
                let up = builder.shift_left(near, 16);
                let down = builder.shift_right(near, 16);
                let near = builder.or(up, down);
                let up = builder.shift_left(far, 8);
                let down = builder.shift_right(far, 8);
                let far = builder.or(up, down);
                builder.or(near, far)
            }
            _ => {
                let west = shifted(builder, right, 1, FILE_H);
                let east = shifted(builder, left, 1, FILE_A);
                let beside = builder.or(west, east);
                let row = builder.or(beside, pieces);
                let up = builder.shift_left(row, 8);
                let down = builder.shift_right(row, 8);
                let rows = builder.or(up, down);
                builder.or(rows, beside)
            }
        };
        builder.set(union, all);
    });
    union
}
