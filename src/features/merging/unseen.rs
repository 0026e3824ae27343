//! Rows of features that no sampled position activates: the average over all bindings that could.

use std::ops::ControlFlow;

use super::credits::Credits;
use crate::chess::{Orientation, Perspective, Role, Square, too_close};
use crate::features::analysis::{BindingSearch, Budget};
use crate::features::reference::elements;
use crate::features::spec::{BlockSpec, ENEMY_KING, Entity, OWN_KING, VariableKind};
use crate::features::starting_rows::RowPart;

/// Search steps for a block's features; the rows that are left then start at zero.
const STEPS: u64 = 1 << 24;

/// Fills the rows of the features of `new` that `credits` has not seen, if the features of `old` follow from a binding
/// alone.
pub fn average(new: &BlockSpec, old: &BlockSpec, credits: &Credits, rows: &mut [Vec<RowPart>]) {
    if !old.counts().is_empty() {
        return;
    }
    let search = BindingSearch::new(new, Budget::THOROUGH);
    let masks = relative_masks(new.orientation, old.orientation);
    let unbound = [OWN_KING, ENEMY_KING].map(|king| reads(old, king) && !search.reads(king));
    let mut steps = STEPS;
    for element in 0..new.product.size {
        let Some(index) = new.index_of(element).filter(|index| credits.seen.binary_search(index).is_err()) else {
            continue;
        };
        let Some(constraints) = search.constraints(element) else { continue };
        let mut found: Vec<u32> = Vec::new();
        let mut bindings = 0u32;
        search.bindings(&constraints, &mut steps, &mut |_, entities| {
            for mask in &masks {
                let turned = entities.iter().map(|entity| Entity { square: entity.square ^ mask, ..*entity }).collect();
                for_each_placement(turned, unbound, &mut |entities| {
                    if is_possible(old, entities) {
                        let features = elements(&old.product, entities);
                        bindings += u32::from(!features.is_empty());
                        found.extend(features.into_iter().filter_map(|element| old.index_of(element)));
                    }
                });
            }
            ControlFlow::Continue(())
        });
        found.sort_unstable();
        let same = found.chunk_by(|a, b| a == b);
        rows[index as usize]
            .extend(same.map(|same| RowPart { row: same[0], weight: same.len() as f32 / bindings as f32 }));
    }
}

/// The masks between the two orientations' squares, over all perspectives and own kings.
fn relative_masks(one: Orientation, other: Orientation) -> Vec<u32> {
    let kings = Square::ALL.into_iter().flat_map(|king| Perspective::ALL.map(|pov| (king, pov)));
    let mut masks: Vec<u32> = kings.map(|(king, pov)| one.mask(king, pov) ^ other.mask(king, pov)).collect();
    masks.sort_unstable();
    masks.dedup();
    masks
}

fn reads(block: &BlockSpec, king: usize) -> bool {
    let in_condition = block.condition.as_ref().is_some_and(|condition| condition.slots().contains(&king));
    in_condition || block.product.reads(king)
}

/// Visits the entities with each unbound king on every square.
fn for_each_placement(mut entities: Vec<Entity>, unbound: [bool; 2], visit: &mut dyn FnMut(&[Entity])) {
    let squares = unbound.map(|unbound| if unbound { 0..64 } else { 0..1 });
    for own in squares[OWN_KING].clone() {
        for enemy in squares[ENEMY_KING].clone() {
            for (slot, square) in [(OWN_KING, own), (ENEMY_KING, enemy)] {
                if unbound[slot] {
                    entities[slot] = Entity { square, role: Role::King as u32 - 1, color: slot as u32 };
                }
            }
            visit(&entities);
        }
    }
}

/// Whether the block's condition holds, the own king is on its half of a mirrored board, the pieces are the kings exactly
/// where they stand, and the kings are apart.
fn is_possible(block: &BlockSpec, entities: &[Entity]) -> bool {
    let kings_fit = [OWN_KING, ENEMY_KING].into_iter().filter(|king| reads(block, *king)).all(|king| {
        let at = entities[king].square;
        let on_its_half = king == ENEMY_KING || block.orientation.mask(Square::new(at), Perspective::White) == 0;
        let pieces = entities.iter().zip(&block.variables).skip(ENEMY_KING + 1);
        let mut pieces = pieces.filter(|(_, kind)| **kind == VariableKind::Piece).map(|(piece, _)| piece);
        on_its_half
            && pieces.all(|piece| match (piece.role == Role::King as u32 - 1, piece.color == king as u32) {
                (true, true) => piece.square == at,
                (true, false) => !too_close(piece.square, at),
                _ => piece.square != at,
            })
    });
    kings_fit && block.condition.as_ref().is_none_or(|condition| condition.holds(&|slot| entities[slot]))
}
