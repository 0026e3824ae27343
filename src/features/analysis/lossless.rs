//! The proof that features tell where the pieces stand.
//!
//! A piece state (square, role, colour) is *told* by a block when every legal position that has it activates an index
//! which no position without it can. When both perspectives' blocks tell every state, the features determine the
//! placement: a position is the set of its told states.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::chess::{BlackOrientation, Mirror, Orientation, Perspective, Square};
use crate::features::FeatureSet;
use crate::features::reference;
use crate::features::spec::{BlockSpec, ENEMY_KING, Entity, OWN_KING, SourceSpec, VariableKind};

use super::bindings::{BindingSearch, SearchEnd};
use super::budget::{Budget, Steps};
use super::domain::{Domain, Squares};
use super::partial_board::{KING, PartialBoard};

/// Steps of the search for what an index implies, and for a whole set.
const INDEX_BUDGET: Steps = 1 << 16;
const BUDGET: Steps = 1 << 26;
/// Blocks looked at: a set that needs more is left to the search for a counterexample.
const MAX_BLOCKS: usize = 64;

/// Whether both perspectives' features tell every piece state.
pub fn everything(set: &FeatureSet, budget: Budget) -> bool {
    let mut left = budget.steps(BUDGET);
    let pieces = Domain::of_slot(ENEMY_KING + 1, VariableKind::Piece, !0);
    let mut open = pieces;
    for block in set.blocks().iter().take(MAX_BLOCKS) {
        let spec = block.spec();
        if !argued(spec) {
            continue;
        }
        let mut teller = Teller { frame: BindingSearch::new(spec, budget), block: spec, implied: HashMap::new(), left };
        // What White's view tells, then what Black's does, as states of the board itself.
        let own = pieces.filtered(|entity| {
            let seen_by_black = turned(entity, spec.orientation);
            (open.contains(entity) || open.contains(seen_by_black)) && teller.tells(entity)
        });
        left = teller.left;
        open = open.filtered(|entity| !own.contains(entity) && !own.contains(turned(entity, spec.orientation)));
        if open.is_empty() {
            return true;
        }
    }
    false
}

/// Blocks the argument is carried out for: unmirrored, binding up to two pieces and nothing that depends on more of
/// the board, so that a binding stays one whatever else stands there.
fn argued(block: &BlockSpec) -> bool {
    block.orientation.mirror == Mirror::None
        && block.binders.len() <= 2
        && block.binders.iter().all(|binder| binder.source == SourceSpec::Pieces)
        && block.counts().is_empty()
}

/// The state one perspective sees where the other sees this one.
fn turned(entity: Entity, orientation: Orientation) -> Entity {
    debug_assert!(orientation.black == BlackOrientation::Flip || orientation.black == BlackOrientation::Rotate);
    let mask = orientation.mask(Square::A1, Perspective::Black);
    Entity { square: entity.square ^ mask, color: 1 - entity.color, ..entity }
}

struct Teller<'a> {
    frame: BindingSearch<'a>,
    block: &'a BlockSpec,
    /// By index: the states that are present whenever it is active.
    implied: HashMap<u32, Domain>,
    /// When it is spent, nothing more is told.
    left: Steps,
}

impl Teller<'_> {
    /// Whether the block tells this state, wherever the kings it looks at stand.
    fn tells(&mut self, state: Entity) -> bool {
        let own_king = |entity: Entity| entity.role == KING && entity.color == 0;
        // A second variable needs a second piece: a king, for one always stands somewhere.
        let pairs = self.block.binders.len() == 2;
        let [with_own, with_enemy] = [OWN_KING, ENEMY_KING].map(|king| self.frame.reads(king));
        let with_own = with_own || (pairs && !own_king(state));
        let with_enemy = with_enemy || (pairs && own_king(state));
        let squares = |wanted: bool| if wanted { !0u64 } else { 1 };
        Squares(squares(with_own)).all(|own| {
            Squares(squares(with_enemy)).all(|enemy| {
                self.left = if self.frame.expired() { 0 } else { self.left.saturating_sub(1) };
                let mut partial = PartialBoard::default();
                let king = |square, color| Entity { square, role: KING, color };
                let kings = [with_own.then(|| king(own, 0)), with_enemy.then(|| king(enemy, 1))];
                let consistent = partial.place(state) && kings.iter().flatten().all(|king| partial.place(*king));
                self.left > 0 && (!consistent || partial.impossible() || self.shown(state, kings))
            })
        })
    }

    /// Whether some binding to the state and the kings yields an index that implies the state.
    fn shown(&mut self, state: Entity, kings: [Option<Entity>; 2]) -> bool {
        let present: Vec<Entity> = std::iter::once(state).chain(kings.into_iter().flatten()).collect();
        let mut entities = vec![Entity::bare(0); self.block.variables.len()];
        for (slot, king) in kings.into_iter().enumerate() {
            entities[slot] = king.unwrap_or(entities[slot]);
        }
        let slots: Vec<usize> = self.block.binders.iter().map(|binder| binder.slot).collect();
        let ways = present.len().pow(slots.len() as u32);
        (0..ways).any(|way| {
            let mut rest = way;
            for slot in &slots {
                entities[*slot] = present[rest % present.len()];
                rest /= present.len();
            }
            let holds = self.block.condition.as_ref().is_none_or(|condition| condition.holds(&|slot| entities[slot]));
            let elements = || reference::elements(&self.block.product, &entities);
            holds && elements().into_iter().any(|element| self.implies(element).contains(state))
        })
    }

    fn implies(&mut self, index: u32) -> Domain {
        let (frame, left) = (&self.frame, &mut self.left);
        *self.implied.entry(index).or_insert_with(|| {
            let kept = frame.block.index_of(index).is_some();
            *left = left.saturating_sub(frame.goal_steps());
            let Some(goal) = frame.goal(index).filter(|_| kept) else { return Domain::default() };
            let mut common: Option<Domain> = None;
            let most = INDEX_BUDGET.min(*left);
            let mut budget = most;
            let ended = frame.bindings(&goal, &mut budget, &mut |partial, _| {
                let mut here = Domain::default();
                partial.pieces().for_each(|piece| here.insert(piece));
                let both = common.map_or(here, |common| common.and(&here));
                common = Some(both);
                if both.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            *left = left.saturating_sub(most - budget);
            if ended == SearchEnd::Exhausted { common.unwrap_or_default() } else { Domain::default() }
        })
    }
}
