//! Positions known to be legal, set up without validation.

use shakmaty::{Color, Rank, Square};

use super::{KING, PAWN, Position, ROOK, bit_of};
use crate::data::Record;
use crate::data::formats::binpack::bmi2::BitInstructions;
use crate::units::Ply;

impl Position {
    /// The position of a stem (`stem.rs`) known to be legal. An illegal one gives a useless position, but no panic.
    #[inline(always)]
    pub fn from_stem_nibbles(occupied: u64, mut nibbles: u128, rule50: u16, ply: Ply) -> Position {
        let mut position = Position::empty(ply);
        position.rule50 = u32::from(rule50);
        let mut pushed = None;
        let mut left = occupied;
        while left != 0 {
            let at = left.trailing_zeros();
            let code = match (nibbles & 15) as usize {
                12 => {
                    pushed = Some(at);
                    // White's on the fourth rank, Black's on the fifth.
                    PAWN | (at as usize & 32) >> 2
                }
                nibble @ (13 | 14) => {
                    let right = match at {
                        7 => 1,
                        0 => 2,
                        63 => 4,
                        _ => 8,
                    };
                    position.castling |= right;
                    ROOK | (nibble - 13) << 3
                }
                15 => {
                    position.turn = Color::Black;
                    KING | 8
                }
                nibble => nibble >> 1 | (nibble & 1) << 3,
            };
            position.put(at, code);
            left &= left - 1;
            nibbles >>= 4;
        }
        if let Some(at) = pushed {
            position.offer_en_passant(at ^ 8, at);
        }
        position
    }

    /// The position of a record known to be legal, with the same guarantee.
    #[inline(always)]
    pub fn from_record(record: &Record, bits: impl BitInstructions) -> Position {
        let board = record.board();
        let turn = record.turn();
        let ([low, middle, high, black], squares) = bits.planes(board);
        let occupied = board.occupancy();
        let roles = [
            occupied & !(low | middle | high),
            low & !(middle | high),
            middle & !(low | high),
            low & middle & !high,
            high & !(low | middle),
            high & low & !middle,
        ];
        Position {
            colors: [occupied & !black, black],
            roles: std::array::from_fn(|role| roles.get(role).copied().unwrap_or(0)),
            squares,
            turn,
            castling: record.castling(),
            chess960_rights: record.chess960_rights(),
            ep: record
                .ep_file()
                .map_or(0, |file| bit_of(Square::from_coords(file, turn.fold_wb(Rank::Sixth, Rank::Third)))),
            rule50: u32::from(record.rule50()),
            ply: record.ply().0,
        }
    }

    const fn empty(ply: Ply) -> Position {
        Position {
            colors: [0; 2],
            roles: [0; 8],
            squares: [0; 64],
            turn: Color::White,
            castling: 0,
            chess960_rights: 0,
            ep: 0,
            rule50: 0,
            ply: ply.0,
        }
    }

    #[inline(always)]
    fn put(&mut self, at: u32, code: usize) {
        let bit = 1u64 << (at & 63);
        self.colors[code >> 3 & 1] |= bit;
        self.roles[code & 7] |= bit;
        self.squares[at as usize & 63] = code as u8;
    }
}
