//! A compiled feature set: blocks side by side in one index space.

use crate::chess::{
    Board, BoardChange, ByPerspective, Mirror, Orientation, PackedBoard, Perspective, PieceCode, Square,
};

use super::compiled::{Bitboards, CompiledBlock, Kings};
use super::definition::{self, Definition};
use super::error::{FeatureError, SourceText};
use super::explain::{self, Explained};
use super::identity::Identity;
use super::reference;
use super::spec::{BlockSpec, DROPPED, Multiplicity};

/// The part of a set that has its own context: a stretch of indices.
#[derive(Debug)]
pub struct Block {
    pub name: String,
    /// First index.
    pub offset: u32,
    pub size: u32,
    spec: BlockSpec,
    compiled: CompiledBlock,
}

impl Block {
    pub fn spec(&self) -> &BlockSpec {
        &self.spec
    }

    /// How many contexts the block tells apart.
    pub fn contexts(&self) -> u32 {
        self.compiled.contexts().count()
    }
}

/// A compiled definition.
#[derive(Debug)]
pub struct FeatureSet {
    name: String,
    about: Option<String>,
    blocks: Vec<Block>,
    num_features: u32,
    identity: Identity,
    definition: String,
}

/// What one move changes for one perspective. Indices ascend.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// Active after and not before (under `bag`: as often as it was added).
    pub added: Vec<u32>,
    /// Active before and not after.
    pub removed: Vec<u32>,
    /// Whether some block's context changed.
    pub refresh: bool,
    scratch: Vec<u32>,
}

impl PartialEq for Delta {
    fn eq(&self, other: &Delta) -> bool {
        (&self.added, &self.removed, self.refresh) == (&other.added, &other.removed, other.refresh)
    }
}

impl FeatureSet {
    /// A path to a TOML file, a bare name (`piece`, `piece.toml`) or an inline expression.
    ///
    /// # Errors
    /// When nothing has that name, its file cannot be read, or the definition is wrong.
    pub fn resolve(request: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::compile(definition::load(request)?)
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
        let mut blocks = Vec::with_capacity(definition.blocks.len());
        for spec in definition.blocks {
            let compiled = CompiledBlock::new(&spec).map_err(|error| {
                SourceText::new(spec.name.as_str(), spec.text.as_str()).error(error.message, error.span, None)
            })?;
            let (offset, size) = (spec.offset, spec.size());
            blocks.push(Block { name: spec.name.clone(), offset, size, spec, compiled });
        }
        Ok(FeatureSet {
            name: definition.name,
            about: definition.about,
            blocks,
            num_features: definition.size,
            identity,
            definition: definition.text,
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
        self.append(&Bitboards::from(board), pov, out);
    }

    /// Both perspectives' active features; the vectors are cleared first.
    pub fn active_packed(&self, board: &PackedBoard, out: &mut ByPerspective<Vec<u32>>) {
        let boards = Bitboards::from(board);
        for pov in Perspective::ALL {
            out[pov].clear();
            self.append(&boards, pov, &mut out[pov]);
        }
    }

    fn append(&self, boards: &Bitboards, pov: Perspective, out: &mut Vec<u32>) {
        for block in &self.blocks {
            block.append(boards, pov, out);
        }
    }

    /// One block's active features (indices of the whole set), appended to `out`.
    pub fn active_block(&self, block: usize, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        self.blocks[block].append(&Bitboards::from(board), pov, out);
    }

    /// The same by the reference encoder, ascending.
    pub fn reference(&self, board: &Board, pov: Perspective) -> Vec<u32> {
        let features = |block: &Block| {
            let elements = reference::active(&block.spec, board, pov).into_iter();
            elements.filter_map(|element| block.spec.index_of(element)).collect::<Vec<_>>()
        };
        let mut active: Vec<u32> = self.blocks.iter().flat_map(features).collect();
        active.sort_unstable();
        active
    }

    /// One block's active features by the reference encoder, once for every binding that yields them, with the squares
    /// and values they stand for; ascending.
    pub fn explain(&self, block: usize, board: &Board, pov: Perspective) -> Vec<Explained> {
        explain::explain(&self.blocks[block].spec, board, pov)
    }

    /// The number of a block's context: between boards of equal context no refresh is needed. `None` without kings.
    pub fn context(&self, block: usize, board: &Board, pov: Perspective) -> Option<u32> {
        let block = &self.blocks[block];
        let turned = |king: Option<Square>| king.map(|square| u32::from(square) ^ turn(&block.spec, pov));
        let own = turned(board.king_of(pov.own()))?;
        let enemy = turned(board.king_of(pov.other().own()))?;
        Some(block.compiled.contexts().id(own, enemy))
    }

    /// Distinct combinations of the blocks' contexts over all placements of the kings (over pairs that are not
    /// adjacent, when some block looks at the enemy king).
    pub fn contexts(&self) -> usize {
        let tables: Vec<_> = self.blocks.iter().map(|block| block.compiled.contexts()).collect();
        let enemies = if tables.iter().any(|table| table.reads_enemy()) { 64 } else { 1 };
        let pairs = (0..64).flat_map(|own| (0..enemies).map(move |enemy| (own, enemy)));
        let apart = pairs.filter(|(own, enemy)| enemies == 1 || !super::compiled::too_close(*own, *enemy));
        let mut seen: Vec<Vec<u32>> =
            apart.map(|(own, enemy)| tables.iter().map(|table| table.id(own, enemy)).collect()).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    }

    /// The exact change a move makes, given also when there is a refresh.
    pub fn delta(&self, before: &Board, change: &BoardChange, after: &Board, pov: Perspective, out: &mut Delta) {
        out.added.clear();
        out.removed.clear();
        out.refresh = false;
        let boards = [Bitboards::from(before), Bitboards::from(after)];
        for (at, block) in self.blocks.iter().enumerate() {
            let refresh = self.context(at, before, pov) != self.context(at, after, pov);
            out.refresh |= refresh;
            let from = [out.removed.len(), out.added.len()];
            match block.moved(&boards, pov) {
                Some(kings) => block.moved_rows(&kings, change, pov, out),
                None => {
                    block.compiled.active(&boards[0], pov, block.offset, &mut out.removed);
                    block.compiled.active(&boards[1], pov, block.offset, &mut out.added);
                }
            }
            out.removed[from[0]..].sort_unstable();
            out.added[from[1]..].sort_unstable();
            cancel(&mut out.removed, from[0], &mut out.added, from[1]);
            if block.shares_rows() && block.moved(&boards, pov).is_some() {
                block.keep_changed(&boards, pov, out, from);
            }
            block.select(&mut out.removed, from[0]);
            block.select(&mut out.added, from[1]);
        }
        // Blocks under one selection share a range of indices.
        if self.blocks.iter().any(|block| block.spec.kept.is_some()) {
            out.removed.sort_unstable();
            out.added.sort_unstable();
        }
    }
}

impl Block {
    fn append(&self, boards: &Bitboards, pov: Perspective, out: &mut Vec<u32>) {
        let from = out.len();
        self.compiled.active(boards, pov, self.offset, out);
        self.select(out, from);
    }

    /// Renumbers the block's elements from `from` on by the selection, if there is one.
    fn select(&self, rows: &mut Vec<u32>, from: usize) {
        let Some(kept) = &self.spec.kept else { return };
        let mut end = from;
        for at in from..rows.len() {
            let index = kept[(rows[at] - self.offset) as usize];
            rows[end] = index.wrapping_add(self.offset);
            end += usize::from(index != DROPPED);
        }
        rows.truncate(end);
    }

    /// The kings, when the moved pieces' rows tell the change: tables say everything and the kings' rows stay.
    fn moved(&self, boards: &[Bitboards; 2], pov: Perspective) -> Option<Kings> {
        let kings = self.compiled.kings(&boards[0], pov)?;
        let same = self.compiled.same_rows(&kings, &self.compiled.kings(&boards[1], pov)?);
        (self.compiled.tabular() && same).then_some(kings)
    }

    fn moved_rows(&self, kings: &Kings, change: &BoardChange, pov: Perspective, out: &mut Delta) {
        for (square, piece) in change.removed() {
            self.compiled.piece_rows(kings, (square, PieceCode::of(piece)), pov, self.offset, &mut out.removed);
        }
        for (square, piece) in change.added() {
            self.compiled.piece_rows(kings, (square, PieceCode::of(piece)), pov, self.offset, &mut out.added);
        }
    }

    /// Whether several pieces may yield one row that counts once.
    fn shares_rows(&self) -> bool {
        self.compiled.multiplicity() == Multiplicity::Set && !self.compiled.injective()
    }

    /// Drops rows that another piece still yields after the move, or yielded before it.
    fn keep_changed(&self, boards: &[Bitboards; 2], pov: Perspective, out: &mut Delta, from: [usize; 2]) {
        let Delta { added, removed, scratch, .. } = out;
        for (rows, start, other) in [(removed, from[0], &boards[1]), (added, from[1], &boards[0])] {
            scratch.clear();
            self.compiled.active(other, pov, self.offset, scratch);
            scratch.sort_unstable();
            let tail = rows.split_off(start);
            rows.extend(tail.into_iter().filter(|row| scratch.binary_search(row).is_err()));
            let mut distinct = rows.split_off(start);
            distinct.dedup();
            rows.append(&mut distinct);
        }
    }
}

/// The part of an orientation's mask that does not depend on a king.
fn turn(spec: &BlockSpec, pov: Perspective) -> u32 {
    Orientation { mirror: Mirror::None, ..spec.orientation }.mask(Square::A1, pov)
}

/// Removes what stands in both sorted tails, occurrence by occurrence.
fn cancel(left: &mut Vec<u32>, left_from: usize, right: &mut Vec<u32>, right_from: usize) {
    let (mut l, mut r) = (left_from, right_from);
    let (mut kept_l, mut kept_r) = (left_from, right_from);
    while l < left.len() && r < right.len() {
        match left[l].cmp(&right[r]) {
            std::cmp::Ordering::Equal => (l, r) = (l + 1, r + 1),
            std::cmp::Ordering::Less => {
                left[kept_l] = left[l];
                (l, kept_l) = (l + 1, kept_l + 1);
            }
            std::cmp::Ordering::Greater => {
                right[kept_r] = right[r];
                (r, kept_r) = (r + 1, kept_r + 1);
            }
        }
    }
    left.drain(kept_l..l);
    right.drain(kept_r..r);
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
