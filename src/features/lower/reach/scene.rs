//! Both boards of a change in registers, and the squares that pieces reach on them.

use shakmaty::{Color, Square, attacks};

use crate::chess::BoardChange;
use crate::features::code::{Binary, BoardTime, Builder, Memory, Register, Slider};
use crate::features::lower::sources::Reachable;

/// The boards before and after.
pub const TIMES: [BoardTime; 2] = [BoardTime::Before, BoardTime::After];

/// The codes of pieces: White's from pawn to king, then Black's.
pub const CODES: [usize; 12] = [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13];

/// What all plans of a program read of the boards before and after.
#[derive(Copy, Clone)]
pub struct Scene {
    pub occupied: [Register; 2],
    /// Squares on which another piece stands before than after, or on one board none.
    pub changed: Register,
}

impl Scene {
    /// A board alone, as the board before and after of no change.
    pub fn of_board(builder: &mut Builder) -> Scene {
        let occupied = builder.occupied(BoardTime::Before);
        Scene { occupied: [occupied; 2], changed: builder.constant(0) }
    }

    pub fn new(builder: &mut Builder) -> Scene {
        let changed = builder.constant(0);
        builder.scope(|builder| {
            // A piece removed and added again on its square, as a king that stays when it castles, is no change.
            for number in 0..2u64 {
                let removed = builder.load(Memory::Change, number);
                let added = builder.load(Memory::Change, number + 2);
                let differ = builder.not_equal(removed, added);
                for state in [removed, added] {
                    let is_piece = builder.not_equal(state, u64::from(BoardChange::NO_PIECE));
                    let is_changed = builder.and(is_piece, differ);
                    // By the state modulo 64: its square.
                    let bit = builder.shift_left(is_changed, state);
                    builder.change(changed, Binary::Or, bit);
                }
            }
        });
        Scene { occupied: TIMES.map(|time| builder.occupied(time)), changed }
    }
}

/// Tables of the squares that pieces of some codes reach; nothing for other codes.
#[derive(Copy, Clone)]
pub struct ReachTables {
    /// By state: squares attacked by pawns, knights and kings.
    leaps: Memory,
    /// By code: all squares if it moves like a bishop, or like a rook.
    sliders: [Memory; 2],
    /// By state: the square before a pawn, and the one after it where it may go two.
    pushes: Option<[Memory; 2]>,
    /// By code: all squares if it is a pawn.
    is_pawn: Option<Memory>,
    reach: Reachable,
}

impl ReachTables {
    pub fn new(builder: &mut Builder, reach: Reachable, codes: u16) -> ReachTables {
        let by_code = |allowed: &dyn Fn(usize) -> bool| {
            let all = (0..16).map(|code| if codes >> code & 1 != 0 && allowed(code) { !0 } else { 0 });
            all.collect::<Vec<u64>>()
        };
        let by_state = |of: &dyn Fn(usize, u32) -> u64| {
            let all = (0..1024)
                .map(|state| if codes >> (state >> 6) & 1 != 0 { of(state >> 6, state as u32 & 63) } else { 0 });
            all.collect::<Vec<u64>>()
        };
        let leaps = builder.bitboards(by_state(&leaps));
        let bishops = builder.bitboards(by_code(&|code| [2, 4].contains(&(code & 7))));
        let rooks = builder.bitboards(by_code(&|code| [3, 4].contains(&(code & 7))));
        let has_pawns = reach == Reachable::Moves && codes & 0x101 != 0;
        let pushes = has_pawns.then(|| {
            let once = builder.bitboards(by_state(&|code, square| pushes(code, square)[0]));
            [once, builder.bitboards(by_state(&|code, square| pushes(code, square)[1]))]
        });
        let is_pawn = has_pawns.then(|| builder.bitboards(by_code(&|code| code & 7 == 0)));
        ReachTables { leaps, sliders: [bishops, rooks], pushes, is_pawn, reach }
    }

    pub fn leaps(&self, builder: &mut Builder, state: Register) -> Register {
        builder.load(self.leaps, state)
    }

    /// The squares that a piece attacks, given the lines of a bishop and of a rook on its square.
    pub fn attacks(
        &self,
        builder: &mut Builder,
        code: Register,
        state: Register,
        lines: [Option<Register>; 2],
    ) -> Register {
        let attacked = builder.load(self.leaps, state);
        for (line, kind) in lines.into_iter().zip(self.sliders) {
            if let Some(line) = line {
                builder.scope(|builder| {
                    let mask = builder.load(kind, code);
                    let line = builder.and(mask, line);
                    builder.change(attacked, Binary::Or, line);
                });
            }
        }
        attacked
    }

    /// The squares to which a piece moves, given those that it attacks; for attacks as reach these themselves.
    pub fn reached(
        &self,
        builder: &mut Builder,
        [code, state]: [Register; 2],
        attacked: Register,
        scene: &Scene,
        time: usize,
    ) -> Register {
        if self.reach == Reachable::Attacks {
            return attacked;
        }
        let reached = builder.register();
        builder.scope(|builder| {
            let color = builder.shift_right(code, 3);
            let own = builder.by_color(TIMES[time], color);
            let moves = builder.and_not(attacked, own);
            builder.set(reached, moves);
            if let (Some([once, twice]), Some(is_pawn)) = (self.pushes, self.is_pawn) {
                // A pawn attacks what it may take, and pushes.
                let empty = builder.not(scene.occupied[time]);
                let is_pawn = builder.load(is_pawn, code);
                let barred = builder.and(is_pawn, empty);
                builder.change(reached, Binary::AndNot, barred);
                let once = builder.load(once, state);
                let once = builder.and(once, empty);
                let twice = builder.load(twice, state);
                let twice = builder.and(twice, empty);
                let twice = builder.select(once, twice, 0);
                builder.change(reached, Binary::Or, once);
                builder.change(reached, Binary::Or, twice);
            }
        });
        reached
    }
}

/// The bitboard of the pieces of some codes.
pub fn pieces_of(builder: &mut Builder, time: usize, scene: &Scene, codes: u16) -> Register {
    const ALL: u16 = 0x3f3f;
    match codes & ALL {
        ALL => builder.copy(scene.occupied[time]),
        0x003f => builder.by_color(TIMES[time], 0),
        0x3f00 => builder.by_color(TIMES[time], 1),
        codes => {
            let all = builder.constant(0);
            for code in CODES {
                if codes >> code & 1 != 0 {
                    builder.scope(|builder| {
                        let of_code = builder.by_code(TIMES[time], code as u64);
                        builder.change(all, Binary::Or, of_code);
                    });
                }
            }
            all
        }
    }
}

/// The pieces of a code on some squares.
pub fn pieces_on(builder: &mut Builder, time: usize, code: usize, squares: u64) -> Register {
    let pieces = builder.by_code(TIMES[time], code as u64);
    if squares == !0 { pieces } else { builder.and(pieces, squares) }
}

/// The lines of a bishop and of a rook from a square, where they are needed.
pub fn lines(builder: &mut Builder, square: Register, occupied: Register, needed: [bool; 2]) -> [Option<Register>; 2] {
    let [bishop, rook] = needed;
    [
        bishop.then(|| builder.slide(Slider::Bishop, square, occupied)),
        rook.then(|| builder.slide(Slider::Rook, square, occupied)),
    ]
}

/// Code · 64 + square.
pub fn state(builder: &mut Builder, code: Register, square: Register) -> Register {
    let state = builder.shift_left(code, 6);
    builder.or(state, square)
}

/// The squares that a pawn, knight or king attacks; none for other codes.
pub fn leaps(code: usize, square: u32) -> u64 {
    let square = Square::new(square);
    match code & 7 {
        0 => attacks::pawn_attacks(Color::from_white(code < 8), square).0,
        1 => attacks::knight_attacks(square).0,
        5 => attacks::king_attacks(square).0,
        _ => 0,
    }
}

/// The square before a pawn, and the next one where the pawn stands on its start rank.
pub fn pushes(code: usize, square: u32) -> [u64; 2] {
    let bit = 1u64 << square;
    match code {
        0 => [bit << 8, if square >> 3 == 1 { bit << 16 } else { 0 }],
        8 => [bit >> 8, if square >> 3 == 6 { bit >> 16 } else { 0 }],
        _ => [0; 2],
    }
}

/// The squares from which a pawn's pushes end on a square or pass it.
pub fn pushers(code: usize, square: u32) -> u64 {
    (0..64)
        .filter(|from| pushes(code, *from).into_iter().any(|to| to >> square & 1 != 0))
        .fold(0, |all, from| all | 1 << from)
}
