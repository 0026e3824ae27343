//! A compiled feature set: blocks side by side in one index space.

use std::ops::Range;

use crate::chess::{Board, BoardChange, ByPerspective, PackedBoard, Perspective};

#[cfg(target_arch = "x86_64")]
use super::compiled::Lanes;
use super::compiled::{CompiledBlock, Move, Needs, PieceList, Placement, RowBuffer, Rows};
use super::definition::{self, Definition};
use super::error::{FeatureError, SourceText};
use super::explain::{self, Explained};
use super::identity::Identity;
use super::reference;
use super::spec::{BlockSpec, DROPPED};

/// The part of a set that has its own context: a stretch of indices.
#[derive(Debug)]
pub struct Block {
    pub name: String,
    /// Lowest index.
    pub offset: u32,
    /// Number of features.
    pub size: u32,
    /// The block's indices, ascending, where a selection leaves other blocks' between them.
    scattered: Option<Box<[u32]>>,
    compiled: CompiledBlock,
}

impl Block {
    fn new(spec: &BlockSpec) -> Result<Block, FeatureError> {
        let compiled = CompiledBlock::new(spec).map_err(|error| {
            SourceText::new(spec.name.as_str(), spec.text.as_str()).error(error.message, error.span, None)
        })?;
        let indices = spec.selected().map(|selected| {
            let mut indices: Vec<u32> = selected.collect();
            indices.sort_unstable();
            indices
        });
        let (offset, size) = match &indices {
            None => (spec.offset, spec.product.size),
            Some(indices) => (indices.first().map_or(spec.offset, |first| *first), indices.len() as u32),
        };
        let gaps = |indices: &Vec<u32>| indices.last().is_some_and(|last| last - offset >= size);
        let scattered = indices.filter(gaps).map(Vec::into_boxed_slice);
        Ok(Block { name: spec.name.clone(), offset, size, scattered, compiled })
    }

    /// The block's indices; none where a selection leaves other blocks' between them.
    pub fn range(&self) -> Option<Range<u32>> {
        self.scattered.is_none().then(|| self.offset..self.offset + self.size)
    }

    /// Whether a feature of the set is the block's.
    #[inline]
    pub fn has(&self, index: u32) -> bool {
        match &self.scattered {
            None => index.wrapping_sub(self.offset) < self.size,
            Some(indices) => indices.binary_search(&index).is_ok(),
        }
    }

    /// The block's indices, ascending.
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let range = self.range();
        range.into_iter().flatten().chain(self.scattered.iter().flatten().copied())
    }

    #[cfg(test)]
    pub(super) fn compiled(&self) -> &CompiledBlock {
        &self.compiled
    }

    pub fn spec(&self) -> &BlockSpec {
        self.compiled.spec()
    }

    /// How many contexts the block tells apart.
    pub fn contexts(&self) -> u32 {
        self.compiled.contexts().count()
    }

    /// Whether [`Block::contexts`] is an upper bound.
    pub fn contexts_are_a_bound(&self) -> bool {
        self.compiled.contexts().is_bound()
    }
}

/// A compiled definition.
#[derive(Debug)]
pub struct FeatureSet {
    name: String,
    about: Option<String>,
    blocks: Vec<Block>,
    needs: Needs,
    /// Whether some block is under a selection.
    selects: bool,
    /// Whether every block is one table over pieces, and none is under a selection.
    walks: bool,
    /// Where they are, and the CPU can encode all pieces of a board at once.
    #[cfg(target_arch = "x86_64")]
    lanes: Option<Lanes>,
    num_features: u32,
    identity: Identity,
    definition: String,
    remarks: Vec<String>,
}

/// What one move changes for one perspective. Indices ascend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Active after and not before (under `bag`: as often as it was added).
    pub added: Vec<u32>,
    /// Active before and not after.
    pub removed: Vec<u32>,
    /// Whether some block's context changed.
    pub refresh: bool,
}

impl Delta {
    /// Nothing changed.
    fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
        self.refresh = false;
    }
}

/// What encoding needs between its steps.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    active: ByPerspective<Vec<u32>>,
    pieces: PieceList,
}

impl FeatureSet {
    /// A path to a TOML file, a bare name (`piece`, `piece.toml`) or an inline expression.
    ///
    /// # Errors
    /// When nothing has that name, its file cannot be read, or the definition is wrong.
    pub fn resolve(request: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::compile(definition::load(request)?)
    }

    /// The shipped set of a name, whatever a folder `feature_sets` of the user's holds: what file formats refer to.
    ///
    /// # Errors
    /// When none of that name is shipped.
    pub fn shipped(name: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::compile(definition::shipped(name)?)
    }

    /// From the self-contained text [`FeatureSet::definition`] gives.
    ///
    /// # Errors
    /// When the text is no definition.
    pub fn from_definition(text: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::compile(definition::parse(text)?)
    }

    fn compile(definition: Definition) -> Result<FeatureSet, FeatureError> {
        let identity = Identity::of(&canonical(&definition.blocks));
        let blocks = definition.blocks.iter().map(Block::new).collect::<Result<Vec<Block>, FeatureError>>()?;
        let walks = blocks.iter().all(|block| block.spec().kept.is_none() && block.compiled.walks());
        Ok(FeatureSet {
            name: definition.name,
            about: definition.about,
            needs: blocks.iter().fold(Needs::default(), |needs, block| needs.and(block.compiled.needs())),
            selects: blocks.iter().any(|block| block.spec().kept.is_some()),
            walks,
            #[cfg(target_arch = "x86_64")]
            lanes: Lanes::detect().filter(|_| walks && blocks.iter().all(|block| block.compiled.sums())),
            blocks,
            num_features: definition.size,
            identity,
            definition: definition.text,
            remarks: definition.remarks,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Inputs a perspective.
    pub fn num_features(&self) -> u32 {
        self.num_features
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// A TOML definition that needs no other file.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// What is legal in the definition's files and has less effect than it seems, one line each.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// No legal position has more active features a perspective (a bound, not the maximum).
    pub fn max_active(&self) -> usize {
        self.blocks.iter().map(|block| block.compiled.max_active(block.size)).sum()
    }

    /// Bytes of the encoder's tables.
    pub fn table_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.compiled.table_bytes()).sum()
    }

    /// The active features of a board as `pov` sees it, block by block; `out` is cleared first.
    pub fn active(&self, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        out.clear();
        self.append(&Placement::of(board, self.needs), pov, out);
    }

    /// Both perspectives' active features; the vectors are cleared first.
    pub fn active_packed(&self, board: &PackedBoard, out: &mut ByPerspective<Vec<u32>>) {
        let placement = Placement::packed(board, self.needs);
        for pov in Perspective::ALL {
            out[pov].clear();
            self.append(&placement, pov, &mut out[pov]);
        }
    }

    /// Appends the active features of a board to `sides`: as the side to move sees it, then as the other does; marks
    /// its end.
    pub fn append_packed(
        &self,
        board: &PackedBoard,
        stm: Perspective,
        sides: &mut [RowBuffer; 2],
        scratch: &mut Scratch,
    ) {
        self.append_boards(std::iter::once((board, stm)), sides, scratch);
    }

    /// Appends the active features of boards, each with its side to move: to `sides` as that side sees them, then as the
    /// other does. Marks every board's end.
    pub fn append_boards<'a>(
        &self,
        boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
        sides: &mut [RowBuffer; 2],
        scratch: &mut Scratch,
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = self.lanes {
            let blocks = self.blocks.iter().map(|block| (&block.compiled, block.offset));
            return lanes.append(&blocks, boards, sides);
        }
        for (board, stm) in boards {
            if self.walks {
                scratch.pieces.fill(board);
                for block in &self.blocks {
                    block.compiled.walk_both(&scratch.pieces, stm, block.offset, sides);
                }
            } else {
                self.active_packed(board, &mut scratch.active);
                for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
                    side.extend(&scratch.active[pov]);
                }
            }
            sides.iter_mut().for_each(RowBuffer::end);
        }
    }

    fn append(&self, placement: &Placement, pov: Perspective, out: &mut Vec<u32>) {
        for block in &self.blocks {
            block.append(placement, pov, out);
        }
    }

    /// One block's active features (indices of the whole set), appended to `out`.
    pub fn active_block(&self, block: usize, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        let block = &self.blocks[block];
        block.append(&Placement::of(board, block.compiled.needs()), pov, out);
    }

    /// The same by the reference encoder, ascending.
    pub fn reference(&self, board: &Board, pov: Perspective) -> Vec<u32> {
        let features = |block: &Block| {
            let elements = reference::active(block.spec(), board, pov).into_iter();
            elements.filter_map(|element| block.spec().index_of(element)).collect::<Vec<_>>()
        };
        let mut active: Vec<u32> = self.blocks.iter().flat_map(features).collect();
        active.sort_unstable();
        active
    }

    /// One block's active features by the reference encoder, once for every binding that yields them, with the squares
    /// and values they stand for; ascending.
    pub fn explain(&self, block: usize, board: &Board, pov: Perspective) -> Vec<Explained> {
        explain::explain(self.blocks[block].spec(), board, pov)
    }

    /// The number of a block's context: between boards of equal context no refresh is needed. `None` without kings.
    pub fn context(&self, block: usize, board: &Board, pov: Perspective) -> Option<u32> {
        let king = |pov: Perspective| board.king_of(pov.own()).map(u32::from);
        Some(self.blocks[block].compiled.context([king(pov)?, king(pov.other())?], pov))
    }

    /// Distinct combinations of the blocks' contexts over all placements of the kings (over pairs that are not
    /// adjacent, when some block looks at the enemy king).
    pub fn contexts(&self) -> usize {
        let tables: Vec<_> = self.blocks.iter().map(|block| block.compiled.contexts()).collect();
        let enemies = if tables.iter().any(|table| table.reads_enemy()) { 64 } else { 1 };
        let pairs = (0..64).flat_map(|own| (0..enemies).map(move |enemy| (own, enemy)));
        let apart = pairs.filter(|(own, enemy)| enemies == 1 || !crate::chess::too_close(*own, *enemy));
        let mut seen: Vec<Vec<u32>> =
            apart.map(|(own, enemy)| tables.iter().map(|table| table.id(own, enemy)).collect()).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    }

    /// The exact change a move makes, given also when there is a refresh.
    pub fn delta(&self, before: &Board, change: &BoardChange, after: &Board, pov: Perspective, out: &mut Delta) {
        self.follow(&Move::new(before, change, after).seen_by(pov), out);
    }

    /// [`FeatureSet::delta`] for both perspectives.
    pub fn deltas(&self, before: &Board, change: &BoardChange, after: &Board, out: &mut ByPerspective<Delta>) {
        let mv = Move::new(before, change, after);
        if !self.follow_pieces(change, mv.kings_staying(), out) {
            for pov in Perspective::ALL {
                self.follow(&mv.seen_by(pov), &mut out[pov]);
            }
        }
    }

    /// [`FeatureSet::deltas`] for whoever recomputes a perspective on a refresh: where every block's context has changed
    /// the lists stay empty.
    pub fn updates(&self, before: &Board, change: &BoardChange, after: &Board, out: &mut ByPerspective<Delta>) {
        let mv = Move::new(before, change, after);
        if self.follow_pieces(change, mv.kings_staying(), out) {
            return;
        }
        for pov in Perspective::ALL {
            let (mv, out) = (mv.seen_by(pov), &mut out[pov]);
            if self.blocks.iter().all(|block| block.compiled.refreshes(&mv)) {
                out.clear();
                out.refresh = true;
            } else {
                self.follow(&mv, out);
            }
        }
    }

    /// What is active on one board only and on the other only, of blocks (by number) whose contexts on both are the same;
    /// in no order, and without saying whether there is a refresh.
    pub fn between(&self, blocks: &[usize], before: &Board, after: &Board, pov: Perspective, out: &mut Delta) {
        let boards = Move::between(before, after).seen_by(pov);
        out.clear();
        let Delta { added, removed, .. } = out;
        for block in blocks {
            let block = &self.blocks[*block];
            let from = [removed.len(), added.len()];
            block.compiled.between(&boards, block.first_element(), &mut Rows { removed, added });
            block.select(removed, from[0]);
            block.select(added, from[1]);
        }
    }

    /// Whether a move changes some block's context: what [`FeatureSet::delta`] says, without the change.
    pub fn refreshes(&self, before: &Board, change: &BoardChange, after: &Board, pov: Perspective) -> bool {
        let mv = Move::new(before, change, after).seen_by(pov);
        self.blocks.iter().any(|block| block.compiled.refreshes(&mv))
    }

    /// Follows a move where blocks are tables over pieces and White's and Black's king stay on `kings`; else says no.
    #[inline(always)]
    fn follow_pieces(&self, change: &BoardChange, kings: Option<[u32; 2]>, out: &mut ByPerspective<Delta>) -> bool {
        let (true, Some([white, black])) = (self.walks, kings) else { return false };
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
            block.compiled.moved(change, pov, kings, block.offset, &mut Rows { removed, added });
        }
    }

    fn follow(&self, mv: &Move<'_>, out: &mut Delta) {
        out.clear();
        let Delta { added, removed, refresh } = out;
        let mut boards = None;
        for block in &self.blocks {
            *refresh |= block.compiled.refreshes(mv);
            if self.selects {
                let from = [removed.len(), added.len()];
                block.compiled.delta(mv, &mut boards, block.first_element(), &mut Rows { removed, added });
                block.select(removed, from[0]);
                block.select(added, from[1]);
            } else {
                block.compiled.delta(mv, &mut boards, block.offset, &mut Rows { removed, added });
            }
        }
        if self.selects {
            // Blocks under one selection share a range of indices.
            removed.sort_unstable();
            added.sort_unstable();
        }
    }
}

impl Block {
    fn append(&self, placement: &Placement, pov: Perspective, out: &mut Vec<u32>) {
        let from = out.len();
        self.compiled.active(placement, pov, self.first_element(), out);
        self.select(out, from);
    }

    /// The number of the product's first element: under a selection it has no index yet.
    fn first_element(&self) -> u32 {
        if self.spec().kept.is_some() { 0 } else { self.offset }
    }

    /// Turns the block's elements from `from` on into indices by the selection, if there is one.
    fn select(&self, rows: &mut Vec<u32>, from: usize) {
        let Some(kept) = &self.spec().kept else { return };
        let mut end = from;
        for at in from..rows.len() {
            let index = kept[rows[at] as usize];
            rows[end] = index.wrapping_add(self.spec().offset);
            end += usize::from(index != DROPPED);
        }
        rows.truncate(end);
    }
}

/// The text identities are hashed from: one line a block.
fn canonical(blocks: &[BlockSpec]) -> String {
    let line = |block: &BlockSpec| {
        let tables: String =
            block.buckets().iter().map(|bucket| format!(" {}={:?}", bucket.name, bucket.table)).collect();
        let kept = block.kept.as_ref().map_or_else(String::new, |kept| {
            let kept = kept.iter().enumerate().filter(|(_, index)| **index != DROPPED);
            format!(" selected {} {:?}", block.offset, kept.collect::<Vec<_>>())
        });
        format!("{:?} {:?} {}{tables}{kept}\n", block.orientation, block.multiplicity, block.text)
    };
    blocks.iter().map(line).collect()
}
