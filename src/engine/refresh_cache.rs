//! The refresh cache (Finny table): the last accumulator per perspective and context, with the board it belongs to. A
//! refresh adds and subtracts the difference to that board instead of all active rows.

use std::collections::HashMap;
use std::sync::Arc;

use super::aligned::AlignedVec;
use super::model::Model;
use super::refresh_rule::PartialRefresh;
use crate::chess::{ByPerspective, Perspective, PieceBoard};
use crate::cpu::BackEnd;
use crate::features::{Delta, Encoder, FeatureSet};

#[derive(Clone)]
struct CachedAccumulator {
    accumulator: AlignedVec<i16>,
    board: PieceBoard,
    /// Number of active features.
    active: usize,
}

/// An entry stays exact however old it is, so the cache is never cleared.
#[derive(Clone)]
pub struct RefreshCache {
    /// The encoder of the blocks that entries are sums over.
    encoder: Arc<Encoder>,
    entries: Vec<CachedAccumulator>,
    /// The entry of each context, keyed by the contexts of all blocks: their product may not fit 64 bits.
    numbers: ByPerspective<HashMap<Box<[u32]>, usize>>,
    /// Buffers for the key of the present board, and for the changes of its entry.
    contexts: Vec<u32>,
    delta: Delta,
    is_partial: bool,
}

/// An accumulator to refresh: its board and perspective, and the network. With partial refresh, the accumulator is a
/// sum without biases.
pub struct RefreshRequest<'a> {
    pub model: &'a Model,
    pub back_end: BackEnd,
    pub board: &'a PieceBoard,
    pub pov: Perspective,
}

/// The changes that bring a cache entry to a board.
#[derive(Copy, Clone, Debug, Default)]
pub struct EntryChanges {
    entry: usize,
    /// Whether the entry starts anew, with all active features added.
    is_new: bool,
    /// Rows added and subtracted.
    pub rows: usize,
    /// Active features of the board.
    pub active: usize,
}

/// Stands for the context of a board that lacks a king; no context has this number.
const NO_KINGS: u32 = u32::MAX;

impl RefreshCache {
    /// With `partial`, entries are sums over the king-dependent blocks alone.
    pub fn new(set: &FeatureSet, partial: Option<&PartialRefresh>) -> RefreshCache {
        let encoder = partial.map_or_else(|| Arc::clone(set.encoder()), |partial| Arc::clone(partial.dependent()));
        RefreshCache {
            contexts: Vec::new(),
            encoder,
            entries: Vec::new(),
            numbers: ByPerspective::default(),
            delta: Delta::default(),
            is_partial: partial.is_some(),
        }
    }

    /// Brings `accumulator` to the request's board.
    pub fn refresh(&mut self, request: &RefreshRequest<'_>, accumulator: &mut [i16]) -> EntryChanges {
        let mut delta = std::mem::take(&mut self.delta);
        let changes = self.find_changes(request, &mut delta);
        request.model.prefetch(&delta.removed);
        request.model.prefetch(&delta.added);
        self.apply(request.model, request.back_end, changes, &delta, accumulator);
        self.delta = delta;
        changes
    }

    /// The first half of [`RefreshCache::refresh`]: finds the changes in the entry of the request's board. Each call is
    /// followed by one of [`RefreshCache::apply`], in the same order.
    pub fn find_changes(&mut self, request: &RefreshRequest<'_>, delta: &mut Delta) -> EntryChanges {
        let RefreshRequest { model, board, pov, .. } = *request;
        self.contexts.clear();
        match board.kings() {
            Some(kings) => self.encoder.append_contexts(kings, pov, &mut self.contexts),
            None => self.contexts.push(NO_KINGS),
        }
        let known = self.numbers[pov].get(&self.contexts[..]).copied();
        if let Some(number) = known {
            let entry = &mut self.entries[number];
            self.encoder.diff_boards(&entry.board, board, pov, delta);
            let rows = delta.added.len() + delta.removed.len();
            let active = entry.active + delta.added.len() - delta.removed.len();
            if rows <= active {
                entry.board.clone_from(board);
                entry.active = active;
                return EntryChanges { entry: number, is_new: false, rows, active };
            }
        }
        delta.removed.clear();
        self.encoder.encode_board(board, pov, &mut delta.added);
        let active = delta.added.len();
        let number = known.unwrap_or_else(|| {
            let accumulator = model.empty_accumulator();
            self.numbers[pov].insert(self.contexts.as_slice().into(), self.entries.len());
            self.entries.push(CachedAccumulator { accumulator, board: PieceBoard::empty(), active });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[number];
        entry.board.clone_from(board);
        entry.active = active;
        EntryChanges { entry: number, is_new: true, rows: active, active }
    }

    /// The second half of [`RefreshCache::refresh`]: brings the entry up to date and copies it to `accumulator`.
    pub fn apply(
        &mut self,
        model: &Model,
        back_end: BackEnd,
        changes: EntryChanges,
        delta: &Delta,
        accumulator: &mut [i16],
    ) {
        let entry = &mut self.entries[changes.entry].accumulator;
        if changes.is_new {
            if self.is_partial {
                // The biases are in the sum over the stable blocks.
                entry.fill(0);
            } else {
                entry.copy_from_slice(model.biases());
            }
        }
        model.update(back_end, entry, &delta.added, &delta.removed);
        accumulator.copy_from_slice(entry);
    }
}
