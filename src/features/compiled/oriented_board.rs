//! Boards as bitboards by piece code, oriented for a perspective, and the squares that pieces reach on them.

use shakmaty::attacks;

use crate::chess::{Bitboard, Board, Color, PackedBoard, Perspective, Piece, PieceCode, Role, Square};
use crate::features::spec::{Entity, SourceSpec, VariableKind};
use crate::features::syntax::Direction;

use super::binding_plan::StateMasks;
use super::tables::Mask;

/// A board by [`PieceCode`] (White 0–5, Black 8–13), not oriented.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Code · 64 + square of each piece.
    pieces: [u16; 64],
    count: usize,
    /// Squares by colour.
    kings: [Option<u32>; 2],
    needs: PlacementNeeds,
    /// Code · 64 + square by square.
    state_at: [u16; 64],
    /// Bitboards by code.
    codes: [u64; 16],
    /// Attacked squares by the attacker's square, computed once for both perspectives.
    attacks: [u64; 64],
}

/// The parts of a placement that blocks need besides the list of pieces.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementNeeds {
    /// Needed by all blocks except blocks of one piece variable.
    pub bitboards: bool,
    pub attacks: bool,
}

impl PlacementNeeds {
    #[must_use]
    pub fn and(self, other: PlacementNeeds) -> PlacementNeeds {
        PlacementNeeds { bitboards: self.bitboards || other.bitboards, attacks: self.attacks || other.attacks }
    }
}

impl Placement {
    #[inline]
    pub fn of(board: &Board, needs: PlacementNeeds) -> Placement {
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
    pub fn packed(board: &PackedBoard, needs: PlacementNeeds) -> Placement {
        let mut placement = Placement::empty(needs);
        // The last square with a piece of each code.
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
    fn empty(needs: PlacementNeeds) -> Placement {
        let pieces = [0; 64];
        let state_at = [0; 64];
        let kings = [None; 2];
        Placement { pieces, count: 0, kings, needs, state_at, codes: [0; 16], attacks: [0; 64] }
    }

    #[inline]
    fn push(&mut self, code: PieceCode, square: Square) {
        let state = (code.index() << 6) as u16 | u16::from(square);
        self.pieces[self.count & 63] = state;
        self.state_at[usize::from(square)] = state;
        self.count += 1;
    }

    #[inline]
    fn prepare(&mut self) {
        if self.needs.bitboards {
            for state in &self.pieces[..self.count] {
                self.codes[usize::from(state >> 6 & 15)] |= 1 << (state & 63);
            }
        }
        if self.needs.attacks {
            let occupied = Bitboard(self.codes.iter().fold(0, |all, board| all | board));
            for (code, board) in self.codes.iter().enumerate() {
                fill_attacks(code, *board, occupied, &mut self.attacks);
            }
        }
    }

    /// Square of a perspective's own king, if the board has one.
    pub fn king(&self, pov: Perspective) -> Option<u32> {
        self.kings[pov.index()]
    }

    /// Code · 64 + square of each piece.
    pub fn pieces(&self) -> &[u16] {
        &self.pieces[..self.count]
    }

    /// Code · 64 + square of the piece on an occupied square.
    #[inline(always)]
    pub fn state_at(&self, square: u32) -> u32 {
        u32::from(self.state_at[square as usize & 63])
    }

    /// The squares of a code's pieces. Only where the needs say so.
    pub fn by_code(&self, code: usize) -> u64 {
        self.codes[code & 15]
    }

    /// The squares that the piece on a square attacks, on the board as it stands. Only where the needs say so.
    #[inline]
    pub fn attacks_from(&self, square: usize) -> u64 {
        self.attacks[square & 63]
    }

    /// The board as `pov` sees it; `mask` is the orientation's (0, 7, 56 or 63).
    pub fn oriented(&self, pov: Perspective, mask: u32) -> OrientedBoard<'_> {
        let attacks = self.needs.attacks.then_some(&self.attacks);
        OrientedBoard { attacks, ..OrientedBoard::new(|code| self.codes[code], pov, mask) }
    }
}

/// Fills in the attacks of all pieces of a code, so that the role is matched once.
fn fill_attacks(code: usize, pieces: u64, occupied: Bitboard, out: &mut [u64; 64]) {
    #[inline]
    fn fill(pieces: u64, out: &mut [u64; 64], attacks: impl Fn(Square) -> Bitboard) {
        for square in Bitboard(pieces) {
            out[usize::from(square)] = attacks(square).0;
        }
    }
    match code & 7 {
        0 => fill(pieces, out, |square| attacks::pawn_attacks(Color::from_white(code < 8), square)),
        1 => fill(pieces, out, attacks::knight_attacks),
        2 => fill(pieces, out, |square| attacks::bishop_attacks(square, occupied)),
        3 => fill(pieces, out, |square| attacks::rook_attacks(square, occupied)),
        4 => fill(pieces, out, |square| attacks::queen_attacks(square, occupied)),
        _ => fill(pieces, out, attacks::king_attacks),
    }
}

const KING: usize = 5;
const SECOND_RANK: u64 = 0xff << 8;
const SEVENTH_RANK: u64 = 0xff << 48;

/// Moves every bit from its square to `square ^ mask`.
pub fn orient(bitboard: u64, mask: u32) -> u64 {
    match mask {
        0 => bitboard,
        56 => bitboard.swap_bytes(),
        63 => bitboard.reverse_bits(),
        7 => bitboard.reverse_bits().swap_bytes(),
        _ => unreachable!("orientations have no other masks"),
    }
}

/// A board as one perspective sees it: own pieces have codes 0–5 and play upwards.
pub struct OrientedBoard<'a> {
    codes: [u64; 16],
    sides: [u64; 2],
    /// The mask that oriented the board.
    mask: u32,
    /// Attacks of the placement, by square and not oriented, where it has them.
    attacks: Option<&'a [u64; 64]>,
}

/// The value of a variable: relative code and oriented square. Bare squares have code 0.
#[derive(Copy, Clone, Debug, Default)]
pub struct Binding {
    pub code: usize,
    pub square: u32,
}

impl Binding {
    /// Its position in the tables of its kind.
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

impl OrientedBoard<'_> {
    /// From bitboards by code, not oriented.
    fn new<'a>(codes: impl Fn(usize) -> u64, pov: Perspective, mask: u32) -> OrientedBoard<'a> {
        let mut board = OrientedBoard { codes: [0; 16], sides: [0; 2], mask, attacks: None };
        for code in (0..16).filter(|code| code & 7 <= KING) {
            let oriented = orient(codes(code ^ (pov.index() << 3)), mask);
            board.codes[code] = oriented;
            board.sides[code >> 3] |= oriented;
        }
        board
    }

    pub fn of<'a>(board: &Board, pov: Perspective, mask: u32) -> OrientedBoard<'a> {
        let pieces = |code: usize| {
            let color = Color::from_white(code < 8);
            board.by_color(color).0 & board.by_role(Role::ALL[code & 7]).0
        };
        OrientedBoard::new(pieces, pov, mask)
    }

    pub fn occupied(&self) -> u64 {
        self.sides[0] | self.sides[1]
    }

    pub fn by_code(&self, code: usize) -> u64 {
        self.codes[code]
    }

    /// The code of the piece on an occupied square.
    pub fn code_at(&self, square: u32) -> usize {
        self.codes.iter().position(|board| board >> square & 1 != 0).unwrap_or(0)
    }

    /// Attacked squares, including squares of the piece's own side.
    #[inline]
    pub fn attacks(&self, piece: Binding) -> u64 {
        match self.attacks {
            Some(attacks) => orient(attacks[(piece.square ^ self.mask) as usize & 63], self.mask),
            None => self.compute_attacks(piece),
        }
    }

    fn compute_attacks(&self, piece: Binding) -> u64 {
        attacks_of(piece, self.occupied())
    }

    /// Squares that the piece could move to if it were its turn, ignoring checks and pins.
    #[inline]
    pub fn moves(&self, piece: Binding) -> u64 {
        let side = piece.code >> 3;
        if piece.code & 7 != 0 {
            return self.attacks(piece) & !self.sides[side];
        }
        let empty = !self.occupied();
        let start = 1u64 << piece.square;
        let (once, twice) = if side == 0 {
            let once = start << 8 & empty;
            (once, (once & 0x0000_0000_00ff_0000) << 8 & empty)
        } else {
            let once = start >> 8 & empty;
            (once, (once & 0x0000_ff00_0000_0000) >> 8 & empty)
        };
        // A single push ends on the third rank only from the start rank.
        self.attacks(piece) & self.sides[1 - side] | once | twice
    }

    /// Calls `visit` with code, square and reach of every piece that a mask allows.
    #[inline]
    pub fn each_reach(&self, source: SourceSpec, mask: &Mask, mut visit: impl FnMut(usize, u32, u64)) {
        for (code, allowed) in mask {
            for square in squares(self.codes[*code] & allowed) {
                visit(*code, square, self.reach(source, Binding { code: *code, square }));
            }
        }
    }

    /// The squares that a source reaches from a piece, occupied or not.
    #[inline]
    pub fn reach(&self, source: SourceSpec, piece: Binding) -> u64 {
        match source {
            SourceSpec::Pieces => !0,
            SourceSpec::Moves(_) => self.moves(piece),
            SourceSpec::Attacks(_) | SourceSpec::Targets(_) => self.attacks(piece),
            SourceSpec::Next(_, direction) => self.next(piece.square, direction),
        }
    }

    /// The pieces of a code whose reach contains `square`. For `next` and `targets` the square must be occupied.
    pub fn reaching(&self, source: SourceSpec, code: usize, square: u32) -> u64 {
        let to = Square::new(square);
        let bit = 1u64 << square;
        let own = code < 8;
        let pawn_captures = || attacks::pawn_attacks(Color::from_white(!own), to);
        let from = match (source, code & 7) {
            (SourceSpec::Pieces, _) => !0,
            (SourceSpec::Next(_, direction), _) => self.previous(square, direction),
            (SourceSpec::Moves(_), 0) if self.sides[1 - (code >> 3)] & bit != 0 => pawn_captures().0,
            (SourceSpec::Moves(_), 0) if self.occupied() & bit != 0 => 0,
            (SourceSpec::Moves(_), 0) => {
                let behind = if own { bit >> 8 } else { bit << 8 };
                let can_pass = behind & !self.occupied() != 0;
                behind | if can_pass { if own { bit >> 16 & SECOND_RANK } else { bit << 16 & SEVENTH_RANK } } else { 0 }
            }
            (SourceSpec::Moves(_), _) if self.sides[code >> 3] & bit != 0 => 0,
            (_, 0) => pawn_captures().0,
            // These attacks are symmetric.
            _ => self.compute_attacks(Binding { code, square }),
        };
        from & self.codes[code]
    }

    /// The number of pieces allowed by `mask` and `allowed` whose reach contains `square`; see
    /// [`OrientedBoard::reaching`].
    pub fn count_reaching(&self, source: SourceSpec, mask: &Mask, allowed: Option<&StateMasks>, square: u32) -> u32 {
        let allowed = |(code, in_mask): &(usize, u64)| in_mask & allowed.map_or(!0, |allowed| allowed[*code]);
        if !matches!(source, SourceSpec::Attacks(_) | SourceSpec::Targets(_)) {
            return mask.iter().map(|of| (self.reaching(source, of.0, square) & allowed(of)).count_ones()).sum();
        }
        let to = Square::new(square);
        let occupied = Bitboard(self.occupied());
        let rook = attacks::rook_attacks(to, occupied).0;
        let bishop = attacks::bishop_attacks(to, occupied).0;
        let from = |code: usize| match code & 7 {
            0 => attacks::pawn_attacks(Color::from_white(code > 7), to).0,
            1 => attacks::knight_attacks(to).0,
            2 => bishop,
            3 => rook,
            4 => rook | bishop,
            _ => attacks::king_attacks(to).0,
        };
        mask.iter().map(|of| (from(of.0) & self.codes[of.0] & allowed(of)).count_ones()).sum()
    }

    /// The first occupied square from a square in a direction; 0 when there is none.
    pub fn next(&self, from: u32, direction: Direction) -> u64 {
        let on_ray = self.occupied() & RAYS[direction as usize][from as usize];
        // All four directions run towards higher squares.
        on_ray & on_ray.wrapping_neg()
    }

    /// The piece whose [`OrientedBoard::next`] is `square`, or would be if that were occupied; 0 when there is none.
    pub fn previous(&self, square: u32, direction: Direction) -> u64 {
        let behind = self.occupied() & REVERSE_RAYS[direction as usize][square as usize];
        match behind {
            0 => 0,
            _ => 1 << (63 - behind.leading_zeros()),
        }
    }

    /// The pieces of both sides that attack `square`, whichever side holds it.
    pub fn attackers(&self, square: u32) -> u64 {
        let occupied = Bitboard(self.occupied());
        let both = |role: usize| self.codes[role] | self.codes[role | 8];
        let to = Square::new(square);
        let queens = both(4);
        (attacks::rook_attacks(to, occupied).0 & (both(3) | queens))
            | (attacks::bishop_attacks(to, occupied).0 & (both(2) | queens))
            | (attacks::knight_attacks(to).0 & both(1))
            | (attacks::king_attacks(to).0 & both(5))
            | (attacks::pawn_attacks(Color::Black, to).0 & self.codes[0])
            | (attacks::pawn_attacks(Color::White, to).0 & self.codes[8])
    }

    /// The pawns whose pushes end on `square` or pass it when it is empty.
    pub fn pushers(&self, square: u32) -> u64 {
        let bit = 1u64 << square;
        let own = bit >> 8 | (bit >> 16 & SECOND_RANK);
        let their = bit << 8 | (bit << 16 & SEVENTH_RANK);
        (own & self.codes[0]) | (their & self.codes[8])
    }
}

/// The squares that a piece attacks among these occupied squares, its own side's included.
#[inline]
pub fn attacks_of(piece: Binding, occupied: u64) -> u64 {
    let square = Square::new(piece.square);
    let occupied = Bitboard(occupied);
    let attacked = match piece.code & 7 {
        0 => attacks::pawn_attacks(Color::from_white(piece.code < 8), square),
        1 => attacks::knight_attacks(square),
        2 => attacks::bishop_attacks(square, occupied),
        3 => attacks::rook_attacks(square, occupied),
        4 => attacks::queen_attacks(square, occupied),
        _ => attacks::king_attacks(square),
    };
    attacked.0
}

/// The squares from a square to the edge, by direction.
static RAYS: [[u64; 64]; 4] = rays(1);
/// The same in the opposite directions.
static REVERSE_RAYS: [[u64; 64]; 4] = rays(-1);

const fn rays(sign: i32) -> [[u64; 64]; 4] {
    let directions = [Direction::East, Direction::North, Direction::Northeast, Direction::Northwest];
    let mut rays = [[0; 64]; 4];
    let mut direction = 0;
    while direction < 4 {
        let (files, ranks) = directions[direction].step();
        let mut from = 0;
        while from < 64 {
            let mut file = from % 8;
            let mut rank = from / 8;
            loop {
                file += sign * files;
                rank += sign * ranks;
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

/// The squares from a square to the edge of the board.
pub fn ray(from: u32, direction: Direction) -> u64 {
    RAYS[direction as usize][from as usize]
}

/// The squares of a bitboard, ascending.
#[inline]
pub fn squares(bitboard: u64) -> impl Iterator<Item = u32> {
    Bitboard(bitboard).into_iter().map(u32::from)
}
