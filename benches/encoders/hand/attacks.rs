//! Attacks and moves on a board of codes.

use fsbench::chess::{Bitboard, Color, PieceBoard, Square};
use shakmaty::attacks;

use super::{BISHOP, FILE_A, KING, KNIGHT, PAWN, QUEEN, RANK_1, ROOK, Squares};

pub(super) const FILE_H: u64 = FILE_A << 7;

#[inline(always)]
fn square_of(square: usize) -> Square {
    Square::new(square as u32 & 63)
}

#[inline(always)]
pub(super) fn rook(square: usize, occupied: u64) -> u64 {
    attacks::rook_attacks(square_of(square), Bitboard(occupied)).0
}

#[inline(always)]
pub(super) fn bishop(square: usize, occupied: u64) -> u64 {
    attacks::bishop_attacks(square_of(square), Bitboard(occupied)).0
}

#[inline(always)]
pub(super) fn knight(square: usize) -> u64 {
    attacks::knight_attacks(square_of(square)).0
}

#[inline(always)]
pub(super) fn king(square: usize) -> u64 {
    attacks::king_attacks(square_of(square)).0
}

/// The squares that a pawn of a colour attacks.
#[inline(always)]
pub(super) fn pawn(color: usize, square: usize) -> u64 {
    attacks::pawn_attacks(Color::from_black(color == 1), square_of(square)).0
}

/// The squares that all pawns of a colour attack.
#[inline(always)]
pub(super) fn pawns(color: usize, pawns: u64) -> u64 {
    let [west, east] = pawn_sides(color, pawns);
    west | east
}

/// The squares that all pawns of a colour attack, towards the files a and h.
#[inline(always)]
pub(super) fn pawn_sides(color: usize, pawns: u64) -> [u64; 2] {
    let [not_a, not_h] = [pawns & !FILE_A, pawns & !FILE_H];
    if color == 0 { [not_a << 7, not_h << 9] } else { [not_a >> 9, not_h >> 7] }
}

/// The empty squares that all pawns of a colour can be pushed to, by one step and by two.
#[inline(always)]
pub(super) fn pushes(color: usize, pawns: u64, occupied: u64) -> [u64; 2] {
    if color == 0 {
        let once = pawns << 8 & !occupied;
        [once, (once & RANK_1 << 16) << 8 & !occupied]
    } else {
        let once = pawns >> 8 & !occupied;
        [once, (once & RANK_1 << 40) >> 8 & !occupied]
    }
}

/// The squares that all of some knights attack.
#[inline(always)]
pub(super) fn knights(knights: u64) -> u64 {
    let not_h = (knights >> 1) & !FILE_H;
    let not_gh = (knights >> 2) & !(FILE_H | FILE_H >> 1);
    let not_a = (knights << 1) & !FILE_A;
    let not_ab = (knights << 2) & !(FILE_A | FILE_A << 1);
    let near = not_h | not_a;
    let far = not_gh | not_ab;
    near << 16 | near >> 16 | far << 8 | far >> 8
}

/// The squares that all sliders of a role attack.
#[inline(always)]
pub(super) fn sliders(role: usize, pieces: u64, occupied: u64) -> u64 {
    let mut reached = 0;
    for square in Squares(pieces) {
        if role != ROOK {
            reached |= bishop(square, occupied);
        }
        if role != BISHOP {
            reached |= rook(square, occupied);
        }
    }
    reached
}

/// The squares that a piece can move to on a board.
#[inline(always)]
pub(super) fn moves(board: &PieceBoard, code: usize, square: usize) -> u64 {
    let occupied = board.occupied();
    let color = code >> 3 & 1;
    let attacked = match code & 7 {
        PAWN => {
            let [once, twice] = pushes(color, 1 << square, occupied);
            return once | twice | pawn(color, square) & board.by_color()[1 - color];
        }
        KNIGHT => knight(square),
        BISHOP => bishop(square, occupied),
        ROOK => rook(square, occupied),
        QUEEN => bishop(square, occupied) | rook(square, occupied),
        KING => king(square),
        _ => 0,
    };
    attacked & !board.by_color()[color]
}
