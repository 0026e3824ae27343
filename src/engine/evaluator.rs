//! Evaluation along a line of moves: accumulators, how they follow the moves, and the scores they give.

use serde::Serialize;
use thiserror::Error;

use super::aligned::Aligned;
use super::cache::RefreshCache;
use super::kernels::{Blind, See};
use super::model::{Model, Scratch};
use super::simd::BackEnd;
use super::strategy::Strategy;
use crate::chess::{Board, BoardChange, ByPerspective, Color, Perspective};
use crate::features::{Delta, FeatureSet};
use crate::net::{RawScore, Scheme};
use crate::units::Centipawn;

#[derive(Debug, Error)]
pub enum EngineError {
    #[error("the network has {network} inputs a perspective, feature set `{set}` has {features} features")]
    Inputs { network: u32, set: String, features: u32 },
}

/// A position's scores, side to move's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// The raw output in internal score units, truncated toward zero.
    pub score_internal: i32,
    pub score_cp: Centipawn,
    /// The output bucket used.
    pub bucket: usize,
    pub buckets: Vec<BucketScore>,
}

/// Both parts of an output bucket's score in internal units, each truncated toward zero.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BucketScore {
    pub psqt: i32,
    pub positional: i32,
}

impl Evaluation {
    /// `raw`: every bucket's outputs; `bucket`: the one used.
    #[must_use]
    pub fn of_raw(raw: &[RawScore], bucket: usize, scheme: &Scheme) -> Evaluation {
        let score_internal = scheme.internal_score(raw[bucket].sum());
        let part = |raw: &RawScore| BucketScore {
            psqt: scheme.internal_score(raw.psqt),
            positional: scheme.internal_score(raw.positional),
        };
        let score_cp = Centipawn(scheme.centipawns(score_internal));
        Evaluation { score_internal, score_cp, bucket, buckets: raw.iter().map(part).collect() }
    }
}

/// A position on the way, with its accumulators where they are made.
#[derive(Clone)]
struct Ply {
    board: Board,
    /// The move that led here; none where a line starts.
    change: Option<BoardChange>,
    accumulators: ByPerspective<Aligned<i16>>,
    made: ByPerspective<bool>,
}

/// Evaluates positions of one line of play. [`Evaluator::set`] a position, then [`Evaluator::play`] moves.
#[derive(Clone)]
pub struct Evaluator<'a> {
    set: &'a FeatureSet,
    model: &'a Model,
    strategy: Strategy,
    back_end: BackEnd,
    /// The line so far when moves are remembered, else the present position alone; later plies are spare room.
    plies: Vec<Ply>,
    top: usize,
    pieces: usize,
    /// Active features of the present position; not kept by lazy strategies.
    sizes: ByPerspective<usize>,
    cache: Option<RefreshCache>,
    scratch: Scratch,
    active: Vec<u32>,
    deltas: ByPerspective<Delta>,
    rows: u64,
}

impl<'a> Evaluator<'a> {
    /// # Errors
    /// When the network has not as many inputs as the set has features.
    pub fn new(
        set: &'a FeatureSet,
        model: &'a Model,
        strategy: Strategy,
        back_end: BackEnd,
    ) -> Result<Evaluator<'a>, EngineError> {
        if set.num_features() != model.features() {
            let (network, features) = (model.features(), set.num_features());
            return Err(EngineError::Inputs { network, set: set.name().into(), features });
        }
        Ok(Evaluator {
            set,
            model,
            strategy,
            back_end,
            plies: vec![Ply::empty(model)],
            top: 0,
            pieces: 0,
            sizes: ByPerspective::default(),
            cache: strategy.caches().then(RefreshCache::default),
            scratch: model.scratch(),
            active: Vec::with_capacity(set.max_active()),
            deltas: ByPerspective::default(),
            rows: 0,
        })
    }

    /// Starts from a board.
    pub fn set(&mut self, board: &Board) {
        self.top = 0;
        self.pieces = board.occupied().count();
        let ply = &mut self.plies[0];
        ply.change = None;
        if self.strategy.lazy() {
            ply.board.clone_from(board);
            ply.made = ByPerspective::default();
            return;
        }
        for pov in Perspective::ALL {
            self.refresh(board, pov);
        }
    }

    /// Follows a move from `before`, the board last set or played to, to `after`.
    pub fn play(&mut self, before: &Board, change: &BoardChange, after: &Board) {
        self.pieces = after.occupied().count();
        match self.strategy {
            Strategy::Refresh => Perspective::ALL.into_iter().for_each(|pov| self.refresh(after, pov)),
            Strategy::Eager | Strategy::EagerCached => self.follow(before, change, after),
            Strategy::Lazy | Strategy::LazyCached => self.push(change, after),
        }
    }

    /// Takes the last move back and says whether there was one: only lazy strategies remember.
    pub fn undo(&mut self) -> bool {
        if !self.strategy.lazy() || self.top == 0 {
            return false;
        }
        self.top -= 1;
        self.pieces = self.plies[self.top].board.occupied().count();
        true
    }

    /// The raw output with `turn` to move, in the scheme's raw scale.
    pub fn raw(&mut self, turn: Color) -> i32 {
        self.forward(self.bucket(), turn, Blind).sum()
    }

    /// As [`Evaluator::raw`]; `see` gets what goes into every dense layer: (0, from stm's accumulator), (0, from nstm's),
    /// (1, from the first hidden layer), … Where products stay whole it gets them rounded down to activations, and relu's
    /// values clipped.
    pub fn observe(&mut self, turn: Color, see: impl FnMut(usize, &[u8])) -> i32 {
        self.forward(self.bucket(), turn, see).sum()
    }

    /// The score with `turn` to move, in internal units.
    pub fn score(&mut self, turn: Color) -> i32 {
        let raw = self.raw(turn);
        self.model.scheme().internal_score(raw)
    }

    /// All buckets' scores with `turn` to move.
    pub fn evaluate(&mut self, turn: Color) -> Evaluation {
        let buckets = 0..self.model.shape().buckets.count;
        let raw: Vec<RawScore> = buckets.map(|bucket| self.forward(bucket, turn, Blind)).collect();
        Evaluation::of_raw(&raw, self.bucket(), self.model.scheme())
    }

    /// Accumulator values of a perspective as the kernels hold them: padded with zeros, PSQT sums behind.
    pub fn accumulator(&mut self, pov: Perspective) -> &[i16] {
        self.make(pov);
        &self.plies[self.top].accumulators[pov]
    }

    /// Rows added and subtracted so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn bucket(&self) -> usize {
        self.model.shape().buckets.of(self.pieces)
    }

    fn forward(&mut self, bucket: usize, turn: Color, see: impl See) -> RawScore {
        Perspective::ALL.into_iter().for_each(|pov| self.make(pov));
        let stm = Perspective::of(turn);
        let accumulators = &self.plies[self.top].accumulators;
        let both: [&[i16]; 2] = [&accumulators[stm], &accumulators[stm.other()]];
        self.model.forward(self.back_end, bucket, both, &mut self.scratch, see)
    }

    /// Updates the present accumulators in place.
    fn follow(&mut self, before: &Board, change: &BoardChange, after: &Board) {
        self.set.updates(before, change, after, &mut self.deltas);
        for pov in Perspective::ALL {
            let delta = &self.deltas[pov];
            let rows = delta.added.len() + delta.removed.len();
            let size = self.sizes[pov] + delta.added.len() - delta.removed.len();
            // Where all blocks' contexts changed nothing is listed.
            if delta.refresh && (rows == 0 || rows >= size) {
                self.refresh(after, pov);
                continue;
            }
            self.sizes[pov] = size;
            let accumulator = &mut self.plies[self.top].accumulators[pov];
            self.model.update(self.back_end, accumulator, &delta.added, &delta.removed);
            self.rows += rows as u64;
        }
    }

    fn push(&mut self, change: &BoardChange, after: &Board) {
        self.top += 1;
        if self.plies.len() == self.top {
            self.plies.push(Ply::empty(self.model));
        }
        let ply = &mut self.plies[self.top];
        ply.board.clone_from(after);
        ply.change = Some(*change);
        ply.made = ByPerspective::default();
    }

    /// Makes the present accumulator of a perspective, if it is not.
    fn make(&mut self, pov: Perspective) {
        if !self.strategy.lazy() || self.plies[self.top].made[pov] {
            return;
        }
        // From the last one that is made, unless a context changes on the way.
        let mut first = self.top;
        while let Some(change) = &self.plies[first].change {
            let (before, after) = (&self.plies[first - 1].board, &self.plies[first].board);
            if self.set.refreshes(before, change, after, pov) {
                break;
            }
            first -= 1;
            if self.plies[first].made[pov] {
                return self.remake(first, pov);
            }
        }
        let board = self.plies[self.top].board.clone();
        self.refresh(&board, pov);
    }

    /// Makes the accumulators after `first`, each of the one before.
    fn remake(&mut self, first: usize, pov: Perspective) {
        for at in first + 1..=self.top {
            let (made, rest) = self.plies.split_at_mut(at);
            let (before, ply) = (&made[at - 1], &mut rest[0]);
            let Some(change) = &ply.change else { continue };
            let delta = &mut self.deltas[pov];
            self.set.delta(&before.board, change, &ply.board, pov, delta);
            let from = &before.accumulators[pov];
            self.model.update_from(self.back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
            ply.made[pov] = true;
            self.rows += (delta.added.len() + delta.removed.len()) as u64;
        }
    }

    fn refresh(&mut self, board: &Board, pov: Perspective) {
        let ply = &mut self.plies[self.top];
        let accumulator = &mut ply.accumulators[pov];
        ply.made[pov] = true;
        if let Some(cache) = &mut self.cache {
            let refreshed = cache.refresh(self.set, self.model, self.back_end, (board, pov), accumulator);
            self.rows += refreshed.rows as u64;
            self.sizes[pov] = refreshed.active;
            return;
        }
        self.set.active(board, pov, &mut self.active);
        self.model.refresh(self.back_end, accumulator, &self.active);
        self.rows += self.active.len() as u64;
        self.sizes[pov] = self.active.len();
    }
}

impl Ply {
    fn empty(model: &Model) -> Ply {
        let accumulators = ByPerspective::new_with(|_| model.empty_accumulator());
        Ply { board: Board::empty(), change: None, accumulators, made: ByPerspective::default() }
    }
}
