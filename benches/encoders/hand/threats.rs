//! Who attacks whom: by roles alone, and by the attacked piece's square.

use fsbench::chess::PieceBoard;

use super::attacks::{bishop, king, knight, knights, pawn, pawns, rook, sliders};
use super::kings::own_king;
use super::{
    BISHOP, CODES, Changes, HandEncoder, Joint, KING, KNIGHT, Lists, PAWN, Played, QUEEN, ROOK, Squares, is_piece,
    placed, plane, slides,
};

/// The set `threat-roles`.
pub struct ThreatRoles {
    /// By attacker's code · 16 + the attacked piece's.
    rows: [[u32; 2]; 256],
    /// By state: the squares that a pawn, knight or king attacks.
    leaps: Box<[u64; 1024]>,
    /// By two squares: their common line, without both.
    lines: Box<[[u64; 64]; 64]>,
}

/// By attacker's code · 16 + the attacked piece's: how often the attack comes more than it goes. The codes of no piece
/// collect what is nobody's.
#[repr(align(64))]
struct Balance([i8; 256]);

impl Balance {
    #[inline(always)]
    fn add(&mut self, attacker: usize, target: usize, times: i8) {
        let count = &mut self.0[(attacker << 4 | target) & 255];
        *count = count.wrapping_add(times);
    }
}

impl ThreatRoles {
    pub fn new() -> ThreatRoles {
        let mut rows = [[0; 2]; 256];
        let mut leaps = Box::new([0; 1024]);
        for code in CODES {
            for target in CODES {
                let row = |flip: u32| (plane(code) ^ flip) * 12 + (plane(target) ^ flip);
                rows[code << 4 | target] = [row(0), row(1)];
            }
            for square in 0..64 {
                leaps[code << 6 | square] = match code & 7 {
                    PAWN => pawn(code >> 3, square),
                    KNIGHT => knight(square),
                    KING => king(square),
                    _ => 0,
                };
            }
        }
        ThreatRoles { rows, leaps, lines: lines() }
    }

    /// The squares that a piece attacks, from those that a rook and a bishop there attack.
    #[inline(always)]
    fn attacked(&self, code: usize, square: usize, rook: u64, bishop: u64) -> u64 {
        self.leaps[(code << 6 | square) & 1023] | slides(code, rook, bishop)
    }

    /// The pieces that attack a square: sliders and others.
    #[inline(always)]
    fn attackers(&self, board: &PieceBoard, square: usize, rook: u64, bishop: u64) -> [u64; 2] {
        let by_code = board.by_code();
        let of = |role: usize| by_code[role] | by_code[role + 8];
        let sliders = rook & (of(ROOK) | of(QUEEN)) | bishop & (of(BISHOP) | of(QUEEN));
        let leapers = knight(square) & of(KNIGHT)
            | king(square) & of(KING)
            | pawn(1, square) & by_code[PAWN]
            | pawn(0, square) & by_code[PAWN + 8];
        [sliders, leapers]
    }

    /// A piece comes (`times` 1) or goes (−1) where nothing else stands: its own attacks, attacks on it, and those
    /// behind it, which it hides. `occupied` lists the other pieces, which stand as on `board`.
    #[inline(always)]
    fn put(&self, balance: &mut Balance, board: &PieceBoard, occupied: u64, state: u16, times: i8) {
        let (code, square) = placed(state);
        let [rook, bishop] = [rook(square, occupied), bishop(square, occupied)];
        for target in Squares(self.attacked(code, square, rook, bishop) & occupied) {
            balance.add(code, usize::from(board.squares()[target]), times);
        }
        let [sliders, leapers] = self.attackers(board, square, rook, bishop).map(|pieces| pieces & occupied);
        for attacker in Squares(leapers) {
            balance.add(usize::from(board.squares()[attacker]), code, times);
        }
        let seen = (rook | bishop) & occupied;
        for attacker in Squares(sliders) {
            let by = usize::from(board.squares()[attacker]);
            balance.add(by, code, times);
            let hidden = seen & self.lines[square][attacker];
            let behind = board.squares()[hidden.trailing_zeros() as usize & 63];
            balance.add(by, if hidden == 0 { 7 } else { usize::from(behind) }, -times);
        }
    }

    /// A piece takes another one's place.
    #[inline(always)]
    fn exchange(&self, balance: &mut Balance, board: &PieceBoard, occupied: u64, old: u16, new: u16) {
        let (code, square) = placed(new);
        let (victim, _) = placed(old);
        let [rook, bishop] = [rook(square, occupied), bishop(square, occupied)];
        for (code, times) in [(victim, -1), (code, 1)] {
            for target in Squares(self.attacked(code, square, rook, bishop) & occupied) {
                balance.add(code, usize::from(board.squares()[target]), times);
            }
        }
        let [sliders, leapers] = self.attackers(board, square, rook, bishop);
        for attacker in Squares((sliders | leapers) & occupied) {
            let by = usize::from(board.squares()[attacker]);
            balance.add(by, victim, -1);
            balance.add(by, code, 1);
        }
    }

    #[inline(always)]
    fn list(&self, balance: &Balance, changes: &mut Changes) {
        let mut removed = Joint::of(&mut changes.removed);
        let mut added = Joint::of(&mut changes.added);
        for (quarter, counts) in balance.0.chunks_exact(64).enumerate() {
            // Of each 16 codes those of pieces.
            for at in Squares(nonzero(counts) & 0x3f3f_3f3f_3f3f_3f3f) {
                let rows = self.rows[(64 * quarter + at) & 255];
                let count = counts[at & 63];
                // Nearly always one.
                removed.push(rows, count < 0);
                added.push(rows, count > 0);
                for _ in 1..count.unsigned_abs() {
                    removed.push(rows, count < 0);
                    added.push(rows, count > 0);
                }
            }
        }
        removed.finish();
        added.finish();
    }
}

/// By two squares: their common line, without both.
pub(super) fn lines() -> Box<[[u64; 64]; 64]> {
    let mut lines = Box::new([[0; 64]; 64]);
    for (from, lines) in lines.iter_mut().enumerate() {
        for (to, line) in lines.iter_mut().enumerate() {
            for attacked in [rook, bishop] {
                if attacked(from, 0) >> to & 1 == 1 {
                    *line = attacked(from, 0) & attacked(to, 0);
                }
            }
        }
    }
    lines
}

/// The positions of 64 counts that are not 0.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "loads of vectors")]
fn nonzero(counts: &[i8]) -> u64 {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_setzero_si128};
    let mut zero = 0;
    for (number, counts) in counts.chunks_exact(16).enumerate() {
        // SAFETY: the chunk has 16 bytes, and every x86-64 has SSE2.
        let mask = unsafe {
            let counts = _mm_loadu_si128(counts.as_ptr().cast::<__m128i>());
            _mm_movemask_epi8(_mm_cmpeq_epi8(counts, _mm_setzero_si128()))
        };
        zero |= (mask as u64) << (16 * number);
    }
    !zero
}

#[cfg(not(target_arch = "x86_64"))]
fn nonzero(counts: &[i8]) -> u64 {
    counts.iter().enumerate().fold(0, |bits, (at, count)| bits | u64::from(*count != 0) << at)
}

impl HandEncoder for ThreatRoles {
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        let [[from, captured], [to, second]] = played.change.states();
        let mut balance = Balance([0; 256]);
        let bit = |state: u16| 1u64 << placed(state).1;
        let mut occupied = played.before.occupied() ^ bit(from);
        self.put(&mut balance, played.before, occupied, from, -1);
        if is_piece(captured) {
            if placed(captured).1 == placed(to).1 {
                self.exchange(&mut balance, played.before, occupied, captured, to);
                return self.list(&balance, changes);
            }
            occupied ^= bit(captured);
            self.put(&mut balance, played.before, occupied, captured, -1);
        }
        self.put(&mut balance, played.after, occupied, to, 1);
        if is_piece(second) {
            self.put(&mut balance, played.after, occupied ^ bit(to), second, 1);
        }
        self.list(&balance, changes);
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let mut list = Joint::of(active);
        let occupied = board.occupied();
        for square in Squares(occupied) {
            let code = usize::from(board.squares()[square]);
            let attacked = match code & 7 {
                BISHOP => bishop(square, occupied),
                ROOK => rook(square, occupied),
                QUEEN => bishop(square, occupied) | rook(square, occupied),
                _ => self.leaps[(code << 6 | square) & 1023],
            };
            for target in Squares(attacked & occupied) {
                list.push(self.rows[(code << 4 | usize::from(board.squares()[target])) & 255], true);
            }
        }
        list.finish();
    }
}

/// The set `attackers`, or `chess768-mirrored-attackers`, whose board is mirrored where the own king stands on e to h.
pub struct Attackers<const MIRRORED: bool> {
    /// By code, in both perspectives: what the piece adds to its square's number.
    pieces: [[u32; 2]; 16],
    /// By code of the attacked piece.
    targets: [[u32; 2]; 16],
}

/// By code: the squares that pieces of the code attack, those of their own side included.
#[derive(Copy, Clone, Default)]
pub struct Attacked([u64; 16]);

impl<const MIRRORED: bool> Attackers<MIRRORED> {
    pub fn new() -> Self {
        let mut encoder = Attackers { pieces: [[0; 2]; 16], targets: [[0; 2]; 16] };
        for code in CODES {
            let role = (code & 7) as u32;
            for pov in 0..2 {
                let color = (code >> 3) as u32 ^ pov;
                let pov = pov as usize;
                encoder.pieces[code][pov] = if MIRRORED { 384 * color + 64 * role } else { 2 * role + color };
                encoder.targets[code][pov] = 768 + 36 * color + 6 * role;
            }
        }
        encoder
    }

    /// The masks that orient the board.
    #[inline(always)]
    fn masks(board: &PieceBoard) -> [u32; 2] {
        let mirror = |pov: usize| if MIRRORED && own_king(board, pov) & 4 != 0 { 7 } else { 0 };
        [mirror(0), 56 ^ mirror(1)]
    }

    #[inline(always)]
    fn piece(&self, state: u16, mask: u32, pov: usize) -> u32 {
        let (code, square) = placed(state);
        let square = square as u32 ^ mask;
        self.pieces[code][pov] + if MIRRORED { square } else { 12 * square }
    }

    #[inline(always)]
    fn target(&self, board: &PieceBoard, square: usize, role: usize, mask: u32, pov: usize) -> u32 {
        let code = usize::from(board.squares()[square]) & 15;
        self.targets[code][pov] + 72 * (square as u32 ^ mask) + role as u32
    }

    /// One perspective's changes when its board is mirrored.
    #[inline(never)]
    fn follow_mirrored(&self, played: Played<'_>, states: [&Attacked; 2], pov: usize, changes: &mut Changes) {
        let boards = [played.before, played.after];
        let mut rows = [Vec::new(), Vec::new()];
        for (time, rows) in rows.iter_mut().enumerate() {
            let board = boards[time];
            let mask = Self::masks(board)[pov];
            for square in Squares(board.occupied()) {
                rows.push(self.piece(u16::from(board.squares()[square]) << 6 | square as u16, mask, pov));
            }
            for code in CODES {
                for square in Squares(states[time].0[code] & board.by_color()[1 - (code >> 3)]) {
                    rows.push(self.target(board, square, code & 7, mask, pov));
                }
            }
            rows.sort_unstable();
        }
        for (time, list) in [&mut changes.removed, &mut changes.added].into_iter().enumerate() {
            list.lengths[pov] = 0;
            for row in &rows[time] {
                list.push(pov, *row, rows[1 - time].binary_search(row).is_err());
            }
        }
    }
}

impl<const MIRRORED: bool> HandEncoder for Attackers<MIRRORED> {
    type State = Attacked;

    #[inline(always)]
    fn state(&self, board: &PieceBoard) -> Attacked {
        let mut attacked = [0; 16];
        for color in 0..2 {
            let of = |role: usize| board.by_code()[role + 8 * color];
            attacked[PAWN + 8 * color] = pawns(color, of(PAWN));
            attacked[KNIGHT + 8 * color] = knights(of(KNIGHT));
            attacked[KING + 8 * color] = king(of(KING).trailing_zeros() as usize);
            for role in [BISHOP, ROOK, QUEEN] {
                attacked[role + 8 * color] = sliders(role, of(role), board.occupied());
            }
        }
        Attacked(attacked)
    }

    #[inline(always)]
    fn delta(&self, played: Played<'_>, old: &Attacked, new: &mut Attacked, changes: &mut Changes) {
        let [removed_states, added_states] = played.change.states();
        let masks = Self::masks(played.before);
        let mut removed = Joint::of(&mut changes.removed);
        let mut added = Joint::of(&mut changes.added);
        for (list, [first, second]) in [(&mut removed, removed_states), (&mut added, added_states)] {
            let rows = |state: u16| [0, 1].map(|pov| self.piece(state, masks[pov], pov));
            list.push(rows(first), true);
            list.push(rows(second), is_piece(second));
        }
        *new = self.state(played.after);
        for code in CODES {
            let enemy = 1 - (code >> 3);
            let targets = [old.0[code] & played.before.by_color()[enemy], new.0[code] & played.after.by_color()[enemy]];
            let rows = |board: &PieceBoard, square: usize| {
                [0, 1].map(|pov| self.target(board, square, code & 7, masks[pov], pov))
            };
            for square in Squares(targets[0] & !targets[1]) {
                removed.push(rows(played.before, square), true);
            }
            for square in Squares(targets[1] & !targets[0]) {
                added.push(rows(played.after, square), true);
            }
        }
        removed.finish();
        added.finish();
        if MIRRORED {
            let after = Self::masks(played.after);
            for pov in 0..2 {
                if masks[pov] != after[pov] {
                    self.follow_mirrored(played, [old, new], pov, changes);
                }
            }
        }
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let attacked = self.state(board).0;
        let masks = Self::masks(board);
        let mut list = Joint::of(active);
        for square in Squares(board.occupied()) {
            let state = u16::from(board.squares()[square]) << 6 | square as u16;
            list.push([0, 1].map(|pov| self.piece(state, masks[pov], pov)), true);
        }
        for code in CODES {
            for square in Squares(attacked[code] & board.by_color()[1 - (code >> 3)]) {
                list.push([0, 1].map(|pov| self.target(board, square, code & 7, masks[pov], pov)), true);
            }
        }
        list.finish();
    }
}
