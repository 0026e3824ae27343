//! Evaluation along a line of moves: how accumulators follow the moves, and the scores of the positions.

mod lazy;

use std::hint::black_box;

use thiserror::Error;

use crate::chess::{Board, BoardChange, ByPerspective, Color, Perspective, PieceBoard};
use crate::cpu::BackEnd;
use crate::engine::aligned::AlignedVec;
use crate::engine::evaluation::Evaluation;
use crate::engine::kernels::{AccumulatorSums, NoObserver, Observer};
use crate::engine::line::{LinePosition, LineStep};
use crate::engine::model::{Model, Scratch};
use crate::engine::refresh_cache::{RefreshCache, RefreshRequest};
use crate::engine::refresh_rule::{PartialRefresh, recomputes};
use crate::engine::strategy::Strategy;
use crate::features::{Delta, DeltaState, FeatureSet, RowList};
use crate::net::{BucketChooser, NetError, RawScore, WeightType};

#[derive(Debug, Error)]
pub enum EngineError {
    #[error("the network has {network} inputs per perspective, but feature set `{set}` has {features} features")]
    Inputs { network: u32, set: String, features: u32 },
    #[error(transparent)]
    Buckets(#[from] NetError),
}

/// A position of the line, with its accumulators where they are computed.
#[derive(Clone)]
struct PlyState {
    board: PieceBoard,
    /// Of the set's encoder; with partial refresh, of the stable blocks' and of the others'.
    states: [DeltaState; 2],
    /// The move that led here; `None` at the start of the line.
    change: Option<BoardChange>,
    accumulators: ByPerspective<AlignedVec<i16>>,
    /// With partial refresh the sums over the stable blocks, with the biases; `accumulators` are the rest.
    stable: ByPerspective<AlignedVec<i16>>,
    computed: ByPerspective<Computed>,
}

/// How much of a ply's accumulator is computed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Computed {
    #[default]
    Nothing,
    /// The sum over the stable blocks.
    Stable,
    All,
}

/// Evaluates the positions of a line of play: [`Evaluator::set`] a position, then [`Evaluator::play`] moves.
///
/// ```
/// use fsbench::chess::{BoardChange, Chess, Color};
/// use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
/// use fsbench::features::FeatureSet;
/// use fsbench::net::{FloatNet, Scheme, Shape, quantise};
/// use shakmaty::{Position, uci::UciMove};
///
/// let set = FeatureSet::resolve("piece")?;
/// // All weights are zero, but for the output's bias of half a pawn.
/// let mut float = FloatNet::zeros(&Shape::plain(set.num_features(), 16, vec![]));
/// float.stacks[0][0].biases[0] = 50.0 / 600.0;
/// let model = Model::new(&quantise(&float, &Scheme::stockfish())?);
///
/// let mut evaluator = Evaluator::new(&set, &model, Strategy::LazyCached, BackEnd::best())?;
/// let start = Chess::default();
/// evaluator.set(start.board());
/// let mv = "e2e4".parse::<UciMove>()?.to_move(&start)?;
/// evaluator.play(&BoardChange::of(mv, start.turn()));
/// assert_eq!(evaluator.evaluate(Color::Black).score_cp.0, 50);
/// assert!(evaluator.undo());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Evaluator<'a> {
    set: &'a FeatureSet,
    model: &'a Model,
    buckets: BucketChooser,
    strategy: Strategy,
    back_end: BackEnd,
    /// Lazy strategies: the line so far. Others: the present position alone. Plies above `top` are spare buffers.
    plies: Vec<PlyState>,
    top: usize,
    /// Other strategies: the board before the last move, with its states.
    before: (PieceBoard, [DeltaState; 2]),
    /// Number of active features that a refresh would recompute; not kept by lazy strategies.
    active_counts: ByPerspective<usize>,
    partial: Option<PartialRefresh>,
    /// With partial refresh, the last changes of the stable blocks and of the others.
    parts: [ByPerspective<Delta>; 2],
    /// With partial refresh, buffers for whole accumulators.
    whole: ByPerspective<AlignedVec<i16>>,
    cache: Option<RefreshCache>,
    scratch: Scratch,
    active: RowList,
    deltas: ByPerspective<Delta>,
    rows: u64,
    /// Accumulators of one perspective that were brought up to date.
    updates: u64,
}

impl<'a> Evaluator<'a> {
    /// # Errors
    /// When the network's number of inputs differs from the set's number of features, or the rule of its output buckets
    /// is not one of the set.
    pub fn new(
        set: &'a FeatureSet,
        model: &'a Model,
        strategy: Strategy,
        back_end: BackEnd,
    ) -> Result<Evaluator<'a>, EngineError> {
        if set.num_features() != model.features() {
            let network = model.features();
            let features = set.num_features();
            return Err(EngineError::Inputs { network, set: set.name().into(), features });
        }
        let partial = if strategy == Strategy::Refresh { None } else { PartialRefresh::new(set) };
        Ok(Evaluator {
            set,
            model,
            buckets: BucketChooser::new(&model.shape().buckets, set)?,
            strategy,
            back_end,
            plies: vec![PlyState::empty(model, partial.is_some())],
            cache: strategy.caches().then(|| RefreshCache::new(set, partial.as_ref())),
            partial,
            parts: Default::default(),
            whole: ByPerspective::new_with(|_| AlignedVec::zeroed(0)),
            top: 0,
            before: (PieceBoard::empty(), Default::default()),
            active_counts: ByPerspective::default(),
            scratch: model.scratch(),
            active: RowList::default(),
            deltas: ByPerspective::default(),
            rows: 0,
            updates: 0,
        })
    }

    /// Starts a new line at a board.
    pub fn set(&mut self, board: &Board) {
        self.set_pieces(&PieceBoard::of(board));
    }

    /// [`Evaluator::set`] to a [`PieceBoard`].
    pub fn set_pieces(&mut self, board: &PieceBoard) {
        self.top = 0;
        let ply = &mut self.plies[0];
        ply.change = None;
        ply.board.clone_from(board);
        ply.states.iter_mut().for_each(DeltaState::clear);
        ply.computed = ByPerspective::default();
        if !self.strategy.lazy() {
            self.updates += 2;
            Perspective::ALL.into_iter().for_each(|pov| self.refresh(pov));
        }
    }

    /// Follows a move from the board last set or played to.
    pub fn play(&mut self, change: &BoardChange) {
        if !self.strategy.lazy() {
            self.updates += 2;
        }
        match self.strategy {
            Strategy::Refresh => {
                self.plies[0].board.apply(change);
                Perspective::ALL.into_iter().for_each(|pov| self.refresh(pov));
            }
            Strategy::Eager | Strategy::EagerCached => self.update_in_place(change),
            Strategy::Lazy | Strategy::LazyCached => self.push_ply(change),
        }
    }

    /// Goes on to the next position of a line.
    pub fn advance(&mut self, position: &LinePosition<'_>) {
        match position.step {
            LineStep::Start(board) => self.set_pieces(board),
            LineStep::Move(change) => self.play(change),
        }
    }

    /// Undoes the last move. Returns false if there is none; only lazy strategies record moves.
    pub fn undo(&mut self) -> bool {
        if !self.strategy.lazy() || self.top == 0 {
            return false;
        }
        self.top -= 1;
        true
    }

    /// The output with `turn` to move, in the scheme's raw scale.
    pub fn raw(&mut self, turn: Color) -> i32 {
        self.forward(self.bucket(turn), turn, NoObserver).sum()
    }

    /// The two summands of [`Evaluator::raw`].
    pub(super) fn raw_score(&mut self, turn: Color) -> RawScore {
        self.forward(self.bucket(turn), turn, NoObserver)
    }

    /// [`Evaluator::raw`] that passes the inputs of each dense layer to `observer`: (0, activations of stm's
    /// accumulator), (0, activations of nstm's), (1, activations of the first hidden layer), … For a direct output the
    /// products are rounded down to activations, and relu's values are clipped.
    pub fn observe(&mut self, turn: Color, observer: impl FnMut(usize, &[u8])) -> i32 {
        self.forward(self.bucket(turn), turn, observer).sum()
    }

    /// The score with `turn` to move, in internal units.
    pub fn score(&mut self, turn: Color) -> i32 {
        let raw = self.forward(self.bucket(turn), turn, NoObserver);
        self.model.scheme().score(raw)
    }

    /// The scores of all buckets with `turn` to move.
    pub fn evaluate(&mut self, turn: Color) -> Evaluation {
        let buckets = 0..self.model.shape().buckets.count;
        let raw: Vec<RawScore> = buckets.map(|bucket| self.forward(bucket, turn, NoObserver)).collect();
        Evaluation::from_raw(&raw, self.bucket(turn), self.model.scheme())
    }

    /// A perspective's accumulator in the layout of the kernels: neurons padded with zeros, then PSQT sums.
    pub fn accumulator(&mut self, pov: Perspective) -> &[i16] {
        if self.strategy.lazy() && !self.steps_forward() {
            self.ensure_computed(pov);
        }
        if self.partial.is_none() {
            return &self.plies[self.top].accumulators[pov];
        }
        self.add_parts(pov);
        &self.whole[pov]
    }

    /// Rows added and subtracted since [`Evaluator::new`].
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Moves whose features were found since [`Evaluator::new`], half a move per perspective. Lazy strategies find them
    /// for positions that are evaluated, and on the way to these.
    #[must_use]
    pub fn moves_followed(&self) -> f64 {
        self.updates as f64 / 2.0
    }

    /// Computes both accumulators of positions that follow one another, and no score.
    pub fn follow<'p>(&mut self, positions: impl IntoIterator<Item = LinePosition<'p>>) {
        for position in positions {
            self.advance(&position);
            for pov in Perspective::ALL {
                black_box(self.accumulator(pov));
            }
        }
    }

    /// The output bucket of the present position with `turn` to move.
    #[must_use]
    pub fn bucket(&self, turn: Color) -> usize {
        self.buckets.of_pieces(&self.plies[self.top].board, turn)
    }

    /// The rule of the output buckets.
    pub(super) const fn buckets(&self) -> &BucketChooser {
        &self.buckets
    }

    fn forward(&mut self, bucket: usize, turn: Color, observer: impl Observer) -> RawScore {
        if self.strategy.lazy() && !self.steps_forward() {
            Perspective::ALL.into_iter().for_each(|pov| self.ensure_computed(pov));
        }
        let stm = Perspective::of(turn);
        let is_split = self.partial.is_some();
        let adds_first = is_split && self.model.scheme().weights == WeightType::I16;
        if adds_first {
            Perspective::ALL.into_iter().for_each(|pov| self.add_parts(pov));
        }
        let ply = &self.plies[self.top];
        let sums = |pov: Perspective| {
            if adds_first {
                AccumulatorSums { first: &self.whole[pov], second: None }
            } else {
                AccumulatorSums { first: &ply.accumulators[pov], second: is_split.then(|| &ply.stable[pov][..]) }
            }
        };
        let accumulators = [sums(stm), sums(stm.other())];
        self.model.forward(self.back_end, bucket, accumulators, &mut self.scratch, observer)
    }

    /// With partial refresh, brings the present whole accumulator of a perspective up to date.
    fn add_parts(&mut self, pov: Perspective) {
        let ply = &self.plies[self.top];
        let whole = &mut self.whole[pov];
        if whole.len() != ply.stable[pov].len() {
            whole.clone_from(&ply.stable[pov]);
        }
        self.model.sum(self.back_end, &ply.stable[pov], &ply.accumulators[pov], whole);
    }

    /// Updates both accumulators in place.
    fn update_in_place(&mut self, change: &BoardChange) {
        let PlyState { board, states, .. } = &mut self.plies[0];
        self.before.0.clone_from(board);
        std::mem::swap(&mut self.before.1, states);
        states.iter_mut().for_each(DeltaState::clear);
        board.apply(change);
        if self.partial.is_some() {
            return self.update_parts_in_place(change);
        }
        let (before, [before_state, _]) = &mut self.before;
        let states = [before_state, &mut states[0]];
        self.set.encoder().diff_or_refresh([before, board], change, states, &mut self.deltas);
        self.model.prefetch_deltas(&self.deltas);
        for pov in Perspective::ALL {
            let delta = &self.deltas[pov];
            let added = delta.added.len();
            let removed = delta.removed.len();
            let active = self.active_counts[pov] + added - removed;
            if recomputes(delta, added + removed, active) {
                self.refresh_dependent(pov);
                continue;
            }
            self.active_counts[pov] = active;
            let accumulator = &mut self.plies[self.top].accumulators[pov];
            self.model.update(self.back_end, accumulator, &delta.added, &delta.removed);
            self.rows += (added + removed) as u64;
        }
    }

    /// [`Evaluator::update_in_place`] with partial refresh.
    fn update_parts_in_place(&mut self, change: &BoardChange) {
        let Some(partial) = &self.partial else { return };
        // Such sets have many and long rows, which are in no near cache.
        let prefetch = |features: &[u32]| self.model.prefetch(features);
        let PlyState { board, states, .. } = &mut self.plies[0];
        let (before, before_states) = &mut self.before;
        partial.diff([before, board], change, [before_states, states], &mut self.parts, prefetch);
        // In the order in which their rows were asked for.
        for pov in Perspective::ALL {
            let [stable, dependent] = self.parts.each_ref().map(|part| &part[pov]);
            if stable.refresh {
                self.refresh(pov);
            } else if dependent.refresh {
                self.refresh_dependent(pov);
            } else {
                let accumulator = &mut self.plies[self.top].accumulators[pov];
                self.model.update(self.back_end, accumulator, &dependent.added, &dependent.removed);
                self.rows += dependent.rows();
            }
        }
        for pov in Perspective::ALL {
            let stable = &self.parts[0][pov];
            if !stable.refresh {
                let accumulator = &mut self.plies[self.top].stable[pov];
                self.model.update(self.back_end, accumulator, &stable.added, &stable.removed);
                self.rows += stable.rows();
            }
        }
    }

    /// Recomputes the present accumulator, the sum over the stable blocks included.
    fn refresh(&mut self, pov: Perspective) {
        self.refresh_of(self.top, pov);
    }

    /// [`Evaluator::refresh`] of a ply.
    fn refresh_of(&mut self, at: usize, pov: Perspective) {
        if let Some(partial) = &self.partial {
            let PlyState { board, stable, .. } = &mut self.plies[at];
            partial.stable().encode_board(board, pov, &mut self.active);
            self.model.refresh(self.back_end, &mut stable[pov], &self.active);
            self.rows += self.active.len() as u64;
        }
        self.refresh_dependent_of(at, pov);
    }

    /// Recomputes the present sum over the king-dependent blocks; without partial refresh, over all.
    fn refresh_dependent(&mut self, pov: Perspective) {
        self.refresh_dependent_of(self.top, pov);
    }

    /// [`Evaluator::refresh_dependent`] of a ply.
    fn refresh_dependent_of(&mut self, at: usize, pov: Perspective) {
        let PlyState { board, accumulators, computed, .. } = &mut self.plies[at];
        let accumulator = &mut accumulators[pov];
        computed[pov] = Computed::All;
        let partial = self.partial.as_ref();
        if let Some(cache) = &mut self.cache {
            let request = RefreshRequest { model: self.model, back_end: self.back_end, board, pov };
            let stats = cache.refresh(&request, accumulator);
            self.rows += stats.rows as u64;
            self.active_counts[pov] = stats.active;
            return;
        }
        match partial {
            None => {
                self.set.encoder().encode_board(board, pov, &mut self.active);
                self.model.refresh(self.back_end, accumulator, &self.active);
            }
            Some(partial) => {
                partial.dependent().encode_board(board, pov, &mut self.active);
                accumulator.fill(0);
                self.model.update(self.back_end, accumulator, &self.active, &[]);
            }
        }
        self.rows += self.active.len() as u64;
        self.active_counts[pov] = self.active.len();
    }
}

impl PlyState {
    fn empty(model: &Model, is_split: bool) -> PlyState {
        let accumulators = ByPerspective::new_with(|_| model.empty_accumulator());
        let none = || ByPerspective::new_with(|_| AlignedVec::zeroed(0));
        let stable = if is_split { accumulators.clone() } else { none() };
        PlyState {
            board: PieceBoard::empty(),
            states: Default::default(),
            change: None,
            accumulators,
            stable,
            computed: ByPerspective::default(),
        }
    }
}
