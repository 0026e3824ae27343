//! A position that plays moves in a few nanoseconds: bitboards and piece codes per square, updated move by move. It
//! starts from a validated [`Chess`] and follows the same rules, which the tests compare.

use shakmaty::attacks::pawn_attacks;
use shakmaty::{CastlingSide, Chess, Color, EnPassantMode, Position as _, Role, Square};

use super::attacks::{STEPS, diagonal, straight};
use super::bmi2::BitInstructions;
use crate::chess::{PackedBoard, PackedBoardError, PackedMove};
use crate::data::record::{PositionFields, castling_rooks, chess960_rights};
use crate::units::Ply;

mod chess960;
mod unchecked;

/// Roles numbered as in packed boards: [`Role`] less one.
const PAWN: usize = 0;
const KNIGHT: usize = 1;
const BISHOP: usize = 2;
const ROOK: usize = 3;
const QUEEN: usize = 4;
const KING: usize = 5;

#[derive(Clone, Debug)]
pub struct Position {
    /// White's and Black's occupied squares.
    colors: [u64; 2],
    /// Occupied squares by role; the last two are empty.
    roles: [u64; 8],
    /// Piece code by square; of an empty square, any code.
    squares: [u8; 64],
    turn: Color,
    /// Bits 0–3: K, Q, k, q.
    castling: u8,
    /// Rights of Chess960, as in records; 0 if all rights are of standard chess.
    chess960_rights: u16,
    /// The bit of the square on which a pawn can legally be captured en passant; 0 for none.
    ep: u64,
    rule50: u32,
    ply: u16,
}

/// The pseudo-legal moves of a piece, which the format numbers; the king may be left in check.
#[derive(Copy, Clone, Debug)]
pub struct Moves {
    pub from: u32,
    /// Target squares, castling excluded.
    pub targets: u64,
    /// Whether each target stands for four moves, one per promotion.
    pub promotes: bool,
    /// Castling rights, queen side and king side, if the piece is a king.
    pub castles: [bool; 2],
}

/// A castling path of White; Black's is 56 squares higher.
struct CastlingPath {
    /// Squares between king and rook.
    empty: u64,
    /// Squares that the king leaves and crosses. Its target is checked after the move.
    safe: [u32; 2],
}

const PATHS: [CastlingPath; 2] =
    [CastlingPath { empty: 0x0e, safe: [4, 3] }, CastlingPath { empty: 0x60, safe: [4, 5] }];

impl Position {
    /// # Errors
    /// When more than 32 pieces stand on the board.
    pub fn new(position: &Chess, ply: Ply) -> Result<Position, PackedBoardError> {
        let board = position.board();
        PackedBoard::fits(board)?;
        let mut roles = [0; 8];
        let mut squares = [0; 64];
        for role in Role::ALL {
            roles[role as usize - 1] = board.by_role(role).0;
            for square in board.by_role(role) {
                squares[square as usize] = (role as u8 - 1) | u8::from(board.black().contains(square)) << 3;
            }
        }
        let right = |bit: u8, color, side| u8::from(position.castles().has(color, side)) << bit;
        Ok(Position {
            colors: [board.white().0, board.black().0],
            roles,
            squares,
            turn: position.turn(),
            castling: right(0, Color::White, CastlingSide::KingSide)
                | right(1, Color::White, CastlingSide::QueenSide)
                | right(2, Color::Black, CastlingSide::KingSide)
                | right(3, Color::Black, CastlingSide::QueenSide),
            chess960_rights: chess960_rights(position),
            ep: position.ep_square(EnPassantMode::Legal).map_or(0, bit_of),
            rule50: position.halfmoves(),
            ply: ply.0,
        })
    }

    /// The own pawns, and the other own pieces.
    #[inline(always)]
    pub const fn pawns_and_pieces(&self) -> [u64; 2] {
        let pawns = self.own() & self.roles[PAWN];
        [pawns, self.own() ^ pawns]
    }

    /// The moves of a piece of [`Position::pawns_and_pieces`].
    #[inline(always)]
    pub fn moves_from(&self, from: u32, pawn: bool) -> Moves {
        if pawn { self.pawn_moves(from) } else { self.piece_moves(from, self.code_at(from) & 7) }
    }

    #[inline(always)]
    pub(in crate::data) fn fields(&self, bits: impl BitInstructions) -> PositionFields {
        PositionFields {
            board: bits.board_of_codes(self.occupied(), &self.squares, || self.planes()),
            turn: self.turn,
            castling: self.castling,
            chess960_rights: self.chess960_rights,
            ep_file: (self.ep != 0).then(|| square(self.ep.trailing_zeros()).file()),
            rule50: self.rule50.min(255) as u8,
            ply: Ply(self.ply),
        }
    }

    /// The board without the other fields.
    #[inline(always)]
    pub fn board(&self, bits: impl BitInstructions) -> PackedBoard {
        bits.board(self.occupied(), self.planes())
    }

    /// The bits of the piece codes as bitboards.
    const fn planes(&self) -> [u64; 4] {
        let [_, knights, bishops, rooks, queens, kings, ..] = self.roles;
        [knights | rooks | kings, bishops | rooks, queens | kings, self.colors[1]]
    }

    const fn occupied(&self) -> u64 {
        self.colors[0] | self.colors[1]
    }

    /// Squares occupied by the side to move.
    pub const fn own(&self) -> u64 {
        self.colors[self.turn.is_black() as usize]
    }

    const fn their(&self) -> u64 {
        self.colors[self.turn.is_white() as usize]
    }

    /// The piece code on an occupied square.
    const fn code_at(&self, at: u32) -> usize {
        self.squares[at as usize & 63] as usize
    }

    /// The moves of the own piece on `from`.
    #[inline(always)]
    pub fn moves(&self, from: u32) -> Moves {
        let role = self.code_at(from) & 7;
        // Roles are hard to predict: computing the moves of both kinds costs less than a mispredicted branch.
        let pawn = self.pawn_moves(from);
        let piece = self.piece_moves(from, role);
        let targets = pawn.targets & share(role, 1 << PAWN) | piece.targets & share(role, !(1 << PAWN));
        Moves { from, targets, promotes: pawn.promotes & (role == PAWN), castles: piece.castles }
    }

    /// Whether a move is pseudo-legal, castling as king takes rook; the king may be left in check.
    #[inline(always)]
    pub fn allows(&self, mv: PackedMove) -> bool {
        let from = mv.from() as u32;
        let to = mv.to() as u32;
        let own = self.own();
        if own >> from & 1 == 0 {
            return false;
        }
        let moves = self.moves(from);
        if own >> to & 1 != 0 {
            let king_side = to > from;
            let castles = moves.castles[usize::from(king_side)] && mv.promotion().is_none();
            return castles && to == self.castling_rook(from, king_side);
        }
        moves.targets >> to & 1 != 0 && moves.promotes == mv.promotion().is_some()
    }

    /// The square of the rook with which a king on `from`, which has the right, castles.
    #[inline(always)]
    pub fn castling_rook(&self, from: u32, king_side: bool) -> u32 {
        if self.chess960_rights != 0 {
            return self.chess960_rook(from, king_side);
        }
        Position::corner(from, king_side)
    }

    /// The same in a position without rights of Chess960.
    #[inline(always)]
    pub const fn corner(from: u32, king_side: bool) -> u32 {
        if king_side { from | 7 } else { from & 56 }
    }

    /// Whether a pseudo-legal move castles.
    #[inline(always)]
    pub const fn is_castling(&self, mv: PackedMove) -> bool {
        self.own() >> mv.to() as u32 & 1 != 0
    }

    /// Whether a pseudo-legal move captures en passant.
    #[inline(always)]
    pub const fn is_en_passant(&self, mv: PackedMove) -> bool {
        self.ep >> mv.to() as u32 & 1 != 0 && self.code_at(mv.from() as u32) & 7 == PAWN
    }

    /// The moves of a piece other than a pawn.
    #[inline(always)]
    fn piece_moves(&self, from: u32, role: usize) -> Moves {
        let occupied = self.occupied();
        let lines = straight(from, occupied) & share(role, 1 << ROOK | 1 << QUEEN);
        let diagonals = diagonal(from, occupied) & share(role, 1 << BISHOP | 1 << QUEEN);
        let reached = STEPS[role][from as usize & 63] | lines | diagonals;
        let rights = self.castling >> (2 * u8::from(self.turn.is_black())) & share(role, 1 << KING) as u8;
        Moves { from, targets: reached & !self.own(), promotes: false, castles: [rights & 2 != 0, rights & 1 != 0] }
    }

    #[inline(always)]
    fn pawn_moves(&self, from: u32) -> Moves {
        let empty = !self.occupied();
        let bit = 1u64 << from;
        // Black's moves go down the board. Pawns stand on neither edge.
        let black = u64::from(self.turn.is_black());
        let forward = |bits: u64| bits << 8 >> (16 * black);
        let once = forward(bit) & empty;
        let twice = forward(once & 0xff_0000 << (24 * black)) & empty;
        let captures = pawn_attacks(self.turn, square(from)).0 & (self.their() | self.ep);
        let last = 0xff << 48 >> (40 * black);
        Moves { from, targets: captures | once | twice, promotes: bit & last != 0, castles: [false; 2] }
    }

    /// Plays a move of [`Position::moves`] (castling as king takes rook). Returns false if it is illegal, because the
    /// king would be in check or castling is not possible; the position is then useless.
    #[inline(always)]
    #[must_use]
    pub fn play(&mut self, mv: PackedMove) -> bool {
        self.make_move::<true, true>(mv)
    }

    /// As [`Position::play`], for a move known to be legal.
    #[inline(always)]
    pub fn play_unchecked(&mut self, mv: PackedMove) {
        self.make_move::<false, true>(mv);
    }

    /// As one of these, in a position without rights of Chess960, which chains of a binpack do not hold: looking for
    /// such rights takes a decoder some percent of its time.
    #[inline(always)]
    pub fn play_standard<const CHECKED: bool>(&mut self, mv: PackedMove) -> bool {
        self.make_move::<CHECKED, false>(mv)
    }

    #[inline(always)]
    fn make_move<const CHECKED: bool, const CHESS960: bool>(&mut self, mv: PackedMove) -> bool {
        let from = mv.from() as u32;
        let to = mv.to() as u32;
        let us = usize::from(self.turn.is_black());
        let them = usize::from(self.turn.is_white());
        let from_bit = 1u64 << from;
        let to_bit = 1u64 << to;
        if self.colors[us] & to_bit != 0 {
            if CHESS960 && self.chess960_rights != 0 {
                return self.castle_chess960(from, to);
            }
            return self.castle::<CHECKED>(to > from);
        }
        let code = self.code_at(from);
        let there = self.code_at(to);
        let placed = mv.promotion().map_or(code, |role| us << 3 | (role as usize - 1));
        let ep = std::mem::take(&mut self.ep);
        // No branch on captures, which are as hard to predict; without one `taken` is 0 and changes nothing.
        let taken = self.colors[them] & to_bit;
        self.roles[there & 7] ^= taken;
        self.colors[them] ^= taken;
        self.squares[to as usize & 63] = placed as u8;
        self.colors[us] ^= from_bit | to_bit;
        self.roles[code & 7] ^= from_bit;
        self.roles[placed & 7] ^= to_bit;
        if !CHESS960 || self.chess960_rights == 0 {
            self.castling &= KEPT_RIGHTS[from as usize & 63] & KEPT_RIGHTS[to as usize & 63];
        } else {
            self.lose_chess960_rights(from, to);
        }
        let pawn = code & 7 == PAWN;
        let reversible = u32::from(!(pawn | (taken != 0)));
        self.rule50 = self.rule50.saturating_add(1) & reversible.wrapping_neg();
        if ep & to_bit != 0 && pawn {
            let behind = 1 << (to ^ 8);
            self.colors[them] ^= behind;
            self.roles[PAWN] ^= behind;
        }
        self.end_turn();
        if CHECKED && self.in_check(us) {
            return false;
        }
        // Few double steps pass a pawn that may capture.
        let over = u32::midpoint(from, to);
        let capturers = pawn_attacks(self.turn.other(), square(over)).0 & self.roles[PAWN] & self.own();
        if capturers & u64::from(pawn & (from.abs_diff(to) == 16)).wrapping_neg() != 0 {
            self.offer_en_passant(over, to);
        }
        true
    }

    fn castle<const CHECKED: bool>(&mut self, king_side: bool) -> bool {
        let us = usize::from(self.turn.is_black());
        let home = 56 * us as u32;
        let path = &PATHS[usize::from(king_side)];
        let hindered = || {
            self.occupied() & path.empty << home != 0
                || path.safe.iter().any(|&at| self.attacked(at + home, us, self.occupied()))
        };
        if CHECKED && hindered() {
            return false;
        }
        let king = 4 + home;
        let rook = if king_side { 7 + home } else { home };
        let (king_to, rook_to) = if king_side { (6 + home, 5 + home) } else { (2 + home, 3 + home) };
        for (role, from, to) in [(KING, king, king_to), (ROOK, rook, rook_to)] {
            self.colors[us] ^= 1 << from | 1 << to;
            self.squares[to as usize & 63] = (us << 3 | role) as u8;
            self.roles[role] ^= 1 << from | 1 << to;
        }
        self.castling &= !(3 << (2 * us));
        self.ep = 0;
        self.rule50 = self.rule50.saturating_add(1);
        self.end_turn();
        !(CHECKED && self.in_check(us))
    }

    #[inline(always)]
    fn end_turn(&mut self) {
        self.turn = self.turn.other();
        self.ply = self.ply.saturating_add(1);
    }

    #[inline(always)]
    fn in_check(&self, color: usize) -> bool {
        let king = self.roles[KING] & self.colors[color];
        self.attacked(king.trailing_zeros() & 63, color, self.occupied())
    }

    /// Whether the opponent of `color` attacks a square given the `occupied` squares; pieces on other squares do not
    /// count.
    #[inline(always)]
    fn attacked(&self, at: u32, color: usize, occupied: u64) -> bool {
        let [pawns, knights, bishops, rooks, queens, kings, ..] = self.roles;
        let attackers = STEPS[KNIGHT][at as usize & 63] & knights
            | STEPS[KING][at as usize & 63] & kings
            | pawn_attacks(Color::from_black(color == 1), square(at)).0 & pawns
            | straight(at, occupied) & (rooks | queens)
            | diagonal(at, occupied) & (bishops | queens);
        attackers & self.colors[color ^ 1] & occupied != 0
    }

    /// After the pawn on `pushed` has advanced over `over`: allows en passant if some pawn may legally capture it.
    fn offer_en_passant(&mut self, over: u32, pushed: u32) {
        let us = usize::from(self.turn.is_black());
        let mut capturers = pawn_attacks(self.turn.other(), square(over)).0 & self.roles[PAWN] & self.colors[us];
        let king = (self.roles[KING] & self.colors[us]).trailing_zeros() & 63;
        while capturers != 0 {
            let capturer = capturers & capturers.wrapping_neg();
            capturers ^= capturer;
            let occupied = self.occupied() ^ capturer ^ 1 << pushed | 1 << over;
            if !self.attacked(king, us, occupied) {
                self.ep = 1 << over;
                return;
            }
        }
    }
}

/// All bits if `role` is one of `kinds`, else none.
#[inline(always)]
const fn share(role: usize, kinds: u32) -> u64 {
    ((kinds >> role & 1) as u64).wrapping_neg()
}

fn bit_of(square: Square) -> u64 {
    1 << square as u32
}

pub const fn square(index: u32) -> Square {
    Square::new(index & 63)
}

/// The number of members of `set` below `at`.
pub const fn below(set: u64, at: u32) -> u32 {
    (set & ((1 << at) - 1)).count_ones()
}

/// By square, the castling rights that remain when a piece leaves it or captures there.
static KEPT_RIGHTS: [u8; 64] = {
    let mut kept = [!0; 64];
    kept[0] = !2;
    kept[4] = !3;
    kept[7] = !1;
    kept[56] = !8;
    kept[60] = !12;
    kept[63] = !4;
    kept
};

#[cfg(test)]
mod tests;
