//! Encoders written by hand for feature sets that fsbench compiles from definitions: what the author of an engine would
//! write for one set, on bitboards and a mailbox, for both perspectives at once.
//!
//! `benches/encoders` times fsbench's own encoders against them; `tests/encoders.rs` holds them against the reference.
//! Sliding pieces look their attacks up in shakmaty's tables of fixed-shift magics. Some encoders keep a state by ply,
//! as an engine keeps attacks on its stack. Chess960's castlings are left out.
#![allow(dead_code, reason = "the benchmark and the test use different parts")]

mod attacks;
mod axes;
mod full_threats;
mod kings;
mod mobility;
mod pairs;
mod threats;

use fsbench::chess::{BoardChange, PieceBoard};

/// Most rows that one perspective's list holds. A power of two, so that positions in a list are masked instead of
/// checked.
const CAPACITY: usize = 512;

/// One list of rows for White's perspective and one for Black's.
pub struct Lists {
    lengths: [usize; 2],
    rows: [[u32; CAPACITY]; 2],
}

/// The rows that a move removes and adds.
pub struct Changes {
    pub removed: Lists,
    pub added: Lists,
}

/// A move with the boards before and after it.
#[derive(Copy, Clone)]
pub struct Played<'a> {
    pub before: &'a PieceBoard,
    pub change: &'a BoardChange,
    pub after: &'a PieceBoard,
}

/// An encoder of one set. Rows are in no order.
pub trait HandEncoder {
    /// What it keeps of a board for the next move; `()` for encoders without state.
    type State: Copy + Default;

    /// The state of a board that no move led to.
    fn state(&self, _: &PieceBoard) -> Self::State {
        Self::State::default()
    }

    /// Replaces `changes` by those of a move. `old` is the state of the board before it, `new` becomes the other one's.
    fn delta(&self, played: Played<'_>, old: &Self::State, new: &mut Self::State, changes: &mut Changes);

    /// Replaces `active` by all rows of a board.
    fn encode(&self, board: &PieceBoard, active: &mut Lists);
}

/// What is done with every encoder.
pub trait Visitor {
    /// `set` is the name of a shipped set.
    fn visit<E: HandEncoder + Sync>(&mut self, set: &str, encoder: &E);
}

/// Visits the encoders of all sets.
pub fn each(visitor: &mut impl Visitor) {
    visitor.visit("piece", &axes::Axes::<true, false, false>::new());
    visitor.visit("compact", &axes::Axes::<false, true, false>::new());
    visitor.visit("h-v", &axes::Axes::<false, true, false>::new());
    visitor.visit("d1-d2", &axes::Axes::<false, false, true>::new());
    visitor.visit("h-v-d1-d2", &axes::Axes::<false, true, true>::new());
    visitor.visit("all-h-v", &axes::Axes::<true, true, false>::new());
    visitor.visit("all-d1-d2", &axes::Axes::<true, false, true>::new());
    visitor.visit("all-h-v-d1-d2", &axes::Axes::<true, true, true>::new());
    visitor.visit("all-ph", &pairs::AllPairs::<true, false>::new());
    visitor.visit("all-pv", &pairs::AllPairs::<false, true>::new());
    visitor.visit("all-ph-pv", &pairs::AllPairs::<true, true>::new());
    visitor.visit("all-mb", &mobility::MobilitySquares::new());
    visitor.visit("all-mc", &mobility::MobilityCounts::new());
    visitor.visit("piece-move", &mobility::PieceMove::new());
    visitor.visit("relative-king-hv", &kings::RelativeKing::new());
    visitor.visit("half-ka-v2-hm", &kings::HalfKa::new());
    visitor.visit("top-pp", &pairs::TopPairs::new());
    visitor.visit("threat-roles", &threats::ThreatRoles::new());
    visitor.visit("threats-v16", &full_threats::FullThreats::new());
    visitor.visit("sfnnv16", &full_threats::Stockfish19::new());
    visitor.visit("attackers", &threats::Attackers::<false>::new());
    visitor.visit("chess768-mirrored-attackers", &threats::Attackers::<true>::new());
}

impl Changes {
    pub fn new() -> Box<Changes> {
        Box::new(Changes { removed: Lists::new(), added: Lists::new() })
    }
}

impl Lists {
    pub const fn new() -> Lists {
        Lists { lengths: [0; 2], rows: [[0; CAPACITY]; 2] }
    }

    pub fn rows(&self, pov: usize) -> &[u32] {
        &self.rows[pov][..self.lengths[pov]]
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.lengths = [0; 2];
    }

    /// Appends a row to one perspective's list if the condition holds.
    #[inline(always)]
    fn push(&mut self, pov: usize, row: u32, condition: bool) {
        let length = self.lengths[pov];
        self.rows[pov][length % CAPACITY] = row;
        self.lengths[pov] = length + usize::from(condition);
    }
}

/// Both perspectives' lists where they are equally long, so that one number counts them.
struct Joint<'a> {
    lists: &'a mut Lists,
    length: usize,
}

impl<'a> Joint<'a> {
    /// Empties the lists.
    #[inline(always)]
    fn of(lists: &'a mut Lists) -> Joint<'a> {
        Joint { lists, length: 0 }
    }

    /// Appends White's row and Black's if the condition holds.
    #[inline(always)]
    fn push(&mut self, [white, black]: [u32; 2], condition: bool) {
        let at = self.length % CAPACITY;
        self.lists.rows[0][at] = white;
        self.lists.rows[1][at] = black;
        self.length += usize::from(condition);
    }

    #[inline(always)]
    fn finish(self) {
        self.lists.lengths = [self.length; 2];
    }
}

/// The squares of a bitboard, from the lowest.
#[derive(Copy, Clone)]
struct Squares(u64);

impl Iterator for Squares {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let square = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(square)
    }
}

const FILE_A: u64 = 0x0101_0101_0101_0101;
const RANK_1: u64 = 0xff;

/// The codes of pieces: 0 to 5 White's pawn to king, 8 to 13 Black's.
const CODES: [usize; 12] = [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13];
const PAWN: usize = 0;
const KNIGHT: usize = 1;
const BISHOP: usize = 2;
const ROOK: usize = 3;
const QUEEN: usize = 4;
const KING: usize = 5;

/// role · 2 + colour, in White's perspective; the lowest bit is the other one in Black's.
#[inline(always)]
const fn plane(code: usize) -> u32 {
    ((code & 7) * 2 + (code >> 3 & 1)) as u32
}

/// A state's code and square.
#[inline(always)]
fn placed(state: u16) -> (usize, usize) {
    (usize::from(state >> 6) & 15, usize::from(state & 63))
}

#[inline(always)]
fn is_piece(state: u16) -> bool {
    state != BoardChange::NO_PIECE
}

/// By state, one value for White's perspective and one for Black's.
type ByState = Box<[[u32; 2]; 1024]>;

/// `row` gets a piece's code, from which Black's perspective exchanges the colours, and its square as the perspective
/// sees it.
fn by_state(row: impl Fn(usize, u32) -> u32) -> ByState {
    let mut table = Box::new([[0; 2]; 1024]);
    for code in CODES {
        for square in 0..64 {
            table[code << 6 | square as usize] = [row(code, square), row(code ^ 8, square ^ 56)];
        }
    }
    table
}

/// The rows of the set `piece`.
fn piece_rows() -> ByState {
    by_state(|code, square| square * 12 + plane(code))
}

/// What a slider attacks of what a rook and a bishop on its square attack; nothing for other pieces.
#[inline(always)]
pub fn slides(code: usize, rook: u64, bishop: u64) -> u64 {
    let straight = if code & 7 == ROOK || code & 7 == QUEEN { rook } else { 0 };
    let slanting = if code & 7 == BISHOP || code & 7 == QUEEN { bishop } else { 0 };
    straight | slanting
}

/// The changes of one perspective from all its rows before and after.
pub fn push_difference(pov: usize, mut rows: [Vec<u32>; 2], changes: &mut Changes) {
    rows.iter_mut().for_each(|rows| rows.sort_unstable());
    for (time, list) in [&mut changes.removed, &mut changes.added].into_iter().enumerate() {
        for row in &rows[time] {
            list.push(pov, *row, rows[1 - time].binary_search(row).is_err());
        }
    }
}

/// The changes of a move of no king: `rows` gives a state's rows for both perspectives. A second piece that is removed
/// was captured; none is added.
#[inline(always)]
pub fn push_moved(change: &BoardChange, rows: impl Fn(u16) -> [u32; 2], changes: &mut Changes) {
    let [removed, added] = change.states();
    let mut list = Joint::of(&mut changes.removed);
    list.push(rows(removed[0]), true);
    list.push(rows(removed[1]), is_piece(removed[1]));
    list.finish();
    let mut list = Joint::of(&mut changes.added);
    list.push(rows(added[0]), true);
    list.finish();
}
