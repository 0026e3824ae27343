//! The encoder of a feature set: the active features of a board, and the changes between two boards.
//!
//! [`Encoder`] is the one surface; what it runs is written by [`super::lower`]. Every method agrees with
//! [`FeatureSet::reference`](super::FeatureSet::reference) (`tests/features.rs`, `tests/generated.rs`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::chess::{Board, BoardChange, ByPerspective, PackedBoard, Perspective, PieceBoard};

use super::code::{Executable, Inputs, Obstacle, Outputs, RowList};
use super::compiled::{PieceList, RowBuffer, VectorEncoder};
use super::delta::Delta;
use super::lower;
use super::row_counts::cancel_from;
use super::row_programs::{ActiveRows, ChangedRows, DeltaState};
use super::set::Block;

/// Encodes boards and moves; [`FeatureSet::encoder`](super::FeatureSet::encoder) gives it.
///
/// ```
/// use fsbench::chess::{Board, Perspective};
/// use fsbench::features::FeatureSet;
///
/// let set = FeatureSet::resolve("square(P) * role(P) * color(P) for P in pieces")?;
/// let mut active = Vec::new();
/// set.encoder().encode(&Board::default(), Perspective::White, &mut active);
/// assert_eq!(active.len(), 32);
/// # Ok::<(), fsbench::features::FeatureError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    /// All blocks of the set.
    blocks: Arc<[Block]>,
    /// The numbers of the blocks that this encoder encodes, ascending.
    own: Vec<usize>,
    /// Those of `own` that are piece tables and not renumbered, and the others.
    piece_tables: Vec<usize>,
    others: Vec<usize>,
    /// Present where all blocks are piece tables that the CPU can encode for all pieces of a board at once.
    vectors: Option<VectorEncoder>,
    active: OnceLock<ActiveRows>,
    /// Of `others`.
    others_active: OnceLock<ActiveRows>,
    changed: OnceLock<ChangedRows>,
    differing: OnceLock<ChangedRows>,
    /// By perspective: the rows of all blocks that a king's move removes and adds, where one program gives both.
    king_moves: OnceLock<[Option<KingMoveRows>; 2]>,
    /// Encoders of some of the blocks.
    parts: Mutex<HashMap<Box<[usize]>, Arc<Encoder>>>,
}

/// Finds the rows of one perspective that a king's move removes and adds.
#[derive(Debug)]
struct KingMoveRows {
    program: Executable,
    may_cancel: bool,
}

/// Buffers that [`Encoder::append_batch`] reuses from call to call.
#[derive(Clone, Debug, Default)]
pub struct EncodeScratch {
    active: ByPerspective<RowList>,
    pieces: PieceList,
}

thread_local! {
    static OTHER_ROWS: Cell<RowList> = Cell::default();
    static OTHER_CHANGES: RefCell<[Delta; 2]> = RefCell::default();
}

/// The squares of White's king and of Black's before and after a move; `None` where a side has not exactly one.
#[derive(Copy, Clone)]
struct KingMove {
    before: Option<[u32; 2]>,
    after: Option<[u32; 2]>,
}

/// Both boards of a change that moves, brings or takes a king, and who looks at them.
#[derive(Copy, Clone)]
struct MovedKing<'a> {
    before: &'a PieceBoard,
    after: &'a PieceBoard,
    kings: KingMove,
    pov: Perspective,
}

impl KingMove {
    #[inline(always)]
    fn between(before: &PieceBoard, after: &PieceBoard) -> KingMove {
        KingMove { before: before.kings(), after: after.kings() }
    }
}

/// White's and Black's, from the own and the other perspective's.
#[inline(always)]
fn in_order<T>(pov: Perspective, own: T, other: T) -> [T; 2] {
    match pov {
        Perspective::White => [own, other],
        Perspective::Black => [other, own],
    }
}

/// The squares of the own king and of the other one, from White's and Black's.
#[inline(always)]
fn seen_by([white, black]: [u32; 2], pov: Perspective) -> [u32; 2] {
    in_order(pov, white, black)
}

impl Encoder {
    pub(super) fn new(blocks: Vec<Block>) -> Encoder {
        let own = (0..blocks.len()).collect();
        Encoder::of(blocks.into(), own)
    }

    fn of(blocks: Arc<[Block]>, own: Vec<usize>) -> Encoder {
        let all = |holds: &dyn Fn(&Block) -> bool| own.iter().all(|block| holds(&blocks[*block]));
        let is_piece_table = |block: &Block| !block.is_renumbered() && block.compiled.is_piece_table();
        let (piece_tables, others) = own.iter().partition(|block| is_piece_table(&blocks[**block]));
        Encoder {
            piece_tables,
            others,
            vectors: VectorEncoder::detect()
                .filter(|_| all(&|block| is_piece_table(block) && block.compiled.has_sum_tables())),
            blocks,
            own,
            active: OnceLock::new(),
            others_active: OnceLock::new(),
            changed: OnceLock::new(),
            differing: OnceLock::new(),
            king_moves: OnceLock::new(),
            parts: Mutex::default(),
        }
    }

    /// The encoder of those of its blocks that are among some, by number, compiled once.
    #[must_use]
    pub fn part(&self, blocks: &[usize]) -> Arc<Encoder> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let own = || self.own.iter().copied().filter(|block| blocks.contains(block)).collect();
        let make = || Arc::new(Encoder::of(Arc::clone(&self.blocks), own()));
        Arc::clone(parts.entry(blocks.into()).or_insert_with(make))
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn own_blocks(&self) -> impl Iterator<Item = &Block> {
        self.own.iter().map(|block| &self.blocks[*block])
    }

    fn active(&self) -> &ActiveRows {
        self.active.get_or_init(|| ActiveRows::of(&self.own_blocks().collect::<Vec<_>>()))
    }

    fn others_active(&self) -> &ActiveRows {
        self.others_active
            .get_or_init(|| ActiveRows::of(&self.others.iter().map(|block| &self.blocks[*block]).collect::<Vec<_>>()))
    }

    #[inline(always)]
    fn changed(&self) -> &ChangedRows {
        match self.changed.get() {
            Some(changed) => changed,
            None => self.compile_changed(),
        }
    }

    #[cold]
    #[inline(never)]
    fn compile_changed(&self) -> &ChangedRows {
        self.changed.get_or_init(|| self.compile(lower::delta))
    }

    fn differing(&self) -> &ChangedRows {
        self.differing.get_or_init(|| self.compile(lower::difference))
    }

    fn compile(&self, lowered: fn(&[&Block]) -> lower::DeltaProgram) -> ChangedRows {
        ChangedRows::of(&self.own_blocks().collect::<Vec<_>>(), lowered)
    }

    /// Bytes of the tables with which boards are encoded and moves followed.
    pub fn table_bytes(&self) -> usize {
        self.active().table_bytes() + self.changed().table_bytes()
    }

    /// Clears `out` and writes the active features of a board to it as `pov` sees them, in no order. A board without both
    /// kings has no active features.
    pub fn encode(&self, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        let mut rows = RowList::from(std::mem::take(out));
        self.encode_board(&PieceBoard::of(board), pov, &mut rows);
        *out = rows.into();
    }

    /// [`Encoder::encode`] of a [`PieceBoard`].
    pub fn encode_board(&self, board: &PieceBoard, pov: Perspective, out: &mut RowList) {
        // The other perspective's rows, found at the same time, go to a list that is used again.
        let mut other = OTHER_ROWS.take();
        other.clear();
        out.clear();
        self.active().append(board, in_order(pov, &mut *out, &mut other));
        OTHER_ROWS.set(other);
    }

    /// The vector instructions with which [`Encoder::append_batch`] encodes this set on this CPU: `avx512`,
    /// `neon` or `none`.
    #[must_use]
    pub const fn vectors(&self) -> &'static str {
        match self.vectors {
            Some(vectors) => vectors.name(),
            None => "none",
        }
    }

    /// [`Encoder::encode`] for both perspectives of a packed board.
    pub fn encode_packed(&self, board: &PackedBoard, out: &mut ByPerspective<RowList>) {
        out.white.clear();
        out.black.clear();
        self.active().append(&PieceBoard::unpacked(board), [&mut out.white, &mut out.black]);
    }

    /// Appends the active features of boards, each with its side to move: the side to move's to `sides[0]`, the other
    /// side's to `sides[1]`. Marks the end of every board in both.
    pub fn append_batch<'a>(
        &self,
        boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
        sides: &mut [RowBuffer; 2],
        scratch: &mut EncodeScratch,
    ) {
        if let Some(vectors) = self.vectors {
            let blocks = self.own.iter().map(|block| (&self.blocks[*block].compiled, self.blocks[*block].offset));
            return vectors.append(&blocks, boards, sides);
        }
        let others = (!self.others.is_empty()).then(|| self.others_active());
        for (board, stm) in boards {
            if !self.piece_tables.is_empty() {
                scratch.pieces.fill(board);
                for block in &self.piece_tables {
                    let block = &self.blocks[*block];
                    block.compiled.append_both(&scratch.pieces, stm, block.offset, sides);
                }
            }
            if let Some(others) = others {
                let ByPerspective { white, black } = &mut scratch.active;
                white.clear();
                black.clear();
                others.append(&PieceBoard::unpacked(board), [white, black]);
                for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
                    side.extend(&scratch.active[pov]);
                }
            }
            sides.iter_mut().for_each(RowBuffer::end);
        }
    }

    /// The number of a block's context; boards of equal context need no refresh between them. `None` without both
    /// kings.
    pub fn context(&self, block: usize, board: &Board, pov: Perspective) -> Option<u32> {
        let king = |pov: Perspective| board.king_of(pov.own()).map(u32::from);
        Some(self.blocks[block].compiled.context([king(pov)?, king(pov.other())?], pov))
    }

    /// Appends the contexts of the encoder's blocks for the squares of White's king and of Black's.
    pub fn append_contexts(&self, kings: [u32; 2], pov: Perspective, out: &mut Vec<u32>) {
        let kings = seen_by(kings, pov);
        out.extend(self.own_blocks().map(|block| block.compiled.context(kings, pov)));
    }

    /// Whether some block's context differs between two boards.
    #[inline]
    pub fn refreshes(&self, before: &PieceBoard, after: &PieceBoard, pov: Perspective) -> bool {
        if before.has_kings() && before.king_squares() == after.king_squares() {
            return false;
        }
        let kings = KingMove::between(before, after);
        self.own.iter().any(|block| self.changes_context(*block, kings, pov))
    }

    /// Whether a king's move changes a block's context.
    #[inline(always)]
    fn changes_context(&self, block: usize, kings: KingMove, pov: Perspective) -> bool {
        let compiled = &self.blocks[block].compiled;
        match (kings.before, kings.after) {
            (Some(before), Some(after)) => {
                compiled.context(seen_by(before, pov), pov) != compiled.context(seen_by(after, pov), pov)
            }
            (before, after) => before.is_some() != after.is_some(),
        }
    }

    /// Of how many blocks a king's move changes the contexts.
    #[inline(always)]
    fn changed_contexts(&self, kings: KingMove, pov: Perspective) -> usize {
        let mut changes = 0;
        for block in &self.own {
            changes += usize::from(self.changes_context(*block, kings, pov));
        }
        changes
    }

    /// The exact change that a move makes for one perspective, listed also when there is a refresh.
    pub fn diff(&self, before: &Board, change: &BoardChange, after: &Board, pov: Perspective, out: &mut Delta) {
        let mut both = ByPerspective::default();
        std::mem::swap(&mut both[pov], out);
        let [mut old, mut new] = <[DeltaState; 2]>::default();
        self.diff_both([&PieceBoard::of(before), &PieceBoard::of(after)], change, [&mut old, &mut new], &mut both);
        std::mem::swap(&mut both[pov], out);
        out.removed.sort_unstable();
        out.added.sort_unstable();
    }

    /// [`Encoder::diff`] for both perspectives, in no order. `boards` and `states`: before and after the move.
    #[inline]
    pub fn diff_both(
        &self,
        boards: [&PieceBoard; 2],
        change: &BoardChange,
        states: [&mut DeltaState; 2],
        out: &mut ByPerspective<Delta>,
    ) {
        self.follow(boards, change, states, true, out);
    }

    /// [`Encoder::diff_both`] for callers that recompute a perspective on a refresh: the lists stay empty where the
    /// contexts of all blocks change.
    #[inline]
    pub fn diff_or_refresh(
        &self,
        boards: [&PieceBoard; 2],
        change: &BoardChange,
        states: [&mut DeltaState; 2],
        out: &mut ByPerspective<Delta>,
    ) {
        self.follow(boards, change, states, false, out);
    }

    /// Replaces `out`. `is_exact`: lists the change also where all contexts change.
    #[inline(always)]
    fn follow(
        &self,
        [before, after]: [&PieceBoard; 2],
        change: &BoardChange,
        [state_before, state_after]: [&mut DeltaState; 2],
        is_exact: bool,
        out: &mut ByPerspective<Delta>,
    ) {
        let changed = self.changed();
        // Arrays are made where they are given on, so that they do not have to lie in memory before.
        if changed.keeps_contexts(before, after) {
            let states = [state_before, state_after];
            changed.find(before, change, after, states, [&mut out.white, &mut out.black]);
        } else {
            let states = [state_before, state_after];
            self.follow_king([before, after], change, states, is_exact, out);
        }
    }

    /// [`Encoder::follow`] where a king moves or is missing.
    #[inline(never)]
    fn follow_king(
        &self,
        [before, after]: [&PieceBoard; 2],
        change: &BoardChange,
        [state_before, state_after]: [&mut DeltaState; 2],
        is_exact: bool,
        out: &mut ByPerspective<Delta>,
    ) {
        // Where the change is not looked for, the state of the board after stays unknown.
        state_after.clear();
        let kings = KingMove::between(before, after);
        if kings.before.is_none() && kings.after.is_none() {
            out.white.clear();
            return out.black.clear();
        }
        let white = self.changed_contexts(kings, Perspective::White);
        let black = self.changed_contexts(kings, Perspective::Black);
        // What is found for the blocks whose contexts change does not count.
        let fewest = white.min(black);
        if fewest == 0 || fewest < self.own.len() {
            let states = [state_before, state_after];
            self.changed().find(before, change, after, states, [&mut out.white, &mut out.black]);
        }
        for (pov, changes) in [(Perspective::White, white), (Perspective::Black, black)] {
            if changes > 0 {
                let moved = MovedKing { before, after, kings, pov };
                self.follow_changed_contexts(moved, is_exact, changes, &mut out[pov]);
            }
        }
    }

    /// The change of a perspective for which a king's move changes the contexts of some blocks, `changes` of them. Where
    /// other blocks keep theirs, `delta` has what differs in these.
    #[inline(always)]
    fn follow_changed_contexts(&self, moved: MovedKing<'_>, is_exact: bool, changes: usize, delta: &mut Delta) {
        delta.refresh = true;
        if changes < self.own.len() {
            let changed: Vec<usize> =
                self.own.iter().copied().filter(|block| self.changes_context(*block, moved.kings, moved.pov)).collect();
            let stays = |row: &u32| !changed.iter().any(|block| self.blocks[*block].contains(*row));
            let part = self.part(&changed);
            OTHER_CHANGES.with_borrow_mut(|[spare, other]| {
                part.diff_all(moved, spare, other);
                for (rows, others) in [(&mut delta.removed, &spare.removed), (&mut delta.added, &spare.added)] {
                    let mut rows = rows.vec();
                    rows.retain(stays);
                    rows.extend_from_slice(others);
                }
            });
        } else if is_exact {
            OTHER_CHANGES.with_borrow_mut(|[other, _]| self.diff_all(moved, delta, other));
        } else {
            delta.added.clear();
            delta.removed.clear();
        }
    }

    /// Replaces `out` by the change of one perspective whose contexts all differ. `other`: a list for the other perspective.
    #[inline(always)]
    fn diff_all(&self, MovedKing { before, after, kings, pov }: MovedKing<'_>, out: &mut Delta, other: &mut Delta) {
        let program = match (kings.before, kings.after) {
            (Some(_), Some(_)) => self.king_moves()[pov as usize].as_ref(),
            _ => None,
        };
        let may_cancel = match program {
            Some(KingMoveRows { program, may_cancel }) => {
                let inputs =
                    Inputs { before, after, change: &BoardChange::EMPTY, state_before: &[], state_after: &mut [] };
                program.run(inputs, Outputs::Changed(in_order(pov, &mut *out, other)));
                *may_cancel
            }
            None => {
                self.encode_board(before, pov, &mut out.removed);
                self.encode_board(after, pov, &mut out.added);
                true
            }
        };
        if may_cancel {
            cancel_from(&mut out.removed, &mut out.added, [0, 0]);
        }
    }

    fn king_moves(&self) -> &[Option<KingMoveRows>; 2] {
        self.king_moves.get_or_init(|| {
            let blocks: Vec<&Block> = self.own_blocks().collect();
            [0, 1].map(|pov| {
                let (program, may_cancel) = lower::king_move(&blocks, pov)?;
                Some(KingMoveRows { program: Executable::compile(program), may_cancel })
            })
        })
    }

    /// The change between any two boards of equal contexts, in no order; `refresh` stays false.
    pub fn diff_boards(&self, before: &PieceBoard, after: &PieceBoard, pov: Perspective, out: &mut Delta) {
        let kings = KingMove::between(before, after);
        if kings.before.is_none() || kings.after.is_none() {
            out.clear();
            self.encode_board(before, pov, &mut out.removed);
            return self.encode_board(after, pov, &mut out.added);
        }
        let [mut old, mut new] = <[DeltaState; 2]>::default();
        OTHER_CHANGES.with_borrow_mut(|[other, _]| {
            let both = in_order(pov, out, other);
            self.differing().find(before, &BoardChange::EMPTY, after, [&mut old, &mut new], both);
        });
    }

    /// Why some of a move's changes are found by the interpreter instead of machine code; `None` if none is.
    #[must_use]
    pub fn obstacle(&self) -> Option<&Obstacle> {
        self.changed().obstacle()
    }
}
