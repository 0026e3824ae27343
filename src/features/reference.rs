//! The reference encoder: a direct and slow implementation of the language, and the oracle for all faster ones.
//!
//! It orients the board square by square, follows every ray step by step and evaluates products recursively. It shares
//! no code with the compiled encoder.

use crate::chess::{Board, Perspective, Role, Square};

use super::spec::{
    BinderSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, FactorKind, FactorSpec, GuardSpec,
    Multiplicity, OWN_KING, ProductSpec,
};

/// The active elements of one block, ascending, from 0 to the product's size; repeated under `bag`. A board without
/// both kings has none.
pub fn active(block: &BlockSpec, board: &Board, pov: Perspective) -> Vec<u32> {
    let mut out: Vec<u32> = elements_by_binding(block, board, pov).into_iter().map(|(element, _)| element).collect();
    out.sort_unstable();
    if block.multiplicity == Multiplicity::Set {
        out.dedup();
    }
    out
}

/// Every element of every binding, with the oriented squares of the binding's variables in the order they are bound.
pub fn elements_by_binding(block: &BlockSpec, board: &Board, pov: Perspective) -> Vec<(u32, Vec<u32>)> {
    let Some(board) = ReferenceBoard::of(board, pov, block) else { return Vec::new() };
    let mut entities = vec![Entity::bare(0); block.variables.len()];
    entities[OWN_KING] = board.king(0);
    entities[ENEMY_KING] = board.king(1);
    let mut out = Vec::new();
    each_binding(&board, &block.binders, &mut entities, &mut |entities| {
        if holds(&board, block.condition.as_ref(), &block.guards, entities) {
            let squares: Vec<u32> = block.binders.iter().map(|binder| entities[binder.slot].square).collect();
            let mut elements = Vec::new();
            evaluate(&board, &block.product, entities, &mut elements);
            out.extend(elements.into_iter().map(|element| (element, squares.clone())));
        }
    });
    out
}

/// The elements of a product without counts, for one binding of its variables.
pub fn elements(of: &ProductSpec, entities: &[Entity]) -> Vec<u32> {
    let mut entities = entities.to_vec();
    let mut out = Vec::new();
    evaluate(&ReferenceBoard { squares: [None; 64] }, of, &mut entities, &mut out);
    out
}

/// The oriented board: the piece on each square, with its colour relative to the perspective.
pub(super) struct ReferenceBoard {
    squares: [Option<Entity>; 64],
}

impl ReferenceBoard {
    fn of(board: &Board, pov: Perspective, block: &BlockSpec) -> Option<ReferenceBoard> {
        board.king_of(pov.other().own())?;
        let mask = block.orientation.mask(board.king_of(pov.own())?, pov);
        let mut squares = [None; 64];
        for square in Square::ALL {
            if let Some(piece) = board.piece_at(square) {
                let oriented = u32::from(square) ^ mask;
                let color = u32::from(piece.color != pov.own());
                squares[oriented as usize] = Some(Entity { square: oriented, role: piece.role as u32 - 1, color });
            }
        }
        Some(ReferenceBoard { squares })
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = Entity> + '_ {
        self.squares.iter().flatten().copied()
    }

    fn king(&self, color: u32) -> Entity {
        let mut kings = self.pieces().filter(|piece| piece.role == Role::King as u32 - 1 && piece.color == color);
        kings.next().expect("`of` returns no board without kings")
    }

    pub(super) fn at(&self, square: u32) -> Option<Entity> {
        self.squares[square as usize]
    }

    /// The squares that a piece attacks, including squares of its own side.
    pub(super) fn attacks(&self, piece: Entity) -> Vec<u32> {
        const ROOK: [(i32, i32); 4] = [(1, 0), (-1, 0), (0, 1), (0, -1)];
        const BISHOP: [(i32, i32); 4] = [(1, 1), (1, -1), (-1, 1), (-1, -1)];
        const KNIGHT: [(i32, i32); 8] = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)];
        let up = forward(piece.color);
        let both = || ROOK.into_iter().chain(BISHOP);
        match piece.role {
            0 => self.rays(piece, [(-1, up), (1, up)], 1),
            1 => self.rays(piece, KNIGHT, 1),
            2 => self.rays(piece, BISHOP, 7),
            3 => self.rays(piece, ROOK, 7),
            4 => self.rays(piece, both(), 7),
            _ => self.rays(piece, both(), 1),
        }
    }

    /// The squares in each direction, up to and including the first occupied one.
    pub(super) fn rays(&self, from: Entity, steps: impl IntoIterator<Item = (i32, i32)>, reach: u32) -> Vec<u32> {
        let mut squares = Vec::new();
        for step in steps {
            let mut at = from.square;
            for _ in 0..reach {
                let Some(next) = step_from(at, step) else { break };
                squares.push(next);
                at = next;
                if self.at(at).is_some() {
                    break;
                }
            }
        }
        squares
    }

    /// The squares that a piece could move to if it were its turn, ignoring checks and pins.
    pub(super) fn moves(&self, piece: Entity) -> Vec<u32> {
        let attacks = self.attacks(piece);
        let occupied_by = |square: u32, color: u32| self.at(square).is_some_and(|other| other.color == color);
        if piece.role != 0 {
            return attacks.into_iter().filter(|square| !occupied_by(*square, piece.color)).collect();
        }
        let mut squares: Vec<u32> =
            attacks.into_iter().filter(|square| occupied_by(*square, 1 - piece.color)).collect();
        let start_rank = if piece.color == 0 { 1 } else { 6 };
        let pushes = if piece.square / 8 == start_rank { 2 } else { 1 };
        let mut at = piece.square;
        for _ in 0..pushes {
            match step_from(at, (0, forward(piece.color))) {
                Some(next) if self.at(next).is_none() => {
                    squares.push(next);
                    at = next;
                }
                _ => break,
            }
        }
        squares
    }
}

/// The rank step of a side's pawns: own pawns play upwards.
fn forward(color: u32) -> i32 {
    if color == 0 { 1 } else { -1 }
}

fn step_from(square: u32, (files, ranks): (i32, i32)) -> Option<u32> {
    let file = square as i32 % 8 + files;
    let rank = square as i32 / 8 + ranks;
    ((0..8).contains(&file) && (0..8).contains(&rank)).then_some((file + 8 * rank) as u32)
}

fn holds(
    board: &ReferenceBoard,
    condition: Option<&ConditionSpec>,
    guards: &[GuardSpec],
    entities: &mut [Entity],
) -> bool {
    condition.is_none_or(|condition| condition.holds(&|slot| entities[slot]))
        && guards.iter().all(|guard| {
            let counts: Vec<u32> = guard.counts.iter().map(|spec| count(board, spec, entities)).collect();
            guard.condition.holds_with(&|slot| entities[slot], &counts)
        })
}

/// Calls `visit` with every binding of the variables.
fn each_binding(
    board: &ReferenceBoard,
    binders: &[BinderSpec],
    entities: &mut [Entity],
    visit: &mut dyn FnMut(&mut [Entity]),
) {
    let Some((binder, rest)) = binders.split_first() else { return visit(entities) };
    for entity in binder.source.values_on(board, entities) {
        entities[binder.slot] = entity;
        each_binding(board, rest, entities, visit);
    }
}

/// Appends the product's elements for one binding.
fn evaluate(board: &ReferenceBoard, product: &ProductSpec, entities: &mut [Entity], out: &mut Vec<u32>) {
    let mut elements = vec![0u32];
    for spec in &product.factors {
        let right = factor(board, spec, entities);
        elements = elements.iter().flat_map(|a| right.iter().map(move |b| a * spec.size + b)).collect();
    }
    out.extend(elements);
}

fn factor(board: &ReferenceBoard, factor: &FactorSpec, entities: &mut [Entity]) -> Vec<u32> {
    match &factor.kind {
        FactorKind::Axis(axis) => axis.index(entities[axis.slot]).into_iter().collect(),
        FactorKind::Difference(left, right) => {
            let a = left.property.of(entities[left.slot]);
            let b = right.property.of(entities[right.slot]);
            vec![(a - b + left.size() as i32 - 1) as u32]
        }
        FactorKind::Reserved => Vec::new(),
        FactorKind::Count(spec) => vec![count(board, spec, entities)],
        FactorKind::Reach(spec) => {
            let attacker = entities[spec.attacker];
            let target = entities[spec.target];
            if attacker.role != spec.role || (spec.role == 0 && [0, 7].contains(&(attacker.square / 8))) {
                return Vec::new();
            }
            let empty = ReferenceBoard { squares: [None; 64] };
            let attacked = |square: u32| {
                // A pawn on an end rank is none.
                let is_none = spec.role == 0 && [0, 7].contains(&(square / 8));
                let mut squares = empty.attacks(Entity { square, ..attacker });
                squares.retain(|_| !is_none);
                squares.sort_unstable();
                squares
            };
            let before: usize = (0..attacker.square).map(|square| attacked(square).len()).sum();
            let own = attacked(attacker.square);
            own.iter().position(|square| *square == target.square).map(|at| (before + at) as u32).into_iter().collect()
        }
        FactorKind::Pair(spec) => {
            let [a, b] = spec.sides.each_ref().map(|side| {
                let mut elements = Vec::new();
                evaluate(board, side, entities, &mut elements);
                elements
            });
            let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (*a.max(b), *a.min(b))));
            pairs.filter(|(high, low)| high != low).map(|(high, low)| (0..high).sum::<u32>() + low).collect()
        }
        FactorKind::Sum(products) => {
            let mut elements = Vec::new();
            let mut offset = 0;
            for summand in products {
                let mut inner = Vec::new();
                evaluate(board, summand, entities, &mut inner);
                elements.extend(inner.into_iter().map(|element| element + offset));
                offset += summand.size;
            }
            elements
        }
    }
}

/// The number of bindings that satisfy the condition, clamped to the maximum.
fn count(board: &ReferenceBoard, spec: &CountSpec, entities: &mut [Entity]) -> u32 {
    let mut number = 0u32;
    each_binding(board, &spec.binders, entities, &mut |entities| {
        number += u32::from(holds(board, spec.condition.as_ref(), &spec.guards, entities));
    });
    number.min(spec.max)
}
