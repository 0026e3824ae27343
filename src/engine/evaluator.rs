//! Evaluation along a line of moves: accumulators, how they follow the moves, and the scores they give.

use serde::Serialize;
use thiserror::Error;

use super::aligned::AlignedVec;
use super::kernels::{NoObserver, Observer};
use super::model::{Model, Scratch};
use super::partial_refresh::PartialRefresh;
use super::refresh_cache::RefreshCache;
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
    accumulators: ByPerspective<AlignedVec<i16>>,
    /// Sums over the blocks that no king moves, where there are others.
    still: ByPerspective<AlignedVec<i16>>,
    made: ByPerspective<Made>,
}

/// What of a ply's accumulators is made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Made {
    #[default]
    Nothing,
    /// The sum over the blocks that no king moves.
    Still,
    All,
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
    /// Of the present position; not followed where there is but one output bucket.
    pieces: usize,
    /// Active features of the present position that a refresh recomputes; not kept by lazy strategies.
    sizes: ByPerspective<usize>,
    parts: Option<PartialRefresh>,
    /// Changed rows of the blocks that no king moves.
    still: Delta,
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
        let parts = if strategy == Strategy::Refresh { None } else { PartialRefresh::of(set) };
        Ok(Evaluator {
            set,
            model,
            strategy,
            back_end,
            plies: vec![Ply::empty(model, parts.is_some())],
            cache: strategy.caches().then(|| RefreshCache::new(set, parts.as_ref())),
            parts,
            still: Delta::default(),
            top: 0,
            pieces: 0,
            sizes: ByPerspective::default(),
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
        if self.model.shape().buckets.count > 1 {
            // Of `before`, which is looked at anyway.
            let [removed, added] = change.counts();
            self.pieces = before.occupied().count() + added - removed;
        }
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
        self.forward(self.bucket(), turn, NoObserver).sum()
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
        let raw: Vec<RawScore> = buckets.map(|bucket| self.forward(bucket, turn, NoObserver)).collect();
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

    /// The output bucket of the present position.
    #[must_use]
    pub fn bucket(&self) -> usize {
        self.model.bucket(self.pieces)
    }

    fn forward(&mut self, bucket: usize, turn: Color, see: impl Observer) -> RawScore {
        Perspective::ALL.into_iter().for_each(|pov| self.make(pov));
        let stm = Perspective::of(turn);
        let accumulators = &self.plies[self.top].accumulators;
        let both: [&[i16]; 2] = [&accumulators[stm], &accumulators[stm.other()]];
        self.model.forward(self.back_end, bucket, both, &mut self.scratch, see)
    }

    /// Updates the present accumulators in place.
    fn follow(&mut self, before: &Board, change: &BoardChange, after: &Board) {
        self.set.encoder().diff_or_refresh(before, change, after, &mut self.deltas);
        for pov in Perspective::ALL {
            self.update_still(pov);
            let delta = &self.deltas[pov];
            let (added, removed) = match self.parts {
                None => (delta.added.len(), delta.removed.len()),
                Some(_) => (delta.added.len() - self.still.added.len(), delta.removed.len() - self.still.removed.len()),
            };
            let size = self.sizes[pov] + added - removed;
            // Where all blocks' contexts changed nothing is listed.
            if delta.refresh && (added + removed == 0 || added + removed >= size) {
                match self.parts {
                    None => self.refresh(after, pov),
                    Some(_) => self.refresh_moving(after, pov),
                }
                continue;
            }
            self.sizes[pov] = size;
            let accumulator = &mut self.plies[self.top].accumulators[pov];
            self.model.update(self.back_end, accumulator, &delta.added, &delta.removed);
            self.rows += (delta.added.len() + delta.removed.len()) as u64;
        }
    }

    /// The present ply's sum over the blocks that no king moves, where it is kept, by `self.deltas`.
    fn update_still(&mut self, pov: Perspective) {
        let Some(parts) = &self.parts else { return };
        let delta = &self.deltas[pov];
        parts.split(&delta.added, &mut self.still.added);
        parts.split(&delta.removed, &mut self.still.removed);
        let still = &mut self.plies[self.top].still[pov];
        self.model.update(self.back_end, still, &self.still.added, &self.still.removed);
        self.rows += (self.still.added.len() + self.still.removed.len()) as u64;
    }

    fn push(&mut self, change: &BoardChange, after: &Board) {
        self.top += 1;
        if self.plies.len() == self.top {
            self.plies.push(Ply::empty(self.model, self.parts.is_some()));
        }
        let ply = &mut self.plies[self.top];
        ply.board.clone_from(after);
        ply.change = Some(*change);
        ply.made = ByPerspective::default();
    }

    /// Makes the present accumulator of a perspective, if it is not.
    fn make(&mut self, pov: Perspective) {
        if !self.strategy.lazy() || self.plies[self.top].made[pov] == Made::All {
            return;
        }
        // From the last one that is made: all of it, unless a context changes on the way.
        let wanted = |context: Option<usize>| if context.is_some() { Made::Still } else { Made::All };
        let (mut first, mut context) = (self.top, None);
        while let Some(change) = &self.plies[first].change {
            let (before, after) = (&self.plies[first - 1].board, &self.plies[first].board);
            if context.is_none() && self.set.encoder().refreshes(before, change, after, pov) {
                context = Some(first);
                if self.parts.is_none() {
                    break;
                }
            }
            first -= 1;
            if self.plies[first].made[pov] >= wanted(context) {
                return self.remake(first, context, pov);
            }
        }
        self.refresh_top(pov);
    }

    /// Makes the accumulators after `first`, each of the one before; from the ply of a new context on all of them, before
    /// it the sums over the blocks that no king moves.
    fn remake(&mut self, first: usize, context: Option<usize>, pov: Perspective) {
        for at in first + 1..=self.top {
            let (made, rest) = self.plies.split_at_mut(at);
            let (before, ply) = (&made[at - 1], &mut rest[0]);
            let Some(change) = &ply.change else { continue };
            let delta = &mut self.deltas[pov];
            self.set.encoder().diff(&before.board, change, &ply.board, pov, delta);
            if let Some(parts) = &self.parts {
                parts.split(&delta.added, &mut self.still.added);
                parts.split(&delta.removed, &mut self.still.removed);
                let (added, removed) = (&self.still.added, &self.still.removed);
                self.model.update_from(self.back_end, &before.still[pov], &mut ply.still[pov], added, removed);
                self.rows += (added.len() + removed.len()) as u64;
            }
            if context.is_some_and(|context| at < context) {
                ply.made[pov] = Made::Still;
                continue;
            }
            if context == Some(at) {
                let board = ply.board.clone();
                self.refresh_moving_of(at, &board, pov);
                continue;
            }
            let from = &before.accumulators[pov];
            self.model.update_from(self.back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
            ply.made[pov] = Made::All;
            self.rows += (delta.added.len() + delta.removed.len()) as u64;
        }
    }

    fn refresh_top(&mut self, pov: Perspective) {
        let board = self.plies[self.top].board.clone();
        self.refresh(&board, pov);
    }

    /// Recomputes everything.
    fn refresh(&mut self, board: &Board, pov: Perspective) {
        let Some(parts) = &self.parts else { return self.refresh_moving(board, pov) };
        parts.still(self.set, board, pov, &mut self.active);
        self.model.refresh(self.back_end, &mut self.plies[self.top].still[pov], &self.active);
        self.rows += self.active.len() as u64;
        self.refresh_moving(board, pov);
    }

    fn refresh_moving(&mut self, board: &Board, pov: Perspective) {
        self.refresh_moving_of(self.top, board, pov);
    }

    /// Recomputes a ply's accumulator but for the blocks that no king moves, whose sum is made.
    fn refresh_moving_of(&mut self, at: usize, board: &Board, pov: Perspective) {
        let ply = &mut self.plies[at];
        let accumulator = &mut ply.accumulators[pov];
        ply.made[pov] = Made::All;
        let parts = self.parts.as_ref().map(|parts| (parts, &ply.still[pov][..]));
        if let Some(cache) = &mut self.cache {
            let refreshed = cache.refresh(self.set, self.model, self.back_end, (board, pov), parts, accumulator);
            self.rows += refreshed.rows as u64;
            self.sizes[pov] = refreshed.active;
            return;
        }
        match parts {
            None => {
                self.set.encoder().encode(board, pov, &mut self.active);
                self.model.refresh(self.back_end, accumulator, &self.active);
            }
            Some((parts, still)) => {
                parts.moving(self.set, board, pov, &mut self.active);
                self.model.update_from(self.back_end, still, accumulator, &self.active, &[]);
            }
        }
        self.rows += self.active.len() as u64;
        self.sizes[pov] = self.active.len();
    }
}

impl Ply {
    fn empty(model: &Model, parts: bool) -> Ply {
        let accumulators = ByPerspective::new_with(|_| model.empty_accumulator());
        let still = if parts { accumulators.clone() } else { ByPerspective::new_with(|_| AlignedVec::zeroed(0)) };
        Ply { board: Board::empty(), change: None, accumulators, still, made: ByPerspective::default() }
    }
}
