//! A board in 24 bytes: an occupancy bitboard and one nibble per piece.

use bytemuck::{Pod, Zeroable};
use shakmaty::{Bitboard, Board, ByColor, ByRole, Color, Piece, Role, Square};
use thiserror::Error;

/// Colour and role in four bits: bit 3 the colour (1 = Black), bits 0–2 the role (pawn 0 … king 5).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PieceCode(u8);

impl PieceCode {
    #[must_use]
    pub const fn of(piece: Piece) -> PieceCode {
        PieceCode((piece.color.is_black() as u8) << 3 | (piece.role as u8 - 1))
    }

    /// The code in the lower four bits.
    #[must_use]
    pub const fn new(bits: u8) -> PieceCode {
        PieceCode(bits & 15)
    }

    /// 0–5 for White's pawn to king, 8–13 for Black's.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The piece; `None` for codes that stand for no piece.
    #[must_use]
    pub const fn piece(self) -> Option<Piece> {
        let role = match self.0 & 7 {
            0 => Role::Pawn,
            1 => Role::Knight,
            2 => Role::Bishop,
            3 => Role::Rook,
            4 => Role::Queen,
            5 => Role::King,
            _ => return None,
        };
        let color = Color::from_black(self.0 & 8 != 0);
        Some(Piece { color, role })
    }
}

/// Bytes 0–7: occupancy, little-endian, bit = square (a1 = 0 … h8 = 63). Bytes 8–23: a [`PieceCode`] for each occupied
/// square in square order, two per byte, the lower nibble first; unused nibbles are zero. At most 32 pieces.
///
/// ```
/// use fsbench::chess::{Board, PackedBoard};
///
/// let packed = PackedBoard::pack(&Board::default())?;
/// assert_eq!((packed.count(), packed.unpack()?), (32, Board::default()));
/// # Ok::<(), fsbench::chess::PackedBoardError>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct PackedBoard {
    occupancy: [u8; 8],
    codes: [u8; 16],
}

/// Why bytes are not a board, or a board does not fit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PackedBoardError {
    #[error("{0} pieces on the board; a packed board holds at most 32")]
    TooManyPieces(u32),
    #[error("piece code {code} on {square} stands for no piece")]
    NoSuchPiece { code: u8, square: Square },
}

impl PackedBoard {
    /// # Errors
    /// When more than 32 pieces stand on the board.
    pub fn pack(board: &Board) -> Result<PackedBoard, PackedBoardError> {
        PackedBoard::fits(board).map(|()| PackedBoard::of(board))
    }

    /// # Errors
    /// When more than 32 pieces stand on the board.
    pub fn fits(board: &Board) -> Result<(), PackedBoardError> {
        match board.occupied().count() as u32 {
            0..=32 => Ok(()),
            count => Err(PackedBoardError::TooManyPieces(count)),
        }
    }

    /// Packs a board that [`fits`](PackedBoard::fits); of other boards it drops the codes of some pieces.
    #[must_use]
    #[inline]
    pub fn of(board: &Board) -> PackedBoard {
        // The bits of the piece codes as bitboards, so that no square has to be looked up in each of them.
        let of = |role| board.by_role(role).0;
        let rooks = of(Role::Rook);
        let kings = of(Role::King);
        let black = board.by_color(Color::Black).0;
        let low = of(Role::Knight) | rooks | kings;
        let middle = of(Role::Bishop) | rooks;
        let high = of(Role::Queen) | kings;
        PackedBoard::of_planes(board.occupied().0, [low, middle, high, black])
    }

    /// [`PackedBoard::of`] from bitboards: the occupied squares, and for each bit of a piece code, lowest first, the
    /// squares whose code has it.
    #[must_use]
    #[inline]
    pub fn of_planes(occupied: u64, [low, middle, high, black]: [u64; 4]) -> PackedBoard {
        let rank = |rank: usize| {
            let byte = |bitboard: u64| bitboard.to_le_bytes()[rank];
            let spread = |plane: u64| SPREAD[usize::from(byte(plane))];
            let nibbles = spread(low) | spread(middle) << 1 | spread(high) << 2 | spread(black) << 3;
            (squeeze(nibbles, byte(occupied)), NIBBLE_BITS[usize::from(byte(occupied))])
        };
        // Two ranks fill at most 64 bits.
        let ranks = |lower: usize| {
            let (below, bits) = rank(lower);
            let (above, more) = rank(lower + 1);
            (u64::from(below) | u64::from(above) << bits, bits + more)
        };
        let mut codes = 0u128;
        let mut filled = 0;
        for lower in [0, 2, 4, 6] {
            let (nibbles, bits) = ranks(lower);
            // Once all 128 bits are filled, the remaining nibbles are zero.
            codes |= u128::from(nibbles).wrapping_shl(filled);
            filled += bits;
        }
        PackedBoard { occupancy: occupied.to_le_bytes(), codes: codes.to_le_bytes() }
    }

    /// # Errors
    /// When more than 32 squares are occupied or a nibble stands for no piece.
    pub fn unpack(&self) -> Result<Board, PackedBoardError> {
        if self.count() > 32 {
            return Err(PackedBoardError::TooManyPieces(self.count()));
        }
        let mut by_code = [Bitboard::EMPTY; 16];
        self.pieces().for_each(|(square, code)| by_code[code.index()].add(square));
        let role = |role: Role| {
            let code = PieceCode::of(Piece { color: Color::White, role }).index();
            by_code[code] | by_code[code + 8]
        };
        let all = |codes: &[Bitboard]| codes.iter().fold(Bitboard::EMPTY, |all, squares| all | *squares);
        let by_color = ByColor { white: all(&by_code[..6]), black: all(&by_code[8..14]) };
        match Board::try_from_bitboards(ByRole::new_with(role), by_color) {
            Ok(board) if board.occupied().count() == self.count() as usize => Ok(board),
            _ => self.unpack_by_square(),
        }
    }

    /// Checks that [`PackedBoard::unpack`] would succeed.
    ///
    /// # Errors
    /// As [`PackedBoard::unpack`].
    pub fn check(&self) -> Result<(), PackedBoardError> {
        if self.is_sound() { Ok(()) } else { self.unpack().map(|_| ()) }
    }

    /// [`PackedBoard::unpack`], square by square: it finds the first nibble that stands for no piece.
    fn unpack_by_square(&self) -> Result<Board, PackedBoardError> {
        let mut board = Board::empty();
        for (square, code) in self.pieces() {
            let piece = code.piece().ok_or(PackedBoardError::NoSuchPiece { code: code.0, square })?;
            board.set_piece_at(square, piece);
        }
        Ok(board)
    }

    /// Whether [`PackedBoard::unpack`] would succeed: at most 32 squares are occupied and all their nibbles stand for
    /// pieces.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        const ONES: u128 = u128::MAX / 15;
        let codes = self.codes();
        let used = match self.count() {
            count @ 0..=31 => (1u128 << (4 * count)) - 1,
            32 => u128::MAX,
            _ => return false,
        };
        // 6 and 7 are no roles.
        codes & codes << 1 & (ONES << 2) & used == 0
    }

    /// The board of an occupancy and the nibbles of its squares, the first square's lowest. Unchecked;
    /// [`PackedBoard::unpack`] checks.
    #[must_use]
    pub const fn from_bits(occupancy: u64, codes: u128) -> PackedBoard {
        PackedBoard { occupancy: occupancy.to_le_bytes(), codes: codes.to_le_bytes() }
    }

    /// The nibbles, the first square's lowest.
    #[must_use]
    pub const fn codes(&self) -> u128 {
        u128::from_le_bytes(self.codes)
    }

    #[must_use]
    pub const fn occupancy(&self) -> u64 {
        u64::from_le_bytes(self.occupancy)
    }

    /// Number of pieces.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.occupancy().count_ones()
    }

    /// The pieces in square order, at most 32.
    pub fn pieces(&self) -> impl Iterator<Item = (Square, PieceCode)> + '_ {
        let mut left = self.occupancy();
        let codes = u128::from_le_bytes(self.codes);
        let mut nibbles = codes as u64;
        let mut room = 32;
        std::iter::from_fn(move || {
            if left == 0 || room == 0 {
                return None;
            }
            let square = Square::new(left.trailing_zeros());
            left &= left - 1;
            let code = PieceCode((nibbles & 15) as u8);
            nibbles >>= 4;
            room -= 1;
            if room == 16 {
                nibbles = (codes >> 64) as u64;
            }
            Some((square, code))
        })
    }
}

/// The bits of every byte, each spread to the lowest bit of a nibble.
static SPREAD: [u32; 256] = {
    let mut spread = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            spread[byte] |= ((byte as u32) >> bit & 1) << (4 * bit);
            bit += 1;
        }
        byte += 1;
    }
    spread
};

/// For every byte, the number of bits in the nibbles of its set bits.
static NIBBLE_BITS: [u32; 256] = {
    let mut bits = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        bits[byte] = 4 * (byte as u32).count_ones();
        byte += 1;
    }
    bits
};

/// For every byte, the nibbles that shift down by 1, 2 and 4 positions when the nibbles of its clear bits are squeezed
/// out.
static SHIFTS: [[u32; 3]; 256] = {
    let mut shifts = [[0; 3]; 256];
    let mut byte = 0usize;
    while byte < 256 {
        let mut bit = 0usize;
        let mut gap = 0usize;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                let mut step = 0;
                // The nibble's position before each step.
                let mut position = bit;
                while step < 3 {
                    if gap >> step & 1 == 1 {
                        shifts[byte][step] |= 15 << (4 * position);
                        position -= 1 << step;
                    }
                    step += 1;
                }
            } else {
                gap += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    shifts
};

/// Compresses the nibbles at the set bits of `kept` to the low end (Hacker's Delight, 7-4).
#[inline]
fn squeeze(nibbles: u32, kept: u8) -> u32 {
    let [by_one, by_two, by_four] = SHIFTS[usize::from(kept)];
    let step = |x: u32, moved: u32, positions: u32| (x & !moved) | (x & moved) >> (4 * positions);
    step(step(step(nibbles, by_one, 1), by_two, 2), by_four, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_sound_if_it_can_be_unpacked() {
        let check = |occupancy: u64, codes: u128| {
            let board = PackedBoard::from_bits(occupancy, codes);
            assert_eq!(board.is_sound(), board.unpack().is_ok(), "{occupancy:x} {codes:x}");
        };
        for code in 0..16 {
            for at in [0, 1, 15, 16, 31] {
                for pieces in [0, 1, 16, 17, 31, 32] {
                    let occupancy = if pieces == 0 { 0 } else { u64::MAX >> (64 - pieces) };
                    check(occupancy, code << (4 * at));
                }
            }
        }
        check(u64::MAX >> 31, 0);
    }

    #[test]
    fn round_trip_and_bad_codes() {
        let board = Board::new();
        let packed = PackedBoard::pack(&board).expect("32 pieces fit");
        assert_eq!(packed.unpack().as_ref(), Ok(&board));
        let mut bytes: [u8; 24] = bytemuck::cast(packed);
        bytes[8] = 0x3e;
        let broken: PackedBoard = bytemuck::cast(bytes);
        let error = PackedBoardError::NoSuchPiece { code: 14, square: Square::A1 };
        assert_eq!(broken.unpack(), Err(error));
        let full = PackedBoard { occupancy: [0xff; 8], codes: [0; 16] };
        assert_eq!(full.unpack(), Err(PackedBoardError::TooManyPieces(64)));
        assert_eq!(full.pieces().count(), 32);
    }
}
