//! The squares that a source reaches from a piece, as bitboards of the board as it stands.

use shakmaty::{Bitboard, Color, Square, attacks};

use crate::features::code::{Binary, BoardTime, Builder, Operand, Register, Slider, Unary};
use crate::features::compiled::ray;
use crate::features::source::Direction;
use crate::features::spec::SourceSpec;

/// A board that sources are evaluated on.
#[derive(Copy, Clone)]
pub struct BoardRegisters {
    pub time: BoardTime,
    pub occupied: Register,
}

impl BoardRegisters {
    pub fn of(builder: &mut Builder, time: BoardTime) -> BoardRegisters {
        BoardRegisters { time, occupied: builder.occupied(time) }
    }
}

/// The squares that pieces reach from a piece.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reachable {
    /// Attacked squares, also those that the piece's own side holds.
    Attacks,
    /// Squares to which the piece could move.
    Moves,
    /// All squares.
    Board,
}

impl Reachable {
    /// `None` for sources that are something else.
    pub fn of(source: SourceSpec) -> Option<Reachable> {
        match source {
            SourceSpec::Attacks(_) | SourceSpec::Targets(_) => Some(Reachable::Attacks),
            SourceSpec::Moves(_) => Some(Reachable::Moves),
            SourceSpec::Pieces => Some(Reachable::Board),
            SourceSpec::Next(..) => None,
        }
    }
}

/// Directions on the board as it stands, by the lowest bit of the orientation, and whether they lead to higher squares.
pub type SeenDirections = [(Direction, bool); 2];

const THIRD_RANK: u64 = 0xff << 16;
const SIXTH_RANK: u64 = 0xff << 40;

/// The squares that a source reaches from a piece; occupied ones for a source of pieces. `seen`: the source's direction.
pub fn reached(
    builder: &mut Builder,
    board: BoardRegisters,
    source: SourceSpec,
    (state, codes): (Register, u16),
    orientation: Operand,
    seen: Option<SeenDirections>,
) -> Register {
    match (source, seen) {
        (SourceSpec::Moves(_), _) => movable(builder, board, state, codes),
        (SourceSpec::Attacks(_), _) => attacked(builder, board, state, codes),
        (SourceSpec::Targets(_), _) => {
            let squares = attacked(builder, board, state, codes);
            builder.and(squares, board.occupied)
        }
        (SourceSpec::Next(..), Some(seen)) => {
            let square = builder.and(state, 63);
            next(builder, board, square, orientation, seen)
        }
        (SourceSpec::Pieces | SourceSpec::Next(..), _) => board.occupied,
    }
}

/// The squares that a piece attacks, including squares of its own side. `codes`: the codes that it may have, bit by
/// code.
fn attacked(builder: &mut Builder, board: BoardRegisters, state: Register, codes: u16) -> Register {
    let has = |roles: u16| (codes | codes >> 8) & roles != 0;
    let square = builder.and(state, 63);
    let mut all = None;
    let add = |builder: &mut Builder, all: &mut Option<Register>, squares: Register| {
        *all = Some(match *all {
            None => squares,
            Some(other) => builder.or(other, squares),
        });
    };
    if has(0b10_0011) {
        let memory = builder.bitboards(steps());
        let squares = builder.load(memory, state);
        add(builder, &mut all, squares);
    }
    for (slider, roles) in [(Slider::Bishop, 0b01_0100u16), (Slider::Rook, 0b01_1000)] {
        if !has(roles) {
            continue;
        }
        let mut squares = builder.slide(slider, square, board.occupied);
        if (codes | codes >> 8) & 0b11_1111 & !roles != 0 {
            // 1 for its pieces, 0 for others.
            let code = builder.shift_right(state, 6);
            let of_code =
                (0..16).map(|code| if code & 7 < 6 && roles >> (code & 7) & 1 != 0 { !0 } else { 0 }).collect();
            let memory = builder.bitboards(of_code);
            let mask = builder.load(memory, code);
            squares = builder.and(squares, mask);
        }
        add(builder, &mut all, squares);
    }
    all.unwrap_or_else(|| builder.constant(0))
}

/// The squares that a piece could move to if it were its turn, ignoring checks and pins.
fn movable(builder: &mut Builder, board: BoardRegisters, state: Register, codes: u16) -> Register {
    let attacked = attacked(builder, board, state, codes);
    let color = builder.shift_right(state, 9);
    let own = builder.by_color(board.time, color);
    let is_others = (codes | codes >> 8) & 0b11_1110 != 0;
    let others = builder.and_not(attacked, own);
    if (codes | codes >> 8) & 1 == 0 {
        return others;
    }
    let enemy = builder.xor(color, 1);
    let enemy = builder.by_color(board.time, enemy);
    let captures = builder.and(attacked, enemy);
    let square = builder.and(state, 63);
    let one = builder.constant(1);
    let start = builder.shift_left(one, square);
    let free = builder.not(board.occupied);
    let push = |builder: &mut Builder, operator: Binary, passed: u64| {
        let once = builder.binary(operator, start, 8);
        let once = builder.and(once, free);
        // Two steps from the start rank pass the third one.
        let passing = builder.and(once, passed);
        let twice = builder.binary(operator, passing, 8);
        let twice = builder.and(twice, free);
        builder.or(once, twice)
    };
    let up = push(builder, Binary::ShiftLeft, THIRD_RANK);
    let down = push(builder, Binary::ShiftRight, SIXTH_RANK);
    let pushes = builder.select(color, down, up);
    let of_pawn = builder.or(captures, pushes);
    if !is_others {
        return of_pawn;
    }
    let role = builder.shift_right(state, 6);
    let role = builder.and(role, 7);
    builder.select(role, others, of_pawn)
}

/// The first piece from a square in a direction, which may depend on the orientation's lowest bit.
fn next(
    builder: &mut Builder,
    board: BoardRegisters,
    square: Register,
    turn: Operand,
    directions: SeenDirections,
) -> Register {
    let rays = |(direction, upwards): (Direction, bool)| {
        (0..64u32).map(move |from| match upwards {
            true => ray(from, direction),
            false => (0..64).filter(|to| ray(*to, direction) >> from & 1 != 0).fold(0, |squares, to| squares | 1 << to),
        })
    };
    let half = match turn {
        Operand::Register(turn) if directions[0] != directions[1] => Some(builder.and(turn, 1)),
        _ => None,
    };
    let (table, index): (Vec<u64>, Register) = match half {
        None => (rays(directions[0]).collect(), square),
        Some(half) => {
            let first = builder.shift_left(half, 6);
            (directions.into_iter().flat_map(rays).collect(), builder.add(first, square))
        }
    };
    let memory = builder.bitboards(table);
    let ray = builder.load(memory, index);
    let pieces = builder.and(ray, board.occupied);
    let lowest = |builder: &mut Builder| {
        let below = builder.binary(Binary::Subtract, pieces, 1);
        builder.and_not(pieces, below)
    };
    let highest = |builder: &mut Builder| {
        let zeros = builder.unary(Unary::LeadingZeros, pieces);
        let top = builder.constant(1 << 63);
        let bit = builder.shift_right(top, zeros);
        builder.and(bit, pieces)
    };
    match (half, directions[0].1, directions[1].1) {
        (Some(half), false, true) => {
            let up = lowest(builder);
            let down = highest(builder);
            builder.select(half, up, down)
        }
        (Some(half), true, false) => {
            let up = lowest(builder);
            let down = highest(builder);
            builder.select(half, down, up)
        }
        (_, true, _) => lowest(builder),
        (_, false, _) => highest(builder),
    }
}

/// The squares that pawns, knights and kings attack, by state; nothing for other codes.
pub fn steps() -> Vec<u64> {
    let attacked = |state: u32| {
        let square = Square::new(state & 63);
        match state >> 6 & 7 {
            0 => attacks::pawn_attacks(Color::from_white(state < 512), square),
            1 => attacks::knight_attacks(square),
            5 => attacks::king_attacks(square),
            _ => Bitboard::EMPTY,
        }
    };
    (0..1024).map(|state| attacked(state).0).collect()
}
