//! Squares of mobility, counts of mobility, and the moves of every piece.

use fsbench::chess::PieceBoard;

use super::attacks::{bishop, king, knight, knights, moves, pawn_sides, pushes, rook, sliders};
use super::{
    BISHOP, ByState, CODES, Changes, HandEncoder, Joint, KING, KNIGHT, Lists, PAWN, Played, QUEEN, RANK_1, ROOK,
    Squares, by_state, is_piece, piece_rows, placed, plane,
};

/// Appends the rows of the set `piece` that a move changes.
#[inline(always)]
fn push_pieces(rows: &ByState, played: Played<'_>, lists: &mut [Joint<'_>; 2]) {
    for (list, [first, second]) in lists.iter_mut().zip(played.change.states()) {
        list.push(rows[usize::from(first) & 1023], true);
        list.push(rows[usize::from(second) & 1023], is_piece(second));
    }
}

/// The squares whose pieces a move changes.
#[inline(always)]
fn changed_squares(played: Played<'_>) -> u64 {
    let [[from, captured], [to, second]] = played.change.states();
    let bit = |state: u16| 1u64 << placed(state).1;
    let other = |state: u16| if is_piece(state) { bit(state) } else { 0 };
    bit(from) | bit(to) | other(captured) | other(second)
}

/// The set `all-mb`.
pub struct MobilitySquares {
    piece: ByState,
    moves: ByState,
}

/// By code: the squares that pieces of the code attack, those of their own side included; of pawns the squares that
/// they can move to.
#[derive(Copy, Clone, Default)]
pub struct Reached([u64; 16]);

impl MobilitySquares {
    pub fn new() -> MobilitySquares {
        MobilitySquares { piece: piece_rows(), moves: by_state(|code, square| 768 + square * 12 + plane(code)) }
    }

    /// The squares reached by the leapers of a colour.
    #[inline(always)]
    fn leapers(board: &PieceBoard, color: usize, reached: &mut [u64; 16]) {
        let codes = |role: usize| role + 8 * color;
        let [once, twice] = pushes(color, board.by_code()[codes(PAWN)], board.occupied());
        let [west, east] = pawn_sides(color, board.by_code()[codes(PAWN)]);
        reached[codes(PAWN)] = once | twice | (west | east) & board.by_color()[1 - color];
        reached[codes(KNIGHT)] = knights(board.by_code()[codes(KNIGHT)]);
        reached[codes(KING)] = king(board.by_code()[codes(KING)].trailing_zeros() as usize);
    }
}

impl HandEncoder for MobilitySquares {
    type State = Reached;

    #[inline(always)]
    fn state(&self, board: &PieceBoard) -> Reached {
        let mut reached = [0; 16];
        for color in 0..2 {
            Self::leapers(board, color, &mut reached);
            for role in [BISHOP, ROOK, QUEEN] {
                let code = role + 8 * color;
                reached[code] = sliders(role, board.by_code()[code], board.occupied());
            }
        }
        Reached(reached)
    }

    #[inline(always)]
    fn delta(&self, played: Played<'_>, old: &Reached, new: &mut Reached, changes: &mut Changes) {
        let mut lists = [Joint::of(&mut changes.removed), Joint::of(&mut changes.added)];
        push_pieces(&self.piece, played, &mut lists);
        let [mut removed, mut added] = lists;
        let changed = changed_squares(played);
        for color in 0..2 {
            Self::leapers(played.after, color, &mut new.0);
            for role in [BISHOP, ROOK, QUEEN] {
                let code = role + 8 * color;
                let pieces = [played.before, played.after].map(|board| board.by_code()[code]);
                // Attacks change when pieces of the code move or when one of their squares changes.
                new.0[code] = if (old.0[code] | pieces[0] | pieces[1]) & changed == 0 {
                    old.0[code]
                } else {
                    sliders(role, pieces[1], played.after.occupied())
                };
            }
            let free = [played.before, played.after].map(|board| !board.by_color()[color]);
            for role in [PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING] {
                let code = role + 8 * color;
                let moves = [old.0[code] & free[0], new.0[code] & free[1]];
                for square in Squares(moves[0] & !moves[1]) {
                    removed.push(self.moves[code << 6 | square], true);
                }
                for square in Squares(moves[1] & !moves[0]) {
                    added.push(self.moves[code << 6 | square], true);
                }
            }
        }
        removed.finish();
        added.finish();
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let reached = self.state(board).0;
        let mut list = Joint::of(active);
        for code in CODES {
            for square in Squares(board.by_code()[code]) {
                list.push(self.piece[code << 6 | square], true);
            }
            for square in Squares(reached[code] & !board.by_color()[code >> 3]) {
                list.push(self.moves[code << 6 | square], true);
            }
        }
        list.finish();
    }
}

/// The set `all-mc`.
pub struct MobilityCounts {
    piece: ByState,
    /// By code: the row of no move.
    first: [[u32; 2]; 16],
}

/// By code: the number of moves, at most the largest that is counted.
#[derive(Copy, Clone, Default)]
pub struct Counts([u8; 16]);

/// By role: the largest number that is counted.
const LARGEST: [u32; 6] = [8, 15, 16, 25, 25, 8];

impl MobilityCounts {
    pub fn new() -> MobilityCounts {
        let mut first = [[0; 2]; 16];
        let mut row = 768;
        for (role, largest) in LARGEST.into_iter().enumerate() {
            let rows = [row, row + largest + 1];
            first[role] = rows;
            first[role + 8] = [rows[1], rows[0]];
            row += 2 * (largest + 1);
        }
        MobilityCounts { piece: piece_rows(), first }
    }

    #[inline(always)]
    fn counts(board: &PieceBoard) -> Counts {
        let mut counts = [0; 16];
        let occupied = board.occupied();
        for color in 0..2 {
            let of = |role: usize| board.by_code()[role + 8 * color];
            let free = !board.by_color()[color];
            let [once, twice] = pushes(color, of(PAWN), occupied);
            let [west, east] = pawn_sides(color, of(PAWN)).map(|side| side & board.by_color()[1 - color]);
            let mut set = |role: usize, count: u32| counts[role + 8 * color] = count.min(LARGEST[role]) as u8;
            set(PAWN, (once | twice).count_ones() + west.count_ones() + east.count_ones());
            set(KNIGHT, Squares(of(KNIGHT)).map(|square| (knight(square) & free).count_ones()).sum());
            set(BISHOP, Squares(of(BISHOP)).map(|square| (bishop(square, occupied) & free).count_ones()).sum());
            set(ROOK, Squares(of(ROOK)).map(|square| (rook(square, occupied) & free).count_ones()).sum());
            let queen = |square| ((bishop(square, occupied) | rook(square, occupied)) & free).count_ones();
            set(QUEEN, Squares(of(QUEEN)).map(queen).sum());
            set(KING, (king(of(KING).trailing_zeros() as usize) & free).count_ones());
        }
        Counts(counts)
    }

    #[inline(always)]
    fn rows(&self, code: usize, count: u8) -> [u32; 2] {
        self.first[code].map(|row| row + u32::from(count))
    }
}

impl HandEncoder for MobilityCounts {
    type State = Counts;

    fn state(&self, board: &PieceBoard) -> Counts {
        Self::counts(board)
    }

    #[inline(always)]
    fn delta(&self, played: Played<'_>, old: &Counts, new: &mut Counts, changes: &mut Changes) {
        let mut lists = [Joint::of(&mut changes.removed), Joint::of(&mut changes.added)];
        push_pieces(&self.piece, played, &mut lists);
        *new = Self::counts(played.after);
        let [mut removed, mut added] = lists;
        for code in CODES {
            let counts = [old.0[code], new.0[code]];
            removed.push(self.rows(code, counts[0]), counts[0] != counts[1]);
            added.push(self.rows(code, counts[1]), counts[0] != counts[1]);
        }
        removed.finish();
        added.finish();
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let counts = Self::counts(board).0;
        let mut list = Joint::of(active);
        for square in Squares(board.occupied()) {
            list.push(self.piece[(usize::from(board.squares()[square]) << 6 | square) & 1023], true);
        }
        for code in CODES {
            list.push(self.rows(code, counts[code]), true);
        }
        list.finish();
    }
}

/// The set `piece-move`.
pub struct PieceMove {
    piece: ByState,
}

impl PieceMove {
    pub fn new() -> PieceMove {
        PieceMove { piece: piece_rows() }
    }

    /// From a square to others. Black sees both squares on the other rank.
    #[inline(always)]
    fn row(from: usize, to: usize) -> [u32; 2] {
        let row = (from << 6 | to) as u32;
        [768 + row, 768 + (row ^ (56 << 6 | 56))]
    }

    #[inline(always)]
    fn push(list: &mut Joint<'_>, from: usize, targets: u64) {
        for to in Squares(targets) {
            list.push(Self::row(from, to), true);
        }
    }

    /// Appends the moves of a piece that stays, where they differ.
    #[inline(always)]
    fn push_changed([removed, added]: [&mut Joint<'_>; 2], from: usize, [old, new]: [u64; 2]) {
        for to in Squares(old ^ new) {
            let row = Self::row(from, to);
            removed.push(row, old >> to & 1 == 1);
            added.push(row, new >> to & 1 == 1);
        }
    }

    /// The moves of a piece that comes or goes.
    #[inline(always)]
    fn moves_of(board: &PieceBoard, state: u16) -> u64 {
        let (code, square) = placed(state);
        if is_piece(state) { moves(board, code, square) } else { 0 }
    }
}

/// Pieces that stay and of which the moves may change: those that attack a changed square or could be pushed to one.
#[derive(Default)]
struct Affected {
    straight: u64,
    slanting: u64,
    knights: u64,
    kings: u64,
    pawns: u64,
}

impl Affected {
    /// A piece's first changed square in a direction is the same on both boards, so that the one before tells.
    #[inline(always)]
    fn by(changed: u64, board: &PieceBoard) -> Affected {
        let of = |role: usize| board.by_code()[role] | board.by_code()[role + 8];
        let occupied = board.occupied();
        let mut affected = Affected::default();
        for square in Squares(changed) {
            affected.straight |= rook(square, occupied);
            affected.slanting |= bishop(square, occupied);
            affected.kings |= king(square);
        }
        // Pawns of one colour stand where the other one's attack, and behind the square.
        for color in 0..2 {
            let [west, east] = pawn_sides(1 - color, changed);
            let [once, twice] = if color == 0 {
                [changed >> 8, changed >> 16 & RANK_1 << 8]
            } else {
                [changed << 8, changed << 16 & RANK_1 << 48]
            };
            affected.pawns |= (west | east | once | twice) & board.by_code()[PAWN + 8 * color];
        }
        affected.straight &= (of(ROOK) | of(QUEEN)) & !changed;
        affected.slanting &= (of(BISHOP) | of(QUEEN)) & !changed;
        affected.knights = knights(changed) & of(KNIGHT) & !changed;
        affected.kings &= of(KING) & !changed;
        affected.pawns &= !changed;
        affected
    }
}

impl HandEncoder for PieceMove {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        let mut lists = [Joint::of(&mut changes.removed), Joint::of(&mut changes.added)];
        push_pieces(&self.piece, played, &mut lists);
        let [mut removed, mut added] = lists;
        let Played { before, change, after } = played;
        let [[from, captured], [to, second]] = change.states();
        Self::push(&mut removed, placed(from).1, Self::moves_of(before, from));
        let [old, new] = [Self::moves_of(before, captured), Self::moves_of(after, to)];
        let stays = if placed(captured).1 == placed(to).1 { old & new } else { 0 };
        Self::push(&mut removed, placed(captured).1, old & !stays);
        Self::push(&mut added, placed(to).1, new & !stays);
        Self::push(&mut added, placed(second).1, Self::moves_of(after, second));
        let changed = changed_squares(played);
        let affected = Affected::by(changed, before);
        let boards = [before, after];
        let own = |board: &PieceBoard, square: usize| board.by_color()[usize::from(board.squares()[square] >> 3 & 1)];
        for square in Squares(affected.straight) {
            let moves = boards.map(|board| rook(square, board.occupied()) & !own(board, square));
            Self::push_changed([&mut removed, &mut added], square, moves);
        }
        for square in Squares(affected.slanting) {
            let moves = boards.map(|board| bishop(square, board.occupied()) & !own(board, square));
            Self::push_changed([&mut removed, &mut added], square, moves);
        }
        for square in Squares(affected.knights) {
            let moves = boards.map(|board| knight(square) & changed & !own(board, square));
            Self::push_changed([&mut removed, &mut added], square, moves);
        }
        for square in Squares(affected.kings) {
            let moves = boards.map(|board| king(square) & changed & !own(board, square));
            Self::push_changed([&mut removed, &mut added], square, moves);
        }
        for square in Squares(affected.pawns) {
            let code = usize::from(before.squares()[square]) & 8;
            let moves = boards.map(|board| moves(board, code, square));
            Self::push_changed([&mut removed, &mut added], square, moves);
        }
        removed.finish();
        added.finish();
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let mut list = Joint::of(active);
        for square in Squares(board.occupied()) {
            let code = usize::from(board.squares()[square]);
            list.push(self.piece[(code << 6 | square) & 1023], true);
            Self::push(&mut list, square, moves(board, code, square));
        }
        list.finish();
    }
}
