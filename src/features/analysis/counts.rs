//! Which values a count may take when part of the board is known: a superset of those that legal positions give.

use std::cell::Cell;

use crate::features::spec::{BinderSpec, ConditionSpec, CountSpec, Entity, GuardSpec, SourceSpec};

use super::budget::Steps;
use super::count_values::CountValues;
use super::domain::{Domain, Squares};
use super::legal::{FLEXIBLE, UNPROMOTED};
use super::partial_board::{KING, PartialBoard};
use super::sources::{attacked, push_squares, ray, rays};

/// Largest count that is followed value by value; beyond, everything counts as possible.
const MAX_FOLLOWED: u32 = 1 << 10;
/// What following a count may take.
const MAX_STEPS: Steps = 1 << 23;
/// What a binding takes besides what its sets of values take.
const BINDING: Steps = 4;

/// What following a count takes.
pub fn steps(spec: &CountSpec) -> Steps {
    let size = |binder: &BinderSpec| if binder.source == SourceSpec::Pieces { 768 } else { 28 };
    // Twice, for the bindings on the way to a whole one.
    let each = 2 * (BINDING + Steps::from(spec.max) / 64);
    spec.binders.iter().map(size).fold(each, Steps::saturating_mul)
}

/// Whether `value` is among those found.
pub fn admits(values: &CountValues, value: u32) -> bool {
    value > MAX_FOLLOWED || values.contains(value)
}

/// Follows a count's binders over what is known of the board.
pub struct CountEnumerator<'a> {
    /// What may stand on the board.
    pieces: &'a Domain,
    partial: &'a PartialBoard,
    condition: Option<&'a ConditionSpec>,
    guards: &'a [GuardSpec],
    max: u32,
    /// Steps left; at 0 everything counts as possible.
    left: Cell<Steps>,
}

/// Whether a guard may hold, given a binding of the variables it reads.
pub fn may_hold(
    guard: &GuardSpec,
    pieces: &Domain,
    partial: &PartialBoard,
    entities: &[Entity],
    budget: &mut Steps,
) -> bool {
    let mut range = |spec: &CountSpec| {
        let values = CountEnumerator::possible(spec, pieces, partial, entities, budget);
        let most = if spec.max > MAX_FOLLOWED { Some(spec.max) } else { values.iter().last() };
        values.iter().next().zip(most)
    };
    let ranges: Option<Vec<(u32, u32)>> = guard.counts.iter().map(&mut range).collect();
    ranges.is_some_and(|ranges| guard.condition.outcomes(&|slot| entities[slot], &ranges).0)
}

/// Whether a guard may hold, and whether it may fail, whatever its counts are.
fn outcomes(guard: &GuardSpec, entities: &[Entity]) -> (bool, bool) {
    let ranges: Vec<(u32, u32)> = guard.counts.iter().map(|count| (0, count.max)).collect();
    guard.condition.outcomes(&|slot| entities[slot], &ranges)
}

impl CountEnumerator<'_> {
    /// CountValues the count may take given a binding of the outer variables; all of them when the budget is spent before
    /// that is known.
    pub fn possible(
        spec: &CountSpec,
        pieces: &Domain,
        partial: &PartialBoard,
        entities: &[Entity],
        budget: &mut Steps,
    ) -> CountValues {
        let all = || CountValues::all(spec.max.min(MAX_FOLLOWED));
        if spec.max > MAX_FOLLOWED || steps(spec) > MAX_STEPS {
            return all();
        }
        let counter = CountEnumerator {
            pieces,
            partial,
            condition: spec.condition.as_ref(),
            guards: &spec.guards,
            max: spec.max,
            left: Cell::new(*budget),
        };
        let values = counter.bindings(&spec.binders, &mut entities.to_vec());
        *budget = counter.left.get();
        if *budget == 0 { all() } else { values }
    }

    /// Takes work off the budget; false when it is spent.
    fn spend(&self, steps: Steps) -> bool {
        self.left.set(self.left.get().saturating_sub(steps));
        self.left.get() > 0
    }

    fn only(&self, value: u32) -> CountValues {
        CountValues::only(value, self.max)
    }

    fn none(&self) -> CountValues {
        CountValues::none(self.max)
    }

    fn bindings(&self, binders: &[BinderSpec], entities: &mut Vec<Entity>) -> CountValues {
        if !self.spend(BINDING + Steps::from(self.max) / 64) {
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
        match (binder.source, from) {
            (SourceSpec::Moves(_), Some(from)) => self.moves(from, &mut |square| inner(Entity::bare(square))),
            (SourceSpec::Attacks(_), Some(from)) => self.attacks(from, &mut |square| inner(Entity::bare(square))),
            (SourceSpec::Targets(_), Some(from)) => {
                let mut sum = self.only(0);
                rays(from).for_each(|line| sum.plus(&self.first_met(&line, &mut inner)));
                sum
            }
            (SourceSpec::Next(_, direction), Some(from)) => {
                let line: Vec<u32> = Squares(ray(from.square, direction)).collect();
                self.first_met(&line, &mut inner)
            }
            _ => self.all_pieces(&mut inner),
        }
    }

    /// One binding, if the guards hold: with what is not known of the board they may or may not.
    fn guarded(&self, entities: &[Entity]) -> CountValues {
        let each = self.guards.iter().map(|guard| outcomes(guard, entities));
        let (holds, fails) = each.fold((true, false), |(holds, fails), of| (holds && of.0, fails || of.1));
        let mut values = self.none();
        if holds {
            values.or(&self.only(1));
        }
        if fails {
            values.or(&self.only(0));
        }
        values
    }

    /// Squares of each ray up to the first held one. A square may be passed unless it is surely held, and may stop the
    /// ray unless it is surely empty.
    fn attacks(&self, from: Entity, inner: &mut dyn FnMut(u32) -> CountValues) -> CountValues {
        let mut sum = self.only(0);
        for line in rays(from) {
            let mut reached = self.only(0);
            let mut ends = self.none();
            let last = line.len() - 1;
            for (at, square) in line.into_iter().enumerate() {
                reached.plus(&inner(square));
                if at == last || self.partial.may_be_occupied(square) {
                    ends.or(&reached);
                }
                if !self.partial.may_be_empty(square) {
                    break;
                }
            }
            sum.plus(&ends);
        }
        sum
    }

    fn moves(&self, from: Entity, inner: &mut dyn FnMut(u32) -> CountValues) -> CountValues {
        let other = 1 - from.color;
        if from.role == 0 {
            let mut sum = self.pushes(from, inner);
            for square in Squares(attacked(from)) {
                let mut capture = self.none();
                if self.partial.may_be_held(other, square) {
                    capture.or(&inner(square));
                }
                if !self.partial.surely_held(other, square) {
                    capture.or(&self.only(0));
                }
                sum.plus(&capture);
            }
            return sum;
        }
        let mut sum = self.only(0);
        for line in rays(from) {
            let mut reached = self.only(0);
            let mut ends = self.none();
            let mut open = true;
            for square in line {
                if self.partial.may_be_held(from.color, square) {
                    ends.or(&reached);
                }
                open = self.partial.may_be_empty(square);
                if self.partial.surely_held(from.color, square) {
                    break;
                }
                reached.plus(&inner(square));
                if self.partial.may_be_held(other, square) {
                    ends.or(&reached);
                }
                if !open {
                    break;
                }
            }
            if open {
                ends.or(&reached);
            }
            sum.plus(&ends);
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
            reached.plus(&inner(square));
        }
        ends.or(&reached);
        ends
    }

    /// The first piece on a line, or none.
    fn first_met(&self, line: &[u32], inner: &mut dyn FnMut(Entity) -> CountValues) -> CountValues {
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

    /// Pieces that may stand on a square.
    fn candidates(&self, square: u32) -> Vec<Entity> {
        match self.partial.at(square) {
            Some(known) => vec![known],
            None if !self.partial.may_be_occupied(square) => Vec::new(),
            None => self.pieces.at(square).filter(|entity| self.partial.may_be(*entity)).collect(),
        }
    }

    /// Two bounds at once: no square holds two pieces, and no side has more pieces than it may.
    fn all_pieces(&self, inner: &mut dyn FnMut(Entity) -> CountValues) -> CountValues {
        let mut by_square = self.only(0);
        let mut known = self.only(0);
        let mut by_kind: [[CountValues; 6]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| self.none()));
        for square in 0..64 {
            if let Some(piece) = self.partial.at(square) {
                let values = inner(piece);
                by_square.plus(&values);
                known.plus(&values);
                continue;
            }
            let mut here = if self.partial.may_be_empty(square) { self.only(0) } else { self.none() };
            for entity in self.candidates(square) {
                let values = inner(entity);
                by_kind[entity.color as usize][entity.role as usize].or(&values);
                here.or(&values);
            }
            by_square.plus(&here);
        }
        let mut by_material = known;
        for (color, kinds) in by_kind.into_iter().enumerate() {
            by_material.plus(&self.side(color as u32, kinds));
        }
        by_square.and(&by_material);
        by_square
    }

    /// What a side's unknown pieces may add, `kinds` being what one of each role adds.
    fn side(&self, color: u32, kinds: [CountValues; 6]) -> CountValues {
        let mut total = match self.partial.king(color) {
            Some(_) => self.only(0),
            None => kinds[KING as usize].clone(),
        };
        let zero = self.only(0);
        let optional = kinds.map(|mut kind| {
            kind.or(&zero);
            kind
        });
        let mut anyone = zero.clone();
        let mut flexible = FLEXIBLE;
        for (role, unpromoted) in UNPROMOTED.into_iter().enumerate() {
            let known = self.partial.squares(color)[role].count_ones();
            flexible = flexible.saturating_sub(known.saturating_sub(unpromoted));
            total.plus_times(&optional[role], unpromoted.saturating_sub(known));
            anyone.or(&optional[role]);
        }
        total.plus_times(&anyone, flexible);
        total
    }
}
