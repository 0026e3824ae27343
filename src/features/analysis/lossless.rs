//! Losslessness: the proof that both perspectives' features determine where all pieces stand, or a counterexample.
//!
//! A *piece state* is a piece on its square. A block determines a state when every legal position with the state
//! activates an index that implies it, that is, an index no position without the state activates. If the blocks
//! determine every state, the features determine the position, since a position is the set of its states.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::chess::{BlackOrientation, Mirror, Orientation, Perspective, Square};
use crate::features::FeatureSet;
use crate::features::reference;
use crate::features::spec::{BlockSpec, ENEMY_KING, Entity, OWN_KING, SourceSpec, VariableKind};

use super::bindings::{BindingSearch, SearchEnd};
use super::budget::{AnalysisSteps, Budget};
use super::counterexample;
use super::domain::{Domain, Squares};
use super::partial_board::{KING, PartialBoard};
use super::witness::Witness;

/// Steps of the search for the states that an index implies, and for a whole set.
const INDEX_BUDGET: AnalysisSteps = 1 << 16;
const BUDGET: AnalysisSteps = 1 << 26;
/// Most blocks that the proof considers.
const MAX_BLOCKS: usize = 64;

/// Whether both perspectives' features together determine where all pieces stand.
#[derive(Debug)]
pub enum Lossless {
    /// Proved.
    Yes,
    /// Two legal positions with the same features.
    No(Box<[Witness; 2]>),
    Unknown,
}

impl Lossless {
    /// Within [`Budget::STEPS`].
    pub fn of(set: &FeatureSet) -> Lossless {
        Lossless::within(set, Budget::STEPS)
    }

    pub fn within(set: &FeatureSet, budget: Budget) -> Lossless {
        if determines_position(set, budget) {
            return Lossless::Yes;
        }
        counterexample::find(set, budget).map_or(Lossless::Unknown, |pair| Lossless::No(Box::new(pair)))
    }

    /// `yes`, `no` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Lossless::Yes => "yes",
            Lossless::No(_) => "no",
            Lossless::Unknown => "unknown",
        }
    }
}

/// Whether the blocks, seen from both perspectives, determine every piece state.
fn determines_position(set: &FeatureSet, budget: Budget) -> bool {
    let mut steps_left = budget.steps(BUDGET);
    let all_states = Domain::of_slot(ENEMY_KING + 1, VariableKind::Piece, !0);
    let mut open = all_states;
    for block in set.blocks().iter().take(MAX_BLOCKS) {
        let spec = block.spec();
        if !is_supported(spec) {
            continue;
        }
        let search = BindingSearch::new(spec, budget);
        let mut proof = BlockProof { search, block: spec, implied: HashMap::new(), steps_left };
        let determined = all_states.filtered(|state| {
            let for_black = seen_by_other(state, spec.orientation);
            (open.contains(state) || open.contains(for_black)) && proof.determines(state)
        });
        steps_left = proof.steps_left;
        open = open.filtered(|state| {
            !determined.contains(state) && !determined.contains(seen_by_other(state, spec.orientation))
        });
        if open.is_empty() {
            return true;
        }
    }
    false
}

/// Whether the proof covers the block: unmirrored, at most two variables, all over `pieces`, and no counts. Then a
/// binding stays a binding when further pieces are added to the board.
fn is_supported(block: &BlockSpec) -> bool {
    block.orientation.mirror == Mirror::None
        && block.binders.len() <= 2
        && block.binders.iter().all(|binder| binder.source == SourceSpec::Pieces)
        && block.counts().is_empty()
}

/// The state that the other perspective sees for a state.
fn seen_by_other(state: Entity, orientation: Orientation) -> Entity {
    debug_assert!(orientation.black == BlackOrientation::Flip || orientation.black == BlackOrientation::Rotate);
    let mask = orientation.mask(Square::A1, Perspective::Black);
    Entity { square: state.square ^ mask, color: 1 - state.color, ..state }
}

struct BlockProof<'a> {
    search: BindingSearch<'a>,
    block: &'a BlockSpec,
    /// By index: the states that every position with the index has.
    implied: HashMap<u32, Domain>,
    /// At 0 no further state is proved.
    steps_left: AnalysisSteps,
}

impl BlockProof<'_> {
    /// Whether the block determines a state for all squares of the kings that it reads.
    fn determines(&mut self, state: Entity) -> bool {
        let own_king = |entity: Entity| entity.role == KING && entity.color == 0;
        // A second variable needs a second piece, and only kings stand on every board.
        let pairs = self.block.binders.len() == 2;
        let [with_own, with_enemy] = [OWN_KING, ENEMY_KING].map(|king| self.search.reads(king));
        let with_own = with_own || (pairs && !own_king(state));
        let with_enemy = with_enemy || (pairs && own_king(state));
        let squares = |matters: bool| if matters { !0u64 } else { 1 };
        Squares(squares(with_own)).all(|own| {
            Squares(squares(with_enemy)).all(|enemy| {
                self.steps_left = if self.search.expired() { 0 } else { self.steps_left.saturating_sub(1) };
                let mut partial = PartialBoard::default();
                let king = |square, color| Entity { square, role: KING, color };
                let kings = [with_own.then(|| king(own, 0)), with_enemy.then(|| king(enemy, 1))];
                let consistent = partial.place(state) && kings.iter().flatten().all(|king| partial.place(*king));
                self.steps_left > 0 && (!consistent || partial.impossible() || self.has_implying_index(state, kings))
            })
        })
    }

    /// Whether some binding to the state and the kings yields an index that implies the state.
    fn has_implying_index(&mut self, state: Entity, kings: [Option<Entity>; 2]) -> bool {
        let present: Vec<Entity> = std::iter::once(state).chain(kings.into_iter().flatten()).collect();
        let mut entities = vec![Entity::bare(0); self.block.variables.len()];
        for (slot, king) in kings.into_iter().enumerate() {
            entities[slot] = king.unwrap_or(entities[slot]);
        }
        let slots: Vec<usize> = self.block.binders.iter().map(|binder| binder.slot).collect();
        let assignments = present.len().pow(slots.len() as u32);
        (0..assignments).any(|assignment| {
            let mut rest = assignment;
            for slot in &slots {
                entities[*slot] = present[rest % present.len()];
                rest /= present.len();
            }
            let holds = self.block.condition.as_ref().is_none_or(|condition| condition.holds(&|slot| entities[slot]));
            let elements = || reference::elements(&self.block.product, &entities);
            holds && elements().into_iter().any(|element| self.implied_by(element).contains(state))
        })
    }

    /// The states that every position with the index has.
    fn implied_by(&mut self, index: u32) -> Domain {
        let search = &self.search;
        let steps_left = &mut self.steps_left;
        *self.implied.entry(index).or_insert_with(|| {
            let is_feature = search.block.index_of(index).is_some();
            *steps_left = steps_left.saturating_sub(search.decoding_steps());
            let Some(constraints) = search.constraints(index).filter(|_| is_feature) else { return Domain::default() };
            let mut common: Option<Domain> = None;
            let limit = INDEX_BUDGET.min(*steps_left);
            let mut budget = limit;
            let end = search.bindings(&constraints, &mut budget, &mut |partial, _| {
                let mut states = Domain::default();
                partial.pieces().for_each(|piece| states.insert(piece));
                let intersection = common.map_or(states, |common| common.and(&states));
                common = Some(intersection);
                if intersection.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            *steps_left = steps_left.saturating_sub(limit - budget);
            if end == SearchEnd::Exhausted { common.unwrap_or_default() } else { Domain::default() }
        })
    }
}
