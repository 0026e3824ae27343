//! The encoder of a feature set: the active features of a board, and the changes between two boards.
//!
//! [`Encoder`] is the one surface; how a block is encoded or followed is decided in [`super::compiled`]. Every method
//! agrees with [`FeatureSet::reference`](super::FeatureSet::reference) (`tests/features.rs`, `tests/generated.rs`).

use crate::chess::{Board, BoardChange, ByPerspective, PackedBoard, Perspective};

#[cfg(target_arch = "x86_64")]
use super::compiled::Avx512Encoder;
use super::compiled::{
    OrientedPair, PairGroup, PieceList, Placement, PlacementNeeds, RowBuffer, RowChanges, Transition,
};
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
    blocks: Vec<Block>,
    needs: PlacementNeeds,
    /// Whether some block's rows are turned into indices by a table, as under a selection.
    is_renumbered: bool,
    /// Blocks of pairs that are encoded together, and the number of each block's group.
    groups: Vec<PairGroup>,
    group_of: Vec<Option<usize>>,
    /// Whether every block is a piece table and none is renumbered.
    all_piece_tables: bool,
    /// Present where all blocks are piece tables that the CPU can encode for all pieces of a board at once.
    #[cfg(target_arch = "x86_64")]
    avx512: Option<Avx512Encoder>,
}

/// The change of one perspective's active features between two boards. Indices ascend, unless a method says otherwise.
///
/// ```
/// use fsbench::chess::{BoardChange, Chess, Perspective};
/// use fsbench::features::{Delta, FeatureSet};
/// use shakmaty::{Position, uci::UciMove};
///
/// let set = FeatureSet::resolve("square(P) for P in pieces")?;
/// let start = Chess::default();
/// let mv = "g1f3".parse::<UciMove>().unwrap().to_move(&start).unwrap();
/// let change = BoardChange::of(mv, start.turn());
/// let after = change.applied_to(start.board());
/// let mut delta = Delta::default();
/// set.encoder().diff(start.board(), &change, &after, Perspective::White, &mut delta);
/// assert_eq!(delta, Delta { added: vec![21], removed: vec![6], refresh: false });
/// # Ok::<(), fsbench::features::FeatureError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Active after and not before; under `bag` once per binding added.
    pub added: Vec<u32>,
    /// Active before and not after.
    pub removed: Vec<u32>,
    /// Whether some block's context changed.
    pub refresh: bool,
}

impl Delta {
    /// The number of changed rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        (self.added.len() + self.removed.len()) as u64
    }

    fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
        self.refresh = false;
    }
}

/// A set's blocks in two parts, whose changes [`Encoder::diff_in_parts`] lists apart.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The part of every block, and of every group of blocks.
    of_block: Vec<usize>,
    of_group: Vec<usize>,
    /// The blocks in no group, each with its part.
    ungrouped: Vec<(usize, usize)>,
}

/// Buffers that [`Encoder::append_batch`] reuses from call to call.
#[derive(Clone, Debug, Default)]
pub struct EncodeScratch {
    active: ByPerspective<Vec<u32>>,
    pieces: PieceList,
}

impl Encoder {
    pub(super) fn new(blocks: Vec<Block>) -> Encoder {
        let all_piece_tables = blocks.iter().all(|block| !block.is_renumbered() && block.compiled.is_piece_table());
        let candidates = blocks.iter().map(|block| (!block.merges).then_some((&block.compiled, block.offset)));
        let (groups, group_of) = PairGroup::all(candidates);
        Encoder {
            groups,
            group_of,
            needs: blocks.iter().fold(PlacementNeeds::default(), |needs, block| needs.and(block.compiled.needs())),
            is_renumbered: blocks.iter().any(Block::is_renumbered),
            all_piece_tables,
            #[cfg(target_arch = "x86_64")]
            avx512: Avx512Encoder::detect()
                .filter(|_| all_piece_tables && blocks.iter().all(|block| block.compiled.has_sum_tables())),
            blocks,
        }
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Bytes of the encoder's tables.
    pub fn table_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::table_bytes).sum();
        blocks + self.groups.iter().map(PairGroup::bytes).sum::<usize>()
    }

    /// Clears `out` and writes the active features of a board to it as `pov` sees them, block by block. A board without
    /// both kings has no active features.
    pub fn encode(&self, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        out.clear();
        self.append(&Placement::of(board, self.needs), pov, out);
    }

    /// The vector instructions with which [`Encoder::append_batch`] encodes this set on this CPU: `avx512` or `none`.
    #[must_use]
    pub const fn vectors(&self) -> &'static str {
        #[cfg(target_arch = "x86_64")]
        if self.avx512.is_some() {
            return "avx512";
        }
        "none"
    }

    /// [`Encoder::encode`] for both perspectives of a packed board.
    pub fn encode_packed(&self, board: &PackedBoard, out: &mut ByPerspective<Vec<u32>>) {
        let placement = Placement::packed(board, self.needs);
        for pov in Perspective::ALL {
            out[pov].clear();
            self.append_ungrouped(&placement, pov, &mut out[pov]);
        }
        for group in &self.groups {
            group.append(&placement, &Perspective::ALL, &mut [&mut out.white, &mut out.black]);
        }
    }

    /// Clears `out` and writes the active features of some blocks, by number, to it. A group of blocks is encoded once.
    pub fn encode_blocks(&self, blocks: &[usize], board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        out.clear();
        let needs = |block: &usize| self.blocks[*block].compiled.needs();
        let placement =
            Placement::of(board, blocks.iter().map(needs).fold(PlacementNeeds::default(), PlacementNeeds::and));
        for (number, group) in self.groups.iter().enumerate() {
            if self.is_within(number, blocks) {
                group.append(&placement, &[pov], &mut [&mut *out]);
            }
        }
        for block in blocks {
            if !self.group_of[*block].is_some_and(|group| self.is_within(group, blocks)) {
                self.blocks[*block].append(&placement, pov, out);
            }
        }
    }

    /// Whether all blocks of a group are among `blocks`.
    fn is_within(&self, group: usize, blocks: &[usize]) -> bool {
        let mut own = (0..self.blocks.len()).filter(|block| self.group_of[*block] == Some(group));
        own.all(|block| blocks.contains(&block))
    }

    /// Appends one block's active features to `out`, as indices of the whole set.
    pub fn append_block(&self, block: usize, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        let block = &self.blocks[block];
        block.append(&Placement::of(board, block.compiled.needs()), pov, out);
    }

    /// Appends the active features of boards, each with its side to move: the side to move's to `sides[0]`, the other
    /// side's to `sides[1]`. Marks the end of every board in both.
    pub fn append_batch<'a>(
        &self,
        boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
        sides: &mut [RowBuffer; 2],
        scratch: &mut EncodeScratch,
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = self.avx512 {
            let blocks = self.blocks.iter().map(|block| (&block.compiled, block.offset));
            return avx512.append(&blocks, boards, sides);
        }
        for (board, stm) in boards {
            if self.all_piece_tables {
                scratch.pieces.fill(board);
                for block in &self.blocks {
                    block.compiled.append_both(&scratch.pieces, stm, block.offset, sides);
                }
            } else {
                self.encode_packed(board, &mut scratch.active);
                for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
                    side.extend(&scratch.active[pov]);
                }
            }
            sides.iter_mut().for_each(RowBuffer::end);
        }
    }

    fn append(&self, placement: &Placement, pov: Perspective, out: &mut Vec<u32>) {
        self.append_ungrouped(placement, pov, out);
        for group in &self.groups {
            group.append(placement, &[pov], &mut [&mut *out]);
        }
    }

    fn append_ungrouped(&self, placement: &Placement, pov: Perspective, out: &mut Vec<u32>) {
        for (block, group) in self.blocks.iter().zip(&self.group_of) {
            if group.is_none() {
                block.append(placement, pov, out);
            }
        }
    }

    /// The number of a block's context; boards of equal context need no refresh between them. `None` without both
    /// kings.
    pub fn context(&self, block: usize, board: &Board, pov: Perspective) -> Option<u32> {
        let king = |pov: Perspective| board.king_of(pov.own()).map(u32::from);
        Some(self.blocks[block].compiled.context([king(pov)?, king(pov.other())?], pov))
    }

    /// Whether a move changes some block's context.
    pub fn refreshes(&self, before: &Board, change: &BoardChange, after: &Board, pov: Perspective) -> bool {
        let mv = Transition::new(before, change, after).seen_by(pov);
        self.blocks.iter().any(|block| block.compiled.refreshes(&mv))
    }

    /// Whether a move changes the context of one of these blocks.
    pub fn refreshes_any(
        &self,
        blocks: &[usize],
        before: &Board,
        change: &BoardChange,
        after: &Board,
        pov: Perspective,
    ) -> bool {
        let mv = Transition::new(before, change, after).seen_by(pov);
        blocks.iter().any(|block| self.blocks[*block].compiled.refreshes(&mv))
    }

    /// The exact change that a move makes for one perspective, listed also when there is a refresh.
    pub fn diff(&self, before: &Board, change: &BoardChange, after: &Board, pov: Perspective, out: &mut Delta) {
        self.follow(&Transition::new(before, change, after).seen_by(pov), out);
    }

    /// [`Encoder::diff`] for both perspectives, in no order.
    pub fn diff_both(&self, before: &Board, change: &BoardChange, after: &Board, out: &mut ByPerspective<Delta>) {
        let mv = Transition::new(before, change, after);
        if !self.follow_pieces(change, mv.kings_staying(), out) {
            for pov in Perspective::ALL {
                self.follow_blocks(&mv.seen_by(pov), &mut out[pov]);
            }
            self.follow_groups(&mv, &Perspective::ALL, &mut [&mut out.white, &mut out.black]);
        }
    }

    /// [`Encoder::diff_both`] for callers that recompute a perspective on a refresh: the lists stay empty where the
    /// contexts of all blocks change.
    pub fn diff_or_refresh(&self, before: &Board, change: &BoardChange, after: &Board, out: &mut ByPerspective<Delta>) {
        let mv = Transition::new(before, change, after);
        if self.follow_pieces(change, mv.kings_staying(), out) {
            return;
        }
        let mut is_followed = [false; 2];
        for pov in Perspective::ALL {
            let mv = mv.seen_by(pov);
            let out = &mut out[pov];
            if self.blocks.iter().all(|block| block.compiled.refreshes(&mv)) {
                out.clear();
                out.refresh = true;
            } else {
                self.follow_blocks(&mv, out);
                is_followed[pov.index()] = true;
            }
        }
        match is_followed {
            [true, true] => self.follow_groups(&mv, &Perspective::ALL, &mut [&mut out.white, &mut out.black]),
            [true, false] => self.follow_groups(&mv, &[Perspective::White], &mut [&mut out.white]),
            [false, true] => self.follow_groups(&mv, &[Perspective::Black], &mut [&mut out.black]),
            [false, false] => {}
        }
    }

    /// The blocks in two parts, the second with the blocks for which `is_second`; `None` if blocks that are encoded
    /// together are in both.
    pub fn parts(&self, is_second: impl Fn(usize) -> bool) -> Option<Parts> {
        let of_block: Vec<usize> = (0..self.blocks.len()).map(|block| usize::from(is_second(block))).collect();
        let of_group = |group: usize| {
            let mut parts =
                of_block.iter().zip(&self.group_of).filter(|(_, own)| **own == Some(group)).map(|(part, _)| *part);
            let first = parts.next()?;
            parts.all(|part| part == first).then_some(first)
        };
        let of_group = (0..self.groups.len()).map(of_group).collect::<Option<_>>()?;
        let is_ungrouped = |(block, _): &(usize, usize)| self.group_of[*block].is_none();
        let ungrouped = of_block.iter().copied().enumerate().filter(is_ungrouped).collect();
        Some(Parts { of_block, of_group, ungrouped })
    }

    /// The change of both parts for each of `povs`, in no order; nothing is listed for a block whose context changes.
    /// `found` is told of changed features as soon as they are known, so that their rows can be loaded while others are
    /// looked for.
    pub fn diff_in_parts(
        &self,
        [before, after]: [&Board; 2],
        change: &BoardChange,
        parts: &Parts,
        povs: &[Perspective],
        out: &mut ByPerspective<[Delta; 2]>,
        mut found: impl FnMut(&[u32]),
    ) {
        let white = Transition::new(before, change, after);
        for &pov in povs {
            let mv = white.seen_by(pov);
            let out = &mut out[pov];
            out.iter_mut().for_each(Delta::clear);
            let mut boards = None;
            if white.kings_staying().is_some() {
                for &(block, part) in &parts.ungrouped {
                    let Delta { added, removed, .. } = &mut out[part];
                    self.follow_block(&self.blocks[block], &mv, &mut boards, [added, removed]);
                }
            } else {
                for ((block, group), part) in self.blocks.iter().zip(&self.group_of).zip(&parts.of_block) {
                    let Delta { added, removed, refresh } = &mut out[*part];
                    if block.compiled.refreshes(&mv) {
                        *refresh = true;
                    } else if group.is_none() {
                        self.follow_block(block, &mv, &mut boards, [added, removed]);
                    }
                }
            }
            for Delta { added, removed, .. } in out.iter() {
                found(removed);
                found(added);
            }
        }
        for (group, part) in self.groups.iter().zip(&parts.of_group) {
            let may_cancel = group.find_changes([before, after], change, povs);
            for &pov in povs {
                let Delta { added, removed, refresh } = &mut out[pov][*part];
                if !*refresh {
                    let from = [removed.len(), added.len()];
                    group.append_changes(pov, [&mut *removed, &mut *added]);
                    if may_cancel {
                        RowChanges { removed, added, offset: 0 }.cancel(from);
                    }
                    found(&removed[from[0]..]);
                    found(&added[from[1]..]);
                }
            }
        }
    }

    /// The change between any two boards, over blocks (by number) whose contexts are equal on both. The indices are in
    /// no order and `refresh` stays false.
    pub fn diff_boards(&self, blocks: &[usize], before: &Board, after: &Board, pov: Perspective, out: &mut Delta) {
        let boards = Transition::between(before, after).seen_by(pov);
        out.clear();
        let Delta { added, removed, .. } = out;
        for (number, group) in self.groups.iter().enumerate() {
            if self.is_within(number, blocks) {
                let from = [removed.len(), added.len()];
                group.both([before, after], pov, [&mut *removed, &mut *added]);
                RowChanges { removed, added, offset: 0 }.cancel(from);
            }
        }
        for block in blocks {
            if self.group_of[*block].is_some_and(|group| self.is_within(group, blocks)) {
                continue;
            }
            let block = &self.blocks[*block];
            if block.diff_merged(&boards, [&mut *removed, &mut *added]) {
                continue;
            }
            let from = [removed.len(), added.len()];
            let mut rows = RowChanges { removed, added, offset: block.first_element() };
            block.compiled.diff_boards(&boards, &mut rows);
            block.select(removed, from[0]);
            block.select(added, from[1]);
        }
    }

    /// Follows a move for both perspectives where all blocks are piece tables and neither king moves; otherwise returns
    /// false and leaves `out` alone. `kings`: the squares of White's and Black's king, where they stay.
    #[inline(always)]
    fn follow_pieces(&self, change: &BoardChange, kings: Option<[u32; 2]>, out: &mut ByPerspective<Delta>) -> bool {
        let (true, Some([white, black])) = (self.all_piece_tables, kings) else { return false };
        // Not a loop: compiled for each perspective, it takes less time.
        self.follow_pieces_of(change, Perspective::White, [white, black], &mut out.white);
        self.follow_pieces_of(change, Perspective::Black, [black, white], &mut out.black);
        true
    }

    #[inline(always)]
    fn follow_pieces_of(&self, change: &BoardChange, pov: Perspective, kings: [u32; 2], out: &mut Delta) {
        out.clear();
        let Delta { added, removed, .. } = out;
        for block in &self.blocks {
            let mut rows = RowChanges { removed, added, offset: block.offset };
            block.compiled.piece_table_delta(change, pov, kings, &mut rows);
        }
    }

    fn follow(&self, mv: &Transition<'_>, out: &mut Delta) {
        self.follow_blocks(mv, out);
        self.follow_groups(mv, &[mv.perspective()], &mut [&mut *out]);
        // Tables may change the order, and blocks under one selection share a range of indices.
        if !self.groups.is_empty() || self.is_renumbered {
            out.removed.sort_unstable();
            out.added.sort_unstable();
        }
    }

    /// Adds the changes of grouped blocks to the others' changes, for each perspective with a delta.
    fn follow_groups(&self, mv: &Transition<'_>, povs: &[Perspective], out: &mut [&mut Delta]) {
        let boards = mv.boards();
        let change = mv.change();
        for group in &self.groups {
            let may_cancel = group.find_changes(boards, change, povs);
            for (pov, Delta { added, removed, .. }) in povs.iter().zip(out.iter_mut()) {
                let from = [removed.len(), added.len()];
                group.append_changes(*pov, [&mut *removed, &mut *added]);
                if may_cancel {
                    RowChanges { removed, added, offset: 0 }.cancel(from);
                }
            }
        }
    }

    fn follow_blocks(&self, mv: &Transition<'_>, out: &mut Delta) {
        out.clear();
        let Delta { added, removed, refresh } = out;
        let mut boards = None;
        for (block, group) in self.blocks.iter().zip(&self.group_of) {
            *refresh |= block.compiled.refreshes(mv);
            if group.is_none() {
                self.follow_block(block, mv, &mut boards, [&mut *added, &mut *removed]);
            }
        }
    }

    /// Appends the change of a block's features.
    #[inline]
    fn follow_block(
        &self,
        block: &Block,
        mv: &Transition<'_>,
        boards: &mut Option<OrientedPair>,
        [added, removed]: [&mut Vec<u32>; 2],
    ) {
        if block.diff_merged(mv, [&mut *removed, &mut *added]) {
            return;
        }
        let from = [removed.len(), added.len()];
        let offset = if self.is_renumbered { block.first_element() } else { block.offset };
        block.compiled.delta(mv, boards, &mut RowChanges { removed, added, offset });
        if self.is_renumbered {
            block.select(removed, from[0]);
            block.select(added, from[1]);
        }
    }
}
