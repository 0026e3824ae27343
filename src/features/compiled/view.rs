//! Boards as bitboards by piece code, and turning them for a perspective.

use shakmaty::attacks;

use crate::chess::{Bitboard, Board, Color, PackedBoard, Perspective, Piece, PieceCode, Role, Square};
use crate::features::syntax::Direction;

/// Sixteen bitboards by [`PieceCode`] (White 0–5, Black 8–13).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitboards {
    codes: [u64; 16],
}

impl From<&Board> for Bitboards {
    fn from(board: &Board) -> Bitboards {
        let mut boards = Bitboards::default();
        for color in Color::ALL {
            for role in Role::ALL {
                let piece = Piece { color, role };
                boards.codes[PieceCode::of(piece).index()] = board.by_piece(piece).0;
            }
        }
        boards
    }
}

impl From<&PackedBoard> for Bitboards {
    fn from(board: &PackedBoard) -> Bitboards {
        let mut boards = Bitboards::default();
        for (square, code) in board.pieces() {
            boards.codes[code.index()] |= 1 << u32::from(square);
        }
        boards
    }
}

impl Bitboards {
    /// Square of the king of a perspective; none when the board has none.
    pub fn king(&self, pov: Perspective) -> Option<Square> {
        Bitboard(self.codes[pov.index() << 3 | 5]).first()
    }

    /// Bitboards by code as `pov` sees them, not turned: own pieces first.
    pub fn relative(&self, pov: Perspective) -> impl Iterator<Item = (usize, u64)> + '_ {
        let flip = pov.index() << 3;
        (0..16).map(move |code| (code, self.codes[code ^ flip]))
    }

    /// The board turned for `pov` by an orientation's mask (0, 7, 56 or 63).
    pub fn view(&self, pov: Perspective, mask: u32) -> View {
        let mut view = View { codes: [0; 16], sides: [0; 2] };
        for (code, board) in self.relative(pov) {
            let turned = turn(board, mask);
            view.codes[code] = turned;
            view.sides[code >> 3] |= turned;
        }
        view
    }
}

/// Every bit moved from its square to `square ^ mask`.
fn turn(board: u64, mask: u32) -> u64 {
    match mask {
        0 => board,
        56 => board.swap_bytes(),
        63 => board.reverse_bits(),
        7 => board.reverse_bits().swap_bytes(),
        _ => unreachable!("orientations have no other masks"),
    }
}

/// The oriented board: own pieces have codes 0–5 and play upwards.
pub struct View {
    codes: [u64; 16],
    sides: [u64; 2],
}

/// A piece on the oriented board: relative code and square.
#[derive(Copy, Clone)]
pub struct Man {
    pub code: usize,
    pub square: u32,
}

impl View {
    pub fn occupied(&self) -> u64 {
        self.sides[0] | self.sides[1]
    }

    pub fn men(&self) -> impl Iterator<Item = Man> + '_ {
        self.codes.iter().enumerate().flat_map(|(code, board)| squares(*board).map(move |square| Man { code, square }))
    }

    pub fn man_at(&self, square: u32) -> Option<Man> {
        let code = self.codes.iter().position(|board| board >> square & 1 != 0)?;
        Some(Man { code, square })
    }

    /// Attacked squares, own-held ones included.
    pub fn attacks(&self, man: Man) -> u64 {
        let square = Square::new(man.square);
        let occupied = Bitboard(self.occupied());
        let attacked = match man.code & 7 {
            0 => attacks::pawn_attacks(Color::from_white(man.code < 8), square),
            1 => attacks::knight_attacks(square),
            2 => attacks::bishop_attacks(square, occupied),
            3 => attacks::rook_attacks(square, occupied),
            4 => attacks::queen_attacks(square, occupied),
            _ => attacks::king_attacks(square),
        };
        attacked.0
    }

    /// Squares it could move to were it its turn, ignoring checks and pins.
    pub fn moves(&self, man: Man) -> u64 {
        let side = man.code >> 3;
        if man.code & 7 != 0 {
            return self.attacks(man) & !self.sides[side];
        }
        let empty = !self.occupied();
        let start = 1u64 << man.square;
        let (once, twice) = if side == 0 {
            let once = start << 8 & empty;
            (once, (once & 0x0000_0000_00ff_0000) << 8 & empty)
        } else {
            let once = start >> 8 & empty;
            (once, (once & 0x0000_ff00_0000_0000) >> 8 & empty)
        };
        // A pawn that stands on its second rank came from nowhere else, so the third-rank test means "from its start".
        self.attacks(man) & self.sides[1 - side] | once | twice
    }

    /// The first piece met going in a direction.
    pub fn next(&self, from: u32, direction: Direction) -> Option<Man> {
        let ray = self.occupied() & ray(from, direction);
        // All four directions run towards higher squares.
        (ray != 0).then(|| self.man_at(ray.trailing_zeros())).flatten()
    }
}

fn ray(from: u32, direction: Direction) -> u64 {
    let (files, ranks) = direction.step();
    let (mut file, mut rank) = (from as i32 & 7, from as i32 >> 3);
    let mut squares = 0;
    loop {
        (file, rank) = (file + files, rank + ranks);
        if !(0..8).contains(&file) || !(0..8).contains(&rank) {
            return squares;
        }
        squares |= 1 << (file + 8 * rank);
    }
}

/// The squares of a bitboard, ascending.
pub fn squares(board: u64) -> impl Iterator<Item = u32> {
    Bitboard(board).into_iter().map(u32::from)
}
