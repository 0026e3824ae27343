//! Sets whose rows depend on the own king's square.

use fsbench::chess::PieceBoard;

use super::{
    ByState, CODES, Changes, FILE_A, HandEncoder, Joint, KING, Lists, Played, Squares, by_state, is_piece, placed,
    plane, push_moved,
};

/// The set `relative-king-hv`.
pub struct RelativeKing {
    /// What a piece adds to a king's number.
    pieces: ByState,
    /// By square of the own king.
    kings: [[u32; 2]; 64],
}

impl RelativeKing {
    pub fn new() -> RelativeKing {
        let place = |square: u32| 150 * (square & 7) + 10 * (square >> 3);
        let mut kings = [[0; 2]; 64];
        for square in 0..64 {
            kings[square as usize] = [square, square ^ 56].map(|square| 7 * 160 + place(square));
        }
        RelativeKing { pieces: by_state(|code, square| plane(code).wrapping_sub(place(square))), kings }
    }

    /// What a perspective sees when its own king moves: rows that stay are those of pieces that move alike.
    #[inline(never)]
    fn follow_king(&self, played: Played<'_>, pov: usize, changes: &mut Changes) {
        let [old_king, new_king] = [played.before, played.after].map(|board| own_king(board, pov));
        let files = (new_king & 7) as i32 - (old_king & 7) as i32;
        let ranks = (new_king >> 3) as i32 - (old_king >> 3) as i32;
        for code in CODES {
            if code & 7 == KING {
                continue;
            }
            let [old, new] = [played.before, played.after].map(|board| board.by_code()[code]);
            for square in Squares(old & !shifted(new, -files, -ranks)) {
                changes.removed.push(pov, self.row(code << 6 | square, old_king, pov), true);
            }
            for square in Squares(new & !shifted(old, files, ranks)) {
                changes.added.push(pov, self.row(code << 6 | square, new_king, pov), true);
            }
        }
    }

    #[inline(always)]
    fn row(&self, state: usize, king: usize, pov: usize) -> u32 {
        self.kings[king & 63][pov].wrapping_add(self.pieces[state & 1023][pov])
    }

    #[inline(always)]
    fn rows(&self, state: u16, kings: [usize; 2]) -> [u32; 2] {
        [0, 1].map(|pov| self.row(usize::from(state), kings[pov], pov))
    }
}

impl HandEncoder for RelativeKing {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        let [removed, added] = played.change.states();
        let kings = [0, 1].map(|pov| own_king(played.before, pov));
        let (mover, _) = placed(removed[0]);
        if mover & 7 != KING {
            return push_moved(played.change, |state| self.rows(state, kings), changes);
        }
        changes.removed.clear();
        changes.added.clear();
        let own = mover >> 3;
        self.follow_king(played, own, changes);
        // The other one sees what the king captured, or the rook that castled.
        let row = |state: u16| self.rows(state, kings)[1 - own];
        changes.removed.push(1 - own, row(removed[1]), is_piece(removed[1]));
        changes.added.push(1 - own, row(added[1]), is_piece(added[1]));
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let kings = [0, 1].map(|pov| own_king(board, pov));
        let mut list = Joint::of(active);
        for square in Squares(board.occupied() & !(board.by_code()[KING] | board.by_code()[KING + 8])) {
            let state = u16::from(board.squares()[square]) << 6 | square as u16;
            list.push(self.rows(state, kings), true);
        }
        list.finish();
    }
}

/// The set `half-ka-v2-hm`.
pub struct HalfKa {
    /// By code, in both perspectives: 64 times the plane.
    planes: [[u32; 2]; 16],
    /// By square of the own king: the first row of its bucket, and the mask that orients squares.
    kings: [[(u32, u32); 2]; 64],
}

impl HalfKa {
    pub fn new() -> HalfKa {
        HalfKa::from_row(0)
    }

    /// The set behind other rows.
    pub fn from_row(first: u32) -> HalfKa {
        let mut planes = [[u32::MAX; 2]; 16];
        for code in CODES {
            planes[code] = [0, 1].map(|pov| if code & 7 == KING { 640 } else { 64 * (plane(code) ^ pov) });
        }
        let king = |square: u32, turned: u32| {
            let mask = if square & 7 < 4 { turned ^ 7 } else { turned };
            let oriented = square ^ mask;
            (first + 704 * ((7 - (oriented >> 3)) * 4 + 7 - (oriented & 7)), mask)
        };
        let kings = std::array::from_fn(|square| [king(square as u32, 0), king(square as u32, 56)]);
        HalfKa { planes, kings }
    }

    #[inline(always)]
    fn contexts(&self, board: &PieceBoard) -> [(u32, u32); 2] {
        [0, 1].map(|pov| self.kings[own_king(board, pov) & 63][pov])
    }

    #[inline(always)]
    fn row(&self, state: u16, (bucket, mask): (u32, u32), pov: usize) -> u32 {
        let (code, square) = placed(state);
        bucket + self.planes[code][pov] + (square as u32 ^ mask)
    }

    #[inline(always)]
    fn rows(&self, state: u16, contexts: [(u32, u32); 2]) -> [u32; 2] {
        [0, 1].map(|pov| self.row(state, contexts[pov], pov))
    }

    /// What a perspective sees when its own king moves: everything changes, but that rows of one bucket may be on both
    /// boards when the king crosses the middle.
    #[inline(always)]
    fn follow_king(&self, played: Played<'_>, pov: usize, changes: &mut Changes) {
        let boards = [played.before, played.after];
        let contexts = boards.map(|board| self.kings[own_king(board, pov) & 63][pov]);
        let is_other_bucket = contexts[0].0 != contexts[1].0;
        let turned = contexts[0].1 ^ contexts[1].1;
        for (time, list) in [&mut changes.removed, &mut changes.added].into_iter().enumerate() {
            let other = boards[1 - time];
            for square in Squares(boards[time].occupied()) {
                let code = boards[time].squares()[square];
                let there = other.squares()[(square ^ turned as usize) & 63];
                let plane = |code: u8| self.planes[usize::from(code) & 15][pov];
                let is_changed = is_other_bucket | (plane(code) != plane(there));
                list.push(pov, self.row(u16::from(code) << 6 | square as u16, contexts[time], pov), is_changed);
            }
        }
    }
}

impl HandEncoder for HalfKa {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        let [removed, added] = played.change.states();
        let contexts = self.contexts(played.before);
        let (mover, _) = placed(removed[0]);
        if mover & 7 != KING {
            return push_moved(played.change, |state| self.rows(state, contexts), changes);
        }
        changes.removed.clear();
        changes.added.clear();
        let own = mover >> 3;
        self.follow_king(played, own, changes);
        let other = 1 - own;
        for (list, [king, second]) in [(&mut changes.removed, removed), (&mut changes.added, added)] {
            list.push(other, self.row(king, contexts[other], other), true);
            list.push(other, self.row(second, contexts[other], other), is_piece(second));
        }
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let contexts = self.contexts(board);
        let mut list = Joint::of(active);
        for square in Squares(board.occupied()) {
            let state = u16::from(board.squares()[square]) << 6 | square as u16;
            list.push(self.rows(state, contexts), true);
        }
        list.finish();
    }
}

/// The square of a perspective's own king.
#[inline(always)]
pub(super) fn own_king(board: &PieceBoard, pov: usize) -> usize {
    board.by_code()[KING + 8 * pov].trailing_zeros() as usize
}

/// A bitboard moved by files and ranks.
#[inline(always)]
fn shifted(bits: u64, files: i32, ranks: i32) -> u64 {
    let bits = if files < 0 {
        (bits >> -files) & (FILE_A * (0xff >> -files))
    } else {
        (bits << files) & (FILE_A * (0xff << files & 0xff))
    };
    if ranks < 0 { bits >> (-8 * ranks) } else { bits << (8 * ranks) }
}
