//! The refresh cache (Finny table): for each perspective and context the last accumulator and what was active in it, so
//! that a refresh adds and subtracts what differs instead of everything.

use std::collections::HashMap;

use super::aligned::AlignedVec;
use super::model::Model;
use super::partial_refresh::PartialRefresh;
use super::simd::BackEnd;
use crate::chess::{Board, ByPerspective, Perspective};
use crate::features::{Delta, FeatureSet};

#[derive(Clone)]
struct CachedAccumulator {
    accumulator: AlignedVec<i16>,
    board: Board,
    /// How many features were active.
    active: usize,
}

/// Entries are exact whenever they were made: there is no need to forget them.
#[derive(Clone)]
pub struct RefreshCache {
    /// The numbers of the blocks that entries are sums over.
    blocks: Vec<usize>,
    /// By the blocks' contexts, all of them: a number made of many may wrap.
    entries: ByPerspective<HashMap<Box<[u32]>, CachedAccumulator>>,
    /// The contexts of the board at hand.
    contexts: Vec<u32>,
    active: Vec<u32>,
    delta: Delta,
}

/// What a refresh came to.
pub struct RefreshStats {
    /// Rows added and subtracted.
    pub rows: usize,
    /// Active features now.
    pub active: usize,
}

/// In the place of a context on a board that lacks a king; no context has this number.
const NO_KINGS: u32 = u32::MAX;

impl RefreshCache {
    /// With `parts` entries are sums over the moving blocks alone.
    pub fn new(set: &FeatureSet, parts: Option<&PartialRefresh>) -> RefreshCache {
        let blocks = parts.map_or_else(|| (0..set.blocks().len()).collect(), |parts| parts.moving_blocks().to_vec());
        let (contexts, active) = (Vec::with_capacity(blocks.len()), Vec::new());
        RefreshCache { blocks, entries: ByPerspective::default(), contexts, active, delta: Delta::default() }
    }

    /// Brings `accumulator` to `board`. With `parts`, as given to [`RefreshCache::new`], the sums over the other blocks
    /// come along.
    pub fn refresh(
        &mut self,
        set: &FeatureSet,
        model: &Model,
        back_end: BackEnd,
        (board, pov): (&Board, Perspective),
        parts: Option<(&PartialRefresh, &[i16])>,
        accumulator: &mut [i16],
    ) -> RefreshStats {
        self.contexts.clear();
        self.contexts
            .extend(self.blocks.iter().map(|block| set.encoder().context(*block, board, pov).unwrap_or(NO_KINGS)));
        if let Some(entry) = self.entries[pov].get_mut(&self.contexts[..]) {
            let delta = &mut self.delta;
            set.encoder().diff_boards(&self.blocks, &entry.board, board, pov, delta);
            let rows = delta.added.len() + delta.removed.len();
            let active = entry.active + delta.added.len() - delta.removed.len();
            if rows <= active {
                model.update(back_end, &mut entry.accumulator, &delta.added, &delta.removed);
                entry.board.clone_from(board);
                entry.active = active;
                entry.copy(model, back_end, parts, accumulator);
                return RefreshStats { rows, active };
            }
        }
        match parts {
            None => set.encoder().encode(board, pov, &mut self.active),
            Some((parts, _)) => parts.moving(set, board, pov, &mut self.active),
        }
        let active = self.active.len();
        let empty = || CachedAccumulator { accumulator: model.empty_accumulator(), board: Board::empty(), active };
        let entry = self.entries[pov].entry(self.contexts.as_slice().into()).or_insert_with(empty);
        match parts {
            None => model.refresh(back_end, &mut entry.accumulator, &self.active),
            Some(_) => {
                entry.accumulator.fill(0);
                model.update(back_end, &mut entry.accumulator, &self.active, &[]);
            }
        }
        entry.board.clone_from(board);
        entry.active = active;
        entry.copy(model, back_end, parts, accumulator);
        RefreshStats { rows: active, active }
    }
}

impl CachedAccumulator {
    fn copy(&self, model: &Model, back_end: BackEnd, parts: Option<(&PartialRefresh, &[i16])>, to: &mut [i16]) {
        match parts {
            None => to.copy_from_slice(&self.accumulator),
            Some((_, still)) => model.sum(back_end, still, &self.accumulator, to),
        }
    }
}
