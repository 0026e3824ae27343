//! Pairs of neighbours on ranks and files, and chosen pairs of pieces on squares.

use fsbench::chess::PieceBoard;

use super::{
    ByState, CODES, Changes, FILE_A, HandEncoder, Joint, Lists, Played, RANK_1, Squares, is_piece, piece_rows, placed,
    plane,
};

/// The code that stands for no piece.
const NONE: usize = PieceBoard::EMPTY_SQUARE as usize;

/// The set `piece` with pairs of neighbours on ranks (`pairs-h`) and on files (`pairs-v`).
pub struct AllPairs<const RANKS: bool, const FILES: bool> {
    piece: ByState,
    ranks: Neighbours<false>,
    files: Neighbours<true>,
}

/// Neighbours on ranks, or on files. A pair of a line is one row however often it occurs there.
struct Neighbours<const VERTICAL: bool> {
    /// By the first piece's code · 16 + the second one's; the first is the western or southern one.
    rows: Box<[[u32; 2]; 256]>,
}

impl<const VERTICAL: bool> Neighbours<VERTICAL> {
    const STEP: u32 = if VERTICAL { 8 } else { 1 };

    fn new(offset: u32) -> Self {
        let mut rows = Box::new([[0; 2]; 256]);
        for first in CODES {
            for second in CODES {
                let black = if VERTICAL { [second, first] } else { [first, second] };
                let row = |[x, y]: [u32; 2]| offset + 12 * x + y;
                rows[first << 4 | second] = [row([first, second].map(plane)), row(black.map(|code| plane(code) ^ 1))];
            }
        }
        Neighbours { rows }
    }

    /// The squares of a square's line.
    #[inline(always)]
    const fn line(square: usize) -> u64 {
        if VERTICAL { FILE_A << (square & 7) } else { RANK_1 << (square & 56) }
    }

    #[inline(always)]
    fn push(&self, list: &mut Joint<'_>, square: usize, first: usize, second: usize, condition: bool) {
        let [white, black] = self.rows[(first << 4 | second) & 255];
        let line = if VERTICAL { [square & 7; 2] } else { [square >> 3, 7 - (square >> 3)] };
        list.push([white + 144 * line[0] as u32, black + 144 * line[1] as u32], condition);
    }

    /// Whether a line has a piece of code `second` next to one of code `first`.
    #[inline(always)]
    fn occurs(board: &PieceBoard, line: u64, first: usize, second: usize) -> bool {
        Self::pairs(board, line, first, second) != 0
    }

    /// The second pieces of all pairs of two codes.
    #[inline(always)]
    fn pairs(board: &PieceBoard, line: u64, first: usize, second: usize) -> u64 {
        let occupied = board.occupied() & line;
        // The sum carries every first piece over empty squares to the next piece.
        let moved = (board.by_code()[first & 15] & line) << Self::STEP;
        moved.wrapping_add(!occupied) & occupied & board.by_code()[second & 15]
    }

    /// The codes of the nearest pieces below and above a square on its line.
    #[inline(always)]
    fn beside(board: &PieceBoard, square: usize) -> [usize; 2] {
        let occupied = board.occupied() & Self::line(square);
        let below = occupied & ((1 << square) - 1);
        let above = occupied & !1 << square;
        let west = usize::from(board.squares()[(63 - below.leading_zeros() as usize) & 63]);
        let east = usize::from(board.squares()[above.trailing_zeros() as usize & 63]);
        [if below == 0 { NONE } else { west }, if above == 0 { NONE } else { east }]
    }

    /// A piece leaves its line and nothing takes its place.
    #[inline(always)]
    fn leave(&self, played: Played<'_>, square: usize, code: usize, removed: &mut Joint<'_>, added: &mut Joint<'_>) {
        let line = Self::line(square);
        let [west, east] = Self::beside(played.before, square);
        self.push_both(removed, played.after, square, [west, code, east]);
        let joins = west != NONE && east != NONE && !Self::occurs(played.before, line, west, east);
        self.push(added, square, west, east, joins);
    }

    /// A piece comes where none was.
    #[inline(always)]
    fn come(&self, played: Played<'_>, square: usize, code: usize, removed: &mut Joint<'_>, added: &mut Joint<'_>) {
        let line = Self::line(square);
        let [west, east] = Self::beside(played.before, square);
        let parts = west != NONE && east != NONE && !Self::occurs(played.after, line, west, east);
        self.push(removed, square, west, east, parts);
        self.push_both(added, played.before, square, [west, code, east]);
    }

    /// A piece comes in another one's place.
    #[inline(always)]
    fn replace(
        &self,
        played: Played<'_>,
        square: usize,
        codes: [usize; 2],
        removed: &mut Joint<'_>,
        added: &mut Joint<'_>,
    ) {
        let [west, east] = Self::beside(played.before, square);
        self.push_both(removed, played.after, square, [west, codes[0], east]);
        self.push_both(added, played.before, square, [west, codes[1], east]);
    }

    /// Appends the two pairs that a piece makes with its neighbours where they do not occur on the other board.
    #[inline(always)]
    fn push_both(&self, list: &mut Joint<'_>, other: &PieceBoard, square: usize, [west, code, east]: [usize; 3]) {
        let line = Self::line(square);
        let is_first = west != NONE && !Self::occurs(other, line, west, code);
        self.push(list, square, west, code, is_first);
        let is_same = is_first && west == code && code == east;
        self.push(list, square, code, east, east != NONE && !is_same && !Self::occurs(other, line, code, east));
    }

    /// Follows a move.
    #[inline(always)]
    fn follow(&self, played: Played<'_>, removed: &mut Joint<'_>, added: &mut Joint<'_>) {
        let [[from, captured], [to, second]] = played.change.states();
        let (old, origin) = placed(from);
        let (new, target) = placed(to);
        let (victim, place) = placed(captured);
        let is_capture = is_piece(captured);
        let is_plain = !is_piece(second) && (!is_capture || place == target);
        if !is_plain || (VERTICAL && old != new && Self::line(origin) == Self::line(target)) {
            return self.follow_lines(played, removed, added);
        }
        if Self::line(origin) == Self::line(target) {
            // Nothing stands between: the line's pieces keep their order, less a captured one.
            if is_capture {
                self.leave(played, target, victim, removed, added);
            }
            return;
        }
        self.leave(played, origin, old, removed, added);
        if is_capture {
            self.replace(played, target, [victim, new], removed, added);
        } else {
            self.come(played, target, new, removed, added);
        }
    }

    /// Follows castling, captures en passant and promotions straight ahead: compares all pairs of the lines.
    #[inline(never)]
    fn follow_lines(&self, played: Played<'_>, removed: &mut Joint<'_>, added: &mut Joint<'_>) {
        let mut changed = 0;
        for state in played.change.states().concat() {
            if is_piece(state) {
                changed |= 1u64 << placed(state).1;
            }
        }
        while changed != 0 {
            let line = Self::line(changed.trailing_zeros() as usize);
            changed &= !line;
            self.push_line(removed, played.before, line, |first, second| {
                !Self::occurs(played.after, line, first, second)
            });
            self.push_line(added, played.after, line, |first, second| {
                !Self::occurs(played.before, line, first, second)
            });
        }
    }

    /// Appends the pairs of a line, each once, for which the condition holds.
    #[inline(always)]
    fn push_line(&self, list: &mut Joint<'_>, board: &PieceBoard, line: u64, condition: impl Fn(usize, usize) -> bool) {
        let mut occupied = Squares(board.occupied() & line);
        let Some(mut west) = occupied.next() else { return };
        for east in occupied {
            let [first, second] = [west, east].map(|square| usize::from(board.squares()[square]));
            let is_first = Self::pairs(board, line, first, second).trailing_zeros() as usize == east;
            self.push(list, west, first, second, is_first && condition(first, second));
            west = east;
        }
    }
}

impl<const RANKS: bool, const FILES: bool> AllPairs<RANKS, FILES> {
    pub fn new() -> Self {
        let after_ranks = if RANKS { 768 + 1152 } else { 768 };
        AllPairs { piece: piece_rows(), ranks: Neighbours::new(768), files: Neighbours::new(after_ranks) }
    }
}

impl<const RANKS: bool, const FILES: bool> HandEncoder for AllPairs<RANKS, FILES> {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        let mut lists = [Joint::of(&mut changes.removed), Joint::of(&mut changes.added)];
        for (list, [first, second]) in lists.iter_mut().zip(played.change.states()) {
            list.push(self.piece[usize::from(first) & 1023], true);
            list.push(self.piece[usize::from(second) & 1023], is_piece(second));
        }
        let [mut removed, mut added] = lists;
        if RANKS {
            self.ranks.follow(played, &mut removed, &mut added);
        }
        if FILES {
            self.files.follow(played, &mut removed, &mut added);
        }
        removed.finish();
        added.finish();
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let mut list = Joint::of(active);
        for square in Squares(board.occupied()) {
            list.push(self.piece[(usize::from(board.squares()[square]) << 6 | square) & 1023], true);
        }
        for number in 0..8 {
            if RANKS {
                self.ranks.push_line(&mut list, board, RANK_1 << (8 * number), |_, _| true);
            }
            if FILES {
                self.files.push_line(&mut list, board, FILE_A << number, |_, _| true);
            }
        }
        list.finish();
    }
}

/// The set `top-pp`.
pub struct TopPairs {
    /// By perspective and state: the pairs that the piece belongs to, as bits.
    of_state: Box<[[u64; 1024]; 2]>,
    /// By perspective and pair: both pieces' squares and codes.
    pieces: [[[(u8, u8); 2]; 64]; 2],
}

impl TopPairs {
    pub fn new() -> TopPairs {
        let mut pairs = TopPairs { of_state: Box::new([[0; 1024]; 2]), pieces: [[[(0, 0); 2]; 64]; 2] };
        let selected = include_str!("../../../feature_sets/top-pp.idx");
        for (number, line) in selected.lines().enumerate() {
            let index: u32 = line.parse().unwrap_or_else(|_| panic!("`{line}` is no index"));
            for (side, row) in [index / 768, index % 768].into_iter().enumerate() {
                let code = (row % 12 / 2 + 8 * (row % 2)) as usize;
                let square = (row / 12) as usize;
                for (pov, code, square) in [(0, code, square), (1, code ^ 8, square ^ 56)] {
                    pairs.of_state[pov][code << 6 | square] |= 1 << number;
                    pairs.pieces[pov][number][side] = (square as u8, code as u8);
                }
            }
        }
        pairs
    }

    /// Appends those pairs of which both pieces are on the board.
    #[inline(always)]
    fn push(&self, list: &mut Lists, board: &PieceBoard, pov: usize, pairs: u64) {
        for pair in Squares(pairs) {
            let is_there = |(square, code): (u8, u8)| board.squares()[usize::from(square) & 63] == code;
            let [first, second] = self.pieces[pov][pair];
            list.push(pov, pair as u32, is_there(first) & is_there(second));
        }
    }
}

impl HandEncoder for TopPairs {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        let [removed, added] = played.change.states();
        changes.removed.clear();
        changes.added.clear();
        for pov in 0..2 {
            let pairs = |[first, second]: [u16; 2]| {
                self.of_state[pov][usize::from(first) & 1023] | self.of_state[pov][usize::from(second) & 1023]
            };
            self.push(&mut changes.removed, played.before, pov, pairs(removed));
            self.push(&mut changes.added, played.after, pov, pairs(added));
        }
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        active.clear();
        for pov in 0..2 {
            self.push(active, board, pov, u64::MAX);
        }
    }
}
