//! Evaluation of lines of play that are known beforehand, as in the games of a file: the changed features of some
//! positions are found first, then their accumulators are computed together, then their dense layers.

use super::aligned::AlignedVec;
use super::evaluator::{EngineError, Evaluator};
use super::kernels::{DenseStack, LineChanges};
use super::model::{LayerScratch, LineBuffers, LineSummand, Model};
use super::refresh_cache::{EntryChanges, RefreshCache, RefreshRequest};
use super::refresh_rule::{PartialRefresh, recomputes};
use super::simd::VectorKernel;
use super::strategy::Strategy;
use crate::chess::{Board, BoardChange, ByPerspective, Color, Perspective, PieceBoard};
use crate::cpu::BackEnd;
use crate::features::{Delta, DeltaState, FeatureSet, RowList};
use crate::net::{Activation, BucketChooser, RawScore, WeightType};

/// A position of a line.
#[derive(Copy, Clone, Debug)]
pub struct LinePosition<'a> {
    pub turn: Color,
    pub step: LineStep<'a>,
}

/// How a position of a line comes about.
#[derive(Copy, Clone, Debug)]
pub enum LineStep<'a> {
    /// A new line starts at a board.
    Start(&'a PieceBoard),
    /// The change that a move makes on the board of the position before.
    Move(&'a BoardChange),
}

/// A [`LinePosition`] that owns its change or, at the start of a line, its board.
#[derive(Clone, Debug)]
pub struct PlayedPosition {
    turn: Color,
    step: PlayedStep,
}

#[derive(Clone, Debug)]
enum PlayedStep {
    // Most positions are no starts.
    Start(Box<PieceBoard>),
    Move(BoardChange),
}

impl PlayedPosition {
    /// The first position of a line.
    #[must_use]
    pub fn start(board: &Board, turn: Color) -> PlayedPosition {
        PlayedPosition { turn, step: PlayedStep::Start(Box::new(PieceBoard::of(board))) }
    }

    /// The position after a move, with `turn` to move there.
    #[must_use]
    pub const fn after(change: BoardChange, turn: Color) -> PlayedPosition {
        PlayedPosition { turn, step: PlayedStep::Move(change) }
    }

    #[must_use]
    pub fn of_line(&self) -> LinePosition<'_> {
        let step = match &self.step {
            PlayedStep::Start(board) => LineStep::Start(board),
            PlayedStep::Move(change) => LineStep::Move(change),
        };
        LinePosition { turn: self.turn, step }
    }
}

/// Evaluates lines of play whose moves are known beforehand, faster than an [`Evaluator`], which must be ready to
/// evaluate after each move. The scores are the same.
///
/// ```
/// use fsbench::chess::{BoardChange, Chess, Color, PieceBoard};
/// use fsbench::engine::{BackEnd, LineEvaluator, LinePosition, LineStep, Model};
/// use fsbench::features::FeatureSet;
/// use fsbench::net::{FloatNet, Scheme, Shape, quantise};
/// use shakmaty::{Position, uci::UciMove};
///
/// let set = FeatureSet::resolve("piece")?;
/// let float = FloatNet::zeros(&Shape::plain(set.num_features(), 16, vec![]));
/// let model = Model::new(&quantise(&float, &Scheme::stockfish())?);
///
/// let start = Chess::default();
/// let mv = "e2e4".parse::<UciMove>()?.to_move(&start)?;
/// let change = BoardChange::of(mv, start.turn());
/// let board = PieceBoard::of(start.board());
/// let line = [
///     LinePosition { turn: Color::White, step: LineStep::Start(&board) },
///     LinePosition { turn: Color::Black, step: LineStep::Move(&change) },
/// ];
/// let mut scores = Vec::new();
/// LineEvaluator::new(&set, &model, BackEnd::best())?.evaluate(line, |raw| scores.push(model.scheme().score(raw)));
/// assert_eq!(scores, [0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LineEvaluator<'a>(Implementation<'a>);

#[derive(Clone)]
enum Implementation<'a> {
    Batched(Box<Batched<'a>>),
    /// For networks whose activation is not pairwise, and CPUs with few vector registers.
    MoveByMove(Box<Evaluator<'a>>),
}

impl<'a> LineEvaluator<'a> {
    /// # Errors
    /// When the network's number of inputs differs from the set's number of features.
    pub fn new(set: &'a FeatureSet, model: &'a Model, back_end: BackEnd) -> Result<LineEvaluator<'a>, EngineError> {
        // With sixteen registers, tiles are so narrow that batches took 1.3 times as long as single moves (networks of
        // Stockfish 15.1 and 19, Zen 3).
        if back_end.registers() >= 32 {
            return LineEvaluator::batched(set, model, back_end);
        }
        let single = Evaluator::new(set, model, Strategy::Eager, back_end)?;
        Ok(LineEvaluator(Implementation::MoveByMove(Box::new(single))))
    }

    /// As [`LineEvaluator::new`], but with batches of positions also where these are slower.
    ///
    /// # Errors
    /// As [`LineEvaluator::new`].
    pub fn batched(set: &'a FeatureSet, model: &'a Model, back_end: BackEnd) -> Result<LineEvaluator<'a>, EngineError> {
        // Checks the number of inputs, too.
        let single = Evaluator::new(set, model, Strategy::Eager, back_end)?;
        let is_supported =
            model.shape().activation == Activation::Pairwise && model.scheme().weights != WeightType::I16;
        Ok(LineEvaluator(if is_supported {
            Implementation::Batched(Box::new(Batched::new(set, model, single.buckets().clone(), back_end)))
        } else {
            Implementation::MoveByMove(Box::new(single))
        }))
    }

    /// Calls `each` with the raw score of every position, in order. A position with a move follows the position before
    /// it, also the last position of the previous call.
    pub fn evaluate<'b>(
        &mut self,
        positions: impl IntoIterator<Item = LinePosition<'b>>,
        mut each: impl FnMut(RawScore),
    ) {
        match &mut self.0 {
            Implementation::Batched(evaluator) => {
                for position in positions {
                    evaluator.add(&position);
                    if evaluator.added.turns.len() == BATCH_POSITIONS {
                        evaluator.finish(&mut each);
                    }
                }
                evaluator.finish(&mut each);
            }
            Implementation::MoveByMove(evaluator) => {
                for position in positions {
                    evaluator.advance(&position);
                    each(evaluator.raw_score(position.turn));
                }
            }
        }
    }

    /// Rows added and subtracted since [`LineEvaluator::new`].
    #[must_use]
    pub fn rows(&self) -> u64 {
        match &self.0 {
            Implementation::Batched(evaluator) => evaluator.rows,
            Implementation::MoveByMove(evaluator) => evaluator.rows(),
        }
    }
}

/// Positions evaluated at a time.
const BATCH_POSITIONS: usize = 16;

/// A refresh whose changed rows are known.
#[derive(Clone, Default)]
struct Pending {
    changes: EntryChanges,
    delta: Delta,
    /// Which of the fresh accumulators it makes.
    number: usize,
}

/// Positions whose changed features are known.
#[derive(Clone, Default)]
struct AddedPositions {
    turns: Vec<Color>,
    buckets: Vec<usize>,
    /// How the accumulators change, position by position.
    steps: ByPerspective<[LineChanges; 2]>,
    /// Accumulators of refreshes, the first `fresh_count` of them in use.
    fresh: Vec<AlignedVec<i16>>,
    fresh_count: usize,
    /// Refreshes found and not yet computed; the first `pending_count` of them.
    pending: Vec<Pending>,
    pending_count: usize,
}

/// Evaluates up to [`BATCH_POSITIONS`] positions at a time. Rows are prefetched when they are found to change, and read
/// when all changes are known.
#[derive(Clone)]
struct Batched<'a> {
    set: &'a FeatureSet,
    model: &'a Model,
    buckets: BucketChooser,
    back_end: BackEnd,
    partial: Option<PartialRefresh>,
    cache: RefreshCache,
    /// The boards of the last two positions, the last one first.
    boards: [PieceBoard; 2],
    /// Their states, as an [`Evaluator`]'s.
    states: [[DeltaState; 2]; 2],
    /// The sums of rows of the last position computed. With partial refresh: over the stable blocks, and over the
    /// others.
    accumulators: ByPerspective<[AlignedVec<i16>; 2]>,
    /// The positions to compute.
    added: AddedPositions,
    /// Features that a refresh would recompute.
    active_counts: ByPerspective<usize>,
    parts: [ByPerspective<Delta>; 2],
    deltas: ByPerspective<Delta>,
    active: RowList,
    sides: Vec<usize>,
    activations: AlignedVec<u8>,
    masks: AlignedVec<u16>,
    psqt: ByPerspective<AlignedVec<i16>>,
    scratch: LayerScratch,
    rows: u64,
}

impl<'a> Batched<'a> {
    fn new(set: &'a FeatureSet, model: &'a Model, buckets: BucketChooser, back_end: BackEnd) -> Batched<'a> {
        let partial = PartialRefresh::new(set);
        let empty = || model.empty_accumulator();
        let others = if partial.is_some() { empty() } else { AlignedVec::zeroed(0) };
        Batched {
            set,
            model,
            buckets,
            back_end,
            cache: RefreshCache::new(set, partial.as_ref()),
            boards: [const { PieceBoard::empty() }; 2],
            states: Default::default(),
            accumulators: ByPerspective::new_with(|_| [empty(), others.clone()]),
            partial,
            added: AddedPositions::default(),
            active_counts: ByPerspective::default(),
            parts: Default::default(),
            deltas: ByPerspective::default(),
            active: RowList::default(),
            sides: Vec::with_capacity(BATCH_POSITIONS),
            activations: AlignedVec::zeroed(BATCH_POSITIONS * model.input_bytes()),
            masks: AlignedVec::zeroed(BATCH_POSITIONS * model.input_masks()),
            psqt: ByPerspective::new_with(|_| AlignedVec::zeroed(BATCH_POSITIONS * model.psqt_width())),
            scratch: model.layer_scratch(),
            rows: 0,
        }
    }

    /// Finds the changes at the next position.
    fn add(&mut self, position: &LinePosition<'_>) {
        let LinePosition { turn, step } = *position;
        match step {
            LineStep::Start(board) => {
                self.boards[0].clone_from(board);
                self.states[0].iter_mut().for_each(DeltaState::clear);
                Perspective::ALL.into_iter().for_each(|pov| self.refresh(pov));
            }
            LineStep::Move(change) => {
                let [now, before] = &mut self.boards;
                before.clone_from(now);
                now.apply(change);
                self.states.swap(0, 1);
                self.states[0].iter_mut().for_each(DeltaState::clear);
                self.follow(change);
            }
        }
        self.added.turns.push(turn);
        self.added.buckets.push(self.buckets.of_pieces(&self.boards[0], turn));
    }

    /// Finds the changes from the board before the last move.
    fn follow(&mut self, change: &BoardChange) {
        let model = self.model;
        let [after, before] = &self.boards;
        let prefetch = |features: &[u32]| model.prefetch(features);
        let Some(partial) = &self.partial else {
            let [[after_state, _], [before_state, _]] = &mut self.states;
            let states = [before_state, after_state];
            self.set.encoder().diff_or_refresh([before, after], change, states, &mut self.deltas);
            model.prefetch_deltas(&self.deltas);
            for pov in Perspective::ALL {
                let delta = &self.deltas[pov];
                let changed = delta.added.len() + delta.removed.len();
                let active = self.active_counts[pov] + delta.added.len() - delta.removed.len();
                if recomputes(delta, changed, active) {
                    self.refresh(pov);
                } else {
                    self.active_counts[pov] = active;
                    self.added.steps[pov][0].push_delta(&delta.removed, &delta.added);
                }
            }
            return;
        };
        let [after_states, before_states] = &mut self.states;
        let states = [before_states, after_states];
        partial.diff([before, after], change, states, &mut self.parts, prefetch);
        for pov in Perspective::ALL {
            let [stable, dependent] = self.parts.each_ref().map(|part| &part[pov]);
            if stable.refresh {
                self.refresh(pov);
                continue;
            }
            self.added.steps[pov][0].push_delta(&stable.removed, &stable.added);
            if dependent.refresh {
                self.refresh_dependent(pov);
            } else {
                self.added.steps[pov][1].push_delta(&dependent.removed, &dependent.added);
            }
        }
    }

    /// Lets a perspective start anew.
    fn refresh(&mut self, pov: Perspective) {
        let Some(partial) = &self.partial else {
            let number = self.refresh_dependent_sum(pov);
            return self.added.steps[pov][0].push_fresh(number);
        };
        partial.stable().encode_board(&self.boards[0], pov, &mut self.active);
        let number = self.next_fresh();
        self.model.refresh(self.back_end, &mut self.added.fresh[number], &self.active);
        self.rows += self.active.len() as u64;
        self.added.steps[pov][0].push_fresh(number);
        self.refresh_dependent(pov);
    }

    /// With partial refresh: lets the sum over the king-dependent blocks start anew.
    fn refresh_dependent(&mut self, pov: Perspective) {
        let number = self.refresh_dependent_sum(pov);
        self.added.steps[pov][1].push_fresh(number);
    }

    /// The number of a fresh sum over the king-dependent blocks; without partial refresh, over all.
    fn refresh_dependent_sum(&mut self, pov: Perspective) -> usize {
        let number = self.next_fresh();
        let model = self.model;
        let request = RefreshRequest { model, back_end: self.back_end, board: &self.boards[0], pov };
        let AddedPositions { pending, pending_count, .. } = &mut self.added;
        if pending.len() == *pending_count {
            pending.push(Pending::default());
        }
        let Pending { changes, delta, number: to } = &mut pending[*pending_count];
        *pending_count += 1;
        *to = number;
        *changes = self.cache.find_changes(&request, delta);
        model.prefetch(&delta.removed);
        model.prefetch(&delta.added);
        self.active_counts[pov] = changes.active;
        number
    }

    fn next_fresh(&mut self) -> usize {
        let AddedPositions { fresh, fresh_count, .. } = &mut self.added;
        if fresh.len() == *fresh_count {
            fresh.push(self.model.empty_accumulator());
        }
        *fresh_count += 1;
        *fresh_count - 1
    }

    /// Computes the scores of the positions added, and makes room for others.
    fn finish(&mut self, each: &mut impl FnMut(RawScore)) {
        self.compute(each);
        self.added.clear();
    }

    fn compute(&mut self, each: &mut impl FnMut(RawScore)) {
        let model = self.model;
        let added = &mut self.added;
        for Pending { changes, delta, number } in &added.pending[..added.pending_count] {
            self.rows += changes.rows as u64;
            self.cache.apply(model, self.back_end, *changes, delta, &mut added.fresh[*number]);
        }
        for pov in Perspective::ALL {
            self.sides.clear();
            self.sides.extend(added.turns.iter().map(|turn| usize::from(Perspective::of(*turn) != pov)));
            let [first, second] = &mut self.accumulators[pov];
            let [first_steps, second_steps] = &added.steps[pov];
            self.rows += (first_steps.rows().len() + second_steps.rows().len()) as u64;
            let first = LineSummand { steps: first_steps, accumulator: first };
            let second = LineSummand { steps: second_steps, accumulator: second };
            let buffers = LineBuffers {
                fresh: &added.fresh,
                sides: &self.sides,
                activations: &mut self.activations,
                masks: &mut self.masks,
                psqt: &mut self.psqt[pov],
            };
            let second = if self.partial.is_some() { Some(second) } else { None };
            model.follow_line(self.back_end, first, second, buffers);
        }
        let inputs = self.activations.chunks_exact(model.input_bytes());
        let inputs = inputs.zip(self.masks.chunks_exact(model.input_masks()));
        let positions = added.turns.iter().zip(&added.buckets);
        for (position, ((turn, bucket), (activations, masks))) in positions.zip(inputs).enumerate() {
            let bucket = *bucket;
            let scratch = &mut self.scratch;
            let positional = DenseStack { model, bucket, activations, masks, scratch }.run_on(self.back_end);
            let psqt = |pov: Perspective| {
                if model.shape().psqt {
                    bytemuck::cast_slice::<i16, i32>(&self.psqt[pov][position * model.psqt_width()..])[bucket]
                } else {
                    0
                }
            };
            let stm = Perspective::of(*turn);
            each(RawScore { psqt: psqt(stm).wrapping_sub(psqt(stm.other())) / 2, positional });
        }
    }
}

impl AddedPositions {
    fn clear(&mut self) {
        self.turns.clear();
        self.buckets.clear();
        self.steps.white.iter_mut().chain(&mut self.steps.black).for_each(LineChanges::clear);
        self.fresh_count = 0;
        self.pending_count = 0;
    }
}
