//! Evaluation along a line of moves: a pair of accumulators, how they follow the moves, and the scores they give.

use serde::Serialize;
use thiserror::Error;

use super::aligned::Aligned;
use super::model::{Model, Scratch};
use super::simd::BackEnd;
use crate::chess::{Board, BoardChange, ByPerspective, Color, Perspective};
use crate::features::{Delta, FeatureSet};
use crate::net::Scheme;
use crate::units::Centipawn;

/// How accumulators follow a move.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Recompute both perspectives from all active features.
    Refresh,
    /// Add and subtract the changed rows; recompute a perspective whose context changed.
    Incremental,
}

impl Strategy {
    pub const ALL: [Strategy; 2] = [Strategy::Refresh, Strategy::Incremental];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Refresh => "refresh",
            Strategy::Incremental => "incremental",
        }
    }
}

#[derive(Debug, Error)]
pub enum EngineError {
    #[error("the network has {network} inputs a perspective, feature set `{set}` has {features} features")]
    Inputs { network: u32, set: String, features: u32 },
}

/// A position's scores, side to move's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// The raw output over the scheme's divisor, truncated toward zero.
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
    /// Of a network with one bucket and no PSQT outputs.
    #[must_use]
    pub fn of_raw(raw: i32, scheme: &Scheme) -> Evaluation {
        let score_internal = scheme.internal_score(raw);
        let only = BucketScore { psqt: 0, positional: score_internal };
        let score_cp = Centipawn(scheme.centipawns(score_internal));
        Evaluation { score_internal, score_cp, bucket: 0, buckets: vec![only] }
    }
}

/// Evaluates positions of one line of play. [`Evaluator::set`] a position, then [`Evaluator::play`] moves.
#[derive(Clone)]
pub struct Evaluator<'a> {
    set: &'a FeatureSet,
    model: &'a Model,
    strategy: Strategy,
    back_end: BackEnd,
    accumulators: ByPerspective<Aligned<i16>>,
    scratch: Scratch,
    active: Vec<u32>,
    delta: Delta,
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
            accumulators: ByPerspective::new_with(|_| model.empty_accumulator()),
            scratch: model.scratch(),
            active: Vec::with_capacity(set.max_active()),
            delta: Delta::default(),
        })
    }

    /// Starts from a board.
    pub fn set(&mut self, board: &Board) {
        for pov in Perspective::ALL {
            self.refresh(board, pov);
        }
    }

    /// Follows a move from `before`, the board last set or played to, to `after`.
    pub fn play(&mut self, before: &Board, change: &BoardChange, after: &Board) {
        match self.strategy {
            Strategy::Refresh => self.set(after),
            Strategy::Incremental => {
                for pov in Perspective::ALL {
                    if self.set.refreshes(before, change, after, pov) {
                        self.refresh(after, pov);
                        continue;
                    }
                    self.set.delta(before, change, after, pov, &mut self.delta);
                    let Delta { added, removed, .. } = &self.delta;
                    self.model.update(self.back_end, &mut self.accumulators[pov], added, removed);
                }
            }
        }
    }

    /// The raw output with `turn` to move: internal score units times the scheme's divisor.
    pub fn raw(&mut self, turn: Color) -> i32 {
        self.observe(turn, |_, _| {})
    }

    /// As [`Evaluator::raw`]; `see` gets the activations of every layer but the output: (0, stm's L1), (0, nstm's L1),
    /// (1, the first hidden layer's), …
    pub fn observe(&mut self, turn: Color, see: impl FnMut(usize, &[u8])) -> i32 {
        let stm = Perspective::of(turn);
        let (own, their) = (&self.accumulators[stm], &self.accumulators[stm.other()]);
        self.model.forward(self.back_end, own, their, &mut self.scratch, see)
    }

    /// The score with `turn` to move.
    pub fn evaluate(&mut self, turn: Color) -> Evaluation {
        Evaluation::of_raw(self.raw(turn), self.model.scheme())
    }

    /// Accumulator values of a perspective, padded with zeros to whole vectors.
    #[must_use]
    pub fn accumulator(&self, pov: Perspective) -> &[i16] {
        &self.accumulators[pov]
    }

    fn refresh(&mut self, board: &Board, pov: Perspective) {
        self.set.active(board, pov, &mut self.active);
        self.model.refresh(self.back_end, &mut self.accumulators[pov], &self.active);
    }
}
