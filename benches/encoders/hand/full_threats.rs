//! The inputs of Stockfish 19: threats, pairs of pawns and the king's pieces.

use fsbench::chess::PieceBoard;

use super::attacks::{bishop, knight, pawn, rook};
use super::kings::{HalfKa, own_king};
use super::{
    BISHOP, CODES, Changes, FILE_A, HandEncoder, KING, KNIGHT, Lists, PAWN, Played, QUEEN, ROOK, Squares, is_piece,
    placed, push_difference, slides,
};

/// Stands for a pair of codes without rows.
const NO_ROW: u32 = u32::MAX;

/// The set `threats-v16`.
pub struct FullThreats {
    /// By attacker's code · 16 + the attacked piece's, as White sees them: their first row, where the attacker's square
    /// is the higher one and where it is the lower one.
    bases: Box<[[u32; 2]; 256]>,
    /// By code and square: pairs of squares that precede the attacker's.
    before: Box<[u32; 1024]>,
    /// By code, square and square: attacked squares that precede.
    order: Box<[[u8; 64]; 1024]>,
    /// By state: the squares that a pawn or knight attacks.
    leaps: Box<[u64; 1024]>,
    /// By two squares: their common line, without both.
    lines: Box<[[u64; 64]; 64]>,
}

/// Attacks, each as attacker's code, square, attacked piece's code, square.
struct Attacks {
    length: usize,
    attacks: [[u8; 4]; 256],
}

impl Attacks {
    #[inline(always)]
    fn push(&mut self, board: &PieceBoard, from: usize, to: usize, condition: bool) {
        self.push_coded([board.squares()[from & 63], from as u8, board.squares()[to & 63], to as u8], condition);
    }

    #[inline(always)]
    fn push_coded(&mut self, attack: [u8; 4], condition: bool) {
        self.attacks[self.length % 256] = attack;
        self.length += usize::from(condition);
    }

    #[inline(always)]
    fn all(&self) -> &[[u8; 4]] {
        &self.attacks[..self.length % 256]
    }
}

/// The squares that a piece attacks on an empty board; none of kings, which have no rows, and of pawns on end ranks.
fn attacked_on_empty_board(code: usize, square: usize) -> u64 {
    match code & 7 {
        PAWN if (8..56).contains(&square) => pawn(code >> 3, square),
        KNIGHT => knight(square),
        BISHOP => bishop(square, 0),
        ROOK => rook(square, 0),
        QUEEN => bishop(square, 0) | rook(square, 0),
        _ => 0,
    }
}

impl FullThreats {
    pub fn new() -> FullThreats {
        let mut threats = FullThreats {
            bases: Box::new([[NO_ROW; 2]; 256]),
            before: Box::new([0; 1024]),
            order: vec![[0; 64]; 1024].try_into().unwrap_or_else(|_| panic!("1,024 states")),
            leaps: Box::new([0; 1024]),
            lines: super::threats::lines(),
        };
        let targets: [&[usize]; 5] = [
            &[KNIGHT, ROOK],
            &[PAWN, KNIGHT, BISHOP, ROOK, QUEEN],
            &[PAWN, KNIGHT, BISHOP, ROOK],
            &[PAWN, KNIGHT, BISHOP, ROOK],
            &[PAWN, KNIGHT, BISHOP, ROOK, QUEEN],
        ];
        let mut row = 0;
        for code in CODES.into_iter().filter(|code| code & 7 != KING) {
            let mut pairs = 0;
            for square in 0..64 {
                let attacked = attacked_on_empty_board(code, square);
                let state = code << 6 | square;
                threats.before[state] = pairs;
                for to in 0..64 {
                    threats.order[state][to] = (attacked & ((1 << to) - 1)).count_ones() as u8;
                }
                pairs += attacked.count_ones();
                threats.leaps[state] = if [PAWN, KNIGHT].contains(&(code & 7)) { attacked } else { 0 };
            }
            for color in [0, 8] {
                for role in targets[code & 7] {
                    // Of an attack that goes both ways, only the one downwards has a row.
                    let upwards = if *role == code & 7 { NO_ROW } else { row };
                    threats.bases[code << 4 | color | role] = [row, upwards];
                    row += pairs;
                }
            }
        }
        threats
    }

    /// The masks that orient squares.
    #[inline(always)]
    fn masks(board: &PieceBoard) -> [usize; 2] {
        let mirror = |pov: usize| if own_king(board, pov) & 4 != 0 { 7 } else { 0 };
        [mirror(0), 56 ^ mirror(1)]
    }

    #[inline(always)]
    fn push_row(&self, list: &mut Lists, pov: usize, mask: usize, [attacker, from, target, to]: [u8; 4]) {
        let [attacker, target] = [attacker, target].map(|code| usize::from(code & 15) ^ pov << 3);
        let [from, to] = [from, to].map(|square| (usize::from(square) ^ mask) & 63);
        let base = self.bases[attacker << 4 | target][usize::from(from < to)];
        let state = attacker << 6 | from;
        let row = base.wrapping_add(self.before[state] + u32::from(self.order[state][to]));
        list.push(pov, row, base != NO_ROW);
    }

    #[inline(always)]
    fn attacked(&self, code: usize, square: usize, rook: u64, bishop: u64) -> u64 {
        self.leaps[(code << 6 | square) & 1023] | slides(code, rook, bishop)
    }

    /// The pieces that attack a square: sliders, and pawns and knights.
    #[inline(always)]
    fn attackers(board: &PieceBoard, square: usize, rook: u64, bishop: u64) -> [u64; 2] {
        let by_code = board.by_code();
        let of = |role: usize| by_code[role] | by_code[role + 8];
        let sliders = rook & (of(ROOK) | of(QUEEN)) | bishop & (of(BISHOP) | of(QUEEN));
        let leapers =
            knight(square) & of(KNIGHT) | pawn(1, square) & by_code[PAWN] | pawn(0, square) & by_code[PAWN + 8];
        [sliders, leapers]
    }

    /// A piece comes or goes where nothing else stands. `own` gets its attacks and those on it, `other` those behind
    /// it, which it hides.
    #[inline(always)]
    fn put(&self, board: &PieceBoard, occupied: u64, state: u16, [own, other]: [&mut Attacks; 2]) {
        let (code, square) = placed(state);
        let [rook, bishop] = [rook(square, occupied), bishop(square, occupied)];
        for target in Squares(self.attacked(code, square, rook, bishop) & occupied) {
            own.push_coded([code as u8, square as u8, board.squares()[target], target as u8], true);
        }
        let [sliders, leapers] = Self::attackers(board, square, rook, bishop).map(|pieces| pieces & occupied);
        for attacker in Squares(leapers) {
            own.push_coded([board.squares()[attacker], attacker as u8, code as u8, square as u8], true);
        }
        let seen = (rook | bishop) & occupied;
        for attacker in Squares(sliders) {
            own.push_coded([board.squares()[attacker], attacker as u8, code as u8, square as u8], true);
            let hidden = seen & self.lines[square][attacker];
            other.push(board, attacker, hidden.trailing_zeros() as usize & 63, hidden != 0);
        }
    }

    /// A piece takes another one's place.
    #[inline(always)]
    fn exchange(&self, board: &PieceBoard, occupied: u64, [old, new]: [u16; 2], lists: [&mut Attacks; 2]) {
        let square = placed(new).1;
        let [rook, bishop] = [rook(square, occupied), bishop(square, occupied)];
        let [sliders, leapers] = Self::attackers(board, square, rook, bishop);
        for (state, list) in [old, new].into_iter().zip(lists) {
            let code = placed(state).0;
            for target in Squares(self.attacked(code, square, rook, bishop) & occupied) {
                list.push_coded([code as u8, square as u8, board.squares()[target], target as u8], true);
            }
            for attacker in Squares((sliders | leapers) & occupied) {
                list.push_coded([board.squares()[attacker], attacker as u8, code as u8, square as u8], true);
            }
        }
    }

    /// Appends the changes of a move.
    #[inline(always)]
    fn follow(&self, played: Played<'_>, changes: &mut Changes) {
        let [[from, captured], [to, second]] = played.change.states();
        let mut removed = Attacks { length: 0, attacks: [[0; 4]; 256] };
        let mut added = Attacks { length: 0, attacks: [[0; 4]; 256] };
        let bit = |state: u16| 1u64 << placed(state).1;
        let mut occupied = played.before.occupied() ^ bit(from);
        self.put(played.before, occupied, from, [&mut removed, &mut added]);
        let mut passing = added.length;
        if is_piece(captured) && placed(captured).1 == placed(to).1 {
            self.exchange(played.before, occupied, [captured, to], [&mut removed, &mut added]);
        } else {
            if is_piece(captured) {
                occupied ^= bit(captured);
                self.put(played.before, occupied, captured, [&mut removed, &mut added]);
                passing = added.length;
            }
            self.put(played.after, occupied, to, [&mut added, &mut removed]);
            if is_piece(second) {
                self.put(played.after, occupied ^ bit(to), second, [&mut added, &mut removed]);
                passing = added.length;
            }
        }
        // Attacks that the move opened on its way and closed again.
        for at in (0..passing).rev() {
            let attack = added.attacks[at % 256];
            if let Some(found) = removed.all().iter().position(|other| *other == attack) {
                for (list, at) in [(&mut removed, found), (&mut added, at)] {
                    list.length -= 1;
                    list.attacks[at % 256] = list.attacks[list.length % 256];
                }
            }
        }
        let masks = Self::masks(played.before);
        let after = Self::masks(played.after);
        for pov in 0..2 {
            if masks[pov] == after[pov] {
                for (list, attacks) in [(&mut changes.removed, &removed), (&mut changes.added, &added)] {
                    for attack in attacks.all() {
                        self.push_row(list, pov, masks[pov], *attack);
                    }
                }
            } else {
                self.follow_mirrored(played, pov, changes);
            }
        }
    }

    /// One perspective's changes when its board is mirrored.
    #[inline(never)]
    fn follow_mirrored(&self, played: Played<'_>, pov: usize, changes: &mut Changes) {
        let rows = [played.before, played.after].map(|board| {
            let mut list = Box::new(Lists::new());
            self.push_all(board, &mut list);
            list.rows(pov).to_vec()
        });
        push_difference(pov, rows, changes);
    }

    /// Appends all rows of a board.
    #[inline(always)]
    fn push_all(&self, board: &PieceBoard, active: &mut Lists) {
        let masks = Self::masks(board);
        let occupied = board.occupied();
        let kings = board.by_code()[KING] | board.by_code()[KING + 8];
        for from in Squares(occupied & !kings) {
            let code = usize::from(board.squares()[from]);
            let attacked = match code & 7 {
                BISHOP => bishop(from, occupied),
                ROOK => rook(from, occupied),
                QUEEN => bishop(from, occupied) | rook(from, occupied),
                _ => self.leaps[(code << 6 | from) & 1023],
            };
            for to in Squares(attacked & occupied & !kings) {
                let attack = [code as u8, from as u8, board.squares()[to], to as u8];
                for pov in 0..2 {
                    self.push_row(active, pov, masks[pov], attack);
                }
            }
        }
    }
}

impl HandEncoder for FullThreats {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        changes.removed.clear();
        changes.added.clear();
        self.follow(played, changes);
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        active.clear();
        self.push_all(board, active);
    }
}

/// The set `sfnnv16`.
pub struct Stockfish19 {
    threats: FullThreats,
    pawns: PawnPairs,
    king: HalfKa,
}

/// The set `pp-3wide`.
struct PawnPairs {
    offset: u32,
    /// By square: the squares on its file and on those beside it, but for itself.
    near: [u64; 64],
}

impl PawnPairs {
    fn new(offset: u32) -> PawnPairs {
        let near = std::array::from_fn(|square| {
            let file = FILE_A << (square & 7);
            let beside = (file & !FILE_A) >> 1 | (file & !(FILE_A << 7)) << 1;
            (file | beside) & !(1 << square)
        });
        PawnPairs { offset, near }
    }

    /// Appends the pairs of a pawn with others.
    #[inline(always)]
    fn push(&self, list: &mut Lists, pov: usize, mask: usize, state: u16, board: &PieceBoard, others: u64) {
        let number =
            |code: usize, square: usize| ((code >> 3 ^ pov) & 1) as u32 * 48 + ((square ^ mask) as u32).wrapping_sub(8);
        let (code, square) = placed(state);
        let own = number(code, square);
        let row = |other: u32| {
            let [low, high] = [own.min(other), own.max(other)];
            self.offset.wrapping_add(high.wrapping_mul(high.wrapping_sub(1)) / 2).wrapping_add(low)
        };
        let near = others & self.near[square];
        for other in Squares(near & board.by_code()[PAWN]) {
            list.push(pov, row(number(PAWN, other)), true);
        }
        for other in Squares(near & board.by_code()[PAWN + 8]) {
            list.push(pov, row(number(PAWN + 8, other)), true);
        }
    }

    #[inline(always)]
    fn follow(&self, played: Played<'_>, changes: &mut Changes) {
        let masks = FullThreats::masks(played.before);
        let after = FullThreats::masks(played.after);
        let [removed, added] = played.change.states();
        for pov in 0..2 {
            if masks[pov] == after[pov] {
                let lists = [(&mut changes.removed, removed, played.before), (&mut changes.added, added, played.after)];
                for (list, states, board) in lists {
                    // A pair of two changed pawns is the second one's.
                    let mut others = board.occupied();
                    for state in states {
                        if is_piece(state) && placed(state).0 & 7 == PAWN {
                            others &= !(1u64 << placed(state).1);
                            self.push(list, pov, masks[pov], state, board, others);
                        }
                    }
                }
            } else {
                self.follow_mirrored(played, pov, changes);
            }
        }
    }

    /// One perspective's changes when its board is mirrored.
    #[inline(never)]
    fn follow_mirrored(&self, played: Played<'_>, pov: usize, changes: &mut Changes) {
        let rows = [played.before, played.after].map(|board| {
            let mut list = Box::new(Lists::new());
            self.push_all(board, pov, FullThreats::masks(board)[pov], &mut list);
            list.rows(pov).to_vec()
        });
        push_difference(pov, rows, changes);
    }

    #[inline(always)]
    fn push_all(&self, board: &PieceBoard, pov: usize, mask: usize, list: &mut Lists) {
        let pawns = board.by_code()[PAWN] | board.by_code()[PAWN + 8];
        for square in Squares(pawns) {
            let state = u16::from(board.squares()[square]) << 6 | square as u16;
            self.push(list, pov, mask, state, board, pawns & ((1 << square) - 1));
        }
    }
}

impl Stockfish19 {
    pub fn new() -> Stockfish19 {
        Stockfish19 {
            threats: FullThreats::new(),
            pawns: PawnPairs::new(59_808),
            king: HalfKa::from_row(59_808 + 4_560),
        }
    }
}

impl HandEncoder for Stockfish19 {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        self.king.delta(played, &(), &mut (), changes);
        self.threats.follow(played, changes);
        self.pawns.follow(played, changes);
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        self.king.encode(board, active);
        self.threats.push_all(board, active);
        let masks = FullThreats::masks(board);
        for pov in 0..2 {
            self.pawns.push_all(board, pov, masks[pov], active);
        }
    }
}
