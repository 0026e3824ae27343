//! Boards as bitboards by piece code, turned for a perspective, and what moves on them.

use shakmaty::attacks;

use crate::chess::{Bitboard, Board, Color, PackedBoard, Perspective, Piece, PieceCode, Role, Square};
use crate::features::spec::{Entity, SourceSpec, VariableKind};
use crate::features::syntax::Direction;

use super::levels::Left;
use super::tables::Mask;

/// A board by [`PieceCode`] (White 0–5, Black 8–13), not turned: the pieces in a row and what blocks need besides.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Code · 64 + square of each piece.
    men: [u16; 64],
    count: usize,
    /// By colour.
    kings: [Option<u32>; 2],
    needs: Needs,
    codes: [u64; 16],
    /// By square: what the piece there attacks, worked out once for both perspectives.
    attacks: [u64; 64],
}

/// What blocks need of a placement besides the pieces in a row.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bitboards: all but blocks of one piece.
    pub views: bool,
    /// What pieces attack.
    pub attacks: bool,
}

impl Needs {
    #[must_use]
    pub fn and(self, other: Needs) -> Needs {
        Needs { views: self.views || other.views, attacks: self.attacks || other.attacks }
    }
}

impl Placement {
    #[inline]
    pub fn of(board: &Board, needs: Needs) -> Placement {
        let mut placement = Placement::empty(needs);
        for color in Color::ALL {
            for role in Role::ALL {
                let piece = Piece { color, role };
                for square in board.by_piece(piece) {
                    placement.push(PieceCode::of(piece), square);
                }
            }
        }
        placement.kings = Perspective::ALL.map(|pov| board.king_of(pov.own()).map(u32::from));
        placement.prepare();
        placement
    }

    #[inline]
    pub fn packed(board: &PackedBoard, needs: Needs) -> Placement {
        let mut placement = Placement::empty(needs);
        // Where a piece of each code was seen last.
        let mut last = [64u8; 16];
        for (square, code) in board.pieces() {
            placement.push(code, square);
            last[code.index() & 15] = u32::from(square) as u8;
        }
        let king = |code: usize| Some(u32::from(last[code])).filter(|square| *square < 64);
        placement.kings = [king(KING), king(KING | 8)];
        placement.prepare();
        placement
    }

    #[inline]
    fn empty(needs: Needs) -> Placement {
        Placement { men: [0; 64], count: 0, kings: [None; 2], needs, codes: [0; 16], attacks: [0; 64] }
    }

    #[inline]
    fn push(&mut self, code: PieceCode, square: Square) {
        self.men[self.count & 63] = (code.index() << 6) as u16 | u16::from(square);
        self.count += 1;
    }

    #[inline]
    fn prepare(&mut self) {
        if self.needs.views {
            for man in &self.men[..self.count] {
                self.codes[usize::from(man >> 6 & 15)] |= 1 << (man & 63);
            }
        }
        if self.needs.attacks {
            let occupied = Bitboard(self.codes.iter().fold(0, |all, board| all | board));
            for (code, board) in self.codes.iter().enumerate() {
                attacks_of(code, *board, occupied, &mut self.attacks);
            }
        }
    }

    /// Square of the king of a perspective; none when the board has none.
    pub fn king(&self, pov: Perspective) -> Option<u32> {
        self.kings[pov.index()]
    }

    /// Code · 64 + square of each piece.
    pub fn men(&self) -> &[u16] {
        &self.men[..self.count]
    }

    /// The board turned for `pov` by an orientation's mask (0, 7, 56 or 63).
    pub fn view(&self, pov: Perspective, mask: u32) -> View<'_> {
        View { known: self.needs.attacks.then_some(&self.attacks), ..View::new(|code| self.codes[code], pov, mask) }
    }
}

/// Fills in what the pieces of a code attack; the role is looked at once for all of them.
fn attacks_of(code: usize, board: u64, occupied: Bitboard, out: &mut [u64; 64]) {
    #[inline]
    fn each(board: u64, out: &mut [u64; 64], attacks: impl Fn(Square) -> Bitboard) {
        for square in Bitboard(board) {
            out[usize::from(square)] = attacks(square).0;
        }
    }
    match code & 7 {
        0 => each(board, out, |square| attacks::pawn_attacks(Color::from_white(code < 8), square)),
        1 => each(board, out, attacks::knight_attacks),
        2 => each(board, out, |square| attacks::bishop_attacks(square, occupied)),
        3 => each(board, out, |square| attacks::rook_attacks(square, occupied)),
        4 => each(board, out, |square| attacks::queen_attacks(square, occupied)),
        _ => each(board, out, attacks::king_attacks),
    }
}

const KING: usize = 5;
const SECOND_RANK: u64 = 0xff << 8;
const SEVENTH_RANK: u64 = 0xff << 48;

/// Every bit moved from its square to `square ^ mask`.
pub fn turn(board: u64, mask: u32) -> u64 {
    match mask {
        0 => board,
        56 => board.swap_bytes(),
        63 => board.reverse_bits(),
        7 => board.reverse_bits().swap_bytes(),
        _ => unreachable!("orientations have no other masks"),
    }
}

/// The oriented board: own pieces have codes 0–5 and play upwards.
pub struct View<'a> {
    codes: [u64; 16],
    sides: [u64; 2],
    /// The mask that turned it.
    mask: u32,
    /// Attacks by square, not turned, where they are known.
    known: Option<&'a [u64; 64]>,
}

/// What a variable is bound to: relative code and square on the oriented board. Bare squares have code 0.
#[derive(Copy, Clone, Debug, Default)]
pub struct Man {
    pub code: usize,
    pub square: u32,
}

impl Man {
    /// Its place in the tables of its kind.
    pub fn state(self, kind: VariableKind) -> usize {
        match kind {
            VariableKind::Piece => self.code << 6 | self.square as usize,
            VariableKind::Square => self.square as usize,
        }
    }

    pub fn entity(self) -> Entity {
        Entity { square: self.square, role: self.code as u32 & 7, color: self.code as u32 >> 3 }
    }
}

impl View<'_> {
    /// From bitboards by code, not turned.
    fn new<'a>(codes: impl Fn(usize) -> u64, pov: Perspective, mask: u32) -> View<'a> {
        let mut view = View { codes: [0; 16], sides: [0; 2], mask, known: None };
        for code in (0..16).filter(|code| code & 7 <= KING) {
            let turned = turn(codes(code ^ (pov.index() << 3)), mask);
            view.codes[code] = turned;
            view.sides[code >> 3] |= turned;
        }
        view
    }

    /// The turned view of a board.
    pub fn of<'a>(board: &Board, pov: Perspective, mask: u32) -> View<'a> {
        let piece = |code: usize| {
            let color = Color::from_white(code < 8);
            board.by_color(color).0 & board.by_role(Role::ALL[code & 7]).0
        };
        View::new(piece, pov, mask)
    }

    pub fn occupied(&self) -> u64 {
        self.sides[0] | self.sides[1]
    }

    pub fn by_code(&self, code: usize) -> u64 {
        self.codes[code]
    }

    /// The code of what stands on an occupied square.
    pub fn code_at(&self, square: u32) -> usize {
        self.codes.iter().position(|board| board >> square & 1 != 0).unwrap_or(0)
    }

    /// Attacked squares, own-held ones included.
    #[inline]
    pub fn attacks(&self, man: Man) -> u64 {
        match self.known {
            Some(attacks) => turn(attacks[(man.square ^ self.mask) as usize & 63], self.mask),
            None => self.attacks_anew(man),
        }
    }

    fn attacks_anew(&self, man: Man) -> u64 {
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
    #[inline]
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

    /// Calls `visit` with code, square and reach of every piece a mask allows.
    #[inline]
    pub fn each_reach(&self, source: SourceSpec, mask: &Mask, mut visit: impl FnMut(usize, u32, u64)) {
        for (code, allowed) in mask {
            for square in squares(self.codes[*code] & allowed) {
                visit(*code, square, self.reach(source, Man { code: *code, square }));
            }
        }
    }

    /// The squares a source reaches from a piece, whatever stands there.
    #[inline]
    pub fn reach(&self, source: SourceSpec, man: Man) -> u64 {
        match source {
            SourceSpec::Pieces => !0,
            SourceSpec::Moves(_) => self.moves(man),
            SourceSpec::Attacks(_) | SourceSpec::Targets(_) => self.attacks(man),
            SourceSpec::Next(_, direction) => self.first(man.square, direction),
        }
    }

    /// The pieces of a code whose reach holds `square`; for `next` and `targets` something stands there.
    pub fn reaching(&self, source: SourceSpec, code: usize, square: u32) -> u64 {
        let at = Square::new(square);
        let bit = 1u64 << square;
        let own = code < 8;
        let pawns = || attacks::pawn_attacks(Color::from_white(!own), at);
        let from = match (source, code & 7) {
            (SourceSpec::Pieces, _) => !0,
            (SourceSpec::Next(_, direction), _) => self.met_from(square, direction),
            (SourceSpec::Moves(_), 0) if self.sides[1 - (code >> 3)] & bit != 0 => pawns().0,
            (SourceSpec::Moves(_), 0) if self.occupied() & bit != 0 => 0,
            (SourceSpec::Moves(_), 0) => {
                let between = if own { bit >> 8 } else { bit << 8 };
                let passes = between & !self.occupied() != 0;
                between | if passes { if own { bit >> 16 & SECOND_RANK } else { bit << 16 & SEVENTH_RANK } } else { 0 }
            }
            (SourceSpec::Moves(_), _) if self.sides[code >> 3] & bit != 0 => 0,
            (_, 0) => pawns().0,
            // What a piece attacks from here attacks it from there.
            _ => self.attacks_anew(Man { code, square }),
        };
        from & self.codes[code]
    }

    /// How many of the pieces that a mask allows and conditions leave have `square` in their reach; see
    /// [`View::reaching`].
    pub fn count_reaching(&self, source: SourceSpec, mask: &Mask, left: Option<&Left>, square: u32) -> u32 {
        let allowed = |(code, allowed): &(usize, u64)| allowed & left.map_or(!0, |left| left[*code]);
        if !matches!(source, SourceSpec::Attacks(_) | SourceSpec::Targets(_)) {
            return mask.iter().map(|of| (self.reaching(source, of.0, square) & allowed(of)).count_ones()).sum();
        }
        let (at, occupied) = (Square::new(square), Bitboard(self.occupied()));
        let (rook, bishop) = (attacks::rook_attacks(at, occupied).0, attacks::bishop_attacks(at, occupied).0);
        let from = |code: usize| match code & 7 {
            0 => attacks::pawn_attacks(Color::from_white(code > 7), at).0,
            1 => attacks::knight_attacks(at).0,
            2 => bishop,
            3 => rook,
            4 => rook | bishop,
            _ => attacks::king_attacks(at).0,
        };
        mask.iter().map(|of| (from(of.0) & self.codes[of.0] & allowed(of)).count_ones()).sum()
    }

    /// The first square with a piece going in a direction; 0 when there is none.
    pub fn first(&self, from: u32, direction: Direction) -> u64 {
        let met = self.occupied() & RAYS[direction as usize][from as usize];
        // All four directions run towards higher squares.
        met & met.wrapping_neg()
    }

    /// The pieces whose [`View::first`] is `square`, or would be were there a piece.
    pub fn met_from(&self, square: u32, direction: Direction) -> u64 {
        let behind = self.occupied() & BACK[direction as usize][square as usize];
        match behind {
            0 => 0,
            _ => 1 << (63 - behind.leading_zeros()),
        }
    }

    /// The pieces that attack `square` (pawns: were it held by the other side), whoever holds it.
    pub fn attackers(&self, square: u32) -> u64 {
        let occupied = Bitboard(self.occupied());
        let both = |role: usize| self.codes[role] | self.codes[role | 8];
        let at = Square::new(square);
        let queens = both(4);
        (attacks::rook_attacks(at, occupied).0 & (both(3) | queens))
            | (attacks::bishop_attacks(at, occupied).0 & (both(2) | queens))
            | (attacks::knight_attacks(at).0 & both(1))
            | (attacks::king_attacks(at).0 & both(5))
            | (attacks::pawn_attacks(Color::Black, at).0 & self.codes[0])
            | (attacks::pawn_attacks(Color::White, at).0 & self.codes[8])
    }

    /// The pawns whose pushes `square` lets pass or blocks.
    pub fn pushers(&self, square: u32) -> u64 {
        let bit = 1u64 << square;
        let own = bit >> 8 | (bit >> 16 & SECOND_RANK);
        let their = bit << 8 | (bit << 16 & SEVENTH_RANK);
        (own & self.codes[0]) | (their & self.codes[8])
    }
}

/// Squares on the way from a square, by direction.
static RAYS: [[u64; 64]; 4] = rays(1);
/// The same the other way round.
static BACK: [[u64; 64]; 4] = rays(-1);

const fn rays(sign: i32) -> [[u64; 64]; 4] {
    let directions = [Direction::East, Direction::North, Direction::Northeast, Direction::Northwest];
    let mut rays = [[0; 64]; 4];
    let mut direction = 0;
    while direction < 4 {
        let (files, ranks) = directions[direction].step();
        let mut from = 0;
        while from < 64 {
            let (mut file, mut rank) = (from % 8, from / 8);
            loop {
                (file, rank) = (file + sign * files, rank + sign * ranks);
                if file < 0 || file > 7 || rank < 0 || rank > 7 {
                    break;
                }
                rays[direction][from as usize] |= 1 << (file + 8 * rank);
            }
            from += 1;
        }
        direction += 1;
    }
    rays
}

/// The squares on the way from a square on an empty board.
pub fn ray(from: u32, direction: Direction) -> u64 {
    RAYS[direction as usize][from as usize]
}

/// The squares of a bitboard, ascending.
#[inline]
pub fn squares(board: u64) -> impl Iterator<Item = u32> {
    Bitboard(board).into_iter().map(u32::from)
}
