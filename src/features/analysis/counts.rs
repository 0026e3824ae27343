//! The values that a count can take on a partially known board: a superset of the values in legal positions.

use std::cell::Cell;

use crate::features::spec::{BinderSpec, ConditionSpec, CountSpec, Entity, GuardSpec, SourceSpec};

use super::budget::AnalysisSteps;
use super::count_values::CountValues;
use super::domain::{Domain, Squares};
use super::legal::{FLEXIBLE, UNPROMOTED};
use super::partial_board::{KING, PartialBoard};
use super::sources::{Walk, attacked, push_squares, rays, walk};

/// Largest maximum of a count whose values are enumerated; above it, every value counts as possible.
const MAX_ENUMERATED: u32 = 1 << 10;
/// Most steps for one enumeration.
const MAX_STEPS: AnalysisSteps = 1 << 23;
/// Steps of a binding without its set operations.
const BINDING: AnalysisSteps = 4;

/// Most steps that enumerating a count takes.
pub fn steps(spec: &CountSpec) -> AnalysisSteps {
    let size = |binder: &BinderSpec| if binder.source == SourceSpec::Pieces { 768 } else { 28 };
    // Twice, for incomplete bindings.
    let per_binding = 2 * (BINDING + AnalysisSteps::from(spec.max) / 64);
    spec.binders.iter().map(size).fold(per_binding, AnalysisSteps::saturating_mul)
}

/// Whether `values`, from [`possible_values`], allow this value.
pub fn admits(values: &CountValues, value: u32) -> bool {
    value > MAX_ENUMERATED || values.contains(value)
}

/// Values that the count can take for a binding of the outer variables; all values when the budget is too small.
pub fn possible_values(
    spec: &CountSpec,
    pieces: &Domain,
    partial: &PartialBoard,
    entities: &[Entity],
    budget: &mut AnalysisSteps,
) -> CountValues {
    let all = || CountValues::all(spec.max.min(MAX_ENUMERATED));
    if spec.max > MAX_ENUMERATED || steps(spec) > MAX_STEPS {
        return all();
    }
    let enumerator = CountEnumerator {
        pieces,
        partial,
        condition: spec.condition.as_ref(),
        guards: &spec.guards,
        max: spec.max,
        steps_left: Cell::new(*budget),
    };
    let values = enumerator.bindings(&spec.binders, &mut entities.to_vec());
    *budget = enumerator.steps_left.get();
    if *budget == 0 { all() } else { values }
}

/// Whether a guard may hold for a binding of the variables that it reads.
pub fn guard_may_hold(
    guard: &GuardSpec,
    pieces: &Domain,
    partial: &PartialBoard,
    entities: &[Entity],
    budget: &mut AnalysisSteps,
) -> bool {
    let mut range = |spec: &CountSpec| {
        let values = possible_values(spec, pieces, partial, entities, budget);
        let most = if spec.max > MAX_ENUMERATED { Some(spec.max) } else { values.iter().last() };
        values.iter().next().zip(most)
    };
    let ranges: Option<Vec<(u32, u32)>> = guard.counts.iter().map(&mut range).collect();
    ranges.is_some_and(|ranges| guard.condition.outcomes(&|slot| entities[slot], &ranges).0)
}

/// Whether a guard may hold, and whether it may fail, for arbitrary counts.
fn outcomes(guard: &GuardSpec, entities: &[Entity]) -> (bool, bool) {
    let ranges: Vec<(u32, u32)> = guard.counts.iter().map(|count| (0, count.max)).collect();
    guard.condition.outcomes(&|slot| entities[slot], &ranges)
}

/// Enumerates a count's bindings on a partially known board.
struct CountEnumerator<'a> {
    /// Pieces that may stand on the board.
    pieces: &'a Domain,
    partial: &'a PartialBoard,
    condition: Option<&'a ConditionSpec>,
    guards: &'a [GuardSpec],
    max: u32,
    /// At 0 the result is discarded.
    steps_left: Cell<AnalysisSteps>,
}

impl CountEnumerator<'_> {
    /// Takes steps from the budget; false when it is spent.
    fn spend(&self, steps: AnalysisSteps) -> bool {
        self.steps_left.set(self.steps_left.get().saturating_sub(steps));
        self.steps_left.get() > 0
    }

    fn only(&self, value: u32) -> CountValues {
        CountValues::only(value, self.max)
    }

    fn none(&self) -> CountValues {
        CountValues::none(self.max)
    }

    fn bindings(&self, binders: &[BinderSpec], entities: &mut Vec<Entity>) -> CountValues {
        if !self.spend(BINDING + AnalysisSteps::from(self.max) / 64) {
            return self.none();
        }
        let Some((binder, rest)) = binders.split_first() else {
            let holds = self.condition.is_none_or(|condition| condition.holds(&|slot| entities[slot]));
            return if holds { self.guarded(entities) } else { self.only(0) };
        };
        let from = binder.source.of().map(|of| entities[of]);
        let mut inner = |entity: Entity| {
            entities[binder.slot] = entity;
            self.bindings(rest, entities)
        };
        match (walk(binder.source, from), from) {
            (Walk::Moves, Some(from)) => self.moves(from, &mut |square| inner(Entity::bare(square))),
            (Walk::Attacks, Some(from)) => self.attacks(from, &mut |square| inner(Entity::bare(square))),
            (Walk::FirstPieces(lines), _) => {
                let mut sum = self.only(0);
                for line in &lines {
                    sum.add(&self.first_piece(line, &mut inner));
                }
                sum
            }
            _ => self.all_pieces(&mut inner),
        }
    }

    /// A complete binding: 1 if the guards may hold, 0 if they may fail.
    fn guarded(&self, entities: &[Entity]) -> CountValues {
        let outcomes = self.guards.iter().map(|guard| outcomes(guard, entities));
        let (holds, fails) = outcomes.fold((true, false), |(holds, fails), of| (holds && of.0, fails || of.1));
        let mut values = self.none();
        if holds {
            values.or(&self.only(1));
        }
        if fails {
            values.or(&self.only(0));
        }
        values
    }

    /// Squares of each ray up to the first occupied one. A square lets the ray pass unless it is surely occupied, and
    /// stops it unless it is surely empty.
    fn attacks(&self, from: Entity, inner: &mut dyn FnMut(u32) -> CountValues) -> CountValues {
        let mut sum = self.only(0);
        for line in rays(from) {
            let mut reached = self.only(0);
            let mut ends = self.none();
            let last = line.len() - 1;
            for (at, square) in line.into_iter().enumerate() {
                reached.add(&inner(square));
                if at == last || self.partial.may_be_occupied(square) {
                    ends.or(&reached);
                }
                if !self.partial.may_be_empty(square) {
                    break;
                }
            }
            sum.add(&ends);
        }
        sum
    }

    fn moves(&self, from: Entity, inner: &mut dyn FnMut(u32) -> CountValues) -> CountValues {
        let other = 1 - from.color;
        if from.role == 0 {
            let mut sum = self.pushes(from, inner);
            for square in Squares(attacked(from)) {
                let mut capture = self.none();
                if self.partial.may_be_occupied_by(other, square) {
                    capture.or(&inner(square));
                }
                if !self.partial.surely_occupied_by(other, square) {
                    capture.or(&self.only(0));
                }
                sum.add(&capture);
            }
            return sum;
        }
        let mut sum = self.only(0);
        for line in rays(from) {
            let mut reached = self.only(0);
            let mut ends = self.none();
            let mut open = true;
            for square in line {
                if self.partial.may_be_occupied_by(from.color, square) {
                    ends.or(&reached);
                }
                open = self.partial.may_be_empty(square);
                if self.partial.surely_occupied_by(from.color, square) {
                    break;
                }
                reached.add(&inner(square));
                if self.partial.may_be_occupied_by(other, square) {
                    ends.or(&reached);
                }
                if !open {
                    break;
                }
            }
            if open {
                ends.or(&reached);
            }
            sum.add(&ends);
        }
        sum
    }

    fn pushes(&self, pawn: Entity, inner: &mut dyn FnMut(u32) -> CountValues) -> CountValues {
        let mut squares: Vec<u32> = Squares(push_squares(pawn)).collect();
        if pawn.color == 1 {
            squares.reverse();
        }
        let mut reached = self.only(0);
        let mut ends = self.none();
        for square in squares {
            if self.partial.may_be_occupied(square) {
                ends.or(&reached);
            }
            if !self.partial.may_be_empty(square) {
                return ends;
            }
            reached.add(&inner(square));
        }
        ends.or(&reached);
        ends
    }

    /// The first piece on a line, if there is one.
    fn first_piece(&self, line: &[u32], inner: &mut dyn FnMut(Entity) -> CountValues) -> CountValues {
        let mut ends = self.none();
        for square in line {
            for entity in self.candidates(*square) {
                ends.or(&inner(entity));
            }
            if !self.partial.may_be_empty(*square) {
                return ends;
            }
        }
        ends.or(&self.only(0));
        ends
    }

    /// The pieces that may stand on a square.
    fn candidates(&self, square: u32) -> Vec<Entity> {
        match self.partial.piece_at(square) {
            Some(known) => vec![known],
            None if !self.partial.may_be_occupied(square) => Vec::new(),
            None => self.pieces.on_square(square).filter(|piece| self.partial.may_have(*piece)).collect(),
        }
    }

    /// Intersects two bounds: a square has at most one piece, and a side has at most its standard material.
    fn all_pieces(&self, inner: &mut dyn FnMut(Entity) -> CountValues) -> CountValues {
        let mut by_square = self.only(0);
        let mut known = self.only(0);
        let mut by_kind: [[CountValues; 6]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| self.none()));
        for square in 0..64 {
            if let Some(piece) = self.partial.piece_at(square) {
                let values = inner(piece);
                by_square.add(&values);
                known.add(&values);
                continue;
            }
            let mut here = if self.partial.may_be_empty(square) { self.only(0) } else { self.none() };
            for entity in self.candidates(square) {
                let values = inner(entity);
                by_kind[entity.color as usize][entity.role as usize].or(&values);
                here.or(&values);
            }
            by_square.add(&here);
        }
        let mut by_material = known;
        for (color, by_role) in by_kind.into_iter().enumerate() {
            by_material.add(&self.material(color as u32, by_role));
        }
        by_square.and(&by_material);
        by_square
    }

    /// The values that a side's unknown pieces may add, given those that one piece of each role adds.
    fn material(&self, color: u32, by_role: [CountValues; 6]) -> CountValues {
        let mut total = match self.partial.king(color) {
            Some(_) => self.only(0),
            None => by_role[KING as usize].clone(),
        };
        let zero = self.only(0);
        let optional = by_role.map(|mut values| {
            values.or(&zero);
            values
        });
        let mut any_role = zero.clone();
        let mut flexible = FLEXIBLE;
        for (role, unpromoted) in UNPROMOTED.into_iter().enumerate() {
            let known = self.partial.squares_by_role(color)[role].count_ones();
            flexible = flexible.saturating_sub(known.saturating_sub(unpromoted));
            total.add_times(&optional[role], unpromoted.saturating_sub(known));
            any_role.or(&optional[role]);
        }
        total.add_times(&any_role, flexible);
        total
    }
}
