//! The refresh cache (Finny table): the last accumulator per perspective and context, with the board it belongs to. A
//! refresh adds and subtracts the difference to that board instead of all active rows.

use std::collections::HashMap;

use super::aligned::AlignedVec;
use super::model::Model;
use super::refresh_rule::PartialRefresh;
use super::simd::BackEnd;
use crate::chess::{Board, ByPerspective, Perspective};
use crate::features::{Delta, FeatureSet};

#[derive(Clone)]
struct CachedAccumulator {
    accumulator: AlignedVec<i16>,
    board: Board,
    /// Number of active features.
    active: usize,
}

/// An entry stays exact however old it is, so the cache is never cleared.
#[derive(Clone)]
pub struct RefreshCache {
    /// The numbers of the blocks that entries are sums over.
    blocks: Vec<usize>,
    /// Keyed by the contexts of all blocks: their product may not fit 64 bits.
    entries: ByPerspective<HashMap<Box<[u32]>, CachedAccumulator>>,
    /// Buffer for the key of the present board.
    contexts: Vec<u32>,
    active: Vec<u32>,
    delta: Delta,
}

/// An accumulator to refresh: its board and perspective, and the network.
pub struct RefreshRequest<'a> {
    pub set: &'a FeatureSet,
    pub model: &'a Model,
    pub back_end: BackEnd,
    pub board: &'a Board,
    pub pov: Perspective,
    /// With partial refresh: the split. The accumulator is then a sum without biases.
    pub partial: Option<&'a PartialRefresh>,
}

/// The cost and result of a refresh.
pub struct RefreshStats {
    /// Rows added and subtracted.
    pub rows: usize,
    /// Active features after it.
    pub active: usize,
}

/// Stands for the context of a board that lacks a king; no context has this number.
const NO_KINGS: u32 = u32::MAX;

impl RefreshCache {
    /// With `partial`, entries are sums over the king-dependent blocks alone.
    pub fn new(set: &FeatureSet, partial: Option<&PartialRefresh>) -> RefreshCache {
        let all = || (0..set.blocks().len()).collect();
        let blocks: Vec<usize> = partial.map_or_else(all, |partial| partial.dependent_blocks().to_vec());
        let (contexts, active) = (Vec::with_capacity(blocks.len()), Vec::new());
        RefreshCache { blocks, entries: ByPerspective::default(), contexts, active, delta: Delta::default() }
    }

    /// Brings `accumulator` to the request's board. The request has `partial` if [`RefreshCache::new`] had.
    pub fn refresh(&mut self, request: &RefreshRequest<'_>, accumulator: &mut [i16]) -> RefreshStats {
        let RefreshRequest { set, model, back_end, board, pov, partial } = *request;
        let context = |block: &usize| set.encoder().context(*block, board, pov).unwrap_or(NO_KINGS);
        self.contexts.clear();
        self.contexts.extend(self.blocks.iter().map(context));
        if let Some(entry) = self.entries[pov].get_mut(&self.contexts[..]) {
            let delta = &mut self.delta;
            set.encoder().diff_boards(&self.blocks, &entry.board, board, pov, delta);
            let rows = delta.added.len() + delta.removed.len();
            let active = entry.active + delta.added.len() - delta.removed.len();
            if rows <= active {
                model.update(back_end, &mut entry.accumulator, &delta.added, &delta.removed);
                entry.board.clone_from(board);
                entry.active = active;
                accumulator.copy_from_slice(&entry.accumulator);
                return RefreshStats { rows, active };
            }
        }
        match partial {
            None => set.encoder().encode(board, pov, &mut self.active),
            Some(partial) => partial.encode_dependent(set, board, pov, &mut self.active),
        }
        let active = self.active.len();
        let empty = || CachedAccumulator { accumulator: model.empty_accumulator(), board: Board::empty(), active };
        let entry = self.entries[pov].entry(self.contexts.as_slice().into()).or_insert_with(empty);
        match partial {
            None => model.refresh(back_end, &mut entry.accumulator, &self.active),
            Some(_) => {
                // The biases are in the sum over the stable blocks.
                entry.accumulator.fill(0);
                model.update(back_end, &mut entry.accumulator, &self.active, &[]);
            }
        }
        entry.board.clone_from(board);
        entry.active = active;
        accumulator.copy_from_slice(&entry.accumulator);
        RefreshStats { rows: active, active }
    }
}
